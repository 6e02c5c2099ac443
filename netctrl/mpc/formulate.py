"""Linear MPC as a quadratic program of the measured state: condensed (inputs alone) or sparse (states as well)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.matrix import dense, is_sparse
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem

__all__ = ["condensed", "sparse"]

_EPS = float(np.finfo(float).eps)


class _Scaled(NamedTuple):
    """The problem in units in which inputs, rows and costs are of the order of 1."""

    H: np.ndarray
    """(P m, P m) of the inputs alone."""
    F: np.ndarray
    Phi: np.ndarray
    """(P n, n) x_1 .. x_P = Phi x_0 + Gamma v, in the states' units."""
    Gamma: np.ndarray
    input_scale: np.ndarray
    state_scale: np.ndarray
    cost_scale: float


class _Names(NamedTuple):
    inputs: list[str]
    states: list[str]
    slacks: list[str]
    eased: list[int]
    """Of all P n states, those whose bound is soft."""


def condensed(problem: MpcProblem) -> ParametricProgram:
    """The program in the inputs alone (and the slacks of soft bounds): small and dense, for active-set solvers.

    H = 2 (Γ'QΓ + R), F = 2 Γ'QΦ with x_1 .. x_P = Φ x_0 + Γ U. Γ holds powers of A: with an unstable plant and a long
    horizon they grow, and digits are lost that `sparse` keeps.

    Raises
    ------
    InvalidValue
        A direction of the inputs that costs nothing: the least cost would not be unique.

    Source: MPCC thesis (4.9) to (4.17); its (4.13) has g transposed (docs/mpcc.md).
    """
    n, P = problem.plant.n_states, problem.horizon
    scaled, names = _scaled(problem), _names(problem)
    H, g, F = _with_slacks(problem, scaled, scaled.H, scaled.F)
    eased, hard = names.eased, np.flatnonzero(np.tile(problem.hard, P))
    Gamma, eye = scaled.Gamma, np.eye(len(names.eased))
    rows = [np.hstack([Gamma[hard], np.zeros((len(hard), len(eased)))])]
    rows += [np.hstack([Gamma[eased], eye]), np.hstack([Gamma[eased], -eye])]
    labels = [*names.inputs, *names.slacks, *(names.states[r] for r in hard), *_soft(names)]
    E = np.zeros((len(labels), F.shape[1]))
    E[len(H) :, :n] = -scaled.Phi[[*hard, *eased, *eased]]
    low, high = _tiled(problem, scaled)
    free, zero = np.full(len(eased), np.inf), np.zeros(len(eased))
    lower = np.concatenate([low[0], zero, low[1][hard], low[1][eased], -free])
    upper = np.concatenate([high[0], free, high[1][hard], free, high[1][eased]])
    z = np.tile(scaled.state_scale, P)
    units = np.concatenate([np.tile(scaled.input_scale, P), z[eased], z[hard], z[eased], z[eased]])
    return ParametricProgram(H, g, F, np.vstack(rows), lower, upper, E, tuple(labels), P, *scaled[-3:], units)


def sparse(problem: MpcProblem) -> ParametricProgram:
    """The program in inputs and states, the model as equalities: large and sparse, for long horizons.

    The same problem in the same units as `condensed`, so the same inputs.
    """
    import scipy.sparse as sp

    n, m, P = problem.plant.n_states, problem.plant.n_inputs, problem.horizon
    scaled, names = _scaled(problem), _names(problem)
    H, F = _sparse_cost(problem, scaled)
    H, g, F = _with_slacks(problem, scaled, H, F)
    A = dense(problem.plant.A) / scaled.state_scale[:, None]
    B = dense(problem.plant.B) * scaled.input_scale / scaled.state_scale[:, None]
    # z_{k+1} - (A z_k + B v_k) = 0, in the states' units; the first row's A x_0 comes from θ.
    model = sp.eye_array(P * n) - sp.kron(sp.eye_array(P, k=-1), A * scaled.state_scale)
    eased = names.eased
    blocks = [[sp.kron(sp.eye_array(P), -B), model, sp.csr_array((P * n, len(eased)))]]
    if eased:
        pick, none, eye = (
            sp.eye_array(P * n, format="csr")[eased],
            sp.csr_array((len(eased), P * m)),
            sp.eye_array(len(eased)),
        )
        blocks += [[none, pick, eye], [none, pick, -eye]]
    labels = [*names.inputs, *names.states, *names.slacks, *(f"the model of {each}" for each in names.states)]
    labels += _soft(names)
    E = np.zeros((len(labels), F.shape[1]))
    E[len(F) : len(F) + n, :n] = A
    low, high = _tiled(problem, scaled)
    hard = np.tile(problem.hard, P)
    free, zero = np.full(len(eased), np.inf), np.zeros(P * n)
    lower = [low[0], np.where(hard, low[1], -np.inf), np.zeros(len(eased)), zero, low[1][eased], -free]
    upper = [high[0], np.where(hard, high[1], np.inf), free, zero, free, high[1][eased]]
    rows = sp.block_array(blocks, format="csc")
    z = np.tile(scaled.state_scale, P)
    units = np.concatenate([np.tile(scaled.input_scale, P), z, z[eased], z, z[eased], z[eased]])
    return ParametricProgram(
        H, g, F, rows, np.concatenate(lower), np.concatenate(upper), E, tuple(labels), P, *scaled[-3:], units
    )


