"""Laws of queues that Linux has itself, as arguments of tc(8): PIE, DualPI2, RED, CoDel and CAKE in their steps.

A step threshold is RED with equal thresholds, or the thresholds of CoDel and DualPI2.

- **red** with min = max marks where the average is at the threshold or above. tc takes no weight of an arrival above
  1/2, so the average lags behind the queue by a packet or two. Packets without ECN are dropped there.
- **codel**'s `ce_threshold` marks by the packet's own wait. A target beyond any wait keeps CoDel's own law off. Packets
  without ECN pass.
- **dualpi2**'s `step_thresh` marks by the wait, too, in the queue for scalable flows; `any_ect` lets DCTCP's in, which
  Linux sends as ECT(0). Its PI law couples marks from the other queue: p' stays 0 with no flows there as long as
  alpha (target - D) >= beta (D - D_old), so with the default gains, beta = 20 alpha, while delays are below target/21.

`fq_codel`'s threshold is one for each flow's own queue, and `fq`'s counts from when a packet was to be paced: both are
other laws.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isclose
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue, any_of, checked_number
from netctrl.core.units import MICROSECOND, NANOSECOND, packets_per_second
from netctrl.laws.disciplines import CakeQueue
from netctrl.laws.targets.dualpi2 import dualpi2_sent, dualpi2_shown
from netctrl.laws.targets.integers import U32, checked_u32
from netctrl.laws.targets.pie_law import PIE_STEP
from netctrl.laws.targets.step import CODEL_UNIT_NS, STEP_LIMIT, STEP_OFF_S, codel_threshold_us, codel_units, step_law
from netctrl.linux.export.shaper import QuantizedValue, TcExport, batch
from netctrl.model.law import QueueLaw

_USUAL = {"target_s": 0.015, "tupdate_s": 0.015, "step_s": 0.001, "coupling": 2}


STEP_QUEUES = ("red", "codel", "dualpi2")
"""Queues of Linux that have a step."""
_DUALPI2_TARGET_S = 0.015
_DUALPI2_ROOM = 21.0
"""1 + beta/alpha of dualpi2's default gains."""
_RED_MOST = 2**30 - 1
"""Largest threshold that the kernel takes at a weight of 1/2 [byte]."""
_LONGEST_S = {"codel": 2**31 * CODEL_UNIT_NS * NANOSECOND / STEP_LIMIT, "dualpi2": U32 * NANOSECOND}
"""Longest threshold: CoDel compares its target as a signed number of 32 bits, DualPI2 keeps the step in ns [s]."""
_CODEL_LIMIT, _DUALPI2_LIMIT = 1000, 10_000
"""Longest queues by default [packet]."""
_NOTES = {
    "red": (
        "tc's RED averages with a weight of 1/2, which delays marks by a packet or two",
        "packets without ECN are dropped above the threshold, as switches do; `nodrop` at the end of the line lets "
        "them pass",
    ),
    "codel": ("packets without ECN pass: only the limit drops them",),
    "dualpi2": (
        "any_ect lets DCTCP's packets into the queue with the step; Prague's need no any_ect",
        "with classic flows beside them scalable flows get more marks than the threshold's",
    ),
}
_COMMON = (
    "the queue is where the threshold's capacity is: below a shaper, or at the interface's own rate",
    "the queue counts the Ethernet header: --packet-size 1514 stands for packets of 1500 bytes. What GSO or GRO joined "
    "counts as one packet",
)


