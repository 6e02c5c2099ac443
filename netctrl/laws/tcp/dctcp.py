"""DCTCP's window: Reno's, reduced by the share of marked packets."""

from __future__ import annotations

from typing import NamedTuple

from netctrl.core.jit import njit
from netctrl.laws.tcp.reno import reno_cut, reno_window
from netctrl.laws.tcp.sender import Acked, Echoed, TcpSender, TcpWindow

AVERAGING = 1.0 / 16.0
"""g, weight of a window of data in the average."""
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


@njit(cache=True)
def dctcp_cut(window: float, unmarked: float) -> float:
    """W (1 - alpha/2) after a mark, alpha = 1 - unmarked [packet]. Source: RFC 8257, section 3.3."""
    return max(0.5 * (1.0 + unmarked) * window, _MIN)


class Averaged(NamedTuple):
    """Fields of `DctcpState` that an acknowledgement changes."""

    unmarked: float
    left: float
    acks: float
    marks: float


@njit(cache=True, error_model="numpy")
def dctcp_average(unmarked: float, left: float, acks: float, marks: float, echoed: Echoed, trips: float) -> Averaged:
    """alpha <- (1 - g) alpha + g M once in `trips` windows of data, M the part of their acknowledgements with a mark.

    Takes the fields of `DctcpState` with these names. Source: RFC 8257, section 3.3.
    """
    acks += 1.0
    if echoed.marked:
        marks += 1.0
    left -= echoed.packets
    if left > 0.0:
        return Averaged(unmarked, left, acks, marks)
    return Averaged(unmarked + AVERAGING * (1.0 - marks / acks - unmarked), trips * echoed.outstanding, 0.0, 0.0)


def _grow(state: DctcpState, acked: Acked) -> None:
    if acked.recovered:
        state.window = reno_window(state.window, acked.packets, state.threshold)


def _cut(state: DctcpState) -> None:
    """At a loss. Source: RFC 8257, section 3.5."""
    state.window = reno_cut(state.window)


def _mark(state: DctcpState) -> None:
    state.window = dctcp_cut(state.window, state.unmarked)


def _echo(state: DctcpState, echoed: Echoed) -> None:
    after = dctcp_average(state.unmarked, state.left, state.acks, state.marks, echoed, 1.0)
    state.unmarked = after.unmarked
    state.left = after.left
    state.acks = after.acks
    state.marks = after.marks


DCTCP = TcpSender("dctcp", DctcpState, _grow, _cut, _mark, _echo)
