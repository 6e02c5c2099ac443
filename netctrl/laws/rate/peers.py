"""BBR, versions 1 and 3, and Copa: senders with the laws of `netctrl.laws.tcp`."""

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


class CopaSender(SenderRecord, frozen=True, kw_only=True, tag="copa"):
    """Copa, without its mode beside senders that fill buffers.

    Source: Arun, Balakrishnan, NSDI 2018.
    """


def _copa() -> RateLaw:
    from netctrl.laws.tcp.copa import COPA_ROWS

    return COPA_ROWS


BBR = RateSender(BbrSender, _law)
BBR3 = RateSender(Bbr3Sender, _law_3)
COPA = RateSender(CopaSender, _copa)
