"""MPCC's gain: the scalar Riccati recursion over a horizon, with a single division."""

from __future__ import annotations


def riccati_gain(B: float, horizon: int, queue_weight: float, window_weight: float) -> float:
    """K_P: P - 1 times s = W_Q + s W_R/(W_R + B^2 s), from W_Q on, then B s/(W_R + B^2 s); W_R is above 0.

    With s = W_Q p/q and t = B^2 W_Q/W_R: p, q = q + (1 + t) p, q + t p, and K_P = t p/((q + t p) B).
    """
    if B == 0.0:
        return 0.0
    t = min(B * B * (queue_weight / window_weight), 1e100)  # from 1e16 on K_P is 1/B
    p = 1.0
    q = 1.0
    for _ in range(horizon - 1):
        before = p
        p = q + (1.0 + t) * before
        q = q + t * before
        if p > 1e200:  # only their ratio counts
            p *= 1e-200
            q *= 1e-200
    return t * p / ((q + t * p) * B)
