"""Readings of the queueing delay: what a law takes for it when it acts, and how old that is."""

from __future__ import annotations

from enum import StrEnum


class DelayReading(StrEnum):
    """Which delay a law reads.

    A packet that has waited for w came when the queue was as long as w: a reading from a packet that leaves or stands
    at the head is that of w ago. One from the backlog is the present delay of what arrives.
    """

    SOJOURN = "sojourn time of the packet that left last"
    """Sch_pie's without `dq_rate_estimator`; 0 where nothing waited behind that packet."""
    HEAD = "waiting time of the packet at the head"
    """Sch_dualpi2's: the longer one of its two queues, 0 of an empty one."""
    BACKLOG = "backlog over the measured rate of departures"
    """Sch_pie's with `dq_rate_estimator`; 0 until a rate is known."""

    def age_s(self, queue_delay_s: float) -> float:
        """Age of a reading at a standing queueing delay, apart from one packet's transmission [s].

        Examples
        --------
        >>> DelayReading.HEAD.age_s(0.015), DelayReading.BACKLOG.age_s(0.015)
        (0.015, 0.0)
        """
        return 0.0 if self is DelayReading.BACKLOG else queue_delay_s
