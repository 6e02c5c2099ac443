"""A scenario as the packet engine's tables: routes, flows, the agenda of starts and changes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.tcp.rows import WIDTH
from netctrl.model.design.design import HftracDesign
from netctrl.scenario.tcp_aqm.flows import FlowGroup, UdpFlows, WebFlows
from netctrl.scenario.tcp_aqm.scenario import Link, Scenario
from netctrl.sim.heap import PLACE_BITS, event
from netctrl.sim.packet.kernel import CAPACITY, DELAY, FLOW_STARTS, LINE_DELAY, SESSION_STARTS
from netctrl.sim.packet.links.tables import (
    Line,
    Queues,
    link_tables,
    nanoseconds,
    queue_tables,
    trace_table,
    whole_rate,
)
from netctrl.sim.packet.rates import RateControl, RateMemory, rate_memory, scenario_control
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.tables import rate_tables, set_sender
from netctrl.sim.packet.senders.tcp import TCP, UDP
from netctrl.sim.packet.state import EPOCH, FLOW, LINK, META, PACKET, SESSION, WAY, PacketState
from netctrl.sim.tables import chained
from netctrl.sim.tcp_aqm.traffic import draw_flows
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "ANSWERED",
    "ARRIVED",
    "ENDLESS",
    "PacketProblem",
    "Traffic",
    "first_state",
    "flow_row",
    "packet_problem",
]

_NS = 1e9
ENDLESS = 1 << 60
_RING = 64
_PACKETS = 4096
_MAX_PLACES = 1 << PLACE_BITS
_MAX_GAP_S = 10.0
ARRIVED, ANSWERED = -1, -2
"""End of a path for data, and for acknowledgements."""
NO_WAYS = np.zeros((0, len(WAY)))

Agenda = list[tuple[int, int, int, int]]
"""When, what, which, and a value (`netctrl.sim.packet.kernel`)."""


class Traffic(NamedTuple):
    """What flows, and what is drawn for it."""

    flow: np.ndarray
    """(F, ...) rows."""
    session: np.ndarray
    """(S, ...) rows."""
    route: np.ndarray
    agenda: Agenda
    """In order."""
    web: np.ndarray
    """(G, 4) of groups of Web sessions."""
    random: np.ndarray
    """(L + F + S,) states of generators."""
    weight: np.ndarray
    """(F,) in `drr` queues."""
    senders: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Of `netctrl.sim.packet.senders.tables.rate_tables`."""
    ways: np.ndarray = NO_WAYS


class PacketProblem(NamedTuple):
    """What the kernel takes."""

    state: PacketState
    interval: int
    """Of samples [ns]."""
    full: int
    """A packet with its headers [byte]."""
    end: int
    """[ns]"""
    rates: tuple[RateControl, RateMemory] | None = None
    """None where no law sets the links' rates."""


def packet_problem(scenario: Scenario, design: HftracDesign | None = None) -> PacketProblem:
    """The kernel's tables for a scenario.

    Raises
    ------
    InvalidValue
        A value that the engine can't hold: its name in the scenario; what `scenario_control` refuses.
    """
    full = _packet_size(scenario)
    interval, end = round(scenario.sample * _NS), round(scenario.duration * _NS)
    samples = int(scenario.duration / scenario.sample * (1.0 + 1e-12))
    queues = link_tables(scenario.links, full)
    control = scenario_control(scenario, queues[0], design)
    flow, session, route, agenda = _flows(scenario, full)
    seeds = np.random.SeedSequence(scenario.seed, spawn_key=(len(scenario.flows) + 1,))
    traffic = Traffic(
        flow=flow,
        session=session,
        route=route,
        agenda=sorted([*agenda, *_changes(scenario, flow)]),
        web=np.array([_web(group) for group in scenario.flows]),
        random=seeds.generate_state(len(scenario.links) + len(flow) + len(session), np.uint64),
        weight=np.array([group.weight for group in scenario.flows])[flow[:, FLOW["group"]]],
        senders=rate_tables(scenario, flow),
    )
    state = first_state(scenario.links, queues, traffic, full, samples, scenario.seed)
    rates = None if control is None else (control, rate_memory(control, len(flow)))
    return PacketProblem(state, interval, full, end, rates)


