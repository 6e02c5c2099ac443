"""Node with self-clocked fair queueing, for WFQ and CBQ."""

from __future__ import annotations

from math import inf

from netctrl.jit import INLINED, INSIDE, njit
from netctrl.laws.link import choose_queue, tag_first
from netctrl.sim.access.state import NODE_COUNT, NODE_OUT, TAKEN, WAITING, AccessLinkPlant, AccessLinkTraffic


@njit(**INLINED)
def _start(plant: AccessLinkPlant, now: AccessLinkTraffic, hop: int, time: float) -> None:
    """Take the packet with the least tag into service."""
    queue = choose_queue(now.tag[hop])
    if queue < 0:
        now.serving[hop] = -1
        return
    head = now.ring_head[hop, queue]
    k = now.ring_kind[hop, queue, head]
    now.serving[hop], now.serving_entered[hop] = k, now.ring_entered[hop, queue, head]
    head = (head + 1) % plant.limit
    now.ring_head[hop, queue] = head
    now.ring_count[hop, queue] -= 1
    if now.ring_count[hop, queue]:
        tag_first(now.tag[hop], queue, plant.cost[now.ring_kind[hop, queue, head]])
    now.last[hop] = time + plant.service[k]


@njit(**INSIDE)
def serve_fair(plant: AccessLinkPlant, now: AccessLinkTraffic, hop: int, end: float) -> None:
    """Serve all arrivals at a node up to `end`; tail drop in each queue."""
    arrived, own, gone, entered, kind = now.arrived, now.arrived_kind, now.gone, now.entered, now.kind
    waiting, above = now.counts[WAITING, hop], now.counts[NODE_OUT, hop - 1] if hop else 0
    i, j, n = 0, 0, now.counts[NODE_COUNT, hop]
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
        if not idle and now.last[hop] < t:  # an arrival at a departure takes its place, and may be next
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
        if now.ring_count[hop, q] == 0:
            tag_first(now.tag[hop], q, plant.cost[k])
        place = (now.ring_head[hop, q] + now.ring_count[hop, q]) % plant.limit
        now.ring_entered[hop, q, place], now.ring_kind[hop, q, place] = origin, k
        now.ring_count[hop, q] += 1
        if idle:
            _start(plant, now, hop, t)
    now.counts[TAKEN, hop], now.counts[NODE_COUNT, hop], now.counts[NODE_OUT, hop] = i, n, n
