"""Vegas' window: keeps a few of its packets in the queue, estimated from the round-trip time."""

from __future__ import annotations

from netctrl.laws.tcp.reno import reno_cut
from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow

_ALPHA, _BETA, _GAMMA = 2.0, 4.0, 1.0  # packets in the queue; Linux, net/ipv4/tcp_vegas.c
_KEPT = 0.875  # of the window, where slow start ends
_MIN = 2.0  # packets


class VegasState(TcpWindow):
    """State of Vegas."""

    round_s: float
    """When a round trip ends; 0: none has begun [s]"""
    round_rtt: float
    """Least of this round trip; 0: none was seen [s]"""
    growing: float
    """1: in slow start it grows in this round trip; it does so in every other"""


def _grow(state: VegasState, acked: Acked) -> None:
    """Once a round trip: diff = W (RTT - RTT_min)/RTT packets are in the queue; W + 1 below alpha, W - 1 above beta.

    Source: Brakmo, Peterson, "TCP Vegas: End to end congestion avoidance on a global Internet", JSAC 1995, sections
    III.B and III.C; losses halve the window, as in Linux.
    """
    if not acked.recovered:
        return
    now = state.cut_s + acked.since
    slow = state.window < state.threshold
    if slow and state.growing > 0.0:
        state.window += acked.packets
    seen = state.round_rtt
    state.round_rtt = acked.rtt if seen == 0.0 else min(seen, acked.rtt)
    if now < state.round_s:
        return
    queued = state.window * (state.round_rtt - state.min_rtt) / state.round_rtt
    if slow and queued > _GAMMA:
        state.window = max(_KEPT * state.window, _MIN)
        state.threshold = state.window
    elif slow:
        state.growing = 1.0 - state.growing
    elif queued < _ALPHA:
        state.window += 1.0
    elif queued > _BETA:
        state.window = max(state.window - 1.0, _MIN)
        state.threshold = min(state.threshold, state.window)
    state.round_s = now + acked.rtt
    state.round_rtt = 0.0


def _cut(state: VegasState) -> None:
    state.window = reno_cut(state.window)


VEGAS = TcpSender("vegas", VegasState, _grow, _cut, slow_start=None)
