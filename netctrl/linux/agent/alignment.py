"""Alignment of intervals between agents: clock offsets from messages there and back.

Each agent counts intervals by its own monotonic clock from its own start; wall clocks, which jump, are not used. An
offset comes from the exchange with the shortest round trip, as in NTP; before the first exchange, from the message with
the least apparent delay. Both are bounded by causality: a value can't arrive before it was measured.

Source: RFC 5905, sections 8 (offset and round trip of an exchange) and 10 (the sample of least delay).
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

__all__ = ["Alignment", "aligned", "index_of"]

_REMEMBERED = 64
_HYSTERESIS = 0.25
"""Share of an interval by which an offset must move before intervals are renumbered."""


class Alignment(NamedTuple):
    """Estimate of another agent's clock. Times in microseconds."""

    exchanges: tuple[tuple[int, float], ...] = ()
    """Round trip and offset (its clock minus ours) of each exchange; the newest last."""
    one_way: tuple[int, ...] = ()
    """Its sending time minus our receiving time: the offset minus the message's delay."""
    shift: int | None = None
    """Number to add to its interval numbers to obtain ours; None before the first message."""
    moved: int = 0
    """Number of changes."""

    @property
    def offset_us(self) -> float | None:
        """Its clock minus ours; None before the first message."""
        if self.exchanges:
            return min(reversed(self.exchanges))[1]
        return max(self.one_way) if self.one_way else None

    @property
    def rtt_us(self) -> int | None:
        """Shortest round trip remembered."""
        return min(self.exchanges)[0] if self.exchanges else None


def aligned(
    alignment: Alignment, interval_us: float, now_us: int, sent_us: int, *, echo_us: int = 0, held_us: int | None = None
) -> Alignment:
    """Alignment after a message sent at `sent_us` by its sender's clock and received now by ours.

    Parameters
    ----------
    alignment : Alignment
    interval_us : float
        Interval of both agents.
    now_us, sent_us : int
        Times since interval number 0 of the respective agent began.
    echo_us, held_us : int
        Sending time of the last message that the sender received from us, and the time since; None without one.
    """
    one_way = (*alignment.one_way, sent_us - now_us)[-_REMEMBERED:]
    exchanges = alignment.exchanges
    if held_us is not None and now_us - echo_us - held_us >= 0:
        rtt = now_us - echo_us - held_us
        # offset = ((t2 − t1) + (t3 − t4))/2 with t2 = t3 − held
        exchanges = (*exchanges, (rtt, sent_us - now_us + rtt / 2.0))[-_REMEMBERED:]
    found = alignment._replace(exchanges=exchanges, one_way=one_way)
    offset = found.offset_us
    behind = 0.0 if offset is None else -offset / interval_us
    if found.shift is not None and found.shift - 1 < behind <= found.shift + _HYSTERESIS:
        return found
    return found._replace(shift=ceil(behind), moved=found.moved + (found.shift is not None))


def index_of(alignment: Alignment, step: int, newest: int) -> int | None:
    """Our number of another agent's interval: our first that began no earlier; None before the first message.

    It is at most `newest`, the first interval that begins after now.
    """
    return None if alignment.shift is None else min(step + alignment.shift, newest)
