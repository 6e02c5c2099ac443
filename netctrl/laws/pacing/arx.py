"""MPC pacing as published, one sample at a time; compiled, without checks (see `netctrl.laws.pacing.pacing`).

A state is one row: `ArxState`, then θ = (a, b), then φ = (RTTs, rates), newest first, k = p + q each.
"""

from __future__ import annotations

from math import inf, isfinite, isnan, nan

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.pacing.best_rate import best_rate, clipped, predicted_rtt
from netctrl.laws.record import as_record, compiled_view, width
from netctrl.laws.tracking.estimators import correct_lms, energy
from netctrl.model.law import ArxPacer


class ArxState:
    """State of the paper's law, besides theta and phi."""

    time_s: float
    """Of the newest sample that was used [s]"""
    applied_s: float
    """Of the newest rate [s]"""
    rate: float
    """In force [bit/s]"""
    mean_rtt: float
    """In the law's unit"""
    variance: float
    mean_rate: float
    """In the law's unit"""
    prediction: float
    """Of the RTT, in the law's unit"""
    rtt_unit: float
    """[s]; 0: the first RTT will be"""
    samples: float
    free: float
    """Eq. (7) before its bounds, in the law's unit"""
    bad_rtt: float
    """RTTs that are none"""
    bad_time: float
    """Times that go backwards"""
    held: float
    """Rates held for want of a number or of an effect"""
    floored: float
    """Rates that would have been below the least one"""
    resets: float
    """Estimates that exploded and started again"""


class ArxParameters:
    """Parameters of the paper's law."""

    psi: float
    xi: float
    period: float
    """T [s]"""
    min_rate: float
    """In the law's unit"""
    max_rate: float
    """R, in the law's unit"""
    past_rtts: float
    """p"""
    places: float
    """k = p + q"""
    step: float
    """alpha"""
    normalised: float
    """1: alpha is divided by |phi|^2"""
    smoothing: float
    """gamma"""
    guarded: float
    """1: yes"""
    rate_unit: float
    """[bit/s]"""
    first_slope: float
    """b_1 at the start"""
    slope_floor: float
    """b_1 below which a rate is held"""
    deviation_floor: float
    """Least deviation over the mean RTT"""
    theta_limit: float
    """|theta| beyond which the estimate begins again"""
    start_rate: float
    """In the law's unit"""


HEAD = width(ArxState)
DUE = 1.0 - 1e-6  # times are rounded


def arx_settings(law: ArxPacer) -> np.ndarray:
    """The row of a law's parameters; rates in the law's unit."""
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
    """The row of the state before the first sample."""
    k = law.past_rtts + law.past_rates
    row = np.zeros(HEAD + 2 * k)
    state = as_record(ArxState, row)
    state.time_s = state.applied_s = -inf
    state.rate = law.start_rate_bit_per_s
    state.rtt_unit = 0.0 if law.rtt_unit_s is None else law.rtt_unit_s
    return row


@njit(cache=True, error_model="numpy")
def _restart_theta(state: ArxState, p: ArxParameters, memory: np.ndarray) -> None:
    """a alike, and such that RTT and rate of now predict themselves."""
    past = int(p.past_rtts)
    for i in range(int(p.places)):
        memory[i] = 0.0
    memory[past] = p.first_slope
    held = p.first_slope * (state.rate / p.rate_unit) / state.mean_rtt
    for i in range(past):
        memory[i] = (1.0 - held) / p.past_rtts


@njit(cache=True, error_model="numpy")
def _begin(state: ArxState, p: ArxParameters, memory: np.ndarray, rtt: float) -> None:
    """With the first RTT: all averages and histories are what is seen now."""
    past = int(p.past_rtts)
    k = int(p.places)
    rate = state.rate / p.rate_unit
    state.mean_rtt = rtt
    state.prediction = rtt
    state.mean_rate = rate
    deviation = p.deviation_floor * rtt
    state.variance = deviation * deviation
    for i in range(k):
        memory[k + i] = rtt if i < past else rate
    _restart_theta(state, p, memory)


@njit(cache=True, error_model="numpy", inline="always")
def _push(values: np.ndarray, first: int, last: int, newest: float) -> None:
    """Newest first, from place `first` to before `last`."""
    for i in range(last - 1 - first):
        values[last - 1 - i] = values[last - 2 - i]
    values[first] = newest


