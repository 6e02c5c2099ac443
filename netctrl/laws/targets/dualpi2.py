"""DualPI2 as Linux computes it, in integers: sch_dualpi2 of Linux 6.17 and later.

Times are in nanoseconds, a probability of 1 is M = 2^32 - 1. tc sends whole multiples n of 1/256 Hz, and the kernel
keeps s(n) = floor(floor(n M / 4) / 10^9). At each update, with the delay D of the older one of the two heads,

    p' <- p' + (s(n_alpha) (D - target) + s(n_beta) (D - D_old)) / 64,

rounded towards 0, from 0 to M. So the gain in effect is s(n) 10^9 / (64 M) per second: 6.87 % below n/256 up to
n = 13, 3.42 % at 27, .73 % at 91 and at most .445 % above 200. For a query the kernel converts back and rounds down
again, floor(4 10^9 s / M), which is n - 1 for every n up to 2^31 but 8 10^8 and 1.6 10^9: tc shows 40/256 for the
default 41/256. tc itself rounds down what it is given to n/256: 0.16 is sent as 40/256.

A classic packet is marked or dropped with the square of (p' + 1)/2^32, a scalable one marked with k p', k the
coupling factor. Where k p' is above 1, packets are dropped with the square whatever they are, unless
`drop_on_overload` is off: then p' is at most 1/k. Products are of 64 bits, and p' has the lower 32 bits of the sum: a
change of 2 or more in one update, of a delay of seconds, is taken modulo 1.

Sources: Linux 7.2, net/sched/sch_dualpi2.c; iproute2 7.1, tc/q_dualpi2.c; RFC 9332.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import pack, unpack
from typing import NamedTuple

from netctrl.core.errors import InvalidValue, checked_flag, checked_number
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.targets.integers import U32, checked_u32, s64, u32
from netctrl.laws.targets.reading import DelayReading

DUALPI2_ONE = U32
"""A probability of 1 (MAX_PROB)."""
DUALPI2_STEP = 1.0 / 256.0
"""Steps of the gains that tc sends for `dualpi2` [1/s]."""
DUALPI2_MAX = 2**31 - 1
"""Largest gain that the kernel takes, in steps (ALPHA_BETA_MAX)."""

_NS = 10**9
_US_NS = 1000
_SCALING, _GRANULARITY = 4, 64  # 2^ALPHA_BETA_SCALING, 2^ALPHA_BETA_GRANULARITY
_GAIN = "gain in 1/256 Hz"


def dualpi2_kept(steps: int) -> int:
    """Integer s(n) that the kernel keeps for a gain of n steps: 64ths of the probability's change for 1 ns."""
    return steps * DUALPI2_ONE // _SCALING // _NS


def dualpi2_gain(steps: int) -> float:
    """Gain in effect in `dualpi2` after tc has sent a number of 1/256 Hz [1/s].

    Examples
    --------
    >>> f"{dualpi2_gain(12):.6f} for {12 / 256:.6f}"
    '0.043656 for 0.046875'
    """
    return _in_effect(dualpi2_kept(steps))


def dualpi2_shown(steps: int) -> int:
    """Gain that the kernel reports afterwards, which `tc qdisc show` prints as a multiple of 1/256.

    Examples
    --------
    >>> dualpi2_shown(12)
    11
    """
    return _reported(dualpi2_kept(steps))


def dualpi2_sent(gain: float) -> int:
    """Number n that tc sends for a gain in its command line: 256 times the nearest float of 32 bits, rounded down.

    Parameters
    ----------
    gain : float
        [1/s]

    Raises
    ------
    InvalidValue
        A gain that becomes 0, or is beyond what the kernel takes.

    Examples
    --------
    >>> dualpi2_sent(0.16), dualpi2_sent(3.2)
    (40, 819)
    """
    takes = f"a gain from 1/256 to {DUALPI2_MAX / 256:.9g} in 1/s"
    checked_number("gain", gain, takes, at_least=DUALPI2_STEP, at_most=DUALPI2_MAX / 256)
    return min(int(unpack("f", pack("f", gain))[0] * 256.0), DUALPI2_MAX)


