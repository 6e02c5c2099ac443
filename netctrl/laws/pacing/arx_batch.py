"""MPC pacing as published, for many flows at once: `arx_step` over arrays, for vector instructions.

Flows go in blocks, a column each. Numbers of those that take the usual way through a guarded step are computed side by
side, in `arx_step`'s order, so to the same bits; for one that doesn't, `arx_step` is called. Loops are short and name
rows by numbers: of few arrays it can be told that they don't overlap, and a view of a row costs as much as the row.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numba import prange

from netctrl.core.jit import njit
from netctrl.laws.pacing.arx import DUE, HEAD, ArxParameters, ArxState, arx_step
from netctrl.laws.pacing.best_rate import best_rate, clipped
from netctrl.laws.record import compiled_view, row_names

_BLOCK = 256
TIME, APPLIED, RATE, MEAN_RTT, VARIANCE, MEAN_RATE, PREDICTION, UNIT, SAMPLES, FREE, FLOORED = (
    row_names(ArxState).index(name)
    for name in (
        "time_s",
        "applied_s",
        "rate",
        "mean_rtt",
        "variance",
        "mean_rate",
        "prediction",
        "rtt_unit",
        "samples",
        "free",
        "floored",
    )
)
"""Rows of a block."""
_parameters = compiled_view(ArxParameters)
_SKIPPED, _USUAL, _OTHER = 0, 1, 2  # ways that a sample takes
_GUESS, _SIZE, _GAIN, _RTT, _MEAN, _VARIANCE, _AT_ZERO, _FREE, _LENGTH, _THETA = range(10)  # rows of what is computed


@njit(cache=True, error_model="numpy")
def _sort(ways: np.ndarray, block: np.ndarray, p: ArxParameters, time: float, rtts: np.ndarray) -> int:
    """Fill ways (B,) with each flow's way, as far as known before the step; returns the number of usual ones."""
    period, usual = p.period, 0
    for j in range(len(rtts)):
        fine = (rtts[j] > 0.0) & (rtts[j] < inf) & (time >= block[TIME, j]) & (time < inf)
        due = time - block[TIME, j] >= DUE * max(period, rtts[j])
        known = block[SAMPLES, j] >= p.past_rtts
        ways[j] = _OTHER if not fine or (due and not known) else (_USUAL if due else _SKIPPED)
        usual += ways[j] == _USUAL
    return usual


@njit(cache=True, error_model="numpy")
def _add_products(made: np.ndarray, total: int, row: int, block: np.ndarray, other: int) -> None:
    """made[total] += made[row] block[other]"""
    for j in range(made.shape[1]):
        made[total, j] += made[row, j] * block[other, j]


@njit(cache=True, error_model="numpy")
def _predict(made: np.ndarray, block: np.ndarray, theta: int, phi: int) -> None:
    """One place's part of eq. (1), and of |φ|²."""
    for j in range(made.shape[1]):
        made[_GUESS, j] += block[theta, j] * block[phi, j]
        made[_SIZE, j] += block[phi, j] * block[phi, j]


@njit(cache=True, error_model="numpy")
def _find_gains(made: np.ndarray, block: np.ndarray, rtts: np.ndarray, step: float, normalised: bool) -> None:
    for j in range(len(rtts)):
        rtt = rtts[j] / block[UNIT, j]
        made[_RTT, j] = rtt
        made[_GAIN, j] = (step / made[_SIZE, j] if normalised else step) * (rtt - made[_GUESS, j])


@njit(cache=True, error_model="numpy")
def _correct(made: np.ndarray, row: int, block: np.ndarray, theta: int, phi: int) -> None:
    """One place's part of eq. (2), and of |θ|²."""
    for j in range(made.shape[1]):
        after = block[theta, j] + made[_GAIN, j] * block[phi, j]
        made[row, j] = after
        made[_LENGTH, j] += after * after


@njit(cache=True, error_model="numpy")
def _average(made: np.ndarray, block: np.ndarray, gamma: float, floor: float) -> None:
    """Eqs. (4) and (6), and the first part of eq. (8)."""
    for j in range(made.shape[1]):
        off = made[_GUESS, j] - block[MEAN_RTT, j]
        mean = gamma * block[MEAN_RTT, j] + (1.0 - gamma) * made[_RTT, j]
        spread = gamma * block[VARIANCE, j] + (1.0 - gamma) * off * off
        small = floor * mean
        made[_MEAN, j] = mean
        made[_VARIANCE, j] = spread if (small * small <= spread) & (spread < inf) else small * small
        made[_AT_ZERO, j] = made[_THETA, j] * made[_RTT, j]
        made[_SIZE, j] = 0.0


@njit(cache=True, error_model="numpy")
def _find_rates(made: np.ndarray, slope: int, block: np.ndarray, psi: float, xi: float) -> None:
    """Eq. (7)."""
    for j in range(made.shape[1]):
        at_zero = made[_AT_ZERO, j] + made[_SIZE, j]
        mean, variance = made[_MEAN, j], made[_VARIANCE, j]
        made[_FREE, j] = best_rate(psi, xi, made[slope, j], at_zero, mean, variance, block[MEAN_RATE, j])


@njit(cache=True, error_model="numpy")
def _leave_out(ways: np.ndarray, made: np.ndarray, slope: int, limit: float, min_slope: float) -> None:
    """Exclude flows that take another way after all."""
    for j in range(len(ways)):
        fine = (made[_LENGTH, j] <= limit) & (made[slope, j] >= min_slope) & (made[_FREE, j] == made[_FREE, j])
        ways[j] = _OTHER if (ways[j] == _USUAL) & (not fine) else ways[j]


