"""Senders of the fluid: a step of each class of a group, by its sender's window or FAST's rate. Packets, seconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.tcp.cubic import AIMD, BETA, C
from netctrl.laws.tcp.prague import virtual_trips
from netctrl.plants.tcp import MIN_WINDOW, cubic_point, fast_rate, scalable_average_slope, scalable_slope, window_slope
from netctrl.sim.fluid.lacks import FLUID_SENDERS

_RENO, _CUBIC, _DCTCP, _PRAGUE = range(len(FLUID_SENDERS))
_MIN_WINDOW = 2.0
"""Of all but Reno [packet]."""


class Senders(NamedTuple):
    """What a step of a group's classes needs."""

    first_class: np.ndarray
    rtt: np.ndarray
    fast: np.ndarray
    sender: np.ndarray
    """(G,) position in `FLUID_SENDERS`."""
    flows: np.ndarray
    window: np.ndarray
    memory: np.ndarray
    """(2, n) of Cubic the time since the last cut [s] and the window before it [packet]; of DCTCP and Prague the moving
    average of the marked part, and 1 from the first mark on."""
    rate: np.ndarray
    heard: np.ndarray
    """(2, n) rate and signal of one round trip ago."""


def first_memory(sender: str, window: float, rtt: float) -> tuple[float, float]:
    """Memory of a sender that starts with a window: of Cubic as late after a cut as it comes back to it; of scalable
    senders an average of 1."""
    if sender == "cubic":
        own = ((1.0 - BETA) * window / C) ** (1.0 / 3.0) - rtt
        return max(min(own, (1.0 - BETA) * window * rtt / AIMD), 0.0), window
    return (1.0, 0.0) if sender in ("dctcp", "prague") else (0.0, 0.0)


@njit(inline="always")
def _hear(senders: Senders, signal: np.ndarray, h: float, group: int, step: int, delay: float) -> None:
    """Signals of one round trip ago for a group's classes: their own rate [packet/s] and the path's signal.

    Loads from all over the history, so apart from the arithmetic, which the compiler can vectorise. All indices are
    unsigned, so that numba needn't look for negative ones.
    """
    rate, heard, per_step = senders.rate, senders.heard, 1.0 / h
    g, mask = np.uint64(group), np.uint64(signal.shape[1] - 1)
    for i in range(np.uint64(senders.first_class[group]), np.uint64(senders.first_class[group + 1])):
        lag = (senders.rtt[i] + delay) * per_step
        whole = int(lag)
        part = 1.0 - (lag - whole)  # of the way from the older slot to the newer
        older, newer = np.uint64(step - whole - 1) & mask, np.uint64(step - whole) & mask
        heard[0, i] = rate[older, i] + part * (rate[newer, i] - rate[older, i])
        heard[1, i] = signal[g, older] + part * (signal[g, newer] - signal[g, older])


@njit(inline="always")
def _hear_leaving(senders: Senders, signal: np.ndarray, h: float, group: int, step: int, delay: float) -> None:
    """Signals again, of queues that mark what leaves them: younger than the rate by the time waited there.

    `delay` is what is added to the round trip without that time [s].
    """
    heard, mask = senders.heard, signal.shape[1] - 1
    for i in range(senders.first_class[group], senders.first_class[group + 1]):
        lag = (senders.rtt[i] + delay) / h
        whole = int(lag)
        older, newer = (step - whole - 1) & mask, (step - whole) & mask
        heard[1, i] = signal[group, older] + (1.0 - (lag - whole)) * (signal[group, newer] - signal[group, older])


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def _advance_windows(senders: Senders, now: np.uint64, h: float, group: int, delay: float) -> float:
    """Advance the windows of a group's classes by a step; returns what they send in it [packet/s].

    A loop of vector instructions: no branch, division without a check, a sum in any order.
    """
    rtt, flows, window, rate, heard = senders.rtt, senders.flows, senders.window, senders.rate, senders.heard
    total = 0.0
    for i in range(np.uint64(senders.first_class[group]), np.uint64(senders.first_class[group + 1])):
        R, W, x, p = rtt[i] + delay, window[i], heard[0, i], heard[1, i]
        middle = W + 0.5 * h * window_slope(W, R, x, p)
        after = max(W + h * window_slope(middle, R, x, p), MIN_WINDOW)
        active = flows[i] > 0.0
        window[i] = after if active else W
        sent = middle / R if active else 0.0
        rate[now, i] = sent
        total += flows[i] * sent
    return total


