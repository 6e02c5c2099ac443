"""HPCC, one acknowledgement at a time. Source: Li et al., SIGCOMM 2019, Algorithm 1."""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.window.interface import (
    HOP_BYTES,
    HOP_QUEUE,
    HOP_TIME,
    HOPS,
    LINE_RATE,
    OWN,
    RATE,
    RATES_AT,
    WINDOW,
    Acknowledged,
)

__all__ = ["hpcc", "inflight"]

TARGET, STAGES, INCREASE, ROUND_TRIP, PACED = range(5)
"""Of the parameters: eta, maxStage, W_AI [byte], T [ns], whether it is paced."""
REFERENCE, STAGE, UPDATED, UTILIZATION, SEEN = range(OWN, OWN + 5)  # W^c, incStage, lastUpdateSeq, U, telemetry before


@njit(cache=True, error_model="numpy", nogil=True)
def inflight(T: float, path: np.ndarray, hops: np.ndarray, before: np.ndarray, average: float) -> float:
    """U, the moving average of the busiest link's normalised in-flight bytes (MeasureInflight)."""
    u, span = 0.0, 0.0
    for h in range(int(path[HOPS])):
        elapsed = hops[h, HOP_TIME] - before[h * 3 + 2]
        if elapsed <= 0:
            continue
        rate = (hops[h, HOP_BYTES] - before[h * 3 + 1]) * 8e9 / elapsed
        capacity = path[RATES_AT + h]
        each = min(float(hops[h, HOP_QUEUE]), before[h * 3]) * 8e9 / (capacity * T) + rate / capacity
        if each > u:
            u, span = each, float(elapsed)
    span = min(span, T)
    return (1.0 - span / T) * average + span / T * u


@njit(cache=True, error_model="numpy", nogil=True)
def hpcc(
    parameters: np.ndarray,
    paths: np.ndarray,
    gains: np.ndarray,
    state: np.ndarray,
    history: np.ndarray,
    seen: Acknowledged,
    hops: np.ndarray,
) -> None:
    """Set window and rate W/T. `history` keeps queue, bytes and time of each hop from one call to the next."""
    path, T = paths[seen.path], parameters[ROUND_TRIP]
    most = path[LINE_RATE] * T / 8e9
    if state[SEEN] == 0.0:
        state[SEEN], state[REFERENCE], state[UTILIZATION] = 1.0, most, 1.0
    else:
        state[UTILIZATION] = inflight(T, path, hops, history, state[UTILIZATION])
        relative = state[UTILIZATION] / parameters[TARGET]
        multiplicative = relative >= 1.0 or state[STAGE] >= parameters[STAGES]
        window = state[REFERENCE] + parameters[INCREASE]
        if multiplicative:
            window = state[REFERENCE] / max(relative, 1e-9) + parameters[INCREASE]
        state[WINDOW] = min(max(window, 1.0), most)
        if seen.una > state[UPDATED]:
            state[STAGE] = 0.0 if multiplicative else state[STAGE] + 1.0
            state[REFERENCE] = state[WINDOW]
            state[UPDATED] = seen.next_byte
        if parameters[PACED] != 0.0:
            state[RATE] = state[WINDOW] * 8e9 / T
    for h in range(int(path[HOPS])):
        history[h * 3], history[h * 3 + 1] = hops[h, HOP_QUEUE], hops[h, HOP_BYTES]
        history[h * 3 + 2] = hops[h, HOP_TIME]
