"""The packet engine: one event after the other, in whole nanoseconds.

A call goes on from where the last one stopped; it stops early where a table has no room, and changes nothing by that.
All that runs for each packet is inlined into `advance_packets`, without numba's reference counts.
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.aqm.fluid import PROBABILITY
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.sender import TcpWindow
from netctrl.laws.window.law import MAX_HOPS
from netctrl.laws.window.law import Path as WindowPath
from netctrl.sim.heap import PLACE_BITS, TIME_SHIFT, event, pop, replace_first
from netctrl.sim.packet.hosts import PORT
from netctrl.sim.packet.links.links import BY_EPOCH, end_epoch, enqueue, set_capacity, settle
from netctrl.sim.packet.links.served import go_on, serve_if_due
from netctrl.sim.packet.senders.answers import acknowledge, time_out
from netctrl.sim.packet.senders.demands import CHOICE, act_of_demand, chosen_way
from netctrl.sim.packet.senders.messages import (
    acknowledge_message,
    begin_message,
    begin_transfer,
    deliver_message,
    go_back,
    offer_message,
    take_turns,
)
from netctrl.sim.packet.senders.pacing import woken
from netctrl.sim.packet.senders.receiver import OF_A_MESSAGE, answer_late, deliver, on_line
from netctrl.sim.packet.senders.regulators import act_of_regulator, begin_regulator, change_rate
from netctrl.sim.packet.senders.tcp import DEMAND, MESSAGES, OPEN, TCP, UDP, connect, send_on
from netctrl.sim.packet.senders.transfers import sample_backlogs
from netctrl.sim.packet.senders.web import begin_session, finish, go_on_session
from netctrl.sim.packet.state import (
    ARRIVES,
    EPOCH,
    FLOW,
    FREE,
    KIND_MASK,
    KIND_SHIFT,
    LINK,
    MESSAGE_ACK,
    META,
    NEVER,
    PACKET,
    PAUSE,
    SIZE_MASK,
    THINK,
    TIMER,
    WAKE,
    PacketState,
    plan,
)
from netctrl.sim.reference import by_reference

FLOW_STARTS, SESSION_STARTS, CAPACITY, DELAY, LINE_DELAY, RATE_FIXED, RATE_FREE, TRANSFER_STARTS = range(8)
"""What the agenda may have; the value of a rate is its place in `rates`."""

L_HEAD, L_TAIL, L_WAIT, L_DELAY = (LINK[name] for name in ("head", "tail", "wait", "delay"))
L_BYTES, L_ARRIVED, L_DEPARTED, L_LOST, L_MARKED, L_CHOSEN, L_PACKETS = (
    LINK[name] for name in ("bytes", "arrived", "departed", "lost", "marked", "chosen", "packets")
)
L_DECIDES, L_WAITED, L_STARTED = (LINK[name] for name in ("decides", "waited_ns", "started"))
F_LINE_HEAD, F_LINE_TAIL, F_LINE_DELAY, F_KIND = (
    FLOW[name] for name in ("line_head", "line_tail", "line_delay", "kind")
)
L_SCHEDULED, PAUSED, PORT_FLOW, TURNS = LINK["scheduled"], PORT["paused"], PORT["flow"], PORT["turns"]
PAUSES, PAUSED_SINCE, PAUSED_NS = (PORT[name] for name in ("pauses", "paused_since", "paused_ns"))
F_FULL, F_TIMER, F_GROUP, F_STATE, F_PIPE = (FLOW[name] for name in ("full", "timer", "group", "state", "pipe"))
W_WINDOW = list(fields_of(TcpWindow)).index("window")
K_NEXT, K_FLOW, K_HOP, K_INFO, K_TIME = (PACKET[name] for name in ("next", "flow", "hop", "info", "time"))
M_NOW, M_BASE, M_HEAP, M_LEFT, M_AGENDA = (META[name] for name in ("now", "base", "heap", "left", "agenda"))
M_SAMPLE, M_EVENTS, M_SHORT, M_RESPONSES, M_ROWS_LEFT, M_AT_ONCE = (
    META[name] for name in ("sample", "events", "short", "responses", "rows_left", "at_once")
)
_RATES_AT = WindowPath._fields.index("rates")
_PLACE = (1 << PLACE_BITS) - 1


@njit(**INLINED)
def _go_on(net: PacketState, k: int, now: int) -> int:
    """A packet is at the end of a link: into the next one, or it is where it was sent.

    Returns the packet where it is of a message at its receiver, for `_of_messages`, or an acknowledgement of one whose
    line takes no time; else -1.
    """
    packet = net.packet
    hop = packet[k, K_HOP] + 1
    if net.route[hop] <= CHOICE:
        hop = chosen_way(net, hop, packet[k, K_INFO] & SIZE_MASK)
    packet[k, K_HOP] = hop
    link = net.route[hop]
    if link >= 0:
        enqueue(net, link, k, now)
    elif link == -1:
        finished = deliver(net, k, now, net.flow[packet[k, K_FLOW], F_FULL])
        if finished == OF_A_MESSAGE:
            return k
        if finished >= 0:
            finish(net, finished, now)
    elif net.flow[packet[k, K_FLOW], F_LINE_DELAY] == 0 and _answers_message(net, k):
        return k
    else:
        on_line(net, packet[k, K_FLOW], k, now)
    return -1


@njit(**INLINED)
def _answers_message(net: PacketState, k: int) -> bool:
    return net.packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK == MESSAGE_ACK


@njit(**INLINED)
def _arrive(net: PacketState, place: int, now: int) -> int:
    """The first packet on a link's wire, or on a flow's line, is at its end; one of a message at an end is returned."""
    link, flow, packet, meta, heap = net.link, net.flow, net.packet, net.meta, net.heap
    L = len(link)
    shared, after = place < L + len(flow), -1
    if not shared:  # of a link whose packets overtake each other
        k = place - L - len(flow)
    elif place < L:
        k = link[place, L_HEAD]
        if k < 0 or packet[k, K_TIME] != now:  # its times have changed: another event is planned
            meta[M_HEAP] = pop(heap, meta[M_HEAP])
            return -1
        if link[place, L_WAIT] == k:
            settle(net, place, now)
        after = packet[k, K_NEXT]
        link[place, L_HEAD] = after
        if after < 0:
            link[place, L_TAIL] = -1
    else:
        k = flow[place - L, F_LINE_HEAD]
        after = packet[k, K_NEXT]
        flow[place - L, F_LINE_HEAD] = after
        if after < 0:
            flow[place - L, F_LINE_TAIL] = -1
    if after >= 0:
        replace_first(heap, meta[M_HEAP], event(packet[after, K_TIME] - meta[M_BASE], ARRIVES, place))
    else:
        meta[M_HEAP] = pop(heap, meta[M_HEAP])
    if place < L or not shared:
        k = _go_on(net, k, now)
        if k < 0 or not _answers_message(net, k):
            return k
    return k if acknowledge(net, k, now, flow[packet[k, K_FLOW], F_FULL]) == OF_A_MESSAGE else -1


@njit(**INLINED)
def _wake(net: PacketState, f: int, now: int) -> None:
    """A flow sends: what it had no room for, or a datagram."""
    full = net.flow[f, F_FULL]
    if net.flow[f, F_KIND] == TCP:
        woken(net, f, now)
        send_on(net, f, now, full)
    elif net.flow[f, F_KIND] == DEMAND:
        act_of_demand(net, f, now, full)
    else:
        act_of_regulator(net, f, now, full)


@njit(**INSIDE)
def _tell_senders(net: PacketState, link: int, rate: int) -> None:
    """Telemetry has the links' rates."""
    crossed, path = net.hosts.crossed, net.hosts.path
    for kind in range(len(crossed)):
        for h in range(MAX_HOPS):
            if crossed[kind, h] == link:
                path[kind, _RATES_AT + h] = rate


