"""Linear MPC as a quadratic program of the measured state: condensed (inputs only) or sparse (inputs and states)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import checked_kind
from netctrl.model.io.matrix import is_sparse
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.stages import Prediction, Regulator, Stages, cost, predicted, regulator, stages, widest


class _Scaled(NamedTuple):
    """The problem in units in which inputs, rows and costs are of order 1."""

    stages: Stages
    regulator: Regulator
    gains: np.ndarray
    """(P, m, q) K of u = v − K z."""
    H: np.ndarray
    """(P m, P m) Hessian of V alone."""
    F: np.ndarray
    prediction: Prediction
    """Regulator in the plant's units."""
    input_scale: np.ndarray
    state_scale: np.ndarray
    cost_scale: float

    @property
    def shifted(self) -> bool:
        """Whether v differs from the input itself."""
        return bool(self.gains.any())


class _Names(NamedTuple):
    variables: list[str]
    inputs: list[str]
    states: list[str]
    slacks: list[str]
    eased: list[int]
    """Indices of the states with a soft bound, among all P n states."""
    ruled: list[int]
    """Indices of the inputs whose bound is a row of its own, among all P m inputs."""


def condensed(problem: MpcProblem) -> ParametricProgram:
    """Program in V alone (and the slacks of soft bounds): small and dense, for active-set solvers.

    With z = Φθ + ΓV, u = Ψθ + LV and the stages' weights W = diag(Q, R), H = 2 [Γ; L]'W[Γ; L], F = 2 [Γ; L]'W[Φ; Ψ].
    Where the model hardly grows over the horizon, V are the inputs, with the inputs' bounds. Otherwise u = v − K z with
    a regulator's gains, so that Γ contains only powers of A − BK, and the bounds of inputs are rows.

    Raises
    ------
    InvalidValue
        A direction of the inputs without cost: the minimum would not be unique.

    Source: MPCC thesis (4.9) to (4.17); its (4.13) has g transposed (docs/explanation/mpcc.md). Rossiter,
    Kouvaritakis, Rice, Automatica 34 (1998) 65-73, for the change of variables.
    """
    checked_kind("problem", problem, MpcProblem)
    n, P = problem.plant.n_states, problem.horizon
    scaled = _scaled(problem)
    names = _names(problem, scaled)
    H, g, F = _with_slacks(problem, scaled, scaled.H, scaled.F)
    eased, hard, ruled = names.eased, np.flatnonzero(np.tile(problem.hard, P)), names.ruled
    z, v = np.tile(scaled.state_scale, P), np.tile(scaled.input_scale, P)
    Gamma, Phi = (
        part[1:, :n].reshape(P * n, -1) / z[:, None] for part in (scaled.prediction.Gamma, scaled.prediction.Phi)
    )
    L, Psi = (part.reshape(len(v), -1) / v[:, None] for part in (scaled.prediction.L, scaled.prediction.Psi))
    Gamma, L, eye = Gamma * v, L * v, np.eye(len(eased))
    rows = [np.hstack([part, np.zeros((len(part), len(eased)))]) for part in (L[ruled], Gamma[hard])]
    rows += [np.hstack([Gamma[eased], eye]), np.hstack([Gamma[eased], -eye])]
    labels = [*names.variables, *names.slacks, *(names.inputs[r] for r in ruled), *(names.states[r] for r in hard)]
    labels += _soft(names)
    E = np.zeros((len(labels), F.shape[1]))
    E[len(H) :] = -np.vstack([Psi[ruled], Phi[[*hard, *eased, *eased]]])
    (low_u, low_x), (high_u, high_x) = _tiled(problem, scaled)
    free, zero = np.full(len(eased), np.inf), np.zeros(len(eased))
    low_v, high_v = _of_variables(problem, scaled, low_u, high_u)
    if scaled.shifted:
        E[: len(scaled.input_scale)] = scaled.gains[0] / scaled.input_scale[:, None]
    return ParametricProgram(
        H=H,
        g=g,
        F=F,
        A=np.vstack(rows),
        lower=np.concatenate([low_v, zero, low_u[ruled], low_x[hard], low_x[eased], -free]),
        upper=np.concatenate([high_v, free, high_u[ruled], high_x[hard], free, high_x[eased]]),
        E=E,
        names=tuple(labels),
        units=np.concatenate([v, z[eased], v[ruled], z[hard], z[eased], z[eased]]),
        concerns=_concerns(scaled, [None] * len(eased), ruled, len(v) + np.array([*hard, *eased, *eased], dtype=int)),
        **_scales(scaled),
    )


