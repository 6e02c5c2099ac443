"""Stages of an MPC problem: augmented model, regulator without bounds, and plans rolled out under it.

With z_k = [x_k; u_{k−1} where changes have a cost] the cost of a stage is z'Qz + 2 z'N u + u'R u, and z_{k+1} = A z_k +
B u_k. u_k = v_k − K_k z_k is a change of variables: with a K that stabilises the model, no powers of an unstable A
appear.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.io.matrix import dense
from netctrl.mpc.problem import MpcProblem

_EPS = float(np.finfo(float).eps)
_TAME = 1e2  # growth of a mode over the horizon below which powers of the model lose few digits


class Stages(NamedTuple):
    """Model and weights in z and u, in the plant's units."""

    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    N: np.ndarray
    T: np.ndarray
    """Terminal weight of z_P."""


class Prediction(NamedTuple):
    """Prediction affine in θ = z_0 and V = (v_0 .. v_{P−1}): z_k = Phi θ + Gamma V, u_k = Psi θ + L V."""

    Phi: np.ndarray
    """(P + 1, q, q)"""
    Gamma: np.ndarray
    """(P + 1, q, P m)"""
    Psi: np.ndarray
    """(P, m, q)"""
    L: np.ndarray
    """(P, m, P m)"""


def stages(problem: MpcProblem) -> Stages:
    """Stages of the problem; a weight on outputs becomes one on states and inputs."""
    A, B = dense(problem.plant.A), dense(problem.plant.B)
    C, D, Qy = dense(problem.plant.C), dense(problem.plant.D), problem.output_weight
    made = Stages(
        A,
        B,
        problem.state_weight + C.T @ Qy @ C,
        problem.input_weight + D.T @ Qy @ D,
        C.T @ Qy @ D,
        problem.terminal_weight,
    )
    return _with_last_input(made, problem.rate_weight) if problem.has_rate else made


class Regulator(NamedTuple):
    """Gains of u = v − K z, and the cost of v: without bounds Σ v_k'M_k v_k + θ'X_0 θ, M_k = R + B'X_{k+1} B."""

    K: np.ndarray
    """(P, m, q)"""
    price: np.ndarray
    """(P, m) diagonals of 2 M_k."""
    needed: bool
    """Whether the model, or the condensed Hessian of the inputs themselves, loses digits over the horizon."""


def regulator(problem: MpcProblem) -> Regulator:
    """Solution of the problem without bounds.

    Where a growing mode has no weight but affects a bounded state, the gains use a weight on these states.

    Raises
    ------
    InvalidValue
        A direction of the inputs without cost: the minimum would not be unique.
    """
    made, P = stages(problem), problem.horizon
    K, price = _riccati(made, P, check=True)
    if growth(made.A - made.B @ K[0], P) > _TAME:
        seen, _ = _riccati(made._replace(Q=made.Q + _of_bounds(problem, made)), P, check=False)
        if growth(made.A - made.B @ seen[0], P) <= _TAME:
            K = seen
    return Regulator(K, price, growth(made.A, P) > _TAME or not _well_conditioned(problem, made))


def predicted(made: Stages, gains: np.ndarray) -> Prediction:
    """States and inputs under u = v − K z."""
    P, m, q = gains.shape
    Phi, Gamma = np.zeros((P + 1, q, q)), np.zeros((P + 1, q, P * m))
    Psi, L = np.zeros((P, m, q)), np.zeros((P, m, P * m))
    Phi[0] = np.eye(q)
    for k in range(P):
        one = slice(k * m, (k + 1) * m)
        Psi[k], L[k] = -gains[k] @ Phi[k], -gains[k] @ Gamma[k]
        L[k, :, one] += np.eye(m)
        closed = made.A - made.B @ gains[k]
        Phi[k + 1], Gamma[k + 1] = closed @ Phi[k], closed @ Gamma[k]
        Gamma[k + 1, :, one] = made.B
    return Prediction(Phi, Gamma, Psi, L)


def _with_last_input(made: Stages, S: np.ndarray) -> Stages:
    n, m = made.B.shape
    none = np.zeros((n, m))
    return Stages(
        np.block([[made.A, none], [none.T, np.zeros((m, m))]]),
        np.vstack([made.B, np.eye(m)]),
        np.block([[made.Q, none], [none.T, S]]),
        made.R + S,
        np.vstack([made.N, -S]),
        np.block([[made.T, none], [none.T, np.zeros((m, m))]]),
    )


