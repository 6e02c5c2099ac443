"""Ports of the packet kernel: queues, marking, telemetry, flow counting, priority flow control."""

from __future__ import annotations

import numpy as np

from netctrl.jit import INLINED, njit
from netctrl.sim.fabric.state import (
    ENTRY,
    HOP_COLUMNS,
    HOPS_AT,
    MAX_HOPS,
    META,
    PACKET,
    PORT,
    SLOT,
    FabricState,
)
from netctrl.sim.heap import event, push

__all__ = [
    "ARRIVES",
    "FREE",
    "PAUSE",
    "RESUME",
    "WAKE",
    "append",
    "drop_first",
    "enqueue",
    "forget",
    "release_packet",
    "serve",
    "take_packet",
]

ARRIVES, FREE, PAUSE, RESUME, WAKE = range(5)
"""Kinds of event, in the order in which they come at one time."""
DATA, ACK = 0, 1

# numba takes globals as constants, but not entries of a dict.
P_HEAD, P_TAIL, P_BYTES, P_COUNT = (PORT[name] for name in ("head", "tail", "bytes", "count"))
P_PIPE_HEAD, P_PIPE_TAIL, P_BUSY, P_SCHEDULED = (PORT[name] for name in ("pipe_head", "pipe_tail", "busy", "scheduled"))
P_PAUSED, P_INGRESS, P_TOLD, P_DELAY = (PORT[name] for name in ("paused", "ingress", "told", "delay"))
P_SWITCH, P_BUFFER, P_TX_BYTES, P_TX_PACKETS = (PORT[name] for name in ("switch", "buffer", "tx_bytes", "tx_packets"))
P_DROPS, P_AREA, P_CHANGED, P_MAX = (PORT[name] for name in ("drops", "area", "changed", "most"))
P_READY_HEAD, P_READY_TAIL = PORT["ready_head"], PORT["ready_tail"]
P_SEEN_HEAD, P_SEEN_TAIL, P_FLOWS, P_RATE = (PORT[name] for name in ("seen_head", "seen_tail", "flows", "rate"))
P_MARK_LOW, P_MARK_HIGH, P_TX_FULL, P_TX_ACK = (PORT[name] for name in ("mark_low", "mark_high", "tx_full", "tx_ack"))
K_NEXT, K_SLOT, K_SIZE, K_KIND, K_HOP = (PACKET[name] for name in ("next", "slot", "size", "kind", "hop"))
K_MARK, K_INGRESS, K_ARRIVES, K_HOPS = (PACKET[name] for name in ("mark", "ingress", "arrives", "hops"))
S_NEXT, S_FLOW, S_DONE, S_PACKETS, S_LISTED = (SLOT[name] for name in ("next", "flow", "done", "packets", "listed"))
S_WAKE, S_TIMER, S_READY = SLOT["wake"], SLOT["timer"], SLOT["ready"]
E_TIME, E_BEFORE, E_AFTER, E_LISTED = (ENTRY[name] for name in ("time", "before", "after", "listed"))
M_NOW, M_HEAP, M_PACKET_FREE, M_SLOT_FREE = (META[name] for name in ("now", "heap", "packet_free", "slot_free"))
M_PACKETS_LEFT, M_SLOTS_LEFT, M_DRAW, M_HOPS = (META[name] for name in ("packets_left", "slots_left", "draw", "hops"))
M_DROPPED, M_DROPPED_BYTES, M_LIVE, M_LIVE_BYTES = (
    META[name] for name in ("dropped", "dropped_bytes", "live", "live_bytes")
)
M_MARKED, M_MAX_PACKETS = META["marked"], META["most_packets"]


@njit(**INLINED)
def append(ends: np.ndarray, q: int, head: int, tail: int, rows: np.ndarray, after: int, k: int) -> bool:
    """Append row k to list q, whose ends are in two columns; True: it is the only row."""
    rows[k, after] = -1
    last = ends[q, tail]
    ends[q, tail] = k
    if last >= 0:
        rows[last, after] = k
        return False
    ends[q, head] = k
    return True


@njit(**INLINED)
def drop_first(ends: np.ndarray, q: int, head: int, tail: int, rows: np.ndarray, after: int) -> None:
    """Remove the first row of a list q that isn't empty."""
    ends[q, head] = rows[ends[q, head], after]
    if ends[q, head] < 0:
        ends[q, tail] = -1


@njit(**INLINED)
def take_packet(net: FabricState) -> int:
    """Take an unused packet from the pool; the kernel ensures that there is one."""
    meta = net.meta
    k = meta[M_PACKET_FREE]
    meta[M_PACKET_FREE] = net.packet[k, K_NEXT]
    meta[M_PACKETS_LEFT] -= 1
    meta[M_MAX_PACKETS] = max(meta[M_MAX_PACKETS], len(net.packet) - meta[M_PACKETS_LEFT])
    return k


