"""Queues of checks: a certificate's law with its arithmetic, as a scenario's queue on packets and in the kernel.

Check of a certificate in the nonlinear fluid, with the law's own arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netctrl.certificates.pi_laws import linux_dualpi2, linux_pie
from netctrl.certificates.red import RedSubject
from netctrl.certificates.subject import PiSubject
from netctrl.checks.point import CheckPoint
from netctrl.errors import InvalidValue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RED, RedQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.docsis_pie import DOCSIS_PIE, DocsisPieQueue
from netctrl.laws.targets.pie_packets import tupdate_for
from netctrl.laws.targets.reading import DelayReading
from netctrl.model.design.queue_checks import CheckRun, QueueCheck
from netctrl.sim.queue_fluid.laws import DocsisPie, FluidLaw, LinuxDualPi2, LinuxPie, Pi2, Red, RfcPie
from netctrl.sim.queue_fluid.run import STARTS, FluidClass, FluidQueue, longest_delay, swing_of
from netctrl.units import BITS_PER_BYTE

__all__ = ["KERNEL_HZ", "buffer_bytes", "check_fluid", "docsis_queue", "fluid_queue", "queue_of", "red_queue"]

KERNEL_HZ = 1000
"""CONFIG_HZ of the kernel engine."""
_LIMIT_PACKETS = 100_000


def buffer_bytes(point: CheckPoint) -> float:
    """Buffer of a check: RED's own limit, else a second at the link's rate, or 20 targets if that is longer [byte]."""
    if "limit_bytes" in point.subject.parameters:
        return float(point.subject.parameters["limit_bytes"])
    return point.loop.rate * longest_delay(point.target_s) * point.packet_bytes


def queue_of(point: CheckPoint, engine: str) -> Any:
    """The law of a certificate as a queue for "packet" or "kernel".

    Raises
    ------
    InvalidValue
        A law that the engine has not with the certificate's arithmetic.
    """
    return _QUEUES[engine, point.subject.name](point)


def docsis_queue(point: CheckPoint) -> DocsisPieQueue:
    """DOCSIS-PIE of a certificate."""
    given: dict[str, Any] = dict(point.subject.parameters)
    return DocsisPieQueue(
        latency_target=given["target_s"], interval=given["tupdate_s"], alpha=given["alpha"], beta=given["beta"]
    )


def red_queue(point: CheckPoint) -> RedQueue:
    """RED or WRED of a certificate, in real numbers; of Linux with the slope that its integers have."""
    subject = point.subject
    if not isinstance(subject, RedSubject):
        raise InvalidValue("check", subject.name, "red or wred")
    given: dict[str, Any] = dict(subject.parameters)
    low, high = float(given["min_bytes"]), float(given["max_bytes"])
    if "max_percent" in given:
        most = given["max_percent"] / 100.0
    else:
        most = float(given["probability"]) if given["adaptive"] else subject.lines[0].slope * (high - low)
    return RedQueue(
        min_threshold=low,
        max_threshold=high,
        max_probability=most,
        weight=subject.weight,
        gentle=bool(given.get("gentle", False)),
        adaptive=bool(given.get("adaptive", False)),
        spaced=subject.spaced,
    )


def _settings(point: CheckPoint) -> dict[str, Any]:
    subject = _pi_subject(point)
    gains = subject.sampled
    times = {"target": gains.target_s, "update": gains.update_s}
    return times | {"alpha": gains.integral, "beta": gains.proportional}


def _pi_subject(point: CheckPoint) -> PiSubject:
    if not isinstance(point.subject, PiSubject):
        raise InvalidValue("check", point.subject.name, "a PI law")
    return point.subject


def _pi2_on_packets(point: CheckPoint) -> Pi2Queue:
    return Pi2Queue(**_settings(point), coupling=float(_pi_subject(point).coupling))


def _dualpi2_on_packets(point: CheckPoint) -> DualPi2Queue:
    subject = _pi_subject(point)
    if not subject.marked_leaving:
        raise InvalidValue("check", "packet with drop_early", "the kernel, or dualpi2 without --drop-early")
    return DualPi2Queue(**_settings(point), coupling=float(subject.coupling))


def _pie_on_packets(point: CheckPoint) -> PieQueue | KernelQueue:
    subject = _pi_subject(point)
    linux = subject.parameters["implementation"] == "linux"
    if linux == (subject.reading is DelayReading.BACKLOG):
        takes = "the delay of the packet that left last of Linux's pie, and the backlog's of RFC 8033's"
        flag = "without" if linux else "with"
        raise InvalidValue("check", f"packet with {subject.implementation}", f"{takes}: {flag} --dq-rate-estimator")
    if not linux:
        return PieQueue(**_settings(point))
    queue = _linux_pie(dict(subject.parameters))
    sent = {**queue.parameters, "tupdate": tupdate_for(subject.sampled.update_s)}
    return KernelQueue(discipline="pie", parameters=sent)


def _times(given: dict[str, Any]) -> dict[str, float]:
    return {"target": given["target_s"], "tupdate": given["tupdate_s"], "limit": _LIMIT_PACKETS}


def _dualpi2_in_kernel(point: CheckPoint) -> KernelQueue:
    given: dict[str, Any] = dict(point.subject.parameters)
    own = {"alpha": given["alpha"], "beta": given["beta"], "coupling_factor": given["coupling"]}
    own |= {"step_thresh": given["step_s"], "drop_enqueue": float(given["drop_early"])}
    return KernelQueue(discipline="dualpi2", parameters=_times(given) | own)


def _pie_in_kernel(point: CheckPoint) -> KernelQueue:
    given: dict[str, Any] = dict(point.subject.parameters)
    if given["implementation"] == "rfc":
        raise _not_in_linux(point, "a law of Linux: pie without --rfc, dualpi2 or red")
    if given["hz"] != KERNEL_HZ:
        takes = f"--hz {KERNEL_HZ}, which the engine's kernel has"
        raise InvalidValue("check", f"kernel with --hz {given['hz']}", takes)
    return _linux_pie(given)


def _linux_pie(given: dict[str, Any]) -> KernelQueue:
    own = {"alpha": round(16.0 * given["alpha"]), "beta": round(16.0 * given["beta"])}
    own |= {flag: 1.0 for flag in ("dq_rate_estimator", "ecn") if given[flag]}
    return KernelQueue(discipline="pie", parameters=_times(given) | own)


def _red_in_kernel(point: CheckPoint) -> KernelQueue:
    given: dict[str, Any] = dict(point.subject.parameters)
    if given["gentle"]:
        raise InvalidValue("check", "kernel with --gentle", "red without --gentle: Linux's red has no gentle variant")
    if not given["ecn"] and any(k.sender.name == "dctcp" for k in point.loop.classes):
        raise InvalidValue("check", "kernel with dctcp and no ecn", "--ecn: dctcp's answer is to marks, not to drops")
    sizes = {"limit": given["limit_bytes"], "min": given["min_bytes"], "max": given["max_bytes"]}
    own = {"probability": given["probability"], "weight_log": given["weight_log"]}
    own["bandwidth"] = point.loop.rate * point.packet_bytes * BITS_PER_BYTE
    flags = {"ecn": float(given["ecn"]), "adaptive": float(given["adaptive"])}
    return KernelQueue(discipline="red", parameters=sizes | own | flags)


def _pi2_in_kernel(point: CheckPoint) -> KernelQueue:
    raise _not_in_linux(point, "a law of Linux: pie, dualpi2 or red")


def _docsis_in_kernel(point: CheckPoint) -> KernelQueue:
    takes = "fluid or packet: Linux has no DOCSIS-PIE, and its pie has other gains (`netctrl certify pie`)"
    raise _not_in_linux(point, takes)


def _wred_in_kernel(point: CheckPoint) -> KernelQueue:
    takes = "fluid or packet: Linux has no WRED of switches; its gred and red space their marks (`netctrl certify red`)"
    raise _not_in_linux(point, takes)


def _not_in_linux(point: CheckPoint, takes: str) -> InvalidValue:
    return InvalidValue("check", f"kernel with {point.subject.name} of {point.subject.implementation}", takes)


_QUEUES: dict[tuple[str, str], Callable[[CheckPoint], Any]] = {
    ("packet", "pi2"): _pi2_on_packets,
    ("packet", "dualpi2"): _dualpi2_on_packets,
    ("packet", "pie"): _pie_on_packets,
    ("packet", "docsis-pie"): docsis_queue,
    ("packet", "red"): red_queue,
    ("packet", "wred"): red_queue,
    ("kernel", "pi2"): _pi2_in_kernel,
    ("kernel", "dualpi2"): _dualpi2_in_kernel,
    ("kernel", "pie"): _pie_in_kernel,
    ("kernel", "docsis-pie"): _docsis_in_kernel,
    ("kernel", "red"): _red_in_kernel,
    ("kernel", "wred"): _wred_in_kernel,
}
"""(engine, law) -> function that makes the queue."""


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
