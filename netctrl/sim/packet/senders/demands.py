"""Demands on packets: what each sends in an interval, and which way each packet goes where they split.

Those of a network are told their rate as an interval begins (`netctrl.sim.packet.rates`), groups of flows read it.

A demand has no window; its row of `window` has the bytes that wait for a whole packet, the gap between packets and
when the next one goes, after the beginning of the interval [ns].
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.sim.packet.links.links import enqueue
from netctrl.sim.packet.senders.tcp import take
from netctrl.sim.packet.state import DATAGRAM, FLOW, KIND_SHIFT, META, PACKET, WAKE, WAY, PacketState, codepoint, plan

CHOICE = -3
"""In a route: CHOICE - w is a choice among the ways from row w on."""
WAITING, GAP, AT = range(3)
W_HOP, W_SHARE, W_BEHIND, W_MORE = (WAY[name] for name in ("hop", "share", "behind", "more"))
F_ROUTE, F_START, F_STOP, F_LEFT, F_SENT = (FLOW[name] for name in ("route", "start", "stop", "left", "sent"))
F_ECN, F_RATES, F_INTERVAL, F_UNTIL = (FLOW[name] for name in ("ecn", "rates", "interval", "until"))
K_FLOW, K_SEQ, K_HOP, K_INFO, K_BACK = (PACKET[name] for name in ("flow", "seq", "hop", "info", "back"))
M_SENT, M_OFFERED = META["sent"], META["offered"]


@njit(**INSIDE)
def chosen_way(net: PacketState, hop: int, size: int) -> int:
    """The way that is furthest behind its share takes the packet: shares are met to within a packet at any time."""
    ways = net.ways
    first = CHOICE - net.route[hop]
    best = row = first
    while True:
        ways[row, W_BEHIND] += ways[row, W_SHARE] * size
        if ways[row, W_BEHIND] > ways[best, W_BEHIND]:
            best = row
        if ways[row, W_MORE] == 0.0:
            break
        row += 1
    ways[best, W_BEHIND] -= size
    return int(ways[best, W_HOP])


@njit(**INLINED)
def begin_interval(net: PacketState, f: int, rate: float, now: int, ends: int, full: int) -> None:
    """A demand sends evenly at a rate [bit/s]; what is no whole packet by `ends` waits for the next interval."""
    flow, row = net.flow, net.window[f]
    before = row[WAITING]
    waiting = before + rate * (ends - now) / 8e9
    flow[f, F_LEFT] = int(waiting / full)
    row[WAITING] = waiting - flow[f, F_LEFT] * full
    flow[f, F_START], flow[f, F_STOP] = now, ends
    if flow[f, F_LEFT] > 0:
        row[GAP] = 8e9 * full / rate
        row[AT] = row[GAP] - 8e9 * before / rate
        _plan_next(net, f)


@njit(**INLINED)
def _plan_next(net: PacketState, f: int) -> None:
    flow, row = net.flow, net.window[f]
    plan(net, min(flow[f, F_START] + round(row[AT]), flow[f, F_STOP]), WAKE, f)
    row[AT] += row[GAP]


@njit(**INSIDE)
def act_of_demand(net: PacketState, f: int, now: int, full: int) -> None:
    """A demand is woken: its next packet, or of a group of flows its next interval."""
    flow = net.flow
    if flow[f, F_LEFT] > 0:
        _send(net, f, now, full)
    elif now < flow[f, F_UNTIL]:
        rate = net.rates[flow[f, F_RATES]]
        flow[f, F_RATES] += 1
        begin_interval(net, f, rate, now, min(now + flow[f, F_INTERVAL], flow[f, F_UNTIL]), full)
    if flow[f, F_LEFT] == 0 and flow[f, F_STOP] < flow[f, F_UNTIL]:
        plan(net, flow[f, F_STOP], WAKE, f)


@njit(**INLINED)
def _send(net: PacketState, f: int, now: int, full: int) -> None:
    """The next packet enters the network."""
    flow, packet, meta = net.flow, net.packet, net.meta
    k, hop = take(net), flow[f, F_ROUTE]
    if net.route[hop] <= CHOICE:
        hop = chosen_way(net, hop, full)
    packet[k, K_FLOW], packet[k, K_SEQ], packet[k, K_HOP], packet[k, K_BACK] = f, 0, hop, now
    packet[k, K_INFO] = full | DATAGRAM << KIND_SHIFT | codepoint(flow[f, F_ECN])
    flow[f, F_SENT] += 1
    meta[M_SENT] += 1
    meta[M_OFFERED] += full
    enqueue(net, net.route[hop], k, now)
    flow[f, F_LEFT] -= 1
    if flow[f, F_LEFT] > 0:
        _plan_next(net, f)
