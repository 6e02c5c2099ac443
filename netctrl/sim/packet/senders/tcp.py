"""TCP of the packet engine: what a sender knows of its segments, and what its receiver acknowledges.

Each segment is acknowledged as it comes, with the run of segments that it ends (the first block of SACK). A segment is
lost once three above it were acknowledged; what is in flight counts what is neither acknowledged nor lost.
Sources: RFC 9293 (handshake), 5681, 6298, 6675, 3168; 2018 for the block.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.rows import mark_acts, window_acts
from netctrl.laws.tcp.sender import Acked, Echoed, TcpWindow
from netctrl.sim.packet.links.links import enqueue
from netctrl.sim.packet.senders.pacing import begin_pacing, hold, set_pace, space
from netctrl.sim.packet.senders.receiver import HEADERS, NOTHING, OF_A_MESSAGE
from netctrl.sim.packet.senders.scoreboard import EVER, LOST, RESENT, SACKED, advance_to, mark_received
from netctrl.sim.packet.state import (
    ACK,
    AGAIN,
    DATA,
    DATAGRAM,
    FLOW,
    GENERATION_MASK,
    GENERATION_SHIFT,
    KIND_MASK,
    KIND_SHIFT,
    MARKED,
    MESSAGE_ACK,
    META,
    PACKET,
    REDUCED,
    RUN_SHIFT,
    SCALABLE_ECN,
    SYN,
    TIMER,
    PacketState,
    codepoint,
    plan,
    release,
)

CLOSED, CONNECTING, OPEN = range(3)
"""States of a connection."""
NORMAL, RECOVERY, CONGESTED, TIMED_OUT = range(4)
"""Why a window doesn't grow: losses are repaired, a mark was answered; after a timeout it does."""
TCP, UDP, DEMAND, MESSAGES = range(4)
"""Kinds of flow; of messages: data-centre senders."""

W_WINDOW, W_THRESHOLD, W_RTT, W_MIN_RTT, W_MAX_RTT, W_CUT, W_RECOVERED = (
    list(fields_of(TcpWindow)).index(name)
    for name in ("window", "threshold", "rtt", "min_rtt", "max_rtt", "cut_s", "recovered_s")
)
F_STATE, F_ROUTE, F_UNDER_WAY = FLOW["state"], FLOW["route"], FLOW["under_way"]
F_SIZE, F_LAST, F_UNA, F_NEXT, F_PIPE = (FLOW[name] for name in ("size", "last_bytes", "una", "next", "pipe"))
F_RECOVER, F_RECOVERY, F_LOST_TO, F_RETRY, F_LOST = (
    FLOW[name] for name in ("recover", "recovery", "lost_to", "retry", "lost")
)
F_HIGH1, F_HIGH2, F_HIGH3 = (FLOW[name] for name in ("high1", "high2", "high3"))
F_TIMER, F_ARMED, F_BACKOFF = (FLOW[name] for name in ("timer", "armed", "backoff"))
F_SRTT, F_RTTVAR, F_RTO = (FLOW[name] for name in ("srtt", "rttvar", "rto"))
F_EXPECTED, F_AHEAD, F_RING, F_MASK = (FLOW[name] for name in ("expected", "ahead", "ring", "mask"))
F_ECN, F_ECHO, F_REDUCED, F_LAW = (FLOW[name] for name in ("ecn", "echo", "reduced", "law"))
F_GENERATION, F_STOP, F_SENT, F_AGAIN = (FLOW[name] for name in ("generation", "stop", "sent", "again"))
F_TIMEOUTS, F_CUTS = FLOW["timeouts"], FLOW["cuts"]
F_DUE, F_PACER, F_EXACT = (FLOW[name] for name in ("due", "pacer", "exact"))
F_RTT_SUM, F_RTT_COUNT, F_GROUP = FLOW["rtt_sum"], FLOW["rtt_count"], FLOW["group"]
K_NEXT, K_FLOW, K_SEQ, K_HOP, K_INFO, K_TIME, K_BACK = (
    PACKET[name] for name in ("next", "flow", "seq", "hop", "info", "time", "back")
)
M_FREE, M_LEFT, M_SHORT, M_LIVE, M_MOST = (META[name] for name in ("free", "left", "short", "live", "most"))
M_SENT, M_ACKS, M_OFFERED = (META[name] for name in ("sent", "acks", "offered"))

