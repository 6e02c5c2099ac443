"""Gradient steps of y = θ'φ, one sample at a time; compiled, without checks (`netctrl.laws.tracking.estimators`)."""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit

__all__ = ["correct_lms", "energy"]


@njit(cache=True, error_model="numpy", inline="always")
def energy(values: np.ndarray, at: int, k: int) -> float:
    """|φ|² of φ = values[at : at + k]; places instead of slices, which cost as much as the sum."""
    total = 0.0
    for i in range(at, at + k):
        total += values[i] * values[i]
    return total


@njit(cache=True, error_model="numpy", inline="always")
def correct_lms(values: np.ndarray, theta: int, phi: int, k: int, change: float) -> float:
    """θ ← θ + change φ in place, for θ and φ that begin at these places of `values`; gives |θ|² after it."""
    total = 0.0
    for i in range(k):
        after = values[theta + i] + change * values[phi + i]
        values[theta + i] = after
        total += after * after
    return total
