"""Linear MPC as a quadratic program of the measured state: condensed (inputs only) or sparse (inputs and states)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import checked_kind
from netctrl.model.io.matrix import is_sparse
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.stages import (
    Given,
    Layout,
    Prediction,
    Regulator,
    Stages,
    cost,
    grows,
    history,
    layout,
    predicted,
    regulator,
    stages,
    widest,
)


class _Scaled(NamedTuple):
    """The problem in units in which inputs, rows and costs are of order 1."""

    stages: Stages
    given: Given
    order: Layout
    regulator: Regulator
    gains: np.ndarray
    """(P, m, q) K of u = v − K z."""
    H: np.ndarray
    """Hessian of V alone."""
    F: np.ndarray
    prediction: Prediction
    """Prediction in the plant's units."""
    v: np.ndarray
    """(f m,) unit of each variable."""
    input_scale: np.ndarray
    z_scale: np.ndarray
    """(q,)"""
    row_scale: np.ndarray
    """(R,)"""
    cost_scale: float

    @property
    def shifted(self) -> bool:
        """Whether v differs from the input itself."""
        return bool(self.gains.any())


class _Bounds(NamedTuple):
    """Bounds of the program, as indices: of inputs within P m, of rows within (P + 1) R."""

    free: np.ndarray
    """Inputs that are variables."""
    ruled: np.ndarray
    """Inputs whose bound is a row of its own."""
    hard: np.ndarray
    eased: np.ndarray
    """Soft rows, each with a slack."""
    variables: list[str]
    rows: list[str]
    """Names of the ruled inputs, the hard and the soft rows, the latter twice."""
    slacks: list[str]


def condensed(problem: MpcProblem, given: Given | None = None) -> ParametricProgram:
    """Program in V alone (and the slacks of soft bounds): small and dense, for active-set solvers.

    With z = Φθ + ΓV, u = Ψθ + LV and the stages' weights W = diag(Q, R), H = 2 [Γ; L]'W[Γ; L], F = 2 [Γ; L]'W[Φ; Ψ].
    Where the model hardly grows over the horizon, V are the inputs, with the inputs' bounds. Otherwise u = v − K z with
    a regulator's gains, so that Γ contains only powers of A − BK, and the bounds of inputs are rows.

    Parameters
    ----------
    problem : MpcProblem
    given : Given, optional
        References and disturbances that θ contains; by default none.

    Raises
    ------
    InvalidValue
        A direction of the inputs without cost: the minimum would not be unique.

    Source: MPCC thesis (4.9) to (4.17); its (4.13) has g transposed (docs/explanation/mpcc.md). Rossiter,
    Kouvaritakis, Rice, Automatica 34 (1998) 65-73, for the change of variables.
    """
    checked_kind("problem", problem, MpcProblem)
    scaled = _scaled(problem, given or Given())
    made, by, order = scaled.stages, scaled.prediction, scaled.order
    names = _bounds(scaled)
    eased, eye = names.eased, np.eye(len(names.eased))
    H, g, F = _with_slacks(scaled, eased, scaled.H, scaled.F)
    m, R = len(scaled.input_scale), len(made.rows)
    wanted = np.concatenate([names.hard, eased])
    k, r = np.divmod(wanted, max(R, 1))
    of_z, of_u = made.E[made.kind[k], r], made.F[made.kind[k], r]
    # u_P doesn't exist; its F is 0.
    j = np.minimum(k, made.kind.size - 2)
    Gamma = np.einsum("iq,iqv->iv", of_z, by.Gamma[k]) + np.einsum("im,imv->iv", of_u, by.L[j])
    Phi = np.einsum("iq,iqt->it", of_z, by.Phi[k]) + np.einsum("im,imt->it", of_u, by.Psi[j])
    Gamma = Gamma * scaled.v / scaled.row_scale[r][:, None]
    L = by.L.reshape(-1, len(scaled.v))[names.ruled] * scaled.v / np.tile(scaled.input_scale, len(by.L))[names.ruled, None]
    Psi = by.Psi.reshape(-1, order.moving)[names.ruled] / np.tile(scaled.input_scale, len(by.L))[names.ruled, None]
    count = len(names.hard)
    rows = [np.hstack([part, np.zeros((len(part), len(eased)))]) for part in (L, Gamma[:count])]
    rows += [np.hstack([Gamma[count:], eye]), np.hstack([Gamma[count:], -eye])]
    E = np.zeros((len(H) + sum(map(len, rows)), order.size + 1))
    E[len(H) : len(H) + len(L), : order.moving] = -Psi
    after = E[len(H) + len(L) :]
    again = np.concatenate([np.arange(len(wanted)), np.arange(count, len(wanted))])
    after[:, : order.moving] = -(Phi / scaled.row_scale[r][:, None])[again]
    for i, each in enumerate(again):
        after[i, order.pick[k[each]]] -= made.Le[made.kind[k[each]], r[each]] / scaled.row_scale[r[each]]
    if scaled.shifted:
        E[:m, : scaled.gains.shape[2]] = scaled.gains[0] / scaled.input_scale[:, None]
    of_rows = (names.ruled, names.hard, eased)
    low, high = _of_variables(problem, scaled, names)
    (low_u, high_u), (low_r, high_r), (low_s, high_s) = _of_rows(scaled, of_rows)
    free, zero = np.full(len(eased), np.inf), np.zeros(len(eased))
    size = made.input_lower.size
    return ParametricProgram(
        H=H,
        g=g,
        F=F,
        A=np.vstack(rows),
        lower=np.concatenate([low, zero, low_u, low_r, low_s, -free]),
        upper=np.concatenate([high, free, high_u, high_r, free, high_s]),
        E=np.ascontiguousarray(E[:, :-1]),
        names=(*names.variables, *names.slacks, *names.rows),
        units=np.concatenate([scaled.v, scaled.row_scale[eased % max(R, 1)], *_units(scaled, of_rows)]),
        concerns=np.concatenate(
            [_own(scaled, names), np.full(len(eased), -1), names.ruled, size + names.hard, size + eased, size + eased]
        ),
        **_scales(scaled),
    )


