"""TCP of the packet engine: what a sender does when an acknowledgement comes, and when its timer ends."""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.rows import mark_acts, slow_start_act, window_acts
from netctrl.laws.tcp.sender import Acked, Echoed, TcpWindow
from netctrl.sim.packet.senders.pacing import begin_pacing, set_pace
from netctrl.sim.packet.senders.receiver import NOTHING, OF_A_MESSAGE
from netctrl.sim.packet.senders.recovery import (
    AS_PLANNED,
    CONGESTED,
    NORMAL,
    RECOVERY,
    REPAIRS,
    TIMED_OUT,
    UNKNOWN,
    arm,
    begin_reduction,
    hear_duplicate,
    may_undo,
    probes,
    recovered,
    reduce,
    remember,
    reordering_window,
    restart,
    undo,
)
from netctrl.sim.packet.senders.scoreboard import (
    EVER,
    SACKED,
    advance_to,
    doubtful,
    find_lost,
    first_resent,
    mark_received,
)
from netctrl.sim.packet.senders.tcp import CLOSED, CONNECTING, OPEN, ask, offer, send_probe
from netctrl.sim.packet.state import (
    ACK,
    AGAIN,
    DUPLICATE,
    FLOW,
    GENERATION_MASK,
    GENERATION_SHIFT,
    KIND_MASK,
    KIND_SHIFT,
    MARKED,
    MESSAGE_ACK,
    META,
    PACKET,
    RUN_SHIFT,
    SCALABLE_ECN,
    TIMER,
    PacketState,
    plan,
    release,
)

W_WINDOW, W_THRESHOLD, W_RTT, W_MIN_RTT, W_MAX_RTT, W_CUT, W_RECOVERED, W_TIMED_OUT = (
    list(fields_of(TcpWindow)).index(name)
    for name in ("window", "threshold", "rtt", "min_rtt", "max_rtt", "cut_s", "recovered_s", "timed_out")
)
F_STATE, F_GENERATION, F_UNDER_WAY = FLOW["state"], FLOW["generation"], FLOW["under_way"]
F_SIZE, F_WRITE, F_UNA, F_NEXT, F_PIPE = (FLOW[name] for name in ("size", "write", "una", "next", "pipe"))
F_RECOVER, F_RECOVERY, F_LOST = (FLOW[name] for name in ("recover", "recovery", "lost"))
F_RACK_TIME, F_RACK_SEQ, F_RACK_RTT = (FLOW[name] for name in ("rack_time", "rack_seq", "rack_rtt"))
F_FARTHEST, F_REORDERED, F_PRIOR = (FLOW[name] for name in ("farthest", "reordered", "prior"))
F_PROBE, F_PROBE_AGAIN, F_UNDO, F_UNDO_AT = (FLOW[name] for name in ("probe", "probe_again", "undo", "undo_at"))
F_TIMER, F_ARMED, F_BACKOFF, F_RTO_AT = (FLOW[name] for name in ("timer", "armed", "backoff", "rto_at"))
F_SRTT, F_RTTVAR, F_RTO, F_RING, F_MASK = (FLOW[name] for name in ("srtt", "rttvar", "rto", "ring", "mask"))
F_ECN, F_REDUCED, F_OUT, F_LAW, F_EXACT = (FLOW[name] for name in ("ecn", "reduced", "out", "law", "exact"))
F_TIMEOUTS, F_CUTS, F_PACER, F_GROUP = (FLOW[name] for name in ("timeouts", "cuts", "pacer", "group"))
F_RTT_SUM, F_RTT_COUNT = FLOW["rtt_sum"], FLOW["rtt_count"]
F_MARKED, F_SLOW_START = FLOW["marked"], FLOW["slow_start"]
K_FLOW, K_SEQ, K_INFO, K_BACK = (PACKET[name] for name in ("flow", "seq", "info", "back"))
M_ACKS, M_MIN_RTO = META["acks"], META["min_rto"]