@njit(**INLINED)
def release_packet(net: FabricState, k: int) -> None:
    """Return a packet to the pool."""
    meta, packet = net.meta, net.packet
    slot = packet[k, K_SLOT]
    packet[k, K_NEXT] = meta[M_PACKET_FREE]
    meta[M_PACKET_FREE] = k
    meta[M_PACKETS_LEFT] += 1
    net.slot[slot, S_PACKETS] -= 1
    forget(net, slot)


@njit(**INLINED)
def forget(net: FabricState, s: int) -> None:
    """Free the slot of a completed flow without references."""
    slot = net.slot
    if slot[s, S_DONE] == 0 or slot[s, S_PACKETS] > 0 or slot[s, S_LISTED] > 0:
        return
    if slot[s, S_WAKE] > 0 or slot[s, S_TIMER] > 0 or slot[s, S_READY] > 0:
        return
    slot[s, S_DONE] = 0
    slot[s, S_FLOW] = -1
    slot[s, S_NEXT] = net.meta[M_SLOT_FREE]
    net.meta[M_SLOT_FREE] = s
    net.meta[M_SLOTS_LEFT] += 1


@njit(**INLINED)
def _expire(net: FabricState, q: int, before: int) -> None:
    """Stop counting flows that a port hasn't seen since `before`."""
    port, entry = net.port, net.entry
    e = port[q, P_SEEN_HEAD]
    while e >= 0 and entry[e, E_TIME] < before:
        after = entry[e, E_AFTER]
        entry[e, E_LISTED] = 0
        port[q, P_FLOWS] -= 1
        port[q, P_SEEN_HEAD] = after
        if after >= 0:
            entry[after, E_BEFORE] = -1
        else:
            port[q, P_SEEN_TAIL] = -1
        s = e // MAX_HOPS
        net.slot[s, S_LISTED] -= 1
        forget(net, s)
        e = after


