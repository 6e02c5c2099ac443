"""A scenario: links, flows that come and go, changes, seed. One record for the fluid simulator and for ns-3."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from netctrl.errors import FileError, InvalidValue
from netctrl.laws.aqm.arc import ArcQueue, arc_queue
from netctrl.laws.aqm.records import DISCIPLINES, LINK_QUEUES, DesignQueue, DropTailQueue, LinkQueue, Queue
from netctrl.model.design.arc import ArcInputs
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
from netctrl.model.io.files import beside
from netctrl.model.io.record_file import Record
from netctrl.model.io.toml import read_toml, toml_record
from netctrl.model.io.validation_errors import shorten
from netctrl.model.law import ArcLaw
from netctrl.model.link_trace import checked_link_trace, mean_rate, read_trace_of_link
from netctrl.scenario.tcp_aqm.flows import GROUPS, MAX_FLOWS, BulkFlows, FlowGroup, UdpFlows, WebFlows
from netctrl.units import BITS_PER_BYTE, format_quantity

__all__ = [
    "Change",
    "Link",
    "Scenario",
    "design_scenario",
    "packet_only",
    "read_scenario",
    "refuse_packet_only",
    "scenario_from",
]

MAX_SAMPLES = 10_000_000
"""Of all links and groups of flows together."""
MAX_OBJECTS = 10_000_000


class Link(Record, frozen=True, kw_only=True):
    """One direction of a line, with the queue in front of it."""

    id: str
    source: str
    """Node it leaves."""
    target: str
    """Node it enters."""
    capacity: Rate
    """[bit/s]"""
    delay: Duration = 0.0
    """Propagation, one way [s]; part of the `rtt` of the flows that cross it."""
    buffer: Size | None = None
    """[byte]; null is unlimited."""
    queue: LinkQueue = DropTailQueue()
    trace: Any = None
    """What it can send when, in place of `capacity`, which laws go by then: a `LinkTrace`, or a `RateTrace` of one
    column, either of which repeats. In a file the name of one, and `capacity` is its mean where it isn't there."""
    loss: float = 0.0
    """Share of the packets that are lost on the wire, each independently of all others."""
    jitter: Duration = 0.0
    """Greatest further delay [s]; drawn uniformly for each packet, which stays behind those before it."""

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, source=identifier, target=identifier)
        read_fields(self, capacity=rate, delay=instant, buffer=optional(size), queue=record(*LINK_QUEUES))
        share = number("a share from 0 to 0.99", at_least=0.0, at_most=0.99)
        read_fields(self, trace=optional(checked_link_trace), loss=share, jitter=instant)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "another node than source")


class Change(Record, frozen=True, kw_only=True):
    """From `at` on, a link has another capacity or another delay."""

    at: Duration
    link: str
    capacity: Rate | None = None
    delay: Duration | None = None

    def __post_init__(self) -> None:
        read_fields(self, at=instant, link=identifier, capacity=optional(rate), delay=optional(instant))
        if self.capacity is None and self.delay is None:
            raise InvalidValue("capacity", None, "a new capacity, or give a new delay")