def tc_arguments(name: str, parameters: Mapping[str, Any], bandwidth_bit_per_s: float | None = None) -> tuple[str, ...]:
    """Arguments of tc(8) after `tc qdisc replace dev DEV root`.

    Parameters
    ----------
    name, parameters
        Of a `QueueLaw`.
    bandwidth_bit_per_s : float, optional
        Rate of the link, by which `red` ages the average of an idle queue, of which `cake` is the shaper, and by which
        fq_codel's quantum is CAKE's [bit/s].

    Raises
    ------
    InvalidValue
        A law without a qdisc, or PIE in the real numbers of RFC 8033.
    """
    given = {**_USUAL, **parameters}
    if name == "pie" and given.get("implementation", "linux") == "linux":
        steps = (f"{round(given[gain] / PIE_STEP)}" for gain in ("alpha", "beta"))
        alpha, beta = steps
        more = ("dq_rate_estimator",) if given.get("dq_rate_estimator") else ()
        marks = "ecn" if given.get("ecn") else "noecn"
        return ("pie", *_times(given), "alpha", alpha, "beta", beta, marks, *more)
    if name == "dualpi2":
        gains = ("alpha", f"{given['alpha']:.12g}", "beta", f"{given['beta']:.12g}")
        drop = "drop_enqueue" if given.get("drop_early") else "drop_dequeue"
        step = ("step_thresh", _time(given["step_s"]))
        return ("dualpi2", *_times(given), *gains, "coupling_factor", str(given["coupling"]), *step, drop)
    if name == "red" and not given.get("gentle") and "burst" in given:
        sizes = [text for key in ("limit", "min", "max") for text in (key, str(given[f"{key}_bytes"]))]
        average = ("avpkt", str(given["average_packet"]), "burst", str(given["burst"]))
        rate = () if bandwidth_bit_per_s is None else ("bandwidth", f"{bandwidth_bit_per_s:.0f}bit")
        flags = [flag for flag in ("ecn", "adaptive") if given.get(flag)]
        return ("red", *sizes, *average, "probability", f"{given['probability']:.10g}", *rate, *flags)
    if name in ("codel", "fq_codel"):
        more = (
            ("quantum", f"{CakeQueue(bandwidth=bandwidth_bit_per_s).quantum:.0f}")
            if name == "fq_codel" and bandwidth_bit_per_s
            else ()
        )
        marks = ("ecn",) if given.get("ecn") else ()
        return (name, "target", _time(given["target_s"]), "interval", _time(given["interval_s"]), *more, *marks)
    if name == "cake" and isclose(20.0 * given.get("target_s", given["rtt_s"] / 20.0), given["rtt_s"], rel_tol=1e-3):
        shaped = () if bandwidth_bit_per_s is None else ("bandwidth", f"{bandwidth_bit_per_s:.0f}bit")
        return ("cake", *shaped, "rtt", _time(given["rtt_s"]))
    takes = "a law of Linux: pie in sixteenths of 1/s, dualpi2, red, codel, fq_codel, or cake with a target of rtt/20"
    raise InvalidValue("law", name, takes)


def queue_on_linux(law: QueueLaw, interface: str, bandwidth_bit_per_s: float | None = None) -> TcExport:
    """Batch file that makes a law the queue of an interface.

    Parameters
    ----------
    law : QueueLaw
    interface : str
    bandwidth_bit_per_s : float, optional
        Rate of the link [bit/s], for RED.

    Raises
    ------
    InvalidValue
        An invalid name, or a law without a qdisc.
    """
    arguments = tc_arguments(law.name, law.parameters, bandwidth_bit_per_s)
    line = ("qdisc", "replace", "dev", interface, "root", *arguments)
    notes = ["the queue is where the certificate's capacity is: below a shaper, or at the interface's own rate"]
    if law.name == "dualpi2":
        shown = (
            f"{name} {dualpi2_shown(dualpi2_sent(float(law.parameters[name]))) / 256.0:f}" for name in ("alpha", "beta")
        )
        notes.append(f"tc shows {' and '.join(shown)} afterwards: the kernel rounds down when it stores and reports")
    return TcExport({"queue.tc": batch((line,), f"{law.name}, certified by netctrl")}, (), tuple(notes))


def _times(given: Mapping[str, Any]) -> tuple[str, ...]:
    return ("target", _time(given["target_s"]), "tupdate", _time(given["tupdate_s"]))


def _time(seconds: float) -> str:
    micro = round(seconds * 1e6)
    return f"{micro // 1000}ms" if micro % 1000 == 0 else f"{micro}us"


