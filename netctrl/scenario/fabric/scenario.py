"""A data centre's network, packet by packet: topology, traffic and the senders' congestion control."""

from __future__ import annotations

import os
from typing import Any, Literal

import msgspec

from netctrl.errors import InvalidValue, checked_word
from netctrl.laws.window.records import SCHEMES, Mpcc, Scheme
from netctrl.model.io.fields import (
    Duration,
    Size,
    backlog,
    duration,
    instant,
    label,
    number,
    optional,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.model.io.toml import read_toml_record
from netctrl.scenario.fabric.flow_sizes import checked_sizes
from netctrl.scenario.fabric.topology import MAX_HOSTS, Dumbbell, FatTree, Topology
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "Dumbbell",
    "FabricFlow",
    "FabricScenario",
    "FatTree",
    "Incast",
    "Packets",
    "Pfc",
    "PoissonFlows",
    "Topology",
    "Watch",
    "read_fabric_scenario",
]

_MAX_SAMPLES = 50_000_000


def _bytes(field: str, value: Any) -> float:
    count = size(field, value)
    if count != round(count) or count > 1e6:
        raise InvalidValue(field, value, "a whole number of bytes from 1 to 1000000")
    return count


def _bytes_or_none(field: str, value: Any) -> float:
    count = backlog(field, value)
    return _bytes(field, value) if count else count


def _payload(field: str, value: Any) -> float:
    count = size(field, value)
    if count > 1e13:
        raise InvalidValue(field, value, "a size of at most 10 TB")
    return float(round(count))


class FabricFlow(Record, frozen=True, kw_only=True):
    """One flow between hosts."""

    source: int
    target: int
    size: Size
    """Payload [byte]."""
    start: Duration = 0.0

    def __post_init__(self) -> None:
        read_fields(self, source=whole(0, MAX_HOSTS - 1), target=whole(0, MAX_HOSTS - 1), size=_payload, start=instant)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "another host than source")


class PoissonFlows(Record, frozen=True, kw_only=True):
    """Flows that every host starts at exponential intervals, to another host drawn evenly.

    The mean interval is 8 (mean size)/(load · host rate), (section 5.4 of the MPCC thesis); payload counts as load.
    """

    sizes: Any = "WebSearch"
    """WebSearch, FB_Hadoop, or points [size in bytes, cumulative %]."""
    load: float = 0.3
    """Of each host's link."""
    stop: Duration | None = None
    """No flow starts later [s]; null: the scenario's end."""

    def __post_init__(self) -> None:
        read_fields(self, sizes=checked_sizes, stop=optional(duration))
        read_fields(self, load=number("a share above 0, below 1", above=0.0, at_most=1.0 - 1e-9))


class Incast(Record, frozen=True, kw_only=True):
    """Now and then some hosts send to one, all at once: both are drawn evenly."""

    senders: int = 8
    size: Size = 300e3
    interval: Duration = 1e-3
    """From one to the next [s]."""
    start: Duration = 0.0

    def __post_init__(self) -> None:
        read_fields(self, senders=whole(1, MAX_HOSTS - 1), size=_payload, interval=duration, start=instant)


class Packets(Record, frozen=True, kw_only=True):
    """Sizes on the wire [byte]: payload and header, and telemetry where the scheme reads it, also on its way back."""

    payload: Size = 1000.0
    header: Size = 48.0
    ack: Size = 46.0
    telemetry: Size = 52.0
    """Five hops of 10 bytes and a count of 2: what the MPCC thesis's exact times say (1100 B a packet, 98 B an ACK)."""
    clock: Literal["nearest", "ns-3"] = "nearest"
    """How the time on the wire becomes whole nanoseconds: rounded, as ns-3.37 and 3.44 do, or the
    greatest below it, as the ns-3 of the MPCC thesis (8799 ns for 1100 B at 1 Gbit/s)."""

    def __post_init__(self) -> None:
        read_fields(self, payload=_bytes, header=_bytes, ack=_bytes, telemetry=_bytes_or_none)
        checked_word("clock", self.clock, ("nearest", "ns-3"))


class Pfc(Record, frozen=True, kw_only=True):
    """Priority flow control: a switch pauses the link from which more than `pause` bytes wait in it.

    Source: IEEE 802.1Qbb; thresholds are constant. A frame takes the link's delay and no room.
    """

    pause: Size = 200e3
    resume: Size = 190e3

    def __post_init__(self) -> None:
        read_fields(self, pause=size, resume=size)
        if self.resume > self.pause:
            raise InvalidValue("resume", self.resume, f"at most pause ({self.pause:g} bytes)")


