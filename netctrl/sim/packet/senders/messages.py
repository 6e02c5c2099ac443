"""Data-centre senders of the packet engine: windows and rates in bytes, telemetry, notifications, go-back-N.

A flow has a port of its own, a link in front of its path, which it feeds no faster than it sends; or flows share
their host's port, and take turns. There is no handshake; loss is recovered as in
RDMA: the receiver takes packets in order only, and the sender goes back to the first missing byte.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.laws.window.law import MAX_HOPS, SILENT, Acknowledged
from netctrl.laws.window.rows import RATE, STATES, WINDOW, act, packet_sent
from netctrl.sim.packet.hosts import HOST, PORT, TELEMETRY_OF
from netctrl.sim.packet.links.links import enqueue
from netctrl.sim.packet.links.served import plan_service, serve
from netctrl.sim.packet.senders.receiver import NOTHING, send_back
from netctrl.sim.packet.senders.tcp import CLOSED, OPEN, take
from netctrl.sim.packet.senders.transfers import (
    finish_transfer,
    first_timer,
    log_acknowledgement,
    next_timer,
    row_is_over,
    take_row,
)
from netctrl.sim.packet.state import (
    CAPABLE,
    FLOW,
    GENERATION_MASK,
    GENERATION_SHIFT,
    KIND_SHIFT,
    LINK,
    MARKED,
    MESSAGE,
    MESSAGE_ACK,
    META,
    MISSING,
    NOTIFIED,
    PACKET,
    SIZE_MASK,
    TIMER,
    WAKE,
    PacketState,
    plan,
    release,
)

H_PORT, H_LAW, H_KIND, H_TELEMETRY, H_PAYLOAD, H_HEADER, H_ACK, H_NOTIFICATION, H_TIMEOUT, H_LINE = (
    HOST[name]
    for name in (
        "port", "law", "kind", "telemetry", "payload", "header", "ack", "notification", "timeout", "line",
    )
)  # fmt: skip
H_NEXT, H_UNA, H_EXPECTED, H_FARTHEST = (HOST[name] for name in ("next", "una", "expected", "farthest"))
H_NACKED, H_NOTIFIED, H_PROGRESS = (HOST[name] for name in ("nacked", "notified", "progress"))
H_FLOW, H_READY, H_AFTER, H_TRANSFER, H_WATCH = (HOST[name] for name in ("flow", "ready", "after", "transfer", "watch"))
F_STATE, F_ROUTE, F_PACED, F_BYTES = (FLOW[name] for name in ("state", "route", "paced", "bytes"))
F_GENERATION, F_ECN, F_STOP, F_ARMED, F_DUE, F_WOKEN = (
    FLOW[name] for name in ("generation", "ecn", "stop", "armed", "due", "woken")
)
F_SENT, F_AGAIN, F_TIMEOUTS, F_RECEIVED, F_GROUP = (
    FLOW[name] for name in ("sent", "again", "timeouts", "received", "group")
)
F_RTT_SUM, F_RTT_COUNT, F_UNDER_WAY = FLOW["rtt_sum"], FLOW["rtt_count"], FLOW["under_way"]
K_FLOW, K_SEQ, K_HOP, K_INFO, K_BACK = (PACKET[name] for name in ("flow", "seq", "hop", "info", "back"))
M_SENT, M_OFFERED = META["sent"], META["offered"]
L_BUSY, L_BYTES, L_SCHEDULED, PAUSED = LINK["busy"], LINK["bytes"], LINK["scheduled"], PORT["paused"]
TURNS, READY_HEAD, READY_TAIL = PORT["turns"], PORT["ready_head"], PORT["ready_tail"]
_OF_A_HOP = TELEMETRY_OF[1]
_LONGEST_GAP = 60e9  # [ns]
_LONG_AGO = -(1 << 60)


@njit(**INSIDE)
def begin_message(net: PacketState, f: int, now: int) -> None:
    """A flow begins anew, at line rate with its law's first window."""
    flow, host, hosts = net.flow, net.hosts.host, net.hosts
    b = flow[f, F_PACED]
    flow[f, F_STATE], flow[f, F_GENERATION] = OPEN, (flow[f, F_GENERATION] + 1) & GENERATION_MASK
    flow[f, F_DUE] = flow[f, F_WOKEN] = 0
    for column in (H_NEXT, H_UNA, H_EXPECTED, H_FARTHEST, H_NACKED):
        host[b, column] = 0
    host[b, H_NOTIFIED], host[b, H_PROGRESS] = _LONG_AGO, now
    for column in range(STATES):
        hosts.law[b, column] = 0.0
    for column in range(hosts.memory.shape[1]):
        hosts.memory[b, column] = 0.0
    hosts.law[b, WINDOW], hosts.law[b, RATE] = hosts.start[host[b, H_KIND]], float(host[b, H_LINE])
    _arm(net, f, now)
    offer_message(net, f, now)


