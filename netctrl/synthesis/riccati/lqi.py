"""Regulators with integral action: outputs follow a reference whatever the model's gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_kind
from netctrl.model.io.matrix import dense, dense_matrix
from netctrl.model.statespace import StateSpace
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare

__all__ = ["integral_regulator"]

_NO_GAIN = 1e-9


def integral_regulator(
    plant: StateSpace, tracked: Any, *, integral_weight: Any = 1.0, input_weight: Any = 0.01, state_weight: Any = None
) -> tuple[np.ndarray, np.ndarray, DareSolution]:
    """Gains K and K_z of u = −K x − K_z z, z₊ = z + W (r − y), that minimise Σ z'Q_z z + x'Q x + u'R u.

    The regulator of [x; z]: A_a = [[A, 0], [−W C, I]], B_a = [[B], [−W D]]. In steady state z is constant, so W y = W
    r, for the plant and for any other with which the loop is stable.

    Parameters
    ----------
    plant : StateSpace
        Discrete time; n states, m inputs, p outputs.
    tracked : array_like, shape (q, p)
        W, the combinations of outputs that follow the reference; q at most m.
    integral_weight, input_weight, state_weight : float or array_like
        Q_z (q, q), R (m, m), Q (n, n); a number is a multiple of the identity. Q is zero by default.

    Returns
    -------
    (ndarray (m, n), ndarray (m, q), DareSolution)
        K, K_z and the solution of their Riccati equation: check its `status`.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, continuous time, or combinations that the inputs don't move in steady state: W G(1)
        lacks full row rank.
    """
    if checked_kind("plant", plant, StateSpace).dt <= 0.0:
        raise InvalidValue("plant", "continuous time", "a discrete-time model, with a sampling interval dt > 0")
    A, B, C, D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
    W = dense_matrix("tracked", tracked, (None, len(C)))
    n, m, q = len(A), B.shape[1], len(W)
    # W (C (I - A)^-1 B + D) has full row rank iff this matrix has; A may contain integrators.
    system = np.block([[A - np.eye(n), B], [W @ C, W @ D]])
    sizes = np.linalg.svd(
        system / np.linalg.norm(system, axis=1, keepdims=True).clip(np.finfo(float).tiny), compute_uv=False
    )
    if q > m or sizes[min(n + q, n + m) - 1] <= _NO_GAIN * sizes[0]:
        takes = f"at most {m} combinations that the {m} input{'s' * (m > 1)} can move independently in steady state"
        raise InvalidValue("tracked", W.tolist(), takes)
    augmented = np.block([[A, np.zeros((n, q))], [-W @ C, np.eye(q)]])
    Q = np.zeros((n + q, n + q))
    Q[:n, :n] = _weight("state_weight", 0.0 if state_weight is None else state_weight, n)
    Q[n:, n:] = _weight("integral_weight", integral_weight, q)
    solution = solve_dare(augmented, np.vstack([B, -W @ D]), Q, _weight("input_weight", input_weight, m))
    return -solution.K[:, :n], -solution.K[:, n:], solution


def _weight(name: str, value: Any, size: int) -> np.ndarray:
    return float(value) * np.eye(size) if np.ndim(value) == 0 else dense_matrix(name, value, (size, size))
