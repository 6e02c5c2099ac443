"""An MPC problem in units in which inputs, rows and costs are of order 1, as both forms of its program take it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.model.io.matrix import is_sparse
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


class Scaled(NamedTuple):
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


class Bounds(NamedTuple):
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


def in_units(problem: MpcProblem, given: Given) -> Scaled:
    """The problem with its regulator, prediction, cost and units."""
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
    return Scaled(
        made,
        given,
        order,
        free,
        gains,
        H / cost_scale,
        F / cost_scale,
        by,
        V,
        input_scale,
        z_scale,
        row_scale,
        cost_scale,
    )


def _well_conditioned(H: np.ndarray) -> bool:
    """Whether the condensed Hessian of the inputs themselves keeps most of its digits."""
    size = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    return bool(np.linalg.eigvalsh(H / size[:, None] / size).min() > 1e-6)


def scales(scaled: Scaled) -> dict[str, Any]:
    """Fields of `ParametricProgram` that both forms share."""
    return {
        "stages": scaled.stages,
        "given": scaled.given,
        "order": scaled.order,
        "gains": scaled.gains,
        "input_scale": scaled.input_scale,
        "cost_scale": scaled.cost_scale,
        "regulator": scaled.regulator,
    }


def bounds_of(scaled: Scaled) -> Bounds:
    """Bounds of the problem that are there, with names."""
    made = scaled.stages
    P, m = made.input_lower.shape
    free = np.flatnonzero(np.repeat(made.free, m))
    bounded = np.isfinite(made.input_lower) | np.isfinite(made.input_upper)
    ruled = np.flatnonzero((bounded & made.free[:, None]).ravel()) if scaled.shifted else free[:0]
    there = np.isfinite(made.lower) | np.isfinite(made.upper)
    eased, hard = (np.flatnonzero((there & kind).ravel()) for kind in (made.soft, ~made.soft))
    inputs = [f"input {j} at step {k}" for k in range(P) for j in range(m)]
    rows = [f"{name} at step {k}" for k in range(P + 1) for name in made.rows]
    return Bounds(
        free,
        ruled,
        hard,
        eased,
        [f"correction of {inputs[i]}" if scaled.shifted else inputs[i] for i in free],
        [*(inputs[i] for i in ruled), *(rows[i] for i in hard), *(f"{rows[i]} (soft)" for i in (*eased, *eased))],
        [f"slack of {rows[i]}" for i in eased],
    )


def owners(scaled: Scaled, names: Bounds) -> np.ndarray:
    """Owner of the bounds of v, as `ParametricProgram.concerns`."""
    return np.full(len(names.free), -1) if scaled.shifted else names.free


def row_bounds(scaled: Scaled, of_rows: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lower and upper bounds of the ruled inputs, the hard and the soft rows, scaled."""
    made, units = scaled.stages, row_units(scaled, of_rows)
    every = ((made.input_lower, made.input_upper), (made.lower, made.upper), (made.lower, made.upper))
    return [
        (low.ravel()[at] / unit, high.ravel()[at] / unit)
        for (low, high), at, unit in zip(every, of_rows, units[:3], strict=True)
    ]


def row_units(scaled: Scaled, of_rows: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Units of the ruled inputs, the hard rows, and twice the soft ones."""
    ruled, hard, eased = of_rows
    m, R = len(scaled.input_scale), max(len(scaled.row_scale), 1)
    soft = scaled.row_scale[eased % R]
    return [scaled.input_scale[ruled % m], scaled.row_scale[hard % R], soft, soft]


def of_variables(problem: MpcProblem, scaled: Scaled, names: Bounds) -> tuple[np.ndarray, np.ndarray]:
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


def _first_above_zero(*scales: np.ndarray | None) -> np.ndarray:
    """First value above 0 for each entry."""
    given = [scale for scale in scales if scale is not None]
    return np.select([scale > 0.0 for scale in given], given)


def with_slacks(scaled: Scaled, eased: np.ndarray, H: Any, F: Any) -> tuple[Any, np.ndarray, Any]:
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

        H = sp.block_diag([H, sp.diags_array(square)], format="csc")
        if is_sparse(F):
            return H, g, sp.vstack([F, sp.csr_array((count, F.shape[1]))], format="csr")
    else:
        none = np.zeros((size, count))
        H = np.block([[H, none], [none.T, np.diag(square)]])
    return H, g, np.vstack([F, np.zeros((count, F.shape[1]))])