_NS = 1e9
_MIN_RTO, _FIRST_RTO, _MAX_RTO = 1_000_000_000, 1_000_000_000, 60_000_000_000  # RFC 6298, section 2
_GRANULE = 1_000_000  # of the clock [ns]
_grow, _cut_window = window_acts(**INLINED)
_mark_window, _echo = mark_acts(**INLINED)


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
def _arm(net: PacketState, f: int, now: int) -> None:
    """The retransmission timer starts anew; its event is planned unless one that is no later is."""
    flow = net.flow
    flow[f, F_TIMER] = now + min(flow[f, F_RTO] << min(flow[f, F_BACKOFF], 6), _MAX_RTO)
    if flow[f, F_ARMED] == 0 or flow[f, F_TIMER] < flow[f, F_ARMED]:
        flow[f, F_ARMED] = flow[f, F_TIMER]
        plan(net, flow[f, F_TIMER], TIMER, f)


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
    for column in (F_UNA, F_NEXT, F_PIPE, F_RECOVER, F_RECOVERY, F_LOST_TO, F_RETRY, F_LOST, F_BACKOFF, F_SRTT):
        flow[f, column] = 0
    for column in (F_RTTVAR, F_EXPECTED, F_AHEAD, F_ECHO, F_REDUCED, F_DUE):
        flow[f, column] = 0
    flow[f, F_HIGH1] = flow[f, F_HIGH2] = flow[f, F_HIGH3] = -1
    flow[f, F_RTO] = _FIRST_RTO
    for place in range(flow[f, F_RING], flow[f, F_RING] + flow[f, F_MASK] + 1):
        net.mark[place], net.got[place] = 0, 0
    row[:] = 0.0
    row[W_WINDOW], row[W_THRESHOLD], row[W_MIN_RTT] = first_window, np.inf, np.inf
    _ask(net, f, now)


@njit(**INLINED)
def _ask(net: PacketState, f: int, now: int) -> None:
    _arm(net, f, now)
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
def offer(net: PacketState, f: int, now: int, full: int) -> None:
    """The flow sends what its window lets: first what was lost, then what is new."""
    flow, meta, mark = net.flow, net.meta, net.mark
    while flow[f, F_STATE] == OPEN:
        ring, mask = flow[f, F_RING], flow[f, F_MASK]
        again = flow[f, F_LOST] > 0
        if not again and (flow[f, F_NEXT] >= flow[f, F_SIZE] or now >= flow[f, F_STOP]):
            return
        if flow[f, F_PIPE] + 1.0 > net.window[f, W_WINDOW]:
            return
        if flow[f, F_DUE] > now:
            hold(net, f, now)
            return
        if meta[M_LEFT] < 1 or (not again and flow[f, F_NEXT] - flow[f, F_UNA] > mask):
            meta[M_SHORT] = f + 1
            return
        if again:
            _resend(net, f, now, full)
            continue
        seq = flow[f, F_NEXT]
        flow[f, F_NEXT] = seq + 1
        mark[ring + (seq & mask)] = 0
        more = codepoint(flow[f, F_ECN])
        if flow[f, F_REDUCED] == 1:
            flow[f, F_REDUCED] = 0
            more |= REDUCED
        _segment(net, f, seq, more, now, full)


@njit(**INLINED)
def _resend(net: PacketState, f: int, now: int, full: int) -> None:
    """The first segment that was lost, again; not ECN-capable (RFC 3168, section 6.1.5) but for `_always_capable`."""
    flow, mark = net.flow, net.mark
    ring, mask = flow[f, F_RING], flow[f, F_MASK]
    seq = max(flow[f, F_RETRY], flow[f, F_UNA])
    while mark[ring + (seq & mask)] & LOST == 0:
        seq += 1
    flow[f, F_RETRY] = seq + 1
    flow[f, F_LOST] -= 1
    flow[f, F_AGAIN] += 1
    mark[ring + (seq & mask)] = RESENT | EVER
    _segment(net, f, seq, AGAIN | _always_capable(net, f), now, full)


@njit(**INLINED)
def _segment(net: PacketState, f: int, seq: int, more: int, now: int, full: int) -> None:
    flow = net.flow
    net.sent[flow[f, F_RING] + (seq & flow[f, F_MASK])] = now
    flow[f, F_PIPE] += 1
    flow[f, F_SENT] += 1
    if flow[f, F_PACER] > 0:
        space(net, f, now)
    if flow[f, F_TIMER] == 0:
        _arm(net, f, now)
    payload = flow[f, F_LAST] if seq == flow[f, F_SIZE] - 1 else full - HEADERS
    _send(net, f, take(net), seq, DATA, payload + HEADERS, more, now)


