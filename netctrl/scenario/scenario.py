"""Scenario: network, traffic, control and duration in one record, which every engine takes."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec

from netctrl.errors import InvalidValue, checked_kind, did_you_mean
from netctrl.laws.window.records import SCHEMES, Scheme
from netctrl.model.io.fields import (
    Duration,
    Size,
    duration,
    instant,
    optional,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.scenario.access.flows import ACCESS_GROUPS
from netctrl.scenario.access.network import AccessLine
from netctrl.scenario.bottleneck.line import Bottleneck, SingleFlow
from netctrl.scenario.fabric.flows import HOST_GROUPS
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.links import Link, Links
from netctrl.scenario.network.policy import POLICIES, Policy
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.network.traffic import Demands, TcpDemand
from netctrl.scenario.tcp_aqm.flows import GROUPS

__all__ = ["NETWORKS", "PLACES", "Scenario", "Time", "Traffic", "checked_network", "parts_of"]

NETWORKS = (Links, Routed, AccessLine, *TOPOLOGIES, Bottleneck)
"""Kinds of network."""
_GROUPS = (*GROUPS, *ACCESS_GROUPS, *HOST_GROUPS, Demands, TcpDemand, SingleFlow)
if TYPE_CHECKING:
    AnyNetwork = AnyGroup = AnyControl = Any  # each user knows which one it takes
else:
    AnyNetwork, AnyGroup, AnyControl = reduce(or_, NETWORKS), reduce(or_, _GROUPS), Policy | None


class Time(Record, frozen=True, kw_only=True):
    """Duration of a scenario, and its sampling."""

    duration: Duration
    """Simulated time [s]."""
    warmup: Duration = 0.0
    """Time at the start that summaries leave out [s]."""
    interval: Duration | None = None
    """Sampling interval of the time series [s]; null: the default of the kind of network (`Scenario.interval`)."""
    seed: int = 1
    """Seed of everything random."""
    step: Duration | None = None
    """Step of the fluid model of TCP flows [s]; null: chosen from the round-trip times and epochs."""
    watch: Watch = Watch()
    """Detailed records of a data centre."""

    def __post_init__(self) -> None:
        read_fields(self, duration=duration, warmup=instant, interval=optional(duration), step=optional(duration))
        read_fields(self, seed=whole(0, 2**32 - 1), watch=record(Watch))
        if self.warmup >= self.duration:
            raise InvalidValue("warmup", self.warmup, f"a time shorter than duration ({self.duration:g} s)")


class Traffic(Record, frozen=True, kw_only=True):
    """Groups of flows, and the settings that they share."""

    flows: tuple[AnyGroup, ...] = ()
    """Groups of flows; their kinds depend on the kind of network."""
    packet_size: Size = 1000.0
    """Size of a full data packet with its headers [byte]."""
    initial_window: int = 10
    """Initial window of a TCP connection [packet]; 10 by RFC 6928, 1 in the papers of 2004."""
    sender: Scheme | None = None
    """Window law of flows between hosts whose group has none of its own."""
    retransmission_timeout: Duration | None = None
    """Timeout after which a flow between hosts resends all unacknowledged data [s]; null: ten times the longest round
    trip, at least 1 ms."""

    def __post_init__(self) -> None:
        read_fields(self, flows=records(*_GROUPS), packet_size=size)
        read_fields(self, sender=optional(record(*SCHEMES)), retransmission_timeout=optional(duration))
        read_fields(self, initial_window=whole(1, 1000, "a whole number of packets"))


class Scenario(Record, frozen=True, kw_only=True):
    """Description of a simulation: a network, its traffic, its control, and its duration.

    Times are in seconds, rates in bit/s, sizes in bytes; text with a unit, such as "10Mbit", is converted.

    Raises
    ------
    InvalidValue
        A value out of bounds, or parts that don't fit each other, such as a flow over an unknown link.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.links import Link
    >>> from netctrl.scenario.tcp_aqm.flows import BulkFlows
    >>> line = Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB")
    >>> flows = BulkFlows(id="flows", path=("line",), rtt="50ms", count=2)
    >>> scenario = netctrl.Scenario.of(name="two flows", links=(line,), flows=(flows,), duration="10s")
    >>> scenario.duration, scenario.links[0].capacity, scenario.replace(duration="1min").duration
    (10.0, 10000000.0, 60.0)
    """

    name: str
    """Display name of the scenario."""
    network: AnyNetwork
    """Links, a routed network, an access link, a data centre, or one bottleneck."""
    traffic: Traffic = Traffic()
    """Flows, and the settings that they share."""
    control: AnyControl = None
    """Controller of link rates. For a routed network: a policy. For links: an HFTraC Design whose links have the same
    ids, or static pacing at `factor` times the capacities. Other networks send at their capacities."""
    time: Time
    """Duration, warm-up, sampling and seed."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        read_fields(self, network=record(*NETWORKS), traffic=record(Traffic), time=record(Time))
        read_fields(self, control=optional(record(*POLICIES)))
        self.network.check(self)

    @classmethod
    def of(cls, **fields: Any) -> Scenario:
        """A scenario from the fields of its parts, each by its own name.

        Parameters
        ----------
        **fields
            Fields of `Scenario`, of its `network`, `traffic` and `time`.

        Returns
        -------
        Scenario

        Raises
        ------
        InvalidValue
            An unknown name, or a value that a part refuses.

        Examples
        --------
        >>> import netctrl
        >>> from netctrl.scenario.links import Link
        >>> from netctrl.scenario.tcp_aqm.flows import BulkFlows
        >>> line = Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB")
        >>> flows = BulkFlows(id="flows", path=("line",), rtt="50ms", count=2)
        >>> netctrl.Scenario.of(name="two flows", links=(line,), flows=(flows,), duration="10s").time.duration
        10.0
        """
        given = parts_of(fields)
        for part, kinds in _PARTS.items():
            names = given.get(part, {})
            if isinstance(names, dict):
                kind = next((each for each in kinds if set(names) <= set(each.__struct_fields__)), kinds[0])
                given[part] = _made(kind, names)
        return _made(cls, given)

    def replace(self, **fields: Any) -> Scenario:
        """The scenario with other values of some fields, of its own or of its parts.

        Parameters
        ----------
        **fields
            As in `of`.

        Returns
        -------
        Scenario

        Raises
        ------
        InvalidValue
            As for `of`.
        """
        given = parts_of(fields)
        for part, changed in given.items():
            if isinstance(changed, dict):
                given[part] = _with(part, getattr(self, part), changed)
        return msgspec.structs.replace(self, **given)

    @property
    def links(self) -> tuple[Link, ...]:
        """Links of a network of links."""
        return self.network.links

    @property
    def flows(self) -> tuple[Any, ...]:
        """Groups of flows."""
        return self.traffic.flows

    @property
    def duration(self) -> float:
        """Simulated time [s]."""
        return self.time.duration

    @property
    def warmup(self) -> float:
        """Time at the start that summaries leave out [s]."""
        return self.time.warmup

    @property
    def interval(self) -> float:
        """Sampling interval of the time series [s]."""
        given = self.time.interval
        return self.network.default_interval if given is None else given

    @property
    def steps(self) -> int:
        """Number of intervals in the whole run."""
        return round(self.duration / self.interval)

    @property
    def warmup_steps(self) -> int:
        """Number of intervals that summaries leave out."""
        return round(self.warmup / self.interval)

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self.time.seed


