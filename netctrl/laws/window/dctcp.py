"""DCTCP, one acknowledgement at a time. Source: Alizadeh et al., SIGCOMM 2010, (1), (2) and section 3.1."""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.window.interface import OWN, WINDOW, Acknowledged

__all__ = ["dctcp"]

GAIN, PAYLOAD, SLOW_START = range(3)
"""Of the parameters: g, bytes of a full packet, whether it starts slowly."""
ALPHA, ACKNOWLEDGED, MARKED, WINDOW_END, REDUCED, STARTED = range(OWN, OWN + 6)


@njit(cache=True, error_model="numpy", nogil=True)
def dctcp(
    parameters: np.ndarray,
    paths: np.ndarray,
    gains: np.ndarray,
    state: np.ndarray,
    history: np.ndarray,
    seen: Acknowledged,
    hops: np.ndarray,
) -> None:
    """α ← (1 − g) α + g F once a window; W ← W (1 − α/2) at most once a window; else TCP's growth."""
    packet = parameters[PAYLOAD]
    if state[STARTED] == 0.0:
        # alpha = 1: the first mark halves the window, as for TCP.
        state[STARTED], state[ALPHA], state[WINDOW_END] = 1.0 + parameters[SLOW_START], 1.0, seen.next_byte
    state[ACKNOWLEDGED] += seen.newly
    if seen.marked:
        state[MARKED] += seen.newly
        state[STARTED] = 1.0
    if seen.una > state[WINDOW_END]:
        if state[ACKNOWLEDGED] > 0.0:
            F = state[MARKED] / state[ACKNOWLEDGED]
            state[ALPHA] += parameters[GAIN] * (F - state[ALPHA])
        state[ACKNOWLEDGED] = state[MARKED] = 0.0
        state[WINDOW_END] = seen.next_byte
    if seen.lost or (seen.marked and seen.una > state[REDUCED]):
        state[WINDOW] *= 0.5 if seen.lost else 1.0 - 0.5 * state[ALPHA]
        state[REDUCED] = seen.next_byte
    elif not seen.marked and seen.newly > 0:
        state[WINDOW] += seen.newly if state[STARTED] == 2.0 else packet * seen.newly / state[WINDOW]
    state[WINDOW] = max(state[WINDOW], packet)
