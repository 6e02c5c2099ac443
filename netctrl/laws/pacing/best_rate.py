"""The pacing paper's optimisation problem and its minimiser; compiled, without checks.

RTTs and rates are in any units that all arguments share: each term of the cost is a ratio.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit


@njit(cache=True, error_model="numpy", inline="always")
def predicted_rtt(values: np.ndarray, theta: int, phi: int, k: int) -> float:
    """Eq. (1), θ'φ, of θ = (a_1 .. a_p, b_1 .. b_q) and φ = (ℓ(n−1) .. ℓ(n−p), r(n−1) .. r(n−q)), each k = p + q long,
    that begin at these places of `values`."""
    total = 0.0
    for i in range(k):
        total += values[theta + i] * values[phi + i]
    return total


@njit(cache=True, error_model="numpy", inline="always")
def best_rate(
    psi: float, xi: float, b1: float, rtt_at_zero: float, mean_rtt: float, variance: float, mean_rate: float
) -> float:
    """Eq. (7): where the cost is least, without the bounds that eq. (3) asks for."""
    pull = (xi / mean_rate - b1 / mean_rtt) * variance / (2.0 * psi * b1)
    return (pull + mean_rtt - rtt_at_zero) / b1


@njit(cache=True, error_model="numpy", inline="always")
def clipped(rate: float, least: float, most: float) -> float:
    """The bounds of eq. (3): the cost is convex in r, so its least within them is the nearest to the free one."""
    return min(max(rate, least), most)


@njit(cache=True, error_model="numpy")
def freeze_deviation(psi: float, xi: float, b1: float, mean_rtt: float, mean_rate: float) -> float:
    """d* of d ← d² / d*, d* = 2ψ b_1 / (ξ/μ_r − b_1/μ_ℓ): below it the law freezes. inf where it always does."""
    wish, cost = xi / mean_rate, b1 / mean_rtt
    # Where they are equal but for rounding, nothing pulls.
    return 2.0 * psi * abs(b1) / (wish - cost) if wish - cost > 1e-12 * wish else np.inf