@njit(**INLINED)
def _measure(net: PacketState, f: int, rtt: int) -> None:
    """A round trip [ns]. Source: RFC 6298, section 2."""
    flow, row = net.flow, net.window[f]
    if flow[f, F_SRTT] == 0:
        flow[f, F_SRTT], flow[f, F_RTTVAR] = rtt, rtt // 2
    else:
        flow[f, F_RTTVAR] += (abs(flow[f, F_SRTT] - rtt) - flow[f, F_RTTVAR]) // 4
        flow[f, F_SRTT] += (rtt - flow[f, F_SRTT]) // 8
    flow[f, F_RTO] = max(flow[f, F_SRTT] + max(4 * flow[f, F_RTTVAR], _GRANULE), _MIN_RTO)
    flow[f, F_RTT_SUM] += rtt
    flow[f, F_RTT_COUNT] += 1
    net.trip[0, flow[f, F_GROUP]] += rtt
    net.trip[1, flow[f, F_GROUP]] += 1
    seconds = rtt / _NS
    row[W_RTT] = seconds
    row[W_MIN_RTT] = min(row[W_MIN_RTT], seconds)
    row[W_MAX_RTT] = max(row[W_MAX_RTT], seconds)


@njit(**INLINED)
def _cut(net: PacketState, f: int, now: int, marked: bool = False) -> None:
    """Congestion: the law cuts the window, once for what is sent by now."""
    flow, row = net.flow, net.window[f]
    if marked:
        _mark_window(flow[f, F_LAW], row)
    else:
        _cut_window(flow[f, F_LAW], row)
    row[W_THRESHOLD] = row[W_WINDOW]
    row[W_CUT] = now / _NS
    row[W_RECOVERED] = row[W_CUT] + row[W_RTT]
    flow[f, F_RECOVER], flow[f, F_REDUCED] = flow[f, F_NEXT], 1
    flow[f, F_CUTS] += 1


@njit(**INLINED)
def _hear_mark(net: PacketState, f: int, now: int) -> None:
    """A mark of a scalable sender, whose law spaces its cuts."""
    flow, row = net.flow, net.window[f]
    before = row[W_WINDOW]
    _mark_window(flow[f, F_LAW], row)
    if row[W_WINDOW] < before:
        row[W_CUT] = now / _NS
        flow[f, F_CUTS] += 1


@njit(**INLINED)
def acknowledge(net: PacketState, k: int, now: int, full: int) -> int:
    """An acknowledgement came to its sender. OF_A_MESSAGE: it stands in a packet that is free; all is left to do."""
    flow, packet = net.flow, net.packet
    f, info = packet[k, K_FLOW], packet[k, K_INFO]
    seq, upto = packet[k, K_SEQ], packet[k, K_BACK]
    net.meta[M_ACKS] += 1
    release(net, k)
    kind = info >> KIND_SHIFT & KIND_MASK
    if kind == MESSAGE_ACK:
        flow[f, F_UNDER_WAY] -= 1
    if info >> GENERATION_SHIFT & GENERATION_MASK != flow[f, F_GENERATION] or flow[f, F_STATE] == CLOSED:
        return NOTHING
    if kind != ACK:
        if kind == MESSAGE_ACK:
            return OF_A_MESSAGE
        if flow[f, F_STATE] != CONNECTING:
            return NOTHING
        flow[f, F_STATE], flow[f, F_TIMER], flow[f, F_BACKOFF] = OPEN, 0, 0
        _measure(net, f, now - upto)
        if flow[f, F_PACER] > 0:
            begin_pacing(net, f, full)
    elif not _learn(net, f, info, seq, upto, now, full):
        return NOTHING
    offer(net, f, now, full)
    return NOTHING


