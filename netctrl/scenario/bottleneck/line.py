"""One link that single flows share, each from its own host."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from netctrl.errors import InvalidValue, checked_word
from netctrl.laws.aqm.records import QUEUES, DropTailQueue, Queue
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    identifier,
    instant,
    optional,
    rate,
    rate_or_0,
    read_fields,
    record,
    records,
    size,
)
from netctrl.model.io.record_file import Record
from netctrl.register import TCP_SENDERS, refuse_unusable
from netctrl.scenario.checks import OF_DATA_CENTRES, check_ids, check_unused

__all__ = ["SINGLE_SENDERS", "Bottleneck", "SingleFlow"]

SINGLE_SENDERS = ("paced", "cap", "htcp", "cubic", "bbr", "reno")
"""paced: the Design's law; cap: a fixed pacing rate on top of H-TCP; htcp: by its draft; the others are ns-3's. A
flow's sender may also be any window law in `netctrl.tcp_senders`."""

_MAX_FLOWS = 1000
_MAX_BINS = 1e6


def _sender(field: str, value: object) -> str:
    refuse_unusable(value)
    return checked_word(field, value, tuple(dict.fromkeys((*SINGLE_SENDERS, *TCP_SENDERS.usable()))))


class SingleFlow(Record, frozen=True, kw_only=True, tag_field="kind", tag="single"):
    """An endless flow from its own host through a bottleneck."""

    id: str = "flow"
    """Unique among the flows."""
    sender: str
    """One of SINGLE_SENDERS, or a registered TCP sender."""
    rate: Rate | None = None
    """Fixed pacing rate; of sender cap only."""
    rtt: Duration | None = None
    """Round-trip propagation delay [s]; null: the bottleneck's."""
    start: Duration = 0.0
    """When it starts [s]."""
    stop: Duration | None = None
    """When it stops [s]; null: never."""

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, sender=_sender, rate=optional(rate), rtt=optional(duration))
        read_fields(self, start=instant, stop=optional(instant))
        if (self.sender == "cap") != (self.rate is not None):
            raise InvalidValue("rate", self.rate, "a rate if and only if sender is cap")
        if self.stop is not None and self.stop <= self.start:
            raise InvalidValue("stop", self.stop, f"a time after start ({self.start:g} s), or null")


class Bottleneck(Record, frozen=True, kw_only=True, tag_field="kind", tag="bottleneck"):
    """One link that single flows share, packet by packet or as a fluid."""

    default_interval: ClassVar[float] = 0.1
    """Default sampling interval of throughput and delay [s]."""
    link_ids: ClassVar[tuple[str, ...]] = ("bottleneck",)
    """Id of the link, in results."""

    capacity: Rate = 1e8
    """Capacity for whole IP packets [bit/s]."""
    buffer: Size = 250e3
    """Size of the queue in front of the link [byte]."""
    queue: Queue = DropTailQueue()
    """Law of the queue, by its `kind`."""
    rtt: Duration = 0.02
    """Round-trip propagation delay [s]; transmission times of packets are added to it."""
    cross: Rate = 0.0
    """Rate of Poisson packets that share the link [bit/s]."""
    start_spread: Duration = 0.0
    """Each flow starts at a random time, drawn by the seed, within this time after its `start` [s]."""

    def __post_init__(self) -> None:
        read_fields(self, capacity=rate, buffer=size, queue=record(*QUEUES), rtt=duration)
        read_fields(self, cross=rate_or_0, start_spread=instant)
        if self.cross >= self.capacity:
            raise InvalidValue("cross", self.cross, f"less than the capacity, {self.capacity:g} bit/s")

    def capacity_at(self, ends: np.ndarray) -> np.ndarray:
        """Capacity in T intervals that end at these times, (1, T) [bit/s]."""
        return np.full((1, len(ends)), self.capacity)

    def rtts_s(self, flows: tuple[SingleFlow, ...]) -> tuple[float, ...]:
        """Round-trip propagation delay of each flow [s]."""
        return tuple(self.rtt if flow.rtt is None else flow.rtt for flow in flows)

    def check(self, scenario: Any) -> None:
        """InvalidValue for parts of a `Scenario` that don't fit this link or each other."""
        lasts = scenario.duration
        read_fields(scenario, flows=records(SingleFlow))
        check_ids("flows", scenario.flows)
        if len(scenario.flows) > _MAX_FLOWS:
            raise InvalidValue("flows", f"{len(scenario.flows)} flows", f"from 1 to {_MAX_FLOWS}")
        if scenario.control is not None:
            takes = "nothing: a Design of pacing sets the rates of flows at a bottleneck"
            raise InvalidValue("control", scenario.control.__struct_config__.tag, takes)
        check_unused(scenario, "step", *OF_DATA_CENTRES, "initial_window")
        if not scenario.interval <= lasts <= _MAX_BINS * scenario.interval:
            takes = f"a time from {lasts / _MAX_BINS:g} s to duration ({lasts:g} s)"
            raise InvalidValue("interval", scenario.interval, takes)
        for flow in scenario.flows:
            if flow.start + self.start_spread >= lasts:
                raise InvalidValue(f"flows.{flow.id}.start", flow.start, f"a time before the end, {lasts:g} s")
