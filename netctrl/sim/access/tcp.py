"""The kernel of an access link whose regulated flows have congestion windows: an event at a time.

A flow's regulator passes `burst` packets back to back and then pauses, as for UDP; here packets wait for it in a queue,
and excess packets are lost. A receiver acknowledges each packet. As no packet overtakes
another of its flow, a number that is missing was lost: the sender hears of it by the next acknowledgement, halves its
window once for each window of data, and sends something new in its place. Where no acknowledgement comes it starts
again with one packet.
"""

from __future__ import annotations

from math import ceil, inf
from typing import NamedTuple

import numpy as np

from netctrl.jit import INLINED, njit
from netctrl.plants.access import departure, observe, window_after_ack, window_after_loss
from netctrl.plants.regulators import Gates, silent_gates
from netctrl.scenario.access.flows import TcpSenders
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.problem import DRAWS, access_link_plant, first_pauses
from netctrl.sim.access.state import PREMIUM

_FIRST_WINDOW = 2.0
_MAX_BACKOFF = 6


class TcpPlant(NamedTuple):
    """What does not change, as in `AccessLinkPlant`."""

    service: np.ndarray
    limit: int
    premium_phase: float
    premium_period: float
    spacing: float
    variation: np.ndarray
    rtt: float
    regulator_limit: int
    """Of the queue of each flow."""
    timeout: float


class TcpTraffic(NamedTuple):
    """What changes. F flows, H hops, K = F + 1 kinds; the first rows as in `AccessLinkTraffic`."""

    time: np.ndarray
    premium: np.ndarray
    gates: Gates
    node: np.ndarray
    """(H, limit) rings of departures."""
    node_head: np.ndarray
    node_count: np.ndarray
    last: np.ndarray
    path: np.ndarray
    """(H, P) ring of packets that get through: departures from each node."""
    path_entered: np.ndarray
    """(P,)"""
    path_kind: np.ndarray
    path_number: np.ndarray
    pointers: np.ndarray
    """(3,) packets that were acknowledged, seen by the receiver, and put in the ring, since the beginning."""
    waiting: np.ndarray
    """(F, limit of the regulator) rings of packets' numbers."""
    waiting_head: np.ndarray
    waiting_count: np.ndarray
    window: np.ndarray
    threshold: np.ndarray
    number: np.ndarray
    """(F,) of the next new packet."""
    expected: np.ndarray
    """(F,) next number to be acknowledged."""
    flight: np.ndarray
    """(F,) packets neither acknowledged nor known to be lost."""
    recover: np.ndarray
    """(F,) losses of numbers below this one were answered."""
    deadline: np.ndarray
    backoff: np.ndarray
    released: np.ndarray
    refused: np.ndarray
    """(F,) packets that found a regulator's queue full."""
    dropped: np.ndarray
    departed: np.ndarray
    measured: np.ndarray


def tcp_plant(scenario: Scenario, senders: TcpSenders) -> TcpPlant:
    """Constants of a scenario's kernel."""
    plain = access_link_plant(scenario)
    return TcpPlant(
        *(plain.service, plain.limit, plain.premium_phase, plain.premium_period, plain.spacing, plain.variation),
        rtt=senders.rtt,
        regulator_limit=senders.regulator_limit,
        timeout=senders.timeout,
    )


