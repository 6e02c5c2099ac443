"""Linear MPC as a quadratic program of the measured state: condensed (inputs only) or sparse (inputs and states)."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem, vector
from netctrl.mpc.scaled import bounds_of, in_units, of_variables, owners, row_bounds, row_units, scales, with_slacks
from netctrl.mpc.sparse import sparse
from netctrl.mpc.stages import Given

_MANY = 300  # slacks with which the program is mostly zeros


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
    scaled = in_units(problem, given or Given())
    made, by, order = scaled.stages, scaled.prediction, scaled.order
    names = bounds_of(scaled)
    eased = names.eased
    m, R, V, count = len(scaled.input_scale), max(len(made.rows), 1), scaled.v, len(names.hard)
    k, r = np.divmod(np.concatenate([names.hard, eased]), R)
    Gamma, Phi = np.empty((len(k), len(V))), np.empty((len(k), order.moving))
    for at in np.unique(k):
        here, kind = k == at, made.kind[at]
        of_z, of_u = made.E[kind, r[here]], made.F[kind, r[here]]
        u = min(at, len(by.L) - 1)  # u_P doesn't exist; its F is 0
        Gamma[here] = of_z @ by.Gamma[at] + of_u @ by.L[u]
        Phi[here] = of_z @ by.Phi[at] + of_u @ by.Psi[u]
    Gamma, Phi = Gamma * V / scaled.row_scale[r][:, None], Phi / scaled.row_scale[r][:, None]
    units = np.tile(scaled.input_scale, len(by.L))[names.ruled, None]
    L, Psi = by.L.reshape(-1, len(V))[names.ruled] * V / units, by.Psi.reshape(-1, order.moving)[names.ruled] / units
    again = np.concatenate([np.arange(len(k)), np.arange(count, len(k))])  # soft rows twice
    rows, empty = np.vstack([L, Gamma[again]]), len(L) + count
    H: Any = scaled.H
    if len(eased) <= _MANY:
        eye = np.eye(len(eased))
        A: Any = np.hstack([rows, np.vstack([np.zeros((empty, len(eased))), eye, -eye])])
    else:
        import scipy.sparse as sp

        eye = sp.eye_array(len(eased))
        A = sp.hstack([rows, sp.vstack([sp.csr_array((empty, len(eased))), eye, -eye])], format="csr")
        H = sp.csr_array(H)
    H, g, F = with_slacks(scaled, eased, H, scaled.F)
    E = np.zeros((len(g) + len(rows), order.size + 1))
    E[len(g) : len(g) + len(L), : order.moving] = -Psi
    after = E[len(g) + len(L) :]
    after[:, : order.moving] = -Phi[again]
    for i, each in enumerate(again) if made.Le.any() else ():
        after[i, order.pick[k[each]]] -= made.Le[made.kind[k[each]], r[each]] / scaled.row_scale[r[each]]
    if scaled.shifted:
        E[:m, : scaled.gains.shape[2]] = scaled.gains[0] / scaled.input_scale[:, None]
    of_rows = (names.ruled, names.hard, eased)
    low, high = of_variables(problem, scaled, names)
    (low_u, high_u), (low_r, high_r), (low_s, high_s) = row_bounds(scaled, of_rows)
    free, zero = np.full(len(eased), np.inf), np.zeros(len(eased))
    size = made.input_lower.size
    return ParametricProgram(
        H=H,
        g=g,
        F=F,
        A=A,
        lower=np.concatenate([low, zero, low_u, low_r, low_s, -free]),
        upper=np.concatenate([high, free, high_u, high_r, free, high_s]),
        E=np.ascontiguousarray(E[:, :-1]),
        names=(*names.variables, *names.slacks, *names.rows),
        units=np.concatenate([scaled.v, scaled.row_scale[eased % R], *row_units(scaled, of_rows)]),
        concerns=np.concatenate(
            [owners(scaled, names), np.full(len(eased), -1), names.ruled, size + names.hard, size + eased, size + eased]
        ),
        **scales(scaled),
    )


def condensed_program(problem: MpcProblem | ParametricProgram) -> ParametricProgram:
    """The condensed program of a problem, or the program that was given."""
    return problem if isinstance(problem, ParametricProgram) else condensed(problem)


def parameter_box(program: ParametricProgram, lower: Any, upper: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (q,) of θ, checked: finite, each lower below its upper; a number applies to all entries."""
    low, high = vector("lower", lower, program.n_parameters), vector("upper", upper, program.n_parameters)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidValue("lower, upper", [low.tolist(), high.tolist()], "finite numbers, each lower below its upper")
    return low, high


FORMS = {"condensed": condensed, "sparse": sparse}
"""Forms of the program by name: condensed for active-set solvers, sparse for osqp and long horizons."""
