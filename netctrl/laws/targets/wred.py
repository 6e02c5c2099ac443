"""WRED of switches: the probability by which a packet of a colour is marked or dropped, over the queue's length.

    p(q) = 0 below min,   P (q - min)/(max - min) from min to max,   1 above max.

The queue is an average, avg <- avg + 2^-n (queue - avg) at each arrival: with n = 0, which SONiC sets, the present one.
Switches and routers don't publish their arithmetic; the law here is the one of the interface, in exact numbers, and
packets are chosen independently.

Sources: SAI, inc/saiwred.h; SONiC, sonic-wred-profile.yang and orchagent/qosorch.cpp; OpenConfig,
openconfig-qos-mem-mgmt.yang; Cisco IOS Quality of Service Solutions Command Reference, random-detect (the fraction of
packets dropped at the upper threshold, and the weight 2^-n).
"""

from __future__ import annotations

from dataclasses import dataclass

from netctrl.core.errors import InvalidValue, checked_flag, checked_number, checked_whole

_BYTES = "a whole number of bytes from 0 to 2^53"


@dataclass(frozen=True, slots=True, kw_only=True)
class WredLaw:
    """WRED of one colour.

    Parameters
    ----------
    min_bytes, max_bytes : int
        Thresholds of the queue [byte].
    max_percent : float
        P, probability at `max_bytes` [%].
    ecn : bool
        Whether packets are marked instead of dropped.
    weight_log : int
        n: an arrival's weight in the average is 2^-n.

    Raises
    ------
    InvalidValue
        A value outside these bounds.
    """

    min_bytes: int
    max_bytes: int
    max_percent: float = 100
    ecn: bool = False
    weight_log: int = 0

    def __post_init__(self) -> None:
        checked_whole("min_threshold", self.min_bytes, _BYTES)
        checked_whole("max_threshold", self.max_bytes, _BYTES)
        if self.max_bytes < self.min_bytes:
            raise InvalidValue("max_threshold", self.max_bytes, f"at least min_threshold, {self.min_bytes} bytes")
        checked_number(
            "probability", self.max_percent, "a number of percent from 0 to 100", at_least=0.0, at_most=100.0
        )
        checked_flag("ecn", self.ecn)
        checked_whole("weight", self.weight_log, "a whole number n from 0 to 31, for a weight of 2^-n", at_most=31)

    @property
    def slope(self) -> float:
        """Rise of the probability between the thresholds [1/byte]; infinity where they are the same.

        Examples
        --------
        >>> f"{WredLaw(min_bytes=1_000_000, max_bytes=2_000_000, max_percent=5).slope:g}"
        '5e-08'
        """
        width = self.max_bytes - self.min_bytes
        return self.max_percent / 100.0 / width if width else float("inf")

    def probability(self, backlog_bytes: float) -> float:
        """Probability of marking or dropping a packet at a length of the queue.

        Parameters
        ----------
        backlog_bytes : float
            Length of the queue [byte].

        Raises
        ------
        InvalidValue
            A length below 0.
        """
        takes = "a number of bytes of at least 0"
        backlog = checked_number("backlog_bytes", backlog_bytes, takes, at_least=0.0)
        if backlog > self.max_bytes:
            return 1.0
        if backlog < self.min_bytes:
            return 0.0
        width = self.max_bytes - self.min_bytes
        return self.max_percent / 100.0 * ((backlog - self.min_bytes) / width if width else 1.0)
