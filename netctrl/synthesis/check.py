"""Stability and steady covariance of a closed loop, computed independently of its synthesis."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.io.matrix import dense_matrix, square_matrix


def spectral_radius(A: Any) -> float:
    """Greatest modulus of the eigenvalues of a square matrix; 0 of an empty one."""
    A = square_matrix("A", A)
    return float(np.abs(np.linalg.eigvals(A)).max()) if A.size else 0.0


def steady_covariance(A: Any, W: Any) -> np.ndarray:
    """Covariance Y = A Y A' + W, (n, n), to which x(n+1) = A x(n) + w(n) converges.

    Doubling, Y ← Y + A Y A' and A ← A², keeps Y symmetric and positive semidefinite.

    Raises
    ------
    InvalidValue
        A is not stable, so no such covariance exists.
    """
    A = square_matrix("A", A)
    W = dense_matrix("W", W, A.shape)
    radius = spectral_radius(A)
    if not radius < 1.0:
        raise InvalidValue("A", f"spectral radius {radius:.9g}", "a stable matrix, with a spectral radius below 1")
    Y = W.copy()
    while np.linalg.norm(A) > 1e-18:
        Y = Y + A @ Y @ A.T
        A = A @ A
    return Y
