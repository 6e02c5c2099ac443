"""The packet engine: one event after the other, in whole nanoseconds.

A call goes on from where the last one stopped; it stops early where a table has no room, and changes nothing by that.
All that runs for each packet is inlined into `advance_packets`, without numba's reference counts: see
`netctrl.sim.fabric.kernel`, which does the same.
"""

from __future__ import annotations

from math import log

from netctrl.jit import njit
from netctrl.laws.aqm.fluid import PROBABILITY
from netctrl.sim.heap import PLACE_BITS, TIME_SHIFT, event, pop, replace_first
from netctrl.sim.packet.links.links import end_epoch, enqueue, set_capacity, settle
from netctrl.sim.packet.links.served import serve_if_due
from netctrl.sim.packet.senders.demands import CHOICE, chosen_way, send_of_demand
from netctrl.sim.packet.senders.pacing import woken
from netctrl.sim.packet.senders.receiver import deliver, on_line
from netctrl.sim.packet.senders.tcp import DEMAND, TCP, UDP, acknowledge, connect, offer, send_datagram, time_out
from netctrl.sim.packet.senders.web import finish, load_page, think
from netctrl.sim.packet.state import (
    ARRIVES,
    EPOCH,
    FLOW,
    FREE,
    INLINED,
    LINK,
    META,
    PACKET,
    SIZE_MASK,
    TIMER,
    WAKE,
    PacketState,
    chance,
    plan,
)

__all__ = ["advance_packets", "resume"]

FLOW_STARTS, SESSION_STARTS, CAPACITY, DELAY, LINE_DELAY = range(5)
"""What the agenda may have."""

L_HEAD, L_TAIL, L_WAIT, L_DELAY = (LINK[name] for name in ("head", "tail", "wait", "delay"))
L_BYTES, L_ARRIVED, L_DEPARTED, L_LOST, L_MARKED, L_CHOSEN, L_PACKETS = (
    LINK[name] for name in ("bytes", "arrived", "departed", "lost", "marked", "chosen", "packets")
)
L_DECIDES, L_WAITED, L_STARTED = (LINK[name] for name in ("decides", "waited_ns", "started"))
F_LINE_HEAD, F_LINE_TAIL, F_LINE_DELAY, F_KIND = (
    FLOW[name] for name in ("line_head", "line_tail", "line_delay", "kind")
)
F_STOP, F_GAP, F_SPACING = (FLOW[name] for name in ("stop", "gap", "spacing"))
K_NEXT, K_FLOW, K_HOP, K_INFO, K_TIME = (PACKET[name] for name in ("next", "flow", "hop", "info", "time"))
M_NOW, M_BASE, M_HEAP, M_LEFT, M_AGENDA = (META[name] for name in ("now", "base", "heap", "left", "agenda"))
M_SAMPLE, M_EVENTS, M_SHORT, M_RESPONSES = (META[name] for name in ("sample", "events", "short", "responses"))
_NEVER = 1 << 62
_PLACE = (1 << PLACE_BITS) - 1


@njit(**INLINED)
def _go_on(net: PacketState, k: int, now: int, full: int) -> None:
    """A packet is at the end of a link: into the next one, or it is where it was sent."""
    packet = net.packet
    hop = packet[k, K_HOP] + 1
    if net.route[hop] <= CHOICE:
        hop = chosen_way(net, hop, packet[k, K_INFO] & SIZE_MASK)
    packet[k, K_HOP] = hop
    link = net.route[hop]
    if link >= 0:
        enqueue(net, link, k, now)
    elif link == -1:
        finished = deliver(net, k, now, full)
        if finished >= 0:
            finish(net, finished, now)
    else:
        on_line(net, packet[k, K_FLOW], k, now)


@njit(**INLINED)
def _arrive(net: PacketState, place: int, now: int, full: int) -> None:
    """The first packet on a link's wire, or on a flow's line, is at its end."""
    link, flow, packet, meta, heap = net.link, net.flow, net.packet, net.meta, net.heap
    L = len(link)
    if place < L:
        k = link[place, L_HEAD]
        if k < 0 or packet[k, K_TIME] != now:  # its times have changed: another event is planned
            meta[M_HEAP] = pop(heap, meta[M_HEAP])
            return
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
    if place < L:
        _go_on(net, k, now, full)
    else:
        acknowledge(net, k, now, full)