@njit(**INSIDE)
def _arm(net: PacketState, f: int, now: int) -> None:
    b = net.flow[f, F_PACED]
    net.flow[f, F_ARMED] = now + net.hosts.host[b, H_TIMEOUT]
    if net.hosts.host[b, H_TRANSFER] < 0 or first_timer(net, b):
        plan(net, net.flow[f, F_ARMED], TIMER, f)


@njit(**INSIDE)
def begin_transfer(net: PacketState, t: int, now: int) -> None:
    """A transfer begins, in a free row of flows; the kernel sees to it that there is one."""
    begin_message(net, take_row(net, t), now)


@njit(**INSIDE)
def _may_send(net: PacketState, f: int, b: int, now: int) -> bool:
    """Whether its window has room for what it has to send."""
    flow, host = net.flow, net.hosts.host
    after = host[b, H_NEXT]
    if flow[f, F_STATE] != OPEN or after >= flow[f, F_BYTES] or after - host[b, H_UNA] >= net.hosts.law[b, WINDOW]:
        return False
    return now < flow[f, F_STOP] or after < host[b, H_FARTHEST]


@njit(**INSIDE)
def _line_up(net: PacketState, f: int, b: int, now: int) -> bool:
    """A flow that may send goes into its port's list, now or when its pace lets it. True: it is there now."""
    flow, host, port = net.flow, net.hosts.host, net.hosts.port
    if host[b, H_READY] == 1 or not _may_send(net, f, b, now):
        return False
    q = host[b, H_PORT]
    if flow[f, F_DUE] > max(now, net.link[q, L_BUSY]):
        if flow[f, F_WOKEN] == 0:
            flow[f, F_WOKEN] = flow[f, F_DUE]
            plan(net, flow[f, F_DUE], WAKE, f)
        return False
    host[b, H_READY], host[b, H_AFTER] = 1, -1
    last = port[q, READY_TAIL]
    port[q, READY_TAIL] = b
    if last >= 0:
        host[last, H_AFTER] = b
    else:
        port[q, READY_HEAD] = b
    return True


@njit(**INSIDE)
def take_turns(net: PacketState, q: int, now: int) -> None:
    """A host's port goes on where its wire is free: an acknowledgement, or a packet of the flow whose turn it is."""
    port, link = net.hosts.port, net.link
    if port[q, PAUSED] == 1:
        return
    if link[q, L_BUSY] <= now:
        if link[q, L_SCHEDULED] == now:  # nothing is left to do for the event that would have come now
            link[q, L_SCHEDULED] = 0
        if link[q, L_BYTES] > 0:
            serve(net, q, now)
        else:
            _next_turn(net, q, now)
    if link[q, L_SCHEDULED] == 0 and (port[q, READY_HEAD] >= 0 or link[q, L_BYTES] > 0):
        plan_service(net, q, now)


