"""Transfers of the packet engine: what hosts send once, of which there may be millions.

A transfer has a row among the flows from its start until nothing of it is left: no packet, no link that counts it among
its flows, no event. So memory follows what is under way, not what has passed.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.laws.window.law import MAX_HOPS
from netctrl.laws.window.rows import RATE, WINDOW
from netctrl.sim.packet.hosts import HOST, PORT, TRANSFER
from netctrl.sim.packet.state import FLOW, LINK, META, PacketState

T_SIZE, T_PORT, T_KIND, T_FINISH, T_WATCH = (TRANSFER[name] for name in ("size", "port", "kind", "finish", "watch"))
H_PORT, H_KIND, H_LINE, H_READY, H_AFTER = (HOST[name] for name in ("port", "kind", "line", "ready", "after"))
H_TRANSFER, H_WATCH, H_TIMER_AFTER = HOST["transfer"], HOST["watch"], HOST["timer_after"]
F_BYTES, F_ROUTE, F_ACK_ROUTE, F_WOKEN = (FLOW[name] for name in ("bytes", "route", "ack_route", "woken"))
F_UNDER_WAY, F_LISTED = FLOW["under_way"], FLOW["listed"]
M_FREE_ROW, M_ROWS_LEFT, M_LOG, M_BIN, M_WIDTH, M_SAMPLE, M_LAST_TIMER = (
    META[name] for name in ("free_row", "rows_left", "log", "bin", "width", "sample", "last_timer")
)
L_RATE, L_BYTES, SAMPLED, WATCHED = LINK["rate"], LINK["bytes"], PORT["sampled"], PORT["watched"]
_ARRIVED, _ANSWERED = -1, -2


@njit(**INSIDE)
def take_row(net: PacketState, t: int) -> int:
    """A free row for a transfer, with its way."""
    host, flow, transfer, meta = net.hosts.host, net.flow, net.hosts.transfers.transfer, net.meta
    f = meta[M_FREE_ROW]
    meta[M_FREE_ROW] = host[f, H_AFTER]
    meta[M_ROWS_LEFT] -= 1
    flow[f, F_BYTES] = transfer[t, T_SIZE]
    host[f, H_PORT], host[f, H_KIND] = transfer[t, T_PORT], transfer[t, T_KIND]
    host[f, H_TRANSFER], host[f, H_WATCH] = t, transfer[t, T_WATCH]
    host[f, H_LINE] = net.link[transfer[t, T_PORT], L_RATE]
    _lay(net, net.hosts.transfers.way[t, 0], flow[f, F_ROUTE], _ARRIVED)
    _lay(net, net.hosts.transfers.way[t, 1], flow[f, F_ACK_ROUTE], _ANSWERED)
    return f


@njit(**INSIDE)
def _lay(net: PacketState, way: np.ndarray, at: int, end: int) -> None:
    for link in way:
        if link < 0:
            break
        net.route[at] = link
        at += 1
    net.route[at] = end


@njit(**INSIDE)
def row_is_over(net: PacketState, f: int, b: int) -> bool:
    """The row of a transfer that is done, and whose timer is over, is free as soon as nothing refers to it."""
    flow, host, meta = net.flow, net.hosts.host, net.meta
    if flow[f, F_UNDER_WAY] > 0 or flow[f, F_LISTED] > 0 or flow[f, F_WOKEN] > 0 or host[b, H_READY] == 1:
        return False
    host[b, H_AFTER] = meta[M_FREE_ROW]
    meta[M_FREE_ROW] = f
    meta[M_ROWS_LEFT] += 1
    return True


@njit(**INSIDE)
def first_timer(net: PacketState, b: int) -> bool:
    """A transfer's timer starts, behind those that run. True: no other runs."""
    host, last = net.hosts.host, net.meta[M_LAST_TIMER]
    host[b, H_TIMER_AFTER] = 0
    net.meta[M_LAST_TIMER] = b + 1
    if last == 0:
        return True
    host[last - 1, H_TIMER_AFTER] = b + 1
    return False


@njit(**INSIDE)
def next_timer(net: PacketState, b: int) -> int:
    """The first timer is over: the row of the next one, or -1."""
    following = net.hosts.host[b, H_TIMER_AFTER]
    if following == 0:
        net.meta[M_LAST_TIMER] = 0
    return following - 1


@njit(**INSIDE)
def finish_transfer(net: PacketState, b: int, size: int, now: int, whole: bool) -> None:
    """Bytes of a transfer came in order; whole: they were the last."""
    host, transfers = net.hosts.host, net.hosts.transfers
    if whole:
        transfers.transfer[host[b, H_TRANSFER], T_FINISH] = now
    place = now // net.meta[M_BIN]
    if host[b, H_WATCH] >= 0 and place < transfers.bins.shape[1]:
        transfers.bins[host[b, H_WATCH], place] += size


@njit(**INSIDE)
def log_acknowledgement(net: PacketState, b: int, now: int, rtt: int, hops: np.ndarray) -> None:
    """One row: time, watched transfer, backlog of the fullest link, its flows, its place, when it was left, W, rate,
    RTT."""
    log, row = net.hosts.transfers.log, net.meta[M_LOG]
    if row >= len(log):
        return
    net.meta[M_LOG] += 1
    best = 0
    for h in range(1, MAX_HOPS):
        if hops[h, 0] > hops[best, 0]:
            best = h
    state = net.hosts.law[b]
    log[row, 0], log[row, 1], log[row, 2], log[row, 3] = now, net.hosts.host[b, H_WATCH], hops[best, 0], hops[best, 1]
    log[row, 4], log[row, 5], log[row, 6], log[row, 7] = best, hops[best, 3], state[WINDOW], state[RATE]
    log[row, 8] = rtt


@njit(**INSIDE)
def sample_backlogs(net: PacketState) -> None:
    """All sampled links at one time."""
    port, histogram, series = net.hosts.port, net.hosts.transfers.histogram, net.hosts.transfers.series
    row, width, last = net.meta[M_SAMPLE], net.meta[M_WIDTH], len(histogram) - 1
    for q in range(len(port)):
        if port[q, SAMPLED] == 1:
            waiting = net.link[q, L_BYTES]
            histogram[min((waiting + width - 1) // width, last)] += 1
            if port[q, WATCHED] >= 0 and row < series.shape[1]:
                series[port[q, WATCHED], row] = waiting
