"""RED as Linux computes it, in integers: sch_red, while its queue isn't idle.

At each arrival the average is moved towards the backlog, with w bits behind the point, and compared with thresholds,

    avg <- avg + (backlog - floor(avg 2^-w)),   a weight of 2^-w.

Between the thresholds e = floor((avg - min 2^w) 2^-w) bytes are above the lower one. A random number r is kept from
one mark to the next, uniform over 0 to floor((2^32 - 1)/m) with m = floor(P 2^32 / (max - min)), and the c-th packet
since is marked if e c >= r. So a packet's probability is p = e m/2^32, and a mark comes after 1 to 1/p packets, each
number with the same chance: **the rate of marks is 2 p/(1 + p)**, about twice p. At max and above
every packet is marked, or dropped. An idle queue's average falls by a table, which isn't here.

Sources: Linux 6.1 and 7.2, include/net/red.h and net/sched/sch_red.c; iproute2, tc/q_red.c and tc/tc_red.c; Floyd and
Jacobson, "Random early detection gateways for congestion avoidance", 1993, Section 7 (uniform distances of marks).
"""

from __future__ import annotations

from dataclasses import dataclass

from netctrl.core.errors import InvalidValue, checked_flag, checked_number
from netctrl.laws.targets.integers import checked_u32

_ONE = 2**32
_SIZE = "size in bytes"


def red_weight_log(min_bytes: int, burst: int, average_packet: int) -> int:
    """Number w of bits of the weight 2^-w that tc chooses for a burst.

    It is the smallest w from 1 on with burst + 1 - min/packet <= (1 - (1 - 2^-w)^burst) 2^w.

    Parameters
    ----------
    min_bytes : int
        Lower threshold [byte].
    burst : int
        [packet]
    average_packet : int
        tc's `avpkt` [byte].

    Raises
    ------
    InvalidValue
        A burst for which tc finds no weight.

    Examples
    --------
    >>> red_weight_log(30_000, 55, 1000)
    5
    """
    room = burst + 1.0 - min_bytes / average_packet
    for bits in range(1, 32):
        weight = 0.5**bits
        if room >= 1.0 and room <= (1.0 - (1.0 - weight) ** burst) / weight:
            return bits
    raise InvalidValue("burst", burst, f"a number of packets from {min_bytes // average_packet + 1} on, not too large")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedLaw:
    """RED with the kernel's own numbers.

    Parameters
    ----------
    min_bytes, max_bytes : int
        Thresholds of the average [byte].
    weight_log : int
        w: an arrival's weight is 2^-w.
    max_probability : int
        P at the upper threshold; 2^32 would be 1.
    limit_bytes : int
        Longest queue [byte].
    ecn : bool
        Whether packets are marked instead of dropped.
    harddrop : bool
        Whether packets are dropped, with ECN too, where the average is at the upper threshold or above.
    nodrop : bool
        Whether packets without ECN pass where those with ECN are marked.
    adaptive : bool
        Whether the kernel changes P every half second.

    Raises
    ------
    InvalidValue
        A value that the kernel doesn't take.
    """

    min_bytes: int
    max_bytes: int
    weight_log: int
    max_probability: int
    limit_bytes: int
    ecn: bool = False
    harddrop: bool = False
    nodrop: bool = False
    adaptive: bool = False

    def __post_init__(self) -> None:
        checked_u32("weight_log", self.weight_log, "bits of the weight", at_most=31)
        most = 2 ** max(31 - self.weight_log, 0) - 1
        checked_u32("min", self.min_bytes, f"{_SIZE} at {self.weight_log} bits of the weight", at_most=most)
        takes = f"{_SIZE} of at least min at {self.weight_log} bits of the weight"
        checked_u32("max", self.max_bytes, takes, at_least=self.min_bytes, at_most=most)
        checked_u32("probability", self.max_probability, "probability in 2^-32", at_least=1)
        checked_u32("limit", self.limit_bytes, _SIZE)
        for name in ("ecn", "harddrop", "nodrop", "adaptive"):
            checked_flag(name, getattr(self, name))
        if self.nodrop and not self.ecn:
            raise InvalidValue("nodrop", True, "False without ecn")

    @classmethod
    def sent(
        cls,
        *,
        limit_bytes: int,
        average_packet: int,
        min_bytes: int | None = None,
        max_bytes: int | None = None,
        burst: int | None = None,
        probability: float = 0.02,
        ecn: bool = False,
        harddrop: bool = False,
        nodrop: bool = False,
        adaptive: bool = False,
    ) -> RedLaw:
        """The law after `tc ... red` with these values.

        Parameters
        ----------
        limit_bytes, average_packet : int
            tc's `limit` and `avpkt` [byte].
        min_bytes, max_bytes : int, optional
            Thresholds [byte]; by default max is 3 min, or a quarter of the limit, and min a third of max.
        burst : int, optional
            [packet]; by default (2 min + max) / (3 avpkt).
        probability : float
            At the upper threshold.
        ecn, harddrop, nodrop, adaptive : bool

        Raises
        ------
        InvalidValue
            A value that tc or the kernel doesn't take.

        Examples
        --------
        >>> law = RedLaw.sent(limit_bytes=400_000, average_packet=1000, min_bytes=30_000, max_bytes=90_000)
        >>> law.weight_log, law.max_probability, law.step
        (5, 85899345, 1431)
        """
        checked_u32("limit", limit_bytes, _SIZE, at_least=1)
        checked_u32("avpkt", average_packet, _SIZE, at_least=1)
        low = 0 if min_bytes is None else checked_u32("min", min_bytes, _SIZE)
        high = 0 if max_bytes is None else checked_u32("max", max_bytes, _SIZE)
        high = high or (low * 3 if low else limit_bytes // 4)
        low = low or high // 3
        if high < low:
            raise InvalidValue("max", high, f"{_SIZE} of at least min, {low}")
        packets = 0 if burst is None else checked_u32("burst", burst, "number of packets")
        packets = packets or (2 * low + high) // (3 * average_packet)
        takes = "a probability above 2^-32 and below 1"
        checked_number("probability", probability, takes, at_least=2.0**-32, at_most=1.0 - 2.0**-32)
        return cls(
            min_bytes=low,
            max_bytes=high,
            weight_log=red_weight_log(low, packets, average_packet),
            max_probability=int(probability * _ONE),
            limit_bytes=limit_bytes,
            ecn=ecn,
            harddrop=harddrop,
            nodrop=nodrop,
            adaptive=adaptive,
        )

    @property
    def weight(self) -> float:
        """Weight of an arrival in the average."""
        return 0.5**self.weight_log

    @property
    def step(self) -> int:
        """m: probability for one byte above the lower threshold; 2^32 would be 1."""
        return max(self.max_probability // max(self.max_bytes - self.min_bytes, 1), 1)
