"""Networks of queues from scenarios: links with their laws as a certificate's subjects, and groups of long flows.

A law of a scenario is certified in the arithmetic of what runs it: netctrl's engines compute in real numbers and read
the delay of the backlog; a queue of kind `qdisc` has the kernel's integers. What no linear loop describes is refused by
its place in the scenario's file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from netctrl.certificates.pi_laws import dualpi2, pi2, pie
from netctrl.certificates.red import RedLine, RedSubject
from netctrl.certificates.subject import PiSubject, Subject
from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.core.units import packets_per_second
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.reading import DelayReading
from netctrl.plants.queue_networks.network import LawRange, PathFlows, QueueLink, QueueNetwork
from netctrl.plants.queues.queue_laws import WindowClass
from netctrl.plants.queues.window_response import CUBIC, DCTCP, RENO, Sender
from netctrl.scenario.checks import tag_of
from netctrl.scenario.links import Link, Links
from netctrl.scenario.scenario import Scenario

_SENDERS: dict[str, Sender] = {"reno": RENO, "cubic": CUBIC, "dctcp": DCTCP, "prague": DCTCP}
"""Senders of flows whose windows have a linear response."""
Changed = tuple[str, str]
"""("rtt", "flows" or "capacity", name of a group or a link)."""
_ENGINES = "real numbers, on the backlog's delay, as netctrl's engines run it"
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


class CertifiedNetwork(NamedTuple):
    """A scenario's network in the terms of a loop."""

    network: QueueNetwork
    capacities: tuple[float, ...]
    """Rates of the links [bit/s]."""
    laws: tuple[Subject | None, ...]
    """Of the links; None: a buffer alone."""


def check_links(scenario: Scenario) -> None:
    """InvalidValue for a network that isn't one of single links."""
    if scenario.kind is not Links:
        raise InvalidValue("network", f"a network of kind {tag_of(scenario.kind)}", "a scenario of links")


def network_of(scenario: Scenario, changed: Mapping[Changed, float] | None = None) -> CertifiedNetwork:
    """Links and flows of a scenario.

    Parameters
    ----------
    scenario : Scenario
    changed : mapping, optional
        Values in place of the scenario's: of ("rtt", group) [s], ("flows", group) or ("capacity", link) [bit/s].

    Raises
    ------
    InvalidValue
        What the loop doesn't describe, named by its place in the file.
    """
    check_links(scenario)
    if scenario.changes:
        raise InvalidValue("changes", f"{len(scenario.changes)} changes", "none: one operating point")
    if scenario.control is not None:
        raise InvalidValue("control", scenario.control.__struct_config__.tag, "none: link rates that stay")
    if not scenario.flows:
        raise InvalidValue("flows", "none", "at least one group of flows")
    size, changed = scenario.packet_size, changed or {}
    given = [replace(link, capacity=changed.get(("capacity", link.id), link.capacity)) for link in scenario.links]
    laws = tuple(_law_of(link, size) for link in given)
    links = tuple(_link(link, law, size) for link, law in zip(given, laws, strict=True))
    places = {link.id: k for k, link in enumerate(given)}
    groups = tuple(_group(group, places, laws, changed) for group in scenario.flows)
    return CertifiedNetwork(QueueNetwork(links, groups), tuple(link.capacity for link in given), laws)


def _law_of(link: Link, packet_bytes: float) -> Subject | None:
    """Law of a link's queue; None for a buffer without one, InvalidValue where no linear loop describes it."""
    q: Any = link.queue
    place = f"links.{link.id}.queue"
    match q:
        case DropTailQueue():
            return None
        case PieQueue():
            law = pie(
                target_s=q.target,
                tupdate_s=q.update,
                alpha=q.alpha,
                beta=q.beta,
                implementation="rfc",
                dq_rate_estimator=True,  # the engines read the backlog
            )
            return dataclasses.replace(law, implementation=_ENGINES)
        case Pi2Queue() | DualPi2Queue():
            law = pi2(target_s=q.target, tupdate_s=q.update, alpha=q.alpha, beta=q.beta, coupling=q.coupling)
            if isinstance(q, Pi2Queue):
                return dataclasses.replace(law, implementation=_ENGINES)
            return dataclasses.replace(
                law,
                name="dualpi2",
                implementation="RFC 9332, in real numbers, as netctrl's engines run it",
                parameters={**law.parameters, "step_s": q.step},
                apart=True,
                apart_delay_s=q.step,
                reading=DelayReading.HEAD,
                marked_leaving=True,
                greatest=1.0 / q.coupling,
                notes=("of the scalable queue only the coupling is in the loop, not its step",),
            )
        case PiQueue():
            return _pi(q, packets_per_second(link.capacity, packet_bytes), packet_bytes, place)
        case RedQueue():
            return _red(q, place)
        case KernelQueue():
            return _kernel(q, place)
    takes = "a queue whose law has a linear loop: pie, pi2, dualpi2, pi, red, qdisc, or droptail"
    raise InvalidValue(place, q.__struct_config__.tag, takes)