def _scaled(problem: MpcProblem) -> _Scaled:
    n, P = problem.plant.n_states, problem.horizon
    Phi, Gamma = _prediction(problem)
    H, F = _condensed_cost(problem, Phi, Gamma)
    input_scale = _input_scale(problem, H)
    V = np.tile(input_scale, P)
    H, F, Gamma = H * V[:, None] * V, F * V[:, None], Gamma * V
    _check_definite(H)
    cost_scale = float(np.diag(H).max())
    state_scale = _state_scale(problem, Gamma[n:])
    Z = np.tile(state_scale, P)[:, None]
    return _Scaled(H / cost_scale, F / cost_scale, Phi[n:] / Z, Gamma[n:] / Z, input_scale, state_scale, cost_scale)


def _names(problem: MpcProblem) -> _Names:
    n, m, P = problem.plant.n_states, problem.plant.n_inputs, problem.horizon
    states = [f"state {i} at step {k + 1}" for k in range(P) for i in range(n)]
    eased = np.flatnonzero(np.tile(problem.soft, P)).tolist()
    inputs = [f"input {j} at step {k}" for k in range(P) for j in range(m)]
    return _Names(inputs, states, [f"slack of {states[r]}" for r in eased], eased)


def _soft(names: _Names) -> list[str]:
    return [f"{names.states[r]} (soft)" for r in (*names.eased, *names.eased)]


def _tiled(problem: MpcProblem, scaled: _Scaled) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Lower and upper bounds of all inputs and all states, scaled."""
    return tuple(
        (np.tile(inputs / scaled.input_scale, problem.horizon), np.tile(states / scaled.state_scale, problem.horizon))
        for inputs, states in (
            (problem.input_lower, problem.state_lower),
            (problem.input_upper, problem.state_upper),
        )
    )


def _prediction(problem: MpcProblem) -> tuple[np.ndarray, np.ndarray]:
    """Φ ((P + 1) n, n) and Γ ((P + 1) n, P m) of x_0 .. x_P = Φ x_0 + Γ U."""
    A, B, P = dense(problem.plant.A), dense(problem.plant.B), problem.horizon
    n, m = B.shape
    Phi, Gamma = np.zeros((P + 1, n, n)), np.zeros((P + 1, n, P, m))
    Phi[0] = np.eye(n)
    for k in range(P):
        Phi[k + 1] = A @ Phi[k]
        Gamma[k + 1] = (A @ Gamma[k].reshape(n, P * m)).reshape(n, P, m)
        Gamma[k + 1, :, k] = B
    return Phi.reshape((P + 1) * n, n), Gamma.reshape((P + 1) * n, P * m)


def _stage(problem: MpcProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q, R and N of x'Qx + u'Ru + 2x'Nu with the outputs' weight inside."""
    C, D, Qy = dense(problem.plant.C), dense(problem.plant.D), problem.output_weight
    return problem.state_weight + C.T @ Qy @ C, problem.input_weight + D.T @ Qy @ D, C.T @ Qy @ D


