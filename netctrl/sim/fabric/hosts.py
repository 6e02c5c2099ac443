"""Hosts of the packet kernel: senders with windows and rates, receivers, retransmission.

A host's port sends acknowledgements first, then one packet of each flow that may send, in turn. Loss is recovered as in
RDMA: the receiver takes packets in order only, and the sender goes back to the first missing byte.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.jit import INLINED, njit
from netctrl.laws.window.law import SILENT, Acknowledged
from netctrl.laws.window.rows import RATE, STATES, WINDOW, act, packet_sent
from netctrl.sim.fabric.ports import (
    ACK,
    DATA,
    E_LISTED,
    K_HOP,
    K_HOPS,
    K_KIND,
    K_MARK,
    K_NEXT,
    K_SIZE,
    K_SLOT,
    M_HEAP,
    M_LIVE,
    M_LIVE_BYTES,
    M_SLOT_FREE,
    M_SLOTS_LEFT,
    P_BUSY,
    P_COUNT,
    P_HEAD,
    P_PAUSED,
    P_READY_HEAD,
    P_READY_TAIL,
    P_TAIL,
    S_DONE,
    S_FLOW,
    S_NEXT,
    S_PACKETS,
    S_READY,
    S_TIMER,
    S_WAKE,
    WAKE,
    append,
    drop_first,
    forget,
    plan,
    release_packet,
    take_packet,
    transmit,
)
from netctrl.sim.fabric.state import (
    FLOW,
    HOP_COLUMNS,
    HOPS_AT,
    MAX_HOPS,
    META,
    PACKET,
    ROUTE_AT,
    SLOT,
    FabricState,
)
from netctrl.sim.heap import event, push

__all__ = ["Senders", "acknowledge", "deliver", "offer", "serve_host", "start_flow", "time_out", "wake"]

K_SEQ, K_PAYLOAD, K_SENT, K_NOTICE = (PACKET[name] for name in ("seq", "payload", "sent", "notice"))
S_SIZE, S_NEXT_BYTE, S_UNA, S_EXPECTED = (SLOT[name] for name in ("size", "next_byte", "una", "expected"))
S_FARTHEST, S_PACE, S_NIC, S_NOTIFIED = (SLOT[name] for name in ("farthest", "pace", "nic", "notified"))
S_PROGRESS, S_NACKED, S_PATH, S_WATCH = (SLOT[name] for name in ("progress", "nacked", "path", "watch"))
S_TIMER_NEXT = SLOT["timer_next"]
F_START, F_SIZE, F_FINISH, F_ACKED = (FLOW[name] for name in ("start", "size", "finish", "acked"))
F_NIC, F_PATH, F_WATCH = FLOW["nic"], FLOW["path"], FLOW["watch"]
M_ACTIVE, M_NEXT_FLOW, M_COMPLETED, M_AGAIN = (META[name] for name in ("active", "next_flow", "completed", "again"))
M_SENT, M_SENT_BYTES, M_RECEIVED, M_RECEIVED_BYTES = (
    META[name] for name in ("sent", "sent_bytes", "received", "received_bytes")
)
M_ACKS, M_LOG, M_TIMER_HEAD, M_TIMER_TAIL = (META[name] for name in ("acks", "log", "timer_head", "timer_tail"))
M_MAX_SLOTS = META["most_slots"]
_LONGEST_GAP = 60e9  # [ns]: times of events have 40 bits, and a run may last 1000 s
NOTIFIED, MISSING = 1, 2  # bits of a packet's notice


class Senders(NamedTuple):
    """What hosts do, for all flows; C kinds of path."""

    law: int
    """Its place in `netctrl.laws.window.records.LAWS`."""
    parameters: np.ndarray
    paths: np.ndarray
    """(C, ...) rows of `netctrl.laws.window.law.Path`."""
    tables: np.ndarray
    """(C, ...) what the law looks up."""
    lines: np.ndarray
    """(C,) line rates [bit/s]."""
    windows: np.ndarray
    """(C,) of a new flow [byte]."""
    payload: int
    overhead: int
    """Of a data packet [byte]."""
    ack: int
    """[byte]"""
    notification: int
    """Least time between two CNPs [ns]; 0: none."""
    timeout: int
    """[ns]"""
    bin: int
    """Of watched flows' throughput [ns]."""


