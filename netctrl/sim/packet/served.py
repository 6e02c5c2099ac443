"""Links of the packet engine that are served by events: several queues, a law at the head, a trace, loss, jitter.

A link has one list of packets a queue, and one event, for when the next packet can begin. Queues that have a turn stand
in two lists, new and old ones. Sources: Shreedhar, Varghese 1996 (deficit round robin, drops from the longest queue);
RFC 8290 (FQ-CoDel).
"""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.sim.packet.laws import chooses_head
from netctrl.sim.packet.state import (
    ACK,
    ARRIVES,
    CAPABLE,
    FLOW,
    FREE,
    INLINED,
    KIND_MASK,
    KIND_SHIFT,
    LINK,
    MARKED,
    META,
    PACKET,
    SIZE_MASK,
    SUBQUEUE,
    SYNACK,
    PacketState,
    chance,
    plan,
    release,
    scrambled,
)

__all__ = ["drop", "makes_room", "propagate", "serve", "wait", "wire"]

FIFO, PRIO, DRR, FQ = range(4)
"""Disciplines: which queue is next."""
OPPORTUNITIES, RATES = 1, 2
"""Kinds of trace."""

L_HEAD, L_TAIL, L_BUSY, L_LAST = (LINK[name] for name in ("head", "tail", "busy", "last"))
L_BYTES, L_BUFFER, L_RATE, L_DELAY, L_SCHEDULED = (
    LINK[name] for name in ("bytes", "buffer", "rate", "delay", "scheduled")
)
L_LAW, L_FULL, L_ACK, L_TX_FULL, L_TX_ACK = (LINK[name] for name in ("law", "full", "ack", "tx_full", "tx_ack"))
L_DEPARTED, L_LOST, L_MARKED, L_CHOSEN = (LINK[name] for name in ("departed", "lost", "marked", "chosen"))
L_WAITED, L_STARTED, L_SENT = (LINK[name] for name in ("waited_ns", "started", "sent"))
L_DISCIPLINE, L_FIRST, L_QUEUES, L_SALT = (LINK[name] for name in ("discipline", "first", "queues", "salt"))
L_NEW, L_NEW_TAIL, L_OLD, L_OLD_TAIL = (LINK[name] for name in ("new", "new_tail", "old", "old_tail"))
L_LOSS, L_JITTER, L_TRACE, L_STEP, L_STEPS = (LINK[name] for name in ("loss", "jitter", "trace", "step", "steps"))
L_CURSOR, L_TURN, L_LEFT, L_SLOT, L_HEADER = (LINK[name] for name in ("cursor", "turn", "left", "slot", "header"))
Q_HEAD, Q_TAIL, Q_BYTES, Q_DEFICIT, Q_QUANTUM, Q_NEXT, Q_LISTED = (
    SUBQUEUE[name] for name in ("head", "tail", "bytes", "deficit", "quantum", "next", "listed")
)
F_PRIORITY = FLOW["priority"]
K_NEXT, K_FLOW, K_INFO, K_TIME, K_START = (PACKET[name] for name in ("next", "flow", "info", "time", "start"))
M_HOPS, M_DROPPED = META["hops"], META["dropped"]
_NS = 1e9
_SHARE = 2.0**53
_NANOBITS = 8_000_000_000  # of a byte


