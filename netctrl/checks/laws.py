"""Law of a certificate in each model of its checks: in the fluid, on packets, in the kernel.

A check has to run the law with the certificate's own arithmetic, else it judges another law. So each model refuses what
it would compute differently, and names who has it: packets of netctrl's engine have Linux's pie with the delay of the
packet that left last, and RFC 8033's with the backlog's; the kernel has what Linux has, at its own CONFIG_HZ.
"""

from __future__ import annotations

from typing import Any

from netctrl.certificates.codel import CodelSubject
from netctrl.certificates.pi_laws import linux_dualpi2, linux_pie
from netctrl.certificates.red import RedSubject
from netctrl.checks.point import CheckPoint
from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RED, RedQueue
from netctrl.laws.disciplines import CakeQueue, KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.docsis_pie import DOCSIS_PIE, DocsisPieQueue
from netctrl.laws.targets.pie_packets import tupdate_for
from netctrl.laws.targets.reading import DelayReading
from netctrl.sim.fluid.certified.laws import (
    FluidLaw,
    fluid_docsis_pie,
    fluid_linux_dualpi2,
    fluid_linux_pie,
    fluid_pi2,
    fluid_red,
    fluid_rfc_pie,
)
from netctrl.sim.fluid.certified.run import FluidClass, FluidQueue, longest_delay

KERNEL_HZ = 1000
"""CONFIG_HZ of the kernel engine."""
_LIMIT_PACKETS = 100_000
_MODEM_S, _MODEM_TARGETS = 0.1, 10.0
_ADAPTS_S = 0.5
"""Time from one step of adaptive RED to the next."""


def buffer_bytes(point: CheckPoint) -> float:
    """Buffer of a check: RED's own limit; of a modem 100 ms at the link's rate (MULPIv3.1, C.1.2.17), or 10 targets if
    that is longer; else a second, or 20 targets [byte]."""
    if "limit_bytes" in point.subject.parameters:
        return float(point.subject.parameters["limit_bytes"])
    long = longest_delay(point.target_s)
    if point.subject.name == "docsis-pie":
        long = max(_MODEM_S, _MODEM_TARGETS * point.target_s)
    return point.loop.rate * long * point.packet_bytes


def queue_of(point: CheckPoint, engine: str) -> Any:
    """The law of a certificate as a queue for "packet" or "kernel".

    Raises
    ------
    InvalidValue
        A law that the engine has not with the certificate's arithmetic.
    """
    return _on_packets(point) if engine == "packet" else _in_kernel(point)


def _on_packets(point: CheckPoint) -> Any:
    subject = point.subject
    if isinstance(subject, RedSubject):
        return red_queue(subject)
    if isinstance(subject, CodelSubject):
        if subject.codel.cobalt:
            return CakeQueue(target=subject.codel.target, rtt=subject.codel.interval)
        return CodelQueue(target=subject.codel.target, interval=subject.codel.interval)
    if subject.name == "docsis-pie":
        return _docsis(point)
    gains = subject.sampled
    settings: dict[str, Any] = {"target": gains.target_s, "update": gains.update_s}
    settings |= {"alpha": gains.integral, "beta": gains.proportional}
    if subject.name == "pi2":
        return Pi2Queue(**settings, coupling=float(subject.coupling))
    if subject.name == "dualpi2":
        if not subject.marked_leaving:
            raise InvalidValue("check", "packet with drop_early", "the kernel, or dualpi2 without --drop-early")
        return DualPi2Queue(**settings, coupling=float(subject.coupling))
    linux = subject.parameters["implementation"] == "linux"
    if linux == (subject.reading is DelayReading.BACKLOG):
        takes = "the delay of the packet that left last of Linux's pie, and the backlog's of RFC 8033's"
        flag = "without" if linux else "with"
        raise InvalidValue("check", f"packet with {subject.implementation}", f"{takes}: {flag} --dq-rate-estimator")
    if not linux:
        return PieQueue(**settings)
    sent = {**_linux_pie(dict(subject.parameters)), "tupdate": tupdate_for(subject.sampled.update_s)}
    return KernelQueue(discipline="pie", parameters=sent)


