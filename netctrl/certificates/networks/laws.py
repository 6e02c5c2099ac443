"""Laws of a scenario's queues as subjects of certificates, with the arithmetic of what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from netctrl.certificates.red import RedLine, RedSubject
from netctrl.certificates.subject import PiSubject, Subject, dualpi2, pi2, pie
from netctrl.errors import InvalidValue, did_you_mean
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.reading import DelayReading
from netctrl.scenario.links import Link
from netctrl.units import packets_per_second

__all__ = ["law_of"]

_ENGINES = "real numbers, on the backlog's delay, as netctrl's engines run it"


def law_of(link: Link, packet_bytes: float) -> Subject | None:
    """Law of a link's queue; None for a buffer without one.

    Raises
    ------
    InvalidValue
        A queue without a law that a linear loop describes.
    """
    if isinstance(link.queue, DropTailQueue):
        return None
    make = _MAKERS.get(type(link.queue))
    if make is None:
        kind = link.queue.__struct_config__.tag
        takes = "a queue whose law has a linear loop: pie, pi2, dualpi2, pi, red, qdisc, or droptail"
        raise InvalidValue(f"links.{link.id}.queue", kind, takes)
    return make(link, packet_bytes)


def _pie(link: Link, packet_bytes: float) -> Subject:
    q = link.queue
    law = pie(
        target_s=q.target,
        tupdate_s=q.update,
        alpha=q.alpha,
        beta=q.beta,
        implementation="rfc",
        dq_rate_estimator=True,  # the engines read the backlog
    )
    return replace(law, implementation=_ENGINES)


def _pi2(link: Link, packet_bytes: float) -> Subject:
    q = link.queue
    law = pi2(target_s=q.target, tupdate_s=q.update, alpha=q.alpha, beta=q.beta, coupling=q.coupling)
    return replace(law, implementation=_ENGINES)


def _dualpi2(link: Link, packet_bytes: float) -> Subject:
    q = link.queue
    single = pi2(target_s=q.target, tupdate_s=q.update, alpha=q.alpha, beta=q.beta, coupling=q.coupling)
    return replace(
        single,
        name="dualpi2",
        implementation="RFC 9332, in real numbers, as netctrl's engines run it",
        parameters={**single.parameters, "step_s": q.step},
        apart=True,
        apart_delay_s=q.step,
        reading=DelayReading.HEAD,
        marked_leaving=True,
        greatest=1.0 / q.coupling,
        notes=("of the scalable queue only the coupling is in the loop, not its step",),
    )


def _pi(link: Link, packet_bytes: float) -> Subject:
    q = link.queue
    rate = packets_per_second(link.capacity, packet_bytes)
    integral = (q.alpha - q.beta) * rate
    if integral <= 0.0:
        raise InvalidValue(f"links.{link.id}.queue.beta", q.beta, "a gain below alpha: else the queue has no target")
    law = DelayPi(
        integral=integral,
        proportional=q.beta * rate,
        update_s=1.0 / q.frequency_hz,
        target_s=q.reference_queue / packet_bytes / rate,
    )
    return PiSubject(
        name="pi",
        implementation=_ENGINES,
        parameters={"alpha": q.alpha, "beta": q.beta, "frequency_hz": q.frequency_hz},
        nominal=law,
        rungs=((0.0, 1.0, law),),
    )


def _red(link: Link, packet_bytes: float) -> Subject:
    q = link.queue
    low, high, most = q.min_threshold, q.max_threshold, q.max_probability
    if q.adaptive:
        takes = "false: a network's certificate has one max_probability"
        raise InvalidValue(f"links.{link.id}.queue.adaptive", True, takes)
    first = RedLine(most / (high - low), low, 0.0, most)
    slope = (1.0 - most) / high
    start = high - most / slope if slope > 0.0 else high
    gentle = q.gentle and slope > 0.0
    lines = (first, RedLine(slope, start, most, 1.0)) if gentle else (first,)
    return RedSubject(
        name="red",
        implementation=_ENGINES,
        parameters={"min_threshold": low, "max_threshold": high, "max_probability": most, "weight": q.weight},
        lines=lines,
        weight=q.weight,
        spaced=q.spaced,
        beyond="the average is at twice the upper threshold" if gentle else "the average is at the upper threshold",
        notes=("the average of an idle queue is not in the linear loop",),
    )


_KERNEL: dict[str, tuple[Callable[..., Subject], Mapping[str, tuple[str, Any]]]] = {
    "pie": (
        pie,
        {
            "target": ("target_s", float),
            "tupdate": ("tupdate_s", float),
            "alpha": ("alpha", lambda steps: steps / 16.0),
            "beta": ("beta", lambda steps: steps / 16.0),
            "dq_rate_estimator": ("dq_rate_estimator", bool),
        },
    ),
    "dualpi2": (
        dualpi2,
        {
            "target": ("target_s", float),
            "tupdate": ("tupdate_s", float),
            "alpha": ("alpha", float),
            "beta": ("beta", float),
            "coupling_factor": ("coupling", int),
            "step_thresh": ("step_s", float),
        },
    ),
}
"""Disciplines of Linux: their subjects, and their parameters by tc's names."""
_BESIDE = ("limit", "ecn", "bytemode", "memlimit", "split_gso", "classic_protection")
"""Parameters of them that don't change the loop."""


def _kernel(link: Link, packet_bytes: float) -> Subject:
    q, place = link.queue, f"links.{link.id}.queue"
    if q.discipline not in _KERNEL:
        takes = f"one of {', '.join(_KERNEL)}, which have a linear loop{did_you_mean(q.discipline, _KERNEL)}"
        raise InvalidValue(f"{place}.discipline", q.discipline, takes)
    make, names = _KERNEL[q.discipline]
    given = {}
    for name, value in q.parameters.items():
        if name in names:
            argument, read = names[name]
            given[argument] = read(value)
        elif name not in _BESIDE:
            takes = f"parameters whose effect on the loop is known: {', '.join((*names, *_BESIDE))}"
            raise InvalidValue(f"{place}.parameters", name, takes)
    return make(**given)


_MAKERS: dict[type, Callable[[Link, float], Subject]] = {
    PieQueue: _pie,
    Pi2Queue: _pi2,
    DualPi2Queue: _dualpi2,
    PiQueue: _pi,
    RedQueue: _red,
    KernelQueue: _kernel,
}
"""Record of a queue -> function that makes its subject."""
