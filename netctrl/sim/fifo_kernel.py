"""The kernel of an access link, packet by packet: sources release, nodes in tandem serve, the receiver measures.

A call goes on from where the last one stopped, in pieces as long as its buffers: where a run is cut changes no bit.
Packets are of kinds: 0 premium, then a kind for each regulated flow, then one for each flow of cross traffic.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numba import njit

from netctrl.fluid.fifo import averaged, departure, finish_tag

__all__ = [
    "DELAY",
    "DELAY_SUM",
    "JITTER",
    "JITTER_SUM",
    "LAST_DELAY",
    "MEASURED",
    "NODE_COUNT",
    "NODE_OUT",
    "PREMIUM",
    "TAKEN",
    "WAITING",
    "FifoPlant",
    "FifoTraffic",
    "advance_fifo",
    "observe",
]

PREMIUM = 0
WAITING, TAKEN, NODE_COUNT, NODE_OUT = range(4)
"""Rows of `counts`: packets in the buffer before a node and of these taken by it; in a node's buffer, and gone."""
DELAY, JITTER, LAST_DELAY, DELAY_SUM, JITTER_SUM, MEASURED = range(6)
"""Rows of `measured`: both moving averages, the last packet's delay, sums over the period, and their packets."""


class FifoPlant(NamedTuple):
    """What does not change. H hops, F flows, K = F + 1 kinds. Times in seconds."""

    service: np.ndarray
    """(K,) on the wire."""
    limit: int
    """Packets in a node; with fair queueing, in each queue."""
    premium_phase: float
    premium_period: float
    flow_start: np.ndarray
    """(H + 1,) flows that enter before each hop."""
    first_cross: int
    """The kinds from this one on leave after their hop."""
    spacing: float
    """Between packets of a burst."""
    variation: float
    """Pauses are mean times (1 - variation + variation * draw)."""
    queue: np.ndarray
    """(K,) of each kind; empty: FIFO."""
    cost: np.ndarray
    """(K,) L/w, for fair queueing."""


class FifoTraffic(NamedTuple):
    """What changes, all in place. M draws ahead, Q queues, N and B places in buffers."""

    time: np.ndarray
    """(1,) up to which all is done."""
    premium: np.ndarray
    """(1,) premium packets released."""
    next: np.ndarray
    """(F,) when each flow's next packet comes; inf while its rate is 0."""
    left: np.ndarray
    """(F,) packets left of its burst."""
    burst: np.ndarray
    """(F,)"""
    pause: np.ndarray
    """(F,) mean."""
    pausing: np.ndarray
    """(F,) whether that is the first packet of a burst."""
    held: np.ndarray
    """(F,) the last pause over its mean: what a flow waits for whose rate is 0."""
    draws: np.ndarray
    """(F, M) exponential, of mean 1."""
    used: np.ndarray
    """(F,) of these."""
    arrived: np.ndarray
    """(H, B) times of released packets."""
    arrived_kind: np.ndarray
    """(H, B)"""
    gone: np.ndarray
    """(H, N) departures in order: those up to `time`, then, with FIFO, those of packets in the node."""
    entered: np.ndarray
    """(H, N) when these came into the first node."""
    kind: np.ndarray
    """(H, N)"""
    counts: np.ndarray
    """(4, H)"""
    last: np.ndarray
    """(H,) departure of the last packet taken; with fair queueing, of the one in service."""
    released: np.ndarray
    """(K,) packets, since the beginning."""
    dropped: np.ndarray
    """(H, K)"""
    departed: np.ndarray
    """(H, K)"""
    measured: np.ndarray
    """(6,)"""
    ring_tag: np.ndarray
    """(H, Q, limit) queues of fair queueing, (H, 0, 0) with FIFO."""
    ring_entered: np.ndarray
    ring_kind: np.ndarray
    ring_head: np.ndarray
    """(H, Q)"""
    ring_count: np.ndarray
    """(H, Q)"""
    tag: np.ndarray
    """(H, Q + 1) of each queue's last packet, and of the packet in service."""
    serving: np.ndarray
    """(H,) kind in service, -1: none."""
    serving_entered: np.ndarray
    """(H,)"""