def tcp_traffic(hops: int, plant: TcpPlant, streams: list[np.random.Generator]) -> TcpTraffic:
    """An empty link; all flows are about to send their first window."""
    H, F = hops, len(streams)
    # Departures from the last node are a packet's time apart, which bounds the packets in a round trip, besides those
    # in the nodes.
    path = H * (plant.limit + 1) + ceil(plant.rtt / float(plant.service.min())) + 2
    counts = {name: np.zeros(F, dtype=np.int64) for name in ("number", "expected", "flight", "recover", "backoff")}
    traffic = TcpTraffic(
        time=np.zeros(1),
        premium=np.zeros(1, dtype=np.int64),
        gates=silent_gates(F, DRAWS),
        node=np.zeros((H, plant.limit)),
        node_head=np.zeros(H, dtype=np.int64),
        node_count=np.zeros(H, dtype=np.int64),
        last=np.zeros(H),
        path=np.zeros((H, path)),
        path_entered=np.zeros(path),
        path_kind=np.zeros(path, dtype=np.int16),
        path_number=np.zeros(path, dtype=np.int64),
        pointers=np.zeros(3, dtype=np.int64),
        waiting=np.zeros((F, plant.regulator_limit), dtype=np.int64),
        waiting_head=np.zeros(F, dtype=np.int64),
        waiting_count=np.zeros(F, dtype=np.int64),
        window=np.full(F, _FIRST_WINDOW),
        threshold=np.full(F, 1e9),
        deadline=np.zeros(F),
        released=np.zeros(F + 1, dtype=np.int64),
        refused=np.zeros(F, dtype=np.int64),
        dropped=np.zeros((H, F + 1), dtype=np.int64),
        departed=np.zeros((H, F + 1), dtype=np.int64),
        measured=np.zeros(6),
        **counts,
    )
    first_pauses(traffic.gates, plant.variation, streams)
    return traffic


def tcp_backlog(now: TcpTraffic) -> tuple[int, ...]:
    """Packets in each node."""
    under_way = now.path[:, np.arange(now.pointers[1], now.pointers[2]) % now.path.shape[1]]
    beyond = (under_way > now.time[0]).sum(axis=1)
    return tuple(np.diff(beyond, prepend=0).tolist())


@njit(**INLINED)
def _enter(plant: TcpPlant, now: TcpTraffic, time: float, kind: int, number: int) -> None:
    """Move a packet through all nodes: as packets arrive in order, the packets ahead of it are known."""
    t, place = time, now.pointers[2] % now.path.shape[1]
    for hop in range(len(now.last)):
        while now.node_count[hop] and now.node[hop, now.node_head[hop]] <= t:
            now.node_head[hop] = (now.node_head[hop] + 1) % plant.limit
            now.node_count[hop] -= 1
        if now.node_count[hop] == plant.limit:
            now.dropped[hop, kind] += 1
            return
        t = departure(t, now.last[hop], plant.service[kind])
        now.last[hop] = t
        now.node[hop, (now.node_head[hop] + now.node_count[hop]) % plant.limit] = t
        now.node_count[hop] += 1
        now.path[hop, place] = t
    now.path_entered[place] = time
    now.path_kind[place], now.path_number[place] = kind, number
    now.pointers[2] += 1


@njit(**INLINED)
def _see(now: TcpTraffic, time: float) -> None:
    """Count arrivals at the receiver up to a time, and measure premium packets."""
    last = now.departed.shape[0] - 1
    while now.pointers[1] < now.pointers[2]:
        place = now.pointers[1] % now.path.shape[1]
        if now.path[last, place] > time:
            return
        kind = now.path_kind[place]
        if kind == PREMIUM:
            observe(now.measured, now.path[last, place] - now.path_entered[place], now.departed[last, PREMIUM] == 0)
        for hop in range(last + 1):
            now.departed[hop, kind] += 1
        now.pointers[1] += 1


@njit(**INLINED)
def _send(plant: TcpPlant, now: TcpTraffic, flow: int, time: float) -> None:
    """Put new packets into the regulator, as many as the window allows."""
    limit = plant.regulator_limit
    if now.flight[flow] == 0:
        now.deadline[flow] = time + plant.timeout * 2.0 ** now.backoff[flow]
    while now.flight[flow] < int(now.window[flow]):
        if now.waiting_count[flow] == limit:
            now.refused[flow] += 1
        else:
            if now.waiting_count[flow] == 0:
                now.gates.next[flow] = max(now.gates.next[flow], time)
            now.waiting[flow, (now.waiting_head[flow] + now.waiting_count[flow]) % limit] = now.number[flow]
            now.waiting_count[flow] += 1
        now.number[flow] += 1
        now.flight[flow] += 1


