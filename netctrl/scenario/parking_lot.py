"""A parking lot: links in a row, flows over all of them, and others over one each. It becomes links and flows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import LINK_QUEUES, LinkQueue
from netctrl.model.io.fields import Duration, Rate, Size, instant, rate, read_fields, record, records, size, whole
from netctrl.model.io.record_file import Record
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow

MAX_HOPS = 100


class ParkingLot(Record, frozen=True, kw_only=True, tag_field="kind", tag="parking-lot"):
    """Equal links `hop1`, `hop2`, ... in a row; the scenario's flows cross all of them, `cross` one each.

    Raises
    ------
    InvalidValue
        A value out of bounds.

    Examples
    --------
    >>> from netctrl.scenario.builders import parking_lot
    >>> scenario = parking_lot(hops=2, flows=[{"id": "long"}], cross=[{"id": "short", "count": 4}], duration="10s")
    >>> [(flow.id, flow.path, flow.rtt[0]) for flow in scenario.flows]
    [('long', ('hop1', 'hop2'), 0.02), ('short1', ('hop1',), 0.01), ('short2', ('hop2',), 0.01)]
    """

    hops: int = 3
    """Number of links."""
    capacity: Rate = 2e7
    """Capacity of each [bit/s]."""
    delay: Duration = 0.005
    """Propagation delay of each, one way [s]."""
    buffer: Size = 1e5
    """Size of the queue in front of each [byte]."""
    queue: LinkQueue = DropTailQueue()
    """Law of each queue, by its `kind`."""
    cross: tuple[Flow, ...] = ()
    """Flows over one link, anew at each; their ids end with the link's number."""

    def __post_init__(self) -> None:
        read_fields(self, hops=whole(1, MAX_HOPS), capacity=rate, delay=instant, buffer=size)
        read_fields(self, queue=record(*LINK_QUEUES), cross=records(Flow))

    def links(self) -> tuple[Link, ...]:
        """The links."""
        line = {name: getattr(self, name) for name in ("capacity", "delay", "buffer", "queue")}
        return tuple(
            Link(id=f"hop{i}", source=f"node{i - 1}", target=f"node{i}", **line) for i in range(1, self.hops + 1)
        )

    def flows(self, given: Sequence[Flow], duration: float) -> tuple[Flow, ...]:
        """The flows, over all links where they have no path, and those over one.

        Parameters
        ----------
        given : sequence of Flow
            One with a path crosses that.
        duration : float
            Of the scenario [s].

        Raises
        ------
        InvalidValue
            No flow at all.
        """
        if not given and not self.cross:
            raise InvalidValue("flows", given, "at least one, here or in cross")
        hops = tuple(link.id for link in self.links())
        long = (msgspec.structs.replace(flow, path=flow.path or hops) for flow in given)
        short = (
            msgspec.structs.replace(flow, id=f"{flow.id}{i}", path=(hop,))
            for i, hop in enumerate(hops, 1)
            for flow in self.cross
        )
        return (*long, *short)