@njit(cache=True, error_model="numpy", nogil=True)
def _release(plant: FifoPlant, now: FifoTraffic, hop: int, end: float) -> float:
    """Merge what is released before a hop, in order of time. Up to when this is done, or -1: draws are missing.

    The earliest flow goes on alone until another's packet comes, so that a burst costs one search.
    """
    first, stop = plant.flow_start[hop], plant.flow_start[hop + 1]
    upcoming, left, kinds = now.next, now.left, now.arrived_kind
    arrived, released, spacing = now.arrived, now.released, plant.spacing
    room, n = arrived.shape[1], now.counts[WAITING, hop]
    premium = plant.premium_phase + now.premium[0] * plant.premium_period if hop == 0 else inf
    while True:
        least, after, flow = premium, inf, -1
        for f in range(first, stop):
            t = upcoming[f]
            if t < least:
                least, after, flow = t, least, f
            elif t < after:
                after = t
        if least > end:
            now.counts[WAITING, hop] = n
            return end
        if n == room:
            now.counts[WAITING, hop] = n
            return arrived[hop, n - 1]
        if flow < 0:
            arrived[hop, n], kinds[hop, n] = premium, PREMIUM
            n += 1
            released[PREMIUM] += 1
            now.premium[0] += 1
            premium = plant.premium_phase + now.premium[0] * plant.premium_period
            continue
        t, before, rest = least, n, left[flow]
        until = min(after, end)
        while True:
            arrived[hop, n], kinds[hop, n] = t, flow + 1
            n += 1
            rest -= 1
            paused = rest == 0
            if paused:
                used = now.used[flow]
                if used == now.draws.shape[1]:
                    now.counts[WAITING, hop] = n - 1
                    upcoming[flow], left[flow] = t, 1
                    released[flow + 1] += n - 1 - before
                    return -1.0
                held = 1.0 - plant.variation + plant.variation * now.draws[flow, used]
                now.held[flow], now.used[flow], rest = held, used + 1, now.burst[flow]
                pause = now.pause[flow]
                t = t + held * pause if pause < inf else inf
            else:
                t += spacing
            if t >= until or n == room:
                break
        released[flow + 1] += n - before
        upcoming[flow], left[flow], now.pausing[flow] = t, rest, paused


@njit(cache=True, error_model="numpy", nogil=True)
def _serve(plant: FifoPlant, now: FifoTraffic, hop: int, end: float) -> None:
    """FIFO with tail drop: all that comes to a node up to `end`; equal times: from the node before first."""
    arrived, own, gone, entered, kind = now.arrived, now.arrived_kind, now.gone, now.entered, now.kind
    waiting, above = now.counts[WAITING, hop], now.counts[NODE_OUT, hop - 1] if hop else 0
    i, j, n, head = 0, 0, now.counts[NODE_COUNT, hop], 0
    last, limit, service = now.last[hop], plant.limit, plant.service
    while True:
        while j < above and kind[hop - 1, j] >= plant.first_cross:
            j += 1
        if j < above and not (i < waiting and arrived[hop, i] < gone[hop - 1, j]):
            t, k, origin = gone[hop - 1, j], kind[hop - 1, j], entered[hop - 1, j]
            j += 1
        elif i < waiting and arrived[hop, i] <= end:
            t, k = arrived[hop, i], own[hop, i]
            origin = t
            i += 1
        else:
            break
        while head < n and gone[hop, head] <= t:
            head += 1
        if n - head >= limit:
            now.dropped[hop, k] += 1
            continue
        last = departure(t, last, service[k])
        gone[hop, n], entered[hop, n], kind[hop, n] = last, origin, k
        n += 1
    while head < n and gone[hop, head] <= end:
        head += 1
    now.last[hop], now.counts[TAKEN, hop], now.counts[NODE_COUNT, hop], now.counts[NODE_OUT, hop] = last, i, n, head


@njit(cache=True, error_model="numpy", nogil=True, forceinline=True)
def _start(plant: FifoPlant, now: FifoTraffic, hop: int, time: float) -> None:
    """Take the packet with the least tag into service."""
    best, queue = inf, -1
    for q in range(now.ring_count.shape[1]):
        if now.ring_count[hop, q] and now.ring_tag[hop, q, now.ring_head[hop, q]] < best:
            best, queue = now.ring_tag[hop, q, now.ring_head[hop, q]], q
    if queue < 0:
        now.serving[hop] = -1
        for q in range(now.tag.shape[1]):
            now.tag[hop, q] = 0.0
        return
    head = now.ring_head[hop, queue]
    k = now.ring_kind[hop, queue, head]
    now.serving[hop], now.serving_entered[hop] = k, now.ring_entered[hop, queue, head]
    now.ring_head[hop, queue] = (head + 1) % plant.limit
    now.ring_count[hop, queue] -= 1
    now.tag[hop, now.tag.shape[1] - 1] = best
    now.last[hop] = time + plant.service[k]


