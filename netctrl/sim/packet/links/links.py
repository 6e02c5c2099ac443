"""Links of the packet engine: queues, their laws, transmission.

A link whose packets leave as they came knows at once when each will: it has one list, of which the packets from `wait`
on haven't begun yet, and one event, for the first on the wire. All others have events that serve them:
`netctrl.sim.packet.links.served`.
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.aqm.fluid import PASSED, PROBABILITY, SCALABLE_PROBABILITY, rate_error
from netctrl.laws.aqm.law import Arriving, Seen
from netctrl.sim.packet.links.dual import update_coupling
from netctrl.sim.packet.links.laws import SPREADING, act_on_packets, spread_on_packets
from netctrl.sim.packet.links.pie import BY_PIE, came_to_pie, update_link_pie
from netctrl.sim.packet.links.ports import BY_RAMP, marks_between
from netctrl.sim.packet.links.served import L_POLICE, makes_room, plan_service, polices, queue_of, serve, wait
from netctrl.sim.packet.links.trace import NANOBITS
from netctrl.sim.packet.links.wire import drop, paid_off, propagate, served_at, wire
from netctrl.sim.packet.state import (
    ARRIVES,
    CAPABLE,
    ECT1,
    EPOCH,
    FLOW,
    LINK,
    MARKED,
    META,
    PACKET,
    SIZE_MASK,
    PacketState,
    chance,
    plan,
)

L_HEAD, L_WAIT, L_BUSY, L_LAST = (LINK[name] for name in ("head", "wait", "busy", "last"))
L_BYTES, L_BUFFER, L_RATE, L_DELAY, L_SERVED = (LINK[name] for name in ("bytes", "buffer", "rate", "delay", "served"))
L_LAW, L_DECIDES, L_EPOCH, L_ACTED = (LINK[name] for name in ("law", "decides", "epoch", "acted"))
L_ENQUEUED, L_FULL, L_ACK, L_TX_FULL, L_TX_ACK = (
    LINK[name] for name in ("enqueued", "full", "ack", "tx_full", "tx_ack")
)
L_ARRIVED, L_DEPARTED, L_LOST, L_MARKED = (LINK[name] for name in ("arrived", "departed", "lost", "marked"))
L_PACKETS, L_CHOSEN, L_WAITED, L_STARTED, L_SENT = (
    LINK[name] for name in ("packets", "chosen", "waited_ns", "started", "sent")
)
K_NEXT, K_INFO, K_TIME, K_START = (PACKET[name] for name in ("next", "info", "time", "start"))
M_HOPS = META["hops"]

L_SCHEDULED, L_PACE, L_ROUND = LINK["scheduled"], LINK["pace"], LINK["round"]
L_GATE, F_OPENS = LINK["gate"], FLOW["opens"]

BY_ARRIVAL, BY_EPOCH, BY_EPOCH_AT_HEAD = 1, 2, 3
"""When a law decides; the last: by epochs, on packets that leave, which have their fate then."""
_NS = 1e9


@njit(**INLINED)
def settle(net: PacketState, link: int, now: int) -> None:
    """Packets whose transmission has begun by now wait no more."""
    row, packet = net.link, net.packet
    k = row[link, L_WAIT]
    if row[link, L_SERVED] == 1:
        return
    while k >= 0 and packet[k, K_START] <= now:
        size = packet[k, K_INFO] & SIZE_MASK
        row[link, L_BYTES] -= size
        row[link, L_DEPARTED] += size
        k = packet[k, K_NEXT]
    row[link, L_WAIT] = k


@njit(**INLINED)
def _transmit(net: PacketState, link: int, k: int, start: int, size: int) -> None:
    """A packet is sent at `start`: the wire is busy, and it arrives behind those before it."""
    row = net.link
    end = start + wire(net, link, size)
    row[link, L_BUSY] = end
    net.packet[k, K_START] = start
    row[link, L_SENT] += 1
    net.meta[M_HOPS] += 1
    propagate(net, link, k, end + row[link, L_DELAY])


@njit(**INLINED)
def _decide(net: PacketState, link: int, now: int, offered: float) -> None:
    """The law takes a step, with what was enqueued since it acted last."""
    row = net.link
    packet = float(row[link, L_FULL])
    elapsed, arrived = (now - row[link, L_ACTED]) / _NS, row[link, L_ENQUEUED] / packet
    if row[link, L_DECIDES] == BY_EPOCH:
        arrived += rate_error(net.parameters[link], now / _NS, elapsed)
    seen = Seen(elapsed, arrived, offered, row[link, L_BYTES] / packet, served_at(net, link) / (8.0 * packet))
    act_on_packets(row[link, L_LAW], net.parameters[link], net.queue[link], seen)
    row[link, L_ACTED], row[link, L_ENQUEUED] = now, 0


@njit(**INSIDE)
def _chooses(net: PacketState, link: int, k: int, size: int) -> bool:
    """Whether the law takes a packet that comes: by chance, or as it spreads what it chooses."""
    row, state = net.link[link], net.queue[link]
    if row[L_LAW] in SPREADING:
        full = float(row[L_FULL])
        packet = Arriving(size / full, row[L_BYTES] / full, chance(net.random, link))
        spread_on_packets(row[L_LAW], net.parameters[link], state, packet)
        return state[PASSED] < 0.0
    p = state[PROBABILITY]
    if net.packet[k, K_INFO] & ECT1 == ECT1:
        p = max(p, state[SCALABLE_PROBABILITY])
    return p > 0.0 and (p >= 1.0 or chance(net.random, link) < p)


@njit(**INLINED)
def enqueue(net: PacketState, link: int, k: int, now: int) -> None:
    """A packet comes to a link."""
    row, packet = net.link, net.packet
    size = packet[k, K_INFO] & SIZE_MASK
    row[link, L_ARRIVED] += size
    row[link, L_PACKETS] += 1
    settle(net, link, now)
    if row[link, L_POLICE] > 0 and polices(net, link, now, size):
        drop(net, link, k, size)
        return
    chosen = dropped = False
    if 0 < row[link, L_DECIDES] <= BY_EPOCH:
        if row[link, L_DECIDES] == BY_ARRIVAL:
            _decide(net, link, now, size / row[link, L_FULL])
        chosen = _chooses(net, link, k, size)
    elif row[link, L_DECIDES] == BY_PIE:
        fate = came_to_pie(net, link, queue_of(net, link, k), k)
        chosen, dropped = fate > 0, fate > 1
    elif row[link, L_DECIDES] == BY_RAMP:
        chosen = marks_between(net, link, k)
    if row[link, L_BYTES] + size > row[link, L_BUFFER] and not makes_room(net, link, k, now, size):
        drop(net, link, k, size)
        return
    if chosen:
        row[link, L_CHOSEN] += 1
        if dropped or packet[k, K_INFO] & CAPABLE == 0:
            drop(net, link, k, size)
            return
        packet[k, K_INFO] |= MARKED
        row[link, L_MARKED] += size
    row[link, L_ENQUEUED] += size
    if row[link, L_SERVED] == 1:
        wait(net, link, k, now, size)
        return
    start = max(now, row[link, L_BUSY])
    row[link, L_WAITED] += start - now
    row[link, L_STARTED] += 1
    _transmit(net, link, k, start, size)
    if start > now:
        row[link, L_BYTES] += size
        if row[link, L_WAIT] < 0:
            row[link, L_WAIT] = k
    else:
        row[link, L_DEPARTED] += size


@njit(**INSIDE)
def end_epoch(net: PacketState, link: int, now: int) -> None:
    """The law acts, and again after an epoch."""
    settle(net, link, now)
    if net.link[link, L_DECIDES] == BY_EPOCH_AT_HEAD:
        update_coupling(net, link, now)
    elif net.link[link, L_DECIDES] == BY_PIE:
        update_link_pie(net, link)
    else:
        _decide(net, link, now, 0.0)
    plan(net, now + net.link[link, L_EPOCH], EPOCH, link)


@njit(**INSIDE)
def set_capacity(net: PacketState, link: int, now: int, rate: int) -> None:
    """Another rate from now on; what is on the wire ends as it began."""
    row, packet = net.link, net.packet
    settle(net, link, now)
    row[link, L_RATE], row[link, L_ROUND] = rate, rate // 2
    for size, column in ((row[link, L_FULL], L_TX_FULL), (row[link, L_ACK], L_TX_ACK)):
        row[link, column] = max(paid_off(size * NANOBITS, rate), 1)
    k = row[link, L_WAIT]
    if row[link, L_SERVED] == 1 or k < 0:
        return
    start, first, arrives = packet[k, K_START], row[link, L_HEAD] == k, 0
    before = row[link, L_HEAD]
    while before != k:
        arrives, before = packet[before, K_TIME], packet[before, K_NEXT]
    while k >= 0:
        row[link, L_WAITED] += start - packet[k, K_START]
        packet[k, K_START] = start
        start += wire(net, link, packet[k, K_INFO] & SIZE_MASK)
        arrives = max(start + row[link, L_DELAY], arrives)
        packet[k, K_TIME] = arrives
        k = packet[k, K_NEXT]
    row[link, L_BUSY], row[link, L_LAST] = start, arrives
    if first:
        plan(net, packet[row[link, L_HEAD], K_TIME], ARRIVES, link)


@njit(**INSIDE)
def pace_link(net: PacketState, link: int, now: int, rate: float) -> None:
    """Packets leave a paced link at another rate from now on [bit/s], at least 1 bit/s and at most the capacity.

    A packet goes when all before it are paid off at the rate, and nothing is saved up. What has gone and isn't paid off
    yet is so at the new rate.
    """
    row = net.link
    owed = max(row[link, L_BUSY] - now, 0) * served_at(net, link)
    row[link, L_PACE] = max(round(rate), 1)
    row[link, L_BUSY] = now + paid_off(owed, served_at(net, link))
    _serve_earlier(net, link, now)


@njit(**INSIDE)
def free_gate(net: PacketState, link: int, now: int) -> None:
    """The gate of a regulator's queue opens at another time."""
    net.link[link, L_BUSY] = net.flow[net.link[link, L_GATE] - 1, F_OPENS]
    _serve_earlier(net, link, now)


@njit(**INLINED)
def _serve_earlier(net: PacketState, link: int, now: int) -> None:
    """What waits at a link that is free at another time: at once, or by an earlier event; a later one is waited for."""
    row = net.link
    if row[link, L_BYTES] == 0:
        return
    if row[link, L_BUSY] <= now:
        row[link, L_SCHEDULED] = 0
        serve(net, link, now)
    elif row[link, L_BUSY] < row[link, L_SCHEDULED]:
        plan_service(net, link, now)