@njit(cache=True, error_model="numpy")
def _advance_scalable(senders: Senders, now: int, h: float, group: int, delay: float) -> float:
    """The same for DCTCP and Prague, with their average of marks; 1 until the first mark."""
    window, average, known, heard = senders.window, senders.memory[0], senders.memory[1], senders.heard
    paused = senders.sender[group] == _DCTCP
    total = 0.0
    for i in range(senders.first_class[group], senders.first_class[group + 1]):
        if senders.flows[i] <= 0.0:
            senders.rate[now, i] = 0.0
            continue
        R, W, m, x, p = senders.rtt[i] + delay, window[i], average[i], heard[0, i], heard[1, i]
        V = R if paused else R * virtual_trips(R)
        known[i] = 1.0 if p > 0.0 else known[i]
        middle = W + 0.5 * h * scalable_slope(W, R, V, x, p, m, paused)
        half = m + 0.5 * h * known[i] * scalable_average_slope(m, V, p)
        window[i] = max(W + h * scalable_slope(middle, R, V, x, p, half, paused), _MIN_WINDOW)
        average[i] = m + h * known[i] * scalable_average_slope(half, V, p)
        senders.rate[now, i] = max(middle, _MIN_WINDOW) / R
        total += senders.flows[i] * senders.rate[now, i]
    return total


@njit(inline="always")
def _share(x: float) -> float:
    """(1 − e^−x)/x, so that y + h _share(h c) (a − c y) is dy/dt = a − c y after h, between y and a/c for all steps."""
    return -np.expm1(-x) / x if x > 0.0 else 1.0


@njit(cache=True, error_model="numpy")
def _advance_cubic(senders: Senders, now: int, h: float, group: int, delay: float) -> float:
    """The same for Cubic, whose window is a function of the time since the last cut and the window before it."""
    window, since, highest, heard = senders.window, senders.memory[0], senders.memory[1], senders.heard
    total = 0.0
    for i in range(senders.first_class[group], senders.first_class[group + 1]):
        if senders.flows[i] <= 0.0:
            senders.rate[now, i] = 0.0
            continue
        R, cuts = senders.rtt[i] + delay, heard[0, i] * heard[1, i]
        s, M = since[i], highest[i]
        half, whole = _share(0.5 * h * cuts), _share(h * cuts)
        half_s, half_M = s + 0.5 * h * half * (1.0 - s * cuts), M + 0.5 * h * half * (window[i] - M) * cuts
        middle = max(cubic_point(half_s, half_M, R), _MIN_WINDOW)
        since[i], highest[i] = s + h * whole * (1.0 - s * cuts), M + h * whole * (middle - M) * cuts
        window[i] = max(cubic_point(since[i], highest[i], R), _MIN_WINDOW)
        senders.rate[now, i] = middle / R
        total += senders.flows[i] * senders.rate[now, i]
    return total


@njit(inline="always")
def send_tcp(
    senders: Senders, signal: np.ndarray, h: float, group: int, step: int, delay: float, leaving: float
) -> float:
    """What a group of TCP senders sends in this step [packet/s]; `leaving` is the wait in queues that mark at their
    heads, part of `delay` [s]."""
    _hear(senders, signal, h, group, step, delay)
    if leaving > 0.0:
        _hear_leaving(senders, signal, h, group, step, delay - leaving)
    kind = senders.sender[group]
    if kind == _RENO:
        return _advance_windows(senders, np.uint64(step) & np.uint64(signal.shape[1] - 1), h, group, delay)
    now = step & (signal.shape[1] - 1)
    if kind == _CUBIC:
        return _advance_cubic(senders, now, h, group, delay)
    return _advance_scalable(senders, now, h, group, delay)


@njit(inline="always")
def send_fast(senders: Senders, price: np.ndarray, h: float, group: int, step: int, delay: float) -> float:
    """What a group of FAST senders sends in this step [packet/s]."""
    mask = price.shape[1] - 1
    total = 0.0
    for i in range(senders.first_class[group], senders.first_class[group + 1]):
        lag = (senders.rtt[i] + delay) / h
        whole = int(lag)
        older, newer = (step - whole - 1) & mask, (step - whole) & mask
        told = price[group, older] + (1.0 - (lag - whole)) * (price[group, newer] - price[group, older])
        if senders.flows[i] > 0.0:
            rate = fast_rate(senders.fast[group, 1], senders.fast[group, 2], told, senders.rtt[i])
            total += senders.flows[i] * rate
    return total
