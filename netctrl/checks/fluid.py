"""Check of a certificate in the nonlinear fluid, with the law's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netctrl.certificates.linux import linux_dualpi2, linux_pie
from netctrl.checks.point import CheckPoint
from netctrl.checks.queues import buffer_bytes, docsis_queue, red_queue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RED
from netctrl.laws.targets.docsis_pie import DOCSIS_PIE
from netctrl.laws.targets.reading import DelayReading
from netctrl.model.design.queue_checks import CheckRun, QueueCheck
from netctrl.sim.queue_fluid.laws import DocsisPie, FluidLaw, LinuxDualPi2, LinuxPie, Pi2, Red, RfcPie
from netctrl.sim.queue_fluid.run import STARTS, FluidClass, FluidQueue, swing_of

__all__ = ["check_fluid", "fluid_queue"]

_NOTES = {
    "dualpi2": ("the scalable queue is a constant delay, without its step",),
    "docsis-pie": (
        "the buffer is a second or 20 targets: the law begins when a third of it has filled",
        "spread drops have their mean rate over sizes of packets",
    ),
    "red": ("the average of an empty queue falls at the link's rate",),
}
_ADAPTS_S = 0.5
"""Time from one step of adaptive RED to the next."""


def check_fluid(point: CheckPoint) -> QueueCheck:
    """Swing of the queue at a certificate's worst point, from three starts."""
    queue = fluid_queue(point)
    runs = []
    for start in STARTS:
        found = swing_of(queue, start)
        runs.append(
            CheckRun(
                start=start.name,
                seed=None,
                settles=found.settles,
                swing_s=found.swing_s,
                mean_delay_s=found.mean_delay_s,
                utilization=found.utilization,
            )
        )
    return QueueCheck(
        engine="fluid",
        settles=all(run.settles for run in runs),
        flows=point.flows,
        period_s=point.period_s,
        envelope_ratio=None,
        runs=tuple(runs),
        notes=_NOTES.get(point.subject.name, ()),
        senders=point.instead,
    )


def fluid_queue(point: CheckPoint) -> FluidQueue:
    """The queue of a certificate's point in the fluid, with its law in the arithmetic of its implementation."""
    classes = tuple(
        FluidClass(
            flows=k.share * point.flows,
            window=float(k.window(point.output, point.loop.trip(k, point.rtt_s, point.target_s))),
            base_s=point.rtt_s * k.stretch,
            other_s=None if k.queued else k.other_delay_s,
            increase=k.sender.increase,
            decrease=k.sender.decrease,
            averaging=k.sender.averaging,
            scalable=k.sender.scalable,
        )
        for k in point.loop.classes
    )
    law = _LAWS[point.subject.name](point)
    buffer_s = buffer_bytes(point) / point.packet_bytes / point.loop.rate
    output = float(point.loop.computed(point.output))
    return FluidQueue(classes, point.loop.rate, point.packet_bytes, law, output, point.period_s, buffer_s)


def _dualpi2(point: CheckPoint) -> FluidLaw:
    given: dict[str, Any] = dict(point.subject.parameters)
    return LinuxDualPi2(linux_dualpi2(**given))


def _pi2(point: CheckPoint) -> FluidLaw:
    given: dict[str, Any] = dict(point.subject.parameters)
    return Pi2(given["target_s"], given["tupdate_s"], given["alpha"], given["beta"], given["coupling"])


def _pie(point: CheckPoint) -> FluidLaw:
    given: dict[str, Any] = dict(point.subject.parameters)
    if given.pop("implementation") == "linux":
        given.pop("ecn")  # the fluid has one answer for marks and drops
        return LinuxPie(linux_pie(**given))
    target, update, alpha, beta = (given[key] for key in ("target_s", "tupdate_s", "alpha", "beta"))
    reading = DelayReading.BACKLOG if given["dq_rate_estimator"] else DelayReading.SOJOURN
    return RfcPie(PieQueue(target=target, update=update, alpha=alpha, beta=beta), reading)


def _docsis_pie(point: CheckPoint) -> FluidLaw:
    queue = docsis_queue(point)
    return DocsisPie(DOCSIS_PIE.read(queue, point.packet_bytes, buffer_bytes(point)), queue.interval)


def _red(point: CheckPoint) -> FluidLaw:
    queue = red_queue(point)
    update = _ADAPTS_S if queue.adaptive else point.period_s
    return Red(RED.read(queue, point.packet_bytes, buffer_bytes(point)), point.target_s, update)


_LAWS: dict[str, Callable[[CheckPoint], FluidLaw]] = {
    "dualpi2": _dualpi2,
    "pi2": _pi2,
    "pie": _pie,
    "docsis-pie": _docsis_pie,
    "red": _red,
    "wred": _red,
}
