"""Linear MPC as a sparse quadratic program in inputs and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.core.errors import checked_kind
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.scaled import (
    Scaled,
    bounds_of,
    in_units,
    of_variables,
    owners,
    row_bounds,
    row_units,
    scales,
    with_slacks,
)
from netctrl.mpc.stages import Given


def sparse(problem: MpcProblem, given: Given | None = None) -> ParametricProgram:
    """Program in V and the states, with the model as equalities: large and sparse, for long horizons.

    It is the problem of `condensed` in the same units, so it gives the same inputs. Inputs before the present one are
    states where they matter.
    """

    checked_kind("problem", problem, MpcProblem)
    scaled = in_units(problem, given or Given())
    made, order, names = scaled.stages, scaled.order, bounds_of(scaled)
    P, m, q = scaled.gains.shape
    R, kind, u, of_z = max(len(made.rows), 1), made.kind, scaled.input_scale, scaled.z_scale
    f = len(scaled.v)
    H, g, F = with_slacks(scaled, names.eased, *_sparse_cost(scaled))
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
    states = [
        f"state {i} at step {k + 1}" if i < n else f"a past input at step {k + 1}" for k in range(P) for i in range(q)
    ]
    of_rows = (names.ruled, rowed, names.eased)
    low, high = of_variables(problem, scaled, names)
    (low_u, high_u), (low_r, high_r), (low_s, high_s) = row_bounds(scaled, of_rows)
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
        units=np.concatenate([scaled.v, z, scaled.row_scale[names.eased % R], z, *row_units(scaled, of_rows)]),
        concerns=np.concatenate(
            [
                *(owners(scaled, names), places, np.full(count + P * q, -1), names.ruled),
                *(size + rowed, size + names.eased, size + names.eased),
            ]
        ),
        **scales(scaled),
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


def _sparse_cost(scaled: Scaled) -> tuple[Any, Any]:
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
