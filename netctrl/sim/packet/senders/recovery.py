"""Loss recovery of TCP as Linux has it: what is in flight while losses are repaired, false alarms, and the timer.

Sources: RFC 8985 (RACK-TLP), 6937 (PRR), 6298; of Linux, net/ipv4/tcp_input.c, the undoing of a cut after segments that
were late, not lost, and that a timeout is so much above the smoothed round trip as `min_rto` says.
"""

from __future__ import annotations

from math import floor, inf

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.sender import TcpWindow
from netctrl.sim.packet.senders.scoreboard import EVER, LOST, sent_again
from netctrl.sim.packet.state import FLOW, META, NEVER, TIMER, PacketState, plan

NORMAL, RECOVERY, CONGESTED, TIMED_OUT = range(4)
"""Why a window doesn't grow: losses are repaired, a mark was answered; after a timeout it does."""
REPAIRS = 1
"""Bit of those in which losses are repaired."""
UNKNOWN, AS_PLANNED = -1, -2
"""What the timer waits for where something may be missing."""

W_WINDOW, W_THRESHOLD, W_MIN_RTT, W_CUT = (
    list(fields_of(TcpWindow)).index(name) for name in ("window", "threshold", "min_rtt", "cut_s")
)
F_UNA, F_NEXT, F_PIPE, F_LOST, F_LOST_TO = (FLOW[name] for name in ("una", "next", "pipe", "lost", "lost_to"))
F_RECOVERY, F_RECOVER, F_RING, F_MASK, F_LAW = (FLOW[name] for name in ("recovery", "recover", "ring", "mask", "law"))
F_REORDERED, F_STEPS, F_PERSIST, F_HEARD = (FLOW[name] for name in ("reordered", "steps", "persist", "heard"))
F_USED, F_FILLED, F_OUT = (FLOW[name] for name in ("used", "filled", "out"))
F_PRIOR, F_DELIVERED, F_ROOM = (FLOW[name] for name in ("prior", "reduced_delivered", "room"))
F_SENT, F_SENT_BEFORE = FLOW["sent"], FLOW["sent_before"]
F_UNDO, F_UNDO_LEFT, F_UNDO_AT = (FLOW[name] for name in ("undo", "undo_left", "undo_at"))
F_UNDO_WINDOW, F_UNDO_THRESHOLD = FLOW["undo_window"], FLOW["undo_threshold"]
F_TIMER, F_ARMED, F_BACKOFF, F_RTO_AT = (FLOW[name] for name in ("timer", "armed", "backoff", "rto_at"))
F_SRTT, F_RTO, F_PROBE = (FLOW[name] for name in ("srtt", "rto", "probe"))
M_MIN_RTO = META["min_rto"]

_MAX_RTO = 60_000_000_000  # RFC 6298, section 2 [ns]
_SOONEST = 2_000_000  # timers but a timeout's are so much later [ns]: TCP_TIMEOUT_MIN of Linux
_MOST_STEPS, _PERSISTS = 255, 16  # RFC 8985, section 6.2, step 4
_NS = 1e9
_QUARTER_NS = 0.25 * _NS
_PARTS = 1024.0  # of a segment, in windows that are kept


# --- reordering -------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def sacked(net: PacketState, f: int) -> int:
    """Segments that were received out of order."""
    return net.flow[f, F_NEXT] - net.flow[f, F_UNA] - net.flow[f, F_PIPE] - net.flow[f, F_LOST]


@njit(**INLINED)
def reordering_window(net: PacketState, f: int) -> int:
    """Time for which what was overtaken may be late [ns]: none before any was, once three came after it."""
    flow = net.flow
    if flow[f, F_REORDERED] == 0 and (flow[f, F_RECOVERY] & REPAIRS != 0 or sacked(net, f) >= 3):
        return 0
    return min(int(_QUARTER_NS * net.window[f, W_MIN_RTT]) * flow[f, F_STEPS], flow[f, F_SRTT])


@njit(**INLINED)
def hear_duplicate(net: PacketState, f: int) -> None:
    """A segment came twice: once a round trip the window for reordering grows by a quarter of the least round trip."""
    flow = net.flow
    if flow[f, F_UNDO_LEFT] > 0:
        flow[f, F_UNDO_LEFT] -= 1
    if flow[f, F_UNA] >= flow[f, F_HEARD]:
        flow[f, F_HEARD] = flow[f, F_NEXT]
        flow[f, F_STEPS] = min(flow[f, F_STEPS] + 1, _MOST_STEPS)
        flow[f, F_PERSIST] = _PERSISTS


