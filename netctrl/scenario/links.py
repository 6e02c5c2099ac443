"""Links with queues, their changes, and the checks of flows that name the links that they cross."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import fsum, inf, isclose
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_word
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import LINK_QUEUES, LinkQueue
from netctrl.model.io.fields import (
    Duration,
    Label,
    Rate,
    Size,
    flag,
    instant,
    label,
    number,
    optional,
    rate,
    rate_or_0,
    read_fields,
    record,
    size,
)
from netctrl.model.io.record_file import Record
from netctrl.model.io.validation_errors import shorten
from netctrl.model.link_trace import checked_link_trace, trace_bits
from netctrl.scenario.checks import check_ids, tag_of
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.network.policy import POLICIES, DesignPolicy, StaticPacing, messages_of
from netctrl.scenario.network.track import Track, check_track, regulator_of
from netctrl.scenario.tcp_aqm.flows import MAX_FLOWS, Flow
from netctrl.scenario.tcp_aqm.offers import BETWEEN_HOSTS, Demand, Stream, Web
from netctrl.scenario.tcp_aqm.policer import Policer

MAX_SAMPLES = 10_000_000
"""Largest number over all links and groups of flows."""
MAX_OBJECTS = 10_000_000
MAX_STEPS = 1e9
MIN_RTO = 0.2
"""Default least time by which TCP's retransmission timeout exceeds the smoothed round trip, as in Linux [s]."""
INTERVAL = 0.1
"""Default sampling interval of the time series [s]."""


class Link(Record, frozen=True, kw_only=True):
    """One direction of a line, with the queue at its source.

    Raises
    ------
    InvalidValue
        A value out of bounds, or one node at both ends.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.Link(id="line", source="a", target="b", capacity="10Mbit", buffer="60kB", queue="pie").queue.target
    0.015
    """

    id: Label
    """Unique among the links."""
    source: Label
    """Node that the link leaves."""
    target: Label
    """Node that the link enters."""
    capacity: Rate
    """Rate of the link [bit/s]."""
    delay: Duration = 0.0
    """Propagation delay, one way [s]; part of the `rtt` of the flows that cross it."""
    buffer: Size | None = None
    """Size of the buffer [byte]; null is unlimited."""
    queue: LinkQueue = DropTailQueue()
    """Law of the queue, by its `kind`."""
    trace: Any = None
    """Varying capacity: a `LinkTrace`, or a `RateTrace` of one column; both repeat. In a file the name of a trace.
    `capacity` is then what laws assume; in a file it defaults to the trace's mean."""
    loss: float = 0.0
    """Share of the packets lost on the wire."""
    loss_run: float | None = None
    """Mean number of packets that are lost in a row (Gilbert's model); null: each is lost independently."""
    jitter: Duration = 0.0
    """Additional delay of each packet, at random [s]: the largest, or of a `normal` spread the standard deviation."""
    spread: Literal["uniform", "normal"] = "uniform"
    """Of the jitter: evenly from 0 to the largest, or normal around `delay`, but never before it is sent."""
    reorder: bool = False
    """Whether jitter lets packets overtake each other, as netem does; otherwise they keep their order."""
    aggregation: Duration = 0.0
    """Time between bunches in which packets arrive, as acknowledgements over radio do [s]; 0: each by itself."""
    policer: Policer | None = None
    """Token bucket in front of the queue."""
    pfc: Pfc | None = None
    """Thresholds at which the node at the link's end pauses it."""
    weight: float | None = None
    """lambda of HFTraC [1/s²]: cost of a squared backlog [bit²] relative to a squared rate [(bit/s)²]."""

    def __post_init__(self) -> None:
        read_fields(self, id=label, source=label, target=label)
        read_fields(self, capacity=rate, delay=instant, buffer=optional(size), queue=record(*LINK_QUEUES))
        share = number("a share from 0 to 0.99", at_least=0.0, at_most=0.99)
        read_fields(self, trace=optional(checked_link_trace), loss=share, jitter=instant, pfc=optional(record(Pfc)))
        read_fields(self, aggregation=instant, policer=optional(record(Policer)), reorder=flag)
        checked_word("spread", self.spread, ("uniform", "normal"))
        self._check_loss()
        read_fields(self, weight=optional(number("a weight of at least 0, in 1/s²", at_least=0.0)))
        if self.source == self.target:
            raise InvalidValue("target", self.target, "a node other than source")

    def _check_loss(self) -> None:
        if self.reorder and not self.jitter:
            raise InvalidValue("reorder", True, "false without jitter")
        if self.loss_run is None:
            return
        least = max(self.loss / (1.0 - self.loss), 1.0)
        takes = f"null without loss, else at least {least:g} packets" if self.loss else "null without loss"
        bound = number(takes, at_least=least if self.loss else inf, at_most=1e6)
        read_fields(self, loss_run=bound)