@njit(**INLINED)
def _may_send(net: FabricState, s: int) -> bool:
    slot = net.slot
    next_byte = slot[s, S_NEXT_BYTE]
    return next_byte < slot[s, S_SIZE] and next_byte - slot[s, S_UNA] < net.law[s, WINDOW]


@njit(**INLINED)
def _settle(net: FabricState, s: int, now: int) -> bool:
    """Put a flow that may send into its port's list, now or when its pace allows. True: it is in the list now."""
    slot, port = net.slot, net.port
    if slot[s, S_READY] == 1 or not _may_send(net, s):
        return False
    q = slot[s, S_NIC]
    if slot[s, S_PACE] > max(now, port[q, P_BUSY]):
        if slot[s, S_WAKE] == 0:
            slot[s, S_WAKE] = 1
            net.meta[M_HEAP] = push(net.heap, net.meta[M_HEAP], event(slot[s, S_PACE], WAKE, s))
        return False
    slot[s, S_READY] = 1
    append(port, q, P_READY_HEAD, P_READY_TAIL, slot, S_NEXT, s)
    return True


@njit(**INLINED)
def offer(net: FabricState, hosts: Senders, s: int, now: int, rule: np.ndarray) -> None:
    """Serve a flow's port if the flow may send and the port is free."""
    if _settle(net, s, now):
        q = net.slot[s, S_NIC]
        if net.port[q, P_BUSY] <= now:
            serve_host(net, hosts, q, now, rule)
        elif net.port[q, P_PAUSED] == 0:
            plan(net, q)


@njit(**INLINED)
def serve_host(net: FabricState, hosts: Senders, q: int, now: int, rule: np.ndarray) -> None:
    """A host's wire is free: an acknowledgement, or a packet of the flow whose turn it is."""
    port, packet, slot = net.port, net.packet, net.slot
    if port[q, P_PAUSED] == 1:
        return
    if port[q, P_BUSY] > now:  # what came at this very time has begun a packet already
        if port[q, P_HEAD] >= 0 or port[q, P_READY_HEAD] >= 0:
            plan(net, q)
        return
    k = port[q, P_HEAD]
    if k >= 0:
        drop_first(port, q, P_HEAD, P_TAIL, packet, K_NEXT)
        port[q, P_COUNT] -= 1
        transmit(net, q, k, now, rule)
    else:
        while port[q, P_READY_HEAD] >= 0:
            s = port[q, P_READY_HEAD]
            drop_first(port, q, P_READY_HEAD, P_READY_TAIL, slot, S_NEXT)
            slot[s, S_READY] = 0
            if _may_send(net, s):
                transmit(net, q, _packet(net, hosts, s, now), now, rule)
                _settle(net, s, now)
                break
            forget(net, s)
    if (port[q, P_HEAD] >= 0 or port[q, P_READY_HEAD] >= 0) and port[q, P_BUSY] > now:
        plan(net, q)


@njit(**INLINED)
def _packet(net: FabricState, hosts: Senders, s: int, now: int) -> int:
    """The next packet of a flow."""
    slot, packet, meta, law = net.slot, net.packet, net.meta, net.law
    k = take_packet(net)
    seq = slot[s, S_NEXT_BYTE]
    payload = min(hosts.payload, slot[s, S_SIZE] - seq)
    size = payload + hosts.overhead
    packet[k, K_SLOT], packet[k, K_SIZE], packet[k, K_KIND], packet[k, K_HOP] = s, size, DATA, 0
    packet[k, K_SEQ], packet[k, K_PAYLOAD], packet[k, K_SENT] = seq, payload, now
    packet[k, K_MARK] = packet[k, K_NOTICE] = packet[k, K_HOPS] = 0
    slot[s, S_PACKETS] += 1
    slot[s, S_NEXT_BYTE] = seq + payload
    if seq < slot[s, S_FARTHEST]:
        meta[M_AGAIN] += 1
    slot[s, S_FARTHEST] = max(slot[s, S_FARTHEST], seq + payload)
    kind = slot[s, S_PATH]
    packet_sent(hosts.law, hosts.parameters, hosts.paths[kind], law[s], float(now), float(payload))
    rate = law[s, RATE]
    if rate < hosts.lines[kind]:  # the wire itself keeps line rate
        slot[s, S_PACE] = now + np.int64(min(size * 8e9 / rate, _LONGEST_GAP))
    meta[M_SENT] += 1
    meta[M_SENT_BYTES] += size
    meta[M_LIVE] += 1
    meta[M_LIVE_BYTES] += size
    return k