@njit(**INLINED)
def _learn(net: PacketState, f: int, info: int, seq: int, upto: int, now: int, full: int) -> bool:
    """What an acknowledgement says of what was sent. Returns whether there is more to be sent."""
    flow, row = net.flow, net.window
    ring, mask, mark = flow[f, F_RING], flow[f, F_MASK], net.mark
    una, in_flight, pipe = flow[f, F_UNA], flow[f, F_NEXT] - flow[f, F_UNA], flow[f, F_PIPE]
    fresh = seq >= una and mark[ring + (seq & mask)] & (EVER | SACKED) == 0
    if fresh:
        _measure(net, f, now - net.sent[ring + (seq & mask)])
    newly = upto - una
    if newly > 0:
        advance_to(net, f, upto)
        flow[f, F_BACKOFF] = 0
        if flow[f, F_UNA] == flow[f, F_NEXT]:
            flow[f, F_TIMER] = 0
            if flow[f, F_UNA] >= flow[f, F_SIZE]:
                flow[f, F_STATE] = CLOSED
                return False
        else:
            _arm(net, f, now)
    run = info >> RUN_SHIFT
    if run > 0 and seq >= flow[f, F_UNA]:
        mark_received(net, f, seq, run)
    if flow[f, F_EXACT] == 1:
        outstanding = float(flow[f, F_NEXT] - flow[f, F_UNA])
        _echo(flow[f, F_LAW], row[f], Echoed(info & MARKED != 0, float(newly), outstanding))
    before = flow[f, F_RECOVERY]
    if before != NORMAL and flow[f, F_UNA] >= flow[f, F_RECOVER]:
        flow[f, F_RECOVERY] = NORMAL
    if flow[f, F_LOST] > 0 and flow[f, F_RECOVERY] != RECOVERY and flow[f, F_RECOVERY] != TIMED_OUT:
        if flow[f, F_RECOVERY] == NORMAL:
            _cut(net, f, now)
        flow[f, F_RECOVERY] = RECOVERY
        if net.meta[M_LEFT] > 0:
            _resend(net, f, now, full)  # at once, whatever is in flight: RFC 6675, section 5, step 4.3
    elif info & MARKED != 0 and flow[f, F_ECN] == SCALABLE_ECN:
        if flow[f, F_RECOVERY] == NORMAL:
            _hear_mark(net, f, now)
    elif info & MARKED != 0 and flow[f, F_RECOVERY] == NORMAL and flow[f, F_UNA] > flow[f, F_RECOVER]:
        _cut(net, f, now, True)  # once the receiver knows of the last cut, as until then it echoes what came before
        flow[f, F_RECOVERY] = CONGESTED
    elif newly > 0 and before not in (RECOVERY, CONGESTED):
        window = row[f, W_WINDOW]
        slow = window < row[f, W_THRESHOLD]
        if before == TIMED_OUT or (2.0 * in_flight >= window if slow else in_flight + 1.0 > window):
            most = newly if not slow else 1 if before == TIMED_OUT else 2  # RFC 3465, sections 2.2 and 2.3
            since = now / _NS - row[f, W_CUT]
            _grow(flow[f, F_LAW], row[f], Acked(float(min(newly, most)), since, row[f, W_RTT], True))
    if flow[f, F_PACER] > 0:
        set_pace(net, f, now, full, fresh, pipe)
    return True


@njit(**INSIDE)
def time_out(net: PacketState, f: int, now: int, full: int) -> None:
    """A timer's event: a later end is waited for; at its end, all that isn't acknowledged is lost. RFC 6298, section 5;
    RFC 5681, section 3.1; RFC 6675, section 5.1."""
    flow, row = net.flow, net.window[f]
    if flow[f, F_ARMED] != now:  # an earlier one was planned after it
        return
    flow[f, F_ARMED] = 0
    if flow[f, F_TIMER] == 0 or flow[f, F_STATE] == CLOSED:
        return
    if flow[f, F_TIMER] > now:
        flow[f, F_ARMED] = flow[f, F_TIMER]
        plan(net, flow[f, F_TIMER], TIMER, f)
        return
    flow[f, F_TIMER] = 0
    flow[f, F_TIMEOUTS] += 1
    flow[f, F_BACKOFF] += 1
    if flow[f, F_STATE] == CONNECTING:
        _ask(net, f, now)
        return
    if flow[f, F_RECOVERY] != TIMED_OUT:
        if flow[f, F_RECOVERY] == NORMAL:
            _cut(net, f, now)
        else:
            row[W_THRESHOLD] = max(row[W_WINDOW], 2.0)
    flow[f, F_RECOVERY], flow[f, F_RECOVER] = TIMED_OUT, flow[f, F_NEXT]
    row[W_WINDOW], row[W_CUT] = 1.0, now / _NS
    ring, mask, mark = flow[f, F_RING], flow[f, F_MASK], net.mark
    lost = 0
    for s in range(flow[f, F_UNA], flow[f, F_NEXT]):
        known = mark[ring + (s & mask)]
        if known & SACKED == 0:
            mark[ring + (s & mask)] = known & EVER | LOST
            lost += 1
    flow[f, F_LOST], flow[f, F_PIPE] = lost, 0
    flow[f, F_RETRY], flow[f, F_LOST_TO] = flow[f, F_UNA], flow[f, F_NEXT]
    offer(net, f, now, full)