class StepQueue(NamedTuple):
    """Link whose queue marks above a threshold."""

    packet_bytes: float
    """As the queue counts it [byte]."""
    rate_bit_per_s: float
    """Rate of the link, of a range the greatest [bit/s]."""
    kind: str | None = None
    """One of `STEP_QUEUES`; None: red for a threshold in bytes, codel for one in time."""


def step_arguments(law: QueueLaw, queue: StepQueue) -> tuple[str, ...]:
    """Arguments of tc(8) after `tc qdisc replace dev DEV root`.

    Parameters
    ----------
    law : QueueLaw
        Of "dctcp", with a threshold in bytes or in time.
    queue : StepQueue

    Raises
    ------
    InvalidValue
        A threshold in a unit that the queue doesn't have or larger than it takes, or an unknown queue.
    """
    kind = _kind(law, queue)
    if kind == "red":
        step = step_law(law.parameters, "bytes")
        least = checked_u32("law", step.marked_from, "threshold of red in bytes", at_most=_RED_MOST)
        packet = ceil(queue.packet_bytes) + 1
        average = ("avpkt", str(packet), "burst", str(ceil(least / packet)))  # the weight is 1/2, its greatest
        sizes = ("limit", str(min(step.limit, U32)), "min", str(least), "max", str(least))
        return ("red", *sizes, *average, "bandwidth", f"{queue.rate_bit_per_s:.0f}bit", "ecn")
    seconds = step_law(law.parameters, "time").threshold
    most = _LONGEST_S[kind]
    checked_number("law", seconds, f"a threshold of at most {most:.4g} s, so that {kind}'s times fit", at_most=most)
    longest = ceil(STEP_LIMIT * seconds * packets_per_second(queue.rate_bit_per_s, queue.packet_bytes))
    if kind == "codel":
        off = _micro(max(STEP_OFF_S, STEP_LIMIT * seconds))
        own = ("target", off, "interval", off, "ce_threshold", f"{codel_threshold_us(seconds)}us")
        return ("codel", "limit", str(min(max(_CODEL_LIMIT, longest), U32)), *own)
    target = _micro(max(_DUALPI2_TARGET_S, _DUALPI2_ROOM * STEP_LIMIT * seconds))
    return (
        *("dualpi2", "limit", str(min(max(_DUALPI2_LIMIT, longest), U32)), "target", target),
        *("step_thresh", _micro(seconds), "any_ect"),
    )


def step_on_linux(law: QueueLaw, interface: str, queue: StepQueue) -> TcExport:
    """Batch file that makes a step threshold the queue of an interface.

    Parameters
    ----------
    law : QueueLaw
        Of "dctcp", with a threshold in bytes or in time.
    interface : str
    queue : StepQueue

    Raises
    ------
    InvalidValue
        An invalid name, a threshold in a unit that the queue doesn't have, or an unknown queue.
    """
    kind, arguments = _kind(law, queue), step_arguments(law, queue)
    if kind == "red":
        step = step_law(law.parameters, "bytes")
        what, requested, kept, unit = "smallest backlog that is marked", step.threshold + 1.0, step.marked_from, "B"
    else:
        what, unit, requested = "threshold of the wait", "s", step_law(law.parameters, "time").threshold
        kept = codel_units(requested) * CODEL_UNIT_NS * NANOSECOND if kind == "codel" else requested
    figure = QuantizedValue(what, requested, kept, unit)
    text = batch((("qdisc", "replace", "dev", interface, "root", *arguments),), "step threshold, designed by netctrl")
    return TcExport({"queue.tc": text}, (figure,), (*_NOTES[kind], *_COMMON))


def _kind(law: QueueLaw, queue: StepQueue) -> str:
    if queue.kind is None:
        return "codel" if "k_s" in law.parameters else "red"
    if queue.kind not in STEP_QUEUES:
        raise InvalidValue("implementation", queue.kind, any_of(STEP_QUEUES, queue.kind))
    return queue.kind


def _micro(seconds: float) -> str:
    return f"{ceil(round(seconds / MICROSECOND, 6))}us"