class Watch(Record, frozen=True, kw_only=True):
    """What is kept as series."""

    flows: tuple[int, ...] = ()
    """Numbers of flows, in order of their start, whose acknowledgements are logged."""
    acknowledgements: int = 100_000
    """At most so many are logged, of all these flows together."""
    ports: tuple[str, ...] = ()
    """Switch ports whose queue is sampled, as "s0>s1" or "s1>h4"."""
    interval: Duration = 1e-6
    """From one sample of all queues to the next [s]."""
    bin: Duration = 2e-3
    """Of the throughput of watched flows [s]."""

    def __post_init__(self) -> None:
        reader = whole(0, 2**31 - 1, "numbers of flows,")
        if not isinstance(self.flows, list | tuple):
            raise InvalidValue("flows", self.flows, "a list of numbers of flows, from 0")
        msgspec.structs.force_setattr(self, "flows", tuple(reader("flows", each) for each in self.flows))
        read_fields(self, acknowledgements=whole(0, 10_000_000), ports=records(str), interval=duration, bin=duration)
        if len(set(self.flows)) < len(self.flows) or len(self.flows) > 10_000:
            raise InvalidValue("flows", self.flows, "each flow once, at most 10000")


class FabricScenario(Record, frozen=True, kw_only=True):
    """What is simulated. Times in seconds, rates in bit/s, sizes in bytes; text with a unit is read when it is built.

    Raises
    ------
    InvalidValue
        A value out of bounds, a host that isn't there, no traffic.
    """

    name: str = "data centre"
    topology: Topology
    scheme: Scheme = Mpcc()
    flows: tuple[FabricFlow, ...] = ()
    poisson: PoissonFlows | None = None
    incast: Incast | None = None
    packets: Packets = Packets()
    buffer: Size | None = None
    """Of each switch port [byte]; null: unlimited."""
    pfc: Pfc | None = None
    flow_timeout: Duration | None = None
    """A port counts a flow as active until so long after its last packet. null: N + 2 of the longest round trips, with
    N the senders of the dumbbell or the incast, at least 4. Below (N − 1) round trips N is counted too low, and queues
    burst; well above, small flows that are over still count."""
    retransmission_timeout: Duration | None = None
    """Without progress, a flow sends all again that isn't acknowledged [s]; null: ten of the longest round trips, at
    least 1 ms."""
    duration: Duration = 0.01
    watch: Watch = Watch()
    seed: int = 1

    def __post_init__(self) -> None:
        read_fields(
            self, name=label, topology=record(Dumbbell, FatTree), scheme=record(*SCHEMES), packets=record(Packets)
        )
        read_fields(
            self, flows=records(FabricFlow), poisson=optional(record(PoissonFlows)), incast=optional(record(Incast))
        )
        read_fields(self, buffer=optional(size), pfc=optional(record(Pfc)), flow_timeout=optional(duration))
        read_fields(self, retransmission_timeout=optional(duration), duration=duration, watch=record(Watch))
        read_fields(self, seed=whole(0, 2**32 - 1))
        hosts = self.topology.hosts
        for place, flow in enumerate(self.flows):
            for end in ("source", "target"):
                if getattr(flow, end) >= hosts:
                    raise InvalidValue(f"flows[{place}].{end}", getattr(flow, end), f"a host from 0 to {hosts - 1}")
        if not self.flows and self.poisson is None and self.incast is None:
            raise InvalidValue("flows", self.flows, "one flow or more, or give poisson or incast")
        if self.incast is not None and self.incast.senders >= hosts:
            raise InvalidValue("incast.senders", self.incast.senders, f"fewer than the {hosts} hosts")
        if self.duration > 1000.0:
            raise InvalidValue("duration", self.duration, "at most 1000 s: times are whole nanoseconds")
        rates = (
            self.topology.host_rate,
            getattr(self.topology, "link_rate", None),
            getattr(self.topology, "fabric_rate", None),
        )
        packet = (self.packets.payload + self.packets.header + self.packets.telemetry) * BITS_PER_BYTE
        if packet > 10.0 * min(each for each in rates if each is not None):
            raise InvalidValue("topology", "a slow link", "links that send a full packet within 10 s")
        self._check_samples()

    def _check_samples(self) -> None:
        watch = self.watch
        if self.duration / watch.interval * max(1, len(watch.ports)) > _MAX_SAMPLES:
            raise InvalidValue("watch.interval", watch.interval, f"at most {_MAX_SAMPLES} samples in all")
        if self.duration / watch.bin * max(1, len(watch.flows)) > _MAX_SAMPLES:
            raise InvalidValue("watch.bin", watch.bin, f"at most {_MAX_SAMPLES} bins in all")


def read_fabric_scenario(path: str | os.PathLike[str]) -> FabricScenario:
    """Read a data centre's scenario from a TOML file, strictly.

    Raises
    ------
    FileError
        It can't be read, isn't TOML, or has an unknown, missing or unusable key, which the message names.
    """
    return read_toml_record(path, FabricScenario)