def sparse(problem: MpcProblem) -> ParametricProgram:
    """Program in V and the states, with the model as equalities: large and sparse, for long horizons.

    It is the problem of `condensed` in the same units, so it gives the same inputs. Where changes of inputs have a
    cost, the last input is a state.
    """
    import scipy.sparse as sp

    checked_kind("problem", problem, MpcProblem)
    n, m, P = problem.plant.n_states, problem.plant.n_inputs, problem.horizon
    scaled = _scaled(problem)
    names, made, K = _names(problem, scaled), scaled.stages, scaled.gains
    q = len(made.A)
    of_z = np.concatenate([scaled.state_scale, scaled.input_scale])[:q]
    H, F = _sparse_cost(scaled, of_z)
    H, g, F = _with_slacks(problem, scaled, H, F)
    B = made.B * scaled.input_scale / of_z[:, None]
    closed = [(made.A - made.B @ each) * of_z / of_z[:, None] for each in K]
    # z_{k+1} − (A − B K_k) z_k − B v_k = 0; the first row's z_0 comes from θ.
    model = sp.eye_array(P * q, format="csr") - _below_diagonal(closed[1:], q)
    eased, ruled = names.eased, names.ruled
    none = sp.csr_array((P * q, len(eased)))
    blocks = [[sp.kron(sp.eye_array(P), -B), model, none]]
    if ruled:
        back = [-each * of_z / scaled.input_scale[:, None] for each in K]
        rules = sp.csr_array(_below_diagonal(back[1:], q, m))[ruled]
        blocks += [[sp.eye_array(P * m, format="csr")[ruled], rules, sp.csr_array((len(ruled), len(eased)))]]
    at = (np.arange(P)[:, None] * q + np.arange(n)).ravel()  # indices of the states x within z
    if eased:
        pick, eye = sp.eye_array(P * q, format="csr")[at[eased]], sp.eye_array(len(eased))
        nothing = sp.csr_array((len(eased), P * m))
        blocks += [[nothing, pick, eye], [nothing, pick, -eye]]
    rows = sp.block_array(blocks, format="csc")
    states = np.array([f"the last input at step {k + 1}" for k in range(P) for _ in range(q)], dtype=object)
    states[at] = names.states
    labels = [*names.variables, *states, *names.slacks, *(f"the model of {each}" for each in states)]
    labels += [*(names.inputs[r] for r in ruled), *_soft(names)]
    E = np.zeros((len(labels), q))
    start = len(F)
    E[start : start + q] = (made.A - made.B @ K[0]) / of_z[:, None]
    first = [i for i, r in enumerate(ruled) if r < m]
    E[start + P * q + np.array(first, dtype=int)] = (K[0] / scaled.input_scale[:, None])[[ruled[i] for i in first]]
    (low_u, low_x), (high_u, high_x) = _tiled(problem, scaled)
    hard = np.tile(problem.hard, P)
    low_z, high_z = np.full(P * q, -np.inf), np.full(P * q, np.inf)
    low_z[at], high_z[at] = np.where(hard, low_x, -np.inf), np.where(hard, high_x, np.inf)
    free, zero = np.full(len(eased), np.inf), np.zeros(P * q)
    low_v, high_v = _of_variables(problem, scaled, low_u, high_u)
    if scaled.shifted:
        E[:m] = K[0] / scaled.input_scale[:, None]
    z, v, x = np.tile(of_z, P), np.tile(scaled.input_scale, P), np.tile(scaled.state_scale, P)
    places = np.full(P * q, -1)
    places[at] = P * m + np.arange(P * n)
    return ParametricProgram(
        H=H,
        g=g,
        F=F,
        A=rows,
        lower=np.concatenate([low_v, low_z, np.zeros(len(eased)), zero, low_u[ruled], low_x[eased], -free]),
        upper=np.concatenate([high_v, high_z, free, zero, high_u[ruled], free, high_x[eased]]),
        E=E,
        names=tuple(labels),
        units=np.concatenate([v, z, x[eased], z, v[ruled], x[eased], x[eased]]),
        concerns=_concerns(
            scaled,
            [*places, *[None] * len(eased), *[None] * (P * q)],
            ruled,
            P * m + np.array([*eased, *eased], dtype=int),
        ),
        **_scales(scaled),
    )


def _scaled(problem: MpcProblem) -> _Scaled:
    P, made, free = problem.horizon, stages(problem), regulator(problem)
    gains = free.K if free.needed else np.zeros_like(free.K)
    by = predicted(made, gains)
    H, F = cost(made, by)
    # Widest bound of each input; without a bound, the input whose cost is 1.
    curvature = np.diag(H).reshape(problem.horizon, -1).max(axis=0)
    costs_one = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))
    input_scale = _first_above_zero(problem.input_scale, widest(problem.input_lower, problem.input_upper), costs_one)
    V = np.tile(input_scale, P)
    H, F = H * V[:, None] * V, F * V[:, None]
    cost_scale = float(np.diag(H).max())
    # Largest effect of one input on each state, so that no row has an entry above 1; else its bound, else 1.
    Gamma = by.Gamma[1:, : problem.plant.n_states] * V
    reach = np.abs(Gamma).max(axis=(0, 2))
    bound = widest(problem.state_lower, problem.state_upper)
    state_scale = _first_above_zero(problem.state_scale, reach, bound, np.ones(len(reach)))
    return _Scaled(made, free, gains, H / cost_scale, F / cost_scale, by, input_scale, state_scale, cost_scale)


def _scales(scaled: _Scaled) -> dict[str, Any]:
    return {
        "stages": scaled.stages,
        "gains": scaled.gains,
        "input_scale": scaled.input_scale,
        "state_scale": scaled.state_scale,
        "cost_scale": scaled.cost_scale,
        "regulator": scaled.regulator,
    }


