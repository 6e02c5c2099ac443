"""What a TCP sender knows of its segments: which were received, and which are lost.

A segment is lost once one that was sent after it was received, and so much time has passed since it was sent as that
one took, and a window for reordering. Segments that were sent once are in order of time as they are in number; those
that were sent again stand in a list of their own, in the order in which they were. Source: RFC 8985.
"""

from __future__ import annotations

from netctrl.core.jit import INLINED, njit
from netctrl.sim.packet.state import FLOW, PacketState

SACKED, LOST, RESENT, EVER = 1, 2, 4, 8
"""What is known of a segment; EVER: it was sent more than once."""
F_UNA, F_NEXT, F_PIPE, F_LOST, F_LOST_TO, F_RETRY, F_RING, F_MASK = (
    FLOW[name] for name in ("una", "next", "pipe", "lost", "lost_to", "retry", "ring", "mask")
)
F_RACK_TIME, F_RACK_SEQ, F_RACK_RTT = (FLOW[name] for name in ("rack_time", "rack_seq", "rack_rtt"))
F_HEAD, F_TAIL = FLOW["resent_head"], FLOW["resent_tail"]


@njit(**INLINED)
def mark_received(net: PacketState, f: int, seq: int, run: int) -> None:
    """The run of `run` segments that ends with `seq` was received."""
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
        s -= 1


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


@njit(**INLINED)
def sent_again(net: PacketState, f: int, seq: int) -> None:
    """A segment is sent again: the last of the list."""
    flow, ring, mask = net.flow, net.flow[f, F_RING], net.flow[f, F_MASK]
    net.mark[ring + (seq & mask)] = RESENT | EVER
    net.after[ring + (seq & mask)] = -1
    if flow[f, F_HEAD] >= 0:
        net.after[ring + (flow[f, F_TAIL] & mask)] = seq
    else:
        flow[f, F_HEAD] = seq
    flow[f, F_TAIL] = seq


@njit(**INLINED)
def first_resent(net: PacketState, f: int) -> int:
    """The segment that was sent again first of those of which nothing is known since; -1: there is none."""
    flow, ring, mask = net.flow, net.flow[f, F_RING], net.flow[f, F_MASK]
    s = flow[f, F_HEAD]
    while s >= 0 and (s < flow[f, F_UNA] or net.mark[ring + (s & mask)] & (SACKED | LOST | RESENT) != RESENT):
        s = net.after[ring + (s & mask)]
    flow[f, F_HEAD] = s
    return s


@njit(**INLINED)
def doubtful(net: PacketState, f: int) -> bool:
    """Whether a segment may be missing: something that was sent after it, or it before, was received."""
    flow = net.flow
    una, following = flow[f, F_UNA], flow[f, F_NEXT]
    if flow[f, F_PIPE] != following - una or flow[f, F_HEAD] >= 0:
        return True
    return una < following and net.sent[flow[f, F_RING] + (una & flow[f, F_MASK])] < flow[f, F_RACK_TIME]


@njit(**INLINED)
def _give_up(net: PacketState, f: int, s: int, place: int) -> None:
    net.mark[place] = net.mark[place] & EVER | LOST
    net.flow[f, F_LOST] += 1
    net.flow[f, F_PIPE] -= 1
    net.flow[f, F_RETRY] = min(net.flow[f, F_RETRY], s)


@njit(**INLINED)
def _early(net: PacketState, f: int, s: int, place: int) -> bool:
    """Whether a segment was sent after the last of those that were received."""
    time, seen = net.sent[place], net.flow[f, F_RACK_TIME]
    return time > seen or (time == seen and s > net.flow[f, F_RACK_SEQ])


@njit(**INLINED)
def find_lost(net: PacketState, f: int, now: int, window: int, timeout: bool) -> int:
    """Mark segments that are lost; returns in what time all others are that may be [ns], or 0: there are none.

    Parameters
    ----------
    window : int
        For reordering [ns].
    timeout : bool
        The first segment is lost, and what was sent a round trip ago or before, whatever was received since.

    Source: RFC 8985, sections 6.2 and 6.3.
    """
    flow, mark = net.flow, net.mark
    ring, mask, una = flow[f, F_RING], flow[f, F_MASK], flow[f, F_UNA]
    latest, wait = now - flow[f, F_RACK_RTT] - window, 0
    # What was sent again before the first segment was, is older than that one.
    forced = timeout and mark[ring + (una & mask)] & (SACKED | LOST | RESENT) == RESENT
    s = first_resent(net, f)
    while s >= 0:
        place = ring + (s & mask)
        if not forced:
            if not timeout and _early(net, f, s, place):
                break
            if net.sent[place] > latest:
                wait = window
                break
        forced = forced and s != una
        _give_up(net, f, s, place)
        s = first_resent(net, f)
    s = max(flow[f, F_LOST_TO], una)
    while s < flow[f, F_NEXT]:
        place = ring + (s & mask)
        if mark[place] & (SACKED | LOST | RESENT) == 0:
            if not (timeout and s == una):
                if not timeout and _early(net, f, s, place):
                    break
                if net.sent[place] > latest:
                    wait = window
                    break
            _give_up(net, f, s, place)
        s += 1
    flow[f, F_LOST_TO] = s
    return 0 if timeout else wait
