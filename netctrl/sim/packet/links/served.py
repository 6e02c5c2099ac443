"""Links of the packet engine that are served by events: several queues, a law at the head, a trace, loss, jitter.

A link has one list of packets a queue, and one event, for when the next packet can begin. Queues that have a turn stand
in two lists, new and old ones. Sources: Shreedhar, Varghese 1996 (deficit round robin, drops from the longest queue);
RFC 8290 (FQ-CoDel).
"""

from __future__ import annotations

import math

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.aqm.codel import CodelDrops
from netctrl.laws.l4s.dualpi2 import DROP, MARK, SEND
from netctrl.laws.link import choose_queue, tag_first
from netctrl.laws.record import fields_of
from netctrl.sim.packet.links.dual import coupled_queue, judge_head, next_of_two, note_step, spend
from netctrl.sim.packet.links.gates import pass_gate
from netctrl.sim.packet.links.laws import chooses_head
from netctrl.sim.packet.links.pie import BY_PIE, left_pie
from netctrl.sim.packet.links.ports import COUNTS, PAUSED, TELEMETRY, came, left, stamp
from netctrl.sim.packet.links.trace import NANOBITS, OPPORTUNITIES, next_opportunity, sent_by_trace
from netctrl.sim.packet.links.wire import drop, overtake, paid_off, propagate, served_at, wire
from netctrl.sim.packet.state import (
    CAPABLE,
    FLOW,
    FREE,
    KIND_MASK,
    KIND_SHIFT,
    LINK,
    MARKED,
    META,
    PACKET,
    SHARE,
    SIZE_MASK,
    SUBQUEUE,
    PacketState,
    chance,
    is_answer,
    plan,
    scrambled,
)

FIFO, DUAL, PRIO, CBQ, WFQ, DRR, FQ, CAKE = range(8)
"""Disciplines: which queue is next. The first two drop what comes to a full buffer."""
TAG, WEIGHT = range(2)
"""Columns of `heads` of fair queues; the row behind them has the tag of the packet in service."""

L_BUSY, L_BYTES, L_BUFFER, L_DELAY, L_SCHEDULED = (
    LINK[name] for name in ("busy", "bytes", "buffer", "delay", "scheduled")
)
L_LAW, L_DECIDES, L_FULL, L_PACE, L_TRACE = (LINK[name] for name in ("law", "decides", "full", "pace", "trace"))
L_DEPARTED, L_MARKED, L_CHOSEN = (LINK[name] for name in ("departed", "marked", "chosen"))
L_WAITED, L_STARTED, L_SENT = (LINK[name] for name in ("waited_ns", "started", "sent"))
L_DISCIPLINE, L_FIRST, L_QUEUES, L_SALT = (LINK[name] for name in ("discipline", "first", "queues", "salt"))
L_NEW, L_NEW_TAIL, L_OLD, L_OLD_TAIL = (LINK[name] for name in ("new", "new_tail", "old", "old_tail"))
L_LOSS, L_JITTER, L_AREA, L_MOST = (LINK[name] for name in ("loss", "jitter", "area", "most"))
L_BUNCH, L_RUN, L_POLICE = (LINK[name] for name in ("bunch", "run", "police"))
L_GATE = LINK["gate"]
Q_HEAD, Q_TAIL, Q_BYTES, Q_DEFICIT, Q_QUANTUM, Q_NEXT, Q_LISTED = (
    SUBQUEUE[name] for name in ("head", "tail", "bytes", "deficit", "quantum", "next", "listed")
)
F_PRIORITY, F_OPENS = FLOW["priority"], FLOW["opens"]
K_NEXT, K_FLOW, K_INFO, K_START = (PACKET[name] for name in ("next", "flow", "info", "start"))
M_HOPS = META["hops"]
_NS = 1e9
_LONGEST_WAIT = 1_000_000_000  # of an event that serves a link [ns]
_BATCH = 64  # packets that FQ-CoDel drops at once where it is full
_COUNT = list(fields_of(CodelDrops)).index("count")