@njit(**INLINED)
def _acknowledge(plant: TcpPlant, now: TcpTraffic, time: float) -> None:
    place = now.pointers[0] % now.path.shape[1]
    flow, number = now.path_kind[place] - 1, now.path_number[place]
    now.pointers[0] += 1
    if flow < 0 or number < now.expected[flow]:  # premium, or sent before a timeout
        return
    lost = number - now.expected[flow]
    now.flight[flow] -= lost + 1
    now.expected[flow] = number + 1
    now.backoff[flow] = 0
    now.deadline[flow] = time + plant.timeout
    if lost == 0:
        now.window[flow] = window_after_ack(now.window[flow], now.threshold[flow])
    elif number - lost >= now.recover[flow]:
        now.window[flow] = now.threshold[flow] = window_after_loss(now.window[flow])
        now.recover[flow] = now.number[flow]
    _send(plant, now, flow, time)


@njit(**INLINED)
def _time_out(plant: TcpPlant, now: TcpTraffic, flow: int) -> None:
    """Treat all packets in flight as lost; those in the regulator are still sent."""
    time = now.deadline[flow]
    now.threshold[flow] = window_after_loss(now.window[flow])
    now.window[flow] = 1.0
    now.expected[flow] = now.recover[flow] = now.number[flow]
    now.flight[flow] = 0
    now.backoff[flow] = min(now.backoff[flow] + 1, _MAX_BACKOFF)
    _send(plant, now, flow, time)


@njit(**INLINED)
def _let_through(plant: TcpPlant, now: TcpTraffic, flow: int) -> bool:
    """Pass a regulator's next packet. Returns False where no draws are left."""
    gates = now.gates
    last_of_burst = gates.left[flow] == 1
    if last_of_burst and gates.used[flow] == gates.draws.shape[1]:
        return False
    time, head = gates.next[flow], now.waiting_head[flow]
    _enter(plant, now, time, flow + 1, now.waiting[flow, head])
    now.released[flow + 1] += 1
    now.waiting_head[flow] = (head + 1) % plant.regulator_limit
    now.waiting_count[flow] -= 1
    gates.pausing[flow] = last_of_burst
    if last_of_burst:
        v = plant.variation[flow]
        held = 1.0 - v + v * gates.draws[flow, gates.used[flow]]
        gates.held[flow], gates.left[flow] = held, gates.burst[flow]
        gates.used[flow] += 1
        gates.next[flow] = time + held * gates.pause[flow] if gates.pause[flow] < inf else inf
    else:
        gates.left[flow] -= 1
        gates.next[flow] = time + plant.spacing
    return True


@njit(cache=True, error_model="numpy", nogil=True)
def advance_tcp(plant: TcpPlant, now: TcpTraffic, end: float) -> bool:
    """Advance to `end`. Returns False where a flow has no draws left; add draws and call again."""
    F, last = len(now.gates.next), now.path.shape[0] - 1
    if now.time[0] == 0.0 and now.number.sum() == 0:
        for flow in range(F):
            _send(plant, now, flow, 0.0)
    while True:
        premium = plant.premium_phase + now.premium[0] * plant.premium_period
        acknowledged = inf
        if now.pointers[0] < now.pointers[2]:
            acknowledged = now.path[last, now.pointers[0] % now.path.shape[1]] + plant.rtt
        least = min(premium, acknowledged)
        gate, timer = -1, -1
        for flow in range(F):
            if now.waiting_count[flow] and now.gates.next[flow] < least:
                least, gate = now.gates.next[flow], flow
        for flow in range(F):
            if now.deadline[flow] < least:
                least, timer = now.deadline[flow], flow
        if least > end:
            break
        if timer >= 0:
            _time_out(plant, now, timer)
        elif gate >= 0:
            if not _let_through(plant, now, gate):
                return False
        elif premium <= acknowledged:
            _enter(plant, now, premium, PREMIUM, 0)
            now.released[PREMIUM] += 1
            now.premium[0] += 1
        else:
            _see(now, acknowledged)
            _acknowledge(plant, now, acknowledged)
    _see(now, end)
    now.time[0] = end
    return True
