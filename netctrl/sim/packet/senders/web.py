"""Programs of the packet engine: sessions of the Web, and those that write into a connection that stays open.

A session loads a page of objects, each over a connection of its own, pauses, and loads the next page.
"""

from __future__ import annotations

from math import ceil, log

from netctrl.core.jit import INSIDE, njit
from netctrl.sim.packet.senders.messages import begin_message
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.senders.recovery import after_idle, validate
from netctrl.sim.packet.senders.tcp import MESSAGES, OPEN, connect, send_on
from netctrl.sim.packet.state import FLOW, META, SESSION, THINK, PacketState, chance, plan

S_GROUP, S_FIRST, S_OBJECTS, S_MISSING, S_STOP = (
    SESSION[name] for name in ("group", "first", "objects", "missing", "stop")
)
F_SIZE, F_LAST, F_GROUP, F_SESSION, F_ASKED, F_BYTES, F_ACCESS, F_KIND = (
    FLOW[name] for name in ("size", "last_bytes", "group", "session", "asked", "bytes", "access", "kind")
)
F_WRITE, F_INTERVAL, F_EXPECTED, F_STATE, F_LAW, F_FULL = (
    FLOW[name] for name in ("write", "interval", "expected", "state", "law", "full")
)
M_RESPONSES = META["responses"]
SCALE, SHAPE, MOST, PAUSE = range(4)
"""Columns of what a group's sessions draw from."""
_NS = 1e9


@njit(**INSIDE)
def begin_session(net: PacketState, s: int, now: int) -> None:
    """A session begins with a pause, a program that writes at once."""
    if net.session[s, S_OBJECTS] > 0:
        _think(net, s, now)
    else:
        plan(net, now, THINK, s)


@njit(**INSIDE)
def go_on_session(net: PacketState, s: int, now: int, full: int, first_window: float) -> None:
    """The next page, or write."""
    if net.session[s, S_OBJECTS] > 0:
        _load_page(net, s, now, full, first_window)
    else:
        _write(net, s, now, first_window)


@njit(**INSIDE)
def _think(net: PacketState, s: int, now: int) -> None:
    """A pause of exponential length, then the next page."""
    pause = -net.web[net.session[s, S_GROUP], PAUSE] * log(1.0 - _draw(net, s))
    plan(net, now + round(pause * _NS), THINK, s)


@njit(**INSIDE)
def _draw(net: PacketState, s: int) -> float:
    return chance(net.random, len(net.link) + len(net.flow) + s)


@njit(**INSIDE)
def _load_page(net: PacketState, s: int, now: int, full: int, first_window: float) -> None:
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
def _write(net: PacketState, s: int, now: int, first_window: float) -> None:
    """A program writes once more, and plans the next time. The connection is made for the first one."""
    flow, f = net.flow, net.session[s, S_FIRST]
    if now >= net.session[s, S_STOP]:
        return
    plan(net, now + flow[f, F_INTERVAL], THINK, s)
    flow[f, F_SIZE] += flow[f, F_WRITE]
    if flow[f, F_SIZE] == flow[f, F_WRITE]:
        connect(net, f, now, first_window)
    elif flow[f, F_STATE] == OPEN:
        if flow[f, F_LAW] >= 0:
            after_idle(net, f, now, first_window)
        send_on(net, f, now, flow[f, F_FULL])
        if flow[f, F_LAW] >= 0:
            validate(net, f, now, first_window)


@njit(**INSIDE)
def finish(net: PacketState, f: int, now: int) -> None:
    """The last byte of a flow, or of writes, came, which is noted; after the last object of a page there is a pause."""
    flow, meta = net.flow, net.meta
    s, write = flow[f, F_SESSION], flow[f, F_WRITE]
    first = last = 0
    if write > 0:
        first, last = net.session[s, S_MISSING], flow[f, F_EXPECTED] // write - 1
        net.session[s, S_MISSING] = last + 1
    for k in range(first, last + 1):
        row, asked = net.response[meta[M_RESPONSES]], flow[f, F_ASKED] + k * flow[f, F_INTERVAL]
        row[0], row[1], row[2], row[3] = flow[f, F_GROUP], asked, flow[f, F_BYTES], now - asked
        meta[M_RESPONSES] += 1
    if s < 0 or write > 0:
        return
    net.session[s, S_MISSING] -= 1
    if net.session[s, S_MISSING] == 0:
        _think(net, s, now)
