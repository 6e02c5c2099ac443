"""ARC on the kernel's `pie` or `dualpi2`: the same PI law on a standing queue, with gains in their steps.

With a standing queue, the arrivals of an epoch are its departures, d C, plus the queue's growth. So ARC's step is
p ← p + alpha (q − q_old) + gamma alpha (q − q_ref) with q_ref = q0 − d C (1 − gamma)/gamma: a PI on the queue, or with
D = q/C on its delay. Both qdiscs run a PI on the delay. Where ARC keeps the queue empty they have no signal.

tc(8) sends whole steps: of 1/16 Hz, up to 32 of them, to `pie`, which divides them by up to 2048 while p is small; of
1/256 Hz to `dualpi2`, which marks with the square of its probability. The kernel rounds once more, and the laws here
are those that it runs, by `netctrl.laws.targets` (iproute2, tc/q_pie.c, q_dualpi2.c; RFC 8033, RFC 9332).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, sqrt
from typing import NamedTuple

from netctrl.core.errors import NoAdmissibleDesign
from netctrl.core.units import packets_per_second
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.targets.dualpi2 import DUALPI2_STEP, dualpi2_gain, dualpi2_shown, nearest_dualpi2_steps
from netctrl.laws.targets.pie import PIE_SPREAD
from netctrl.laws.targets.pie_law import PIE_MAX, PIE_STEP, PieLaw, pie_gain, pie_halvings
from netctrl.linux.export.shaper import QuantizedValue, nearest
from netctrl.model.law import ArcLaw

_MICRO = 1e-6
_DUALPI2_MAX = 2**24 - 1  # tc reads 24 bits without rounding
_DUALPI2_LONGEST_S = 4.294967  # the kernel keeps tupdate in 32 bits of nanoseconds, and truncates longer ones
_TICK_S = 0.02  # a whole number of jiffies at 100, 250, 300 and 1000 Hz
_PIE_MARKS_UP_TO = 0.1  # beyond this probability pie drops packets with ECN too
_PIE_PANIC_S = 0.25
_TIME_BOUND = 0.01


class Pie(NamedTuple):
    """Parameters of `tc ... pie`."""

    target_us: int
    update_us: int
    alpha: int
    """[1/16 Hz]"""
    beta: int
    """[1/16 Hz]"""
    figures: tuple[QuantizedValue, ...]

    def law(self, probability: float) -> DelayPi:
        """PI law around a marking probability."""
        halvings = pie_halvings(probability)
        return _delay_pi(self, pie_gain(self.alpha, halvings), pie_gain(self.beta, halvings))

    def tokens(self, limit: int) -> tuple[str, ...]:
        """Arguments for tc; the limit in packets."""
        return ("pie", *_tokens(self, limit, str), "ecn", "nobytemode")

    @property
    def shown(self) -> str:
        """Note on the gains that `tc qdisc show` prints, and on what the kernel's arithmetic adds to the law here."""
        sent = (PieLaw.sent(target_us=self.target_us, tupdate_us=self.update_us, hz=hz) for hz in (1000, 250))
        fast, usual = (1e3 * law.update_s for law in sent)
        return (
            f"tc shows alpha {self.alpha} and beta {self.beta}, in sixteenths of 1/s, as sent; margins leave out that "
            f"the kernel's timer updates each {usual:g} ms at 250 Hz ({fast:g} ms at 1000 Hz) and that it chooses "
            f"1/{PIE_SPREAD:.2f} of the packets that its probability says"
        )


