"""Links of the packet engine: queues, their laws, transmission.

A link whose packets leave as they came knows at once when each will: it has one list, of which the packets from `wait`
on haven't begun yet, and one event, for the first on the wire. A link whose law chooses at the head, or that is paced,
has events that serve it.
"""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.aqm.fluid import PROBABILITY, rate_error
from netctrl.laws.aqm.law import Seen
from netctrl.sim.heap import event, push
from netctrl.sim.packet.laws import act_on_packets, chooses_head
from netctrl.sim.packet.state import INLINED, LINK, META, PACKET, PacketState

__all__ = [
    "ACK",
    "DATA",
    "FREE",
    "SYN",
    "SYNACK",
    "chance",
    "enqueue",
    "pace_link",
    "serve_if_due",
    "set_capacity",
    "settle",
    "wire",
]

ARRIVES, FREE, EPOCH, WAKE, TIMER, THINK = range(6)
"""Kinds of event, in the order in which they come at one time."""

DATA, ACK, SYN, SYNACK, DATAGRAM = range(5)
"""Kinds of packet."""
SIZE_MASK = (1 << 20) - 1
KIND_SHIFT, KIND_MASK = 20, 7
CAPABLE, MARKED, REDUCED, AGAIN = 1 << 23, 1 << 24, 1 << 25, 1 << 26
"""ECN-capable; congestion experienced, or on an ACK its echo; the sender has cut its window; sent before."""
GENERATION_SHIFT, GENERATION_MASK = 27, 0xFF
RUN_SHIFT = 35
"""Of an ACK: so many segments before the one that it answers came without a gap."""

L_HEAD, L_TAIL, L_WAIT, L_WAIT_TAIL = (LINK[name] for name in ("head", "tail", "wait", "wait_tail"))
L_BUSY, L_LAST, L_BYTES, L_BUFFER = (LINK[name] for name in ("busy", "last", "bytes", "buffer"))
L_RATE, L_DELAY, L_SERVED, L_SCHEDULED = (LINK[name] for name in ("rate", "delay", "served", "scheduled"))
L_LAW, L_DECIDES, L_EPOCH, L_ACTED = (LINK[name] for name in ("law", "decides", "epoch", "acted"))
L_ENQUEUED, L_FULL, L_ACK, L_TX_FULL, L_TX_ACK = (
    LINK[name] for name in ("enqueued", "full", "ack", "tx_full", "tx_ack")
)
L_ARRIVED, L_DEPARTED, L_LOST, L_MARKED = (LINK[name] for name in ("arrived", "departed", "lost", "marked"))
L_PACKETS, L_CHOSEN, L_WAITED, L_STARTED, L_SENT = (
    LINK[name] for name in ("packets", "chosen", "waited_ns", "started", "sent")
)
L_PACE = LINK["pace"]
K_NEXT, K_FLOW, K_INFO, K_TIME, K_START = (PACKET[name] for name in ("next", "flow", "info", "time", "start"))
M_BASE, M_HEAP, M_FREE, M_LEFT, M_HOPS, M_LIVE, M_DROPPED = (
    META[name] for name in ("base", "heap", "free", "left", "hops", "live", "dropped")
)

BY_ARRIVAL, BY_EPOCH = 1, 2
"""When a law decides."""
_NS = 1e9
_NANOBITS = 8_000_000_000  # of a byte
_LONGEST_WAIT = 1_000_000_000  # of an event that serves a link [ns]
_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(**INLINED)
def chance(random: np.ndarray, place: int) -> float:
    """The next number of a generator, evenly from [0, 1). Source: Steele, Lea, Flood 2014 (SplitMix64)."""
    z = random[place] + _GOLDEN
    random[place] = z
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(**INLINED)
def release(net: PacketState, k: int) -> None:
    """A packet back to the pool."""
    net.packet[k, K_NEXT] = net.meta[M_FREE]
    net.meta[M_FREE] = k
    net.meta[M_LEFT] += 1
    net.meta[M_LIVE] -= 1


@njit(**INLINED)
def plan(net: PacketState, time: int, kind: int, place: int) -> None:
    """An event; `time` [ns]."""
    net.meta[M_HEAP] = push(net.heap, net.meta[M_HEAP], event(time - net.meta[M_BASE], kind, place))


