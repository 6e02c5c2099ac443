"""A scenario as the packet engine's tables: routes, flows, the agenda of starts and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.rate.records import scheme_of
from netctrl.laws.rate.regulated import RegulatedSender
from netctrl.laws.tcp.rows import LONGEST
from netctrl.scenario.links import Link
from netctrl.scenario.network.plan import FlowLinks, Ways
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, Host
from netctrl.scenario.tcp_aqm.offers import Bursts, Demand, Stream, Web, Writes
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.heap import PLACE_BITS, event
from netctrl.sim.packet.changes import Agenda, link_changes, rate_changes
from netctrl.sim.packet.datagrams import Demands, set_bursts
from netctrl.sim.packet.hosts import HostState
from netctrl.sim.packet.kernel import FLOW_STARTS, SESSION_STARTS
from netctrl.sim.packet.links.port_tables import port_table
from netctrl.sim.packet.links.tables import Line, Queues, link_tables, queue_tables, trace_table
from netctrl.sim.packet.rates import RateControl, RateMemory, rate_control, rate_memory
from netctrl.sim.packet.senders.demands import CHOICE
from netctrl.sim.packet.senders.host_tables import Crossed, Sent, host_tables, no_hosts, sent_of
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.tables import rate_tables, session_row, set_data, set_sender, web_row
from netctrl.sim.packet.senders.tcp import MESSAGES, TCP, UDP
from netctrl.sim.packet.state import EPOCH, FLOW, LINK, META, PACKET, SESSION, WAY, PacketState
from netctrl.sim.tables import chained

_NS = 1e9
ENDLESS = 1 << 60
_RING = 64
_THROUGH_S = 2e-9  # of a packet through a regulator
PACKETS = 4096
"""In the pool, at first."""
_MAX_PLACES = 1 << PLACE_BITS
ARRIVED, ANSWERED = -1, -2
"""End of a path for data, and for acknowledgements."""
NO_WAYS, NO_RATES = np.zeros((0, len(WAY))), np.zeros(0)


class Traffic(NamedTuple):
    """What flows, and what is drawn for it."""

    flow: np.ndarray
    """(F, ...) rows."""
    session: np.ndarray
    """(S, ...) rows."""
    route: np.ndarray
    agenda: Agenda | np.ndarray
    """In order."""
    web: np.ndarray
    """(G, 4) of groups of Web sessions."""
    random: np.ndarray
    """(L + F + S,) states of generators."""
    weight: np.ndarray
    """(F,) in `drr` and `wfq` queues."""
    senders: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Of `netctrl.sim.packet.senders.tables.rate_tables`."""
    ways: np.ndarray = NO_WAYS
    rates: np.ndarray = NO_RATES
    """Of demands that are groups of flows."""


class Series(NamedTuple):
    """What is sampled: the first links, so many times."""

    links: int
    samples: int


NO_SERIES = Series(0, 0)


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


def packet_problem(
    scenario: Scenario, controlled: FlowLinks | None = None, rates: Mapping[str, np.ndarray] = MappingProxyType({})
) -> PacketProblem:
    """The kernel's tables for a scenario.

    Parameters
    ----------
    scenario : Scenario
    controlled : FlowLinks, optional
        Links whose rates a law sets (`netctrl.sim.network.flow_links.flow_links`).
    rates : mapping
        Of demands, by the flow's id, (intervals, count) [bit/s]; others are drawn.

    Raises
    ------
    InvalidValue
        A value that the engine can't hold: its name in the scenario.
    """
    full = packet_size(scenario)
    interval, samples = round(scenario.interval * _NS), int(scenario.duration / scenario.interval * (1.0 + 1e-12))
    end = max(round(scenario.duration * _NS), samples * interval)  # an interval may have been rounded up
    sent = {g: each for g, group in enumerate(scenario.flows) if (each := sent_of(group, full)) is not None}
    sizes = [_group_size(group, full, g in sent) for g, group in enumerate(scenario.flows)]
    demands = Demands(scenario, rates)
    laid = _flows(scenario, sent, sizes, demands)
    flow, links = np.array(laid.rows), [*scenario.links, *laid.ports]
    session = np.array(laid.sessions, dtype=np.int64).reshape(-1, len(SESSION))
    queues = link_tables(links, full)
    _open_gates(queues[0], flow)
    control = rate_control(scenario, queues[0], controlled)
    index = {link.id: row for row, link in enumerate(scenario.links)}
    crossed = [Crossed(*([index[name] for name in path] for path in (g.path, g.ack_path))) for g in scenario.flows]
    hosts = host_tables(sent, crossed, [each.pfc for each in links], queues[0], flow, PACKETS)
    seeds = np.random.SeedSequence(scenario.seed, spawn_key=(len(scenario.flows) + 1,))
    of_rates, changed = rate_changes(scenario, flow, len(demands.rates))
    traffic = Traffic(
        flow=flow,
        session=session,
        route=np.array(laid.route, dtype=np.int64),
        agenda=sorted([*laid.agenda, *link_changes(scenario, flow), *of_rates]),
        web=np.array([web_row(group) for group in scenario.flows]),
        random=seeds.generate_state(len(links) + len(flow) + len(session), np.uint64),
        weight=np.array([group.weight for group in scenario.flows])[flow[:, FLOW["group"]]],
        senders=rate_tables(scenario, flow),
        ways=np.array(laid.ways, dtype=float).reshape(-1, len(WAY)),
        rates=np.concatenate([demands.rates, changed]),
    )
    series = Series(len(scenario.links), samples)
    state = first_state(links, queues, traffic, full, series, scenario.seed, hosts)
    state.meta[META["min_rto"]] = round(scenario.min_rto * _NS)
    return PacketProblem(state, interval, full, end, None if control is None else (control, rate_memory(control)))


