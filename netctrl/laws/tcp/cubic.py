"""Cubic's window as a fluid: growth by acknowledged data, a cut at a loss."""

from __future__ import annotations

from netctrl.core.jit import njit
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
    K = ((highest - first) / C) ** (1.0 / 3.0)
    target = min(max(C * (since + rtt - K) ** 3 + highest, window), 1.5 * window)
    friendly = first + AIMD * since / rtt
    grown = window + (target - window) / window * acknowledged
    return max(grown, min(friendly, window + acknowledged))


@njit(cache=True)
def cubic_cut(window: float, highest: float) -> tuple[float, float]:
    """(W, W_max) after a loss: W_max is W before it, or with fast convergence (1 + β)/2 of it [packet].

    Source: RFC 9438, sections 4.6 and 4.7.
    """
    before = 0.5 * (1.0 + BETA) * window if window < highest else window
    return max(BETA * window, 2.0), before


class CubicState(TcpWindow):
    """State of Cubic."""

    highest: float
    """W_max: W at the last cut, before it, or less by fast convergence; 0: no cut since slow start [packet]"""
    first: float
    """cwnd_epoch: W when congestion avoidance began; 0: it hasn't, since the last cut or in slow start [packet]"""
    begun: float
    """When it began, after the last cut [s]"""


def _grow(state: CubicState, acked: Acked) -> None:
    """In slow start as Reno; then from the window and time of the first acknowledgement in congestion avoidance.

    After a time-out's slow start K is 0 and W_max the window at its end (RFC 9438, Section 4.8).
    """
    if state.window < state.threshold:
        state.window += acked.packets
        state.highest = state.first = 0.0
        return
    if state.first == 0.0:
        state.first = state.window
        state.highest = max(state.highest, state.window)
        state.begun = acked.since
    since = acked.since - state.begun
    state.window = cubic_window(state.window, state.highest, state.first, since, acked.rtt, acked.packets)


def _cut(state: CubicState) -> None:
    state.window, state.highest = cubic_cut(state.window, state.highest)
    state.first = 0.0


CUBIC = TcpSender("cubic", CubicState, _grow, _cut)
