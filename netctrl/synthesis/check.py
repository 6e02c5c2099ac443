"""What a controller achieves, by ways of its own: stability, cost, locality."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.errors import InvalidValue

__all__ = ["locality", "quadratic_cost", "spectral_radius", "steady_covariance"]


def spectral_radius(A: Any) -> float:
    """Greatest modulus of the eigenvalues of a square matrix; 0 of an empty one."""
    A = _square("A", A)
    return float(np.abs(np.linalg.eigvals(A)).max()) if A.size else 0.0


def steady_covariance(A: Any, W: Any) -> np.ndarray:
    """Y = A Y A' + W, the covariance that x(n+1) = A x(n) + w(n) settles at, (n, n).

    By doubling: Y ← Y + A Y A', A ← A², which keeps Y symmetric and positive semidefinite.

    Raises
    ------
    InvalidValue
        A is not stable: there is no such covariance.
    """
    A, W = _square("A", A), _square("W", W)
    _check_shape("W", W, A.shape)
    radius = spectral_radius(A)
    if not radius < 1.0:
        raise InvalidValue("A", f"spectral radius {radius:.9g}", "a stable matrix, with a spectral radius below 1")
    Y = W.copy()
    while np.linalg.norm(A) > 1e-18:
        Y = Y + A @ Y @ A.T
        A = A @ A
    return Y


def quadratic_cost(A: Any, B: Any, K: Any, Q: Any, R: Any, W: Any) -> float:
    """lim E x'Qx + u'Ru of u = K x on x(n+1) = A x + B u + w, E ww' = W: by the steady covariance, not by a Riccati
    equation.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, or a K that doesn't stabilise.
    """
    A, B, R = _square("A", A), _dense("B", B), _square("R", R)
    n, m = len(A), len(R)
    K, Q, W = _dense("K", K), _dense("Q", Q), _dense("W", W)
    for name, M, shape in (("B", B, (n, m)), ("K", K, (m, n)), ("Q", Q, (n, n)), ("W", W, (n, n))):
        _check_shape(name, M, shape)
    radius = spectral_radius(A + B @ K)
    if not radius < 1.0:
        raise InvalidValue("K", f"a gain with which A + BK has the spectral radius {radius:.9g}", "one that stabilises")
    Y = steady_covariance(A + B @ K, W)
    return float(np.sum((Q + K.T @ R @ K) * Y))


def locality(K: Any, tolerance: float = 0.0) -> np.ndarray:
    """(m, n) where the entries of a gain exceed `tolerance` in magnitude: who listens to whom."""
    return np.abs(_dense("K", K)) > tolerance


def _dense(name: str, value: Any) -> np.ndarray:
    takes = "a matrix of finite real numbers"
    try:
        value = value.toarray() if hasattr(value, "toarray") else value
        if np.iscomplexobj(value):
            raise TypeError("complex entries")
        M = np.asarray(value, dtype=float)
    except (TypeError, ValueError):  # ragged lists have no dtype
        raise InvalidValue(name, value, takes) from None
    if M.ndim != 2:
        raise InvalidValue(name, f"shape {M.shape}", takes)
    if not np.isfinite(M).all():
        raise InvalidValue(name, "an entry that is not finite", takes)
    return M


def _square(name: str, value: Any) -> np.ndarray:
    M = _dense(name, value)
    if M.shape[0] != M.shape[1]:
        raise InvalidValue(name, f"shape {M.shape}", "a square matrix")
    return M


def _check_shape(name: str, M: np.ndarray, shape: tuple[int, int]) -> None:
    if M.shape != shape:
        raise InvalidValue(name, f"shape {M.shape}", f"shape {shape}")