@njit(**INSIDE)
def _pause(net: PacketState, link: int, now: int, paused: int) -> None:
    """A frame of priority flow control is at the link's beginning."""
    port = net.hosts.port
    if port[link, PAUSED] == paused:
        return
    port[link, PAUSED] = paused
    if paused == 1:
        port[link, PAUSES] += 1
        port[link, PAUSED_SINCE] = now
        return
    port[link, PAUSED_NS] += now - port[link, PAUSED_SINCE]
    if port[link, TURNS] == 1:
        take_turns(net, link, now)
    elif port[link, PORT_FLOW] >= 0:
        offer_message(net, port[link, PORT_FLOW], now)
    elif net.link[link, L_BYTES] > 0 and net.link[link, L_SCHEDULED] == 0:
        go_on(net, link, now)


@njit(**INSIDE)
def _of_messages(net: PacketState, kind: int, place: int, now: int) -> None:
    """An event of data-centre senders: of a packet, a flow, or a link. One function, so that the kernel stays small."""
    if kind == ARRIVES:
        if _answers_message(net, place):
            acknowledge_message(net, place, now)
            return
        finished = deliver_message(net, place, now)
        if finished >= 0:
            finish(net, finished, now)
    elif kind == WAKE:
        woken(net, place, now)
        offer_message(net, place, now)
    elif kind == TIMER:
        go_back(net, place, now)
    elif kind == FREE:
        take_turns(net, place, now)
    else:
        _pause(net, place, now, 1 if kind == PAUSE else 0)


