"""TIMELY, one completion event at a time. Source: Mittal et al., SIGCOMM 2015, Algorithm 1.

Patched: Zhu et al., CoNEXT 2016, Algorithm 2: the rate follows the round trip itself where its gradient is small.
"""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.window.interface import BASE_RTT, LINE_RATE, OWN, RATE, Acknowledged

__all__ = ["timely"]

PATCHED, SMOOTHING, DECREASE, LOW, HIGH, INCREASE, SEGMENT, FAST_AFTER = range(8)
"""Of the parameters; T_low and T_high [ns], delta [bit/s]."""
BEFORE, DIFFERENCE, FALLS, PENDING = range(OWN, OWN + 4)

_MIN_SHARE = 1e-3  # of line rate; a rate of 0 would never see another round trip


@njit(cache=True, error_model="numpy", nogil=True)
def timely(
    parameters: np.ndarray,
    paths: np.ndarray,
    gains: np.ndarray,
    state: np.ndarray,
    history: np.ndarray,
    seen: Acknowledged,
    hops: np.ndarray,
) -> None:
    """Set the rate once a segment, from the round trip of its last packet."""
    state[PENDING] += seen.newly
    if state[PENDING] < parameters[SEGMENT]:
        return
    state[PENDING] = 0.0
    path = paths[seen.path]
    base, line, rtt = path[BASE_RTT], path[LINE_RATE], float(seen.rtt)
    if state[BEFORE] == 0.0:
        state[BEFORE] = rtt
    state[DIFFERENCE] += parameters[SMOOTHING] * (rtt - state[BEFORE] - state[DIFFERENCE])
    state[BEFORE] = rtt
    gradient = state[DIFFERENCE] / base
    low, high, beta, delta = parameters[LOW], parameters[HIGH], parameters[DECREASE], parameters[INCREASE]
    rate = min(state[RATE], line)
    if rtt < low:
        rate += delta
        state[FALLS] = 0.0
    elif rtt > high:
        rate *= 1.0 - beta * (1.0 - high / rtt)
        state[FALLS] = 0.0
    elif parameters[PATCHED] != 0.0:
        w = min(max(2.0 * gradient + 0.5, 0.0), 1.0)
        rate = delta * (1.0 - w) + rate * (1.0 - beta * w * (rtt - low) / low)
    elif gradient <= 0.0:
        state[FALLS] += 1.0
        rate += delta * (5.0 if state[FALLS] >= parameters[FAST_AFTER] else 1.0)
    else:
        rate *= 1.0 - beta * min(gradient, 1.0)
        state[FALLS] = 0.0
    state[RATE] = min(max(rate, _MIN_SHARE * line), line)