@njit(**INSIDE)
def _next_turn(net: PacketState, q: int, now: int) -> None:
    """A packet of the first flow in the port's list that still may send; then it stands behind the others."""
    host, port = net.hosts.host, net.hosts.port
    while port[q, READY_HEAD] >= 0:
        b = port[q, READY_HEAD]
        port[q, READY_HEAD] = host[b, H_AFTER]
        if host[b, H_AFTER] < 0:
            port[q, READY_TAIL] = -1
        host[b, H_READY] = 0
        f = host[b, H_FLOW]
        if _may_send(net, f, b, now):
            _send(net, f, b, now)
            _line_up(net, f, b, now)
            return


@njit(**INSIDE)
def offer_message(net: PacketState, f: int, now: int) -> None:
    """The flow sends a packet if its window, its pace and its port let it; else it is woken where time will."""
    flow, host = net.flow, net.hosts.host
    b = flow[f, F_PACED]
    port = host[b, H_PORT]
    if net.hosts.port[port, TURNS] == 1:
        if _line_up(net, f, b, now):
            take_turns(net, port, now)
        return
    while net.hosts.port[port, PAUSED] == 0 and _may_send(net, f, b, now):
        at = max(flow[f, F_DUE], net.link[port, L_BUSY])
        if at > now:
            if flow[f, F_WOKEN] == 0 or at < flow[f, F_WOKEN]:
                flow[f, F_WOKEN] = at
                plan(net, at, WAKE, f)
            return
        _send(net, f, b, now)


@njit(**INSIDE)
def _send(net: PacketState, f: int, b: int, now: int) -> None:
    """The next packet of a flow."""
    flow, host, hosts, packet, meta = net.flow, net.hosts.host, net.hosts, net.packet, net.meta
    k, seq, kind = take(net), host[b, H_NEXT], host[b, H_KIND]
    payload = min(host[b, H_PAYLOAD], flow[f, F_BYTES] - seq)
    size = payload + host[b, H_HEADER]
    more = CAPABLE if flow[f, F_ECN] == 1 else 0
    packet[k, K_FLOW], packet[k, K_SEQ], packet[k, K_BACK], packet[k, K_HOP] = f, seq, now, flow[f, F_ROUTE]
    packet[k, K_INFO] = size | MESSAGE << KIND_SHIFT | more | flow[f, F_GENERATION] << GENERATION_SHIFT
    if host[b, H_TELEMETRY] > 0:
        for h in range(MAX_HOPS):
            for column in range(_OF_A_HOP):
                hosts.telemetry[k, h, column] = 0
    host[b, H_NEXT] = seq + payload
    flow[f, F_SENT] += 1
    flow[f, F_UNDER_WAY] += 1
    if seq < host[b, H_FARTHEST]:
        flow[f, F_AGAIN] += 1
    host[b, H_FARTHEST] = max(host[b, H_FARTHEST], seq + payload)
    state = hosts.law[b]
    packet_sent(host[b, H_LAW], hosts.parameters[kind], hosts.path[kind], state, float(now), float(payload))
    if state[RATE] < host[b, H_LINE]:  # the port itself keeps line rate
        flow[f, F_DUE] = now + np.int64(min(size * 8e9 / state[RATE], _LONGEST_GAP))
    meta[M_SENT] += 1
    meta[M_OFFERED] += size
    enqueue(net, host[b, H_PORT], k, now)


