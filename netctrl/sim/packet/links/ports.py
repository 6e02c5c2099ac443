"""What links of data centres do besides: telemetry in packets, counts of flows, priority flow control.

A node counts the bytes of each link that wait in it, and pauses the link from which they are too many: a frame takes
the link's delay and no room. Source: IEEE 802.1Qbb. All of this is for links that are served by events.
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.window.law import Telemetry
from netctrl.sim.packet.hosts import COUNTER, HOST, PORT
from netctrl.sim.packet.state import (
    FLOW,
    KIND_MASK,
    KIND_SHIFT,
    LINK,
    MESSAGE,
    META,
    PACKET,
    PAUSE,
    RESUME,
    PacketState,
    chance,
    is_answer,
    plan,
)

BY_RAMP = 5
"""When a law decides: a data centre's switch, on data as it comes."""
RAMP_LOW, RAMP_HIGH, RAMP_MOST = range(3)
"""Columns of its parameters [byte]."""

TELEMETRY, SENT, FLOWS, SEEN_HEAD, SEEN_TAIL, TIMEOUT = (
    PORT[name] for name in ("telemetry", "sent", "flows", "seen_head", "seen_tail", "timeout")
)
COUNTS, PAUSE_AT, RESUME_AT, WAITING, TOLD, PAUSED = (
    PORT[name] for name in ("counts", "pause", "resume", "waiting", "told", "paused")
)
TIME, BEFORE, AFTER, LISTED = (COUNTER[name] for name in ("time", "before", "after", "listed"))
H_TELEMETRY = HOST["telemetry"]
L_BYTES, L_DELAY = LINK["bytes"], LINK["delay"]
F_ROUTE, F_PACED, F_LISTED = FLOW["route"], FLOW["paced"], FLOW["listed"]
K_FLOW, K_HOP, K_INFO = (PACKET[name] for name in ("flow", "hop", "info"))
M_COUNTERS = META["counters"]
_COUNTS_FLOWS = int(Telemetry.FLOWS)


@njit(**INLINED)
def came(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """A packet waits at a link."""
    port, packet = net.hosts.port, net.packet
    if port[link, TELEMETRY] == _COUNTS_FLOWS and not is_answer(packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK):
        f = packet[k, K_FLOW]
        _see(net, link, f, packet[k, K_HOP] - net.flow[f, F_ROUTE], now)
    into = net.route[packet[k, K_HOP] - 1]
    if port[link, COUNTS] > 0 and into >= 0 and port[into, PAUSE_AT] > 0:
        port[into, WAITING] += size
        if port[into, WAITING] > port[into, PAUSE_AT] and port[into, TOLD] == 0:
            port[into, TOLD] = 1
            plan(net, now + net.link[into, L_DELAY], PAUSE, into)


@njit(**INSIDE)
def marks_between(net: PacketState, link: int, k: int) -> bool:
    """Whether data that comes is marked: always above the higher threshold, never below the lower one, and in between
    with a probability that rises to `most`. Source: Zhu et al., SIGCOMM 2015 (DCQCN), section 3.1."""
    low, high, most = (net.parameters[link, RAMP_LOW], net.parameters[link, RAMP_HIGH], net.parameters[link, RAMP_MOST])
    waiting = float(net.link[link, L_BYTES])
    if waiting <= low or is_answer(net.packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK):
        return False
    return waiting > high or chance(net.random, link) * (high - low) < most * (waiting - low)


@njit(**INLINED)
def left(net: PacketState, k: int, now: int, size: int) -> None:
    """A packet waits no more at a link that counts."""
    port, into = net.hosts.port, net.route[net.packet[k, K_HOP] - 1]
    if into >= 0 and port[into, PAUSE_AT] > 0:
        port[into, WAITING] -= size
        if port[into, WAITING] < port[into, RESUME_AT] and port[into, TOLD] == 1:
            port[into, TOLD] = 0
            plan(net, now + net.link[into, L_DELAY], RESUME, into)


@njit(**INLINED)
def stamp(net: PacketState, link: int, k: int, now: int, size: int) -> None:
    """A packet's transmission begins: the link writes into it how it is, for a sender whose law reads that."""
    port, packet = net.hosts.port, net.packet
    port[link, SENT] += size
    kind, f = packet[k, K_INFO] >> KIND_SHIFT & KIND_MASK, packet[k, K_FLOW]
    if is_answer(kind):
        return
    if port[link, TELEMETRY] == _COUNTS_FLOWS:
        _expire(net, link, now - port[link, TIMEOUT])
    if kind == MESSAGE and net.hosts.host[net.flow[f, F_PACED], H_TELEMETRY] > 0:
        row = net.hosts.telemetry[k, packet[k, K_HOP] - net.flow[f, F_ROUTE] - 1]
        row[0], row[1] = net.link[link, L_BYTES], port[link, FLOWS]
        row[2], row[3] = port[link, SENT], now


# --- counts of flows; entry f W + h is flow f at the h-th link of its way, with W `counters` of META ------------------


@njit(**INLINED)
def _expire(net: PacketState, link: int, before: int) -> None:
    """Stop counting flows that a link hasn't seen since `before`."""
    port, counter = net.hosts.port, net.hosts.counter
    e = port[link, SEEN_HEAD]
    while e >= 0 and counter[e, TIME] < before:
        counter[e, LISTED] = 0
        net.flow[e // net.meta[M_COUNTERS], F_LISTED] -= 1
        port[link, FLOWS] -= 1
        e = counter[e, AFTER]
        port[link, SEEN_HEAD] = e
        if e >= 0:
            counter[e, BEFORE] = -1
        else:
            port[link, SEEN_TAIL] = -1


@njit(**INLINED)
def _see(net: PacketState, link: int, f: int, hop: int, now: int) -> None:
    """A packet of flow f came: the flow goes to the end of the link's list."""
    port, counter = net.hosts.port, net.hosts.counter
    e = f * net.meta[M_COUNTERS] + hop
    counter[e, TIME] = now
    if counter[e, LISTED] == 1:
        after, before = counter[e, AFTER], counter[e, BEFORE]
        if after < 0:
            return
        counter[after, BEFORE] = before
        if before >= 0:
            counter[before, AFTER] = after
        else:
            port[link, SEEN_HEAD] = after
    else:
        counter[e, LISTED] = 1
        net.flow[f, F_LISTED] += 1
        port[link, FLOWS] += 1
    last = port[link, SEEN_TAIL]
    counter[e, BEFORE], counter[e, AFTER] = last, -1
    if last >= 0:
        counter[last, AFTER] = e
    else:
        port[link, SEEN_HEAD] = e
    port[link, SEEN_TAIL] = e
