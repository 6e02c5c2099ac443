"""MPC pacing as published, one sample at a time, compiled; nothing is checked here (`netctrl.laws.pacing.pacing`).

A state is one array: the places below, then θ = (a, b), then φ = (RTTs, rates), newest first, k = p + q each.
"""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from netctrl.jit import njit
from netctrl.laws.pacing.best_rate import best_rate, clipped, predicted_rtt
from netctrl.laws.tracking.lms import correct_lms, energy
from netctrl.model.law import ArxPacer

__all__ = ["ARX_FIELDS", "arx_settings", "arx_start", "arx_step"]

ARX_FIELDS = (
    *("time_s", "applied_s", "rate", "mean_rtt", "variance", "mean_rate", "prediction", "rtt_unit", "samples", "free"),
    *("bad_rtt", "bad_time", "held", "floored", "resets"),
)
"""Names of a state's first places. `rate` is in bit/s, `mean_rate` and `free`, eq. (7) before its bounds, in the law's
unit, RTTs in the law's unit; from `bad_rtt` on events are counted."""
TIME, APPLIED, RATE, MEAN_RTT, VARIANCE, MEAN_RATE, PREDICTION, UNIT, SAMPLES, FREE = range(10)
BAD_RTT, BAD_TIME, HELD, FLOORED, RESETS = range(10, 15)
HEAD = len(ARX_FIELDS)

PSI, XI, PERIOD, MIN, MAX, P, K, STEP, NORMALISED, GAMMA, GUARDED, RATE_UNIT = range(12)
FIRST_SLOPE, SLOPE_FLOOR, DEVIATION_FLOOR, LIMIT, START = range(12, 17)

DUE = 1.0 - 1e-6  # times are rounded


def arx_settings(law: ArxPacer) -> np.ndarray:
    """(17,) what a law's kernel needs; rates in the law's unit."""
    unit = law.rate_unit_bit_per_s
    return np.array(
        [
            *(law.psi, law.xi, law.period_s, law.least_rate_bit_per_s / unit, law.max_rate_bit_per_s / unit),
            *(
                law.past_rtts,
                law.past_rtts + law.past_rates,
                law.step,
                law.normalised,
                law.smoothing,
                law.guarded,
                unit,
            ),
            *(law.first_slope, law.slope_floor, law.deviation_floor, law.theta_limit, law.start_rate_bit_per_s / unit),
        ]
    )


def arx_start(law: ArxPacer) -> np.ndarray:
    """The state before the first sample."""
    k = law.past_rtts + law.past_rates
    state = np.zeros(HEAD + 2 * k)
    state[TIME] = state[APPLIED] = -inf
    state[RATE] = law.start_rate_bit_per_s
    state[UNIT] = 0.0 if law.rtt_unit_s is None else law.rtt_unit_s
    return state


@njit(cache=True)
def _restart_theta(state: np.ndarray, settings: np.ndarray) -> None:
    """a alike, and such that RTT and rate of now predict themselves."""
    p, k = int(settings[P]), int(settings[K])
    b1 = settings[FIRST_SLOPE]
    state[HEAD : HEAD + k] = 0.0
    state[HEAD + p] = b1
    held = b1 * (state[RATE] / settings[RATE_UNIT]) / state[MEAN_RTT]
    for i in range(p):
        state[HEAD + i] = (1.0 - held) / p


@njit(cache=True)
def _begin(state: np.ndarray, settings: np.ndarray, rtt: float) -> None:
    """With the first RTT: all averages and histories are what is seen now."""
    p, k = int(settings[P]), int(settings[K])
    rate = state[RATE] / settings[RATE_UNIT]
    state[MEAN_RTT] = state[PREDICTION] = rtt
    state[MEAN_RATE] = rate
    state[VARIANCE] = (settings[DEVIATION_FLOOR] * rtt) ** 2
    state[HEAD + k : HEAD + k + p] = rtt
    state[HEAD + k + p : HEAD + 2 * k] = rate
    _restart_theta(state, settings)


@njit(cache=True, inline="always")
def _push(values: np.ndarray, first: int, last: int, newest: float) -> None:
    """Newest first, from place `first` to before `last`."""
    for i in range(last - 1, first, -1):
        values[i] = values[i - 1]
    values[first] = newest


