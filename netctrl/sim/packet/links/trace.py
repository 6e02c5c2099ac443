"""Links with a trace: what can be sent when, packets at opportunities or bits at varying rates."""

from __future__ import annotations

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.sim.packet.state import LINK, PacketState

OPPORTUNITIES, RATES = 1, 2
"""Kinds of trace."""
NANOBITS = 8_000_000_000
"""Of a byte."""

L_BUSY, L_TRACE, L_STEP, L_STEPS = (LINK[name] for name in ("busy", "trace", "step", "steps"))
L_CURSOR, L_TURN, L_LEFT, L_SLOT, L_HEADER = (LINK[name] for name in ("cursor", "turn", "left", "slot", "header"))


@njit(**INLINED)
def _step(net: PacketState, link: int) -> int:
    """When the trace's step ends [ns]."""
    row = net.link
    return row[link, L_TURN] + net.trace[row[link, L_STEP] + row[link, L_CURSOR], 0]


@njit(**INLINED)
def _go_to_next_step(net: PacketState, link: int) -> None:
    """The next step of the trace; after the last one it begins again."""
    row = net.link
    row[link, L_LEFT] = row[link, L_SLOT]
    row[link, L_CURSOR] += 1
    if row[link, L_CURSOR] == row[link, L_STEPS]:
        row[link, L_CURSOR] = 0
        row[link, L_TURN] += net.trace[row[link, L_STEP] + row[link, L_STEPS] - 1, 0]


@njit(**INLINED)
def next_opportunity(net: PacketState, link: int, now: int) -> None:
    """The link is busy until the first opportunity after now; those before it are lost, with what is left of them.

    It is served a nanosecond before, so that a packet that comes at the same time comes too late.
    """
    while _step(net, link) <= now:
        _go_to_next_step(net, link)
    net.link[link, L_BUSY] = _step(net, link) - 1


@njit(**INSIDE)
def sent_by_trace(net: PacketState, link: int, now: int, size: int) -> int:
    """When a packet that begins now is sent whole [ns]; the link is busy until the next can begin."""
    row = net.link
    if row[link, L_TRACE] == OPPORTUNITIES:
        need = size + row[link, L_HEADER]
        while True:
            used = min(need, row[link, L_LEFT])
            need -= used
            row[link, L_LEFT] -= used
            end = _step(net, link)
            if row[link, L_LEFT] == 0:
                _go_to_next_step(net, link)
            if need == 0:
                row[link, L_BUSY] = _step(net, link) - 1
                return end
    bits, time = size * NANOBITS, now
    while True:
        while _step(net, link) <= time:
            _go_to_next_step(net, link)
        rate, end = net.trace[row[link, L_STEP] + row[link, L_CURSOR], 1], _step(net, link)
        if rate > 0:
            end = time + max((bits + rate // 2) // rate, 1)
        if rate > 0 and end <= _step(net, link):
            row[link, L_BUSY] = end
            return end
        bits -= rate * (_step(net, link) - time)
        time = _step(net, link)
