"""Kernel of an access link, packet by packet: sources release, nodes in tandem serve, the receiver measures.

A call continues where the last one stopped, in pieces limited by its buffers; the division into calls changes no bit.
"""

from __future__ import annotations

from math import inf

from netctrl.jit import INSIDE, njit
from netctrl.plants.access import departure, observe
from netctrl.sim.access.fair import serve_fair
from netctrl.sim.access.state import NODE_COUNT, NODE_OUT, PREMIUM, TAKEN, WAITING, AccessLinkPlant, AccessLinkTraffic


@njit(**INSIDE)
def _release(plant: AccessLinkPlant, now: AccessLinkTraffic, hop: int, end: float) -> float:
    """Merge releases before a hop in order of time. Returns the time reached, or -1 if draws are missing.

    The earliest flow goes on alone until another's packet comes, so that a burst costs one search.
    """
    first, stop = plant.flow_start[hop], plant.flow_start[hop + 1]
    gates = now.gates
    upcoming, left, kinds = gates.next, gates.left, now.arrived_kind
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
                used = gates.used[flow]
                if used == gates.draws.shape[1]:
                    now.counts[WAITING, hop] = n - 1
                    upcoming[flow], left[flow] = t, 1
                    released[flow + 1] += n - 1 - before
                    return -1.0
                held = 1.0 - plant.variation[flow] + plant.variation[flow] * gates.draws[flow, used]
                gates.held[flow], gates.used[flow], rest = held, used + 1, gates.burst[flow]
                pause = gates.pause[flow]
                t = t + held * pause if pause < inf else inf
            else:
                t += spacing
            if t >= until or n == room:
                break
        released[flow + 1] += n - before
        upcoming[flow], left[flow], gates.pausing[flow] = t, rest, paused


@njit(**INSIDE)
def _serve(plant: AccessLinkPlant, now: AccessLinkTraffic, hop: int, end: float) -> None:
    """FIFO with tail drop: serve all arrivals at a node up to `end`; at equal times those from the previous node come
    first."""
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


@njit(**INSIDE)
def _measure(now: AccessLinkTraffic) -> None:
    """Measure premium packets that left the last node."""
    last = now.gone.shape[0] - 1
    for i in range(now.counts[NODE_OUT, last]):
        if now.kind[last, i] == PREMIUM:
            observe(now.measured, now.gone[last, i] - now.entered[last, i], now.departed[last, PREMIUM] == 0)
            now.departed[last, PREMIUM] += 1


@njit(**INSIDE)
def _clear(now: AccessLinkTraffic, hop: int) -> None:
    """Count departures from a node, and move the remaining packets to the front of the buffers."""
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
def advance_access_link(plant: AccessLinkPlant, now: AccessLinkTraffic, end: float) -> bool:
    """Advance to `end`. Returns False where a flow has no draws left; add draws and call again."""
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
                serve_fair(plant, now, hop, horizon)
            else:
                _serve(plant, now, hop, horizon)
        _measure(now)
        for hop in range(H):
            _clear(now, hop)
        now.time[0] = horizon
        if horizon == end:
            return True