_NS = 1e9
_grow, _cut_window = window_acts(**INLINED)
_mark_window, _echo = mark_acts(**INLINED)
_slow_start = slow_start_act(**INLINED)


@njit(**INLINED)
def _measure(net: PacketState, f: int, rtt: int, newest: int) -> None:
    """A round trip [ns], and that of the `newest` segment answered, which laws see, as in Linux.

    Source: RFC 6298, section 2; the timeout is above the smoothed round trip, as in Linux.
    """
    flow, row = net.flow, net.window[f]
    if flow[f, F_SRTT] == 0:
        flow[f, F_SRTT], flow[f, F_RTTVAR] = rtt, rtt // 2
    else:
        flow[f, F_RTTVAR] += (abs(flow[f, F_SRTT] - rtt) - flow[f, F_RTTVAR]) // 4
        flow[f, F_SRTT] += (rtt - flow[f, F_SRTT]) // 8
    flow[f, F_RTO] = flow[f, F_SRTT] + max(4 * flow[f, F_RTTVAR], net.meta[M_MIN_RTO])
    flow[f, F_RTT_SUM] += rtt
    flow[f, F_RTT_COUNT] += 1
    net.trip[0, flow[f, F_GROUP]] += rtt
    net.trip[1, flow[f, F_GROUP]] += 1
    seconds = newest / _NS
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


@njit(**INSIDE)
def _repair(net: PacketState, f: int, now: int) -> None:
    """Losses are to be repaired; the window is cut unless a mark has done so."""
    if net.flow[f, F_RECOVERY] == NORMAL:
        remember(net, f)
        _cut(net, f, now)
    else:
        net.flow[f, F_PRIOR] = net.flow[f, F_NEXT] - net.flow[f, F_UNA]
    begin_reduction(net, f)


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
        flow[f, F_STATE], flow[f, F_RTO_AT], flow[f, F_BACKOFF] = OPEN, 0, 0
        _measure(net, f, now - upto, now - upto)
        if flow[f, F_PACER] > 0:
            begin_pacing(net, f, full)
        wait = 0
    else:
        wait = _learn(net, f, info, seq, upto, now, full)
        if flow[f, F_STATE] == CLOSED:
            return NOTHING
    offer(net, f, now, full)
    arm(net, f, now, wait)
    return NOTHING


@njit(**INSIDE)
def _double(law: int, number: int, row: np.ndarray, acked: Acked, newly: float) -> None:
    """Slow start that may end before a loss."""
    packets, threshold = _slow_start(number, row, acked, newly)
    _grow(law, row, Acked(packets, acked.since, acked.rtt, True))
    row[W_THRESHOLD] = min(row[W_THRESHOLD], threshold)


@njit(**INLINED)
def _place(net: PacketState, f: int, seq: int) -> int:
    """Where a segment is in the rings."""
    return net.flow[f, F_RING] + (seq & net.flow[f, F_MASK])


@njit(**INLINED)
def _note_delivery(net: PacketState, f: int, info: int, seq: int, upto: int, now: int) -> bool:
    """What the segment that is answered tells of the others; whether it was late: sent before any was sent again."""
    flow, place = net.flow, _place(net, f, seq)
    known, again, sent = net.mark[place], info & AGAIN != 0, net.sent[place]
    if known & EVER != 0 and not again:
        return True  # of when it was sent nothing is known any more
    if sent > flow[f, F_RACK_TIME] or (sent == flow[f, F_RACK_TIME] and seq > flow[f, F_RACK_SEQ]):
        flow[f, F_RACK_TIME], flow[f, F_RACK_SEQ], flow[f, F_RACK_RTT] = sent, seq, now - sent
    if seq > flow[f, F_FARTHEST]:
        flow[f, F_FARTHEST] = seq
    elif not again:
        flow[f, F_REORDERED] = 1
    if known & EVER == 0:
        first = flow[f, F_UNA]  # whose acknowledgement may have waited for this one, or been lost or overtaken
        if first != seq and (first >= upto or net.mark[_place(net, f, first)] != 0):
            first = seq
        _measure(net, f, now - net.sent[_place(net, f, first)], now - sent)
    return not again and sent < flow[f, F_UNDO_AT]


