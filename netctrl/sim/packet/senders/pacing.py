"""Rates of the packet engine's senders: a segment leaves no earlier than the rate lets it.

A flow has one time before which it sends nothing. Where its window is open earlier, one event wakes it then; where the
window opens later, nothing is made up for. Fractions of a nanosecond are carried, so that a rate is exact.
"""

from __future__ import annotations

from math import inf

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.laws.rate.law import Sample
from netctrl.laws.rate.pieces import at_once, on_short_path
from netctrl.laws.rate.rows import ALLOWED, rate_acts
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.sender import TcpWindow
from netctrl.sim.packet.state import FLOW, WAKE, PacketState, plan

F_NEXT, F_PIPE, F_LOST, F_AGAIN, F_SRTT = (FLOW[name] for name in ("next", "pipe", "lost", "again", "srtt"))
F_LIMITED, F_RECOVERY, F_MARKED = FLOW["limited"], FLOW["recovery"], FLOW["marked"]
F_LAW, F_DUE, F_PACER, F_PACED = (FLOW[name] for name in ("law", "due", "pacer", "paced"))
F_PACE, F_CARRY, F_WOKEN = (FLOW[name] for name in ("pace", "carry", "woken"))
F_OFFLOAD, F_PIECE = FLOW["offload"], FLOW["piece"]
W_WINDOW, W_THRESHOLD, W_RTT, W_MIN_RTT = (
    list(fields_of(TcpWindow)).index(name) for name in ("window", "threshold", "rtt", "min_rtt")
)
RATE, IN_FLIGHT = ALLOWED["rate"], ALLOWED["in_flight"]

_NS = 1e9
_BITS = 20
_PART = 1 << _BITS
"""`pace` and `carry` count parts of a nanosecond."""
_LONGEST = 1e12  # between two segments [ns]
_SLEEP = 100_000_000_000  # an event is at most so far ahead [ns]
_SLOW_START, _AVOIDANCE = 2.0, 1.2  # times W/RTT: sysctl net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio of Linux
# In flight, of a law without a bound, for acknowledgements that stay out: round trips, packets at least and at most.
_WINDOWS, _FIRST_PACKETS, _MOST_PACKETS = 3.0, 10.0, float(1 << 20)
_RECOVERING = (0.0, 1.0, 0.0, 2.0)  # of a window's four states in `netctrl.sim.packet.senders.recovery`
_SHORTEST = 1.0  # between two segments [ns]
_LEAST_AT_ONCE = 2.0  # segments, with segmentation offload
_begin, _step = rate_acts(**INSIDE)


@njit(**INSIDE)
def begin_pacing(net: PacketState, f: int, full: int) -> None:
    """A connection has measured its first round trip: the law's first rate."""
    row, number = net.flow[f, F_PACED], net.flow[f, F_PACER]
    _begin(number, net.allowed[row], net.rate[row], net.settings[row], net.window[f, W_RTT], float(full))
    _apply(net, f, row, full)


@njit(**INSIDE)
def set_pace(net: PacketState, f: int, now: int, full: int, fresh: bool, prior: int) -> None:
    """After an acknowledgement; `fresh`: it gave an RTT. `prior`: in flight before it."""
    flow, packet = net.flow, float(full)
    row = flow[f, F_PACED]
    if fresh:
        lost = flow[f, F_AGAIN] + flow[f, F_LOST]
        sent = flow[f, F_NEXT] + flow[f, F_AGAIN]
        delivered = flow[f, F_NEXT] - flow[f, F_LOST] - flow[f, F_PIPE]
        sample = Sample(
            now / _NS,
            net.window[f, W_RTT],
            delivered * packet,
            flow[f, F_PIPE] * packet,
            prior * packet,
            sent * packet,
            lost * packet,
            flow[f, F_MARKED] * packet,
            packet,
            _RECOVERING[flow[f, F_RECOVERY]],
            flow[f, F_LIMITED] * packet,
        )
        _step(flow[f, F_PACER], net.allowed[row], net.rate[row], net.settings[row], sample)
    _apply(net, f, row, full)


@njit(**INSIDE)
def _apply(net: PacketState, f: int, row: int, full: int) -> None:
    """What the law allows becomes the window of a flow that has none, and the time between two segments."""
    flow, window = net.flow, net.window[f]
    rate, in_flight, trip = net.allowed[row, RATE], net.allowed[row, IN_FLIGHT], flow[f, F_SRTT] / _NS
    if flow[f, F_LAW] >= 0:
        gain = _SLOW_START if window[W_WINDOW] < window[W_THRESHOLD] else _AVOIDANCE
        rate = min(rate, gain * window[W_WINDOW] * full / trip)
    elif in_flight < inf:
        window[W_WINDOW] = in_flight / full
    else:
        window[W_WINDOW] = min(max(_WINDOWS * rate * trip / full, _FIRST_PACKETS), _MOST_PACKETS)
    gap = _LONGEST
    if rate * _LONGEST > full * _NS:
        gap = max(full * _NS / rate, _SHORTEST)
    flow[f, F_PACE] = round(gap * _PART)
    if flow[f, F_OFFLOAD] == 1:
        piece = at_once(rate, on_short_path(window[W_MIN_RTT]), float(full), _LEAST_AT_ONCE)
        flow[f, F_PIECE] = int(max(min(piece, 0.5 * window[W_WINDOW]), 1.0))


@njit(**INLINED)
def space(net: PacketState, f: int, now: int) -> None:
    """A segment leaves now: the next one, by the rate."""
    flow = net.flow
    parts = flow[f, F_CARRY] + flow[f, F_PACE]
    flow[f, F_DUE] = max(flow[f, F_DUE], now) + (parts >> _BITS)
    flow[f, F_CARRY] = parts & (_PART - 1)


@njit(**INLINED)
def hold(net: PacketState, f: int, now: int) -> None:
    """The flow is woken when it is due, by one event."""
    flow = net.flow
    at = min(flow[f, F_DUE], now + _SLEEP)
    if flow[f, F_WOKEN] == 0 or at < flow[f, F_WOKEN]:
        flow[f, F_WOKEN] = at
        plan(net, at, WAKE, f)


@njit(**INLINED)
def woken(net: PacketState, f: int, now: int) -> None:
    """The event that it waits for, or one that has been overtaken."""
    if net.flow[f, F_WOKEN] == now:
        net.flow[f, F_WOKEN] = 0
