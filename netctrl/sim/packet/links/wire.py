"""Wires of the packet engine's links: time on them, and what is lost."""

from __future__ import annotations

from netctrl.core.jit import INLINED, njit
from netctrl.sim.packet.links.trace import NANOBITS
from netctrl.sim.packet.state import (
    ARRIVES,
    FLOW,
    KIND_MASK,
    KIND_SHIFT,
    LINK,
    MESSAGE,
    META,
    PACKET,
    PacketState,
    plan,
    release,
)

L_HEAD, L_TAIL, L_LAST, L_RATE = (LINK[name] for name in ("head", "tail", "last", "rate"))
L_FULL, L_ACK, L_TX_FULL, L_TX_ACK = (LINK[name] for name in ("full", "ack", "tx_full", "tx_ack"))
L_LOST, L_PACE, L_ROUND = LINK["lost"], LINK["pace"], LINK["round"]
F_DROPPED, F_UNDER_WAY = FLOW["dropped"], FLOW["under_way"]
K_NEXT, K_FLOW, K_INFO, K_TIME = (PACKET[name] for name in ("next", "flow", "info", "time"))
M_DROPPED = META["dropped"]


@njit(**INLINED)
def served_at(net: PacketState, link: int) -> int:
    """Rate at which packets leave the queue [bit/s]: the capacity, or what a paced link is bound to."""
    row = net.link
    return min(row[link, L_PACE], row[link, L_RATE]) if row[link, L_PACE] > 0 else row[link, L_RATE]


@njit(**INLINED)
def paid_off(nanobits: int, rate: int) -> int:
    """Time that so many bits take at a rate [ns], rounded."""
    return (nanobits + rate // 2) // rate


@njit(**INLINED)
def wire(net: PacketState, link: int, size: int) -> int:
    """Time on the wire [ns], rounded as the link does: `round` is half a rate, or less for a clock that rounds down."""
    row = net.link
    if size == row[link, L_FULL]:
        return row[link, L_TX_FULL]
    if size == row[link, L_ACK]:
        return row[link, L_TX_ACK]
    return max((size * NANOBITS + row[link, L_ROUND]) // row[link, L_RATE], 1)


@njit(**INLINED)
def propagate(net: PacketState, link: int, k: int, arrives: int) -> None:
    """A packet is on the wire, and arrives behind those before it."""
    row, packet = net.link, net.packet
    arrives = max(arrives, row[link, L_LAST])
    row[link, L_LAST] = arrives
    packet[k, K_TIME], packet[k, K_NEXT] = arrives, -1
    last = row[link, L_TAIL]
    row[link, L_TAIL] = k
    if last >= 0:
        packet[last, K_NEXT] = k
    else:
        row[link, L_HEAD] = k
        plan(net, arrives, ARRIVES, link)


@njit(**INLINED)
def overtake(net: PacketState, k: int, arrives: int) -> None:
    """A packet is on the wire of a link whose packets overtake each other: it has an event of its own."""
    net.packet[k, K_TIME] = arrives
    plan(net, arrives, ARRIVES, len(net.link) + len(net.flow) + k)


@njit(**INLINED)
def drop(net: PacketState, link: int, k: int, size: int) -> None:
    """A packet is lost at a link."""
    net.link[link, L_LOST] += size
    f = net.packet[k, K_FLOW]
    net.flow[f, F_DROPPED] += size
    if net.packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK >= MESSAGE:
        net.flow[f, F_UNDER_WAY] -= 1
    net.meta[M_DROPPED] += 1
    release(net, k)
