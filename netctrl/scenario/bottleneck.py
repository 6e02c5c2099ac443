"""A bottleneck: flows over one link, each from its own host. It becomes links and flows when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.records import QUEUES, DropTailQueue
from netctrl.laws.disciplines import LINK_QUEUES, LinkQueue
from netctrl.model.io.fields import Duration, Rate, Size, duration, instant, rate, rate_or_0, read_fields, record, size
from netctrl.model.io.record_file import Record
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream

_LINK, _CROSS = "bottleneck", "cross"


class Bottleneck(Record, frozen=True, kw_only=True, tag_field="kind", tag="bottleneck"):
    """One link, `bottleneck`, that flows share; all propagation delay is in the flows' access lines."""

    capacity: Rate = 1e8
    """Capacity for whole IP packets [bit/s]."""
    buffer: Size = 250e3
    """Size of the queue in front of the link [byte]."""
    queue: LinkQueue = DropTailQueue()
    """Law of the queue, by its `kind`."""
    rtt: Duration = 0.02
    """Round-trip propagation delay [s]; transmission times of packets are added to it."""
    cross: Rate = 0.0
    """Rate of Poisson packets that share the link, the flow `cross` [bit/s]."""
    start_spread: Duration = 0.0
    """Each flow starts at a random time, drawn by the seed, within this time after its `start` [s]."""

    def __post_init__(self) -> None:
        read_fields(self, capacity=rate, buffer=size, queue=record(*LINK_QUEUES), rtt=duration)
        read_fields(self, cross=rate_or_0, start_spread=instant)
        if self.cross >= self.capacity:
            raise InvalidValue("cross", self.cross, f"less than the capacity, {self.capacity:g} bit/s")

    def links(self) -> tuple[Link, ...]:
        """The link."""
        line = Link(id=_LINK, source="router", target="far", capacity=self.capacity, buffer=self.buffer)
        return (msgspec.structs.replace(line, queue=self.queue),)

    def flows(self, given: Sequence[Flow], duration: float) -> tuple[Flow, ...]:
        """The flows, which cross the only link where they have no path, and the cross traffic.

        Parameters
        ----------
        given : sequence of Flow
            One without a round-trip time has the bottleneck's, and packets are marked only where `ecn` says so.
        duration : float
            Of the scenario [s].

        Raises
        ------
        InvalidValue
            No flow, or one that may start after the end.
        """
        if not given:
            raise InvalidValue("flows", given, "at least one")
        flows = [self._placed(flow, duration) for flow in given]
        if self.cross > 0.0:
            flows.append(Flow(id=_CROSS, offers=Stream(rate=self.cross), ecn=False))
        return tuple(flows)

    def _placed(self, flow: Flow, duration: float) -> Flow:
        start = flow.start[0], flow.start[1] + self.start_spread
        if flow.start[1] + self.start_spread >= duration:
            raise InvalidValue(f"flows.{flow.id}.start", flow.start[1], f"a time before the end, {duration:g} s")
        rtt = flow.rtt if flow.rtt[1] > 0.0 else (self.rtt, self.rtt)
        return msgspec.structs.replace(flow, rtt=rtt, start=start, ecn=bool(flow.ecn))


def single_line(scenario: Any, *, varying: bool = False) -> bool:
    """Whether a scenario is flows, each a group of its own, over one link without marks, as `Bottleneck` makes it.

    ns-3's program of pacing laws runs such scenarios, and the fluid of these also where the link's capacity varies.

    Parameters
    ----------
    scenario : Scenario
    varying : bool
        Whether the link may have a trace, or changes of its capacity.
    """
    if len(scenario.links) != 1 or scenario.control is not None:
        return False
    (link,) = scenario.links
    if not varying and (scenario.changes or link.trace is not None):
        return False
    if any(change.flow or change.delay is not None for change in scenario.changes):
        return False
    if link.delay or link.buffer is None or link.loss or link.jitter or link.pfc is not None:
        return False
    single = [group for group in scenario.flows if group.answered]
    cross = [group for group in scenario.flows if not group.answered]
    if not all(isinstance(each.offers, Stream) and each.offers.spacing == "poisson" for each in cross):
        return False
    return (
        sum(each.count for each in cross) <= 1
        and bool(single)
        and isinstance(link.queue, QUEUES)
        and all(map(_is_single, single))
    )


def _is_single(group: Flow) -> bool:
    plain = group.offers is None and group.packet_size is None and group.host is None and not group.ack_path
    return plain and group.count == 1 and not group.ecn and group.rtt[0] == group.rtt[1]
