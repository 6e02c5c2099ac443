"""TCP of the packet engine: what a sender knows of its segments, and what its receiver acknowledges.

Each segment is acknowledged as it comes, with the run of segments that it ends (the first block of SACK), whether it
was sent again (as timestamps tell), and whether it had come before (DSACK). What is in flight counts what is neither
acknowledged nor lost. Sources: RFC 9293 (handshake), 5681, 3168; 2018 for the block, 2883, 7323; of loss recovery
`netctrl.sim.packet.senders.recovery`.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.sender import TcpWindow
from netctrl.sim.packet.links.links import enqueue
from netctrl.sim.packet.senders.pacing import hold, space
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.recovery import RECOVERY, arm, probes, restart, sacked
from netctrl.sim.packet.senders.scoreboard import LOST, doubtful, sent_again
from netctrl.sim.packet.state import (
    AGAIN,
    DATA,
    DATAGRAM,
    FLOW,
    GENERATION_MASK,
    GENERATION_SHIFT,
    KIND_SHIFT,
    META,
    PACKET,
    REDUCED,
    SYN,
    PacketState,
    codepoint,
    release,
)

CLOSED, CONNECTING, OPEN = range(3)
"""States of a connection."""
TCP, UDP, DEMAND, MESSAGES = range(4)
"""Kinds of flow; of messages: data-centre senders."""

W_WINDOW, W_THRESHOLD, W_MIN_RTT = (
    list(fields_of(TcpWindow)).index(name) for name in ("window", "threshold", "min_rtt")
)
F_STATE, F_ROUTE, F_GENERATION = (FLOW[name] for name in ("state", "route", "generation"))
F_SIZE, F_LAST, F_UNA, F_NEXT, F_PIPE = (FLOW[name] for name in ("size", "last_bytes", "una", "next", "pipe"))
F_WRITE, F_MOST, F_EDGE, F_LIMITED, F_TIMER = (FLOW[name] for name in ("write", "most", "edge", "limited", "timer"))
F_RECOVERY, F_RETRY, F_LOST, F_LAW = (FLOW[name] for name in ("recovery", "retry", "lost", "law"))
F_PROBE, F_PROBE_AGAIN, F_ROOM = (FLOW[name] for name in ("probe", "probe_again", "room"))
F_UNDO_LEFT, F_UNDO_AT, F_RTO_AT = (FLOW[name] for name in ("undo_left", "undo_at", "rto_at"))
F_RTO, F_STEPS, F_RING, F_MASK = (FLOW[name] for name in ("rto", "steps", "ring", "mask"))
F_FARTHEST, F_HEAD, F_HELD, F_PIECE = (FLOW[name] for name in ("farthest", "resent_head", "held", "piece"))
F_ECN, F_REDUCED, F_EXACT = (FLOW[name] for name in ("ecn", "reduced", "exact"))
F_STOP, F_SENT, F_AGAIN, F_DUE, F_PACER = (FLOW[name] for name in ("stop", "sent", "again", "due", "pacer"))
K_NEXT, K_FLOW, K_SEQ, K_HOP, K_INFO, K_BACK = (PACKET[name] for name in ("next", "flow", "seq", "hop", "info", "back"))
M_FREE, M_LEFT, M_SHORT, M_LIVE, M_MOST = (META[name] for name in ("free", "left", "short", "live", "most"))
M_SENT, M_OFFERED = META["sent"], META["offered"]

_FIRST_RTO = 1_000_000_000  # RFC 6298, section 2 [ns]


@njit(**INLINED)
def take(net: PacketState) -> int:
    """A packet of the pool, which has one."""
    meta = net.meta
    k = meta[M_FREE]
    meta[M_FREE] = net.packet[k, K_NEXT]
    meta[M_LEFT] -= 1
    meta[M_LIVE] += 1
    meta[M_MOST] = max(meta[M_MOST], meta[M_LIVE])
    return k


@njit(**INLINED)
def _send(net: PacketState, f: int, k: int, seq: int, kind: int, size: int, more: int, now: int) -> None:
    """A packet of flow f enters its first link."""
    flow, packet, meta = net.flow, net.packet, net.meta
    packet[k, K_FLOW], packet[k, K_SEQ], packet[k, K_BACK] = f, seq, now
    packet[k, K_INFO] = size | kind << KIND_SHIFT | more | flow[f, F_GENERATION] << GENERATION_SHIFT
    packet[k, K_HOP] = flow[f, F_ROUTE]
    meta[M_SENT] += 1
    meta[M_OFFERED] += size
    enqueue(net, net.route[flow[f, F_ROUTE]], k, now)


@njit(**INSIDE)
def connect(net: PacketState, f: int, now: int, first_window: float) -> None:
    """A connection begins anew: its first packet asks for it."""
    flow, row = net.flow, net.window[f]
    generation = (flow[f, F_GENERATION] + 1) & GENERATION_MASK
    flow[f, F_GENERATION], flow[f, F_STATE] = generation, CONNECTING
    if flow[f, F_HELD] > 0:
        release(net, flow[f, F_HELD] - 1)
    for column in range(F_UNA, F_REDUCED + 1):
        flow[f, column] = 0
    flow[f, F_FARTHEST], flow[f, F_HEAD], flow[f, F_RTO], flow[f, F_STEPS] = -1, -1, _FIRST_RTO, 1
    row[:] = 0.0
    row[W_WINDOW], row[W_THRESHOLD], row[W_MIN_RTT] = first_window, np.inf, np.inf
    ask(net, f, now)


@njit(**INLINED)
def ask(net: PacketState, f: int, now: int) -> None:
    """Ask for a connection."""
    restart(net, f, now)
    arm(net, f, now, 0)
    if net.meta[M_LEFT] > 0:
        _send(net, f, take(net), 0, SYN, HEADERS, _always_capable(net, f), now)


@njit(**INLINED)
def _always_capable(net: PacketState, f: int) -> int:
    """Codepoint of handshake and of what is sent again, as Linux has it for laws whose queues mark all; else 0."""
    return codepoint(net.flow[f, F_ECN]) if net.flow[f, F_EXACT] == 1 else 0


@njit(**INLINED)
def send_datagram(net: PacketState, f: int, now: int, full: int) -> None:
    """A packet of a flow that nobody acknowledges."""
    if net.meta[M_LEFT] > 0:
        net.flow[f, F_SENT] += 1
        _send(net, f, take(net), 0, DATAGRAM, full, codepoint(net.flow[f, F_ECN]), now)


@njit(**INLINED)
def receivable(net: PacketState, f: int) -> int:
    """The segment up to where the receiver takes: what is out of order has its part of the room, as in Linux, but what
    was offered once stays offered (RFC 9293, section 3.8.6)."""
    flow = net.flow
    flow[f, F_EDGE] = max(flow[f, F_EDGE], flow[f, F_UNA] + flow[f, F_MOST] - sacked(net, f))
    return int(flow[f, F_EDGE])


@njit(**INLINED)
def offer(net: PacketState, f: int, now: int, full: int) -> None:
    """The flow sends what its window lets: first what was lost, then what is new."""
    flow, meta, left, edge = net.flow, net.meta, 0, receivable(net, f)
    while flow[f, F_STATE] == OPEN:
        again = flow[f, F_LOST] > 0
        if not again:
            if flow[f, F_NEXT] >= flow[f, F_SIZE] or now >= flow[f, F_STOP]:
                if flow[f, F_PIPE] + 1.0 <= net.window[f, W_WINDOW]:
                    flow[f, F_LIMITED] = flow[f, F_NEXT]
                return
            if flow[f, F_NEXT] >= edge:
                return
        if flow[f, F_RECOVERY] == RECOVERY and flow[f, F_LAW] >= 0:
            if flow[f, F_PIPE] >= flow[f, F_ROOM]:
                return
        elif flow[f, F_PIPE] + 1.0 > net.window[f, W_WINDOW]:
            return
        if flow[f, F_DUE] > now and (again or left <= 0):  # of a piece that leaves at once, but what goes again alone
            hold(net, f, now)
            return
        left = 0 if again else (left if left > 0 else flow[f, F_PIECE]) - 1
        if meta[M_LEFT] < 1 or (not again and flow[f, F_NEXT] - flow[f, F_UNA] > flow[f, F_MASK]):
            meta[M_SHORT] = f + 1
            return
        seq = _next_lost(net, f) if again else flow[f, F_NEXT]
        _segment(net, f, seq, again, now, full)


@njit(**INSIDE)
def send_on(net: PacketState, f: int, now: int, full: int) -> None:
    """Not at an acknowledgement: the flow sends what its window lets, and its timer runs."""
    offer(net, f, now, full)
    if net.flow[f, F_TIMER] == 0 or (probes(net, f) and not doubtful(net, f)):
        arm(net, f, now, 0)


@njit(**INLINED)
def _next_lost(net: PacketState, f: int) -> int:
    """The first segment that was lost, which is sent again."""
    flow, mark = net.flow, net.mark
    ring, mask = flow[f, F_RING], flow[f, F_MASK]
    seq = max(flow[f, F_RETRY], flow[f, F_UNA])
    while mark[ring + (seq & mask)] & LOST == 0:
        seq += 1
    flow[f, F_RETRY] = seq + 1
    flow[f, F_LOST] -= 1
    flow[f, F_PIPE] += 1
    return seq


@njit(**INLINED)
def _segment(net: PacketState, f: int, seq: int, again: bool, now: int, full: int) -> None:
    """The next segment, or one once more, not ECN-capable (RFC 3168, section 6.1.5) but for `_always_capable`."""
    flow = net.flow
    place = flow[f, F_RING] + (seq & flow[f, F_MASK])
    if again:
        more = AGAIN | _always_capable(net, f)
        flow[f, F_AGAIN] += 1
        flow[f, F_UNDO_LEFT] += 1
        if flow[f, F_UNDO_AT] == 0:
            flow[f, F_UNDO_AT] = now
        sent_again(net, f, seq)
        if seq == flow[f, F_UNA]:
            restart(net, f, now)
    else:
        flow[f, F_NEXT] = seq + 1
        flow[f, F_PIPE] += 1
        net.mark[place] = 0
        more = codepoint(flow[f, F_ECN])
        if flow[f, F_REDUCED] == 1:
            flow[f, F_REDUCED] = 0
            more |= REDUCED
    net.sent[place] = now
    flow[f, F_SENT] += 1
    if flow[f, F_PACER] > 0:
        space(net, f, now)
    if flow[f, F_RTO_AT] == 0:
        restart(net, f, now)
    write = flow[f, F_WRITE]
    ends = seq == flow[f, F_SIZE] - 1 if write == 0 else (seq + 1) % write == 0
    payload = flow[f, F_LAST] if ends else full - HEADERS
    _send(net, f, take(net), seq, DATA, payload + HEADERS, more, now)


@njit(**INLINED)
def send_probe(net: PacketState, f: int, now: int, full: int) -> None:
    """A segment after silence, whatever the window lets: a new one, or the last one again."""
    flow = net.flow
    if net.meta[M_LEFT] < 1:
        return
    seq = flow[f, F_NEXT]
    room = min(flow[f, F_UNA] + flow[f, F_MASK] + 1, receivable(net, f))
    new = seq < flow[f, F_SIZE] and now < flow[f, F_STOP] and seq < room
    flow[f, F_PROBE_AGAIN] = 0 if new else 1
    _segment(net, f, seq if new else seq - 1, not new, now, full)
    flow[f, F_PROBE] = flow[f, F_NEXT]
    restart(net, f, now)