@njit(cache=True, error_model="numpy", inline="always")
def _learn(state: ArxState, p: ArxParameters, memory: np.ndarray, rtt: float) -> None:
    """Eqs. (1), (2), (4) and (6), and the histories moved on by this RTT."""
    k = int(p.places)
    prediction = predicted_rtt(memory, 0, k, k)
    step = p.step
    if p.normalised > 0.0:
        square = energy(memory, k, k)
        step = step / square if square > 0.0 else 0.0
    size = correct_lms(memory, 0, k, k, step * (rtt - prediction))
    gamma = p.smoothing
    off = prediction - state.mean_rtt
    state.prediction = prediction
    state.mean_rtt = gamma * state.mean_rtt + (1.0 - gamma) * rtt
    state.variance = gamma * state.variance + (1.0 - gamma) * off * off
    _push(memory, k, k + int(p.past_rtts), rtt)
    if p.guarded > 0.0:
        if not size <= p.theta_limit * p.theta_limit:  # true for NaN too
            state.resets += 1.0
            _restart_theta(state, p, memory)
            state.prediction = rtt
        least = p.deviation_floor * state.mean_rtt
        if not least * least <= state.variance < inf:
            state.variance = least * least


@njit(cache=True, error_model="numpy", inline="always")
def _decide(state: ArxState, p: ArxParameters, memory: np.ndarray, b1: float) -> float:
    """Eqs. (7) and (8), the bounds, and the rate of before where there is no number."""
    past = int(p.past_rtts)
    k = int(p.places)
    # The newest rate so far will be the one before.
    rtt_at_zero = predicted_rtt(memory, 0, k, past) + predicted_rtt(memory, past + 1, k + past, k - past - 1)
    free = nan
    if b1 != 0.0 and state.mean_rate != 0.0:
        free = best_rate(p.psi, p.xi, b1, rtt_at_zero, state.mean_rtt, state.variance, state.mean_rate)
    state.free = free
    if isnan(free):
        state.held += 1.0
        return state.rate / p.rate_unit
    if free < p.min_rate:
        state.floored += 1.0
    return clipped(free, p.min_rate, p.max_rate)


@njit(cache=True, error_model="numpy")
def arx_pacing_step(state: ArxState, p: ArxParameters, memory: np.ndarray, time: float, sample: float) -> float:
    """One RTT [s] at a time [s]; changes the state in place and gives the rate in force [bit/s].

    `memory` has theta = (a, b), then phi = (RTTs, rates), newest first, k = p + q each.
    """
    guarded = p.guarded > 0.0
    if not 0.0 < sample < inf:
        state.bad_rtt += 1.0
        return state.rate
    if not (isfinite(time) and time >= state.time_s):
        state.bad_time += 1.0
        return state.rate
    # What a rate does is seen one RTT later: between, samples tell nothing about it.
    if guarded and time - state.time_s < DUE * max(p.period, sample):
        return state.rate
    if state.rtt_unit == 0.0:
        state.rtt_unit = sample
    rtt = sample / state.rtt_unit
    state.time_s = time
    state.samples += 1.0
    if state.mean_rtt == 0.0:
        _begin(state, p, memory, rtt)
        return state.rate
    _learn(state, p, memory, rtt)
    if guarded and state.samples <= p.past_rtts:
        return state.rate
    b1 = memory[int(p.past_rtts)]
    rate = state.rate / p.rate_unit
    if guarded and not b1 >= p.slope_floor:
        state.held += 1.0
    else:
        rate = _decide(state, p, memory, b1)
    _push(memory, int(p.places + p.past_rtts), int(2.0 * p.places), rate)
    state.mean_rate = p.smoothing * state.mean_rate + (1.0 - p.smoothing) * rate
    if guarded or time - state.applied_s > p.period:
        state.applied_s = time
        state.rate = rate * p.rate_unit
    return state.rate


_state, _parameters = compiled_view(ArxState), compiled_view(ArxParameters)


@njit(cache=True, error_model="numpy")
def arx_step(state: np.ndarray, settings: np.ndarray, time: float, sample: float) -> float:
    """`arx_pacing_step` on a row of state, memory behind it, and one of parameters."""
    return arx_pacing_step(_state(state), _parameters(settings), state[HEAD:], time, sample)