@njit(**INLINED)
def recovered(net: PacketState, f: int) -> None:
    """Losses were repaired: after 16 times without a duplicate the window for reordering is as at first."""
    flow = net.flow
    if flow[f, F_PERSIST] > 0:
        flow[f, F_PERSIST] -= 1
        if flow[f, F_PERSIST] == 0:
            flow[f, F_STEPS] = 1


# --- windows ----------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def remember(net: PacketState, f: int) -> None:
    """The window will be cut, which is undone if nothing was lost."""
    flow, row = net.flow, net.window[f]
    flow[f, F_UNDO], flow[f, F_UNDO_LEFT], flow[f, F_UNDO_AT] = 1, 0, 0
    flow[f, F_UNDO_WINDOW] = round(_PARTS * row[W_WINDOW])
    flow[f, F_UNDO_THRESHOLD] = NEVER if row[W_THRESHOLD] == inf else round(_PARTS * row[W_THRESHOLD])
    flow[f, F_PRIOR] = int(row[W_WINDOW])


@njit(**INLINED)
def may_undo(net: PacketState, f: int, late: bool) -> bool:
    """Whether the cut was wrong: all that was sent again came twice, or what now came was sent before any was."""
    flow = net.flow
    return flow[f, F_UNDO] == 1 and flow[f, F_UNDO_AT] > 0 and (late or flow[f, F_UNDO_LEFT] == 0)


@njit(**INSIDE)
def undo(net: PacketState, f: int) -> None:
    """The window and its threshold as before the cut; nothing is lost."""
    flow, row, mark = net.flow, net.window[f], net.mark
    ring, mask = flow[f, F_RING], flow[f, F_MASK]
    if flow[f, F_LAW] >= 0:
        row[W_WINDOW] = max(row[W_WINDOW], flow[f, F_UNDO_WINDOW] / _PARTS)
    if flow[f, F_UNDO_THRESHOLD] == NEVER:
        row[W_THRESHOLD] = inf
    else:
        row[W_THRESHOLD] = max(row[W_THRESHOLD], flow[f, F_UNDO_THRESHOLD] / _PARTS)
    for s in range(flow[f, F_UNA], flow[f, F_NEXT] if flow[f, F_LOST] > 0 else 0):
        place = ring + (s & mask)
        if mark[place] & LOST != 0:
            flow[f, F_LOST] -= 1
            flow[f, F_PIPE] += 1
            if mark[place] & EVER != 0:
                sent_again(net, f, s)
            else:
                mark[place] = 0
    flow[f, F_LOST_TO], flow[f, F_UNDO], flow[f, F_RECOVERY], flow[f, F_BACKOFF] = flow[f, F_UNA], 0, NORMAL, 0


@njit(**INLINED)
def begin_reduction(net: PacketState, f: int) -> None:
    """From now on what is received lets so much out that the window is at its threshold after a round trip."""
    flow = net.flow
    flow[f, F_RECOVERY], flow[f, F_RECOVER], flow[f, F_PROBE] = RECOVERY, flow[f, F_NEXT], 0
    flow[f, F_DELIVERED], flow[f, F_SENT_BEFORE] = 0, flow[f, F_SENT]


@njit(**INLINED)
def reduce(net: PacketState, f: int, delivered: int, clean: bool) -> None:
    """What may be in flight after `delivered` segments more came; `clean`: in order, and no others were lost.

    Source: RFC 6937, section 3, with the choice between its bounds of Linux.
    """
    flow = net.flow
    threshold, pipe, out = int(net.window[f, W_THRESHOLD]), flow[f, F_PIPE], flow[f, F_SENT] - flow[f, F_SENT_BEFORE]
    flow[f, F_DELIVERED] += delivered
    if pipe > threshold:
        prior = max(flow[f, F_PRIOR], 1)
        count = (threshold * flow[f, F_DELIVERED] + prior - 1) // prior - out
    else:
        count = max(flow[f, F_DELIVERED] - out, delivered) + (1 if clean else 0)
        count = min(threshold - pipe, count)
    flow[f, F_ROOM] = pipe + max(count, 0 if out > 0 else 1)