@njit(**INLINED)
def start_flow(net: FabricState, hosts: Senders, f: int, now: int, rule: np.ndarray) -> None:
    """Start a flow: assign a slot, and send as much as its window allows."""
    slot, flow, meta, law = net.slot, net.flow, net.meta, net.law
    s = meta[M_SLOT_FREE]
    meta[M_SLOT_FREE] = slot[s, S_NEXT]
    meta[M_SLOTS_LEFT] -= 1
    meta[M_MAX_SLOTS] = max(meta[M_MAX_SLOTS], len(slot) - meta[M_SLOTS_LEFT])
    slot[s] = 0
    slot[s, S_FLOW], slot[s, S_SIZE], slot[s, S_NIC] = f, flow[f, F_SIZE], flow[f, F_NIC]
    slot[s, S_PATH], slot[s, S_WATCH], slot[s, S_PROGRESS] = flow[f, F_PATH], flow[f, F_WATCH], now
    slot[s, S_NOTIFIED] = -(1 << 60)
    for h in range(MAX_HOPS):
        slot[s, ROUTE_AT + h], slot[s, ROUTE_AT + MAX_HOPS + h] = net.route[f, 0, h], net.route[f, 1, h]
        net.entry[s * MAX_HOPS + h, E_LISTED] = 0
    for c in range(STATES):
        law[s, c] = 0.0
    net.memory[s] = 0.0
    law[s, WINDOW] = hosts.windows[flow[f, F_PATH]]
    law[s, RATE] = hosts.lines[flow[f, F_PATH]]
    meta[M_ACTIVE] += 1
    _arm(net, s, now)
    offer(net, hosts, s, now, rule)


@njit(**INLINED)
def _arm(net: FabricState, s: int, now: int) -> None:
    """The flow's timer starts; all timers run equally long, so that a list in order of time does."""
    slot, meta = net.slot, net.meta
    slot[s, S_TIMER], slot[s, S_TIMER_NEXT] = now + 1, -1
    last = meta[M_TIMER_TAIL]
    meta[M_TIMER_TAIL] = s
    if last >= 0:
        slot[last, S_TIMER_NEXT] = s
    else:
        meta[M_TIMER_HEAD] = s


@njit(**INLINED)
def time_out(net: FabricState, hosts: Senders, now: int, rule: np.ndarray) -> None:
    """Handle the first timer: without progress, the flow resends all unacknowledged data."""
    slot, meta = net.slot, net.meta
    s = meta[M_TIMER_HEAD]
    meta[M_TIMER_HEAD] = slot[s, S_TIMER_NEXT]
    if meta[M_TIMER_HEAD] < 0:
        meta[M_TIMER_TAIL] = -1
    slot[s, S_TIMER] = 0
    if slot[s, S_DONE] == 1:
        forget(net, s)
        return
    if slot[s, S_PROGRESS] + hosts.timeout <= now and slot[s, S_NEXT_BYTE] > slot[s, S_UNA]:
        slot[s, S_NEXT_BYTE] = slot[s, S_UNA]
        slot[s, S_PROGRESS] = now
    _arm(net, s, now)
    offer(net, hosts, s, now, rule)


@njit(**INLINED)
def wake(net: FabricState, hosts: Senders, s: int, now: int, rule: np.ndarray) -> None:
    """Resume a flow whose pace allows it to send."""
    net.slot[s, S_WAKE] = 0
    offer(net, hosts, s, now, rule)
    forget(net, s)