def _condensed_cost(problem: MpcProblem, Phi: np.ndarray, Gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H and F, in the plant's units."""
    n, P = problem.plant.n_states, problem.horizon
    Q, R, N = _stage(problem)
    T, first, last = problem.terminal_weight, slice(0, P * n), slice(P * n, None)
    weighed = _stagewise(Q, Gamma[first], P)
    H = Gamma[first].T @ weighed + Gamma[last].T @ T @ Gamma[last] + np.kron(np.eye(P), R)
    F = weighed.T @ Phi[first] + Gamma[last].T @ T @ Phi[last]
    if N.any():
        cross = _stagewise(N.T, Gamma[first], P)
        H, F = H + cross + cross.T, F + _stagewise(N.T, Phi[first], P)
    if problem.has_rate:
        H = H + np.kron(_differences(P), problem.rate_weight)
        F = np.hstack([F, -np.kron(np.eye(P, 1), problem.rate_weight)])
    return H + H.T, 2.0 * F


def _sparse_cost(problem: MpcProblem, scaled: _Scaled) -> tuple[Any, np.ndarray]:
    """H and F over inputs and states, scaled."""
    import scipy.sparse as sp

    n, m, P = problem.plant.n_states, problem.plant.n_inputs, problem.horizon
    Q, R, N = _stage(problem)
    inputs = sp.block_diag([R] * P)
    if problem.has_rate:
        inputs = inputs + sp.kron(_differences(P), problem.rate_weight)
    states = sp.block_diag([*[Q] * (P - 1), problem.terminal_weight])
    cross = sp.kron(sp.eye_array(P, k=1), N)  # x_k of the rows k = 1 .. P meets u_k
    units = sp.diags_array(np.concatenate([np.tile(scaled.input_scale, P), np.tile(scaled.state_scale, P)]))
    by = 2.0 / scaled.cost_scale
    H = (units @ sp.block_array([[inputs, cross.T], [cross, states]]) @ units * by).tocsc()
    F = np.zeros((P * (n + m), n + (m if problem.has_rate else 0)))
    F[:m, :n] = by * scaled.input_scale[:, None] * N.T
    F[:m, n:] = -by * scaled.input_scale[:, None] * problem.rate_weight[:, : F.shape[1] - n]
    return H, F


def _stagewise(M: np.ndarray, stacked: np.ndarray, P: int) -> np.ndarray:
    """M times each of P blocks of rows."""
    return (M @ stacked.reshape(P, M.shape[1], -1)).reshape(P * len(M), -1)


def _differences(P: int) -> np.ndarray:
    """D'D of Δ = D u, less the last input in its first row."""
    D = np.eye(P) - np.eye(P, k=-1)
    return D.T @ D


def _input_scale(problem: MpcProblem, H: np.ndarray) -> np.ndarray:
    """Widest bound of each input; without one, the input that costs 1."""
    curvature = np.diag(H).reshape(problem.horizon, -1).max(axis=0)
    costs_one = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))
    return _first_above_zero(problem.input_scale, _widest(problem.input_lower, problem.input_upper), costs_one)


def _state_scale(problem: MpcProblem, Gamma: np.ndarray) -> np.ndarray:
    """How far one input moves a state at most, so that no row has an entry above 1; else its bound, else 1."""
    reach = np.abs(Gamma).max(axis=1).reshape(problem.horizon, -1).max(axis=0)
    widest = _widest(problem.state_lower, problem.state_upper)
    return _first_above_zero(problem.state_scale, reach, widest, np.ones(len(reach)))


def _widest(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.maximum(*(np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)))


def _first_above_zero(*scales: np.ndarray) -> np.ndarray:
    """Of each entry the first that is above 0."""
    return np.select([scale > 0.0 for scale in scales], scales)


def _with_slacks(problem: MpcProblem, scaled: _Scaled, H: Any, F: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """H, g and F with the variables ε / state_scale behind the others."""
    soft, P, size = np.flatnonzero(problem.soft), problem.horizon, len(F)
    count = P * len(soft)
    unit = scaled.state_scale[soft]
    square = np.tile(2.0 * problem.soft_weight[soft] * unit**2 / scaled.cost_scale, P)
    g = np.concatenate([np.zeros(size), np.tile(problem.soft_linear[soft] * unit / scaled.cost_scale, P)])
    F = np.vstack([F, np.zeros((count, F.shape[1]))])
    if count == 0:
        return H, g, F
    if is_sparse(H):
        import scipy.sparse as sp

        return sp.block_diag([H, sp.diags_array(square)], format="csc"), g, F
    none = np.zeros((size, count))
    return np.block([[H, none], [none.T, np.diag(square)]]), g, F


def _check_definite(H: np.ndarray) -> None:
    size = np.sqrt(np.diag(H))
    unit = H / np.where(size > 0.0, size, 1.0)[:, None] / np.where(size > 0.0, size, 1.0)
    least = float(np.linalg.eigvalsh(unit).min())
    if not least > 16.0 * len(H) * _EPS:
        takes = "weights that make each sequence of inputs cost something: an input_weight above 0 always does"
        raise InvalidValue("input_weight", f"a Hessian with an eigenvalue of {least:.3g}", takes)