def first_state(
    links: Sequence[Link | Line], queues: Queues, traffic: Traffic, full: int, samples: int = 0, seed: int = 0
) -> PacketState:
    """All tables before the first event.

    Raises
    ------
    InvalidValue
        Too many flows.
    """
    (link, queue, parameters), flow = queues, traffic.flow
    L, F, S, G = len(link), len(flow), len(traffic.session), len(traffic.web)
    subqueue, heads = queue_tables(links, link, traffic.weight, full, seed)
    allowed, rate, settings = traffic.senders
    if max(L + F, S) > _MAX_PLACES:
        raise InvalidValue("flows", F, f"at most {_MAX_PLACES} links and connections in all")
    flow[:, FLOW["ring"]] = np.concatenate([[0], np.cumsum(flow[:, FLOW["mask"]] + 1)[:-1]])
    packet = np.zeros((_PACKETS, len(PACKET)), dtype=np.int64)
    chained(packet, PACKET["next"], 0)
    meta = np.zeros(len(META), dtype=np.int64)
    meta[META["left"]], meta[META["sample"]] = _PACKETS, 1
    heap = np.zeros(256 + 4 * L + 2 * F + S, dtype=np.int64)
    acting = sorted(
        event(int(row[LINK["epoch"]]), EPOCH, place) for place, row in enumerate(link) if row[LINK["epoch"]]
    )
    heap[: len(acting)], meta[META["heap"]] = acting, len(acting)
    rings = meta[META["rings"]] = int((flow[:, FLOW["mask"]] + 1).sum())
    return PacketState(
        link=link,
        flow=flow,
        packet=packet,
        heap=heap,
        meta=meta,
        route=traffic.route,
        ways=traffic.ways,
        window=np.zeros((F, WIDTH)),
        allowed=allowed,
        rate=rate,
        settings=settings,
        queue=queue,
        subqueue=subqueue,
        heads=heads,
        trace=trace_table(links, link),
        parameters=parameters,
        random=traffic.random,
        sent=np.zeros(rings, dtype=np.int64),
        mark=np.zeros(rings, dtype=np.uint8),
        got=np.zeros(rings, dtype=np.int64),
        session=traffic.session,
        web=traffic.web,
        agenda=np.array(traffic.agenda, dtype=np.int64).reshape(-1, 4),
        series=np.zeros((8, L, samples)),
        packets=np.zeros((L, samples)),
        carried=np.zeros((G, samples)),
        group=np.zeros(G, dtype=np.int64),
        trips=np.zeros((2, G, samples)),
        trip=np.zeros((2, G), dtype=np.int64),
        response=np.zeros((1024, 4), dtype=np.int64),
    )


def _packet_size(scenario: Scenario) -> int:
    size = scenario.packet_size
    if size != int(size) or not HEADERS < size <= 65535:
        raise InvalidValue("packet_size", size, f"a whole number of bytes from {HEADERS + 1} to 65535")
    return int(size)