@njit(**INLINED)
def _wake(net: PacketState, f: int, now: int, full: int) -> None:
    """A flow sends: a datagram, and the next one after a while; or what it had no room for."""
    flow = net.flow
    if flow[f, F_KIND] == TCP:
        woken(net, f, now)
        offer(net, f, now, full)
        return
    if flow[f, F_KIND] == DEMAND:
        send_of_demand(net, f, now, full)
        return
    if now >= flow[f, F_STOP]:
        return
    send_datagram(net, f, now, full)
    gap = float(flow[f, F_GAP])
    if flow[f, F_SPACING] == 1:
        gap *= -log(1.0 - chance(net.random, len(net.link) + f))
    plan(net, now + max(round(gap), 1), WAKE, f)


@njit(error_model="numpy", nogil=True, _nrt=False)
def _act(net: PacketState, now: int, full: int, first_window: float) -> None:
    """The next entry of the agenda."""
    row = net.agenda[net.meta[M_AGENDA]]
    net.meta[M_AGENDA] += 1
    kind, which, value = row[1], row[2], row[3]
    if kind == FLOW_STARTS:
        if net.flow[which, F_KIND] == UDP:
            plan(net, now, WAKE, which)
        else:
            connect(net, which, now, first_window)
    elif kind == SESSION_STARTS:
        think(net, which, now)
    elif kind == CAPACITY:
        set_capacity(net, which, now, value)
    elif kind == DELAY:
        net.link[which, L_DELAY] = value
    else:
        net.flow[which, F_LINE_DELAY] = value


@njit(error_model="numpy", nogil=True, _nrt=False)
def _sample(net: PacketState, now: int) -> None:
    """All links and groups at one time."""
    link, series, row = net.link, net.series, net.meta[M_SAMPLE] - 1
    for k in range(len(link)):
        settle(net, k, now)
        if row < series.shape[2]:
            series[0, k, row], series[1, k, row] = link[k, L_BYTES], link[k, L_ARRIVED]
            series[2, k, row], series[3, k, row] = link[k, L_DEPARTED], link[k, L_LOST]
            series[4, k, row] = link[k, L_MARKED]
            series[5, k, row] = net.queue[k, PROBABILITY] if link[k, L_DECIDES] == 2 else link[k, L_CHOSEN]
            series[6, k, row], series[7, k, row] = link[k, L_WAITED], link[k, L_STARTED]
            net.packets[k, row] = link[k, L_PACKETS]
    for g in range(len(net.group)):
        if row < series.shape[2]:
            net.carried[g, row] = net.group[g]
            net.trips[0, g, row], net.trips[1, g, row] = net.trip[0, g], net.trip[1, g]
    net.meta[M_SAMPLE] += 1


@njit(error_model="numpy", nogil=True, _nrt=False)
def _rebase(net: PacketState) -> None:
    """Events count their time from now on, so that 40 bits last."""
    meta, past = net.meta, net.meta[M_NOW] - net.meta[M_BASE]
    for i in range(meta[M_HEAP]):
        net.heap[i] -= past << TIME_SHIFT
    meta[M_BASE] += past


@njit(cache=True, error_model="numpy", nogil=True, _nrt=False)
def advance_packets(net: PacketState, interval: int, full: int, first_window: float, end: int) -> bool:
    """Advance to `end` [ns], which is at most 1000 s on. False: a table has no room; with more the call goes on.

    Parameters
    ----------
    net : PacketState
    interval : int
        Of samples [ns].
    full : int
        A packet with its headers [byte].
    first_window : float
        Of a new connection [segment].
    """
    meta, heap = net.meta, net.heap
    _rebase(net)
    while True:
        if meta[M_SHORT] > 0 or meta[M_LEFT] < 64 or meta[M_HEAP] + 64 > len(heap):
            return False
        if meta[M_RESPONSES] + 1 >= len(net.response):
            return False
        first = heap[0]
        now = meta[M_BASE] + (first >> TIME_SHIFT) if meta[M_HEAP] > 0 else _NEVER
        sample = meta[M_SAMPLE] * interval
        acts = net.agenda[meta[M_AGENDA], 0] if meta[M_AGENDA] < len(net.agenda) else _NEVER
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
            _arrive(net, place, now, full)
            continue
        meta[M_HEAP] = pop(heap, meta[M_HEAP])
        if kind == FREE:
            serve_if_due(net, place, now)
        elif kind == EPOCH:
            end_epoch(net, place, now)
        elif kind == WAKE:
            _wake(net, place, now, full)
        elif kind == TIMER:
            time_out(net, place, now, full)
        else:
            load_page(net, place, now, full, first_window)


@njit(cache=True, error_model="numpy", nogil=True)
def resume(net: PacketState, f: int) -> None:
    """A flow that had no room goes on at once."""
    plan(net, net.meta[M_NOW], WAKE, f)