_PARTS: dict[str, tuple[type[Record], ...]] = {"time": (Time,), "traffic": (Traffic,), "network": NETWORKS}
PLACES = {name: part for part, kinds in _PARTS.items() for kind in kinds for name in kind.__struct_fields__}
"""Name of a part's field -> the part."""


def parts_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields by their own names, sorted into parts: a whole part where it is given, or a dict of its fields.

    Raises
    ------
    InvalidValue
        An unknown name, or a field given together with its whole part.
    """
    given = {name: value for name, value in fields.items() if name in Scenario.__struct_fields__}
    found = dict(given)
    for name, value in fields.items():
        if name in given:
            continue
        part = PLACES.get(name)
        if part is None:
            known = (*Scenario.__struct_fields__, *PLACES)
            meant = did_you_mean(name, known)
            raise InvalidValue(name, value, f"a field of a scenario or of its parts: {', '.join(known)}{meant}")
        if part in given:
            raise InvalidValue(name, value, f"no value beside `{part}`, which contains it")
        found.setdefault(part, {})[name] = value
    return found


def checked_network(scenario: Any, *kinds: type[Record]) -> Any:
    """The network of a scenario, of one of these kinds; InvalidValue for another type or kind."""
    network = checked_kind("scenario", scenario, Scenario).network
    if not isinstance(network, kinds):
        got, *takes = (str(kind.__struct_config__.tag) for kind in (type(network), *kinds))
        raise InvalidValue("scenario", f"a network of kind {got}", f"one of kind {' or '.join(takes)}")
    return network


def _with(part: str, held: Record, fields: dict[str, Any]) -> Record:
    known = held.__struct_fields__
    for name, value in fields.items():
        if name not in known:
            meant = did_you_mean(name, known)
            raise InvalidValue(name, value, f"a field of this scenario's {part}: {', '.join(known)}{meant}")
    return msgspec.structs.replace(held, **fields)


def _made(kind: type[Record], fields: dict[str, Any]) -> Any:
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in fields:
            raise InvalidValue(field.name, "nothing", f"a value: {kind.__name__} has no default for it")
    return kind(**fields)