# --- packets ----------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def wire(net: PacketState, link: int, size: int) -> int:
    """Time on the wire [ns], rounded."""
    row = net.link
    if size == row[link, L_FULL]:
        return row[link, L_TX_FULL]
    if size == row[link, L_ACK]:
        return row[link, L_TX_ACK]
    return max((size * _NANOBITS + row[link, L_RATE] // 2) // row[link, L_RATE], 1)


@njit(**INLINED)
def propagate(net: PacketState, link: int, k: int, arrives: int) -> None:
    """A packet is on the wire, and arrives behind those before it."""
    row, packet = net.link, net.packet
    arrives = max(arrives, row[link, L_LAST])
    row[link, L_LAST] = arrives
    packet[k, K_TIME], packet[k, K_NEXT] = arrives, -1
    last = row[link, L_TAIL]
    row[link, L_TAIL] = k
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        row[link, L_HEAD] = k
        plan(net, arrives, ARRIVES, link)


@njit(**INLINED)
def drop(net: PacketState, link: int, k: int, size: int) -> None:
    """A packet is lost at a link."""
    net.link[link, L_LOST] += size
    net.meta[M_DROPPED] += 1
    release(net, k)


# --- queues -----------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def _queue_of(net: PacketState, link: int, k: int) -> int:
    """The queue that a packet belongs to: by its flow's priority, or of its flow and direction, which may be hashed."""
    row, packet = net.link, net.packet
    first, discipline = row[link, L_FIRST], row[link, L_DISCIPLINE]
    if discipline == FIFO:
        return first
    if discipline == PRIO:
        return first + min(net.flow[packet[k, K_FLOW], F_PRIORITY], row[link, L_QUEUES] - 1)
    kind = packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK
    way = 2 * packet[k, K_FLOW] + (1 if kind in (ACK, SYNACK) else 0)
    if row[link, L_SALT] != 0:
        way = np.int64(scrambled(np.uint64(way ^ row[link, L_SALT])) % np.uint64(row[link, L_QUEUES]))
    return first + way


@njit(**INLINED)
def _pop(net: PacketState, link: int, q: int) -> int:
    """The first packet of a queue, taken out."""
    sub, k = net.subqueue, net.subqueue[q, Q_HEAD]
    size, after = net.packet[k, K_INFO] & SIZE_MASK, net.packet[k, K_NEXT]
    sub[q, Q_HEAD] = after
    if after < 0:
        sub[q, Q_TAIL] = -1
    sub[q, Q_BYTES] -= size
    net.link[link, L_BYTES] -= size
    return k


@njit(**INLINED)
def _append(net: PacketState, link: int, q: int, first: int, last: int) -> None:
    """A queue at the end of a list, whose ends are in these columns."""
    row, sub = net.link, net.subqueue
    sub[q, Q_NEXT] = -1
    if row[link, first] >= 0:
        sub[row[link, last], Q_NEXT] = q
    else:
        row[link, first] = q
    row[link, last] = q


@njit(error_model="numpy", nogil=True, _nrt=False)
def _next_queue(net: PacketState, link: int) -> int:
    """The queue whose first packet is next, or -1. Source: RFC 8290, section 4.2, for lists of queues."""
    row, sub = net.link, net.subqueue
    first = row[link, L_FIRST]
    if row[link, L_DISCIPLINE] <= PRIO:
        for q in range(first, first + row[link, L_QUEUES]):
            if sub[q, Q_HEAD] >= 0:
                return q
        return -1
    while True:
        new = row[link, L_NEW] >= 0
        q = row[link, L_NEW] if new else row[link, L_OLD]
        if q < 0 or (sub[q, Q_DEFICIT] > 0 and sub[q, Q_HEAD] >= 0):
            return q
        row[link, L_NEW if new else L_OLD] = sub[q, Q_NEXT]
        if sub[q, Q_DEFICIT] <= 0:
            sub[q, Q_DEFICIT] += sub[q, Q_QUANTUM]
            _append(net, link, q, L_OLD, L_OLD_TAIL)
        elif new and row[link, L_OLD] >= 0:  # it may not be new again before the others had their turn
            _append(net, link, q, L_OLD, L_OLD_TAIL)
        else:
            sub[q, Q_LISTED] = 0


@njit(error_model="numpy", nogil=True, _nrt=False)
def makes_room(net: PacketState, link: int, k: int, size: int) -> bool:
    """Whether a packet fits once others are dropped: of the last priority, or from the head of the longest queue."""
    row, sub, packet = net.link, net.subqueue, net.packet
    discipline = row[link, L_DISCIPLINE]
    if discipline == FIFO or size > row[link, L_BUFFER]:
        return False
    own, first = _queue_of(net, link, k), row[link, L_FIRST]
    while row[link, L_BYTES] + size > row[link, L_BUFFER]:
        victim, most = own, sub[own, Q_BYTES] + size
        if discipline == PRIO:
            victim = first + row[link, L_QUEUES] - 1
            while victim > own and sub[victim, Q_HEAD] < 0:
                victim -= 1
        else:
            for begin in (row[link, L_NEW], row[link, L_OLD]):
                q = begin
                while q >= 0:
                    if sub[q, Q_BYTES] > most:
                        victim, most = q, sub[q, Q_BYTES]
                    q = sub[q, Q_NEXT]
        if sub[victim, Q_HEAD] < 0 or (discipline == PRIO and victim == own):
            return False
        lost = _pop(net, link, victim)
        drop(net, link, lost, packet[lost, K_INFO] & SIZE_MASK)
    return True


@njit(error_model="numpy", nogil=True, _nrt=False)
def wait(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """A packet comes to a link, and is sent at once where it can be."""
    row, sub, packet = net.link, net.subqueue, net.packet
    q = _queue_of(net, link, k)
    idle = row[link, L_SCHEDULED] == 0 and row[link, L_BUSY] <= now
    if row[link, L_DISCIPLINE] >= DRR:
        if idle:
            _next_queue(net, link)  # queues that are empty lose their turn
        if sub[q, Q_LISTED] == 0:
            sub[q, Q_LISTED], sub[q, Q_DEFICIT] = 1, sub[q, Q_QUANTUM]
            if row[link, L_DISCIPLINE] == FQ:
                _append(net, link, q, L_NEW, L_NEW_TAIL)
            else:
                _append(net, link, q, L_OLD, L_OLD_TAIL)
    packet[k, K_START], packet[k, K_NEXT] = now, -1
    row[link, L_BYTES] += size
    sub[q, Q_BYTES] += size
    last = sub[q, Q_TAIL]
    sub[q, Q_TAIL] = k
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        sub[q, Q_HEAD] = k
    if row[link, L_SCHEDULED] == 1:
        return
    if row[link, L_TRACE] == OPPORTUNITIES:
        _next_opportunity(net, link, now)
    if row[link, L_BUSY] <= now:
        serve(net, link, now)
    else:
        row[link, L_SCHEDULED] = 1
        plan(net, row[link, L_BUSY], FREE, link)


@njit(error_model="numpy", nogil=True, _nrt=False)
def serve(net: PacketState, link: int, now: int) -> None:
    """The wire is free: the next packet that the law lets through."""
    row, sub, packet = net.link, net.subqueue, net.packet
    while True:
        q = _next_queue(net, link)
        if q < 0:
            return
        k = _pop(net, link, q)
        size, waited = packet[k, K_INFO] & SIZE_MASK, now - packet[k, K_START]
        alone = sub[q, Q_BYTES] <= row[link, L_FULL]
        if chooses_head(row[link, L_LAW], net.parameters[link], net.heads[q], now / _NS, waited / _NS, alone):
            row[link, L_CHOSEN] += 1
            if packet[k, K_INFO] & CAPABLE == 0:
                drop(net, link, k, size)
                continue
            packet[k, K_INFO] |= MARKED
            row[link, L_MARKED] += size
        row[link, L_WAITED] += waited
        row[link, L_STARTED] += 1
        sub[q, Q_DEFICIT] -= size
        _send(net, link, k, now, size)
        if row[link, L_BYTES] > 0:
            row[link, L_SCHEDULED] = 1
            plan(net, row[link, L_BUSY], FREE, link)
        return


# --- wire -------------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def _send(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """A packet is sent from now on; it may be lost on the wire, or be late."""
    row = net.link
    if row[link, L_TRACE] == 0:
        end = now + wire(net, link, size)
        row[link, L_BUSY] = end
    else:
        end = _sent_by_trace(net, link, now, size)
    row[link, L_SENT] += 1
    net.meta[M_HOPS] += 1
    if row[link, L_LOSS] > 0 and chance(net.random, link) * _SHARE < row[link, L_LOSS]:
        drop(net, link, k, size)
        return
    row[link, L_DEPARTED] += size
    late = 0
    if row[link, L_JITTER] > 0:
        late = int(chance(net.random, link) * (row[link, L_JITTER] + 1))
    propagate(net, link, k, end + row[link, L_DELAY] + late)


@njit(**INLINED)
def _step(net: PacketState, link: int) -> int:
    """When the trace's step ends [ns]."""
    row = net.link
    return row[link, L_TURN] + net.trace[row[link, L_STEP] + row[link, L_CURSOR], 0]


@njit(**INLINED)
def _go_to_next_step(net: PacketState, link: int) -> None:
    """The next step of the trace; after the last one it begins again."""
    row = net.link
    row[link, L_LEFT] = row[link, L_SLOT]
    row[link, L_CURSOR] += 1
    if row[link, L_CURSOR] == row[link, L_STEPS]:
        row[link, L_CURSOR] = 0
        row[link, L_TURN] += net.trace[row[link, L_STEP] + row[link, L_STEPS] - 1, 0]


@njit(**INLINED)
def _next_opportunity(net: PacketState, link: int, now: int) -> None:
    """The link is busy until the first opportunity after now; those before it are lost, with what is left of them.

    It is served a nanosecond before, so that a packet that comes at the same time comes too late.
    """
    while _step(net, link) <= now:
        _go_to_next_step(net, link)
    net.link[link, L_BUSY] = _step(net, link) - 1


@njit(error_model="numpy", nogil=True, _nrt=False)
def _sent_by_trace(net: PacketState, link: int, now: int, size: int) -> int:
    """When a packet that begins now is sent whole [ns]; the link is busy until the next can begin."""
    row = net.link
    if row[link, L_TRACE] == OPPORTUNITIES:
        need = size + row[link, L_HEADER]
        while True:
            used = min(need, row[link, L_LEFT])
            need -= used
            row[link, L_LEFT] -= used
            end = _step(net, link)
            if row[link, L_LEFT] == 0:
                _go_to_next_step(net, link)
            if need == 0:
                row[link, L_BUSY] = _step(net, link) - 1
                return end
    bits, time = size * _NANOBITS, now
    while True:
        while _step(net, link) <= time:
            _go_to_next_step(net, link)
        rate, end = net.trace[row[link, L_STEP] + row[link, L_CURSOR], 1], _step(net, link)
        if rate > 0:
            end = time + max((bits + rate // 2) // rate, 1)
        if rate > 0 and end <= _step(net, link):
            row[link, L_BUSY] = end
            return end
        bits -= rate * (_step(net, link) - time)
        time = _step(net, link)
