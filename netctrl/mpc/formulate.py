"""Linear MPC as a quadratic program of the measured state: condensed (inputs only) or sparse (inputs and states)."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import checked_kind
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.scaled import bounds_of, in_units, of_variables, owners, row_bounds, row_units, scales, with_slacks
from netctrl.mpc.sparse import sparse
from netctrl.mpc.stages import Given


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
    eased, eye = names.eased, np.eye(len(names.eased))
    H, g, F = with_slacks(scaled, eased, scaled.H, scaled.F)
    m, R = len(scaled.input_scale), len(made.rows)
    wanted = np.concatenate([names.hard, eased])
    k, r = np.divmod(wanted, max(R, 1))
    of_z, of_u = made.E[made.kind[k], r], made.F[made.kind[k], r]
    # u_P doesn't exist; its F is 0.
    j = np.minimum(k, made.kind.size - 2)
    Gamma = np.einsum("iq,iqv->iv", of_z, by.Gamma[k]) + np.einsum("im,imv->iv", of_u, by.L[j])
    Phi = np.einsum("iq,iqt->it", of_z, by.Phi[k]) + np.einsum("im,imt->it", of_u, by.Psi[j])
    Gamma = Gamma * scaled.v / scaled.row_scale[r][:, None]
    L = (
        by.L.reshape(-1, len(scaled.v))[names.ruled]
        * scaled.v
        / np.tile(scaled.input_scale, len(by.L))[names.ruled, None]
    )
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
    low, high = of_variables(problem, scaled, names)
    (low_u, high_u), (low_r, high_r), (low_s, high_s) = row_bounds(scaled, of_rows)
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
        units=np.concatenate([scaled.v, scaled.row_scale[eased % max(R, 1)], *row_units(scaled, of_rows)]),
        concerns=np.concatenate(
            [owners(scaled, names), np.full(len(eased), -1), names.ruled, size + names.hard, size + eased, size + eased]
        ),
        **scales(scaled),
    )


FORMS = {"condensed": condensed, "sparse": sparse}
"""Forms of the program by name: condensed for active-set solvers, sparse for osqp and long horizons."""
