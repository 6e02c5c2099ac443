"""The packet kernel of a data centre: one event after the other, in whole nanoseconds.

A call continues where the last one stopped. It stops early where a pool has no room or draws are missing, which doesn't
change the results.

All is inlined into `advance_fabric`, the one function of these that Python calls.
"""

from __future__ import annotations

import numpy as np

from netctrl.jit import INLINED, njit
from netctrl.sim.fabric.hosts import (
    F_START,
    M_NEXT_FLOW,
    M_TIMER_HEAD,
    Senders,
    acknowledge,
    deliver,
    serve_host,
    start_flow,
    time_out,
    wake,
)
from netctrl.sim.fabric.ports import (
    ARRIVES,
    DATA,
    FREE,
    K_ARRIVES,
    K_HOP,
    K_INGRESS,
    K_KIND,
    K_NEXT,
    K_SLOT,
    M_DRAW,
    M_HEAP,
    M_NOW,
    M_PACKETS_LEFT,
    M_SLOTS_LEFT,
    P_BUSY,
    P_BYTES,
    P_HEAD,
    P_PAUSED,
    P_PIPE_HEAD,
    P_PIPE_TAIL,
    P_READY_HEAD,
    P_SCHEDULED,
    P_SWITCH,
    PAUSE,
    RESUME,
    S_TIMER,
    enqueue,
    plan,
    serve,
)
from netctrl.sim.fabric.state import MAX_HOPS, META, PORT, ROUTE_AT, FabricState
from netctrl.sim.heap import PLACE_BITS, TIME_SHIFT, event, pop, replace_first

__all__ = ["advance_fabric"]

P_TO_HOST, P_WATCHED, P_PAUSES = PORT["to_host"], PORT["watched"], PORT["pauses"]
P_PAUSED_SINCE, P_PAUSED_TIME = PORT["paused_since"], PORT["paused_time"]
M_SAMPLE, M_EVENTS = META["sample"], META["events"]
_NEVER = 1 << 62
_PLACE = (1 << PLACE_BITS) - 1


@njit(**INLINED)
def _arrive(net: FabricState, hosts: Senders, p: int, now: int, rule: np.ndarray, most: float) -> None:
    """The first packet on a port's wire is at its other end."""
    port, packet, meta = net.port, net.packet, net.meta
    k = port[p, P_PIPE_HEAD]
    after = packet[k, K_NEXT]
    port[p, P_PIPE_HEAD] = after
    if after >= 0:
        replace_first(net.heap, meta[M_HEAP], event(packet[after, K_ARRIVES], ARRIVES, p))
    else:
        port[p, P_PIPE_TAIL] = -1
        meta[M_HEAP] = pop(net.heap, meta[M_HEAP])
    if port[p, P_TO_HOST] == 1:
        if packet[k, K_KIND] == DATA:
            deliver(net, hosts, k, now, rule)
        else:
            acknowledge(net, hosts, k, now, rule)
        return
    hop = packet[k, K_HOP] + 1
    packet[k, K_HOP], packet[k, K_INGRESS] = hop, p
    back = 0 if packet[k, K_KIND] == DATA else MAX_HOPS
    enqueue(net, net.slot[packet[k, K_SLOT], ROUTE_AT + back + hop], k, now, rule, most)


@njit(**INLINED)
def _resume(net: FabricState, hosts: Senders, q: int, now: int, rule: np.ndarray) -> None:
    port = net.port
    port[q, P_PAUSED] = 0
    port[q, P_PAUSED_TIME] += now - port[q, P_PAUSED_SINCE]
    if port[q, P_HEAD] < 0 and port[q, P_READY_HEAD] < 0:
        return
    if port[q, P_BUSY] > now:
        plan(net, q)
    elif port[q, P_SWITCH] == 1:
        serve(net, q, now, rule)
    else:
        serve_host(net, hosts, q, now, rule)


@njit(**INLINED)
def _sample(net: FabricState, width: int) -> None:
    """All switch queues at one time."""
    port, last = net.port, len(net.histogram) - 1
    row = net.meta[M_SAMPLE]
    for q in range(len(port)):
        if port[q, P_SWITCH] == 1:
            net.histogram[min((port[q, P_BYTES] + width - 1) // width, last)] += 1
            if port[q, P_WATCHED] >= 0 and row < net.series.shape[1]:
                net.series[port[q, P_WATCHED], row] = port[q, P_BYTES]
    net.meta[M_SAMPLE] += 1


@njit(cache=True, error_model="numpy", nogil=True, _nrt=False)
def advance_fabric(
    net: FabricState, hosts: Senders, rule: np.ndarray, most: float, interval: int, width: int, end: int
) -> bool:
    """Advance to `end` [ns]. Returns False where a pool is full or draws are missing; add them and call again.

    Parameters
    ----------
    net : FabricState
    hosts : Senders
    rule : ndarray
        Telemetry (0: none, 1: without, 2: with flow counting), its timeout [ns], PFC's pause and resume [byte] (0:
        none), clock, sizes of a full packet and an acknowledgement.
    most : float
        Greatest probability of marking between the thresholds.
    interval, width : int
        Of the samples [ns], and of the bins of their histogram [byte].
    """
    meta, heap, port, flow = net.meta, net.heap, net.port, net.flow
    F, drawn = len(flow), len(net.draws) - 2
    while True:
        if meta[M_PACKETS_LEFT] < 4 or meta[M_SLOTS_LEFT] < 1 or meta[M_HEAP] + 16 > len(heap):
            return False
        if meta[M_DRAW] > drawn:
            return False
        first = heap[0]
        now = first >> TIME_SHIFT if meta[M_HEAP] > 0 else _NEVER
        sample = meta[M_SAMPLE] * interval
        start = flow[meta[M_NEXT_FLOW], F_START] if meta[M_NEXT_FLOW] < F else _NEVER
        head = meta[M_TIMER_HEAD]
        timer = net.slot[head, S_TIMER] - 1 + hosts.timeout if head >= 0 else _NEVER
        if min(sample, start, timer) <= now:
            now = min(sample, start, timer)
            if now >= end:
                meta[M_NOW] = end
                return True
            meta[M_NOW] = now
            if sample == now:
                _sample(net, width)
            elif start == now:
                meta[M_NEXT_FLOW] += 1
                start_flow(net, hosts, meta[M_NEXT_FLOW] - 1, now, rule)
            else:
                time_out(net, hosts, now, rule)
            continue
        if now >= end:
            meta[M_NOW] = end
            return True
        meta[M_NOW] = now
        meta[M_EVENTS] += 1
        kind, place = (first >> PLACE_BITS) & 7, first & _PLACE
        if kind == ARRIVES:
            _arrive(net, hosts, place, now, rule, most)
            continue
        meta[M_HEAP] = pop(heap, meta[M_HEAP])
        if kind == FREE:
            port[place, P_SCHEDULED] = 0
            if port[place, P_SWITCH] == 1:
                serve(net, place, now, rule)
            else:
                serve_host(net, hosts, place, now, rule)
        elif kind == PAUSE:
            if port[place, P_PAUSED] == 0:
                port[place, P_PAUSED], port[place, P_PAUSED_SINCE] = 1, now
                port[place, P_PAUSES] += 1
        elif kind == RESUME:
            if port[place, P_PAUSED] == 1:
                _resume(net, hosts, place, now, rule)
        else:
            wake(net, hosts, place, now, rule)