class Dualpi2(NamedTuple):
    """Parameters of `tc ... dualpi2`."""

    target_us: int
    update_us: int
    alpha: int
    """As tc sends it [1/256 Hz]; the kernel runs `dualpi2_gain` of it."""
    beta: int
    """The same."""
    figures: tuple[QuantizedValue, ...]

    def law(self, probability: float) -> DelayPi:
        """PI law around a marking probability p = p'², δp = 2 √p δp'."""
        slope = _slope(probability)
        return _delay_pi(self, dualpi2_gain(self.alpha) * slope, dualpi2_gain(self.beta) * slope)

    def tokens(self, limit: int) -> tuple[str, ...]:
        """Arguments for tc; the limit in packets. Packets with ECT(0) go to the queue marked by the PI law."""
        return ("dualpi2", *_tokens(self, limit, _dyadic), "l4s_ect", "split_gso")

    @property
    def shown(self) -> str:
        """Note on the gains that `tc qdisc show` prints, those sent, and those in effect."""
        said = (
            f"{name} {dualpi2_shown(steps) * DUALPI2_STEP:f} where tc sent {steps * DUALPI2_STEP:.6f} and "
            f"{dualpi2_gain(steps):.6f} 1/s is in effect"
            for name, steps in (("alpha", self.alpha), ("beta", self.beta))
        )
        return (
            f"tc shows {', '.join(said)}: the kernel rounds a gain down when it stores it, and again when it reports it"
        )


def _delay_pi(law: Pie | Dualpi2, integral: float, proportional: float) -> DelayPi:
    update, target = law.update_us * _MICRO, law.target_us * _MICRO
    return DelayPi(integral=integral, proportional=proportional, update_s=update, target_s=target)


def _tokens(law: Pie | Dualpi2, limit: int, gain: Callable[[int], str]) -> tuple[str, ...]:
    times = ("target", f"{law.target_us}us", "tupdate", f"{law.update_us}us")
    return ("limit", str(limit), *times, "alpha", gain(law.alpha), "beta", gain(law.beta))


def pie_range(probability: float) -> tuple[float, float]:
    """Range of probabilities around one in which pie's gains are the same."""
    bounds = (0.0, *(10.0**-power for power in range(6, 0, -1)), 1.0)
    above = next(place for place, bound in enumerate(bounds) if probability < bound or bound == 1.0)
    return bounds[above - 1], bounds[above]


def arc_on_delay(law: ArcLaw) -> DelayPi:
    """ARC with a standing queue, exactly: integral gamma alpha C, proportional alpha C, target q_ref/C.

    Raises
    ------
    NoAdmissibleDesign
        The law's equilibrium has no standing queue, so a law on the delay can't replace it.
    """
    capacity = packets_per_second(law.capacity_bit_per_s, law.packet_size_bytes)
    gamma, served = law.target_utilization, law.epoch_s * capacity
    standing = law.target_queue_packets - served * (1.0 - gamma) / gamma
    if standing <= 0.0:
        least = served * (1.0 - gamma) / gamma
        remedy = f"a target queue above {least:.4g} packets" if least > 0.0 else "a target queue above 0"
        raise NoAdmissibleDesign(
            f"pie and dualpi2 see only the queue's delay, and this Design keeps the queue empty (utilization "
            f"{gamma:g}, target queue {law.target_queue_packets:g} packets): use --implementation ebpf, or a Design "
            f"with "
            f"{remedy}"
        )
    return DelayPi(
        integral=gamma * law.alpha_per_packet * capacity,
        proportional=law.alpha_per_packet * capacity,
        update_s=law.epoch_s,
        target_s=standing / capacity,
    )