class Change(Record, frozen=True, kw_only=True):
    """New capacity or delay of a link, or new rate of a flow, from time `at` on.

    A rate that is given here holds whatever a control commands, as of a regulator that fails, until another change of
    the flow without a `rate`.

    Raises
    ------
    InvalidValue
        A value out of bounds; neither a link nor a flow, or both; nothing that changes.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.Change(at="10s", link="line", capacity="2Mbit").capacity
    2000000.0
    >>> netctrl.Change(at="10s", flow="bursts", rate="25Mbit").rate
    25000000.0
    """

    at: Duration
    """When it changes [s]."""
    link: str = ""
    """Id of the link; empty: it is a flow that changes."""
    capacity: Rate | None = None
    """New capacity [bit/s]; null: as before."""
    delay: Duration | None = None
    """New propagation delay, one way [s]; null: as before."""
    flow: str = ""
    """Id of streams or regulated flows, as of kind bursts."""
    rate: Rate | None = None
    """New mean rate of each flow, with headers [bit/s]; null: the rate that a control commands, or that it offers."""

    def __post_init__(self) -> None:
        read_fields(self, at=instant, capacity=optional(rate), delay=optional(instant), rate=optional(rate_or_0))
        if self.link and self.flow:
            raise InvalidValue("flow", self.flow, "nothing with a link")
        if self.flow:
            read_fields(self, flow=label)
            for name in ("capacity", "delay"):
                if getattr(self, name) is not None:
                    raise InvalidValue(name, getattr(self, name), "nothing with a flow, whose rate changes")
            return
        read_fields(self, link=label)
        if self.rate is not None:
            raise InvalidValue("rate", self.rate, "nothing with a link, whose capacity or delay changes")
        if self.capacity is None and self.delay is None:
            raise InvalidValue("capacity", None, "a new capacity, unless a new delay is given")


class Links:
    """Kind of a scenario whose links are written out; flows name the links that they cross."""


def capacity_at(scenario: Any, ends: np.ndarray) -> np.ndarray:
    """Mean capacity of each of L links in T intervals, from 0 on, that end at these times [s]; (L, T) [bit/s]."""
    starts = np.concatenate(([0.0], ends[:-1]))
    latest = {link.id: link.capacity for link in scenario.links}
    found = {link.id: np.full(len(ends), link.capacity) for link in scenario.links}
    for link in scenario.links:
        if link.trace is not None:
            found[link.id] = np.diff(trace_bits(link.trace, ends), prepend=0.0) / (ends - starts)
    for change in sorted(scenario.changes, key=lambda change: change.at):
        if change.capacity is not None:
            share = np.clip((ends - change.at) / (ends - starts), 0.0, 1.0)  # of each interval after the change
            found[change.link] += share * (change.capacity - latest[change.link])
            latest[change.link] = change.capacity
    return np.array(list(found.values()))


def placed(flows: tuple[Flow, ...], links: tuple[Link, ...]) -> tuple[Flow, ...]:
    """The flows with what they don't say: the only link, the round trip of the links that they cross, and ECN."""
    delay = {link.id: link.delay for link in links}
    only = tuple(delay) if len(delay) == 1 else ()

    def one(flow: Flow) -> Flow:
        if flow.path and flow.ecn is not None and (flow.rtt[1] > 0.0 or not flow.answered):
            return flow
        flow = msgspec.structs.replace(flow, path=flow.path or only, ecn=True if flow.ecn is None else flow.ecn)
        if flow.rtt[1] > 0.0 or not flow.answered:
            return flow
        own = fsum(delay.get(link, 0.0) for link in flow.both_ways)
        return msgspec.structs.replace(flow, rtt=(own, own))

    return tuple(map(one, flows))


