"""Entries of a scenario list as data: sections of an RFC, cases of a section, groups of flows of a case."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.io.record_file import taken
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import DATAGRAMS, Web

LAW = "LAW"
"""Place of the evaluated law in a case: a group's sender, or a link's queue."""
BOTTLENECK = "bottleneck"
_SPREAD = 0.02
"""Round-trip times of a group differ by so much on both sides: equal ones keep all flows in step."""
_LINKS_SHARE = 0.2
"""Part of the shortest round trip that is on the links of the path, one way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Flows of one class, measured together; endless bulk flows are also measured one by one."""

    id: str
    offers: Any = None
    """What a scenario's flow offers; None: endless data, a number: of bytes."""
    count: int = 1
    """Number of flows, or of Web sessions."""
    sender: Any = "reno"
    """A sender of a scenario, or LAW."""
    rtt: float | None = None
    """Round-trip propagation delay [s]; null: the case's."""
    start: tuple[float, float] = (0.0, 1.0)
    """[s]"""
    stop: float | None = None
    """[s]"""
    ecn: bool = False
    path: tuple[str, ...] = (BOTTLENECK,)
    ack_path: tuple[str, ...] = ()
    measured: bool = True
    """Whether metrics of the group are reported."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Further fields of the scenario's flows, such as `packet_size`."""

    @property
    def endless(self) -> bool:
        """Whether its flows have endless data."""
        return self.offers is None

    @property
    def completes(self) -> bool:
        """Whether its objects have completion times."""
        return isinstance(self.offers, float | Web)


class Line(NamedTuple):
    """A link beside the bottleneck."""

    id: str
    source: str
    target: str
    capacity: float
    """[bit/s]"""


class Turn(NamedTuple):
    """Change of the bottleneck during a case."""

    at: float
    """[s]"""
    capacity: float | None = None
    """[bit/s]"""
    delay: float | None = None
    """One way [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation of a section: the bottleneck, its flows and their times."""

    name: str
    groups: tuple[Group, ...]
    capacity: float = 10e6
    """Of the bottleneck [bit/s]."""
    rtt: float = 0.1
    """Round-trip propagation delay [s]."""
    buffer: float = 1.0
    """Buffer of each link, in products of the bottleneck's capacity and `rtt`."""
    queue: Any = LAW
    """A queue of a scenario, or LAW."""
    others: tuple[Line, ...] = ()
    """Further links, with the bottleneck's buffer and queue; the bottleneck leads from "a" to "b"."""
    duration: float = 120.0
    warmup: float = 20.0
    interval: float = 0.02
    """Of samples [s]."""
    packet: int = 1500
    """[byte], with headers."""
    initial_window: int = 10
    loss: float = 0.0
    """Share of packets lost on the wire."""
    jitter: float = 0.0
    """[s]"""
    reorder: bool = False
    """Whether jitter lets packets overtake each other."""
    turns: tuple[Turn, ...] = ()
    ratio: tuple[str, str] | None = None
    """Two groups whose flows' goodputs are compared."""
    extra: tuple[str, ...] = ()
    """Further metrics (`netctrl.evaluation.metrics`)."""
    note: str = ""
    """Where it departs from the RFC."""

    @property
    def packets(self) -> float:
        """Packets that the bottleneck could send, an upper bound of a run's work."""
        fastest = max(self.capacity, *(turn.capacity or 0.0 for turn in self.turns), 0.0)
        return self.duration * fastest / BITS_PER_BYTE / self.packet

    def named(self, name: str) -> Case:
        """The case with another name."""
        return replace(self, name=name)

    def faster(self, factor: float) -> Case:
        """The case with all times on the clock multiplied by a factor; delays stay."""
        if factor == 1.0:
            return self
        groups = tuple(
            replace(
                group,
                start=(group.start[0] * factor, group.start[1] * factor),
                stop=None if group.stop is None else group.stop * factor,
            )
            for group in self.groups
        )
        turns = tuple(turn._replace(at=turn.at * factor) for turn in self.turns)
        return replace(self, groups=groups, turns=turns, duration=self.duration * factor, warmup=self.warmup * factor)