def sparse(problem: MpcProblem, given: Given | None = None) -> ParametricProgram:
    """Program in V and the states, with the model as equalities: large and sparse, for long horizons.

    It is the problem of `condensed` in the same units, so it gives the same inputs. Inputs before the present one are
    states where they matter.
    """
    import scipy.sparse as sp

    checked_kind("problem", problem, MpcProblem)
    scaled = _scaled(problem, given or Given())
    made, order, names = scaled.stages, scaled.order, _bounds(scaled)
    P, m, q = scaled.gains.shape
    R, kind, u, of_z = max(len(made.rows), 1), made.kind, scaled.input_scale, scaled.z_scale
    f = len(scaled.v)
    H, g, F = _with_slacks(scaled, names.eased, *_sparse_cost(scaled))
    # Columns of v_k and z_k; of z_0 there are none: its columns go to θ.
    of_v = {int(k): m * i for i, k in enumerate(np.flatnonzero(made.free))}
    of_k = {k: f + (k - 1) * q for k in range(1, P + 1)}
    A, E = _Blocks(), _Blocks()

    def add(row: int, k: int, by_z: np.ndarray, by_u: np.ndarray, unit: np.ndarray) -> None:
        """Rows by_z z_k + by_u u_k in these units, u_k = v_k − K_k z_k."""
        if k < P:
            by_z = by_z - by_u @ scaled.gains[k]
        if k in of_v:
            A.add(row, of_v[k], by_u * u / unit[:, None])
        if k:
            A.add(row, of_k[k], by_z * of_z / unit[:, None])
        else:
            E.add(row, 0, -by_z / unit[:, None])

    for k in range(P):  # (A − B K_k) z_k + B v_k + L_c s_k − z_{k+1} = 0, with the opposite sign
        A.add(k * q, of_k[k + 1], np.eye(q))
        add(k * q, k, -made.A[kind[k]], -made.B[kind[k]], of_z)
        E.pick(k * q, order.pick[k], made.Lc[kind[k]] / of_z[:, None])
    row = P * q
    for i in names.ruled:
        k, j = divmod(int(i), m)
        add(row, k, np.zeros((1, q)), np.eye(m)[j : j + 1], u[j : j + 1])
        row += 1
    # A hard bound of a state is that of a variable.
    own = made.state_of[names.hard % R] >= 0
    inside, rowed = names.hard[own], names.hard[~own]
    for i in (*rowed, *names.eased, *names.eased):
        k, r = divmod(int(i), R)
        unit = scaled.row_scale[r : r + 1]
        add(row, k, made.E[kind[k], r : r + 1], made.F[kind[k], r : r + 1], unit)
        E.pick(row, order.pick[k], -made.Le[kind[k], r : r + 1] / unit)
        row += 1
    count = len(names.eased)
    for sign, first in ((1.0, row - 2 * count), (-1.0, row - count)):
        if count:
            A.add(first, f + P * q, sign * np.eye(count))
    total = f + P * q + count
    E.rows = [each + total for each in E.rows]
    if scaled.shifted:
        E.add(0, 0, scaled.gains[0] / u[:, None])
    low_z, high_z = np.full(P * q, -np.inf), np.full(P * q, np.inf)
    k, r = np.divmod(inside, R)
    at = (k - 1) * q + made.state_of[r]
    low_z[at], high_z[at] = made.lower[k, r] / of_z[made.state_of[r]], made.upper[k, r] / of_z[made.state_of[r]]
    places = np.full(P * q, -1)
    places[at] = made.input_lower.size + inside
    n = problem.plant.n_states
    states = [f"state {i} at step {k + 1}" if i < n else f"a past input at step {k + 1}" for k in range(P) for i in range(q)]
    of_rows = (names.ruled, rowed, names.eased)
    low, high = _of_variables(problem, scaled, names)
    (low_u, high_u), (low_r, high_r), (low_s, high_s) = _of_rows(scaled, of_rows)
    free, zero = np.full(count, np.inf), np.zeros(P * q)
    z, size = np.tile(of_z, P), made.input_lower.size
    listed = [name for name, there in zip(names.rows[len(names.ruled) :], own, strict=False) if not there]
    return ParametricProgram(
        H=H,
        g=g,
        F=F,
        A=A.matrix((row, total)),
        lower=np.concatenate([low, low_z, np.zeros(count), zero, low_u, low_r, low_s, -free]),
        upper=np.concatenate([high, high_z, free, zero, high_u, high_r, free, high_s]),
        E=E.matrix((total + row, order.size)),
        names=(
            *(*names.variables, *states, *names.slacks, *(f"the model of {each}" for each in states)),
            *(*names.rows[: len(names.ruled)], *listed, *names.rows[len(names.ruled) + len(names.hard) :]),
        ),
        units=np.concatenate([scaled.v, z, scaled.row_scale[names.eased % R], z, *_units(scaled, of_rows)]),
        concerns=np.concatenate(
            [
                *(_own(scaled, names), places, np.full(count + P * q, -1), names.ruled),
                *(size + rowed, size + names.eased, size + names.eased),
            ]
        ),
        **_scales(scaled),
    )


