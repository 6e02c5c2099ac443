"""Which of our intervals another agent's interval is: offsets of steady clocks from messages there and back.

Each agent counts intervals by its own steady clock from its own start; clocks of the wall, which jump, play no part.
An offset is taken from the exchange that took least, as NTP does; before there is one, from the message that seems to
have been under way least. Both are bounded by causality: nothing is heard before it was measured.

Source: RFC 5905, sections 8 (offset and round trip of an exchange) and 10 (the sample of least delay).
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

__all__ = ["Alignment", "aligned", "index_of"]

_REMEMBERED = 64
_HYSTERESIS = 0.25
"""Of an interval, by which an offset must have moved before intervals are renamed."""


class Alignment(NamedTuple):
    """What is known of another agent's clock. Times in microseconds."""

    exchanges: tuple[tuple[int, float], ...] = ()
    """Round trip and offset, its clock less ours, of exchanges; the newest last."""
    one_way: tuple[int, ...] = ()
    """Its time of sending less our time of hearing: the offset less the time under way."""
    shift: int | None = None
    """To add to a number of its intervals for ours; None until one was heard."""
    moved: int = 0
    """How often it was changed."""

    @property
    def offset_us(self) -> float | None:
        """Its clock less ours; None until it was heard."""
        if self.exchanges:
            return min(reversed(self.exchanges))[1]
        return max(self.one_way) if self.one_way else None

    @property
    def rtt_us(self) -> int | None:
        """The least of those remembered."""
        return min(self.exchanges)[0] if self.exchanges else None


def aligned(
    alignment: Alignment, interval_us: float, now_us: int, sent_us: int, *, echo_us: int = 0, held_us: int | None = None
) -> Alignment:
    """After a message that was sent at `sent_us` by its sender's clock, and heard now by ours.

    Parameters
    ----------
    alignment : Alignment
    interval_us : float
        Of both.
    now_us, sent_us : int
        Each since its agent's interval number 0 began.
    echo_us, held_us : int
        When we sent what the sender heard last of us, and how long ago it heard that; None where it heard nothing.
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
    """Our number of another agent's interval: the first of ours that began no earlier; None before any was heard.

    It is at most `newest`, the first that begins after now.
    """
    return None if alignment.shift is None else min(step + alignment.shift, newest)