def nearest_pie(law: DelayPi, probability: float) -> Pie:
    """Nearest pie parameters around a marking probability; margins judge the gains, instead of a bound.

    beta is rounded. Then alpha and the update interval, at most the law's own, are chosen so that the integral over
    time is nearest to the law's.

    Raises
    ------
    NoAdmissibleDesign
        Gains below half a step or beyond 32 of them, or a probability at which pie drops instead of marking.
    """
    if law.target_s > _PIE_PANIC_S:
        raise NoAdmissibleDesign(
            f"pie adds 2 % to its probability at each update above a delay of 0.25 s, and the Design's queue is "
            f"{law.target_s:.3g} s: use --implementation ebpf or dualpi2, or a Design with a smaller target queue"
        )
    if probability > _PIE_MARKS_UP_TO:
        raise NoAdmissibleDesign(
            f"pie drops packets instead of marking them above a probability of 0.1, and the Design rests at "
            f"{probability:.3g}: use --implementation ebpf or dualpi2, or a Design for fewer flows or a longer RTT"
        )
    halvings = pie_halvings(probability)
    step = PIE_STEP * 0.5**halvings
    beta = _sent("pie", "beta", law.proportional, round(law.proportional / step), step, PIE_MAX)
    longest = max(1, int(law.update_s / _TICK_S + 1e-9))
    off, alpha, ticks = inf, 0, 0
    for n in range(longest, 0, -1):
        desired = law.integral * n * _TICK_S / law.update_s / step
        steps = min(max(round(desired), 1), PIE_MAX)
        if abs(log(steps / desired)) < off * (1.0 - 1e-9):
            off, alpha, ticks = abs(log(steps / desired)), steps, n
    if off > log(2.0):
        raise _no_gain("pie", "alpha", law.integral, step, PIE_MAX)
    update_us = round(ticks * _TICK_S / _MICRO)
    target_us, target = _target(law)
    rate = law.integral / law.update_s
    figures = (
        target,
        QuantizedValue("tupdate", law.update_s, update_us * _MICRO, "s"),
        QuantizedValue("alpha over tupdate", rate, pie_gain(alpha, halvings) / (update_us * _MICRO), "1/s²"),
        QuantizedValue("beta", law.proportional, pie_gain(beta, halvings), "1/s"),
    )
    return Pie(target_us, update_us, alpha, beta, figures)


def nearest_dualpi2(law: DelayPi, probability: float) -> Dualpi2:
    """Nearest dualpi2 parameters around a marking probability, as the kernel runs them; margins judge the gains.

    Raises
    ------
    NoAdmissibleDesign
        Gains below half a step or beyond tc's range, a probability beyond 0.25, where dualpi2 drops, or an update
        interval above 4.29 s, which the kernel would truncate.
    """
    if probability > 0.25:
        raise NoAdmissibleDesign(
            f"dualpi2 drops packets above a probability of 0.25 (coupling factor 2), and the Design rests at "
            f"{probability:.3g}: use --implementation ebpf, or a Design for fewer flows or a longer round trip"
        )
    if law.update_s > _DUALPI2_LONGEST_S:
        raise NoAdmissibleDesign(
            f"dualpi2 updates at least every {_DUALPI2_LONGEST_S} s, and the Design's epoch is {law.update_s:.4g} s: "
            "use --implementation ebpf, or a Design with a shorter epoch"
        )
    slope = _slope(probability)
    alpha, beta = (
        _sent("dualpi2", what, requested, nearest_dualpi2_steps(requested / slope), slope * DUALPI2_STEP, _DUALPI2_MAX)
        for what, requested in (("alpha", law.integral), ("beta", law.proportional))
    )
    target_us, target = _target(law)
    update_us, update = nearest("tupdate", law.update_s, step=_MICRO, unit="s", bound=_TIME_BOUND)
    figures = (
        target,
        update,
        QuantizedValue("alpha", law.integral, dualpi2_gain(alpha) * slope, "1/s"),
        QuantizedValue("beta", law.proportional, dualpi2_gain(beta) * slope, "1/s"),
    )
    return Dualpi2(target_us, update_us, alpha, beta, figures)


def _target(law: DelayPi) -> tuple[int, QuantizedValue]:
    return nearest("target", law.target_s, step=_MICRO, unit="s", bound=_TIME_BOUND)


def _slope(probability: float) -> float:
    """Slope of p = p'² at a probability p, by which dualpi2's changes of p' act on p."""
    return 2.0 * sqrt(probability)


def _sent(kind: str, what: str, requested: float, steps: int, step: float, most: int) -> int:
    """Number of steps for tc; raises NoAdmissibleDesign where tc can't send it."""
    if not 1 <= steps <= most:
        raise _no_gain(kind, what, requested, step, most)
    return steps


def _no_gain(kind: str, what: str, requested: float, step: float, most: int) -> NoAdmissibleDesign:
    return NoAdmissibleDesign(
        f"{kind} has no {what} near {requested:.4g} 1/s: around the Design's marking probability its steps are "
        f"{step:.4g} 1/s, up to {most} steps; use --implementation ebpf, whose gain is not quantized"
    )


def _dyadic(steps: int) -> str:
    return f"{steps / 256:.8f}".rstrip("0").rstrip(".")
