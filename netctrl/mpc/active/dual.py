"""A loop's program solved from the active set of the sample before, by the multipliers of the active bounds alone.

With the inputs V₀ = −H⁻¹F θ without bounds and the slacks eliminated, a set of active rows G_a has the multipliers λ of
(G_a H⁻¹G_a' + diag(1/2ρ)) λ = G_a V₀ − b + side w/2ρ, with ρ infinite at a row that meets its bound. H⁻¹ and its
products are computed once. The rows that the last set leaves violated are added one after the other, by steps of the
multipliers that keep their signs (a dual active-set method). A solver follows where the steps don't end.

Source: Goldfarb, Idnani, Mathematical Programming 27 (1983) 1-33.
"""

from __future__ import annotations

import numpy as np

from netctrl.model.io.matrix import dense
from netctrl.mpc.parametric import Case, ParametricProgram

_MOST = 2000  # rows with a bound, whose square is kept


class DualSet:
    """Products of a condensed program, and the active set of the last solution."""

    __slots__ = ("_active", "_case", "_data", "_given", "_program", "_root")

    def __init__(self, program: ParametricProgram) -> None:
        m = len(program.input_scale)
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
        self._data = tuple(np.ascontiguousarray(each) for each in data)
        self._active = np.zeros(len(used), dtype=np.int8)
        self._given, self._case = np.zeros(0), program.case(np.zeros(program.n_parameters))
        most = min(len(used), size + int(np.isfinite(square[there]).sum()))  # independent ones, and any soft ones
        self._program, self._root = program, np.empty((most, most))

    @classmethod
    def of(cls, program: ParametricProgram) -> DualSet | None:
        """The set of a program; None for one that is too large, or whose Hessian is singular to rounding."""
        try:
            slacks = len(program.g) - len(program.input_scale) * int(program.stages.free.sum())
            rows = int((np.isfinite(program.lower) | np.isfinite(program.upper)).sum()) - 2 * slacks
            return cls(program) if rows <= _MOST else None
        except np.linalg.LinAlgError:
            return None

    def case(self, theta: np.ndarray) -> Case:
        """`ParametricProgram.case`, whose terms are kept as long as references and disturbances are the same."""
        q = self._program.gains.shape[2]
        if not np.array_equal(theta[q:], self._given):
            self._given, self._case = theta[q:].copy(), self._program.case(theta)
        return self._case._replace(start=theta[:q])

    def plan(self, case: Case, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Inputs, states and the multipliers of inputs and rows; None where the set does not settle."""
        from netctrl.mpc.active.kernel import settled

        made, program = case.stages, self._program
        settles, inputs, states, nu, mu = settled(
            theta, self._active, self._root, *self._data, made.kind, made.A, made.B, case.c, program.gains, case.lower
        )
        return (inputs, states, nu, mu) if settles else None
