"""Centralized control: linear-quadratic regulator on a delayed state, measured exactly or with noise."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import scipy.linalg as sl

from netctrl.core.errors import InvalidValue, RiccatiStatus, checked_whole
from netctrl.model.io.display import Shown
from netctrl.model.io.matrix import ROUNDING, covariance, dense_matrix, square_matrix
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DelayedRegulator(Shown):
    """Regulator u(n) = K x̂(n), with x̂(n) predicted from measurements `delay` samples old and the inputs since."""

    K: np.ndarray
    """(m, n) gain of the state feedback."""
    L: np.ndarray
    """(n, p) gain of the filter, x̂ ← x̂ + L (y − C x̂); the identity where the state is measured exactly."""
    delay: int
    """Round trip to the controller [samples]."""
    cost: float
    """lim E x'Qx + u'Ru; NaN where `regulator` or `filter` isn't STABILISING: its `remedy` says what to change."""
    error: np.ndarray
    """(n, n) covariance of x − x̂."""
    regulator: DareSolution
    """Riccati equation of the state feedback."""
    filter: DareSolution | None
    """None where the state is measured exactly."""

    def __post_init__(self) -> None:
        for array in (self.K, self.L, self.error):
            array.setflags(write=False)


def delayed_regulator(
    A: Any, B: Any, Q: Any, R: Any, W: Any, *, delay: int = 0, C: Any = None, V: Any = None
) -> DelayedRegulator:
    """Linear-quadratic regulator whose measurements arrive `delay` samples late, optionally with noise.

        x(n+1) = A x + B u + w,  y = C x + v,  E ww' = W,  E vv' = V
        u(n) = K x̂(n),  x̂(n) = A^d x̂(n − d) + Σ_{i<d} A^i B u(n − 1 − i)

    By the separation principle, K is the regulator's gain. With the filter's covariances S before and Σ after a
    measurement (without noise: W and 0),

        cost = tr P A^d (S − Σ) A^d' + tr Q E,    E = A^d Σ A^d' + Σ_{i<d} A^i W A^i'.

    Parameters
    ----------
    A, B, Q, R : array_like or sparse, shapes (n, n), (n, m), (n, n), (m, m)
        Dynamics and weights, as in `netctrl.synthesis.riccati.dare.solve_dare`.
    W : array_like or sparse, shape (n, n)
        Covariance of the disturbance, positive semidefinite.
    delay : int
        d, round trip between plant and controller [samples].
    C, V : array_like or sparse, shapes (p, n), (p, p), optional
        Measurement and the covariance of its noise; without them the state is measured exactly.

    Returns
    -------
    DelayedRegulator

    Raises
    ------
    InvalidValue
        Shapes that don't fit, a delay that isn't a whole number of at least 0 or over which A overflows, C without V,
        or a W or V that isn't a covariance.

    Examples
    --------
    Two samples of delay add two variances of the disturbance to the cost:

    >>> import netctrl
    >>> from netctrl.synthesis.riccati.delayed import delayed_regulator
    >>> one = [[1.0]]
    >>> [round(delayed_regulator(one, one, one, one, W=one, delay=d).cost, 3) for d in (0, 2)]
    [1.618, 3.618]

    References
    ----------
    HFTraC paper, Appendix B (whose x' is x̂). For a network of controlled links A^i H = H, and the cost is that of GOD
    plus d Σ mu sigma².
    """
    delay = checked_whole("delay", delay, "a whole number of samples of at least 0", at_most=inf)
    if (C is None) != (V is None):
        raise InvalidValue("C and V", "one of them", "both, or neither where the state is measured exactly")
    regulator = solve_dare(A, B, Q, R)
    A, Q = square_matrix("A", A), square_matrix("Q", Q)
    n = len(A)
    W = covariance("W", W, n, below=n * ROUNDING)
    S, after, L, filtered = W, np.zeros((n, n)), np.eye(n), None
    if C is not None:
        C = dense_matrix("C", C, (None, n))
        V = covariance("V", V, len(C), below=len(C) * ROUNDING)
        filtered = solve_dare(A.T, C.T, W, V)
        S = filtered.X
        L = np.full((n, len(C)), np.nan)
        if filtered.status is not RiccatiStatus.NO_SOLUTION:
            L = sl.solve(C @ S @ C.T + V, C @ S, assume_a="sym").T
        after = S - L @ C @ S
    power, error = _over_delay(A, W, delay)
    if not (np.isfinite(power).all() and np.isfinite(error).all()):
        radius = float(np.abs(np.linalg.eigvals(A)).max())
        takes = f"a shorter delay, over which A, of spectral radius {radius:.6g}, doesn't overflow"
        raise InvalidValue("delay", delay, takes)
    error = error + power @ after @ power.T
    stable = all(each is None or each.status is RiccatiStatus.STABILISING for each in (regulator, filtered))
    cost = float(np.sum(regulator.X * (power @ (S - after) @ power.T)) + np.sum(Q * error)) if stable else np.nan
    return DelayedRegulator(regulator.K, L, delay, cost, error, regulator, filtered)


def _over_delay(A: np.ndarray, W: np.ndarray, delay: int) -> tuple[np.ndarray, np.ndarray]:
    """A^d and Σ_{i<d} A^i W A^i' by squaring, with some log2(d) products; not finite where they overflow."""
    power, total = np.eye(len(A)), np.zeros_like(W)
    square, part = A, W
    with np.errstate(over="ignore", invalid="ignore"):
        while delay:
            if delay & 1:
                total, power = total + power @ part @ power.T, power @ square
            part, square, delay = part + square @ part @ square.T, square @ square, delay >> 1
    return power, total
