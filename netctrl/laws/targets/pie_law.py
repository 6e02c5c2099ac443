"""Parameters of Linux's PIE as the kernel holds them, from what tc sends; gains in effect, and what tc shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netctrl.core.errors import checked_flag
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.targets.integers import checked_u32, u32
from netctrl.laws.targets.jiffies import HZ, checked_hz, jiffies_of_us, longest_us, timer_period, us_of_jiffies
from netctrl.laws.targets.reading import DelayReading

PIE_ONE = 2**56 - 1
"""A probability of 1 (MAX_PROB)."""
PIE_STEP = 1.0 / 16.0
"""Steps of the gains that tc sends for `pie` [1/s]."""
PIE_MAX = 32
"""Largest gain that tc sends, in steps; the kernel takes any of 32 bits."""

_TICKS = 15_625_000  # in a second: PSCHED_TICKS_PER_SEC
_TICK_NS = 64
_FLOWS_A_ROUND = 2048  # fq_pie's timer updates at most so many of its flows at a time
_UPDATE = "time between updates in us, which is above 0 as the kernel stops them at 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PieLaw:
    """PIE with the kernel's own numbers; `PieLaw.sent` makes them from tc's. Defaults are the kernel's.

    Parameters
    ----------
    target_ticks : int
        Target of the queueing delay, in ticks of 64 ns.
    update_jiffies : int
        Time for which the timer is set, in jiffies; `update_s` is the interval in effect.
    alpha, beta : int
        Gains on the delay's error and on its change [1/16 Hz].
    limit : int
        Longest queue [packet].
    ecn : bool
        Whether packets are marked instead of dropped while the probability is at most `ecn_percent`.
    bytemode : bool
        Whether small packets have a smaller probability, in proportion to their size over the MTU.
    dq_rate_estimator : bool
        Whether the delay is the backlog over a measured rate instead of a packet's sojourn time.
    ecn_percent : int
        10 for pie; fq_pie's `ecn_prob` [%].
    flows : int
        1 for pie; number of queues of fq_pie, each of which has a state of its own.
    hz : int
        CONFIG_HZ of the kernel: 100, 250, 300 or 1000.

    Raises
    ------
    InvalidValue
        A value that the kernel doesn't take.
    """

    target_ticks: int = 15_000_000 // _TICK_NS
    update_jiffies: int = 4
    alpha: int = 2
    beta: int = 20
    limit: int = 1000
    ecn: bool = False
    bytemode: bool = False
    dq_rate_estimator: bool = False
    ecn_percent: int = 10
    flows: int = 1
    hz: int = HZ

    def __post_init__(self) -> None:
        checked_hz(self.hz)
        longest = jiffies_of_us(longest_us(self.hz), self.hz)
        most = (2**32 - 1) * 1000 // _TICK_NS
        checked_u32("target_ticks", self.target_ticks, "target in ticks of 64 ns", at_most=most)
        checked_u32("update_jiffies", self.update_jiffies, _UPDATE, at_least=1, at_most=longest)
        for name in ("alpha", "beta"):
            checked_u32(name, getattr(self, name), "gain in sixteenths of 1/s")
        checked_u32("limit", self.limit, "limit in packets")
        checked_u32("ecn_percent", self.ecn_percent, "probability in percent", at_most=100)
        checked_u32("flows", self.flows, "number of queues", at_least=1, at_most=65536)
        for name in ("ecn", "bytemode", "dq_rate_estimator"):
            checked_flag(name, getattr(self, name))

    @classmethod
    def sent(
        cls,
        *,
        target_us: int = 15_000,
        tupdate_us: int = 15_000,
        alpha: int = 2,
        beta: int = 20,
        limit: int = 1000,
        ecn: bool = False,
        bytemode: bool = False,
        dq_rate_estimator: bool = False,
        ecn_prob: int = 10,
        flows: int = 1,
        hz: int = HZ,
    ) -> PieLaw:
        """The law after tc has sent these values, in its units.

        Parameters
        ----------
        target_us, tupdate_us : int
            [us]
        alpha, beta : int
            From 0 to 32 [1/16 Hz].
        limit : int
            [packet]
        ecn, bytemode, dq_rate_estimator : bool
        ecn_prob, flows : int
            Of fq_pie; the defaults are pie's.
        hz : int
            CONFIG_HZ of the kernel.

        Raises
        ------
        InvalidValue
            A value that tc or the kernel doesn't take.

        Examples
        --------
        >>> law = PieLaw.sent(target_us=20_000, hz=1000)
        >>> law.target_ticks, law.update_jiffies, law.update_s
        (312500, 15, 0.016)
        """
        checked_hz(hz)
        checked_u32("target", target_us, "target in us")
        checked_u32("tupdate", tupdate_us, _UPDATE, at_least=1, at_most=longest_us(hz))
        checked_u32("alpha", alpha, "gain in sixteenths of 1/s", at_most=PIE_MAX)
        checked_u32("beta", beta, "gain in sixteenths of 1/s", at_most=PIE_MAX)
        return cls(
            target_ticks=target_us * 1000 // _TICK_NS,
            update_jiffies=jiffies_of_us(tupdate_us, hz),
            alpha=alpha,
            beta=beta,
            limit=limit,
            ecn=ecn,
            bytemode=bytemode,
            dq_rate_estimator=dq_rate_estimator,
            ecn_percent=ecn_prob,
            flows=flows,
            hz=hz,
        )

    @property
    def target_s(self) -> float:
        """Target of the queueing delay [s]."""
        return self.target_ticks / _TICKS

    @property
    def update_s(self) -> float:
        """Interval between two updates in effect [s].

        The timer fires one jiffy or more after the time that it is set for (`netctrl.laws.targets.jiffies`), and
        fq_pie's takes one jiffy more for each 2048 further flows.
        """
        rounds = -(-self.flows // _FLOWS_A_ROUND)
        return (timer_period(self.update_jiffies) + rounds - 1) / self.hz

    @property
    def reading(self) -> DelayReading:
        """Delay that the law reads."""
        return DelayReading.BACKLOG if self.dq_rate_estimator else DelayReading.SOJOURN

    def gains(self, probability: float) -> DelayPi:
        """Gains, target and interval in effect around a probability of PIE.

        PIE's probability is 1.85 times the share that it drops (`netctrl.laws.targets.pie.pie_drop_rate`).

        Parameters
        ----------
        probability : float
            From 0 to 1; it decides by how much the gains are divided.

        Raises
        ------
        InvalidValue
            A law without an integral gain or a target.

        Examples
        --------
        >>> gains = PieLaw.sent(hz=250).gains(0.05)
        >>> f"{gains.integral:.5f} {gains.proportional:.5f} {gains.update_s:g} {gains.target_s:g}"
        '0.06250 0.62500 0.02 0.015'
        """
        halvings = pie_halvings(probability)
        return DelayPi(
            integral=pie_gain(self.alpha, halvings),
            proportional=pie_gain(self.beta, halvings),
            update_s=self.update_s,
            target_s=self.target_s,
        )

    @property
    def shown(self) -> Mapping[str, int]:
        """Times and gains that the kernel reports and `tc -j qdisc show` prints: times in us, gains in sixteenths.

        The target loses up to 1 us in ticks, and what is above 2^32 ns. The update interval is shown in whole jiffies,
        without those that the timer adds.
        """
        target = u32(self.target_ticks * _TICK_NS) // 1000
        update = us_of_jiffies(self.update_jiffies, self.hz)
        return {"target": target, "tupdate": update, "alpha": self.alpha, "beta": self.beta}


def pie_halvings(probability: float) -> int:
    """Number of halvings of PIE's gains at a probability: one below 0.1, two more below each power of ten to 1e-6.

    Examples
    --------
    >>> [pie_halvings(p) for p in (0.1, 0.09, 0.009, 1e-7)]
    [0, 1, 3, 11]
    """
    return _halvings(round(min(max(probability, 0.0), 1.0) * PIE_ONE))


def pie_gain(steps: int, halvings: int) -> float:
    """Gain in effect in `pie` after tc has sent a number of sixteenths, with the halvings for small probabilities.

    It is at most one part in 100,000 below steps/16 times 2^-halvings.

    Examples
    --------
    >>> f"{pie_gain(2, 0):.6f}, {pie_gain(2, 1):.6f}"
    '0.125000, 0.062500'
    """
    return (_kept(steps) >> halvings) * _TICKS / PIE_ONE


def gains_in_effect(steps: int, prob: int) -> int:
    """Integer gain at a probability: change of the probability for one tick of the delay; PIE_ONE is 1."""
    return _kept(steps) >> _halvings(prob)


def _kept(steps: int) -> int:
    return (steps * (PIE_ONE // _TICKS) & 2**64 - 1) >> 4


def _halvings(prob: int) -> int:
    if prob >= PIE_ONE // 10:
        return 0
    return 1 + 2 * sum(prob < PIE_ONE // 10**power for power in range(2, 7))
