"""Congestion windows of flows in a fluid, compiled: law, state, and effect of an acknowledgement."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.jit import njit
from netctrl.laws.record import as_record, compiled_view
from netctrl.laws.tcp.rows import WIDTH, WINDOWS, window_acts
from netctrl.laws.tcp.sender import Acked, TcpWindow

__all__ = ["NO_WINDOW", "WINDOWS", "acknowledge", "first_window", "paced_window", "window_room"]

NO_WINDOW = -1
_FIRST_PACKETS = 10.0  # RFC 6928
_PACING = 1.2  # times W/RTT, as Linux paces beyond slow start
_USED = (0.5, 0.9)  # of the window, in slow start and beyond: who sends less doesn't need more (RFC 7661, section 4.3)
_view = compiled_view(TcpWindow)


def first_window(rtt: float, packets: float = _FIRST_PACKETS) -> np.ndarray:
    """The row of what is remembered of a window, for a base RTT [s]: so many packets, slow start."""
    row = np.zeros(WIDTH)
    state = as_record(TcpWindow, row)
    state.window, state.threshold, state.rtt, state.min_rtt = packets, inf, rtt, inf
    return row


_grow, _cut = window_acts(error_model="numpy")


@njit(cache=True, error_model="numpy")
def acknowledge(
    kind: int, row: np.ndarray, time: float, rtt: float, acked: float, lost: float, flight: float, packet: float
) -> None:
    """What acknowledgements and losses [byte] do to a window; losses cut it once a round trip."""
    state = _view(row)
    state.rtt = rtt
    state.min_rtt = min(state.min_rtt, rtt)
    state.max_rtt = max(state.max_rtt, rtt)
    if lost > 0.0 and time >= state.recovered_s:
        _cut(kind, row)
        state.cut_s = time
        state.threshold = state.window
        state.recovered_s = time + rtt
        return
    used = flight / (state.window * packet)
    if acked > 0.0 and used >= (_USED[0] if state.window < state.threshold else _USED[1]):
        _grow(kind, row, Acked(acked / packet, time - state.cut_s, rtt, time >= state.recovered_s))


@njit(cache=True, error_model="numpy")
def paced_window(row: np.ndarray, packet: float) -> float:
    """The rate at which a window is sent [byte/s]: 1.2 W/RTT, as Linux does beyond slow start."""
    state = _view(row)
    return _PACING * (state.window * packet / state.rtt)


@njit(cache=True, error_model="numpy")
def window_room(row: np.ndarray, flight: float, packet: float) -> float:
    """What may be sent beside what is in flight [byte]: a window bounds it, whatever its rate."""
    return max(_view(row).window * packet - flight, 0.0)