@njit(**INLINED)
def deliver(net: FabricState, hosts: Senders, k: int, now: int, rule: np.ndarray) -> None:
    """Handle a data packet at its host: it becomes its acknowledgement and keeps its telemetry."""
    packet, slot, meta, port = net.packet, net.slot, net.meta, net.port
    s, size = packet[k, K_SLOT], packet[k, K_SIZE]
    meta[M_RECEIVED] += 1
    meta[M_RECEIVED_BYTES] += size
    notice = 0
    if packet[k, K_SEQ] == slot[s, S_EXPECTED]:
        slot[s, S_EXPECTED] += packet[k, K_PAYLOAD]
        slot[s, S_NACKED] = 0
        if slot[s, S_EXPECTED] == slot[s, S_SIZE]:
            net.flow[slot[s, S_FLOW], F_FINISH] = now
        if slot[s, S_WATCH] >= 0:
            b = now // hosts.bin
            if b < net.bins.shape[1]:
                net.bins[slot[s, S_WATCH], b] += size
    elif packet[k, K_SEQ] > slot[s, S_EXPECTED] and slot[s, S_NACKED] == 0:
        slot[s, S_NACKED] = 1
        notice = MISSING
    if hosts.notification > 0 and packet[k, K_MARK] == 1 and now - slot[s, S_NOTIFIED] >= hosts.notification:
        slot[s, S_NOTIFIED] = now
        notice |= NOTIFIED
    packet[k, K_KIND], packet[k, K_SIZE], packet[k, K_HOP] = ACK, hosts.ack, 0
    packet[k, K_PAYLOAD], packet[k, K_NOTICE] = slot[s, S_EXPECTED], notice
    meta[M_LIVE_BYTES] += hosts.ack - size
    meta[M_SENT] += 1
    meta[M_SENT_BYTES] += hosts.ack
    q = slot[s, ROUTE_AT + MAX_HOPS]
    append(port, q, P_HEAD, P_TAIL, packet, K_NEXT, k)
    port[q, P_COUNT] += 1
    if port[q, P_BUSY] <= now:
        serve_host(net, hosts, q, now, rule)
    elif port[q, P_PAUSED] == 0:
        plan(net, q)


@njit(**INLINED)
def acknowledge(net: FabricState, hosts: Senders, k: int, now: int, rule: np.ndarray) -> None:
    """Handle an acknowledgement at its sender: the law takes a step, and the flow sends as much as allowed."""
    packet, slot, meta = net.packet, net.slot, net.meta
    s = packet[k, K_SLOT]
    meta[M_RECEIVED] += 1
    meta[M_RECEIVED_BYTES] += packet[k, K_SIZE]
    meta[M_LIVE] -= 1
    meta[M_LIVE_BYTES] -= packet[k, K_SIZE]
    meta[M_ACKS] += 1
    if slot[s, S_DONE] == 0:
        newly = max(packet[k, K_PAYLOAD] - slot[s, S_UNA], 0)
        if newly > 0:
            slot[s, S_UNA] = packet[k, K_PAYLOAD]
            slot[s, S_NEXT_BYTE] = max(slot[s, S_NEXT_BYTE], slot[s, S_UNA])
            slot[s, S_PROGRESS] = now
        lost = packet[k, K_NOTICE] & MISSING != 0
        if lost:
            slot[s, S_NEXT_BYTE] = slot[s, S_UNA]
        rtt, kind = now - packet[k, K_SENT], slot[s, S_PATH]
        seen = Acknowledged(
            float(now),
            float(slot[s, S_UNA]),
            float(slot[s, S_NEXT_BYTE]),
            float(newly),
            float(rtt),
            packet[k, K_MARK] == 1,
            packet[k, K_NOTICE] & NOTIFIED != 0,
            lost,
            SILENT,
        )
        hops = packet[k, HOPS_AT:].reshape((MAX_HOPS - 1, HOP_COLUMNS))
        path, table = hosts.paths[kind], hosts.tables[kind]
        act(hosts.law, hosts.parameters, path, net.law[s], table, net.memory[s], seen, hops)
        if slot[s, S_WATCH] >= 0:
            _log(net, s, now, rtt, hops, packet[k, K_HOPS])
        if slot[s, S_UNA] == slot[s, S_SIZE]:
            slot[s, S_DONE] = 1
            net.flow[slot[s, S_FLOW], F_ACKED] = now
            meta[M_ACTIVE] -= 1
            meta[M_COMPLETED] += 1
        else:
            offer(net, hosts, s, now, rule)
    release_packet(net, k)


@njit(**INLINED)
def _log(net: FabricState, s: int, now: int, rtt: int, hops: np.ndarray, count: int) -> None:
    """One row: time, watched flow, queue of the fullest hop, its flows, its place, when it left it, W, rate, RTT."""
    row = net.meta[M_LOG]
    if row >= len(net.log):
        return
    net.meta[M_LOG] += 1
    best = 0
    for h in range(1, count):
        if hops[h, 0] > hops[best, 0]:
            best = h
    log, state = net.log, net.law[s]
    log[row, 0], log[row, 1], log[row, 2], log[row, 3] = now, net.slot[s, S_WATCH], hops[best, 0], hops[best, 1]
    log[row, 4], log[row, 5], log[row, 6], log[row, 7] = best, hops[best, 3], state[WINDOW], state[RATE]
    log[row, 8] = rtt