def _pi(q: PiQueue, rate: float, packet_bytes: float, place: str) -> PiSubject:
    """PI on the queue in packets as one on its delay D = q/C.

    p⁺ = p + alpha (q − q_ref) − beta (q_old − q_ref) = p + (alpha − beta) C (D − D_ref) + beta C (D − D_old).
    """
    integral = (q.alpha - q.beta) * rate
    if integral <= 0.0:
        raise InvalidValue(f"{place}.beta", q.beta, "a gain below alpha: else the queue has no target")
    law = DelayPi(
        integral=integral,
        proportional=q.beta * rate,
        update_s=1.0 / q.frequency_hz,
        target_s=q.reference_queue / packet_bytes / rate,
    )
    parameters = {"alpha": q.alpha, "beta": q.beta, "frequency_hz": q.frequency_hz}
    return PiSubject(name="pi", implementation=_ENGINES, parameters=parameters, nominal=law, rungs=((0.0, 1.0, law),))


def _red(q: RedQueue, place: str) -> RedSubject:
    """RED: from (min, 0) to (max, P), and if it is gentle on to (2 max, 1)."""
    low, high, most = q.min_threshold, q.max_threshold, q.max_probability
    if q.adaptive:
        raise InvalidValue(f"{place}.adaptive", True, "false: a network's certificate has one max_probability")
    lines = [RedLine(most / (high - low), low, 0.0, most)]
    if gentle := q.gentle and most < 1.0:
        slope = (1.0 - most) / high
        lines.append(RedLine(slope, high - most / slope, most, 1.0))
    return RedSubject(
        name="red",
        implementation=_ENGINES,
        parameters={"min_threshold": low, "max_threshold": high, "max_probability": most, "weight": q.weight},
        lines=tuple(lines),
        weight=q.weight,
        spaced=q.spaced,
        beyond="the average is at twice the upper threshold" if gentle else "the average is at the upper threshold",
        notes=("the average of an idle queue is not in the linear loop",),
    )


def _kernel(q: KernelQueue, place: str) -> Subject:
    """A discipline of Linux, with its parameters by tc's names."""
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


def _link(link: Link, law: Subject | None, packet_bytes: float) -> QueueLink:
    for name in ("trace", "loss", "jitter", "pfc"):
        value = getattr(link, name)
        if value:
            raise InvalidValue(f"links.{link.id}.{name}", value, "nothing: a link with a steady rate and no losses")
    rate = packets_per_second(link.capacity, packet_bytes)
    if law is None:
        return QueueLink(name=link.id, rate=rate, delay_s=link.delay)
    loops = law.loops((law.seen_by(RENO),), rate, packet_bytes)
    return QueueLink(
        name=link.id,
        rate=rate,
        delay_s=link.delay,
        ranges=tuple(LawRange(*loop.within, loop.law) for loop in loops),
        greatest=loops[0].law.reached(law.greatest),
        beyond=law.beyond,
        age_s=loops[0].age_s,
        age_queues=loops[0].age_queues,
        marked_leaving=loops[0].marked_leaving,
    )


def _group(
    group: Any, places: dict[str, int], laws: tuple[Subject | None, ...], changed: Mapping[Changed, float]
) -> PathFlows:
    where = f"flows.{group.id}"
    if group.offers is not None:
        kind = "flows of finite size" if group.bulk else group.offers.__struct_config__.tag
        raise InvalidValue(where, kind, "bulk flows without an end")
    if group.packet_size is not None:
        raise InvalidValue(f"{where}.packet_size", group.packet_size, "nothing: packets of one size")
    if group.stop is not None:
        raise InvalidValue(f"{where}.stop", group.stop, "nothing: flows that stay")
    if group.ack_path:
        raise InvalidValue(f"{where}.ack_path", group.ack_path, "nothing: acknowledgements that don't queue")
    if not isinstance(group.sender, str) or group.sender not in _SENDERS:
        name = group.sender if isinstance(group.sender, str) else group.sender.__struct_config__.tag
        raise InvalidValue(f"{where}.sender", name, f"one of {', '.join(_SENDERS)}")
    rtt = changed.get(("rtt", group.id), group.rtt[0])
    if group.rtt[0] != group.rtt[1] and ("rtt", group.id) not in changed:
        raise InvalidValue(f"{where}.rtt", group.rtt, "one round-trip time; several groups for several of them")
    sender, path = _SENDERS[group.sender], tuple(places[name] for name in group.path)
    seen = tuple(WindowClass(sender) if (law := laws[k]) is None else law.seen_by(sender) for k in path)
    flows = float(changed.get(("flows", group.id), group.count))
    return PathFlows(name=group.id, flows=flows, rtt_s=rtt, path=path, seen=seen)