def _riccati(made: Stages, P: int, *, check: bool) -> tuple[np.ndarray, np.ndarray]:
    """Gains K_0 .. K_{P−1} and the diagonals of 2 M_k; X in Joseph's form, which stays positive semidefinite."""
    A, B, Q, R, N, X = made
    gains, price = np.zeros((P, B.shape[1], len(A))), np.empty((P, B.shape[1]))
    for k in reversed(range(P)):
        M = R + B.T @ X @ B
        if check:
            # Check M relative to the size of its summands: singular to rounding counts as singular.
            size = np.diag(np.abs(R) + np.abs(B).T @ np.abs(X) @ np.abs(B))
            unit = np.sqrt(np.where(size > 0.0, size, 1.0))
            least = float(np.linalg.eigvalsh(M / unit[:, None] / unit).min())
            if not least > 16.0 * len(M) * _EPS:
                takes = "weights that give each sequence of inputs a cost, such as an input_weight above 0"
                raise InvalidValue("input_weight", f"a Hessian with an eigenvalue of {least:.3g}", takes)
        price[k] = 2.0 * np.diag(M)
        K = gains[k] = np.linalg.solve(M, B.T @ X @ A + N.T)
        closed = A - B @ K
        X = closed.T @ X @ closed + K.T @ R @ K + Q - K.T @ N.T - N @ K
        X = 0.5 * (X + X.T)
    return gains, price


def growth(A: np.ndarray, P: int) -> float:
    """Growth of the fastest mode over the horizon, independent of the states' units."""
    radius = float(np.abs(np.linalg.eigvals(A)).max(initial=0.0))
    return float(np.exp(min(P * np.log(max(radius, 1.0)), 700.0)))


def _well_conditioned(problem: MpcProblem, made: Stages) -> bool:
    """Whether the condensed Hessian of the inputs themselves keeps most of its digits."""
    P, (n, m) = problem.horizon, made.B.shape
    H, _ = cost(made, predicted(made, np.zeros((P, m, n))))
    size = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    return bool(np.linalg.eigvalsh(H / size[:, None] / size).min() > 1e-6)


def cost(made: Stages, by: Prediction) -> tuple[np.ndarray, np.ndarray]:
    """Terms H (P m, P m) and F (P m, q) of the cost ½ V'HV + (Fθ)'V, in the plant's units."""
    P, m, size = by.L.shape
    q = len(made.A)
    S = np.concatenate([by.Gamma[:-1], by.L], axis=1)
    at = np.concatenate([by.Phi[:-1], by.Psi], axis=1)
    W = np.block([[made.Q, made.N], [made.N.T, made.R]])
    weighed = (W @ S).reshape(P * (q + m), size)
    end = made.T @ by.Gamma[-1]
    H = S.reshape(P * (q + m), size).T @ weighed + by.Gamma[-1].T @ end
    F = weighed.T @ at.reshape(P * (q + m), q) + end.T @ by.Phi[-1]
    return H + H.T, 2.0 * F


def _of_bounds(problem: MpcProblem, made: Stages) -> np.ndarray:
    """Weights on bounded states: at its bound a state costs as much as the widest inputs; 1 if those cost nothing."""
    wide = widest(problem.state_lower, problem.state_upper)
    reach = widest(problem.input_lower, problem.input_upper)
    price = float(np.diag(made.R)[: len(reach)] @ reach**2) or 1.0
    weights = np.zeros(len(made.A))
    weights[: len(wide)] = np.where(wide > 0.0, price / np.where(wide > 0.0, wide, 1.0) ** 2, 0.0)
    return np.diag(weights)


def widest(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Larger modulus of both bounds, 0 without bounds."""
    return np.maximum(*(np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)))


def roll_out(made: Stages, gains: np.ndarray, theta: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs u_k = v_k − K_k z_k (P, m) and states z_0 .. z_P (P + 1, q) by the model, each step to rounding."""
    inputs, z = np.empty_like(V), np.empty((len(V) + 1, len(theta)))
    z[0] = theta
    A, B = made.A, made.B
    for k, v in enumerate(V):
        u = inputs[k] = v - gains[k] @ z[k]
        z[k + 1] = A @ z[k] + B @ u
    return inputs, z