class _Blocks:
    """Entries of a sparse matrix, block by block."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.columns: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def add(self, row: int, column: int, block: np.ndarray) -> None:
        """Add a block whose first entry is at this row and column."""
        self.pick(row, column + np.arange(block.shape[1]), block)

    def pick(self, row: int, columns: np.ndarray, block: np.ndarray) -> None:
        """Add a block to these columns; a column of −1 is left out."""
        i, j = np.nonzero(block * (columns >= 0))
        self.rows.append(row + i)
        self.columns.append(columns[j])
        self.values.append(block[i, j])

    def matrix(self, shape: tuple[int, int]) -> Any:
        """The entries as a matrix; those of one place are summed."""
        import scipy.sparse as sp

        if not self.rows:
            return sp.csc_array(shape)
        parts = (np.concatenate(each) for each in (self.values, self.rows, self.columns))
        values, rows, columns = parts
        return sp.csc_array((values, (rows, columns)), shape=shape)


def _scaled(problem: MpcProblem, given: Given) -> _Scaled:
    made = stages(problem)
    free, order, none = regulator(problem, made), layout(problem, made, given), np.zeros
    gains = free.K if grows(made) else none(free.K.shape)
    by = predicted(made, gains, order)
    H, F = cost(made, by, order)
    if not gains.any() and not _well_conditioned(H):
        gains = free.K
        by = predicted(made, gains, order)
        H, F = cost(made, by, order)
    # Widest bound of each input; without a bound, the input whose cost is 1.
    m = len(made.hold)
    curvature = np.diag(H).reshape(-1, m).max(axis=0)
    costs_one = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0))
    input_scale = _first_above_zero(problem.input_scale, widest(problem.input_lower, problem.input_upper), costs_one)
    V = np.tile(input_scale, len(H) // m)
    H, F = H * V[:, None] * V, F * V[:, None]
    cost_scale = float(np.diag(H).max())
    # Largest effect of one input on each row, so that no row has an entry above 1; else its bound, else 1.
    n, kind = problem.plant.n_states, made.kind
    reach = np.abs(by.Gamma[1:, :n] * V).max(axis=(0, 2))
    bound = widest(problem.state_lower, problem.state_upper)
    states = _first_above_zero(problem.state_scale, reach, bound, np.ones(n))
    z_scale = np.concatenate([states, input_scale[[j for _, j in history(problem)]]])
    row_scale = states[made.state_of] if len(made.rows) else none(0)
    others = np.flatnonzero(made.state_of < 0)
    if len(others):
        effect = np.matmul(made.E[kind][:, others], by.Gamma * V)
        effect[:-1] += np.matmul(made.F[kind[:-1]][:, others], by.L * V)
        bound = widest(made.lower, made.upper).max(axis=0)[others]
        row_scale[others] = _first_above_zero(np.abs(effect).max(axis=(0, 2)), bound, np.ones(len(others)))
    return _Scaled(
        made, given, order, free, gains, H / cost_scale, F / cost_scale, by, V, input_scale, z_scale, row_scale, cost_scale
    )


def _well_conditioned(H: np.ndarray) -> bool:
    """Whether the condensed Hessian of the inputs themselves keeps most of its digits."""
    size = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    return bool(np.linalg.eigvalsh(H / size[:, None] / size).min() > 1e-6)


def _scales(scaled: _Scaled) -> dict[str, Any]:
    return {
        "stages": scaled.stages,
        "given": scaled.given,
        "order": scaled.order,
        "gains": scaled.gains,
        "input_scale": scaled.input_scale,
        "cost_scale": scaled.cost_scale,
        "regulator": scaled.regulator,
    }


def _bounds(scaled: _Scaled) -> _Bounds:
    made = scaled.stages
    P, m = made.input_lower.shape
    free = np.flatnonzero(np.repeat(made.free, m))
    bounded = np.isfinite(made.input_lower) | np.isfinite(made.input_upper)
    ruled = np.flatnonzero((bounded & made.free[:, None]).ravel()) if scaled.shifted else free[:0]
    there = np.isfinite(made.lower) | np.isfinite(made.upper)
    eased, hard = (np.flatnonzero((there & kind).ravel()) for kind in (made.soft, ~made.soft))
    inputs = [f"input {j} at step {k}" for k in range(P) for j in range(m)]
    rows = [f"{name} at step {k}" for k in range(P + 1) for name in made.rows]
    return _Bounds(
        free,
        ruled,
        hard,
        eased,
        [f"correction of {inputs[i]}" if scaled.shifted else inputs[i] for i in free],
        [*(inputs[i] for i in ruled), *(rows[i] for i in hard), *(f"{rows[i]} (soft)" for i in (*eased, *eased))],
        [f"slack of {rows[i]}" for i in eased],
    )


def _own(scaled: _Scaled, names: _Bounds) -> np.ndarray:
    """Owner of the bounds of v, as `ParametricProgram.concerns`."""
    return np.full(len(names.free), -1) if scaled.shifted else names.free


def _of_rows(scaled: _Scaled, of_rows: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lower and upper bounds of the ruled inputs, the hard and the soft rows, scaled."""
    made, units = scaled.stages, _units(scaled, of_rows)
    every = ((made.input_lower, made.input_upper), (made.lower, made.upper), (made.lower, made.upper))
    return [
        (low.ravel()[at] / unit, high.ravel()[at] / unit)
        for (low, high), at, unit in zip(every, of_rows, units[:3], strict=True)
    ]


