"""Flows of the packet engine behind regulators (`netctrl.sim.packet.links.gates`): datagrams in bursts, and TCP.

A flow of datagrams has one event, at the time when its next packet goes or at most `_SLEEP` ahead. An event whose time
isn't the one that the flow was last told is left from before a change of its rate, and nothing comes of it.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.sim.packet.links.gates import pass_gate, set_gate
from netctrl.sim.packet.links.links import free_gate
from netctrl.sim.packet.senders.tcp import CLOSED, OPEN, UDP, send_datagram
from netctrl.sim.packet.state import FIXED, FLOW, NEVER, TOLD, WAKE, PacketState, plan

_SLEEP = 100_000_000_000  # an event is at most so far ahead [ns]

F_STATE, F_KIND, F_START, F_STOP, F_WOKEN = (FLOW[name] for name in ("state", "kind", "start", "stop", "woken"))
F_OPENS, F_FIXED, F_TOLD, F_BURST, F_GATE = (FLOW[name] for name in ("opens", "fixed", "told", "burst", "gate"))


@njit(**INLINED)
def _wait(net: PacketState, f: int, now: int) -> None:
    """An event when the next packet goes, unless there is one."""
    flow = net.flow
    if flow[f, F_OPENS] >= NEVER:
        flow[f, F_WOKEN] = -1
        return
    time = min(flow[f, F_OPENS], now + _SLEEP)
    if time != flow[f, F_WOKEN]:
        flow[f, F_WOKEN] = time
        plan(net, time, WAKE, f)


@njit(**INSIDE)
def begin_regulator(net: PacketState, f: int, now: int) -> None:
    """A flow's first datagram goes now, unless its rate has changed before it."""
    flow = net.flow
    if flow[f, F_STATE] == CLOSED:
        flow[f, F_STATE], flow[f, F_OPENS], flow[f, F_WOKEN] = OPEN, now, -1
        _wait(net, f, now)


@njit(**INLINED)
def act_of_regulator(net: PacketState, f: int, now: int, full: int) -> None:
    """A flow of datagrams is woken: its packet goes."""
    flow = net.flow
    if flow[f, F_WOKEN] != now:
        return
    if flow[f, F_OPENS] > now:
        _wait(net, f, now)
        return
    if now >= flow[f, F_STOP]:
        return
    send_datagram(net, f, now, full)
    pass_gate(net, f, now)
    _wait(net, f, now)


@njit(**INSIDE)
def _set(net: PacketState, f: int, now: int, rate: float, burst: int) -> None:
    """Another rate and burst from now on."""
    flow = net.flow
    set_gate(net, f, max(now, flow[f, F_START]), rate, burst)
    if flow[f, F_KIND] != UDP:
        free_gate(net, flow[f, F_GATE] - 1, now)
        return
    if flow[f, F_STATE] == CLOSED:
        flow[f, F_STATE], flow[f, F_WOKEN] = OPEN, -1
    _wait(net, f, now)


@njit(**INSIDE)
def change_rate(net: PacketState, f: int, now: int, rate: float, fixed: int) -> None:
    """A change of the scenario: a rate that controls can't set while it is fixed, or its end."""
    flow = net.flow
    flow[f, F_FIXED], net.regulated[f, FIXED] = fixed, rate
    if fixed == 0 and flow[f, F_TOLD] == 1:
        rate = net.regulated[f, TOLD]
    _set(net, f, now, rate, flow[f, F_BURST])


@njit(cache=True, error_model="numpy", nogil=True, _nrt=False)
def command_regulators(net: PacketState, flows: np.ndarray, now: int, rates: np.ndarray, bursts: np.ndarray) -> None:
    """A control sets rates [bit/s] and bursts [packet] of these flows; the heap has an event's room for each."""
    for k in range(len(flows)):
        f = flows[k]
        net.flow[f, F_TOLD], net.regulated[f, TOLD] = 1, rates[k]
        rate = rates[k]
        if net.flow[f, F_FIXED] == 1:
            rate = net.regulated[f, FIXED]
        _set(net, f, now, rate, bursts[k])