class Entry(NamedTuple):
    """Section of an RFC: its cases, the metrics that it defines, or the reason why it isn't run."""

    section: str
    title: str
    cases: tuple[Case, ...] = ()
    metrics: tuple[str, ...] = ()
    """Names of metrics that all cases report, where the section defines metrics."""
    reason: str = ""
    """Why it isn't run, for all laws or for those outside `only`."""
    only: frozenset[str] | None = None
    """Names of the laws that it is run for; None: all."""
    varied: bool = False
    """Whether its one case is run with each parameter of the law halved and doubled."""

    def reason_for(self, law: str) -> str | None:
        """Why the section isn't run for a law of this name; None where it is, or defines metrics."""
        left_out = self.only is not None and law not in self.only
        return self.reason if left_out or not (self.cases or self.metrics) else None


class Plan(NamedTuple):
    """A case as a scenario, and what its groups of flows are."""

    case: Case
    scenario: Scenario
    rows: dict[str, tuple[int, ...]]
    """Group's id -> its rows in the result."""


def plan_case(case: Case, law: Any, *, noise: bool = True) -> Plan:
    """The scenario of a case with the law in its place.

    Parameters
    ----------
    case : Case
    law : QueueRecord or sender
        Takes the place of LAW.
    noise : bool
        Whether packets are delayed behind the bottleneck by up to a packet's time, at random. Without any noise flows
        keep their order of arrival, and a full drop-tail queue always refuses the same ones (Floyd, Jacobson, "On
        traffic phase effects in packet-switched gateways", 1992).

    Raises
    ------
    InvalidValue
        The scenario refuses the law.
    """
    product = case.capacity * case.rtt / BITS_PER_BYTE
    queue = case.queue if case.queue is not LAW else law
    size = max(case.buffer * product, 4.0 * case.packet)
    lines = (Line(BOTTLENECK, "a", "b", case.capacity), *case.others)
    shortest = min([case.rtt, *(group.rtt for group in case.groups if group.rtt is not None)])
    delay = _LINKS_SHARE * shortest / len(lines)
    first, *further = (Link(**line._asdict(), delay=delay, buffer=size, queue=queue) for line in lines)
    jitter = max(case.jitter, case.packet * BITS_PER_BYTE / case.capacity if noise else 0.0)
    wire = msgspec.structs.replace(first, loss=case.loss, jitter=jitter, reorder=case.reorder)
    flows, rows = [], {}
    for group in case.groups:
        many = [f"{group.id}-{k}" for k in range(1, group.count + 1)] if group.endless else [group.id]
        rows[group.id] = tuple(range(len(flows), len(flows) + len(many)))
        flows += [_flows(case, group, name, law, 1 if group.endless else group.count) for name in many]
    scenario = Scenario(
        **taken(case, "name", "initial_window", "duration", "warmup", "interval"),
        links=(wire, *further),
        changes=tuple(Change(**turn._asdict(), link=BOTTLENECK) for turn in case.turns),
        flows=tuple(flows),
        packet_size=case.packet,
    )
    return Plan(case, scenario, rows)


def _flows(case: Case, group: Group, name: str, law: Any, count: int) -> Flow:
    rtt, given = case.rtt if group.rtt is None else group.rtt, dict(group.fields)
    if not isinstance(group.offers, DATAGRAMS):
        given |= {"rtt": ((1.0 - _SPREAD) * rtt, (1.0 + _SPREAD) * rtt), "ack_path": group.ack_path}
        given["sender"] = law if group.sender is LAW else group.sender
    stop = None if group.stop is None else (group.stop, group.stop)
    return Flow(id=name, count=count, stop=stop, **taken(group, "offers", "path", "start", "ecn"), **given)