@njit(**INLINED)
def _learn(net: PacketState, f: int, info: int, seq: int, upto: int, now: int, full: int) -> int:
    """What an acknowledgement says of what was sent. Returns what the timer waits for (`arm`)."""
    flow, row = net.flow, net.window
    una, in_flight, pipe = flow[f, F_UNA], flow[f, F_NEXT] - flow[f, F_UNA], flow[f, F_PIPE]
    out = pipe + flow[f, F_LOST]
    late = fresh = False
    if seq >= una and net.mark[_place(net, f, seq)] & SACKED == 0:
        fresh = net.mark[_place(net, f, seq)] & EVER == 0
        late = _note_delivery(net, f, info, seq, upto, now)
    newly = upto - una
    if newly > 0:
        advance_to(net, f, upto)
        flow[f, F_BACKOFF] = 0
        if flow[f, F_UNA] == flow[f, F_NEXT]:
            flow[f, F_RTO_AT] = 0
            if flow[f, F_UNA] >= flow[f, F_SIZE] and flow[f, F_WRITE] == 0:
                flow[f, F_STATE], flow[f, F_TIMER] = CLOSED, 0
                return 0
        else:
            restart(net, f, now)
    elif newly < 0:
        info &= ~DUPLICATE  # it was overtaken, so that Linux refuses it (PAWS); later ones tell of what is out of order
    run = info >> RUN_SHIFT
    if run > 0 and seq >= flow[f, F_UNA]:
        mark_received(net, f, seq, run)
    if info & DUPLICATE != 0:
        hear_duplicate(net, f)
    if flow[f, F_EXACT] == 1:
        outstanding = float(flow[f, F_NEXT] - flow[f, F_UNA])
        _echo(flow[f, F_LAW], row[f], Echoed(info & MARKED != 0, float(newly), outstanding))
    lost, before = flow[f, F_LOST], flow[f, F_RECOVERY]
    delivered = out - flow[f, F_PIPE] - lost
    if info & MARKED != 0:
        flow[f, F_MARKED] += delivered
    wait = 0
    if before != NORMAL or flow[f, F_PROBE] > 0 or info & DUPLICATE != 0 or doubtful(net, f):
        wait = _judge(net, f, info, seq, now, newly, late)
    losing = flow[f, F_LOST] - lost
    if flow[f, F_LOST] > 0 and flow[f, F_RECOVERY] & REPAIRS == 0:
        _repair(net, f, now)
    elif info & MARKED != 0 and flow[f, F_ECN] == SCALABLE_ECN:
        if flow[f, F_RECOVERY] == NORMAL:
            _hear_mark(net, f, now)
    elif info & MARKED != 0 and flow[f, F_RECOVERY] == NORMAL and flow[f, F_UNA] > flow[f, F_RECOVER]:
        _cut(net, f, now, True)  # once the receiver knows of the last cut, as until then it echoes what came before
        flow[f, F_RECOVERY], flow[f, F_UNDO] = CONGESTED, 0
    elif newly > 0 and before not in (RECOVERY, CONGESTED):
        window = row[f, W_WINDOW]
        slow = window < row[f, W_THRESHOLD]
        used = max(in_flight, flow[f, F_OUT])
        if before == TIMED_OUT or (2.0 * used >= window if slow else used + 1.0 > window):
            most = newly if not slow else 1 if before == TIMED_OUT else 2  # RFC 3465, sections 2.2 and 2.3
            acked = Acked(float(min(newly, most)), now / _NS - row[f, W_CUT], row[f, W_RTT], True)
            if slow and flow[f, F_SLOW_START] > 0:
                _double(flow[f, F_LAW], flow[f, F_SLOW_START], row[f], acked, float(newly))
            else:
                _grow(flow[f, F_LAW], row[f], acked)
    if flow[f, F_RECOVERY] == RECOVERY:
        reduce(net, f, delivered, newly > 0 and losing <= 0)
    if flow[f, F_PACER] > 0:
        set_pace(net, f, now, full, fresh, pipe)
    return wait