class Scenario(Record, frozen=True, kw_only=True):
    """What is simulated. Times in seconds, rates in bit/s, sizes in bytes; text with a unit is read when it is built.

    Raises
    ------
    InvalidValue
        A value out of bounds, a link or flow named twice, a flow over a link that isn't there.
    """

    name: str
    duration: Duration
    links: tuple[Link, ...]
    flows: tuple[FlowGroup, ...]
    changes: tuple[Change, ...] = ()
    warmup: Duration = 0.0
    """Left out of the summary [s]."""
    sample: Duration = 0.1
    """Interval of the time series [s]."""
    packet_size: Size = 1000.0
    """Of a full data packet with its headers [byte]."""
    initial_window: int = 10
    """Of a new TCP connection [packet]; RFC 6928, and 1 in the papers of 2004."""
    seed: int = 1
    step: Duration | None = None
    """Of the fluid simulator [s]; null: chosen from the round-trip times and epochs."""

    def __post_init__(self) -> None:
        read_fields(self, duration=duration, warmup=instant, sample=duration, packet_size=size, step=optional(duration))
        read_fields(self, seed=whole(0, 2**32 - 1), initial_window=whole(1, 1000, "a whole number of packets"))
        read_fields(self, links=records(Link), flows=records(*GROUPS), changes=records(Change))
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        if self.warmup >= self.duration:
            raise InvalidValue("warmup", self.warmup, f"a time shorter than duration ({self.duration:g} s)")
        self._check_names()
        self._check_paths()
        self._check_changes()
        self._check_size()

    def _check_names(self) -> None:
        for what, parts in (("links", self.links), ("flows", self.flows)):
            if not parts:
                raise InvalidValue(what, parts, "at least one")
            seen: set[str] = set()
            for i, part in enumerate(parts):
                if part.id in seen:
                    raise InvalidValue(f"{what}[{i}].id", part.id, f"a name that none of the other {what} has")
                seen.add(part.id)

    def _check_paths(self) -> None:
        links = {link.id: link for link in self.links}
        for group in self.flows:
            for which, path in (("path", group.path), ("ack_path", group.ack_path)):
                where = f"flows.{group.id}.{which}"
                for name in path:
                    if name not in links:
                        raise InvalidValue(where, name, _ids(links))
                for first, second in pairwise(path):
                    if links[first].target != links[second].source:
                        takes = f"links that join: {first} ends at {links[first].target}"
                        raise InvalidValue(where, second, f"{takes}, {second} starts at {links[second].source}")
                if len(set(path)) < len(path):
                    raise InvalidValue(where, path, "each link once")
            delay = sum(links[name].delay for name in group.both_ways)
            if group.rtt[0] < delay * (1.0 - 1e-9) and not isinstance(group, UdpFlows):
                takes = f"at least {delay:g} s, the delays of the lines that it crosses there and back"
                raise InvalidValue(f"flows.{group.id}.rtt", group.rtt[0], takes)

    def _check_changes(self) -> None:
        links = {link.id: link for link in self.links}
        least = {link.id: link.delay for link in self.links}
        seen: set[tuple[str, str, float]] = set()
        for i, change in enumerate(self.changes):
            values = {"capacity": change.capacity, "delay": change.delay}
            made = {(change.link, what, change.at) for what, value in values.items() if value is not None}
            if seen & made:
                raise InvalidValue(f"changes[{i}].at", change.at, "another time: an earlier entry changes the same")
            seen |= made
            if change.link not in links:
                raise InvalidValue(f"changes[{i}].link", change.link, _ids(links))
            if change.capacity is not None and links[change.link].trace is not None:
                raise InvalidValue(f"changes[{i}].capacity", change.capacity, "nothing: the link has a trace")
            if change.at >= self.duration:
                raise InvalidValue(f"changes[{i}].at", change.at, f"a time before the end ({self.duration:g} s)")
            if change.delay is not None:
                least[change.link] = min(least[change.link], change.delay)
        for group in self.flows:
            shortening = sum(links[name].delay - least[name] for name in group.both_ways)
            if shortening > 0.0 and not isinstance(group, UdpFlows) and group.rtt[0] - shortening < 1e-9:
                takes = f"more than {shortening:g} s, by which changes of delay shorten it"
                raise InvalidValue(f"flows.{group.id}.rtt", group.rtt[0], takes)

    def _check_size(self) -> None:
        """What would fill the memory is refused in words."""
        least = self.duration * max(len(self.links), len(self.flows)) / MAX_SAMPLES
        if not max(least, 1e-9) <= self.sample <= self.duration:
            raise InvalidValue("sample", self.sample, f"{least:g} s to the duration ({self.duration:g} s)")
        count = sum(_many(group) for group in self.flows)
        if count > MAX_FLOWS:
            raise InvalidValue("flows", f"{count} flows", f"at most {MAX_FLOWS} in all")
        for group in self.flows:
            if isinstance(group, WebFlows):
                stop = self.duration if group.stop is None else min(group.stop[1], self.duration)
                pages = max(stop - group.start[0], 0.0) / (group.think_time + group.rtt[0])
                if group.sessions * group.objects_per_page * pages > MAX_OBJECTS:
                    takes = f"fewer, or a longer think_time: these ask for more than {MAX_OBJECTS} objects"
                    raise InvalidValue(f"flows.{group.id}.sessions", group.sessions, takes)

    def with_queue(self, queue: Queue, capacity_bit_per_s: float) -> Scenario:
        """The scenario with `queue`, designed for a capacity, on each link that has an `arc` or a `design` queue.

        Raises
        ------
        InvalidValue
            No link has one, or one of them has another capacity.
        """
        links = []
        for link in self.links:
            if isinstance(link.queue, ArcQueue | DesignQueue):
                if abs(link.capacity / capacity_bit_per_s - 1.0) > 1e-9:
                    takes = f"a Design for the {format_quantity(link.capacity, 'bit/s')} of link {link.id}"
                    raise InvalidValue("design", format_quantity(capacity_bit_per_s, "bit/s"), takes)
                link = msgspec.structs.replace(link, queue=queue)
            links.append(link)
        if not any(isinstance(link.queue, ArcQueue | DesignQueue) for link in self.links):
            raise InvalidValue("scenario", self.name, 'one with a link whose queue is of kind "design" or "arc"')
        return msgspec.structs.replace(self, links=tuple(links))