@njit(**INSIDE)
def _act(net: PacketState, now: int, full: int, first_window: float) -> None:
    """The next entry of the agenda."""
    row = net.agenda[net.meta[M_AGENDA]]
    net.meta[M_AGENDA] += 1
    kind, which, value = row[1], row[2], row[3]
    if kind == FLOW_STARTS:
        if net.flow[which, F_KIND] == MESSAGES:
            begin_message(net, which, now)
        elif net.flow[which, F_KIND] == TCP:
            connect(net, which, now, first_window)
        elif net.flow[which, F_KIND] == UDP:
            begin_regulator(net, which, now)
        else:
            plan(net, now, WAKE, which)
    elif kind == TRANSFER_STARTS:
        begin_transfer(net, which, now)
    elif kind == SESSION_STARTS:
        begin_session(net, which, now)
    elif kind == CAPACITY:
        set_capacity(net, which, now, value)
        _tell_senders(net, which, value)
    elif kind == DELAY:
        net.link[which, L_DELAY] = value
    elif kind == LINE_DELAY:
        net.flow[which, F_LINE_DELAY] = value
    else:
        change_rate(net, which, now, net.rates[value], 1 if kind == RATE_FIXED else 0)


@njit(**INSIDE)
def _sample_windows(net: PacketState, row: int) -> None:
    """Means over the open connections of each group, whose flows are side by side."""
    flow, windows = net.flow, net.windows
    f, F = 0, len(flow)
    while f < F:
        g, count, window, out = flow[f, F_GROUP], 0, 0.0, 0
        while f < F and flow[f, F_GROUP] == g:
            if flow[f, F_STATE] == OPEN and flow[f, F_KIND] == TCP:
                count += 1
                window += net.window[f, W_WINDOW] * flow[f, F_FULL]
                out += flow[f, F_PIPE] * flow[f, F_FULL]
            f += 1
        if count > 0:
            windows[0, g, row], windows[1, g, row] = window / count, out / count


