"""A loop's program solved from the active set of the sample before, by the multipliers of the active bounds alone.

With the inputs V₀ = −H⁻¹F θ without bounds and the slacks eliminated, a set of active rows G_a has the multipliers λ of
(G_a H⁻¹G_a' + diag(1/2ρ)) λ = G_a V₀ − b + side w/2ρ, with ρ infinite at a row that meets its bound. H⁻¹ and its
products are computed once. The rows that the last set leaves violated are added one after the other, by steps of the
multipliers that keep their signs (a dual active-set method). A solver follows where the steps don't end.

Source: Goldfarb, Idnani, Mathematical Programming 27 (1983) 1-33.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.model.io.matrix import dense
from netctrl.mpc.parametric import ParametricProgram

_EXACT = 1e-5  # errors up to which a plan without a solver is taken
_MOST = 2000  # rows with a bound, whose square is kept


class DualSet:
    """Products of a condensed program, and the active set of the last solution."""

    __slots__ = ("_active", "_certified", "_parts")

    def __init__(self, program: ParametricProgram, into: Any) -> None:
        from netctrl.mpc.active.kernel import certified

        self._certified, m = certified, len(program.input_scale)
        size = m * int(program.stages.free.sum())
        N, k = len(program.g), program.A.shape[0]
        count = N - size  # slacks, whose soft rows come last and twice
        plain = np.r_[np.arange(size), N + np.arange(k - 2 * count)]
        first, second = N + k - 2 * count + np.arange(count), N + k - count + np.arange(count)
        low = np.concatenate([program.lower[plain], program.lower[first]])
        high = np.concatenate([program.upper[plain], program.upper[second]])
        # The bounds of corrections are never active: see `netctrl.mpc.formulate`.
        there = (np.isfinite(low) | np.isfinite(high)) & (
            ~np.isin(np.arange(len(low)), np.arange(size)) | (not program.gains.any())
        )
        used = np.concatenate([plain, second])[there]
        G = np.vstack([np.eye(size)[used[used < N]], dense(program.A)[used[used >= N] - N, :size]])
        root = np.linalg.inv(np.linalg.cholesky(dense(program.H)[:size, :size]))
        inverse = root.T @ root
        back = G @ inverse
        square, linear = np.full(len(low), np.inf), np.zeros(len(low))
        square[len(plain) :], linear[len(plain) :] = program.H.diagonal()[size:], program.g[size:]
        free = -inverse @ program.F[:size]
        data = (
            *(free, G @ free - program.E[used], G @ inverse @ G.T, back, low[there], high[there]),
            *(square[there], linear[there], program.concerns[used], program.cost_scale / program.units[used]),
            *(np.flatnonzero(program.stages.free), program.input_scale),
        )
        self._active = np.zeros(len(used), dtype=np.int8)
        most = min(len(used), size + int(np.isfinite(square[there]).sum()))  # independent ones, and any soft ones
        made, case = program.stages, program.case(np.zeros(program.n_parameters))
        self._parts = (
            (into.indptr.astype(np.int64), into.indices.astype(np.int64), into.data),
            *(np.zeros(program.n_parameters - len(case.start)), self._active, np.empty((most, most))),
            tuple(np.ascontiguousarray(each) for each in data),
            *(*made[:8], (program.order.pick, *made[8:12]), made.free, made.hold, (made.lower, made.upper)),
            tuple(each.copy() for each in (case.c, case.linear_z, case.linear_u, case.lower, case.upper)),
            *(made.rho, made.w, made.state_of, made.input_lower, made.input_upper, *program.regulator),
            program.gains if program.gains.any() else program.gains[:, :, :0],
        )

    @classmethod
    def of(cls, program: ParametricProgram, into: Any) -> DualSet | None:
        """The set of a program whose θ is the sparse matrix `into` times signals.

        None for a program that is too large, or whose Hessian is singular to rounding.
        """
        try:
            slacks = len(program.g) - len(program.input_scale) * int(program.stages.free.sum())
            rows = int((np.isfinite(program.lower) | np.isfinite(program.upper)).sum()) - 2 * slacks
            return cls(program, into) if rows <= _MOST else None
        except np.linalg.LinAlgError:
            return None

    def inputs(self, signals: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Inputs (P, m), or None where the set does not settle or the plan isn't exact; and θ."""
        worst, inputs, theta = self._certified(signals, *self._parts)
        return inputs if worst <= _EXACT else None, theta
