"""Web sessions of the packet engine: a page of objects, each over a connection of its own, a pause, the next page."""

from __future__ import annotations

from math import ceil, log

from netctrl.core.jit import INSIDE, njit
from netctrl.sim.packet.senders.messages import begin_message
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.tcp import MESSAGES, connect
from netctrl.sim.packet.state import FLOW, META, SESSION, THINK, PacketState, chance, plan

S_GROUP, S_FIRST, S_OBJECTS, S_MISSING, S_STOP = (
    SESSION[name] for name in ("group", "first", "objects", "missing", "stop")
)
F_SIZE, F_LAST, F_GROUP, F_SESSION, F_ASKED, F_BYTES, F_ACCESS, F_KIND = (
    FLOW[name] for name in ("size", "last_bytes", "group", "session", "asked", "bytes", "access", "kind")
)
M_RESPONSES = META["responses"]
SCALE, SHAPE, MOST, PAUSE = range(4)
"""Columns of what a group's sessions draw from."""
_NS = 1e9


@njit(**INSIDE)
def think(net: PacketState, s: int, now: int) -> None:
    """A pause of exponential length, then the next page."""
    pause = -net.web[net.session[s, S_GROUP], PAUSE] * log(1.0 - _draw(net, s))
    plan(net, now + round(pause * _NS), THINK, s)


@njit(**INSIDE)
def _draw(net: PacketState, s: int) -> float:
    return chance(net.random, len(net.link) + len(net.flow) + s)


@njit(**INSIDE)
def load_page(net: PacketState, s: int, now: int, full: int, first_window: float) -> None:
    """All objects of a page are asked for at once; their sizes are Pareto, cut off."""
    session, flow = net.session, net.flow
    if now >= session[s, S_STOP]:
        return
    web = net.web[session[s, S_GROUP]]
    session[s, S_MISSING] = session[s, S_OBJECTS]
    for f in range(session[s, S_FIRST], session[s, S_FIRST] + session[s, S_OBJECTS]):
        size = ceil(min(web[SCALE] * (1.0 - _draw(net, s)) ** (-1.0 / web[SHAPE]), web[MOST]))
        segments = (size + full - HEADERS - 1) // (full - HEADERS)
        flow[f, F_SIZE], flow[f, F_LAST] = segments, size - (segments - 1) * (full - HEADERS)
        flow[f, F_ASKED], flow[f, F_BYTES] = now - flow[f, F_ACCESS], size
        if flow[f, F_KIND] == MESSAGES:
            begin_message(net, f, now)
        else:
            connect(net, f, now, first_window)


@njit(**INSIDE)
def finish(net: PacketState, f: int, now: int) -> None:
    """The last byte of a flow came, which is noted; after the last object of a page there is a pause."""
    flow, meta = net.flow, net.meta
    s = flow[f, F_SESSION]
    row = net.response[meta[M_RESPONSES]]
    row[0], row[1], row[2], row[3] = flow[f, F_GROUP], flow[f, F_ASKED], flow[f, F_BYTES], now - flow[f, F_ASKED]
    meta[M_RESPONSES] += 1
    if s < 0:
        return
    net.session[s, S_MISSING] -= 1
    if net.session[s, S_MISSING] == 0:
        think(net, s, now)