def nearest_dualpi2_steps(gain: float) -> int:
    """Number n for tc whose gain in the kernel is nearest to one in 1/s; the smaller of two.

    Examples
    --------
    >>> nearest_dualpi2_steps(12 / 256), nearest_dualpi2_steps(0.16)
    (13, 41)
    """
    about = round(gain / DUALPI2_STEP)
    # The kernel's gain is below n/256 by less than one of its own steps, 0.94 of tc's.
    return min(range(max(about - 1, 0), about + 3), key=lambda steps: abs(dualpi2_gain(steps) - gain))


def _in_effect(kept: int) -> float:
    return kept * _NS / (_GRANULARITY * DUALPI2_ONE)


def _reported(kept: int) -> int:
    return _SCALING * _NS * kept // DUALPI2_ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Dualpi2Law:
    """DualPI2 with the kernel's own numbers; `Dualpi2Law.sent` makes them from tc's. Defaults are the kernel's.

    Parameters
    ----------
    target_ns : int
        Target of the queueing delay [ns].
    update_ns : int
        Interval between two updates [ns], of a timer of high resolution.
    alpha, beta : int
        Gains on the delay's error and on its change, as kept: s(n).
    coupling : int
        k, probability of a scalable packet over p'.
    drop_overload : bool
        Whether packets are dropped where k p' is above 1.
    drop_early : bool
        Whether packets are chosen as they come, instead of as they leave.
    step_threshold : int
        Above which each packet of the scalable queue is marked [ns], or [packet] where `step_in_packets`.
    step_in_packets : bool
        Whether the threshold of the step is in packets.
    min_qlen_step : int
        Length of the scalable queue from which on the step applies [packet].
    ecn_mask : int
        1: packets with ECT(1) or CE are scalable; 3: all with ECN.
    limit : int
        Longest queue [packet].

    Raises
    ------
    InvalidValue
        A value that the kernel doesn't take.
    """

    target_ns: int = 15_000_000
    update_ns: int = 16_000_000
    alpha: int = dualpi2_kept(41)
    beta: int = dualpi2_kept(819)
    coupling: int = 2
    drop_overload: bool = True
    drop_early: bool = False
    step_threshold: int = 1_000_000
    step_in_packets: bool = False
    min_qlen_step: int = 0
    ecn_mask: int = 1
    limit: int = 10_000

    def __post_init__(self) -> None:
        checked_u32("target_ns", self.target_ns, "target in ns", at_most=U32 * _US_NS)
        checked_u32("update_ns", self.update_ns, "time between updates in ns", at_least=1)
        for name in ("alpha", "beta"):
            checked_u32(name, getattr(self, name), "gain as kept", at_least=1, at_most=dualpi2_kept(DUALPI2_MAX))
        checked_u32("coupling", self.coupling, "coupling factor", at_least=1, at_most=255)
        checked_u32("step_threshold", self.step_threshold, "threshold of the step in ns or packets")
        checked_u32("min_qlen_step", self.min_qlen_step, "length of the queue in packets")
        checked_u32("ecn_mask", self.ecn_mask, "mask of ECN's code points", at_least=1, at_most=3)
        checked_u32("limit", self.limit, "limit in packets", at_least=1)
        for name in ("drop_overload", "drop_early", "step_in_packets"):
            checked_flag(name, getattr(self, name))

    @classmethod
    def sent(
        cls,
        *,
        target_us: int = 15_000,
        tupdate_us: int = 16_000,
        alpha: int = 41,
        beta: int = 819,
        coupling: int = 2,
        drop_overload: bool = True,
        drop_early: bool = False,
        step_us: int | None = None,
        step_packets: int | None = None,
        min_qlen_step: int = 0,
        ecn_mask: int = 1,
        limit: int = 10_000,
    ) -> Dualpi2Law:
        """The law after tc has sent these values.

        Parameters
        ----------
        target_us, tupdate_us : int
            [us]; the kernel shortens an update interval above 4.29 s to that.
        alpha, beta : int
            Gains in steps of 1/256 Hz; `dualpi2_sent` makes them from those of tc's command line.
        coupling, drop_overload, drop_early, min_qlen_step, ecn_mask, limit
            As in the record.
        step_us, step_packets : int, optional
            Threshold of the step in us or in packets; by default 1000 us.

        Raises
        ------
        InvalidValue
            A value that the kernel doesn't take.

        Examples
        --------
        >>> law = Dualpi2Law.sent(alpha=dualpi2_sent(0.16))
        >>> law.alpha, f"{law.gains.integral:.6f}", law.shown["alpha"]
        (42, '0.152795', 0.15234375)
        """
        checked_u32("target", target_us, "target in us")
        checked_u32("tupdate", tupdate_us, "time between updates in us", at_least=1)
        checked_u32("alpha", alpha, _GAIN, at_least=1, at_most=DUALPI2_MAX)
        checked_u32("beta", beta, _GAIN, at_least=1, at_most=DUALPI2_MAX)
        if step_us is not None and step_packets is not None:
            raise InvalidValue("step_thresh", (step_us, step_packets), "a time in us or a number of packets, not both")
        in_time = step_packets is None
        given = (1000 if step_us is None else step_us) if in_time else step_packets
        step = checked_u32("step_thresh", given, "threshold of the step in us or packets")
        return cls(
            target_ns=target_us * _US_NS,
            update_ns=min(tupdate_us * _US_NS, U32),
            alpha=dualpi2_kept(alpha),
            beta=dualpi2_kept(beta),
            coupling=coupling,
            drop_overload=drop_overload,
            drop_early=drop_early,
            step_threshold=min(step * _US_NS, U32) if in_time else step,
            step_in_packets=not in_time,
            min_qlen_step=min_qlen_step,
            ecn_mask=ecn_mask,
            limit=limit,
        )

    @property
    def gains(self) -> DelayPi:
        """Gains on the base probability p', target and interval in effect.

        The interval begins anew when the handler runs, so each one is longer by the latency of the timer's interrupt.
        """
        return DelayPi(
            integral=_in_effect(self.alpha),
            proportional=_in_effect(self.beta),
            update_s=self.update_ns / _NS,
            target_s=self.target_ns / _NS,
        )

    @property
    def reading(self) -> DelayReading:
        """Delay that the law reads."""
        return DelayReading.HEAD

    @property
    def shown(self) -> Mapping[str, float]:
        """Times and gains that the kernel reports and `tc -j qdisc show` prints: times in us, gains in 1/s."""
        return {
            "target": min(self.target_ns // _US_NS, U32),
            "tupdate": self.update_ns // _US_NS,
            "alpha": _reported(self.alpha) * DUALPI2_STEP,
            "beta": _reported(self.beta) * DUALPI2_STEP,
        }


class Dualpi2State(NamedTuple):
    """Variables of DualPI2, as the kernel has them; those of a new queue by default."""

    prob: int = 0
    """p'; DUALPI2_ONE is 1"""
    last_delay: int = 0
    """Of the update before [ns]"""


def dualpi2_step(law: Dualpi2Law, state: Dualpi2State, delay_ns: int) -> Dualpi2State:
    """State after one update at a queueing delay.

    Parameters
    ----------
    law : Dualpi2Law
    state : Dualpi2State
    delay_ns : int
        How long the older one of the two heads has waited; 0 with empty queues [ns].
    """
    change = s64((delay_ns - law.target_ns) * law.alpha)
    change = s64(change + (delay_ns - state.last_delay) * law.beta)
    if change > 0:
        prob = u32(state.prob + change // _GRANULARITY)
        prob = DUALPI2_ONE if prob < state.prob else prob
    else:
        prob = u32(state.prob - -change // _GRANULARITY)
        prob = 0 if prob > state.prob else prob
    if not law.drop_overload:
        prob = min(prob, DUALPI2_ONE // law.coupling)
    return Dualpi2State(prob, delay_ns)
