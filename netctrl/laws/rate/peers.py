"""BBR, versions 1 and 3: senders with the laws of `netctrl.laws.tcp`."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord


class BbrSender(SenderRecord, frozen=True, kw_only=True, tag="bbr"):
    """BBR, version 1. Where its cycle of gains begins is drawn.

    Source: draft-cardwell-iccrg-bbr-congestion-control-00.
    """


def _law() -> RateLaw:
    from netctrl.laws.tcp.bbr import BBR_ROWS

    return BBR_ROWS


class Bbr3Sender(SenderRecord, frozen=True, kw_only=True, tag="bbr3"):
    """BBR, version 3. When it probes for more is drawn.

    Source: draft-ietf-ccwg-bbr-03.
    """


def _law_3() -> RateLaw:
    from netctrl.laws.tcp.bbr3 import BBR3_ROWS

    return BBR3_ROWS


BBR = RateSender(BbrSender, _law)
BBR3 = RateSender(Bbr3Sender, _law_3)
