"""Tracking laws: the Kalman filter, the regulator with integral action, and the loop that they close around a plant.

From references to outputs and inputs, and at the plant's input.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, RiccatiStatus, checked_kind
from netctrl.model.io.matrix import dense, dense_matrix
from netctrl.model.law import LqiLaw, TrackingLaw
from netctrl.model.statespace import StateSpace
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare

_NO_GAIN = 1e-9


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


def integral_regulator(
    plant: StateSpace, tracked: Any, *, integral_weight: Any = 1.0, input_weight: Any = 0.01
) -> tuple[np.ndarray, np.ndarray, DareSolution]:
    """Gains K and K_z of u = −K x − K_z z, z₊ = z + W (r − y), that minimise Σ z'Q_z z + u'R u.

    The regulator of [x; z]: A_a = [[A, 0], [−W C, I]], B_a = [[B], [−W D]]. In steady state z is constant, so W y = W
    r, for the plant and for any other with which the loop is stable.

    Parameters
    ----------
    plant : StateSpace
        Discrete time; n states, m inputs, p outputs.
    tracked : array_like, shape (q, p)
        W, the combinations of outputs that follow the reference; q at most m.
    integral_weight, input_weight : float or array_like
        Q_z (q, q), R (m, m); a number is a multiple of the identity.

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
    Q[n:, n:] = _weight("integral_weight", integral_weight, q)
    solution = solve_dare(augmented, np.vstack([B, -W @ D]), Q, _weight("input_weight", input_weight, m))
    return -solution.K[:, :n], -solution.K[:, n:], solution


def _weight(name: str, value: Any, size: int) -> np.ndarray:
    return float(value) * np.eye(size) if np.ndim(value) == 0 else dense_matrix(name, value, (size, size))


class TrackingLoop(NamedTuple):
    """Closed loop of n + n_c states; p outputs, m inputs."""

    response: StateSpace
    """From references (p) to outputs (p): the complementary sensitivity T."""
    effort: StateSpace
    """From references (p) to inputs (m)."""
    difference: StateSpace
    """S − T, from a disturbance w (m) at the plant's input to 2u + w."""
    controller: np.ndarray
    """(n_c, n_c) the controller's own dynamics."""


def tracking_loop(plant: StateSpace, law: TrackingLaw) -> TrackingLoop:
    """Close the loop around a plant, which may differ from the law's model.

    Source: CONNET paper, eq. (4), for any plant and with the integrator of an LqiLaw.
    """
    checked_kind("plant", plant, StateSpace)
    A, B, C, D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
    n, m = B.shape
    p, states = len(C), len(law.A)
    driven = law.A - law.L @ law.C, law.B - law.L @ law.D
    F = np.hstack([law.K, law.integral_gain]) if isinstance(law, LqiLaw) else law.K
    q = F.shape[1] - states
    own = np.zeros((states + q, states + q))
    own[:states, :states] = driven[0]
    own[:states] -= driven[1] @ F
    from_y, from_r = np.zeros((2, states + q, p))
    from_y[:states] = law.L
    if isinstance(law, LqiLaw):
        own[states:, states:] = np.eye(q)
        from_y[states:], from_r[states:] = -law.W, law.W
    else:
        from_r[:states] = -law.L
    # u = −F ξ, y = C x + D (u + w)
    closed = np.block([[A, -B @ F], [from_y @ C, own - from_y @ D @ F]])
    reference = np.vstack([np.zeros((n, p)), from_r])
    output = np.hstack([C, -D @ F])
    command = np.hstack([np.zeros((m, n)), -F])
    disturbed = np.vstack([B, from_y @ D])
    return TrackingLoop(
        response=StateSpace(closed, reference, output, np.zeros((p, p)), plant.dt),
        effort=StateSpace(closed, reference, command, np.zeros((m, p)), plant.dt),
        difference=StateSpace(closed, disturbed, 2.0 * command, np.eye(m), plant.dt),
        controller=own,
    )
