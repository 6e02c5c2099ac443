"""What a TCP sender knows of its segments: which were received, and which are lost."""

from __future__ import annotations

from netctrl.core.jit import INLINED, njit
from netctrl.sim.packet.state import FLOW, PacketState

SACKED, LOST, RESENT, EVER = 1, 2, 4, 8
"""What is known of a segment; EVER: it was sent more than once."""
F_UNA, F_PIPE, F_LOST, F_LOST_TO, F_RING, F_MASK = (
    FLOW[name] for name in ("una", "pipe", "lost", "lost_to", "ring", "mask")
)
F_HIGH1, F_HIGH2, F_HIGH3 = (FLOW[name] for name in ("high1", "high2", "high3"))


@njit(**INLINED)
def mark_received(net: PacketState, f: int, seq: int, run: int) -> None:
    """The run of `run` segments that ends with `seq` was received: what is three or more below is lost."""
    flow, mark = net.flow, net.mark
    ring, mask = flow[f, F_RING], flow[f, F_MASK]
    low = max(seq - run + 1, flow[f, F_UNA])
    s = seq
    while s >= low:
        place = ring + (s & mask)
        known = mark[place]
        if known & SACKED != 0:
            break
        if known & LOST != 0:
            flow[f, F_LOST] -= 1
        else:
            flow[f, F_PIPE] -= 1
        mark[place] = known & EVER | SACKED
        _rank(net, f, s)
        s -= 1
    s, below = max(flow[f, F_LOST_TO], flow[f, F_UNA]), flow[f, F_HIGH3]
    while s < below:
        place = ring + (s & mask)
        if mark[place] & (SACKED | LOST | RESENT) == 0:
            mark[place] |= LOST
            flow[f, F_LOST] += 1
            flow[f, F_PIPE] -= 1
        s += 1
    flow[f, F_LOST_TO] = s


@njit(**INLINED)
def _rank(net: PacketState, f: int, seq: int) -> None:
    """The three highest that were received out of order."""
    flow = net.flow
    if seq > flow[f, F_HIGH1]:
        flow[f, F_HIGH3], flow[f, F_HIGH2], flow[f, F_HIGH1] = flow[f, F_HIGH2], flow[f, F_HIGH1], seq
    elif seq > flow[f, F_HIGH2]:
        flow[f, F_HIGH3], flow[f, F_HIGH2] = flow[f, F_HIGH2], seq
    elif seq > flow[f, F_HIGH3]:
        flow[f, F_HIGH3] = seq


@njit(**INLINED)
def advance_to(net: PacketState, f: int, upto: int) -> None:
    """All segments before `upto` were received."""
    flow, mark = net.flow, net.mark
    ring, mask = flow[f, F_RING], flow[f, F_MASK]
    for s in range(flow[f, F_UNA], upto):
        known = mark[ring + (s & mask)]
        if known & LOST != 0:
            flow[f, F_LOST] -= 1
        elif known & SACKED == 0:
            flow[f, F_PIPE] -= 1
    flow[f, F_UNA] = upto
