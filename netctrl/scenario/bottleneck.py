"""A bottleneck: single flows over one link, each from its own host. It becomes links and flows when it is read."""

from __future__ import annotations

from math import isclose
from typing import Any

import msgspec

from netctrl.errors import InvalidValue, checked_word
from netctrl.laws.aqm.records import QUEUES, DropTailQueue, Queue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
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
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import BulkFlows, FlowGroup, UdpFlows

__all__ = ["SINGLE_SENDERS", "Bottleneck", "SingleFlow", "single_line"]

SINGLE_SENDERS = ("paced", "cap", "htcp", "cubic", "bbr", "reno")
"""paced: the law of the Design that is simulated; cap: a fixed pacing rate on top of H-TCP. A flow's sender may also be
any window law in `netctrl.tcp_senders`."""
_LINK, _CROSS = "bottleneck", "cross"
_WINDOW = "htcp"
"""Window law under a cap, as in the paper on pacing."""


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
    """One link, `bottleneck`, that single flows share; all propagation delay is in the flows' access lines."""

    capacity: Rate = 1e8
    """Capacity for whole IP packets [bit/s]."""
    buffer: Size = 250e3
    """Size of the queue in front of the link [byte]."""
    queue: Queue = DropTailQueue()
    """Law of the queue, by its `kind`."""
    rtt: Duration = 0.02
    """Round-trip propagation delay [s]; transmission times of packets are added to it."""
    cross: Rate = 0.0
    """Rate of Poisson packets that share the link, the flow `cross` [bit/s]."""
    start_spread: Duration = 0.0
    """Each flow starts at a random time, drawn by the seed, within this time after its `start` [s]."""

    def __post_init__(self) -> None:
        read_fields(self, capacity=rate, buffer=size, queue=record(*QUEUES), rtt=duration)
        read_fields(self, cross=rate_or_0, start_spread=instant)
        if self.cross >= self.capacity:
            raise InvalidValue("cross", self.cross, f"less than the capacity, {self.capacity:g} bit/s")

    def links(self) -> tuple[Link, ...]:
        """The link."""
        line = Link(id=_LINK, source="router", target="far", capacity=self.capacity, buffer=self.buffer)
        return (msgspec.structs.replace(line, queue=self.queue),)

    def flows(self, given: Any, duration: float) -> tuple[FlowGroup, ...]:
        """The flows over the link, and the cross traffic.

        Parameters
        ----------
        given : sequence of SingleFlow
        duration : float
            Of the scenario [s].

        Raises
        ------
        InvalidValue
            No flow, one of another kind, or one that may start after the end.
        """
        single: tuple[SingleFlow, ...] = records(SingleFlow)("flows", given)
        if not single:
            raise InvalidValue("flows", given, "at least one")
        for flow in single:
            if flow.start + self.start_spread >= duration:
                raise InvalidValue(f"flows.{flow.id}.start", flow.start, f"a time before the end, {duration:g} s")
        flows: list[FlowGroup] = [self._flow(flow) for flow in single]
        if self.cross > 0.0:
            flows.append(UdpFlows(id=_CROSS, path=(_LINK,), count=1, rate=self.cross, ecn=False))
        return tuple(flows)

    def _flow(self, flow: SingleFlow) -> BulkFlows:
        rtt = self.rtt if flow.rtt is None else flow.rtt
        sender: Any = flow.sender
        if flow.rate is not None:  # only sender cap has one
            sender = CapSender(rate=flow.rate, window=_WINDOW)
        elif flow.sender == "paced":
            sender = PacedSender()
        return BulkFlows(
            id=flow.id,
            path=(_LINK,),
            rtt=(rtt, rtt),
            start=(flow.start, flow.start + self.start_spread),
            stop=None if flow.stop is None else (flow.stop, flow.stop),
            ecn=False,
            sender=sender,
            count=1,
        )


def single_line(scenario: Any) -> bool:
    """Whether a scenario is flows, each a group of its own, over one link without marks, as `Bottleneck` makes it.

    ns-3's program of pacing laws, and the fluid of these, run such scenarios.

    Parameters
    ----------
    scenario : Scenario
    """
    if len(scenario.links) != 1 or scenario.changes or scenario.control is not None:
        return False
    (link,) = scenario.links
    if link.delay or link.buffer is None or link.trace is not None or link.loss or link.jitter or link.pfc is not None:
        return False
    single, cross = [], []
    for group in scenario.flows:
        (single if isinstance(group, BulkFlows) else cross).append(group)
    if not all(isinstance(each, UdpFlows) and each.count == 1 and each.spacing == "poisson" for each in cross):
        return False
    return bool(single) and len(cross) <= 1 and isinstance(link.queue, QUEUES) and all(map(_is_single, single))


def _is_single(group: BulkFlows) -> bool:
    plain = group.size is None and group.packet_size is None and group.host is None and not group.ack_path
    return plain and group.count == 1 and not group.ecn and isclose(*group.rtt, rel_tol=0.0, abs_tol=0.0)
