"""Steady-state Kalman filter of a model with noise, optionally with correlated state and output noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.errors import RiccatiStatus
from netctrl.model.io.matrix import dense_matrix
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare

__all__ = ["kalman_filter"]


def kalman_filter(A: Any, C: Any, W: Any, V: Any, S: Any = None) -> tuple[np.ndarray, DareSolution]:
    """Gain L of the steady-state one-step predictor x̂₊ = A x̂ + B u + L (y − C x̂ − D u), and its Riccati solution.

    x₊ = A x + B u + w, y = C x + D u + v, E ww' = W, E vv' = V, E wv' = S. With P the error's covariance (`X` of the
    solution), L = (A P C' + S)(C P C' + V)⁻¹: the dual of a regulator. A model in innovation form, w = K e and v = e,
    has P = 0 and L = K where A − K C is stable.

    Parameters
    ----------
    A, C : array_like, shapes (n, n), (p, n)
    W, V : array_like, shapes (n, n), (p, p)
        Symmetric to rounding.
    S : array_like, shape (n, p), optional
        Zero by default.

    Returns
    -------
    (ndarray of shape (n, p), DareSolution)
        L, NaN where there is no solution; look at `status`.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, entries that aren't finite, W or V not symmetric.
    """
    A, C = dense_matrix("A", A), dense_matrix("C", C)
    solution = solve_dare(A.T, C.T, W, V, S)
    if solution.status is RiccatiStatus.NO_SOLUTION:
        return np.full((len(A), len(C)), np.nan), solution
    return -solution.K.T, solution