@njit(cache=True, error_model="numpy")
def _compute(ways: np.ndarray, block: np.ndarray, made: np.ndarray, p: ArxParameters, rtts: np.ndarray) -> None:
    """The usual step of a block, (s, B), into made (9 + k, B): rows as named, and θ in the last k."""
    past, k = int(p.past_rtts), int(p.places)
    theta, phi, slope = HEAD, HEAD + k, _THETA + past
    for j in range(len(rtts)):
        made[_GUESS, j] = made[_SIZE, j] = made[_LENGTH, j] = 0.0
    for i in range(k):
        _predict(made, block, theta + i, phi + i)
    _find_gains(made, block, rtts, p.step, p.normalised > 0.0)
    for i in range(k):
        _correct(made, _THETA + i, block, theta + i, phi + i)
    _average(made, block, p.smoothing, p.deviation_floor)
    for i in range(1, past):
        _add_products(made, _AT_ZERO, _THETA + i, block, phi + i - 1)
    for i in range(past + 1, k):
        _add_products(made, _SIZE, _THETA + i, block, phi + i - 1)
    _find_rates(made, slope, block, p.psi, p.xi)
    _leave_out(ways, made, slope, p.theta_limit**2, p.slope_floor)


@njit(cache=True, error_model="numpy")
def _keep_row(ways: np.ndarray, block: np.ndarray, to: int, made: np.ndarray, row: int) -> None:
    for j in range(len(ways)):
        block[to, j] = made[row, j] if ways[j] == _USUAL else block[to, j]


@njit(cache=True, error_model="numpy")
def _move_row(ways: np.ndarray, block: np.ndarray, to: int, row: int) -> None:
    for j in range(len(ways)):
        block[to, j] = block[row, j] if ways[j] == _USUAL else block[to, j]


@njit(cache=True, error_model="numpy")
def _keep_rates(ways: np.ndarray, block: np.ndarray, made: np.ndarray, p: ArxParameters, place: int) -> None:
    """The bounds of eq. (3), and the moving average of rates."""
    least, most, unit, gamma = p.min_rate, p.max_rate, p.rate_unit, p.smoothing
    for j in range(len(ways)):
        made[_RTT, j] = clipped(made[_FREE, j], least, most)  # RTTs are kept by now
    for j in range(len(ways)):
        mean_rate = gamma * block[MEAN_RATE, j] + (1.0 - gamma) * made[_RTT, j]
        block[MEAN_RATE, j] = mean_rate if ways[j] == _USUAL else block[MEAN_RATE, j]
    for j in range(len(ways)):
        block[RATE, j] = made[_RTT, j] * unit if ways[j] == _USUAL else block[RATE, j]
    for j in range(len(ways)):
        block[FLOORED, j] += 1.0 if (ways[j] == _USUAL) & (made[_FREE, j] < least) else 0.0
    _keep_row(ways, block, place, made, _RTT)


@njit(cache=True, error_model="numpy")
def _keep(ways: np.ndarray, block: np.ndarray, made: np.ndarray, p: ArxParameters, time: float) -> None:
    """Copy the computed values into the columns of flows that take the usual way."""
    past, k = int(p.past_rtts), int(p.places)
    theta, phi = HEAD, HEAD + k
    for i in range(k):
        _keep_row(ways, block, theta + i, made, _THETA + i)
    for i in range(k - 1, 0, -1):
        if i != past:
            _move_row(ways, block, phi + i, phi + i - 1)
    _keep_row(ways, block, phi, made, _RTT)
    _keep_row(ways, block, MEAN_RTT, made, _MEAN)
    _keep_row(ways, block, VARIANCE, made, _VARIANCE)
    _keep_row(ways, block, PREDICTION, made, _GUESS)
    _keep_row(ways, block, FREE, made, _FREE)
    _keep_rates(ways, block, made, p, phi + past)
    for j in range(len(ways)):
        block[SAMPLES, j] += 1.0 if ways[j] == _USUAL else 0.0
    for j in range(len(ways)):
        block[TIME, j] = time if ways[j] == _USUAL else block[TIME, j]
    for j in range(len(ways)):
        block[APPLIED, j] = time if ways[j] == _USUAL else block[APPLIED, j]


@njit(cache=True, parallel=True, error_model="numpy")
def arx_many(states: np.ndarray, settings: np.ndarray, times: np.ndarray, rtts: np.ndarray, rates: np.ndarray) -> None:
    """`arx_step` of many flows: states (n, s), times (T,), RTTs (n, T) [s]; fills rates (n, T) [bit/s]."""
    n, k = len(states), int(_parameters(settings).places)
    for number in prange((n + _BLOCK - 1) // _BLOCK):
        first, last = number * _BLOCK, min((number + 1) * _BLOCK, n)
        p, B = _parameters(settings), last - first
        block = np.empty((states.shape[1], B))
        for j in range(B):
            block[:, j] = states[first + j]
        made, seen, ways = np.empty((9 + k, B)), np.empty(B), np.full(B, _OTHER)
        for t in range(len(times)):
            for j in range(B):
                seen[j] = rtts[first + j, t]
            if p.guarded > 0.0 and _sort(ways, block, p, times[t], seen) > 0:
                _compute(ways, block, made, p, seen)
                _keep(ways, block, made, p, times[t])
            for j in range(B):
                if ways[j] == _OTHER:
                    one = block[:, j].copy()
                    arx_step(one, settings, times[t], seen[j])
                    block[:, j] = one
                rates[first + j, t] = block[RATE, j]
        for j in range(B):
            states[first + j] = block[:, j]
