"""Check of a certificate in the nonlinear fluid, with the law's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netctrl.certificates.linux import linux_dualpi2, linux_pie
from netctrl.certificates.record import CheckRun, QueueCheck
from netctrl.checks.point import CheckPoint
from netctrl.laws.aqm.pie import PieQueue
from netctrl.sim.queue_fluid.laws import FluidLaw, LinuxDualPi2, LinuxPie, Pi2, RfcPie
from netctrl.sim.queue_fluid.run import STARTS, FluidClass, FluidQueue, swing_of

__all__ = ["check_fluid", "fluid_queue"]

_DUALPI2_NOTES = ("the scalable queue is a constant delay, without its step",)


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
        notes=_DUALPI2_NOTES if point.subject.name == "dualpi2" else (),
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
    law = _law(point.subject.name, point.subject.parameters, point)
    return FluidQueue(classes, point.loop.rate, point.packet_bytes, law, point.output, point.period_s)


def _law(name: str, given: Mapping[str, Any], point: CheckPoint) -> FluidLaw:
    if name == "dualpi2":
        return LinuxDualPi2(linux_dualpi2(**given))
    target, update, alpha, beta = (given[key] for key in ("target_s", "tupdate_s", "alpha", "beta"))
    if name == "pi2":
        return Pi2(target, update, alpha, beta, given["coupling"])
    if given["implementation"] == "linux":
        return LinuxPie(linux_pie(**{key: value for key, value in given.items() if key != "implementation"}))
    return RfcPie(PieQueue(target=target, update=update, alpha=alpha, beta=beta), point.subject.reading)
