"""Reno's window as a fluid: growth by acknowledged data, a halving at a loss."""

from __future__ import annotations

from netctrl.core.jit import njit
from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow

_MIN = 2.0  # packets, RFC 5681, eq. 4


@njit(cache=True, error_model="numpy")
def reno_window(window: float, acknowledged: float, threshold: float) -> float:
    """The window after `acknowledged` packets more: slow start below `threshold`, else a packet a window [packet].

    Source: RFC 5681, eqs. 2 and 3.
    """
    return window + acknowledged if window < threshold else window + acknowledged / window


@njit(cache=True)
def reno_cut(window: float) -> float:
    """W after a loss [packet]; once for all losses of a round trip.

    Source: RFC 5681, eq. 4; RFC 6582, section 3.2.
    """
    return max(0.5 * window, _MIN)


def _grow(state: TcpWindow, acked: Acked) -> None:
    if acked.recovered:
        state.window = reno_window(state.window, acked.packets, state.threshold)


def _cut(state: TcpWindow) -> None:
    state.window = reno_cut(state.window)


RENO = TcpSender("reno", TcpWindow, _grow, _cut)
