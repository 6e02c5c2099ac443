"""MPCC, one acknowledgement at a time: the closed form of its quadratic program.

W = clip(c − K(N) Q, 0, P_BD), with the fair window c = min(R_out/(R_in N), 1) P_BD and the P-step gain of the scalar
Riccati recursion. Source: the MPCC thesis, (3.4) to (3.7), Algorithm 1, (A.1).
"""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.window.explicit import riccati_gain
from netctrl.laws.window.interface import (
    BASE_RTT,
    BDP,
    HOP_FLOWS,
    HOP_QUEUE,
    HOPS,
    LINE_RATE,
    OWN,
    RATES_AT,
    WINDOW,
    Acknowledged,
)

__all__ = ["DELAYED", "DELAY_FREE", "FEED_FORWARD", "HOLD", "fair_state", "mpcc", "predicted_queue"]

DELAY_FREE, DELAYED, FEED_FORWARD, HOLD = range(4)
VARIANT, PACKET, STEP_WINDOW, HORIZON, QUEUE_WEIGHT, WINDOW_WEIGHT = range(6)
"""Of the parameters: variant, packet and W of (A.1) [byte] (0: the flow's own, and no table), horizon, weights."""
FED = OWN  # acknowledgements so far


@njit(cache=True, error_model="numpy", nogil=True)
def predicted_queue(queue: float, B: float, fair: float, history: np.ndarray, newest: int, steps: int) -> float:
    """Q̄ = Q + B Σ (W(k − i) − c), oldest first, never below 0 on its way (3.7).

    Parameters
    ----------
    history : ndarray, shape (H,)
        Ring of past windows [byte].
    newest : int
        Its entry of W(k − 1).
    steps : int
        τ, at most H.
    """
    H = len(history)
    for i in range(steps - 1, -1, -1):
        queue = max(queue + B * (history[(newest - i) % H] - fair), 0.0)
    return queue


@njit(cache=True, error_model="numpy", nogil=True)
def fair_state(path: np.ndarray, hops: np.ndarray) -> tuple[float, int, float]:
    """(queue [byte], flows, R_out/(R_in N)) of the hop with the longest queue (Algorithm 1).

    Where all queues are empty, of the hop with the least fair share. The thesis leaves N = 1 there, so that each new
    round would start from P_BD.
    """
    best, least, share = -1, -1, np.inf
    queue = 0
    for h in range(len(hops)):
        each = path[RATES_AT + h] / (path[LINE_RATE] * max(hops[h, HOP_FLOWS], 1))
        if each < share:
            least, share = h, each
        if hops[h, HOP_QUEUE] > queue:
            best, queue = h, hops[h, HOP_QUEUE]
    if best < 0:
        return 0.0, max(hops[least, HOP_FLOWS], 1), share
    flows = max(hops[best, HOP_FLOWS], 1)
    return float(queue), flows, path[RATES_AT + best] / (path[LINE_RATE] * flows)


@njit(cache=True, error_model="numpy", nogil=True)
def mpcc(
    parameters: np.ndarray,
    paths: np.ndarray,
    gains: np.ndarray,
    state: np.ndarray,
    history: np.ndarray,
    seen: Acknowledged,
    hops: np.ndarray,
) -> None:
    """Set the window from an acknowledgement's telemetry.

    Parameters
    ----------
    parameters : ndarray
        Variant, packet and W of (A.1), horizon, weights.
    paths : ndarray, shape (C, ...)
        P_BD and D stand in the columns `BDP` and `BASE_RTT`.
    gains : ndarray, shape (C, N + 1)
        K of N flows for each kind of path, where W of (A.1) is given; the last stands for all above.
    """
    path = paths[seen.path]
    queue, flows, share = fair_state(path, hops[: int(path[HOPS])])
    P_BD = path[BDP]
    c = min(share, 1.0) * P_BD
    variant, packet, tabled = int(parameters[VARIANT]), parameters[PACKET], parameters[STEP_WINDOW] > 0.0
    if variant == FEED_FORWARD or (variant == HOLD and queue == 0.0):
        if variant == FEED_FORWARD:
            state[WINDOW] = max(c, 1.0)
        return
    # (A.1): in a round trip come W/packet acknowledgements. At less than a packet it would be none.
    step_window = parameters[STEP_WINDOW] if tabled else max(state[WINDOW], packet)
    B = packet * path[BASE_RTT] / step_window * flows * path[LINE_RATE] / (8e9 * P_BD)
    if variant == DELAYED:
        fed = int(state[FED])
        steps = min(int(step_window / packet), fed, len(history))
        queue = predicted_queue(queue, B, c, history, fed - 1, steps)
    if tabled:
        K = gains[seen.path, min(flows, gains.shape[1] - 1)]
    else:
        K = riccati_gain(B, int(parameters[HORIZON]), parameters[QUEUE_WEIGHT], parameters[WINDOW_WEIGHT])
    # 1 byte: a sender with nothing under way may send one packet, else it would never hear again.
    state[WINDOW] = min(max(c - K * queue, 1.0), P_BD)
    if variant == DELAYED:
        history[int(state[FED]) % len(history)] = state[WINDOW]
        state[FED] += 1.0