def impairments(link: Any) -> dict[str, str]:
    """What a link does to packets, other than to queue them: its fields, and what they are called."""
    there = {
        "loss": (link.loss > 0.0, "random loss"),
        "jitter": (link.jitter > 0.0, "jitter"),
        "aggregation": (link.aggregation > 0.0, "packets in bunches"),
        "policer": (link.policer is not None, "policers"),
    }
    return {name: what for name, (has, what) in there.items() if has}


def under_demands(scenario: Any) -> bool:
    """Whether laws of link rates know of all flows, by demands of one kind over the scenario's intervals.

    Where senders carry all demands and nothing sets rates, these are links and flows like any others.
    """
    flows, interval = scenario.flows, scenario.interval
    drawn = [flow.offers for flow in flows if isinstance(flow.offers, Demand)]
    return (
        (bool(drawn) or scenario.control is not None)
        and all(each.spread == drawn[0].spread for each in drawn)
        and not scenario.changes
        and not any(link.trace is not None or link.pfc or impairments(link) for link in scenario.links)
        and all(flow.demand is not None and flow.demand.mean is not None for flow in flows)
        and all(isclose(flow.demand.lasts(interval), interval) for flow in flows)
        and all(flow.answered or (flow.count == 1 and not any(flow.start) and flow.stop is None) for flow in flows)
    )


def check_links(scenario: Any) -> None:
    """InvalidValue for parts of a `Scenario` that don't fit its links or each other."""
    for each in (_check_kinds, _check_names, _check_paths, _check_changes, _check_size, _check_control):
        each(scenario)


def _check_kinds(scenario: Any) -> None:
    for flow in scenario.flows:
        for name in ("source", "target"):
            if getattr(flow, name) is not None:
                raise InvalidValue(
                    f"flows.{flow.id}.{name}", getattr(flow, name), "no value but in a data centre: a path"
                )
        if isinstance(flow.offers, BETWEEN_HOSTS):
            raise InvalidValue(f"flows.{flow.id}.offers", tag_of(flow.offers), "another kind but in a data centre")
    if scenario.control is not None:
        kinds = (*POLICIES, Track) if under_demands(scenario) else (StaticPacing, DesignPolicy, Track)
        record(*kinds)("control", scenario.control)


def _check_control(scenario: Any) -> None:
    if isinstance(scenario.control, Track):
        check_track(scenario)
        return
    if not messages_of(scenario.control).ideal and not under_demands(scenario):
        raise InvalidValue("control.messages", "late or lost messages", "ideal messages with a network of links")
    known = [link.id for link in scenario.links]
    for name in getattr(scenario.control, "links", ()):
        if name not in known:
            raise InvalidValue("control.links", name, _ids(known))


def _check_names(scenario: Any) -> None:
    check_ids("links", scenario.links)
    check_ids("flows", scenario.flows)


def _check_paths(scenario: Any) -> None:
    links = {link.id: link for link in scenario.links}
    for group in scenario.flows:
        if not group.path:
            raise InvalidValue(f"flows.{group.id}.path", group.path, f"the ids of one or more links: {_ids(links)}")
        if group.answered and group.rtt[0] < 1e-9:
            takes = "a round-trip time from 1ns, as in 500ms, or a range of them"
            raise InvalidValue(f"flows.{group.id}.rtt", group.rtt, takes)
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
                raise InvalidValue(where, path, "each link at most once")
        for name in group.split or ():
            if name not in links:
                raise InvalidValue(f"flows.{group.id}.split", name, _ids(links))
        delay = sum(links[name].delay for name in group.both_ways)
        if group.rtt[0] < delay * (1.0 - 1e-9) and group.answered:
            takes = f"at least {delay:g} s, the delays of the lines that it crosses there and back"
            raise InvalidValue(f"flows.{group.id}.rtt", group.rtt[0], takes)


