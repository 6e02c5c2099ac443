"""A scenario as the packet engine's tables: routes, flows, the agenda of starts and changes."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.fluid import STATES, epoch_of, law_of
from netctrl.laws.aqm.records import law_record, queue_in
from netctrl.laws.tcp.rows import WIDTH, WINDOWS
from netctrl.scenario.tcp_aqm.flows import FlowGroup, UdpFlows, WebFlows
from netctrl.scenario.tcp_aqm.scenario import Link, Scenario
from netctrl.sim.heap import PLACE_BITS, event
from netctrl.sim.packet.kernel import CAPACITY, DELAY, FLOW_STARTS, LINE_DELAY, SESSION_STARTS
from netctrl.sim.packet.link_tables import queue_tables, trace_table
from netctrl.sim.packet.links import BY_ARRIVAL, BY_EPOCH
from netctrl.sim.packet.receiver import ACK_BYTES, HEADERS
from netctrl.sim.packet.state import EPOCH, FLOW, LINK, META, PACKET, SESSION, PacketState, chained
from netctrl.sim.packet.tcp import TCP, UDP
from netctrl.sim.tcp_aqm.traffic import draw_flows
from netctrl.units import BITS_PER_BYTE

__all__ = ["PacketProblem", "packet_problem"]

_NS = 1e9
_UNLIMITED = 1 << 60
_ENDLESS = 1 << 60
_RING = 64
_PACKETS = 4096
_MAX_PLACES = 1 << PLACE_BITS
_MAX_GAP_S, _MAX_EPOCH_S = 10.0, 500.0
ARRIVED, ANSWERED = -1, -2
"""End of a path for data, and for acknowledgements."""


class PacketProblem(NamedTuple):
    """What the kernel takes."""

    state: PacketState
    interval: int
    """Of samples [ns]."""
    full: int
    """A packet with its headers [byte]."""
    end: int
    """[ns]"""


def packet_problem(scenario: Scenario) -> PacketProblem:
    """The kernel's tables for a scenario.

    Raises
    ------
    InvalidValue
        A value that the engine can't hold: its name in the scenario.
    """
    full = _packet_size(scenario)
    interval, end = round(scenario.sample * _NS), round(scenario.duration * _NS)
    samples = int(scenario.duration / scenario.sample * (1.0 + 1e-12))
    link, queue, parameters = _links(scenario, full)
    flow, session, route, agenda = _flows(scenario, full)
    weight = np.array([group.weight for group in scenario.flows])[flow[:, FLOW["group"]]]
    subqueue, heads = queue_tables(scenario, link, weight, full)
    L, F, S, G = len(link), len(flow), len(session), len(scenario.flows)
    if max(L + F, S) > _MAX_PLACES:
        raise InvalidValue("flows", F, f"at most {_MAX_PLACES} links and connections in all")
    agenda = np.array(sorted([*agenda, *_changes(scenario, flow)]), dtype=np.int64).reshape(-1, 4)
    packet = np.zeros((_PACKETS, len(PACKET)), dtype=np.int64)
    chained(packet, PACKET["next"], 0)
    meta = np.zeros(len(META), dtype=np.int64)
    meta[META["left"]], meta[META["sample"]] = _PACKETS, 1
    heap = np.zeros(256 + 4 * L + 2 * F + S, dtype=np.int64)
    acting = sorted(
        event(int(row[LINK["epoch"]]), EPOCH, place) for place, row in enumerate(link) if row[LINK["epoch"]]
    )
    heap[: len(acting)], meta[META["heap"]] = acting, len(acting)
    rings = int((flow[:, FLOW["mask"]] + 1).sum())
    seeds = np.random.SeedSequence(scenario.seed, spawn_key=(len(scenario.flows) + 1,))
    state = PacketState(
        link=link,
        flow=flow,
        packet=packet,
        heap=heap,
        meta=meta,
        route=route,
        window=np.zeros((F, WIDTH)),
        queue=queue,
        subqueue=subqueue,
        heads=heads,
        trace=trace_table(scenario, link),
        parameters=parameters,
        random=seeds.generate_state(L + F + S, np.uint64),
        sent=np.zeros(rings, dtype=np.int64),
        mark=np.zeros(rings, dtype=np.uint8),
        got=np.zeros(rings, dtype=np.int64),
        session=session,
        web=np.array([_web(group) for group in scenario.flows]),
        agenda=agenda,
        series=np.zeros((6, L, samples)),
        packets=np.zeros((L, samples)),
        carried=np.zeros((G, samples)),
        group=np.zeros(G, dtype=np.int64),
        response=np.zeros((1024, 4), dtype=np.int64),
    )
    return PacketProblem(state, interval, full, end)


def _packet_size(scenario: Scenario) -> int:
    size = scenario.packet_size
    if size != int(size) or not HEADERS < size <= 65535:
        raise InvalidValue("packet_size", size, f"a whole number of bytes from {HEADERS + 1} to 65535")
    return int(size)


def _time(name: str, seconds: float, most: float = inf) -> int:
    if seconds > most:
        raise InvalidValue(name, seconds, f"at most {most:g} s, for the packet engine")
    return round(seconds * _NS)


def _rate(name: str, rate: float, full: int) -> int:
    """Whole bit/s, at which packets take from 1 ns to 100 s."""
    if not 1e-9 <= full * BITS_PER_BYTE / rate <= 100.0 or rate < 1.0:
        raise InvalidValue(name, rate, f"a rate at which a packet of {full} bytes takes from 1 ns to 100 s")
    return round(rate)


def _links(scenario: Scenario, full: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of links, and states and parameters of their laws."""
    link = np.zeros((len(scenario.links), len(LINK)), dtype=np.int64)
    for name in ("head", "tail", "wait"):
        link[:, LINK[name]] = -1
    parameters = []
    for row, each in zip(link, scenario.links, strict=True):
        number, values = _law(each, scenario.packet_size)
        parameters.append(values)
        row[LINK["law"]] = number
        row[LINK["buffer"]] = _UNLIMITED if each.buffer is None else round(each.buffer)
        rate = _rate(f"links.{each.id}.capacity", each.capacity, full)
        row[LINK["rate"]], row[LINK["delay"]] = rate, round(each.delay * _NS)
        row[LINK["full"]], row[LINK["ack"]] = full, ACK_BYTES
        for size, name in ((full, "tx_full"), (ACK_BYTES, "tx_ack")):
            row[LINK[name]] = max((size * 8_000_000_000 + rate // 2) // rate, 1)
        law = law_record(queue_in(each.queue))
        if law is None:
            continue
        epoch = epoch_of(queue_in(each.queue))
        if law.head is not None:
            row[LINK["served"]] = 1
        elif epoch is None:
            row[LINK["decides"]] = BY_ARRIVAL
        else:
            row[LINK["decides"]] = BY_EPOCH
            row[LINK["epoch"]] = max(_time(f"links.{each.id}.queue", epoch, _MAX_EPOCH_S), 1)
    return link, np.zeros((len(link), STATES)), np.array(parameters)


def _law(link: Link, packet_size: float) -> tuple[int, np.ndarray]:
    try:
        return law_of(queue_in(link.queue), packet_size, link.buffer)
    except InvalidValue as error:
        raise InvalidValue(f"links.{link.id}.{error.argument}", error.got, error.takes) from None


Agenda = list[tuple[int, int, int, int]]


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
            end = _ENDLESS if stop == inf else round(stop * _NS)
            begins = round(start * _NS) + access  # at its first link
            row = _row(group, g, there, back)
            row[FLOW["access"]] = access
            row[FLOW["line_delay"]] = 2 * access + (0 if group.ack_path else trip // 2)
            row[FLOW["stop"]] = end + access if end < _ENDLESS else end
            if isinstance(group, WebFlows):
                agenda.append((begins, SESSION_STARTS, len(sessions), 0))
                sessions.append(_session(group, g, len(rows), int(row[FLOW["stop"]])))
                row[FLOW["session"]] = len(sessions) - 1
                row[FLOW["stop"]] = _ENDLESS  # what was asked for is sent
                rows += [row.copy() for _ in range(group.objects_per_page)]
            else:
                if isinstance(group, UdpFlows):
                    row[FLOW["gap"]], row[FLOW["spacing"]] = _gap(group, full), group.spacing == "poisson"
                    begins += _phase(group, int(row[FLOW["gap"]]), scenario.seed, len(rows))
                agenda.append((begins, FLOW_STARTS, len(rows), 0))
                rows.append(row)
    flow = np.array(rows).reshape(-1, len(FLOW))
    flow[:, FLOW["last_bytes"]] = full - HEADERS
    flow[:, FLOW["ring"]] = np.concatenate([[0], np.cumsum(flow[:, FLOW["mask"]] + 1)[:-1]])
    return flow, np.array(sessions, dtype=np.int64).reshape(-1, len(SESSION)), np.array(route, dtype=np.int64), agenda


def _row(group: FlowGroup, number: int, there: int, back: int) -> np.ndarray:
    row = np.zeros(len(FLOW), dtype=np.int64)
    udp = isinstance(group, UdpFlows)
    for name in ("line_head", "line_tail", "session"):
        row[FLOW[name]] = -1
    row[FLOW["kind"]], row[FLOW["group"]] = UDP if udp else TCP, number
    row[FLOW["route"]], row[FLOW["ack_route"]] = there, back
    row[FLOW["size"]], row[FLOW["ecn"]] = _ENDLESS, group.ecn
    row[FLOW["priority"]] = group.priority
    row[FLOW["mask"]] = 0 if udp else _RING - 1
    if not udp:
        row[FLOW["law"]] = WINDOWS.index(group.sender)
    return row


def _session(group: WebFlows, number: int, first: int, stop: int) -> np.ndarray:
    row = np.zeros(len(SESSION), dtype=np.int64)
    row[SESSION["group"]], row[SESSION["first"]] = number, first
    row[SESSION["objects"]], row[SESSION["stop"]] = group.objects_per_page, stop
    return row


def _gap(group: UdpFlows, full: int) -> int:
    return max(_time(f"flows.{group.id}.rate", full * BITS_PER_BYTE / group.rate, _MAX_GAP_S), 1)


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
            found.append((at, CAPACITY, row, _rate("changes.capacity", change.capacity, full)))
        if change.delay is not None:
            new = round(change.delay * _NS)
            found.append((at, DELAY, row, new))
            back = [not group.ack_path and change.link in group.path for group in scenario.flows]
            for f in np.flatnonzero(np.array(back)[flow[:, FLOW["group"]]]):
                line[f] += new - delays[change.link]
                found.append((at, LINE_DELAY, int(f), int(line[f])))
            delays[change.link] = new
    return found