@njit(**INSIDE)
def deliver_message(net: PacketState, k: int, now: int) -> int:
    """A packet came to its receiver and was counted (`deliver`): it turns into its acknowledgement, telemetry and all.

    Returns the flow whose last byte came by this, else NOTHING.
    """
    flow, host, packet = net.flow, net.hosts.host, net.packet
    f, info, seq = packet[k, K_FLOW], packet[k, K_INFO], packet[k, K_SEQ]
    size, b = info & SIZE_MASK, flow[f, F_PACED]
    if info >> GENERATION_SHIFT & GENERATION_MASK != flow[f, F_GENERATION]:
        release(net, k)
        return NOTHING
    finished, notice = NOTHING, 0
    if seq == host[b, H_EXPECTED]:
        payload = size - host[b, H_HEADER]
        host[b, H_EXPECTED] += payload
        host[b, H_NACKED] = 0
        net.group[flow[f, F_GROUP]] += payload
        flow[f, F_RECEIVED] += payload
        if host[b, H_EXPECTED] == flow[f, F_BYTES]:
            finished = f
        if host[b, H_TRANSFER] >= 0:
            finish_transfer(net, b, size, now, finished == f)
            finished = NOTHING
    elif seq > host[b, H_EXPECTED] and host[b, H_NACKED] == 0:
        host[b, H_NACKED] = 1
        notice = MISSING
    if host[b, H_NOTIFICATION] > 0 and info & MARKED != 0 and now - host[b, H_NOTIFIED] >= host[b, H_NOTIFICATION]:
        host[b, H_NOTIFIED] = now
        notice |= NOTIFIED
    generation = flow[f, F_GENERATION] << GENERATION_SHIFT
    packet[k, K_INFO] = host[b, H_ACK] | MESSAGE_ACK << KIND_SHIFT | info & MARKED | notice | generation
    packet[k, K_SEQ] = host[b, H_EXPECTED]
    send_back(net, f, k, now)
    return finished


@njit(**INSIDE)
def acknowledge_message(net: PacketState, k: int, now: int) -> None:
    """An acknowledgement came to its sender, which waits for it (`acknowledge`): the law takes a step."""
    flow, host, hosts, packet = net.flow, net.hosts.host, net.hosts, net.packet
    f, info = packet[k, K_FLOW], packet[k, K_INFO]
    b = flow[f, F_PACED]
    newly = max(packet[k, K_SEQ] - host[b, H_UNA], 0)
    if newly > 0:
        host[b, H_UNA] = packet[k, K_SEQ]
        host[b, H_NEXT] = max(host[b, H_NEXT], host[b, H_UNA])
        host[b, H_PROGRESS] = now
    lost = info & MISSING != 0
    if lost:
        host[b, H_NEXT] = host[b, H_UNA]
    rtt = now - packet[k, K_BACK]
    flow[f, F_RTT_SUM] += rtt
    flow[f, F_RTT_COUNT] += 1
    net.trip[0, flow[f, F_GROUP]] += rtt
    net.trip[1, flow[f, F_GROUP]] += 1
    seen = Acknowledged(
        float(now),
        float(host[b, H_UNA]),
        float(host[b, H_NEXT]),
        float(newly),
        float(rtt),
        info & MARKED != 0,
        info & NOTIFIED != 0,
        lost,
        SILENT,
    )
    kind = host[b, H_KIND]
    hops = hosts.telemetry[k if host[b, H_TELEMETRY] > 0 else 0]
    path, table = hosts.path[kind], hosts.table[kind]
    act(host[b, H_LAW], hosts.parameters[kind], path, hosts.law[b], table, hosts.memory[b], seen, hops)
    if host[b, H_WATCH] >= 0:
        log_acknowledgement(net, b, now, rtt, hops)
    if host[b, H_UNA] == flow[f, F_BYTES]:
        flow[f, F_STATE] = CLOSED
    else:
        offer_message(net, f, now)


@njit(**INSIDE)
def go_back(net: PacketState, f: int, now: int) -> None:
    """A flow's timer is over: without progress since, it sends all again that isn't acknowledged."""
    flow, host = net.flow, net.hosts.host
    b = flow[f, F_PACED]
    if flow[f, F_ARMED] != now:
        return
    if host[b, H_TRANSFER] >= 0:
        following = next_timer(net, b)
        if following >= 0:
            plan(net, flow[following, F_ARMED], TIMER, following)
    if flow[f, F_STATE] == CLOSED:
        if host[b, H_TRANSFER] >= 0 and not row_is_over(net, f, b):
            _arm(net, f, now)
        return
    if host[b, H_PROGRESS] + host[b, H_TIMEOUT] <= now and host[b, H_NEXT] > host[b, H_UNA]:
        flow[f, F_TIMEOUTS] += 1
        host[b, H_NEXT], host[b, H_PROGRESS] = host[b, H_UNA], now
    _arm(net, f, now)
    offer_message(net, f, now)