@njit(**INLINED)
def _see(net: FabricState, q: int, e: int, now: int) -> None:
    """Record a packet of entry e: its flow moves to the end of the port's list, which is in order of time."""
    port, entry = net.port, net.entry
    if entry[e, E_LISTED] == 1:
        entry[e, E_TIME] = now
        after = entry[e, E_AFTER]
        if after < 0:
            return
        before = entry[e, E_BEFORE]
        entry[after, E_BEFORE] = before
        if before >= 0:
            entry[before, E_AFTER] = after
        else:
            port[q, P_SEEN_HEAD] = after
    else:
        entry[e, E_LISTED] = 1
        port[q, P_FLOWS] += 1
        net.slot[e // MAX_HOPS, S_LISTED] += 1
    entry[e, E_TIME] = now
    last = port[q, P_SEEN_TAIL]
    entry[e, E_BEFORE], entry[e, E_AFTER] = last, -1
    if last >= 0:
        entry[last, E_AFTER] = e
    else:
        port[q, P_SEEN_HEAD] = e
    port[q, P_SEEN_TAIL] = e


@njit(**INLINED)
def _mark(net: FabricState, q: int, k: int, most: float) -> None:
    """ECN on arrival: always above mark_high, in between with a probability that rises to `most`."""
    port, meta = net.port, net.meta
    waiting = port[q, P_BYTES]
    low, high = port[q, P_MARK_LOW], port[q, P_MARK_HIGH]
    if waiting <= low:
        return
    if waiting <= high:
        share = net.draws[meta[M_DRAW]]
        meta[M_DRAW] += 1
        if share * (high - low) >= most * (waiting - low):
            return
    net.packet[k, K_MARK] = 1
    meta[M_MARKED] += 1


@njit(**INLINED)
def transmit(net: FabricState, q: int, k: int, now: int, rule: np.ndarray) -> None:
    """Put a packet on a port's wire. `rule`: telemetry, flow counting's timeout, PFC's thresholds, clock, full, ACK."""
    port, packet, meta = net.port, net.packet, net.meta
    size, kind = packet[k, K_SIZE], packet[k, K_KIND]
    if port[q, P_SWITCH] == 1:
        if kind == DATA and rule[0] > 0:
            h = packet[k, K_HOPS]
            flows = 0
            if rule[0] == 2:
                _expire(net, q, now - rule[1])
                flows = port[q, P_FLOWS]
            at = HOPS_AT + h * HOP_COLUMNS
            packet[k, at], packet[k, at + 1] = port[q, P_BYTES], flows
            packet[k, at + 2], packet[k, at + 3] = port[q, P_TX_BYTES] + size, now
            packet[k, K_HOPS] = h + 1
        if rule[2] > 0:
            into = packet[k, K_INGRESS]
            port[into, P_INGRESS] -= size
            if port[into, P_TOLD] == 1 and port[into, P_INGRESS] < rule[3]:
                port[into, P_TOLD] = 0
                meta[M_HEAP] = push(net.heap, meta[M_HEAP], event(now + port[into, P_DELAY], RESUME, into))
    if size == rule[5]:
        wire = port[q, P_TX_FULL]
    elif size == rule[6]:
        wire = port[q, P_TX_ACK]
    else:
        wire = time_on_wire(size, port[q, P_RATE], rule[4])
    port[q, P_TX_BYTES] += size
    port[q, P_TX_PACKETS] += 1
    port[q, P_BUSY] = now + wire
    arrives = now + wire + port[q, P_DELAY]
    packet[k, K_ARRIVES] = arrives
    meta[M_HOPS] += 1
    if append(port, q, P_PIPE_HEAD, P_PIPE_TAIL, packet, K_NEXT, k):
        meta[M_HEAP] = push(net.heap, meta[M_HEAP], event(arrives, ARRIVES, q))


@njit(**INLINED)
def time_on_wire(size: int, rate: int, clock: int) -> int:
    """Whole nanoseconds: the nearest (clock 0), or the greatest below the exact time (clock 1)."""
    if clock == 1:
        return max((size * 8_000_000_000 - 1) // rate, 1)
    return max((size * 8_000_000_000 + rate // 2) // rate, 1)


@njit(**INLINED)
def plan(net: FabricState, q: int) -> None:
    """Schedule the service of a port when its wire is free."""
    port, meta = net.port, net.meta
    if port[q, P_SCHEDULED] == 0:
        port[q, P_SCHEDULED] = 1
        meta[M_HEAP] = push(net.heap, meta[M_HEAP], event(port[q, P_BUSY], FREE, q))


@njit(**INLINED)
def serve(net: FabricState, q: int, now: int, rule: np.ndarray) -> None:
    """A switch port's wire is free: the next packet of its queue."""
    port, packet = net.port, net.packet
    k = port[q, P_HEAD]
    if k < 0 or port[q, P_PAUSED] == 1:
        return
    drop_first(port, q, P_HEAD, P_TAIL, packet, K_NEXT)
    port[q, P_AREA] += port[q, P_BYTES] * (now - port[q, P_CHANGED])
    port[q, P_CHANGED] = now
    port[q, P_BYTES] -= packet[k, K_SIZE]
    port[q, P_COUNT] -= 1
    transmit(net, q, k, now, rule)
    if port[q, P_HEAD] >= 0:
        plan(net, q)


@njit(**INLINED)
def enqueue(net: FabricState, q: int, k: int, now: int, rule: np.ndarray, most: float) -> None:
    """Handle a packet that enters a switch by port p (its `ingress`) and leaves by q."""
    port, packet, meta = net.port, net.packet, net.meta
    size = packet[k, K_SIZE]
    if port[q, P_BYTES] + size > port[q, P_BUFFER]:
        port[q, P_DROPS] += 1
        meta[M_DROPPED] += 1
        meta[M_DROPPED_BYTES] += size
        meta[M_LIVE] -= 1
        meta[M_LIVE_BYTES] -= size
        release_packet(net, k)
        return
    if packet[k, K_KIND] == DATA:
        if rule[0] == 2:
            _see(net, q, packet[k, K_SLOT] * MAX_HOPS + packet[k, K_HOP], now)
        _mark(net, q, k, most)
    if rule[2] > 0:
        into = packet[k, K_INGRESS]
        port[into, P_INGRESS] += size
        if port[into, P_INGRESS] > rule[2] and port[into, P_TOLD] == 0:
            port[into, P_TOLD] = 1
            meta[M_HEAP] = push(net.heap, meta[M_HEAP], event(now + port[into, P_DELAY], PAUSE, into))
    if port[q, P_HEAD] < 0 and port[q, P_BUSY] <= now and port[q, P_PAUSED] == 0:
        transmit(net, q, k, now, rule)
        return
    if append(port, q, P_HEAD, P_TAIL, packet, K_NEXT, k) and port[q, P_PAUSED] == 0:
        plan(net, q)
    port[q, P_AREA] += port[q, P_BYTES] * (now - port[q, P_CHANGED])
    port[q, P_CHANGED] = now
    port[q, P_BYTES] += size
    port[q, P_COUNT] += 1
    port[q, P_MAX] = max(port[q, P_MAX], port[q, P_BYTES])
