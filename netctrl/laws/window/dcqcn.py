"""DCQCN's reaction point. Source: Zhu et al., SIGCOMM 2015, section 3.1, (1) to (4) and Fig. 7.

Its timers are read when a packet is sent or an acknowledgement comes, which is when the rate matters.
"""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.window.interface import LINE_RATE, OWN, RATE, Acknowledged

__all__ = ["dcqcn", "dcqcn_timers"]

GAIN, ALPHA_INTERVAL, INCREASE_INTERVAL, INCREASE_BYTES, FAST_STAGES, INCREASE, HYPER, MIN = range(8)
"""Of the parameters: g, timers [ns], byte counter, F, R_AI, R_HAI and the least rate [bit/s]."""
TARGET, ALPHA, ALPHA_AT, TIMER_AT, TIMES, COUNTED, BYTES, SENT, CUT = range(OWN, OWN + 9)


@njit(cache=True, error_model="numpy", nogil=True)
def _increase(parameters: np.ndarray, state: np.ndarray, line: float) -> None:
    """One event of timer or byte counter: fast recovery, additive or hyper increase."""
    F, times, counted = parameters[FAST_STAGES], state[TIMES], state[BYTES]
    if max(times, counted) > F:
        step = parameters[INCREASE]
        if min(times, counted) > F:
            step = parameters[HYPER] * (min(times, counted) - F)
        state[TARGET] = min(state[TARGET] + step, line)
    state[RATE] = min(0.5 * (state[TARGET] + state[RATE]), line)


@njit(cache=True, error_model="numpy", nogil=True)
def dcqcn_timers(parameters: np.ndarray, state: np.ndarray, now: int, sent: int, line: float) -> None:
    """What timers and byte counter did up to `now`; `sent` bytes went out since the last call."""
    if state[CUT] == 0.0:  # at line rate until the first notification
        return
    while state[ALPHA_AT] <= now:
        state[ALPHA] *= 1.0 - parameters[GAIN]
        state[ALPHA_AT] += parameters[ALPHA_INTERVAL]
    state[COUNTED] += sent
    while state[COUNTED] >= parameters[INCREASE_BYTES]:
        state[COUNTED] -= parameters[INCREASE_BYTES]
        state[BYTES] += 1.0
        _increase(parameters, state, line)
    while state[TIMER_AT] <= now:
        state[TIMER_AT] += parameters[INCREASE_INTERVAL]
        state[TIMES] += 1.0
        _increase(parameters, state, line)


@njit(cache=True, error_model="numpy", nogil=True)
def dcqcn(
    parameters: np.ndarray,
    paths: np.ndarray,
    gains: np.ndarray,
    state: np.ndarray,
    history: np.ndarray,
    seen: Acknowledged,
    hops: np.ndarray,
) -> None:
    """On a notification R_T ← R_C, R_C ← R_C (1 − α/2), α ← (1 − g) α + g; all counters start again."""
    line = paths[seen.path, LINE_RATE]
    dcqcn_timers(parameters, state, seen.now, 0, line)
    if not seen.notified:
        return
    if state[CUT] == 0.0:
        state[CUT], state[ALPHA] = 1.0, 1.0
    state[TARGET] = state[RATE]
    state[RATE] = max(state[RATE] * (1.0 - 0.5 * state[ALPHA]), parameters[MIN])
    state[ALPHA] = (1.0 - parameters[GAIN]) * state[ALPHA] + parameters[GAIN]
    state[ALPHA_AT] = seen.now + parameters[ALPHA_INTERVAL]
    state[TIMER_AT] = seen.now + parameters[INCREASE_INTERVAL]
    state[TIMES] = state[BYTES] = state[COUNTED] = 0.0
