"""MPC pacing as published, for many flows at once: what `arx_step` does, over arrays that a processor's vectors take.

Flows go in blocks, a column each. Numbers of those that take the usual way through a guarded step are computed side by
side, in `arx_step`'s order, so to the same bits; for one that doesn't, `arx_step` is called.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numba import njit, prange

from netctrl.mpc.pacing_kernel import best_rate, clipped
from netctrl.runtime.pacing_arx import (
    APPLIED,
    DEVIATION_FLOOR,
    DUE,
    FLOORED,
    FREE,
    GAMMA,
    GUARDED,
    HEAD,
    LEAST,
    LIMIT,
    MEAN_RATE,
    MEAN_RTT,
    MOST,
    NORMALISED,
    PERIOD,
    PREDICTION,
    PSI,
    RATE,
    RATE_UNIT,
    SAMPLES,
    SLOPE_FLOOR,
    STEP,
    TIME,
    UNIT,
    VARIANCE,
    XI,
    K,
    P,
    arx_step,
)

__all__ = ["arx_many"]

_BLOCK = 64
_SKIPPED, _USUAL, _OTHER = 0, 1, 2  # ways that a sample takes


@njit(cache=True, error_model="numpy")
def _sort(ways: np.ndarray, block: np.ndarray, settings: np.ndarray, time: float, rtts: np.ndarray) -> int:
    """Fills ways (B,) with each flow's way, as far as it can be told before the step; gives how many are usual."""
    p, period, usual = settings[P], settings[PERIOD], 0
    for j in range(len(rtts)):
        fine = (rtts[j] > 0.0) & (rtts[j] < inf) & (time >= block[TIME, j]) & (time < inf)
        due = time - block[TIME, j] >= DUE * max(period, rtts[j])
        known = block[SAMPLES, j] >= p
        ways[j] = _OTHER if not fine or (due and not known) else (_USUAL if due else _SKIPPED)
        usual += ways[j] == _USUAL
    return usual


@njit(cache=True, error_model="numpy")
def _compute(ways: np.ndarray, block: np.ndarray, made: np.ndarray, settings: np.ndarray, rtts: np.ndarray) -> None:
    """The usual step of a block, (s, B), into made (9 + k, B): rows as named, and θ in the last k."""
    p, k, B = int(settings[P]), int(settings[K]), len(rtts)
    step, gamma, floor = settings[STEP], settings[GAMMA], settings[DEVIATION_FLOOR]
    guess, size, gain, rtt, mean, variance, at_zero, free, length = made[:9]
    theta, phi = HEAD, HEAD + k
    made[:9] = 0.0
    for i in range(k):
        for j in range(B):
            guess[j] += block[theta + i, j] * block[phi + i, j]
            size[j] += block[phi + i, j] * block[phi + i, j]
    for j in range(B):
        rtt[j] = rtts[j] / block[UNIT, j]
        gain[j] = (step / size[j] if settings[NORMALISED] > 0.0 else step) * (rtt[j] - guess[j])
    for i in range(k):
        for j in range(B):
            after = block[theta + i, j] + gain[j] * block[phi + i, j]
            made[9 + i, j] = after
            length[j] += after * after
    for j in range(B):
        off = guess[j] - block[MEAN_RTT, j]
        mean[j] = gamma * block[MEAN_RTT, j] + (1.0 - gamma) * rtt[j]
        spread = gamma * block[VARIANCE, j] + (1.0 - gamma) * off * off
        small = floor * mean[j]
        variance[j] = spread if (small * small <= spread) & (spread < inf) else small * small
        at_zero[j] = made[9, j] * rtt[j]
    for i in range(1, p):
        for j in range(B):
            at_zero[j] += made[9 + i, j] * block[phi + i - 1, j]
    size[:] = 0.0
    for i in range(p + 1, k):
        for j in range(B):
            size[j] += made[9 + i, j] * block[phi + i - 1, j]
    psi, xi, limit, low = settings[PSI], settings[XI], settings[LIMIT] ** 2, settings[SLOPE_FLOOR]
    for j in range(B):
        b1 = made[9 + p, j]
        free[j] = best_rate(psi, xi, b1, at_zero[j] + size[j], mean[j], variance[j], block[MEAN_RATE, j])
        fine = (length[j] <= limit) & (b1 >= low) & (free[j] == free[j])
        ways[j] = _OTHER if (ways[j] == _USUAL) & (not fine) else ways[j]


@njit(cache=True, error_model="numpy")
def _keep(ways: np.ndarray, block: np.ndarray, made: np.ndarray, settings: np.ndarray, time: float) -> None:
    """Puts what was computed in the columns of flows that take the usual way."""
    p, k, B = int(settings[P]), int(settings[K]), len(ways)
    least, most, unit, gamma = settings[LEAST], settings[MOST], settings[RATE_UNIT], settings[GAMMA]
    theta, phi = HEAD, HEAD + k
    for i in range(k):
        for j in range(B):
            block[theta + i, j] = made[9 + i, j] if ways[j] == _USUAL else block[theta + i, j]
    for i in range(k - 1, 0, -1):
        for j in range(B):
            block[phi + i, j] = block[phi + i - 1, j] if (ways[j] == _USUAL) & (i != p) else block[phi + i, j]
    for j in range(B):
        kept, free = ways[j] == _USUAL, made[7, j]
        rate = clipped(free, least, most)
        mean_rate = gamma * block[MEAN_RATE, j] + (1.0 - gamma) * rate
        block[phi, j] = made[3, j] if kept else block[phi, j]
        block[phi + p, j] = rate if kept else block[phi + p, j]
        block[MEAN_RATE, j] = mean_rate if kept else block[MEAN_RATE, j]
        block[RATE, j] = rate * unit if kept else block[RATE, j]
        block[MEAN_RTT, j] = made[4, j] if kept else block[MEAN_RTT, j]
        block[VARIANCE, j] = made[5, j] if kept else block[VARIANCE, j]
        block[PREDICTION, j] = made[0, j] if kept else block[PREDICTION, j]
        block[FREE, j] = free if kept else block[FREE, j]
        block[FLOORED, j] += 1.0 if kept & (free < least) else 0.0
        block[SAMPLES, j] += 1.0 if kept else 0.0
        block[TIME, j] = time if kept else block[TIME, j]
        block[APPLIED, j] = time if kept else block[APPLIED, j]


@njit(cache=True, parallel=True, error_model="numpy")
def arx_many(states: np.ndarray, settings: np.ndarray, times: np.ndarray, rtts: np.ndarray, rates: np.ndarray) -> None:
    """`arx_step` of many flows: states (n, s), times (T,), RTTs (n, T) [s]; fills rates (n, T) [bit/s]."""
    n, k = len(states), int(settings[K])
    for number in prange((n + _BLOCK - 1) // _BLOCK):
        first, last = number * _BLOCK, min((number + 1) * _BLOCK, n)
        B = last - first
        block = np.empty((states.shape[1], B))
        for j in range(B):
            block[:, j] = states[first + j]
        made, seen, ways = np.empty((9 + k, B)), np.empty(B), np.full(B, _OTHER)
        for t in range(len(times)):
            for j in range(B):
                seen[j] = rtts[first + j, t]
            if settings[GUARDED] > 0.0 and _sort(ways, block, settings, times[t], seen) > 0:
                _compute(ways, block, made, settings, seen)
                _keep(ways, block, made, settings, times[t])
            for j in range(B):
                if ways[j] == _OTHER:
                    arx_step(block[:, j], settings, times[t], seen[j])
                rates[first + j, t] = block[RATE, j]
        for j in range(B):
            states[first + j] = block[:, j]