# --- queues -----------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def queue_of(net: PacketState, link: int, k: int) -> int:
    """The queue of a packet: by its codepoint, its flow's priority, or its flow and direction, which may be hashed."""
    row, packet = net.link, net.packet
    first, discipline = row[link, L_FIRST], row[link, L_DISCIPLINE]
    if discipline == FIFO:
        return first
    if discipline == DUAL:
        return coupled_queue(net, link, k)
    if discipline <= CBQ:
        return first + min(net.flow[packet[k, K_FLOW], F_PRIORITY], row[link, L_QUEUES] - 1)
    kind = packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK
    way = 2 * packet[k, K_FLOW] + (1 if is_answer(kind) else 0)
    if row[link, L_SALT] != 0:
        way = np.int64(scrambled(np.uint64(way ^ row[link, L_SALT])) % np.uint64(row[link, L_QUEUES]))
    return first + way


@njit(**INLINED)
def _pop(net: PacketState, link: int, q: int, now: int) -> int:
    """The first packet of a queue, taken out."""
    sub, k = net.subqueue, net.subqueue[q, Q_HEAD]
    size, after = net.packet[k, K_INFO] & SIZE_MASK, net.packet[k, K_NEXT]
    sub[q, Q_HEAD] = after
    if after < 0:
        sub[q, Q_TAIL] = -1
    sub[q, Q_BYTES] -= size
    net.link[link, L_BYTES] -= size
    if net.hosts.port[link, COUNTS] > 0:
        left(net, k, now, size)
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


@njit(**INSIDE)
def _next_queue(net: PacketState, link: int) -> int:
    """The queue whose first packet is next, or -1. Source: RFC 8290, section 4.2, for lists of queues."""
    row, sub = net.link, net.subqueue
    first = row[link, L_FIRST]
    if row[link, L_DISCIPLINE] == DUAL:
        return next_of_two(net, link)
    if row[link, L_DISCIPLINE] <= PRIO:
        for q in range(first, first + row[link, L_QUEUES]):
            if sub[q, Q_HEAD] >= 0:
                return q
        return -1
    if row[link, L_DISCIPLINE] <= WFQ:
        q = choose_queue(net.heads[first : first + row[link, L_QUEUES] + 1, TAG])
        return first + q if q >= 0 else -1
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


@njit(**INLINED)
def _tag(net: PacketState, link: int, q: int, size: int) -> None:
    """A packet of a fair link is now the first of its queue."""
    first = net.link[link, L_FIRST]
    tags = net.heads[first : first + net.link[link, L_QUEUES] + 1, TAG]
    tag_first(tags, q - first, size / net.heads[q, WEIGHT])


@njit(**INSIDE)
def makes_room(net: PacketState, link: int, k: int, now: int, size: int) -> bool:
    """Whether a packet fits once others are dropped: of the last priority, or from the head of the longest queue.

    FQ-CoDel drops half of that queue, as Linux's does, and adds this to CoDel's count. Of fair queues each has a buffer
    of its own: nothing is dropped for it, nor by FQ-PIE.
    """
    row, sub, packet = net.link, net.subqueue, net.packet
    discipline = row[link, L_DISCIPLINE]
    if discipline <= DUAL or size > row[link, L_BUFFER] or row[link, L_DECIDES] == BY_PIE:
        return False
    own, first = queue_of(net, link, k), row[link, L_FIRST]
    if CBQ <= discipline <= WFQ:
        return sub[own, Q_BYTES] + size <= row[link, L_BUFFER]
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
        dropped = 0
        while sub[victim, Q_HEAD] >= 0:
            lost = _pop(net, link, victim, now)
            gone = packet[lost, K_INFO] & SIZE_MASK
            drop(net, link, lost, gone)
            dropped += 1
            most -= 2 * gone
            if discipline != FQ or dropped == _BATCH or most <= 0:
                break
        if discipline == FQ:
            net.heads[victim, _COUNT] += dropped
    return True


