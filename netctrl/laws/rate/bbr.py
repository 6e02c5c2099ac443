"""BBR, version 1, as Linux has it."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord


class BbrSender(SenderRecord, frozen=True, kw_only=True, tag="bbr"):
    """BBR, version 1. Where its cycle of gains begins is drawn.

    Source: draft-cardwell-iccrg-bbr-congestion-control-00, with Linux's allowances.
    """


def _law() -> RateLaw:
    from netctrl.laws.tcp.bbr import BBR_ROWS

    return BBR_ROWS


BBR = RateSender(BbrSender, _law)
