"""Host of a data centre's sender: its own port, and the headers of its packets."""

from __future__ import annotations

from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    instant,
    optional,
    packet_bytes,
    packet_bytes_or_none,
    rate,
    read_fields,
    record,
)
from netctrl.model.io.record_file import Record
from netctrl.scenario.fabric.pfc import Pfc


class Host(Record, frozen=True, kw_only=True):
    """Each flow of a group has its own port in front of its path.

    A full packet has the scenario's `packet_size` bytes, including `header` and `telemetry`.
    """

    rate: Rate | None = None
    """Rate of the port, the law's line rate [bit/s]; null: that of the first link of the path."""
    delay: Duration | None = None
    """Delay to the path, one way [s]; null: half of the part of `rtt` not covered by links. The rest is on the way
    back."""
    header: Size = 48.0
    """Header of a packet [byte]."""
    ack: Size = 46.0
    """Size of an acknowledgement [byte]."""
    telemetry: Size = 52.0
    """Telemetry in packets and their acknowledgements, where the law reads it [byte]."""
    pfc: Pfc | None = None
    """Thresholds at which the node behind the port pauses it."""
    flow_timeout: Duration | None = None
    """Time after its last packet for which a link counts a flow as active [s]; null: N + 2 times the longest round
    trip, with N flows that cross it, at least 4."""
    retransmission_timeout: Duration | None = None
    """Timeout without progress after which a flow resends all unacknowledged data [s]; null: ten times the longest
    round trip, at least 1 ms."""

    def __post_init__(self) -> None:
        read_fields(
            self,
            rate=optional(rate),
            delay=optional(instant),
            header=packet_bytes,
            ack=packet_bytes,
            telemetry=packet_bytes_or_none,
        )
        read_fields(self, pfc=optional(record(Pfc)), flow_timeout=optional(duration))
        read_fields(self, retransmission_timeout=optional(duration))