@njit(**INLINED)
def _served_at(net: PacketState, link: int) -> int:
    """Rate at which packets leave the queue [bit/s]: the capacity, or what a paced link is bound to."""
    row = net.link
    return min(row[link, L_PACE], row[link, L_RATE]) if row[link, L_PACE] > 0 else row[link, L_RATE]


@njit(**INLINED)
def _paid_off(nanobits: int, rate: int) -> int:
    """Time that so many bits take at a rate [ns], rounded."""
    return (nanobits + rate // 2) // rate


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
def wire(net: PacketState, link: int, size: int) -> int:
    """Time on the wire [ns], rounded."""
    row = net.link
    if size == row[link, L_FULL]:
        return row[link, L_TX_FULL]
    if size == row[link, L_ACK]:
        return row[link, L_TX_ACK]
    return max(_paid_off(size * _NANOBITS, row[link, L_RATE]), 1)


@njit(**INLINED)
def _transmit(net: PacketState, link: int, k: int, start: int, size: int) -> None:
    """A packet is sent at `start`: the wire is busy, and it arrives behind those before it."""
    row, packet = net.link, net.packet
    end = start + wire(net, link, size)
    row[link, L_BUSY] = end
    arrives = max(end + row[link, L_DELAY], row[link, L_LAST])
    row[link, L_LAST] = arrives
    packet[k, K_TIME], packet[k, K_START], packet[k, K_NEXT] = arrives, start, -1
    last = row[link, L_TAIL]
    row[link, L_TAIL] = k
    row[link, L_SENT] += 1
    net.meta[M_HOPS] += 1
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        row[link, L_HEAD] = k
        plan(net, arrives, ARRIVES, link)


@njit(**INLINED)
def _decide(net: PacketState, link: int, now: int, offered: float) -> None:
    """The law takes a step, with what was enqueued since it acted last."""
    row = net.link
    packet = float(row[link, L_FULL])
    elapsed, arrived = (now - row[link, L_ACTED]) / _NS, row[link, L_ENQUEUED] / packet
    if row[link, L_DECIDES] == BY_EPOCH:
        arrived += rate_error(net.parameters[link], now / _NS, elapsed)
    seen = Seen(elapsed, arrived, offered, row[link, L_BYTES] / packet, _served_at(net, link) / (8.0 * packet))
    act_on_packets(row[link, L_LAW], net.parameters[link], net.queue[link], seen)
    row[link, L_ACTED], row[link, L_ENQUEUED] = now, 0


@njit(**INLINED)
def _drop(net: PacketState, link: int, k: int, size: int) -> None:
    net.link[link, L_LOST] += size
    net.meta[M_DROPPED] += 1
    release(net, k)


@njit(**INLINED)
def enqueue(net: PacketState, link: int, k: int, now: int) -> None:
    """A packet comes to a link."""
    row, packet = net.link, net.packet
    size = packet[k, K_INFO] & SIZE_MASK
    row[link, L_ARRIVED] += size
    row[link, L_PACKETS] += 1
    settle(net, link, now)
    chosen = False
    if row[link, L_DECIDES] > 0:
        if row[link, L_DECIDES] == BY_ARRIVAL:
            _decide(net, link, now, size / row[link, L_FULL])
        p = net.queue[link, PROBABILITY]
        chosen = p > 0.0 and (p >= 1.0 or chance(net.random, link) < p)
    if row[link, L_BYTES] + size > row[link, L_BUFFER]:
        _drop(net, link, k, size)
        return
    if chosen:
        row[link, L_CHOSEN] += 1
        if packet[k, K_INFO] & CAPABLE == 0:
            _drop(net, link, k, size)
            return
        packet[k, K_INFO] |= MARKED
        row[link, L_MARKED] += size
    row[link, L_ENQUEUED] += size
    if row[link, L_SERVED] == 1:
        _wait(net, link, k, now, size)
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


@njit(**INLINED)
def _wait(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """Behind the others of a link that is served by events."""
    row, packet = net.link, net.packet
    packet[k, K_START], packet[k, K_NEXT] = now, -1
    row[link, L_BYTES] += size
    last = row[link, L_WAIT_TAIL]
    row[link, L_WAIT_TAIL] = k
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        row[link, L_WAIT] = k
    if row[link, L_SCHEDULED] > 0:
        return
    if row[link, L_BUSY] <= now:
        serve(net, link, now)
    else:
        _plan_service(net, link, now)


@njit(**INLINED)
def _plan_service(net: PacketState, link: int, now: int) -> None:
    """An event when the link may send its next packet, or before: a paced one may have to wait for long."""
    time = min(net.link[link, L_BUSY], now + _LONGEST_WAIT)
    net.link[link, L_SCHEDULED] = time
    plan(net, time, FREE, link)


@njit(**INLINED)
def serve_if_due(net: PacketState, link: int, now: int) -> None:
    """The event of `_plan_service`, unless another has taken its place."""
    row = net.link
    if row[link, L_SCHEDULED] != now:
        return
    if row[link, L_BUSY] > now:
        _plan_service(net, link, now)
        return
    row[link, L_SCHEDULED] = 0
    serve(net, link, now)


@njit(**INLINED)
def serve(net: PacketState, link: int, now: int) -> None:
    """The wire is free: the next packet that the law lets through."""
    row, packet = net.link, net.packet
    while row[link, L_WAIT] >= 0:
        k = row[link, L_WAIT]
        size, after = packet[k, K_INFO] & SIZE_MASK, packet[k, K_NEXT]
        waited = now - packet[k, K_START]
        row[link, L_WAIT] = after
        if after < 0:
            row[link, L_WAIT_TAIL] = -1
        row[link, L_BYTES] -= size
        alone = row[link, L_BYTES] <= row[link, L_FULL]
        if chooses_head(row[link, L_LAW], net.parameters[link], net.queue[link], now / _NS, waited / _NS, alone):
            row[link, L_CHOSEN] += 1
            if packet[k, K_INFO] & CAPABLE == 0:
                _drop(net, link, k, size)
                continue
            packet[k, K_INFO] |= MARKED
            row[link, L_MARKED] += size
        row[link, L_WAITED] += waited
        row[link, L_STARTED] += 1
        row[link, L_DEPARTED] += size
        _transmit(net, link, k, now, size)
        if row[link, L_PACE] > 0:
            row[link, L_BUSY] = max(row[link, L_BUSY], now + _paid_off(size * _NANOBITS, _served_at(net, link)))
        if after >= 0:
            _plan_service(net, link, now)
        return


@njit(**INLINED)
def end_epoch(net: PacketState, link: int, now: int) -> None:
    """The law acts, and again after an epoch."""
    settle(net, link, now)
    _decide(net, link, now, 0.0)
    plan(net, now + net.link[link, L_EPOCH], EPOCH, link)


@njit(error_model="numpy", nogil=True, _nrt=False)
def set_capacity(net: PacketState, link: int, now: int, rate: int) -> None:
    """Another rate from now on; what is on the wire ends as it began."""
    row, packet = net.link, net.packet
    settle(net, link, now)
    row[link, L_RATE] = rate
    for size, column in ((row[link, L_FULL], L_TX_FULL), (row[link, L_ACK], L_TX_ACK)):
        row[link, column] = max(_paid_off(size * _NANOBITS, rate), 1)
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


@njit(error_model="numpy", nogil=True, _nrt=False)
def pace_link(net: PacketState, link: int, now: int, rate: float) -> None:
    """Packets leave a paced link at another rate from now on [bit/s], at least 1 bit/s and at most the capacity.

    A packet goes when all before it are paid off at the rate, and nothing is saved up. What has gone and isn't paid off
    yet is so at the new rate.
    """
    row = net.link
    owed = max(row[link, L_BUSY] - now, 0) * _served_at(net, link)
    row[link, L_PACE] = max(round(rate), 1)
    row[link, L_BUSY] = now + _paid_off(owed, _served_at(net, link))
    if row[link, L_WAIT] < 0:
        return
    if row[link, L_BUSY] <= now:
        row[link, L_SCHEDULED] = 0
        serve(net, link, now)
    elif row[link, L_BUSY] < row[link, L_SCHEDULED]:
        _plan_service(net, link, now)
