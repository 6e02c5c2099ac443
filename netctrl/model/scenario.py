"""A scenario: links, flows that come and go, changes, seed. One record for the fluid simulator and for ns-3."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from netctrl.errors import FileError, InvalidValue
from netctrl.model.arc import ArcInputs
from netctrl.model.gain import ArcLaw
from netctrl.model.quantity import Duration, Rate, Size, Span, duration, instant, number, rate, settle, size, span
from netctrl.model.queue import ArcQueue, DesignQueue, DropTailQueue, Queue, arc_queue
from netctrl.units import BITS_PER_BYTE, format_quantity

__all__ = [
    "BulkFlows",
    "Change",
    "FastFlows",
    "FlowDraw",
    "FlowGroup",
    "Link",
    "Scenario",
    "WebFlows",
    "design_scenario",
    "read_scenario",
    "scenario_from",
]

MAX_FLOWS = 100_000
MAX_SAMPLES = 10_000_000
_MAX_BYTES = 2**20
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_NAME_TAKES = "a name of letters, digits, '_', '.' and '-' that starts with a letter"


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Link(_Record, frozen=True, kw_only=True):
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
        _named(self)
        settle(self, capacity=rate, delay=instant, buffer=size)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "another node than source")


class _Flows(_Record, frozen=True, kw_only=True, tag_field="kind"):
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

    def _settle(self, count: str) -> None:
        _named(self)
        settle(self, rtt=span, start=span, stop=span)
        if self.rtt[0] <= 0.0:
            raise InvalidValue("rtt", self.rtt, "a round-trip time above 0, as in 500ms, or a range of them")
        if self.stop is not None and self.stop[0] <= self.start[1]:
            raise InvalidValue("stop", self.stop, f"times after the last start ({self.start[1]:g} s)")
        if not self.path:
            raise InvalidValue("path", self.path, "the ids of one link or more")
        _count(self, count)


class BulkFlows(_Flows, frozen=True, kw_only=True, tag="bulk"):
    """TCP flows that always have data."""

    count: int
    classes: int | None = None
    """Flows are merged into this many classes of equal size, each with one RTT and one start; null: each its own.
    ns-3 knows no classes and runs `count` flows."""

    def __post_init__(self) -> None:
        self._settle("count")
        if self.classes is not None and not 1 <= self.classes <= self.count:
            raise InvalidValue("classes", self.classes, f"a number from 1 to count ({self.count})")


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
        self._settle("sessions")
        settle(self, mean_object=size, max_object=size, think_time=duration)
        settle(self, pareto_shape=number("a shape above 1 (the mean must exist)", above=1.0))
        if not 1 <= self.objects_per_page <= 1000:
            raise InvalidValue("objects_per_page", self.objects_per_page, "a number from 1 to 1000")
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
        self._settle("count")
        settle(self, max_rate=rate, gain=number("a gain above 0", above=0.0))


FlowGroup = BulkFlows | WebFlows | FastFlows
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


class Change(_Record, frozen=True, kw_only=True):
    """From `at` on, a link has another capacity or another delay."""

    at: Duration
    link: str
    capacity: Rate | None = None
    delay: Duration | None = None

    def __post_init__(self) -> None:
        settle(self, at=instant, capacity=rate, delay=instant)
        if self.capacity is None and self.delay is None:
            raise InvalidValue("capacity", None, "a new capacity, or give a new delay")


class Scenario(_Record, frozen=True, kw_only=True):
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
        settle(self, duration=duration, warmup=instant, sample=duration, packet_size=size, step=duration)
        if not self.name or len(self.name) > 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        if not 0 <= self.seed < 2**32:
            raise InvalidValue("seed", self.seed, "a whole number from 0 to 4294967295")
        if not 1 <= self.initial_window <= 1000:
            raise InvalidValue("initial_window", self.initial_window, "a whole number of packets from 1 to 1000")
        if self.warmup >= self.duration:
            raise InvalidValue("warmup", self.warmup, f"a time shorter than duration ({self.duration:g} s)")
        if not 1 <= self.duration / self.sample <= MAX_SAMPLES:
            least = self.duration / MAX_SAMPLES
            raise InvalidValue("sample", self.sample, f"{least:g} s to the duration ({self.duration:g} s)")
        self._check_names()
        self._check_paths()

    def _check_names(self) -> None:
        for what, records in (("links", self.links), ("flows", self.flows)):
            if not records:
                raise InvalidValue(what, records, "at least one")
            names = [record.id for record in records]
            for name in names:
                if names.count(name) > 1:
                    raise InvalidValue(f"{what}.id", name, "a name that no other of them has")
        if sum(_many(group) for group in self.flows) > MAX_FLOWS:
            raise InvalidValue("flows", sum(_many(group) for group in self.flows), f"at most {MAX_FLOWS} in all")

    def _check_paths(self) -> None:
        links = {link.id: link for link in self.links}
        known = ", ".join(links)
        for group in self.flows:
            for which, path in (("path", group.path), ("ack_path", group.ack_path)):
                where = f"flows.{group.id}.{which}"
                for name in path:
                    if name not in links:
                        raise InvalidValue(where, name, f"ids of links; there are {known}")
                for first, second in pairwise(path):
                    if links[first].target != links[second].source:
                        takes = f"links that join: {first} ends at {links[first].target}"
                        raise InvalidValue(where, second, f"{takes}, {second} starts at {links[second].source}")
                if len(set(path)) < len(path):
                    raise InvalidValue(where, path, "each link once")
            delay = 2.0 * sum(links[name].delay for name in group.path)
            if group.rtt[0] < delay:
                takes = f"at least {delay:g} s, twice the delay of the links of its path"
                raise InvalidValue(f"flows.{group.id}.rtt", group.rtt[0], takes)
        for change in self.changes:
            if change.link not in links:
                raise InvalidValue("changes.link", change.link, f"ids of links; there are {known}")
            if change.at >= self.duration:
                raise InvalidValue("changes.at", change.at, f"a time before the end ({self.duration:g} s)")

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
            raise InvalidValue("design", self.name, 'a scenario with a link whose queue is of kind "design" or "arc"')
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
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise FileError(path, f"can't be read: {error.strerror}") from None
    if len(text) > _MAX_BYTES:
        raise FileError(path, f"is larger than a scenario may be ({_MAX_BYTES // 2**20} MiB)")
    try:
        content = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"is no TOML: {error}") from None
    except RecursionError:
        raise FileError(path, "is no scenario: nested too deeply") from None
    try:
        return scenario_from(content)
    except InvalidValue as error:
        raise FileError(path, str(error)) from None
    except msgspec.ValidationError as error:
        raise FileError(path, _where_first(str(error))) from None


def scenario_from(content: dict[str, Any]) -> Scenario:
    """The scenario in plain dicts and lists, as a TOML or JSON file holds it; msgspec.ValidationError names the key."""
    return msgspec.convert(content, Scenario)


def _where_first(message: str) -> str:
    """msgspec's "what - at `$.links[0].capacity`" as "links[0].capacity: what"."""
    what, _, where = message.rpartition(" - at `$")
    if not what:
        return message
    return f"{where.rstrip('`').lstrip('.')}: {what}" if where != "`" else what


def _named(record: Any) -> None:
    if not _NAME.fullmatch(record.id):
        raise InvalidValue("id", record.id, _NAME_TAKES)


def _count(record: Any, field: str) -> None:
    if not 1 <= getattr(record, field) <= MAX_FLOWS:
        raise InvalidValue(field, getattr(record, field), f"a whole number from 1 to {MAX_FLOWS}")


def _many(group: FlowGroup) -> int:
    return group.sessions if isinstance(group, WebFlows) else group.count