def _flows(scenario: Scenario, full: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Agenda]:
    """Rows of connections and of Web sessions, routes, and when they start."""
    index = {link.id: row for row, link in enumerate(scenario.links)}
    delays = {link.id: round(link.delay * _NS) for link in scenario.links}
    rows: list[np.ndarray] = []
    sessions: list[np.ndarray] = []
    route: list[int] = []
    agenda: Agenda = []
    # A sender stands at its first link: its access line, both ways, is on the way back, and it starts that much later.
    for g, (group, draw) in enumerate(zip(scenario.flows, draw_flows(scenario, merged=False), strict=True)):
        there, back = len(route), len(route) + len(group.path) + 1
        route += [*(index[name] for name in group.path), ARRIVED, *(index[name] for name in group.ack_path), ANSWERED]
        trip = sum(delays[name] for name in group.both_ways)
        for rtt, start, stop in zip(draw.rtt_s, draw.start_s, draw.stop_s, strict=True):
            access = 0 if isinstance(group, UdpFlows) else max(round(rtt * _NS) - trip, 0) // 2
            end = ENDLESS if stop == inf else round(stop * _NS)
            begins = round(start * _NS) + access  # at its first link
            row = flow_row(group, g, there, back)
            row[FLOW["access"]] = access
            row[FLOW["line_delay"]] = 2 * access + (0 if group.ack_path else trip // 2)
            row[FLOW["stop"]] = end + access if end < ENDLESS else end
            if isinstance(group, WebFlows):
                agenda.append((begins, SESSION_STARTS, len(sessions), 0))
                sessions.append(_session(group, g, len(rows), int(row[FLOW["stop"]])))
                row[FLOW["session"]] = len(sessions) - 1
                row[FLOW["stop"]] = ENDLESS  # what was asked for is sent
                rows += [row.copy() for _ in range(group.objects_per_page)]
            else:
                if isinstance(group, UdpFlows):
                    row[FLOW["gap"]], row[FLOW["spacing"]] = _gap(group, full), group.spacing == "poisson"
                    begins += _phase(group, int(row[FLOW["gap"]]), scenario.seed, len(rows))
                agenda.append((begins, FLOW_STARTS, len(rows), 0))
                rows.append(row)
    flow = np.array(rows).reshape(-1, len(FLOW))
    flow[:, FLOW["last_bytes"]] = full - HEADERS
    return flow, np.array(sessions, dtype=np.int64).reshape(-1, len(SESSION)), np.array(route, dtype=np.int64), agenda


def flow_row(group: FlowGroup, number: int, there: int, back: int) -> np.ndarray:
    """A flow of a group that hasn't started: its path, and that of its acknowledgements, begin there in the routes."""
    row = np.zeros(len(FLOW), dtype=np.int64)
    udp = isinstance(group, UdpFlows)
    for name in ("line_head", "line_tail", "session"):
        row[FLOW[name]] = -1
    row[FLOW["kind"]], row[FLOW["group"]] = UDP if udp else TCP, number
    row[FLOW["route"]], row[FLOW["ack_route"]] = there, back
    row[FLOW["size"]], row[FLOW["ecn"]] = ENDLESS, group.ecn
    row[FLOW["priority"]] = group.priority
    row[FLOW["mask"]] = 0 if udp else _RING - 1
    if not udp:
        set_sender(row, group)
    return row


def _session(group: WebFlows, number: int, first: int, stop: int) -> np.ndarray:
    row = np.zeros(len(SESSION), dtype=np.int64)
    row[SESSION["group"]], row[SESSION["first"]] = number, first
    row[SESSION["objects"]], row[SESSION["stop"]] = group.objects_per_page, stop
    return row


def _gap(group: UdpFlows, full: int) -> int:
    return max(nanoseconds(f"flows.{group.id}.rate", full * BITS_PER_BYTE / group.rate, _MAX_GAP_S), 1)


def _phase(group: UdpFlows, gap: int, seed: int, flow: int) -> int:
    """When the first packet comes: evenly spaced ones begin anywhere in their interval."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1 << 20, flow)))
    share = rng.exponential() if group.spacing == "poisson" else rng.random()
    return round(share * gap)


def _web(group: FlowGroup) -> tuple[float, float, float, float]:
    if not isinstance(group, WebFlows):
        return 0.0, 1.0, 0.0, 1.0
    scale = group.mean_object * (group.pareto_shape - 1.0) / group.pareto_shape
    return scale, group.pareto_shape, group.max_object, group.think_time


def _changes(scenario: Scenario, flow: np.ndarray) -> Agenda:
    """Capacities and delays of links; a delay is that of acknowledgements too, where these take the same lines."""
    full, index = int(scenario.packet_size), {link.id: row for row, link in enumerate(scenario.links)}
    delays = {link.id: round(link.delay * _NS) for link in scenario.links}
    line = flow[:, FLOW["line_delay"]].copy()
    found: Agenda = []
    for change in sorted(scenario.changes, key=lambda change: change.at):
        at, row = round(change.at * _NS), index[change.link]
        if change.capacity is not None:
            found.append((at, CAPACITY, row, whole_rate("changes.capacity", change.capacity, full)))
        if change.delay is not None:
            new = round(change.delay * _NS)
            found.append((at, DELAY, row, new))
            back = [not group.ack_path and change.link in group.path for group in scenario.flows]
            for f in np.flatnonzero(np.array(back)[flow[:, FLOW["group"]]]):
                line[f] += new - delays[change.link]
                found.append((at, LINE_DELAY, int(f), int(line[f])))
            delays[change.link] = new
    return found
