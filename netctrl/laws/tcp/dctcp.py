"""DCTCP's window: Reno's, reduced by the share of marked packets."""

from __future__ import annotations

from netctrl.laws.tcp.reno import reno_cut, reno_window
from netctrl.laws.tcp.sender import Acked, Echoed, TcpSender, TcpWindow

__all__ = ["DCTCP", "DctcpState"]

_GAIN = 1.0 / 16.0  # g
_MIN = 2.0  # packets


class DctcpState(TcpWindow):
    """State of DCTCP."""

    unmarked: float
    """1 - alpha, alpha being the moving average of the marked part, 1 at first"""
    left: float
    """Of this window of data, not acknowledged yet [packet]"""
    acks: float
    """In this window of data"""
    marks: float
    """Of these"""


def _grow(state: DctcpState, acked: Acked) -> None:
    if acked.recovered:
        state.window = reno_window(state.window, acked.packets, state.threshold)


def _cut(state: DctcpState) -> None:
    """At a loss. Source: RFC 8257, section 3.5."""
    state.window = reno_cut(state.window)


def _mark(state: DctcpState) -> None:
    """W (1 - alpha/2). Source: RFC 8257, section 3.3."""
    state.window = max(0.5 * (1.0 + state.unmarked) * state.window, _MIN)


def _echo(state: DctcpState, echoed: Echoed) -> None:
    """alpha <- (1 - g) alpha + g M once a window of data, M being the part of its acknowledgements that tell of a mark.

    Source: RFC 8257, section 3.3.
    """
    state.acks += 1.0
    if echoed.marked:
        state.marks += 1.0
    state.left -= echoed.packets
    if state.left <= 0.0:
        state.unmarked += _GAIN * (1.0 - state.marks / state.acks - state.unmarked)
        state.acks = 0.0
        state.marks = 0.0
        state.left = echoed.outstanding


DCTCP = TcpSender("dctcp", DctcpState, _grow, _cut, _mark, _echo)