@njit(cache=True, error_model="numpy", inline="always")
def _learn(state: np.ndarray, settings: np.ndarray, rtt: float) -> None:
    """Eqs. (1), (2), (4) and (6), and the histories moved on by this RTT."""
    p, k = int(settings[P]), int(settings[K])
    prediction = predicted_rtt(state, HEAD, HEAD + k, k)
    step = settings[STEP]
    if settings[NORMALISED] > 0.0:
        size = energy(state, HEAD + k, k)
        step = step / size if size > 0.0 else 0.0
    size = correct_lms(state, HEAD, HEAD + k, k, step * (rtt - prediction))
    gamma, off = settings[GAMMA], prediction - state[MEAN_RTT]
    state[PREDICTION] = prediction
    state[MEAN_RTT] = gamma * state[MEAN_RTT] + (1.0 - gamma) * rtt
    state[VARIANCE] = gamma * state[VARIANCE] + (1.0 - gamma) * off * off
    _push(state, HEAD + k, HEAD + k + p, rtt)
    if settings[GUARDED] > 0.0:
        if not size <= settings[LIMIT] ** 2:  # true for NaN too
            state[RESETS] += 1.0
            _restart_theta(state, settings)
            state[PREDICTION] = rtt
        least = settings[DEVIATION_FLOOR] * state[MEAN_RTT]
        if not least * least <= state[VARIANCE] < inf:
            state[VARIANCE] = least * least


@njit(cache=True, error_model="numpy")
def arx_step(state: np.ndarray, settings: np.ndarray, time: float, sample: float) -> float:
    """One RTT [s] at a time [s]; changes the state in place and gives the rate in force [bit/s]."""
    p, k = int(settings[P]), int(settings[K])
    guarded = settings[GUARDED] > 0.0
    if not 0.0 < sample < inf:
        state[BAD_RTT] += 1.0
        return state[RATE]
    if not (isfinite(time) and time >= state[TIME]):
        state[BAD_TIME] += 1.0
        return state[RATE]
    # What a rate does is seen one RTT later: between, samples tell nothing about it.
    if guarded and time - state[TIME] < DUE * max(settings[PERIOD], sample):
        return state[RATE]
    if state[UNIT] == 0.0:
        state[UNIT] = sample
    rtt = sample / state[UNIT]
    state[TIME] = time
    state[SAMPLES] += 1.0
    if state[MEAN_RTT] == 0.0:
        _begin(state, settings, rtt)
        return state[RATE]
    _learn(state, settings, rtt)
    if guarded and state[SAMPLES] <= p:
        return state[RATE]
    b1 = state[HEAD + p]
    if guarded and not b1 >= settings[SLOPE_FLOOR]:
        state[HELD] += 1.0
        rate = state[RATE] / settings[RATE_UNIT]
    else:
        rate = _decide(state, settings, b1)
    _push(state, HEAD + k + p, HEAD + 2 * k, rate)
    state[MEAN_RATE] = settings[GAMMA] * state[MEAN_RATE] + (1.0 - settings[GAMMA]) * rate
    if guarded or time - state[APPLIED] > settings[PERIOD]:
        state[APPLIED] = time
        state[RATE] = rate * settings[RATE_UNIT]
    return state[RATE]


@njit(cache=True, error_model="numpy", inline="always")
def _decide(state: np.ndarray, settings: np.ndarray, b1: float) -> float:
    """Eqs. (7) and (8), the bounds, and the rate of before where there is no number."""
    p, k = int(settings[P]), int(settings[K])
    rtt_at_zero = predicted_rtt(state, HEAD, HEAD + k, p)
    rtt_at_zero += predicted_rtt(state, HEAD + p + 1, HEAD + k + p, k - p - 1)
    free = np.nan
    if b1 != 0.0 and state[MEAN_RATE] != 0.0:
        psi, xi = settings[PSI], settings[XI]
        free = best_rate(psi, xi, b1, rtt_at_zero, state[MEAN_RTT], state[VARIANCE], state[MEAN_RATE])
    state[FREE] = free
    if np.isnan(free):
        state[HELD] += 1.0
        return state[RATE] / settings[RATE_UNIT]
    if free < settings[MIN]:
        state[FLOORED] += 1.0
    return clipped(free, settings[MIN], settings[MAX])
