"""Copa, which keeps a few packets in the queue."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord


class CopaSender(SenderRecord, frozen=True, kw_only=True, tag="copa"):
    """Copa, without its mode beside senders that fill buffers.

    Source: Arun, Balakrishnan, NSDI 2018.
    """


def _law() -> RateLaw:
    from netctrl.laws.tcp.copa import COPA_ROWS

    return COPA_ROWS


COPA = RateSender(CopaSender, _law)