@njit(**INSIDE)
def wait(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """A packet comes to a link, and is sent at once where it can be."""
    row, sub, packet = net.link, net.subqueue, net.packet
    q = queue_of(net, link, k)
    idle = row[link, L_SCHEDULED] == 0 and row[link, L_BUSY] <= now
    if row[link, L_DISCIPLINE] == DUAL:
        if idle:
            next_of_two(net, link)
        note_step(net, link, q, k)
    if row[link, L_DISCIPLINE] >= CBQ:
        if idle:
            _next_queue(net, link)  # queues that are empty lose their turn, and tags restart
        if row[link, L_DISCIPLINE] <= WFQ:
            if sub[q, Q_HEAD] < 0:
                _tag(net, link, q, size)
        elif sub[q, Q_LISTED] == 0:
            sub[q, Q_LISTED], sub[q, Q_DEFICIT] = 1, sub[q, Q_QUANTUM]
            if row[link, L_DISCIPLINE] >= FQ:
                _append(net, link, q, L_NEW, L_NEW_TAIL)
            else:
                _append(net, link, q, L_OLD, L_OLD_TAIL)
    packet[k, K_START], packet[k, K_NEXT] = now, -1
    port = net.hosts.port
    if port[link, COUNTS] > 0 or port[link, TELEMETRY] > 0:
        came(net, link, k, now, size)
    # What finds a link without anything to do needs no list.
    plain = row[link, L_DISCIPLINE] == FIFO and row[link, L_TRACE] != OPPORTUNITIES
    if idle and plain and row[link, L_BYTES] == 0 and port[link, PAUSED] == 0:
        if port[link, COUNTS] > 0:
            left(net, k, now, size)
        _begin(net, link, q, k, now)
        return
    row[link, L_BYTES] += size
    sub[q, Q_BYTES] += size
    last = sub[q, Q_TAIL]
    sub[q, Q_TAIL] = k
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        sub[q, Q_HEAD] = k
    if row[link, L_SCHEDULED] == 0:
        go_on(net, link, now)
    row[link, L_MOST] = max(row[link, L_MOST], row[link, L_BYTES])


@njit(**INSIDE)
def go_on(net: PacketState, link: int, now: int) -> None:
    """A link that waited for something: its next packet begins now, or when the wire is free."""
    row = net.link
    if row[link, L_TRACE] == OPPORTUNITIES:
        next_opportunity(net, link, now)
    if row[link, L_BUSY] <= now:
        serve(net, link, now)
    else:
        plan_service(net, link, now)


@njit(**INLINED)
def plan_service(net: PacketState, link: int, now: int) -> None:
    """An event when the link may send its next packet, or before: a paced one may have to wait for long."""
    time = min(net.link[link, L_BUSY], now + _LONGEST_WAIT)
    net.link[link, L_SCHEDULED] = time
    plan(net, time, FREE, link)


@njit(**INLINED)
def serve_if_due(net: PacketState, link: int, now: int) -> None:
    """The event of `plan_service`, unless another has taken its place."""
    row = net.link
    if row[link, L_SCHEDULED] != now:
        return
    if row[link, L_BUSY] > now:
        plan_service(net, link, now)
        return
    row[link, L_SCHEDULED] = 0
    serve(net, link, now)


@njit(**INLINED)
def _verdict(net: PacketState, link: int, q: int, k: int, now: int) -> int:
    """What becomes of a packet that was taken from queue q: SEND, MARK or DROP."""
    row, waited = net.link, (now - net.packet[k, K_START]) / _NS
    if row[link, L_DISCIPLINE] == DUAL:
        return judge_head(net, link, q, k, now)
    capable = net.packet[k, K_INFO] & CAPABLE != 0
    behind = row[link, L_BYTES] if row[link, L_DISCIPLINE] == FQ else net.subqueue[q, Q_BYTES]  # as in Linux
    alone = behind == 0 and not capable if row[link, L_DISCIPLINE] == CAKE else behind <= row[link, L_FULL]
    if not chooses_head(row[link, L_LAW], net.parameters[link], net.heads[q], now / _NS, waited, alone):
        return SEND
    return MARK if capable else DROP


@njit(**INSIDE)
def serve(net: PacketState, link: int, now: int) -> None:
    """The wire is free: the next packet that the law lets through."""
    row, sub, packet = net.link, net.subqueue, net.packet
    while net.hosts.port[link, PAUSED] == 0:
        q = row[link, L_FIRST]
        if row[link, L_DISCIPLINE] != FIFO:
            q = _next_queue(net, link)
        if q < 0 or sub[q, Q_HEAD] < 0:
            return
        k = _pop(net, link, q, now)
        if CBQ <= row[link, L_DISCIPLINE] <= WFQ and sub[q, Q_HEAD] >= 0:
            _tag(net, link, q, packet[sub[q, Q_HEAD], K_INFO] & SIZE_MASK)
        if _begin(net, link, q, k, now):
            return


@njit(**INLINED)
def _begin(net: PacketState, link: int, q: int, k: int, now: int) -> bool:
    """A packet of queue q, which isn't in it any more, is sent unless the law drops it."""
    row, sub, packet = net.link, net.subqueue, net.packet
    size, waited = packet[k, K_INFO] & SIZE_MASK, now - packet[k, K_START]
    verdict = _verdict(net, link, q, k, now)
    if verdict != SEND:
        row[link, L_CHOSEN] += 1
        if verdict == DROP:
            drop(net, link, k, size)
            return False
        packet[k, K_INFO] |= MARKED
        row[link, L_MARKED] += size
    row[link, L_WAITED] += waited
    row[link, L_AREA] += waited * size
    row[link, L_STARTED] += 1
    sub[q, Q_DEFICIT] -= size
    if row[link, L_DISCIPLINE] == DUAL:
        spend(net, link, q, size)
    elif row[link, L_DECIDES] == BY_PIE:
        left_pie(net, q, now, waited)
    if net.hosts.port[link, TELEMETRY] > 0:
        stamp(net, link, k, now, size)
    _send(net, link, k, now, size)
    if row[link, L_PACE] > 0:
        row[link, L_BUSY] = max(row[link, L_BUSY], now + paid_off(size * NANOBITS, served_at(net, link)))
    if row[link, L_GATE] > 0:
        pass_gate(net, row[link, L_GATE] - 1, now)
        row[link, L_BUSY] = net.flow[row[link, L_GATE] - 1, F_OPENS]
    if row[link, L_BYTES] > 0:
        plan_service(net, link, now)
    return True


@njit(**INLINED)
def _loses(net: PacketState, link: int) -> bool:
    """Whether a packet is lost on the wire: by itself, or as the link is bad (Gilbert 1960)."""
    row, drawn = net.link, chance(net.random, link) * SHARE
    run = row[link, L_RUN]
    if run == 0:
        return drawn < row[link, L_LOSS]
    bad = drawn >= -run if run < 0 else drawn < row[link, L_LOSS]
    row[link, L_RUN] = -abs(run) if bad else abs(run)
    return bad


@njit(**INSIDE)
def polices(net: PacketState, link: int, now: int, size: int) -> bool:
    """Whether a policer drops what comes: its bucket has too few tokens, by the time that it takes to be full."""
    at = net.link[link, L_POLICE] - 1
    full = max(net.trace[at + 1, 0], now) + paid_off(size * NANOBITS, net.trace[at, 0])
    if full - now > net.trace[at, 1]:
        return True
    net.trace[at + 1, 0] = full
    return False


@njit(**INLINED)
def _send(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """A packet is sent from now on; it may be lost on the wire, or be late."""
    row = net.link
    if row[link, L_TRACE] == 0:
        end = now + wire(net, link, size)
        row[link, L_BUSY] = end
    else:
        end = sent_by_trace(net, link, now, size)
    row[link, L_SENT] += 1
    net.meta[M_HOPS] += 1
    if row[link, L_LOSS] > 0 and _loses(net, link):
        drop(net, link, k, size)
        return
    row[link, L_DEPARTED] += size
    late, jitter = 0, abs(row[link, L_JITTER]) >> 1
    if jitter > 0:
        late = int(chance(net.random, link) * (jitter + 1))
        if row[link, L_JITTER] & 1:  # Box and Muller's; netem doesn't send before now either
            far = math.sqrt(-2.0 * math.log(1.0 - late / (jitter + 1.0)))
            late = int(jitter * far * math.cos(2.0 * math.pi * chance(net.random, link)))
            late = max(late, -row[link, L_DELAY])
    arrives = end + row[link, L_DELAY] + late
    if row[link, L_BUNCH] > 0:
        arrives += -arrives % row[link, L_BUNCH]
    if row[link, L_JITTER] < 0:
        overtake(net, k, arrives)
    else:
        propagate(net, link, k, arrives)