@njit(**INLINED)
def _threshold_now(net: PacketState, f: int) -> float:
    """A threshold that tells of the window, of which it keeps three quarters."""
    return max(net.window[f, W_THRESHOLD], 0.75 * net.window[f, W_WINDOW])


@njit(**INSIDE)
def after_idle(net: PacketState, f: int, now: int, first_window: float) -> None:
    """Before new data are sent where nothing is under way: the window is halved for each timeout that has passed.

    It doesn't grow by the time in between. Source: RFC 2861, section 3.1, as in Linux (`tcp_cwnd_restart`): not below
    what a connection begins with; RFC 9438, section 5.8.
    """
    flow, row = net.flow, net.window[f]
    if flow[f, F_NEXT] == 0 or flow[f, F_UNA] < flow[f, F_NEXT]:
        return
    idle = now - net.sent[flow[f, F_RING] + (flow[f, F_NEXT] - 1 & flow[f, F_MASK])]
    row[W_CUT] += idle / _NS
    if idle <= flow[f, F_RTO]:
        return
    row[W_THRESHOLD] = _threshold_now(net, f)
    least = min(first_window, row[W_WINDOW])
    while idle > flow[f, F_RTO] and row[W_WINDOW] > least:
        idle -= flow[f, F_RTO]
        row[W_WINDOW] = floor(0.5 * row[W_WINDOW])
    row[W_WINDOW] = max(row[W_WINDOW], least)


@njit(**INSIDE)
def validate(net: PacketState, f: int, now: int, first_window: float) -> None:
    """After data were sent: a window that wasn't filled for a timeout goes halfway towards what was in flight.

    Source: RFC 2861, section 3.2, as in Linux (`tcp_cwnd_application_limited`).
    """
    flow, row = net.flow, net.window[f]
    if flow[f, F_PIPE] + 1.0 > row[W_WINDOW]:
        flow[f, F_OUT], flow[f, F_USED], flow[f, F_FILLED] = NEVER, 0, now
        return
    flow[f, F_OUT] = flow[f, F_PIPE]
    flow[f, F_USED] = max(flow[f, F_USED], flow[f, F_PIPE])
    if now - flow[f, F_FILLED] < flow[f, F_RTO]:
        return
    used = max(float(flow[f, F_USED]), first_window)
    if flow[f, F_RECOVERY] == NORMAL and used < row[W_WINDOW]:
        row[W_THRESHOLD] = _threshold_now(net, f)
        row[W_WINDOW] = floor(0.5 * (row[W_WINDOW] + used))
    flow[f, F_USED], flow[f, F_FILLED] = 0, now


# --- timer ------------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def restart(net: PacketState, f: int, now: int) -> None:
    """The timeout starts anew."""
    flow = net.flow
    flow[f, F_RTO_AT] = now + min(flow[f, F_RTO] << min(flow[f, F_BACKOFF], 6), _MAX_RTO)


@njit(**INLINED)
def probes(net: PacketState, f: int) -> bool:
    """Whether silence is answered by a probe, where nothing may be missing."""
    flow = net.flow
    return flow[f, F_RECOVERY] & REPAIRS == 0 and flow[f, F_PROBE] == 0 and flow[f, F_SRTT] > 0


@njit(**INLINED)
def arm(net: PacketState, f: int, now: int, wait: int) -> None:
    """The timer: a timeout, or before it a probe, or when segments are lost, in `wait` [ns] or as it was planned.

    `wait` is 0 where nothing may be missing, else perhaps AS_PLANNED, or UNKNOWN, which leaves the timeout.
    The timer's event is planned unless one that is no later is. Source: RFC 8985, section 7.2.
    """
    flow = net.flow
    at = flow[f, F_RTO_AT]
    if wait > 0:
        at = min(at, now + wait + _SOONEST)
    elif wait == AS_PLANNED and flow[f, F_TIMER] > now:
        at = min(at, flow[f, F_TIMER])
    elif wait == 0 and probes(net, f):
        alone = flow[f, F_NEXT] - flow[f, F_UNA] == 1
        at = min(at, now + 2 * flow[f, F_SRTT] + (net.meta[M_MIN_RTO] if alone else _SOONEST))
    flow[f, F_TIMER] = at
    if at > 0 and (flow[f, F_ARMED] == 0 or at < flow[f, F_ARMED]):
        flow[f, F_ARMED] = at
        plan(net, at, TIMER, f)
