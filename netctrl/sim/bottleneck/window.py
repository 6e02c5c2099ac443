"""Congestion windows of flows in a fluid, compiled: which law, what it remembers, what an acknowledgement does."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.jit import njit
from netctrl.laws.tcp.cubic import cubic_cut, cubic_window
from netctrl.laws.tcp.htcp import htcp_backoff, htcp_window
from netctrl.laws.tcp.reno import reno_cut, reno_window

__all__ = ["NO_WINDOW", "WINDOWS", "acknowledge", "first_window", "paced_window", "window_room"]

WINDOWS = ("reno", "cubic", "htcp")
NO_WINDOW, RENO, CUBIC, HTCP = range(-1, 3)
_WINDOW, _HIGHEST, _CUT, _THRESHOLD, _RTT, _RECOVERED, _MIN_RTT, _MAX_RTT, _RATE, _BACKOFF = range(10)
_FIRST_PACKETS = 10.0  # RFC 6928
_PACING = 1.2  # times W/RTT, as Linux paces beyond slow start
_USED = (0.5, 0.9)  # of the window, in slow start and beyond: who sends less doesn't need more (RFC 7661, section 4.3)


def first_window(rtt: float) -> np.ndarray:
    """What is remembered of a window, (10,), for a base RTT [s]: 10 packets, slow start."""
    memory = np.zeros(10)
    memory[_WINDOW], memory[_THRESHOLD], memory[_RTT], memory[_MIN_RTT] = _FIRST_PACKETS, inf, rtt, inf
    memory[_BACKOFF] = 0.5
    return memory


@njit(cache=True, error_model="numpy")
def acknowledge(
    kind: int, memory: np.ndarray, time: float, rtt: float, acked: float, lost: float, flight: float, packet: float
) -> None:
    """What acknowledgements and losses [byte] do to a window; losses cut it once a round trip."""
    memory[_RTT] = rtt
    memory[_MIN_RTT], memory[_MAX_RTT] = min(memory[_MIN_RTT], rtt), max(memory[_MAX_RTT], rtt)
    if lost > 0.0 and time >= memory[_RECOVERED]:
        _cut(kind, memory, rtt)
        memory[_CUT], memory[_THRESHOLD], memory[_RECOVERED] = time, memory[_WINDOW], time + rtt
        return
    used = flight / (memory[_WINDOW] * packet)
    if acked > 0.0 and used >= (_USED[0] if memory[_WINDOW] < memory[_THRESHOLD] else _USED[1]):
        _grow(kind, memory, time - memory[_CUT], rtt, acked / packet, time >= memory[_RECOVERED])


@njit(cache=True, error_model="numpy")
def _cut(kind: int, memory: np.ndarray, rtt: float) -> None:
    if kind == CUBIC:
        memory[_WINDOW], memory[_HIGHEST] = cubic_cut(memory[_WINDOW], memory[_HIGHEST])
    elif kind == RENO:
        memory[_WINDOW] = reno_cut(memory[_WINDOW])
    else:
        rate = memory[_WINDOW] / rtt
        memory[_BACKOFF] = htcp_backoff(memory[_MIN_RTT], memory[_MAX_RTT], rate, memory[_RATE])
        memory[_WINDOW] = max(memory[_BACKOFF] * memory[_WINDOW], 2.0)
        memory[_RATE], memory[_MAX_RTT] = rate, 0.0


@njit(cache=True, error_model="numpy")
def _grow(kind: int, memory: np.ndarray, since: float, rtt: float, packets: float, recovered: bool) -> None:
    window, threshold = memory[_WINDOW], memory[_THRESHOLD]
    if kind == CUBIC:
        memory[_WINDOW] = cubic_window(window, memory[_HIGHEST], since, rtt, packets, threshold)
    elif kind == RENO and recovered:
        memory[_WINDOW] = reno_window(window, packets, threshold)
    elif kind == HTCP and recovered:
        memory[_WINDOW] = htcp_window(window, since, memory[_BACKOFF], packets, threshold)


@njit(cache=True, error_model="numpy")
def paced_window(memory: np.ndarray, packet: float) -> float:
    """The rate at which a window is sent [byte/s]: 1.2 W/RTT, as Linux does beyond slow start."""
    return _PACING * (memory[_WINDOW] * packet / memory[_RTT])


@njit(cache=True)
def window_room(memory: np.ndarray, flight: float, packet: float) -> float:
    """What may be sent beside what is in flight [byte]: a window bounds it, whatever its rate."""
    return max(memory[_WINDOW] * packet - flight, 0.0)
