"""FAST: senders whose rate follows a price that queues mark, in the fluid only."""

from __future__ import annotations

import msgspec

from netctrl.model.io.fields import Rate, number, rate, read_fields

__all__ = ["FastSender"]


class FastSender(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="fast"):
    """Senders whose rate is max_rate · exp(−gain · price/rtt), with the price marked by a `fast-arc` queue.

    Fluid only. Source: Paganini, Wang, Low, Doyle, INFOCOM 2003 (reference [14] of the ARC paper), static source law.
    """

    max_rate: Rate
    """x_max, the rate at price 0 [bit/s]."""
    gain: float
    """Gain a of the source law."""

    def __post_init__(self) -> None:
        read_fields(self, max_rate=rate, gain=number("a gain above 0, to 1e9", above=0.0, at_most=1e9))