def _in_kernel(point: CheckPoint) -> KernelQueue:
    subject = point.subject
    given: dict[str, Any] = dict(subject.parameters)
    takes = ""
    match subject.name:
        case "pi2":
            takes = "a law of Linux: pie, dualpi2 or red"
        case "docsis-pie":
            takes = "fluid or packet: Linux has no DOCSIS-PIE, and its pie has other gains (`netctrl certify pie`)"
        case "wred":
            takes = "fluid or packet: Linux has no WRED of switches; its gred and red space their marks "
            takes += "(`netctrl certify red`)"
        case "pie" if given["implementation"] == "rfc":
            takes = "a law of Linux: pie without --rfc, dualpi2 or red"
    if takes:
        raise InvalidValue("check", f"kernel with {subject.name} of {subject.implementation}", takes)
    if subject.name == "pie":
        if given["hz"] != KERNEL_HZ:
            takes = f"--hz {KERNEL_HZ}, which the engine's kernel has"
            raise InvalidValue("check", f"kernel with --hz {given['hz']}", takes)
        return KernelQueue(discipline="pie", parameters=_linux_pie(given))
    if subject.name == "dualpi2":
        own = {"alpha": given["alpha"], "beta": given["beta"], "coupling_factor": given["coupling"]}
        own |= {"step_thresh": given["step_s"], "drop_enqueue": float(given["drop_early"])}
        return KernelQueue(discipline="dualpi2", parameters=_times(given) | own)
    if given["gentle"]:
        raise InvalidValue("check", "kernel with --gentle", "red without --gentle: Linux's red has no gentle variant")
    if not given["ecn"] and any(k.sender.name == "dctcp" for k in point.loop.classes):
        raise InvalidValue("check", "kernel with dctcp and no ecn", "--ecn: dctcp's answer is to marks, not to drops")
    own = {"limit": given["limit_bytes"], "min": given["min_bytes"], "max": given["max_bytes"]}
    own |= {"probability": given["probability"], "weight_log": given["weight_log"]}
    own["bandwidth"] = point.loop.rate * point.packet_bytes * BITS_PER_BYTE
    own |= {"ecn": float(given["ecn"]), "adaptive": float(given["adaptive"])}
    return KernelQueue(discipline="red", parameters=own)


def _times(given: dict[str, Any]) -> dict[str, float]:
    return {"target": given["target_s"], "tupdate": given["tupdate_s"], "limit": _LIMIT_PACKETS}


def _linux_pie(given: dict[str, Any]) -> dict[str, float]:
    """Parameters of Linux's pie by tc's names."""
    own = {"alpha": round(16.0 * given["alpha"]), "beta": round(16.0 * given["beta"])}
    return _times(given) | own | {flag: 1.0 for flag in ("dq_rate_estimator", "ecn") if given[flag]}


def _docsis(point: CheckPoint) -> DocsisPieQueue:
    given: dict[str, Any] = dict(point.subject.parameters)
    return DocsisPieQueue(
        latency_target=given["target_s"], interval=given["tupdate_s"], alpha=given["alpha"], beta=given["beta"]
    )


def red_queue(subject: RedSubject) -> RedQueue:
    """RED or WRED of a certificate, in real numbers; of Linux with the slope that its integers have."""
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
    law = _in_fluid(point)
    buffer_s = buffer_bytes(point) / point.packet_bytes / point.loop.rate
    output = float(point.loop.law.computed(point.output))
    return FluidQueue(classes, point.loop.rate, point.packet_bytes, law, output, point.period_s, buffer_s)


def _in_fluid(point: CheckPoint) -> FluidLaw:
    subject, size, room = point.subject, point.packet_bytes, buffer_bytes(point)
    given: dict[str, Any] = dict(subject.parameters)
    if isinstance(subject, RedSubject):
        queue = red_queue(subject)
        update = _ADAPTS_S if queue.adaptive else point.period_s
        return fluid_red(RED.read(queue, size, room), point.target_s, update)
    if subject.name == "docsis-pie":
        return fluid_docsis_pie(DOCSIS_PIE.read(_docsis(point), size, room), given["tupdate_s"])
    if subject.name == "dualpi2":
        return fluid_linux_dualpi2(linux_dualpi2(**given))
    target, update, alpha, beta = (given[key] for key in ("target_s", "tupdate_s", "alpha", "beta"))
    if subject.name == "pi2":
        return fluid_pi2(target, update, alpha, beta, given["coupling"])
    if given.pop("implementation") == "linux":
        given.pop("ecn")  # the fluid has one answer for marks and drops
        return fluid_linux_pie(linux_pie(**given))
    reading = DelayReading.BACKLOG if given["dq_rate_estimator"] else DelayReading.SOJOURN
    return fluid_rfc_pie(PieQueue(target=target, update=update, alpha=alpha, beta=beta), reading)