@njit(cache=True, error_model="numpy", nogil=True)
def _serve_fair(plant: FifoPlant, now: FifoTraffic, hop: int, end: float) -> None:
    """Self-clocked fair queueing, tail drop in each queue."""
    arrived, own, gone, entered, kind = now.arrived, now.arrived_kind, now.gone, now.entered, now.kind
    waiting, above = now.counts[WAITING, hop], now.counts[NODE_OUT, hop - 1] if hop else 0
    i, j, n = 0, 0, now.counts[NODE_COUNT, hop]
    in_service = now.tag.shape[1] - 1
    while True:
        while j < above and kind[hop - 1, j] >= plant.first_cross:
            j += 1
        from_above = j < above and not (i < waiting and arrived[hop, i] < gone[hop - 1, j])
        t = inf
        if from_above:
            t = gone[hop - 1, j]
        elif i < waiting and arrived[hop, i] <= end:
            t = arrived[hop, i]
        idle = now.serving[hop] < 0
        if not idle and now.last[hop] < t:  # what comes as a packet leaves has its place, and may be the next
            if now.last[hop] > end:
                break
            gone[hop, n], entered[hop, n], kind[hop, n] = now.last[hop], now.serving_entered[hop], now.serving[hop]
            n += 1
            _start(plant, now, hop, now.last[hop])
            continue
        if t == inf:
            break
        if from_above:
            k, origin = kind[hop - 1, j], entered[hop - 1, j]
            j += 1
        else:
            k, origin = own[hop, i], t
            i += 1
        q = plant.queue[k]
        sending = not idle and plant.queue[now.serving[hop]] == q and now.last[hop] > t
        held = now.ring_count[hop, q] + sending
        if held >= plant.limit:
            now.dropped[hop, k] += 1
            continue
        now.tag[hop, q] = finish_tag(now.tag[hop, q], now.tag[hop, in_service], plant.cost[k])
        place = (now.ring_head[hop, q] + now.ring_count[hop, q]) % plant.limit
        now.ring_tag[hop, q, place], now.ring_entered[hop, q, place] = now.tag[hop, q], origin
        now.ring_kind[hop, q, place] = k
        now.ring_count[hop, q] += 1
        if idle:
            _start(plant, now, hop, t)
    now.counts[TAKEN, hop], now.counts[NODE_COUNT, hop], now.counts[NODE_OUT, hop] = i, n, n


@njit(cache=True, error_model="numpy", nogil=True, forceinline=True)
def observe(measured: np.ndarray, delay: float, first: bool) -> None:
    """One more premium packet, and its difference from the one before."""
    if first:
        measured[DELAY], measured[LAST_DELAY] = delay, delay
    change = abs(delay - measured[LAST_DELAY])
    measured[DELAY], measured[JITTER] = averaged(measured[DELAY], delay), averaged(measured[JITTER], change)
    measured[LAST_DELAY] = delay
    measured[DELAY_SUM] += delay
    measured[JITTER_SUM] += change
    measured[MEASURED] += 1.0


@njit(cache=True, error_model="numpy", nogil=True)
def _measure(now: FifoTraffic) -> None:
    """Premium packets that left the last node."""
    last = now.gone.shape[0] - 1
    for i in range(now.counts[NODE_OUT, last]):
        if now.kind[last, i] == PREMIUM:
            observe(now.measured, now.gone[last, i] - now.entered[last, i], now.departed[last, PREMIUM] == 0)
            now.departed[last, PREMIUM] += 1


@njit(cache=True, error_model="numpy", nogil=True)
def _clear(now: FifoTraffic, hop: int) -> None:
    """Count what left a node, and move what stays to the front of the buffers."""
    counts, last_hop = now.counts, hop == now.gone.shape[0] - 1
    waiting, taken, n, out = counts[WAITING, hop], counts[TAKEN, hop], counts[NODE_COUNT, hop], counts[NODE_OUT, hop]
    for i in range(out):
        k = now.kind[hop, i]
        if k != PREMIUM or not last_hop:  # `_measure` counts these
            now.departed[hop, k] += 1
    for i in range(n - out):
        now.gone[hop, i] = now.gone[hop, out + i]
        now.entered[hop, i] = now.entered[hop, out + i]
        now.kind[hop, i] = now.kind[hop, out + i]
    for i in range(waiting - taken):
        now.arrived[hop, i] = now.arrived[hop, taken + i]
        now.arrived_kind[hop, i] = now.arrived_kind[hop, taken + i]
    counts[WAITING, hop], counts[NODE_COUNT, hop] = waiting - taken, n - out
    counts[TAKEN, hop], counts[NODE_OUT, hop] = 0, 0


@njit(cache=True, error_model="numpy", nogil=True)
def advance_fifo(plant: FifoPlant, now: FifoTraffic, end: float) -> bool:
    """Advance to `end`. False: a flow has no draws left; with more of them, call again."""
    H = len(plant.flow_start) - 1
    while True:
        horizon = end
        for hop in range(H):
            until = _release(plant, now, hop, end)
            if until < 0.0:
                return False
            horizon = min(horizon, until)
        for hop in range(H):
            if len(plant.queue):
                _serve_fair(plant, now, hop, horizon)
            else:
                _serve(plant, now, hop, horizon)
        _measure(now)
        for hop in range(H):
            _clear(now, hop)
        now.time[0] = horizon
        if horizon == end:
            return True