@njit(**INSIDE)
def _sample(net: PacketState, now: int) -> None:
    """All links of the scenario and groups at one time."""
    link, series, row = net.link, net.series, net.meta[M_SAMPLE] - 1
    kept = 0 <= row < series.shape[2]
    for k in range(series.shape[1]):
        settle(net, k, now)
        if kept:
            series[0, k, row], series[1, k, row] = link[k, L_BYTES], link[k, L_ARRIVED]
            series[2, k, row], series[3, k, row] = link[k, L_DEPARTED], link[k, L_LOST]
            series[4, k, row] = link[k, L_MARKED]
            series[5, k, row] = net.queue[k, PROBABILITY] if link[k, L_DECIDES] >= BY_EPOCH else link[k, L_CHOSEN]
            series[6, k, row], series[7, k, row] = link[k, L_WAITED], link[k, L_STARTED]
            net.packets[k, row] = link[k, L_PACKETS]
    if kept:
        for g in range(len(net.group)):
            net.carried[g, row] = net.group[g]
            for k in range(3):
                net.trips[k, g, row] = net.trip[k, g]
        _sample_windows(net, row)
    if len(net.hosts.transfers.histogram) > 0:
        sample_backlogs(net)
    net.meta[M_SAMPLE] += 1


@njit(**INSIDE)
def _rebase(net: PacketState) -> None:
    """Events count their time from now on, so that 40 bits last."""
    meta, past = net.meta, net.meta[M_NOW] - net.meta[M_BASE]
    for i in range(meta[M_HEAP]):
        net.heap[i] -= past << TIME_SHIFT
    meta[M_BASE] += past


@njit(cache=True, error_model="numpy", nogil=True, _nrt=False)
def advance_packets(tables: PacketState, interval: int, full: int, first_window: float, end: int) -> bool:
    """Advance to `end` [ns], which is at most 1000 s on. False: a table has no room; with more the call goes on.

    Parameters
    ----------
    tables : PacketState
    interval : int
        Of samples [ns].
    full : int
        A packet of Web pages with its headers [byte]; a flow's own is in its row.
    first_window : float
        Of a new connection [segment].
    """
    net = by_reference(tables)
    meta, heap = net.meta, net.heap
    _rebase(net)
    while True:
        if meta[M_SHORT] > 0 or meta[M_LEFT] < 64 or meta[M_HEAP] + 64 > len(heap):
            return False
        if meta[M_RESPONSES] + 1 + meta[M_AT_ONCE] >= len(net.response) or meta[M_ROWS_LEFT] < 1:
            return False
        first = heap[0]
        now = meta[M_BASE] + (first >> TIME_SHIFT) if meta[M_HEAP] > 0 else NEVER
        sample = meta[M_SAMPLE] * interval
        acts = net.agenda[meta[M_AGENDA], 0] if meta[M_AGENDA] < len(net.agenda) else NEVER
        if min(sample, acts) <= now:
            now = min(sample, acts)
            if now > end:
                meta[M_NOW] = end
                return True
            meta[M_NOW] = now
            if acts == now:
                _act(net, now, full, first_window)
            else:
                _sample(net, now)
            continue
        if now > end:
            meta[M_NOW] = end
            return True
        meta[M_NOW] = now
        meta[M_EVENTS] += 1
        kind, place = (first >> PLACE_BITS) & 7, first & _PLACE
        if kind == ARRIVES:
            k = _arrive(net, place, now)
            if k >= 0:
                _of_messages(net, kind, k, now)
            continue
        meta[M_HEAP] = pop(heap, meta[M_HEAP])
        if kind == FREE:
            if net.hosts.port[place, TURNS] == 1:
                if net.link[place, L_SCHEDULED] == now:
                    net.link[place, L_SCHEDULED] = 0
                    _of_messages(net, kind, place, now)
            else:
                serve_if_due(net, place, now)
        elif kind == EPOCH:
            end_epoch(net, place, now)
        elif kind == THINK and place >= len(net.session):
            answer_late(net, place - len(net.session), now)
        elif kind == THINK:
            go_on_session(net, place, now, full, first_window)
        elif kind >= PAUSE or net.flow[place, F_KIND] == MESSAGES:
            _of_messages(net, kind, place, now)
        elif kind == WAKE:
            _wake(net, place, now)
        else:
            time_out(net, place, now, net.flow[place, F_FULL])


@njit(cache=True, error_model="numpy", nogil=True)
def resume(net: PacketState, f: int) -> None:
    """A flow that had no room goes on at once."""
    plan(net, net.meta[M_NOW], WAKE, f)
