"""Cubic's window as a fluid: growth by acknowledged data, a cut at a loss."""

from __future__ import annotations

from netctrl.jit import njit
from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow

__all__ = ["AIMD", "BETA", "CUBIC", "C", "CubicState", "cubic_cut", "cubic_window"]

C = 0.4
"""Growth [packet/s³]."""
BETA = 0.7
"""What a cut leaves of the window."""
AIMD = 3.0 * (1.0 - BETA) / (1.0 + BETA)
"""Growth that makes it as large as Reno's window [packet per round trip]."""


@njit(cache=True, error_model="numpy")
def cubic_window(
    window: float, highest: float, since: float, rtt: float, acknowledged: float, threshold: float
) -> float:
    """The window after `acknowledged` packets more [packet].

    Parameters
    ----------
    window, highest : float
        W, and W at the last cut, before it [packet]; `highest` is 0 before the first.
    since : float
        Time since the last cut [s].
    rtt : float
        With queueing [s].
    acknowledged : float
        [packet]
    threshold : float
        Below it, slow start [packet].

    Source: RFC 9438, sections 4.2 to 4.4, with β = 0.7, C = 0.4, and its Reno-friendly region.
    """
    if window < threshold:
        return window + acknowledged
    K = ((1.0 - BETA) * highest / C) ** (1.0 / 3.0)
    target = min(max(C * (since + rtt - K) ** 3 + highest, window), 1.5 * window)
    friendly = BETA * highest + AIMD * since / rtt
    grown = window + (target - window) / window * acknowledged
    return max(grown, min(friendly, window + acknowledged))


@njit(cache=True)
def cubic_cut(window: float, highest: float) -> tuple[float, float]:
    """(W, W before the cut) after a loss, with fast convergence [packet].

    Source: RFC 9438, sections 4.6 and 4.7.
    """
    before = 0.5 * (1.0 + BETA) * window if window < highest else window
    return max(BETA * window, 2.0), before


class CubicState(TcpWindow):
    """State of Cubic."""

    highest: float
    """W at the last cut, before it; 0: there was none [packet]"""


def _grow(state: CubicState, acked: Acked) -> None:
    since, rtt = acked.since, acked.rtt
    state.window = cubic_window(state.window, state.highest, since, rtt, acked.packets, state.threshold)


def _cut(state: CubicState) -> None:
    state.window, state.highest = cubic_cut(state.window, state.highest)


CUBIC = TcpSender("cubic", CubicState, _grow, _cut)