def first_state(
    links: Sequence[Link | Line],
    queues: Queues,
    traffic: Traffic,
    full: int,
    series: Series = NO_SERIES,
    seed: int = 0,
    hosts: HostState | None = None,
    waiting: tuple[np.ndarray, np.ndarray] | None = None,
) -> PacketState:
    """All tables before the first event; without `hosts` no law is a data centre's.

    `waiting` has the links' queues as of `queue_tables`, where `links` isn't to be read for them.

    Raises
    ------
    InvalidValue
        Too many flows.
    """
    (link, queue, parameters), flow = queues, traffic.flow
    L, F, S, G = len(link), len(flow), len(traffic.session), len(traffic.web)
    subqueue, heads = queue_tables(links, link, traffic.weight, full, seed) if waiting is None else waiting
    allowed, rate, settings = traffic.senders
    if max(L, S) + F > _MAX_PLACES:
        raise InvalidValue("flows", F, f"at most {_MAX_PLACES} links and connections in all")
    flow[flow[:, FLOW["full"]] == 0, FLOW["full"]] = full
    flow[:, FLOW["ring"]] = np.concatenate([[0], np.cumsum(flow[:, FLOW["mask"]] + 1)[:-1]])
    packet = np.zeros((PACKETS, len(PACKET)), dtype=np.int64)
    chained(packet, PACKET["next"], 0)
    meta = np.zeros(len(META), dtype=np.int64)
    meta[META["left"]], meta[META["sample"]] = PACKETS, 1
    meta[META["rows_left"]] = 1  # each flow has its own
    meta[META["counters"]] = 0 if hosts is None else len(hosts.counter) // max(F, 1)
    heap = np.zeros(256 + 4 * L + 2 * F + S, dtype=np.int64)
    acting = sorted(
        event(int(row[LINK["epoch"]]), EPOCH, place) for place, row in enumerate(link) if row[LINK["epoch"]]
    )
    heap[: len(acting)], meta[META["heap"]] = acting, len(acting)
    rings = meta[META["rings"]] = int((flow[:, FLOW["mask"]] + 1).sum())
    meta[META["at_once"]] = _RING * bool(flow[:, FLOW["write"]].any())
    return PacketState(
        link=link,
        flow=flow,
        packet=packet,
        heap=heap,
        meta=meta,
        route=traffic.route,
        ways=traffic.ways,
        window=np.zeros((F, LONGEST)),
        allowed=allowed,
        rate=rate,
        settings=settings,
        queue=queue,
        subqueue=subqueue,
        heads=heads,
        trace=trace_table(links, link[: len(links)]),
        parameters=parameters,
        random=traffic.random,
        sent=np.zeros(rings, dtype=np.int64),
        mark=np.zeros(rings, dtype=np.uint8),
        after=np.zeros(rings, dtype=np.int64),
        got=np.zeros(rings, dtype=np.int64),
        session=traffic.session,
        web=traffic.web,
        rates=traffic.rates,
        agenda=np.asarray(traffic.agenda, dtype=np.int64).reshape(-1, 4),
        series=np.zeros((8, *series)),
        packets=np.zeros(series),
        carried=np.zeros((G, series.samples)),
        group=np.zeros(G, dtype=np.int64),
        trips=np.zeros((3, G, series.samples)),
        trip=np.zeros((3, G), dtype=np.int64),
        windows=np.full((2, G, series.samples), np.nan),
        response=np.zeros((1024, 4), dtype=np.int64),
        regulated=np.zeros((F, 5)),
        hosts=no_hosts(port_table(link)) if hosts is None else hosts,
    )


