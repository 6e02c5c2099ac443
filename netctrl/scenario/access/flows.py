"""Groups of flows at an access link: premium traffic, regulated traffic and unregulated cross traffic."""

from __future__ import annotations

from netctrl.errors import InvalidValue
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    identifier,
    instant,
    number,
    optional,
    rate,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.record_file import Record

_MAX_FLOWS = 1000
_burst = whole(1, 10_000, "a whole number of packets")
_variation = number("a number from 0 to 1", at_least=0.0, at_most=1.0)


class PremiumFlow(Record, frozen=True, kw_only=True, tag_field="kind", tag="premium"):
    """Packets whose delay and jitter are measured: evenly spaced, with a phase drawn by the seed."""

    id: str = "premium"
    """Unique among the flows."""
    rate: Rate = 1e6
    """Rate of the packets [bit/s]."""
    size: Size = 1000.0
    """Size of a packet [byte]."""

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, rate=rate, size=size)


class RegulatorFailure(Record, frozen=True, kw_only=True):
    """A group's flows send at `rate` in total from `start` to `stop`, whatever the controller commands."""

    start: Duration
    """When it begins [s]."""
    stop: Duration
    """When it ends [s]."""
    rate: Rate
    """Rate of the group's flows together [bit/s]."""

    def __post_init__(self) -> None:
        read_fields(self, start=instant, stop=instant, rate=rate)
        if self.stop <= self.start:
            raise InvalidValue("stop", self.stop, f"a time after start ({self.start:g} s)")


class TcpSenders(Record, frozen=True, kw_only=True):
    """TCP flows behind token buckets with a queue."""

    rtt: Duration = 2e-3
    """Round-trip time without queues and transmission [s]."""
    regulator_limit: int = 50
    """Largest number of packets waiting in a regulator."""
    timeout: Duration = 0.2
    """Retransmission timeout, without an acknowledgement [s]."""

    def __post_init__(self) -> None:
        read_fields(self, rtt=duration, regulator_limit=whole(1, 100_000), timeout=duration)
        if self.timeout <= self.rtt:
            raise InvalidValue("timeout", self.timeout, f"a time above rtt ({self.rtt:g} s)")


class RegulatedFlows(Record, frozen=True, kw_only=True, tag_field="kind", tag="regulated"):
    """A host with non-premium traffic behind regulators, one for each flow."""

    id: str
    """Unique among the groups of flows."""
    count: int = 2
    """Number of flows, each with an equal part of the group's rate and its own bursts."""
    burst: int = 10
    """Packets that a flow releases at once, unless the controller sets another number."""
    share: float = 1.0 / 3.0
    """Share of the regulated rate."""
    offered: Rate = 1e8
    """Rate that the group would send without regulators [bit/s]."""
    pause_variation: float = 1.0
    """Standard deviation over mean of the pauses between bursts; 1: exponential pauses, 0: evenly spaced bursts."""
    sender: TcpSenders | None = None
    """Senders of the flows; null: UDP, which sends whatever its regulator lets through."""
    failures: tuple[RegulatorFailure, ...] = ()
    """When regulators ignore the controller."""

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, count=whole(1, _MAX_FLOWS), burst=_burst, offered=rate)
        read_fields(self, share=number("a share above 0, to 1", above=0.0, at_most=1.0), pause_variation=_variation)
        read_fields(self, sender=optional(record(TcpSenders)), failures=records(RegulatorFailure))
        until = 0.0
        for place, failure in sorted(enumerate(self.failures), key=lambda each: each[1].start):
            if failure.start < until:
                raise InvalidValue(f"failures[{place}].start", failure.start, "failures of a group that don't overlap")
            until = failure.stop


class CrossFlow(Record, frozen=True, kw_only=True, tag_field="kind", tag="cross"):
    """An unregulated flow that enters at one hop and leaves after it."""

    id: str
    """Unique among the flows."""
    hop: int
    """Index of the hop, from 0."""
    rate: Rate
    """Mean rate [bit/s]."""
    burst: int = 10
    """Packets that it releases at once."""
    pause_variation: float = 1.0
    """As for regulated flows."""

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, hop=whole(0, 99), rate=rate, burst=_burst, pause_variation=_variation)


ACCESS_GROUPS = (PremiumFlow, RegulatedFlows, CrossFlow)
AccessGroup = PremiumFlow | RegulatedFlows | CrossFlow
"""Every kind of flows at an access link; in a file, `kind` selects it."""
