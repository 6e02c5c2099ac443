"""LEDBAT++'s window: what is left over by others, up to a queueing delay that it adds."""

from __future__ import annotations

from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow

_TARGET_S = 0.06
_SHARE = 0.75  # of the target, where the first slow start ends
_SMALLEST = 16.0  # 1/gain at most
_FIRST, _LEAST = 2.0, 2.0  # packets
_SAMPLES = 4.0  # whose least is the delay
_PAUSE_RTTS, _FIRST_RTTS, _WORK = 2.0, 2.0, 9.0  # of a slowdown; before the first; times its length until the next


class LedbatState(TcpWindow):
    """State of LEDBAT++."""

    delay: float
    """Queueing delay: of the last few samples the least [s]"""
    least: float
    """RTT of the newest samples [s]"""
    samples: float
    begun: float
    """1: the first window was set"""
    cruising: float
    """1: the first slow start is over"""
    next_s: float
    """When the next slowdown begins [s]; 0: not known yet"""
    pause_until_s: float
    """[s]; 0: none goes on"""
    pause_s: float
    """When it began [s]"""
    before: float
    """Window before it; 0: it is reached again [packet]"""


def _grow(state: LedbatState, acked: Acked) -> None:
    """Gain 1/min(16, ⌈2 T/RTT⌉): slow start by it for each packet, then by it a round trip below the target, less
    W (delay/T - 1) above it. Every tenth of its time it stops, to see the path without its own queue.

    Source: draft-irtf-iccrg-ledbat-plus-plus-01, sections 4.1 to 4.4.
    """
    now = state.cut_s + acked.since
    base = state.min_rtt
    parts = float(int(2.0 * _TARGET_S / base))
    gain = 1.0 / min(_SMALLEST, parts if parts * base == 2.0 * _TARGET_S else parts + 1.0)
    if state.begun == 0.0:
        state.begun = 1.0
        state.window = _FIRST
    state.least = acked.rtt if state.samples == 0.0 else min(state.least, acked.rtt)
    state.samples += 1.0
    if state.samples >= _SAMPLES:
        state.delay = state.least - base
        state.samples = 0.0
    if state.pause_until_s > 0.0:
        state.window = _LEAST
        if now < state.pause_until_s:
            return
        state.pause_until_s = 0.0
        state.threshold = state.before
    if state.window < state.threshold:
        state.window += gain * acked.packets
        if state.cruising == 0.0 and state.delay > _SHARE * _TARGET_S:
            state.threshold = state.window
        if state.window < state.threshold:
            return
        if state.cruising == 0.0:
            state.next_s = now + _FIRST_RTTS * acked.rtt
        else:
            state.next_s = now + _WORK * (now - state.pause_s)
        state.cruising = 1.0
        return
    over = max(state.delay / _TARGET_S - 1.0, 0.0)
    change = max(gain - state.window * over, -0.5 * state.window)  # in a round trip
    state.window = max(state.window + change * acked.packets / state.window, _LEAST)
    state.threshold = min(state.threshold, state.window)
    if state.next_s == 0.0:  # a loss ended slow start
        state.next_s = now + _FIRST_RTTS * acked.rtt
        state.cruising = 1.0
    elif now > state.next_s:
        state.before = state.window
        state.pause_s = now
        state.pause_until_s = now + _PAUSE_RTTS * acked.rtt
        state.window = _LEAST


def _cut(state: LedbatState) -> None:
    state.window = max(0.5 * state.window, _LEAST)


LEDBAT = TcpSender("ledbat++", LedbatState, _grow, _cut, slow_start=None)
