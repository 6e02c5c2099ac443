"""BBR, version 3, in which losses bound what is in flight."""

from __future__ import annotations

from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord


class Bbr3Sender(SenderRecord, frozen=True, kw_only=True, tag="bbr3"):
    """BBR, version 3. When it probes for more is drawn.

    Source: draft-ietf-ccwg-bbr-03.
    """


def _law() -> RateLaw:
    from netctrl.laws.tcp.bbr3 import BBR3_ROWS

    return BBR3_ROWS


BBR3 = RateSender(Bbr3Sender, _law)