def packet_size(scenario: Scenario) -> int:
    """Size of full packets [byte]; InvalidValue for one that the engine can't hold."""
    size = scenario.packet_size
    if size != int(size) or not HEADERS < size <= 65535:
        raise InvalidValue("packet_size", size, f"a whole number of bytes from {HEADERS + 1} to 65535")
    return int(size)


def _group_size(group: Flow, full: int, messages: bool) -> int:
    """Size of a group's full packets, `full` bytes unless it says otherwise; a data centre's have no others."""
    size = group.packet_size
    if size is None:
        return full
    if messages or size != int(size) or not HEADERS < size <= full:
        takes = f"null with a data centre's sender, or a whole number from {HEADERS + 1} to packet_size, {full}"
        raise InvalidValue(f"flows.{group.id}.packet_size", size, takes)
    return int(size)


class _Laid(NamedTuple):
    """Flows as they are laid."""

    rows: list[np.ndarray]
    """Of connections."""
    sessions: list[np.ndarray]
    """Rows of Web sessions, and of programs that write."""
    route: list[int]
    ports: list[Line]
    """Of senders that have one of their own."""
    agenda: Agenda
    """When they start."""
    ways: list[tuple[int, float, float, bool]]
    """Of demands that take several."""


def _flows(scenario: Scenario, sent: Mapping[int, Sent], sizes: Sequence[int], demands: Demands) -> _Laid:
    index = {link.id: row for row, link in enumerate(scenario.links)}
    delays = {link.id: round(link.delay * _NS) for link in scenario.links}
    laid = _Laid([], [], [], [], [], [])
    rows, sessions, agenda = laid.rows, laid.sessions, laid.agenda
    # A sender stands at its first link: its access line, both ways, is on the way back, and it starts that much later.
    # One with a port of its own stands there.
    for g, (group, draw) in enumerate(zip(scenario.flows, draw_flows(scenario, merged=False), strict=True)):
        full, ways = sizes[g], Ways(scenario.links, group)
        split = isinstance(group.offers, Demand) and group.split is not None
        there, back = _lay_ways(laid, ways, index) if split else _lay_path(laid, group.path, group, index)
        trip = sum(delays[name] for name in group.both_ways)
        places = demands.draw(group) if isinstance(group.offers, Demand) else np.zeros(len(draw.rtt_s), dtype=np.int64)
        for rtt, start, stop, place in zip(draw.rtt_s, draw.start_s, draw.stop_s, places.tolist(), strict=True):
            access = max(round(rtt * _NS) - trip, 0) // 2 if group.answered else 0
            ahead = 0 if g in sent else access
            end = ENDLESS if stop == inf else round(stop * _NS)
            begins = round(start * _NS) + ahead
            if group.split is not None and group.answered:
                there, back = _lay_path(laid, ways.next(), group, index)
            row = flow_row(group, g, there, back)
            row[FLOW["access"]] = ahead
            row[FLOW["line_delay"]] = access + ahead + (0 if group.ack_path else trip // 2)
            row[FLOW["stop"]] = end + ahead if end < ENDLESS else end
            row[FLOW["asked"]], row[FLOW["full"]] = begins - ahead, full
            set_data(row, group, full - HEADERS)
            first, count = len(rows), 1
            if isinstance(group.offers, Web | Writes):
                agenda.append((begins, SESSION_STARTS, len(sessions), 0))
                sessions.append(session_row(group, g, first, int(row[FLOW["stop"]])))
                row[FLOW["session"]] = len(sessions) - 1
                row[FLOW["stop"]] = ENDLESS  # what was asked for is sent
                count = max(int(sessions[-1][SESSION["objects"]]), 1)
            else:
                if isinstance(group.offers, Stream | Bursts):
                    row[FLOW["kind"]] = UDP
                    begins = set_bursts(row, group, full, scenario.seed, first, begins)
                elif isinstance(group.offers, Demand):
                    demands.set(row, group, place, begins)
                agenda.append((begins, FLOW_STARTS, first, 0))
            rows += [row.copy() for _ in range(count)]
            for each in rows[first:] if g in sent else ():
                _stand_at_port(each, laid, group, sent[g].host, access, scenario.links, index)
            if isinstance(group.sender, RegulatedSender):
                set_bursts(row, group, full, scenario.seed, first, begins)
                rows[first] = _behind_gate(row, laid, group, full, scenario.links, index)
    return laid


def _lay_path(laid: _Laid, path: Sequence[str], group: Flow, index: Mapping[str, int]) -> tuple[int, int]:
    """Where a path, and that of the acknowledgements, begin in the routes."""
    route, there = laid.route, len(laid.route)
    route += [*(index[name] for name in path), ARRIVED, *(index[name] for name in group.ack_path), ANSWERED]
    return there, there + len(path) + 1


def _lay_ways(laid: _Laid, ways: Ways, index: Mapping[str, int]) -> tuple[int, int]:
    """The same of packets that nothing acknowledges, with a choice at each node that several links leave."""
    route, codes, here = laid.route, {ways.target: ARRIVED}, len(laid.ways)
    for node, leaving in ways.at.items():
        codes[node] = CHOICE - here
        here += len(leaving)
    there = len(route)
    route.append(codes[ways.source])
    for leaving in ways.at.values():
        for k, (name, target, share) in enumerate(leaving, 1):
            laid.ways.append((len(route), share, 0.0, k < len(leaving)))
            route += [index[name], codes[target]]
    return there, there


def _stand_at_port(
    row: np.ndarray, laid: _Laid, group: Flow, host: Host, access: int, links: Sequence[Link], index: Mapping[str, int]
) -> None:
    """A flow's own port, a link in front of its path; `access` is half of what the path leaves of the round trip."""
    delay = access if host.delay is None else round(host.delay * _NS)
    if delay > 2 * access:
        raise InvalidValue(f"flows.{group.id}.host.delay", host.delay, f"at most {2 * access / _NS:g} s, as rtt has it")
    row[FLOW["line_delay"]] += access - delay
    row[FLOW["route"]] = len(laid.route)
    laid.route.extend([len(links) + len(laid.ports), *(index[name] for name in group.path), ARRIVED])
    rate = links[index[group.path[0]]].capacity if host.rate is None else host.rate
    laid.ports.append(Line(f"{group.id}.host", rate, delay / _NS, None, DropTailQueue(), pfc=host.pfc))


def _behind_gate(
    row: np.ndarray, laid: _Laid, group: Flow, full: int, links: Sequence[Link], index: Mapping[str, int]
) -> np.ndarray:
    """A flow whose packets wait before its path, in a link without delay that sends one when the regulator opens."""
    row[FLOW["route"]], row[FLOW["gate"]] = len(laid.route), len(links) + len(laid.ports) + 1
    laid.route.extend([len(links) + len(laid.ports), *(index[name] for name in group.path), ARRIVED])
    rate = full * BITS_PER_BYTE / _THROUGH_S
    sender: Any = group.sender  # regulated
    laid.ports.append(Line(f"{group.id}.regulator", rate, 0.0, sender.limit * full, DropTailQueue()))
    return row


def _open_gates(link: np.ndarray, flow: np.ndarray) -> None:
    """Links before regulated flows, which are served by events."""
    for f in np.flatnonzero(flow[:, FLOW["gate"]]):
        gate = link[flow[f, FLOW["gate"]] - 1]
        gate[LINK["gate"]], gate[LINK["served"]], gate[LINK["busy"]] = f + 1, 1, flow[f, FLOW["opens"]]


def flow_row(group: Flow, number: int, there: int, back: int) -> np.ndarray:
    """A flow of a group that hasn't started: its path, and that of its acknowledgements, begin there in the routes."""
    row = np.zeros(len(FLOW), dtype=np.int64)
    for name in ("line_head", "line_tail", "session"):
        row[FLOW[name]] = -1
    messages = scheme_of(group.sender) is not None
    row[FLOW["kind"]], row[FLOW["group"]] = MESSAGES if messages else TCP, number
    row[FLOW["route"]], row[FLOW["ack_route"]] = there, back
    row[FLOW["size"]], row[FLOW["most"]], row[FLOW["ecn"]] = ENDLESS, ENDLESS, group.ecn
    row[FLOW["priority"]] = group.priority
    row[FLOW["bytes"]] = ENDLESS if messages else 0
    if group.answered:
        row[FLOW["mask"]] = 0 if messages else _RING - 1
        set_sender(row, group)
    return row