def _units(scaled: _Scaled, of_rows: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Units of the ruled inputs, the hard rows, and twice the soft ones."""
    ruled, hard, eased = of_rows
    m, R = len(scaled.input_scale), max(len(scaled.row_scale), 1)
    soft = scaled.row_scale[eased % R]
    return [scaled.input_scale[ruled % m], scaled.row_scale[hard % R], soft, soft]


def _of_variables(problem: MpcProblem, scaled: _Scaled, names: _Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of v: the inputs' where v are the inputs, otherwise twice the maximum of |u| + |K z|, at first about K_0
    θ.

    The latter are never active, but an infeasibility proof may rely on v being bounded.
    """
    made = scaled.stages
    low, high = (each.ravel()[names.free] / scaled.v for each in (made.input_lower, made.input_upper))
    if not scaled.shifted:
        return low, high
    states = np.where(problem.hard, widest(problem.state_lower, problem.state_upper), np.inf)
    for bound in (problem.state_lower, problem.state_upper):
        states = np.where(np.isfinite(bound), states, np.inf)
    reach = np.maximum(*(np.abs(each) for each in problem.input_limits))
    z = np.concatenate([states, [reach[j] if age == 1 else np.inf for age, j in history(problem)]])
    K = np.abs(scaled.gains)
    moved = np.where(K > 0.0, K * np.where(K > 0.0, z, 0.0), 0.0).sum(axis=2)
    moved[0] = 0.0
    wide = (2.0 * (reach + moved)[made.free] / scaled.input_scale).ravel()
    return -wide, wide


def _sparse_cost(scaled: _Scaled) -> tuple[Any, Any]:
    """Cost terms H and F over V and the states, scaled."""
    import scipy.sparse as sp

    made, K, order, of_z, u = scaled.stages, scaled.gains, scaled.order, scaled.z_scale, scaled.input_scale
    P, m, q = K.shape
    f, by, H, F = len(scaled.v), 2.0 / scaled.cost_scale, _Blocks(), _Blocks()
    first = 0
    for k in range(P + 1):
        Q, R, N, Lq, Lr = (part[made.kind[k]] for part in (made.Q, made.R, made.N, made.Lq, made.Lr))
        at = f + (k - 1) * q
        gain = K[k] if k < P else np.zeros((m, q))
        free = k < P and made.free[k]
        # Blocks of z and v at one stage, u = v − K z.
        cross = N - gain.T @ R
        if k:
            H.add(at, at, by * of_z[:, None] * (Q - N @ gain - gain.T @ N.T + gain.T @ R @ gain) * of_z)
            F.pick(at, order.pick[k], by * of_z[:, None] * (Lq - gain.T @ Lr))
        if free:
            H.add(first, first, by * u[:, None] * R * u)
            F.pick(first, order.pick[k], by * u[:, None] * Lr)
            if k:
                H.add(first, at, by * u[:, None] * cross.T * of_z)
                H.add(at, first, by * of_z[:, None] * cross * u)
            else:
                F.add(first, 0, by * u[:, None] * cross.T)
            first += m
    size = f + P * q
    return H.matrix((size, size)), sp.csr_array(F.matrix((size, order.size)))


def _first_above_zero(*scales: np.ndarray) -> np.ndarray:
    """First value above 0 for each entry."""
    return np.select([scale > 0.0 for scale in scales], scales)


def _with_slacks(scaled: _Scaled, eased: np.ndarray, H: Any, F: Any) -> tuple[Any, np.ndarray, Any]:
    """H, g and F with the variables ε / row_scale appended."""
    made, count, size = scaled.stages, len(eased), F.shape[0]
    r = eased % max(len(made.rows), 1)
    unit = scaled.row_scale[r]
    square = 2.0 * made.rho[r] * unit**2 / scaled.cost_scale
    g = np.concatenate([np.zeros(size), made.w[r] * unit / scaled.cost_scale])
    if count == 0:
        return H, g, F
    if is_sparse(H):
        import scipy.sparse as sp

        F = sp.vstack([F, sp.csr_array((count, F.shape[1]))], format="csr")
        return sp.block_diag([H, sp.diags_array(square)], format="csc"), g, F
    F = np.vstack([F, np.zeros((count, F.shape[1]))])
    none = np.zeros((size, count))
    return np.block([[H, none], [none.T, np.diag(square)]]), g, F
