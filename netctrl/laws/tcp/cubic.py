"""Cubic's window: growth by acknowledged data, a cut at a loss; as a fluid, and in whole packets."""

from __future__ import annotations

from math import floor, trunc

from netctrl.core.jit import njit
from netctrl.laws.elementary import cube_root
from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow

C = 0.4
"""Growth [packet/s³]."""
BETA = 0.7
"""What a cut leaves of the window."""
AIMD = 3.0 * (1.0 - BETA) / (1.0 + BETA)
"""Growth that makes it as large as Reno's window [packet per round trip]."""


@njit(cache=True, error_model="numpy")
def cubic_window(window: float, highest: float, first: float, since: float, rtt: float, acknowledged: float) -> float:
    """Window in congestion avoidance after `acknowledged` packets more [packet].

    max(C (t + R - K)³ + M, w₀ + a t/R), with K = ((M - w₀)/C)^(1/3), is approached as RFC 9438 says. After fast
    convergence M is 0.85 W and w₀ is 0.7 W, so that K is (0.15 W/C)^(1/3), not (0.3 M/C)^(1/3).

    Parameters
    ----------
    window : float
        W before it [packet].
    highest : float
        M (W_max), the window at the last cut, or less by fast convergence [packet]; at least `first`.
    first : float
        w₀ (cwnd_epoch), the window when congestion avoidance began [packet].
    since : float
        t, the time since congestion avoidance began [s].
    rtt : float
        R, with queueing [s].
    acknowledged : float
        [packet]

    Notes
    -----
    RFC 9438, Sections 4.2 to 4.5, with β = 0.7, C = 0.4, and the Reno-friendly region. Where its line is above the
    window before the last cut, a stays 0.53, as in Linux; Section 4.3 recommends a = 1 there.
    """
    past = since + rtt - cube_root((highest - first) / C)
    target = min(max(C * (past * past * past) + highest, window), 1.5 * window)
    friendly = first + AIMD * since / rtt
    grown = window + (target - window) / window * acknowledged
    return max(grown, min(friendly, window + acknowledged))


class CubicState(TcpWindow):
    """State of Cubic, whose window is of whole packets, but as a fluid."""

    highest: float
    """W_max: W at the last cut, before it, or less by fast convergence; 0: no cut since slow start [packet]"""
    plateau: float
    """W_max, or W when congestion avoidance began where that is more; 0: it hasn't begun [packet]"""
    until: float
    """K, when the curve is at its plateau [s]"""
    begun: float
    """When congestion avoidance began, after the last cut [s]"""
    first: float
    """cwnd_epoch: W then [packet]"""
    counted: float
    """Acknowledged since W grew last [packet]"""
    friendly: float
    """Reno's window [packet]"""
    friendly_counted: float
    """Acknowledged since that grew last [packet]"""


_FRIENDLY = 1.0 / AIMD  # round trips in which Reno's window grows by a packet; 15/8 in Linux
_PLATEAU = 100.0  # round trips for a packet more where the curve asks for none
_UNKNOWN = 20.0  # acknowledged packets for one more, at most, before any loss
_LEAST = 2.0  # acknowledged packets for one more, at least


def _grow(state: CubicState, acked: Acked) -> None:
    """In slow start as Reno; then from the window and time of the first acknowledgement in congestion avoidance.

    As in Linux the window grows by a packet once so many are acknowledged as the curve's rise asks for; a fluid's is
    above it by up to a packet, a tenth where 1 % are lost. Reno's window is counted alike, and W follows it within a
    round trip. After a time-out's slow start K is 0 and W_max the window at its end (RFC 9438, Section 4.8); after
    one that follows idle time the curve goes on.
    """
    W = state.window
    if state.threshold > W:
        if state.timed_out > 0.0 or state.even > 0.0:
            state.timed_out = state.highest = state.plateau = 0.0
        state.window = W + acked.packets
        return
    if state.plateau == 0.0:
        state.plateau = max(state.highest, W)
        state.until = ((state.plateau - W) / C) ** (1.0 / 3.0)
        state.begun = acked.since
        state.first = state.friendly = W
        state.friendly_counted = state.counted = 0.0
    if state.even > 0.0:
        since = acked.since - state.begun
        state.window = cubic_window(W, state.plateau, state.first, since, acked.rtt, acked.packets)
        return
    ahead = acked.since - state.begun + min(state.min_rtt, acked.rtt) - state.until
    rise = trunc(C * ahead * ahead * ahead) + state.plateau - W
    wait = W / rise if rise > 0.0 else _PLATEAU * W
    if state.highest == 0.0:
        wait = min(wait, _UNKNOWN)
    state.friendly_counted += acked.packets
    while state.friendly_counted > _FRIENDLY * W:
        state.friendly_counted -= _FRIENDLY * W
        state.friendly += 1.0
    if state.friendly > W:
        wait = min(wait, W / (state.friendly - W))
    wait = max(floor(wait), _LEAST)
    if state.counted >= wait:  # it was counted for a longer wait
        state.counted = 0.0
        state.window += 1.0
    state.counted += acked.packets
    if state.counted >= wait:
        state.window += floor(state.counted / wait)
        state.counted %= wait


def _cut(state: CubicState) -> None:
    """W_max is W before a loss, or with fast convergence (1 + β)/2 of it: RFC 9438, sections 4.6 and 4.7."""
    W = state.window
    state.highest = 0.5 * (1.0 + BETA) * W if state.highest > W else W
    state.window = max(BETA * W, _LEAST)
    if state.even == 0.0:
        state.highest, state.window = floor(state.highest), floor(state.window)
    state.plateau = 0.0


CUBIC = TcpSender("cubic", CubicState, _grow, _cut, slow_start="hystart")
