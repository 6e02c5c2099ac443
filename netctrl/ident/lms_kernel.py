"""Gradient steps of y = θ'φ, one sample at a time, compiled; nothing is checked here (`netctrl.ident.recursive`)."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["correct_lms", "energy"]


@njit(cache=True, error_model="numpy", inline="always")
def energy(phi: np.ndarray) -> float:
    """|φ|²."""
    total = 0.0
    for i in range(len(phi)):
        total += phi[i] * phi[i]
    return total


@njit(cache=True, error_model="numpy", inline="always")
def correct_lms(theta: np.ndarray, phi: np.ndarray, change: float) -> float:
    """θ ← θ + change φ in place, both (k,); gives |θ|² after it."""
    total = 0.0
    for i in range(len(theta)):
        theta[i] += change * phi[i]
        total += theta[i] * theta[i]
    return total
