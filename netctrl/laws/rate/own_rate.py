"""Pacing to a queue that depends on the own rate alone, with the default numbers of `netctrl.pacing`."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord
from netctrl.model.io.fields import flag, read_fields
from netctrl.model.law import OwnRatePacer, PacingLaw


class OwnRateSender(SenderRecord, frozen=True, kw_only=True, tag="own-rate"):
    """Pacing to a queue that depends on the own rate alone; `paced` takes such a law with other numbers."""

    l4s: bool = False
    """Whether its packets are of L4S, which have a short queue of their own in DualPI2; else marks are those of
    classic ECN."""

    def __post_init__(self) -> None:
        read_fields(self, l4s=flag)

    def pacer(self) -> PacingLaw:
        """The law."""
        return OwnRatePacer(l4s=self.l4s)


def _law() -> RateLaw:
    from netctrl.laws.rate.paced_rows import PACED_ROWS

    return PACED_ROWS


OWN_RATE = RateSender(OwnRateSender, _law)