def design_scenario(inputs: ArcInputs, law: ArcLaw) -> Scenario:
    """The plant that ARC was designed for: its flows, one link with its law and a bandwidth-delay product of buffer.

    Round-trip times spread by 2 % around a single one (flows in step are no fluid); a box takes its fewest flows and
    its whole range of round-trip times. 300 s, of which the first 100 s are warm-up.
    """
    low, high = inputs.rtt_s
    rtt = (0.98 * low, 1.02 * high) if low == high else (low, high)
    line = Link(
        id="bottleneck",
        source="left",
        target="right",
        capacity=law.capacity_bit_per_s,
        delay=min(0.01, 0.1 * rtt[0]),
        buffer=max(law.capacity_bit_per_s * high / BITS_PER_BYTE, 10.0 * law.packet_size_bytes),
        queue=arc_queue(law, law.packet_size_bytes),
    )
    flows = BulkFlows(id="bulk", path=(line.id,), rtt=rtt, start=(0.0, 20.0), count=max(1, round(inputs.flows[0])))
    return Scenario(
        name=f"{flows.count} flows through the link of the design",
        duration=300.0,
        warmup=100.0,
        links=(line,),
        flows=(flows,),
        packet_size=law.packet_size_bytes,
    )


def read_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario from a TOML file, strictly.

    Raises
    ------
    FileError
        It can't be read, isn't TOML, or has an unknown, missing or unusable key, which the message names.
    """
    content = read_toml(path)
    if "network" in content:
        raise FileError(path, "is about a network's rates: netctrl.read_network_scenario reads it")
    if "topology" in content:
        raise FileError(path, "is about a data centre: netctrl.read_fabric_scenario reads it")
    for link in content["links"] if isinstance(content.get("links"), list) else []:
        if isinstance(link, dict) and isinstance(link.get("trace"), str):
            link["trace"] = read_trace_of_link(beside(path, link["trace"]))
            link.setdefault("capacity", f"{mean_rate(link['trace'])!r}bit")
    return toml_record(path, content, Scenario)


def packet_only(scenario: Scenario) -> tuple[str, str] | None:
    """The first thing of a scenario's links that only the packet engine has: its place, and what it is."""
    for link in scenario.links:
        kind = link.queue.__struct_config__.tag
        found = {
            "trace": (link.trace is not None, "traces of links"),
            "loss": (link.loss > 0.0, "random loss"),
            "jitter": (link.jitter > 0.0, "jitter"),
            "queue": (isinstance(link.queue, DISCIPLINES), f"queues of kind {kind}"),
        }
        for name, (there, what) in found.items():
            if there:
                return f"links.{link.id}.{name}", what
    return None


def refuse_packet_only(scenario: Scenario) -> None:
    """InvalidValue for what only the packet engine has."""
    found = packet_only(scenario)
    if found is not None:
        raise InvalidValue(*found, 'what this engine has; "packet" has it')


def scenario_from(content: dict[str, Any]) -> Scenario:
    """The scenario in plain dicts and lists, as a result file holds it; msgspec.ValidationError names the key."""
    return msgspec.convert(content, Scenario)


def _ids(links: Iterable[str]) -> str:
    return f"ids of links; there are {shorten(', '.join(links), 200)}"


def _many(group: FlowGroup) -> int:
    return group.sessions if isinstance(group, WebFlows) else group.count
