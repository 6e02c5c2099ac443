"""TCP behind a regulator, which lets its packets through in bursts with pauses."""

from __future__ import annotations

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.core.units import format_quantity
from netctrl.model.io.fields import Rate, number, rate, read_fields, whole


class RegulatedSender(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="regulated"
):
    """TCP whose packets wait in a queue, from which a regulator lets a burst through and then pauses.

    Packets that find the queue full are lost. A control of kind track may set the rate. Packet engine only. Source:
    CONNET paper.
    """

    rate: Rate
    """Mean rate that is let through, with headers [bit/s]."""
    window: str = "reno"
    """A registered window law."""
    burst: int = 10
    """Packets of a burst."""
    pause_variation: float = 1.0
    """Standard deviation over mean of the pauses between bursts; 1: exponential pauses, 0: evenly spaced bursts."""
    access_rate: Rate = 1e8
    """Rate at which the packets of a burst follow each other [bit/s]."""
    limit: int = 50
    """Packets that wait."""

    def __post_init__(self) -> None:
        read_fields(self, rate=rate, access_rate=rate, burst=whole(1, 10_000, "a whole number of packets"))
        read_fields(self, pause_variation=number("a number from 0 to 1", at_least=0.0, at_most=1.0))
        read_fields(self, limit=whole(1, 100_000, "a whole number of packets"))
        if self.rate > self.access_rate:
            takes = f"at least rate, {format_quantity(self.rate, 'bit/s')}"
            raise InvalidValue("access_rate", format_quantity(self.access_rate, "bit/s"), takes)
