"""Flows through one bottleneck, packet by packet: a paced flow, and what it is held against."""

from __future__ import annotations

import os

import msgspec

from netctrl.errors import InvalidValue, checked_word
from netctrl.laws.aqm.records import QUEUES, DropTailQueue, Queue
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    instant,
    label,
    optional,
    rate,
    rate_or_0,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.toml import read_toml_record
from netctrl.register import TCP_SENDERS
from netctrl.units import BITS_PER_BYTE

__all__ = ["FLOW_KINDS", "BottleneckFlow", "BottleneckScenario", "design_bottleneck", "read_bottleneck_scenario"]

FLOW_KINDS = ("paced", "cap", "htcp", "cubic", "bbr", "reno")
"""paced: the Design's law; cap: a fixed pacing rate on top of H-TCP; htcp: by its draft; the others are ns-3's. Beside
these a flow may be of any window law in `netctrl.tcp_senders`."""

_MAX_FLOWS = 1000
_MAX_BINS = 1e6
_MIN_BUFFER = 30e3
_DESIGN_S, _DESIGN_RTTS, _DESIGN_PACKETS = 60.0, (50.0, 1200.0), 3e6


def _kind(field: str, value: object) -> str:
    return checked_word(field, value, (*FLOW_KINDS, *(name for name in TCP_SENDERS if name not in FLOW_KINDS)))


class BottleneckFlow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An endless flow from a host of its own."""

    kind: str
    """One of FLOW_KINDS, or a registered TCP sender."""
    rate: Rate | None = None
    """The cap; of kind cap only."""
    rtt: Duration | None = None
    """Propagation there and back [s]; null: the scenario's."""
    start: Duration = 0.0
    stop: Duration | None = None

    def __post_init__(self) -> None:
        read_fields(
            self, kind=_kind, rate=optional(rate), rtt=optional(duration), start=instant, stop=optional(instant)
        )
        if (self.kind == "cap") != (self.rate is not None):
            raise InvalidValue("rate", self.rate, "a rate for a flow of kind cap, and for no other")
        if self.stop is not None and self.stop <= self.start:
            raise InvalidValue("stop", self.stop, f"a time after start ({self.start:g} s), or null")


class BottleneckScenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is run. Times in seconds, rates in bit/s, sizes in bytes; text with a unit is read when it is built.

    Raises
    ------
    InvalidValue
        A value out of bounds; no flow; a flow that starts after the end; cross traffic that leaves no room.
    """

    name: str = "bottleneck"
    bottleneck: Rate = 1e8
    """Its capacity, for whole IP packets."""
    buffer: Size = 250e3
    """Of the queue in front of it."""
    queue: Queue = DropTailQueue()
    rtt: Duration = 0.02
    """Propagation there and back: packets' times on the wires come to it."""
    flows: tuple[BottleneckFlow, ...] = (BottleneckFlow(kind="paced"),)
    cross: Rate = 0.0
    """Poisson packets beside the flows."""
    packet_size: Size = 1500.0
    """With IP and TCP headers."""
    start_spread: Duration = 0.0
    """A flow starts within so long after its `start`: the seed says when."""
    duration: Duration = 60.0
    warmup: Duration = 10.0
    """Left out of a summary."""
    bin: Duration = 0.1
    """Of throughput and delay."""
    seed: int = 1

    def __post_init__(self) -> None:
        read_fields(self, name=label, bottleneck=rate, buffer=size, queue=record(*QUEUES), rtt=duration)
        read_fields(self, flows=records(BottleneckFlow), cross=rate_or_0, packet_size=size, start_spread=instant)
        read_fields(self, duration=duration, warmup=instant, bin=duration, seed=whole(0, 2**32 - 1))
        if not 1 <= len(self.flows) <= _MAX_FLOWS:
            raise InvalidValue("flows", f"{len(self.flows)} flows", f"from 1 to {_MAX_FLOWS}")
        if self.cross >= self.bottleneck:
            raise InvalidValue("cross", self.cross, f"less than the bottleneck, {self.bottleneck:g} bit/s")
        if self.warmup >= self.duration:
            raise InvalidValue("warmup", self.warmup, f"less than duration ({self.duration:g} s)")
        if not self.bin <= self.duration <= _MAX_BINS * self.bin:
            takes = f"a time from {self.duration / _MAX_BINS:g} s to duration ({self.duration:g} s)"
            raise InvalidValue("bin", self.bin, takes)
        for place, flow in enumerate(self.flows):
            if flow.start + self.start_spread >= self.duration:
                raise InvalidValue(f"flows[{place}].start", flow.start, f"before the end, {self.duration:g} s")

    @property
    def rtts_s(self) -> tuple[float, ...]:
        """Propagation of each flow, there and back [s]."""
        return tuple(self.rtt if flow.rtt is None else flow.rtt for flow in self.flows)


def design_bottleneck(bottleneck_bit_per_s: float, rtt_s: float, packet_size_bytes: float) -> BottleneckScenario:
    """The bottleneck of a Design's certificate, a buffer of one bandwidth-delay product, and one paced flow; for 60 s,
    1200 round trips or 3 million packets, whichever is least, but 50 round trips."""
    buffer = max(bottleneck_bit_per_s * rtt_s / BITS_PER_BYTE, _MIN_BUFFER)
    packets_s = _DESIGN_PACKETS * BITS_PER_BYTE * packet_size_bytes / bottleneck_bit_per_s
    lasts = max(min(_DESIGN_S, _DESIGN_RTTS[1] * rtt_s, packets_s), _DESIGN_RTTS[0] * rtt_s)
    return BottleneckScenario(
        name="bottleneck of the design",
        bottleneck=bottleneck_bit_per_s,
        buffer=buffer,
        rtt=rtt_s,
        packet_size=packet_size_bytes,
        duration=lasts,
        warmup=lasts / 4.0,
        bin=max(rtt_s, lasts / 1e4),
    )


def read_bottleneck_scenario(path: str | os.PathLike[str]) -> BottleneckScenario:
    """Read a bottleneck with its flows from a TOML file, strictly; its keys are the fields of `BottleneckScenario`.

    Raises
    ------
    FileError
        It can't be read, isn't TOML, or has an unknown or unusable key, which the message names.
    """
    return read_toml_record(path, BottleneckScenario)