@njit(**INLINED)
def _judge(net: PacketState, f: int, info: int, seq: int, now: int, newly: int, late: bool) -> int:
    """Whether losses are repaired, or weren't any, and what else is lost. Returns as `_learn`."""
    flow = net.flow
    if flow[f, F_PROBE] > 0 and flow[f, F_UNA] >= flow[f, F_PROBE]:
        if flow[f, F_PROBE_AGAIN] == 1 and info & AGAIN != 0 and info & DUPLICATE == 0 and seq == flow[f, F_PROBE] - 1:
            _cut(net, f, now)  # the probe repaired a loss: RFC 8985, section 7.4.2
            flow[f, F_UNDO] = 0
        flow[f, F_PROBE] = 0
    repairs = flow[f, F_RECOVERY] & REPAIRS != 0
    if flow[f, F_RECOVERY] != NORMAL and flow[f, F_UNA] >= flow[f, F_RECOVER]:
        if repairs and may_undo(net, f, late and newly > 0):
            undo(net, f)
        elif repairs:
            recovered(net, f)
        flow[f, F_RECOVERY] = NORMAL
    elif repairs and late and newly > 0 and may_undo(net, f, True):
        if first_resent(net, f) >= 0:
            return UNKNOWN  # what was sent again will tell
        undo(net, f)
    elif info & DUPLICATE != 0 and may_undo(net, f, False):
        undo(net, f)
    first_resent(net, f)  # others are forgotten
    if not doubtful(net, f):
        return 0
    if now - flow[f, F_RACK_TIME] != flow[f, F_RACK_RTT]:  # it answers nothing that was sent later than all before
        return UNKNOWN if newly > 0 else AS_PLANNED
    wait = find_lost(net, f, now, reordering_window(net, f), False)
    return wait if wait > 0 else UNKNOWN


@njit(**INSIDE)
def time_out(net: PacketState, f: int, now: int, full: int) -> None:
    """A timer's event: a later end is waited for; at its end a probe is sent, or segments are lost.

    Source: RFC 8985, sections 6.3 and 7.3; RFC 6298, section 5; RFC 5681, section 3.1.
    """
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
    if now < flow[f, F_RTO_AT]:
        wait = 0
        if probes(net, f) and not doubtful(net, f):
            send_probe(net, f, now, full)
        else:
            wait = find_lost(net, f, now, reordering_window(net, f), False)
            if flow[f, F_LOST] > 0 and flow[f, F_RECOVERY] & REPAIRS == 0:
                _repair(net, f, now)
            if flow[f, F_RECOVERY] == RECOVERY:
                reduce(net, f, 0, False)
            offer(net, f, now, full)
            wait = wait if wait > 0 or not doubtful(net, f) else UNKNOWN
        arm(net, f, now, wait)
        return
    flow[f, F_TIMEOUTS] += 1
    flow[f, F_BACKOFF] += 1
    if flow[f, F_STATE] == CONNECTING:
        ask(net, f, now)
        return
    if flow[f, F_RECOVERY] == NORMAL:
        remember(net, f)
        _cut(net, f, now)
    elif flow[f, F_RECOVERY] != TIMED_OUT:
        row[W_THRESHOLD] = max(row[W_WINDOW], 2.0)
    flow[f, F_RECOVERY], flow[f, F_RECOVER], flow[f, F_PROBE] = TIMED_OUT, flow[f, F_NEXT], 0
    find_lost(net, f, now, 0, True)
    row[W_WINDOW], row[W_CUT], row[W_TIMED_OUT] = flow[f, F_PIPE] + 1.0, now / _NS, 1.0
    restart(net, f, now)
    offer(net, f, now, full)
    arm(net, f, now, 0)
