"""Copa, which keeps a few packets in the queue."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord
from netctrl.model.io.fields import flag, read_fields


class CopaSender(SenderRecord, frozen=True, kw_only=True, tag="copa"):
    """Copa.

    Source: Arun, Balakrishnan, NSDI 2018.
    """

    competitive: bool = False
    """Whether it becomes as greedy as Reno where the queue is never nearly empty."""

    def __post_init__(self) -> None:
        read_fields(self, competitive=flag)


def _law() -> RateLaw:
    from netctrl.laws.tcp.copa import COPA_ROWS

    return COPA_ROWS


COPA = RateSender(CopaSender, _law)
