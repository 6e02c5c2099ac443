"""What ends slow start before a loss: HyStart as Linux has it, and HyStart++; for windows that it doubles."""

from __future__ import annotations

from math import inf

from netctrl.core.jit import njit
from netctrl.laws.tcp.sender import SLOW_STARTS, Acked, TcpWindow


class SlowStart:
    """What is remembered of slow start; zeros at first."""

    round_s: float
    """When a round trip began [s]"""
    answer_s: float
    """When an acknowledgement came that was close behind the one before [s]"""
    least: float
    """Least RTT of this round trip [s]"""
    samples: float
    """Acknowledgements in it"""
    full: float
    """1: HyStart has found the pipe full once"""
    before: float
    """Least RTT of the round trip before; 0: there was none [s]"""
    baseline: float
    """That of the round trip in which conservative slow start began; 0: it hasn't [s]"""
    rounds: float
    """Conservative round trips that are over"""


_FEWEST, _CLOSE = 16.0, 2e-3  # of HyStart: packets, s
_SAMPLES = 8.0  # acknowledgements; the same in both, as is how much later is late
_AT_ONCE, _DIVISOR, _ROUNDS = 8.0, 4.0, 5.0  # of HyStart++: L, CSS_GROWTH_DIVISOR, CSS_ROUNDS
_HYSTART, _HYSTART_PLUS = SLOW_STARTS.index("hystart"), SLOW_STARTS.index("hystart++")


def slow_start(number: int, start: SlowStart, window: TcpWindow, acked: Acked, newly: float) -> tuple[float, float]:
    """What a window in slow start grows by, and its threshold thereafter, unless that is less by now [packet].

    `number`: place in SLOW_STARTS; `newly`: acknowledged, of which `acked.packets` count in standard slow start.
    """
    if number == _HYSTART:
        return acked.packets, _hystart(start, window, acked)
    if number == _HYSTART_PLUS and window.threshold == inf:
        return _hystart_plus(start, window, acked, min(newly, _AT_ONCE))
    return acked.packets, inf


@njit(cache=True)
def _late(rtt: float) -> float:
    """RTT from which one is late beside another [s]: RttThresh of RFC 9406; Linux's numbers are the same."""
    return rtt + min(max(0.125 * rtt, 4e-3), 16e-3)


@njit(cache=True)
def _hystart(start: SlowStart, window: TcpWindow, acked: Acked) -> float:
    """The window is the threshold from now on, once the pipe is full: acknowledgements come closely one after the other
    for half a round trip, or the least RTT of a round trip is an eighth above the least of all.

    Source: HyStart (Ha, Rhee 2011), with the numbers of Linux, which also has it find the pipe full only once, and
    again after a time-out: for laws that hear of that.
    """
    if window.timed_out > 0.0:
        start.full = 0.0
        return inf
    if start.full > 0.0:
        return inf
    now, W = window.cut_s + acked.since, window.window
    if now - acked.rtt >= start.round_s:  # what is acknowledged was sent in this round trip: the next one begins
        start.round_s = start.answer_s = now
        start.least, start.samples = acked.rtt, 0.0
    if W < _FEWEST:
        return inf
    start.least = min(start.least, acked.rtt)
    late = start.least > _late(window.min_rtt)
    if start.samples < _SAMPLES:
        start.samples += 1.0
        late = False
    if now - start.answer_s <= _CLOSE:
        start.answer_s = now
        # What the network may hold back of a train is a millisecond, or 2^18 bytes at the rate of sending.
        late = late or now - start.round_s > 0.5 * (window.min_rtt + min(1e-3, 90.0 * acked.rtt / W))
    if late:
        start.full = 1.0
        return W
    return inf


@njit(cache=True)
def _hystart_plus(start: SlowStart, window: TcpWindow, acked: Acked, packets: float) -> tuple[float, float]:
    """Once the least RTT of a round trip is late the window grows by a quarter; after five such round trips it is the
    threshold, but an RTT below the one that was late brings slow start back. Up to the first threshold only.

    Source: RFC 9406, sections 4.2 and 4.3; the acknowledgement that ends a round trip is the first of the next one.
    """
    now = window.cut_s + acked.since
    if now - acked.rtt >= start.round_s:
        start.before, start.least = start.least, inf
        start.round_s, start.samples = now, 0.0
        start.rounds += 1.0
    start.least = min(start.least, acked.rtt)
    start.samples += 1.0
    if start.baseline == 0.0:
        if start.samples >= _SAMPLES and start.before > 0.0 and start.least >= _late(start.before):
            start.baseline, start.rounds = start.least, 0.0
        return packets, inf
    if start.samples >= _SAMPLES and start.least < start.baseline:
        start.baseline = 0.0
    elif start.rounds >= _ROUNDS:
        return packets / _DIVISOR, window.window + packets / _DIVISOR
    return packets / _DIVISOR, inf
