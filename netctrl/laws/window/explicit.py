"""MPCC's decision for one packet; compiled, without checks.

Arguments are floats but for numbers of flows and steps. The laws that wrap these check: `netctrl.mpc.explicit`.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.window.riccati import riccati_gain

_gain = njit(error_model="numpy")(riccati_gain)


@njit(cache=True, error_model="numpy", nogil=True)
def decide_window(queue: float, gain: float, fair_window: float, input_gain: float, flows: float, bdp: float) -> float:
    """W = clip(c − K Q, 0, P_BD), and at most c − (Q − (N − 1) P_BD)/B [byte].

    With K ≤ 1/B the queue's lower bound needs no term of its own for Q ≥ 0.
    """
    W = fair_window - gain * queue
    above = queue - (flows - 1) * bdp
    if above > 0.0:
        W = min(W, fair_window - above / input_gain)
    return min(max(W, 0.0), bdp)


@njit(cache=True, error_model="numpy", nogil=True)
def decide_for_queues(
    queue: np.ndarray, gain: float, fair_window: float, input_gain: float, flows: float, bdp: float
) -> np.ndarray:
    """`decide_window` of many queues, (n,), and one number of flows."""
    found = np.empty(len(queue))
    for i in range(len(queue)):
        found[i] = decide_window(queue[i], gain, fair_window, input_gain, flows, bdp)
    return found


@njit(cache=True, error_model="numpy", nogil=True)
def decide_from_table(
    queue: float, flows: int, gain: np.ndarray, fair_window: np.ndarray, input_gain: np.ndarray, bdp: float
) -> float:
    """`decide_window` of a `WindowTable`'s arrays; flows beyond the table take its last entry."""
    N = min(max(flows, 1), len(gain) - 1)
    return decide_window(queue, gain[N], fair_window[N], input_gain[N], N, bdp)


@njit(cache=True, error_model="numpy", nogil=True)
def decide_windows(
    queue: np.ndarray, flows: np.ndarray, gain: np.ndarray, fair_window: np.ndarray, input_gain: np.ndarray, bdp: float
) -> np.ndarray:
    """`decide_from_table` of many queues and flows, both (n,)."""
    found = np.empty(len(queue))
    for i in range(len(queue)):
        found[i] = decide_from_table(queue[i], flows[i], gain, fair_window, input_gain, bdp)
    return found


@njit(cache=True, error_model="numpy", nogil=True)
def riccati_gains(input_gain: np.ndarray, horizon: int, queue_weight: float, window_weight: float) -> np.ndarray:
    """K_P of many B, (n,)."""
    found = np.empty(len(input_gain))
    for i in range(len(input_gain)):
        found[i] = _gain(input_gain[i], horizon, queue_weight, window_weight)
    return found
