"""Pacing to a queue that depends on the own rate alone, with the default numbers of `netctrl.pacing`."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord
from netctrl.model.law import OwnRatePacer, PacingLaw


class OwnRateSender(SenderRecord, frozen=True, kw_only=True, tag="own-rate"):
    """Pacing to a queue that depends on the own rate alone; `paced` takes such a law with other numbers."""

    def pacer(self) -> PacingLaw:
        """The law."""
        return OwnRatePacer()


def _law() -> RateLaw:
    from netctrl.laws.rate.paced_rows import PACED_ROWS

    return PACED_ROWS


OWN_RATE = RateSender(OwnRateSender, _law)
