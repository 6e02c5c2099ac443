"""A scenario: links, flows that come and go, changes, seed. One record for the fluid simulator and for ns-3."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.errors import FileError, InvalidValue, checked_word
from netctrl.laws.aqm.arc import ArcQueue, arc_queue
from netctrl.laws.aqm.records import QUEUES, DesignQueue, DropTailQueue, Queue
from netctrl.model.design.arc import ArcInputs
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    Span,
    duration,
    flag,
    identifier,
    instant,
    number,
    optional,
    rate,
    read_fields,
    record,
    records,
    size,
    span,
    texts,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.model.io.toml import read_toml, toml_record
from netctrl.model.io.validation_errors import shorten
from netctrl.model.law import ArcLaw
from netctrl.register import TCP_SENDERS
from netctrl.units import BITS_PER_BYTE, format_quantity

__all__ = [
    "BulkFlows",
    "Change",
    "FastFlows",
    "FlowDraw",
    "FlowGroup",
    "Link",
    "Scenario",
    "UdpFlows",
    "WebFlows",
    "design_scenario",
    "read_scenario",
    "scenario_from",
]

MAX_FLOWS = 100_000
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
    queue: Queue = DropTailQueue()

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, source=identifier, target=identifier)
        read_fields(self, capacity=rate, delay=instant, buffer=optional(size), queue=record(*QUEUES))
        if self.source == self.target:
            raise InvalidValue("target", self.target, "another node than source")


class _Flows(Record, frozen=True, kw_only=True, tag_field="kind"):
    """What all groups of flows have."""

    id: str
    path: tuple[str, ...]
    """Ids of the links that the data crosses, in order."""
    rtt: Span
    """Round-trip propagation delay of the whole path [s]; a range is drawn from uniformly."""
    start: Span = (0.0, 0.0)
    """When they start [s]; a range is drawn from uniformly."""
    stop: Span | None = None
    """When they stop [s]; null: never."""
    ack_path: tuple[str, ...] = ()
    """Ids of the links that the acknowledgements cross; empty: links that are never busy."""
    ecn: bool = True
    """Can be marked; else it is dropped."""
    sender: str = "reno"
    """A law of `netctrl.tcp_senders`: reno, cubic, htcp, or one of another package."""

    @property
    def both_ways(self) -> tuple[str, ...]:
        """Ids of the lines that a packet and its acknowledgement cross; without `ack_path` they are the same ones."""
        return (*self.path, *(self.ack_path or self.path))

    def _read(self, count: str) -> None:
        read_fields(
            self, id=identifier, path=texts, rtt=span, start=span, stop=optional(span), ack_path=texts, ecn=flag
        )
        read_fields(self, **{count: whole(1, MAX_FLOWS)})
        checked_word("sender", self.sender, tuple(TCP_SENDERS))
        if self.rtt[0] < 1e-9 and not isinstance(self, UdpFlows):
            raise InvalidValue("rtt", self.rtt, "a round-trip time from 1ns, as in 500ms, or a range of them")
        if self.stop is not None and self.stop[0] <= self.start[1]:
            raise InvalidValue("stop", self.stop, f"times after the last start ({self.start[1]:g} s)")
        if not self.path:
            raise InvalidValue("path", self.path, "the ids of one link or more")


class BulkFlows(_Flows, frozen=True, kw_only=True, tag="bulk"):
    """TCP flows that always have data."""

    count: int
    classes: int | None = None
    """Flows are merged into this many classes of equal size, each with one RTT and one start; null: each its own.
    ns-3 knows no classes and runs `count` flows."""

    def __post_init__(self) -> None:
        self._read("count")
        read_fields(self, classes=optional(whole(1, self.count, "no more classes than flows, a whole number")))


class WebFlows(_Flows, frozen=True, kw_only=True, tag="web"):
    """Sessions that load a page of a few objects, think, and load the next.

    Source: ARC paper, Section IV (Pareto sizes of shape 1.2 and mean 5 kB, exponential think time of 7 s).
    """

    sessions: int
    objects_per_page: int = 2
    mean_object: Size = 5e3
    pareto_shape: float = 1.2
    max_object: Size = 10e6
    """Sizes are cut off here [byte]."""
    think_time: Duration = 7.0
    """Mean of an exponential distribution, from the end of a page to the next [s]."""

    def __post_init__(self) -> None:
        self._read("sessions")
        read_fields(self, mean_object=size, max_object=size, think_time=duration)
        shape = number("a shape above 1 (the mean must exist), to 100", above=1.0, at_most=100.0)
        read_fields(self, objects_per_page=whole(1, 1000), pareto_shape=shape)
        if self.max_object <= self.mean_object:
            raise InvalidValue("max_object", self.max_object, "a size above mean_object")


class FastFlows(_Flows, frozen=True, kw_only=True, tag="fast"):
    """Senders whose rate is max_rate · exp(−gain · price/rtt), with the price that a `fast-arc` queue marks.

    Fluid only. Source: Paganini, Wang, Low, Doyle, INFOCOM 2003 (reference [14] of the ARC paper), static source law.
    """

    count: int
    max_rate: Rate
    gain: float
    """a of the source law."""

    def __post_init__(self) -> None:
        self._read("count")
        read_fields(self, max_rate=rate, gain=number("a gain above 0, to 1e9", above=0.0, at_most=1e9))


class UdpFlows(_Flows, frozen=True, kw_only=True, tag="udp"):
    """Senders of whole packets at a rate that nothing changes, each with a phase of its own. Packet engine only."""

    count: int
    rate: Rate
    """Of each, with headers."""
    spacing: Literal["constant", "poisson"] = "poisson"
    rtt: Span = (0.0, 0.0)
    """Counts for nothing: nobody answers."""

    def __post_init__(self) -> None:
        self._read("count")
        read_fields(self, rate=rate)
        checked_word("spacing", self.spacing, ("constant", "poisson"))


GROUPS = (BulkFlows, WebFlows, FastFlows, UdpFlows)
FlowGroup = BulkFlows | WebFlows | FastFlows | UdpFlows
"""Every kind of flows; in a file, `kind` tells which."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowDraw:
    """The flows of one group, one row each; arrays of one length.

    Parameters
    ----------
    rtt_s : ndarray
        Round-trip propagation delay [s].
    start_s, stop_s : ndarray
        When it starts and stops [s]; stop is inf where it never does.
    flows : ndarray
        How many flows the row stands for; 1 but for merged classes.
    """

    rtt_s: np.ndarray
    start_s: np.ndarray
    stop_s: np.ndarray
    flows: np.ndarray


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
    return toml_record(path, content, Scenario)


def scenario_from(content: dict[str, Any]) -> Scenario:
    """The scenario in plain dicts and lists, as a result file holds it; msgspec.ValidationError names the key."""
    return msgspec.convert(content, Scenario)


def _ids(links: Iterable[str]) -> str:
    return f"ids of links; there are {shorten(', '.join(links), 200)}"


def _many(group: FlowGroup) -> int:
    return group.sessions if isinstance(group, WebFlows) else group.count
