"""Scenario: links, flows, control and duration in one record, which every engine takes."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, did_you_mean
from netctrl.model.io.display import Shown
from netctrl.model.io.fields import (
    Duration,
    Size,
    duration,
    flag,
    instant,
    optional,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.checks import tag_of
from netctrl.scenario.fabric.flows import of_links
from netctrl.scenario.fabric.links import topology_flows, topology_links
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.links import (
    INTERVAL,
    MIN_RTO,
    Change,
    Link,
    Links,
    capacity_at,
    check_links,
    placed,
    under_demands,
)
from netctrl.scenario.network.policy import POLICIES, Policy
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.network.track import Track
from netctrl.scenario.parking_lot import ParkingLot
from netctrl.scenario.tcp_aqm.flows import Flow

BUILDERS = (Bottleneck, ParkingLot, Routed)
"""Kinds of network that become links and flows."""
NETWORKS = (*TOPOLOGIES, *BUILDERS)
"""Kinds of network that are given in the place of links."""
_CONTROLS = (*POLICIES, Track)
_PACKET_SIZE = 1000.0
if TYPE_CHECKING:
    AnyNetwork = AnyControl = Any  # each user knows which one it takes
else:
    AnyNetwork, AnyControl = reduce(or_, NETWORKS) | None, Policy | Track | None


class Scenario(Shown, Record, frozen=True, kw_only=True):
    """Description of a simulation: links, flows, control, and duration.

    Times are in seconds, rates in bit/s, sizes in bytes; text with a unit, such as "10Mbit", is converted. Records may
    be given as in a file, as dicts.

    Raises
    ------
    InvalidValue
        A value out of bounds, or parts that don't fit each other, such as a flow over an unknown link.

    Examples
    --------
    >>> import netctrl
    >>> line = {"id": "line", "source": "left", "target": "right", "capacity": "10Mbit", "buffer": "60kB"}
    >>> flows = {"sender": "cubic", "rtt": "50ms", "count": 2}
    >>> scenario = netctrl.Scenario(name="two flows", links=[line], flows=[flows], duration="10s")
    >>> scenario.duration, scenario.links[0].capacity, scenario.replace(duration="1min").duration
    (10.0, 10000000.0, 60.0)
    """

    name: str = "scenario"
    """Display name of the scenario."""
    links: tuple[Link, ...] = ()
    """Links, each one direction of a line, unless `network` stands for them."""
    flows: tuple[Flow, ...] = ()
    """Groups of flows."""
    changes: tuple[Change, ...] = ()
    """Capacities and delays of links, and rates of flows, that change during the run."""
    network: AnyNetwork = None
    """A data centre in the place of links; or a bottleneck, a parking lot or a graph with routed demands, which becomes
    links and flows, as a data centre whose senders are TCP or streams."""
    control: AnyControl = None
    """Controller of link rates. Under demands alone: a policy. Else an HFTraC Design whose links have the same ids, or
    static pacing at `factor` times the capacities; or of flows' rates: a CONNET Design that tracks a delay. Without one
    links send at their capacities."""
    duration: Duration
    """Simulated time [s]."""
    warmup: Duration = 0.0
    """Time at the start that figures leave out [s]."""
    interval: Duration = None
    """Sampling interval of the time series [s]; null: the default of the kind of network, 100 ms for links."""
    seed: int = 1
    """Seed of everything random."""
    packet_size: Size = None
    """Size of a full data packet with its headers [byte]; null: 1000, of a graph with routed demands 1500; a data
    centre has sizes of its own."""
    initial_window: int = 10
    """Initial window of a TCP connection [packet]; 10 by RFC 6928, 1 in the papers of 2004."""
    min_rto: Duration = MIN_RTO
    """Least time by which the retransmission timeout of TCP exceeds the smoothed round trip [s]; 0.2 as in Linux.
    Packet engine; elsewhere it is what the engine's own TCP has, and another is refused."""
    step: Duration | None = None
    """Step of the fluid model of TCP flows [s]; null: chosen from the round-trip times and epochs."""
    per_demand: bool | None = None
    """Whether the fluid of demands tracks backlogs by demand: a link's departures then have the composition of its
    backlog, and each demand has its own loss, throughput and delay. Otherwise departures split in the demands' nominal
    shares. Packet engines always track demands."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        read_fields(self, links=records(Link), changes=records(Change))
        read_fields(self, network=optional(record(*NETWORKS)), control=optional(record(*_CONTROLS)))
        read_fields(self, flows=records(Flow), per_demand=optional(flag))
        read_fields(self, duration=duration, warmup=instant, min_rto=duration, step=optional(duration))
        read_fields(self, seed=whole(0, 2**32 - 1))
        if not self.links:
            self._build()
        if self.network is None:
            read_fields(self, flows=lambda _, flows: placed(flows, self.links))
        if self.interval is None:
            msgspec.structs.force_setattr(self, "interval", getattr(self.network, "default_interval", INTERVAL))
        if self.packet_size is None and self.network is None:
            msgspec.structs.force_setattr(self, "packet_size", _PACKET_SIZE)
        read_fields(self, interval=duration, packet_size=optional(size))
        read_fields(self, initial_window=whole(1, 1000, "a whole number of packets"))
        if self.warmup >= self.duration:
            raise InvalidValue("warmup", self.warmup, f"a time shorter than duration ({self.duration:g} s)")
        if self.network is None:
            check_links(self)
            return
        if self.links or self.changes:
            raise InvalidValue(
                "network", f"a network of kind {tag_of(self.kind)}", "none beside links and their changes"
            )
        self.network.check(self)

    def _build(self) -> None:
        """Links and flows in the place of a network that is a builder of them."""
        more: dict[str, Any] = {}
        if isinstance(self.network, BUILDERS):
            links, flows = self.network.links(), self.network.flows(self.flows, self.duration)
            more = getattr(self.network, "usual", more)
        elif isinstance(self.network, TOPOLOGIES) and of_links(self.flows):
            links, flows = topology_links(self.network), topology_flows(self.network, self.flows, self.seed)
            more = {"interval": min(INTERVAL, self.duration / 100.0)}  # often a short run
        else:
            return
        more = {name: value for name, value in more.items() if getattr(self, name) is None}
        for name, value in {"links": links, "flows": flows, "network": None, **more}.items():
            msgspec.structs.force_setattr(self, name, value)

    def replace(self, **fields: Any) -> Scenario:
        """The scenario with other values of some fields, its own or those of its `network`.

        Parameters
        ----------
        **fields
            Fields of `Scenario`, and of its network, by their names.

        Raises
        ------
        InvalidValue
            An unknown name, or a value that the scenario refuses.
        """
        own = {name: value for name, value in fields.items() if name in self.__struct_fields__}
        inside = {name: value for name, value in fields.items() if name not in own}
        if inside:
            known = () if self.network is None else self.network.__struct_fields__
            for name, value in inside.items():
                if name not in known or "network" in own:
                    names = (*self.__struct_fields__, *known)
                    raise InvalidValue(name, value, f"one of {', '.join(names)}{did_you_mean(name, names)}")
            own["network"] = msgspec.structs.replace(self.network, **inside)
        return msgspec.structs.replace(self, **own)

    @property
    def kind(self) -> type:
        """Kind of its network, by which engines choose how to run it: `Links`, or the type of `network`."""
        return Links if self.network is None else type(self.network)

    @property
    def under_demands(self) -> bool:
        """Whether laws of link rates know of all its flows, by demands of one kind over its intervals.

        Its runs then differ in what demands send.
        """
        return self.network is None and under_demands(self)

    @property
    def link_ids(self) -> tuple[str, ...]:
        """Ids of the links, in results."""
        return tuple(link.id for link in self.links) if self.network is None else self.network.link_ids

    def capacity_at(self, ends: np.ndarray) -> np.ndarray:
        """Mean capacity of each of L links in T intervals, as an array of shape (L, T) [bit/s].

        Parameters
        ----------
        ends : array of shape (T,)
            Ends of the intervals [s]; the first begins at 0.
        """
        return capacity_at(self, ends) if self.network is None else self.network.capacity_at(ends)

    @property
    def steps(self) -> int:
        """Number of intervals in the whole run."""
        return round(self.duration / self.interval)

    @property
    def warmup_steps(self) -> int:
        """Number of intervals that figures leave out."""
        return round(self.warmup / self.interval)


def checked_demands(scenario: Any) -> Scenario:
    """A scenario under demands alone; InvalidValue for another."""
    found = checked_kind("scenario", scenario, Scenario)
    if not found.under_demands:
        takes = 'demands of one kind over its intervals, as network.kind = "routed" makes them, and nothing else'
        raise InvalidValue("scenario", found.name, takes)
    return found


def checked_network(scenario: Any, *kinds: type) -> Any:
    """The network of a scenario, of one of these kinds; None for links. InvalidValue for another type or kind."""
    found = checked_kind("scenario", scenario, Scenario)
    if found.kind not in kinds:
        got, *takes = map(tag_of, (found.kind, *kinds))
        raise InvalidValue("scenario", f"a network of kind {got}", f"one of kind {' or '.join(takes)}")
    return found.network