def _names(problem: MpcProblem, scaled: _Scaled) -> _Names:
    n, m, P = problem.plant.n_states, problem.plant.n_inputs, problem.horizon
    states = [f"state {i} at step {k + 1}" for k in range(P) for i in range(n)]
    eased = np.flatnonzero(np.tile(problem.soft, P)).tolist()
    inputs = [f"input {j} at step {k}" for k in range(P) for j in range(m)]
    bounded = np.isfinite(problem.input_lower) | np.isfinite(problem.input_upper)
    ruled = np.flatnonzero(np.tile(bounded, P)).tolist() if scaled.shifted else []
    variables = [f"correction of {each}" for each in inputs] if scaled.shifted else inputs
    return _Names(variables, inputs, states, [f"slack of {states[r]}" for r in eased], eased, ruled)


def _soft(names: _Names) -> list[str]:
    return [f"{names.states[r]} (soft)" for r in (*names.eased, *names.eased)]


def _concerns(scaled: _Scaled, others: list, ruled: list[int], rows: np.ndarray) -> np.ndarray:
    """Owner of each bound of the program: 0 .. P m − 1 an input, from P m on a state, −1 none."""
    P, m, _ = scaled.gains.shape
    own = np.full(P * m, -1) if scaled.shifted else np.arange(P * m)
    between = np.array([-1 if each is None else each for each in others], dtype=int)
    return np.concatenate([own, between, np.array(ruled, dtype=int), rows])


def _tiled(problem: MpcProblem, scaled: _Scaled) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Lower and upper bounds of all inputs and all states, scaled."""
    return tuple(
        (np.tile(inputs / scaled.input_scale, problem.horizon), np.tile(states / scaled.state_scale, problem.horizon))
        for inputs, states in ((problem.input_lower, problem.state_lower), (problem.input_upper, problem.state_upper))
    )


def _of_variables(
    problem: MpcProblem, scaled: _Scaled, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of v: the inputs' where v are the inputs, otherwise twice the maximum of |u| + |K z|, at first about K_0
    θ.

    The latter are never active, but an infeasibility proof may rely on v being bounded.
    """
    if not scaled.shifted:
        return lower, upper
    q = scaled.gains.shape[2]
    states = np.where(problem.hard, widest(problem.state_lower, problem.state_upper), np.inf)
    for bound in (problem.state_lower, problem.state_upper):
        states = np.where(np.isfinite(bound), states, np.inf)
    reach = np.maximum(np.abs(problem.input_lower), np.abs(problem.input_upper))
    z = np.concatenate([states, reach])[:q]
    K = np.abs(scaled.gains)
    moved = np.where(K > 0.0, K * np.where(K > 0.0, z, 0.0), 0.0).sum(axis=2)
    moved[0] = 0.0
    wide = (2.0 * (reach + moved) / scaled.input_scale).ravel()
    return -wide, wide


def _sparse_cost(scaled: _Scaled, of_z: np.ndarray) -> tuple[Any, np.ndarray]:
    """Cost terms H and F over V and the states, scaled."""
    import scipy.sparse as sp

    made, K = scaled.stages, scaled.gains
    P, m, q = K.shape
    # Blocks of z and v at one stage, u = v − K z.
    Q = [made.Q - made.N @ k - k.T @ made.N.T + k.T @ made.R @ k for k in K]
    N = [made.N - k.T @ made.R for k in K]
    states = sp.block_diag([*Q[1:], made.T])
    cross = _below_diagonal([each.T for each in N[1:]], q, m)  # z_k, in columns k = 1 .. P, is coupled to v_k
    inputs = sp.kron(sp.eye_array(P), made.R)
    units = sp.diags_array(np.concatenate([np.tile(scaled.input_scale, P), np.tile(of_z, P)]))
    by = 2.0 / scaled.cost_scale
    H = (units @ sp.block_array([[inputs, cross], [cross.T, states]]) @ units * by).tocsc()
    F = np.zeros((P * (q + m), q))
    F[:m] = by * scaled.input_scale[:, None] * N[0].T
    return H, F


def _below_diagonal(blocks: list[np.ndarray], columns: int, rows: int | None = None) -> Any:
    """Sparse matrix of P × P blocks, whose block (k, k − 1) is the k-th given one, k = 1 .. P − 1."""
    import scipy.sparse as sp

    rows, P = columns if rows is None else rows, len(blocks) + 1
    left, right = sp.csr_array((rows, P * columns)), sp.csr_array(((P - 1) * rows, columns))
    if P == 1:
        return left
    return sp.vstack([left, sp.hstack([sp.block_diag(blocks, format="csr"), right])], format="csr")


def _first_above_zero(*scales: np.ndarray) -> np.ndarray:
    """First value above 0 for each entry."""
    return np.select([scale > 0.0 for scale in scales], scales)


def _with_slacks(problem: MpcProblem, scaled: _Scaled, H: Any, F: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """H, g and F with the variables ε / state_scale appended."""
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