def _check_changes(scenario: Any) -> None:
    links = {link.id: link for link in scenario.links}
    least = {link.id: link.delay for link in scenario.links}
    seen: set[tuple[str, str, float]] = set()
    for i, change in enumerate(scenario.changes):
        values = {"capacity": change.capacity, "delay": change.delay}
        made = {(f"link {change.link}", what, change.at) for what, value in values.items() if value is not None}
        made |= {(f"flow {change.flow}", "rate", change.at)} if change.flow else set()
        if seen & made:
            raise InvalidValue(
                f"changes[{i}].at", change.at, "another time: an earlier entry changes the same value then"
            )
        seen |= made
        if change.at >= scenario.duration:
            raise InvalidValue(f"changes[{i}].at", change.at, f"a time before the end ({scenario.duration:g} s)")
        if change.flow:
            _check_flow_change(f"changes[{i}]", change, scenario.flows)
            continue
        if change.link not in links:
            raise InvalidValue(f"changes[{i}].link", change.link, _ids(links))
        if change.capacity is not None and links[change.link].trace is not None:
            raise InvalidValue(f"changes[{i}].capacity", change.capacity, "nothing: the link has a trace")
        if change.delay is not None:
            least[change.link] = min(least[change.link], change.delay)
    for group in scenario.flows:
        shortening = sum(links[name].delay - least[name] for name in group.both_ways)
        if shortening > 0.0 and group.answered and group.rtt[0] - shortening < 1e-9:
            takes = f"more than the {shortening:g} s by which changes of delay shorten it"
            raise InvalidValue(f"flows.{group.id}.rtt", group.rtt[0], takes)


def _check_flow_change(where: str, change: Change, flows: tuple[Flow, ...]) -> None:
    known = {group.id: group for group in flows if isinstance(group.offers, Stream) or regulator_of(group)}
    if change.flow not in known:
        takes = f"the id of streams or regulated flows; there are {shorten(', '.join(known), 200) or 'none'}"
        raise InvalidValue(f"{where}.flow", change.flow, takes)
    gate = regulator_of(known[change.flow])
    if gate is not None and change.rate is not None and change.rate > gate.access_rate:
        raise InvalidValue(f"{where}.rate", change.rate, f"at most the access_rate, {gate.access_rate:g} bit/s")


def _check_size(scenario: Any) -> None:
    """Refuse a scenario that would not fit in memory; demands alone are drawn as they are needed."""
    if under_demands(scenario):
        _check_steps(scenario)
        return
    least = scenario.duration * max(len(scenario.links), len(scenario.flows)) / MAX_SAMPLES
    if not max(least, 1e-9) <= scenario.interval <= scenario.duration:
        raise InvalidValue("interval", scenario.interval, f"{least:g} s to the duration ({scenario.duration:g} s)")
    count = sum(group.count for group in scenario.flows)
    if count > MAX_FLOWS:
        raise InvalidValue("flows", f"{count} flows", f"at most {MAX_FLOWS} in all")
    for group in scenario.flows:
        offers = group.offers
        if isinstance(offers, Demand):
            least = max(scenario.duration * group.count / MAX_OBJECTS, 1e-9)
            lasts = offers.lasts(scenario.interval)
            if not least <= lasts <= scenario.duration:
                takes = f"{least:g} s to the duration ({scenario.duration:g} s)"
                raise InvalidValue(f"flows.{group.id}.offers.interval", lasts, takes)
        if isinstance(offers, Web):
            stop = scenario.duration if group.stop is None else min(group.stop[1], scenario.duration)
            pages = max(stop - group.start[0], 0.0) / (offers.think_time + group.rtt[0])
            if group.count * offers.objects_per_page * pages > MAX_OBJECTS:
                takes = f"fewer, or a longer think_time: these ask for more than {MAX_OBJECTS} objects"
                raise InvalidValue(f"flows.{group.id}.count", group.count, takes)


def _check_steps(scenario: Any) -> None:
    """Laws of link rates act once in an interval."""
    steps, interval = scenario.duration / scenario.interval, scenario.interval
    if not 1.0 <= round(steps) <= MAX_STEPS or not isclose(steps, round(steps), rel_tol=1e-6):
        takes = f"a whole number of intervals of {interval:g} s, from 1 to {MAX_STEPS:g}"
        raise InvalidValue("duration", scenario.duration, takes)
    if scenario.warmup_steps >= steps:
        takes = f"a time at least one interval shorter than duration ({scenario.duration:g} s)"
        raise InvalidValue("warmup", scenario.warmup, takes)


def _ids(links: Iterable[str]) -> str:
    return f"ids of links; there are {shorten(', '.join(links), 200)}"
