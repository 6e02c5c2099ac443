"""cvxpy with Clarabel, an interior-point method: one parametrised problem, compiled once.

Source: Goulart, Chen, "Clarabel: an interior-point solver for conic programs with quadratic objectives" (2024).
"""

from __future__ import annotations

import warnings

import numpy as np

from netctrl.core.errors import optional_import
from netctrl.mpc.qp.program import Answer, QPStatus, QuadraticProgram

_TIGHT, _LOOSE = 1e-11, 1e-8  # some programs reach only the looser one
_STATUS = {"optimal": QPStatus.SOLVED, "optimal_inaccurate": QPStatus.SOLVED}
_STATUS |= dict.fromkeys(("infeasible", "infeasible_inaccurate"), QPStatus.INFEASIBLE)
_STATUS |= dict.fromkeys(("unbounded", "unbounded_inaccurate"), QPStatus.UNBOUNDED)


class CvxpyWorkspace:
    """A problem whose g and finite bounds are parameters."""

    __slots__ = ("_g", "_high", "_low", "_problem", "_size", "_x")

    def __init__(self, program: QuadraticProgram) -> None:
        with optional_import():
            import cvxpy as cp
        n = program.n_variables
        self._x, self._g, self._size = cp.Variable(n), cp.Parameter(n), n + program.n_rows
        stacked = cp.hstack([self._x, program.A @ self._x]) if program.n_rows else self._x
        low, high = (np.flatnonzero(np.isfinite(each)) for each in (program.lower, program.upper))
        self._low, self._high = ((at, cp.Parameter(len(at)) if len(at) else None) for at in (low, high))
        (low_at, low_by), (high_at, high_by) = self._low, self._high
        constraints = [] if low_by is None else [stacked[low_at] >= low_by]
        constraints += [] if high_by is None else [stacked[high_at] <= high_by]
        cost = 0.5 * cp.quad_form(self._x, cp.psd_wrap(program.H)) + self._g @ self._x
        self._problem = cp.Problem(cp.Minimize(cost), constraints)

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """See `Workspace`; `start` is ignored, as interior-point methods can't use it."""
        return self._to(_TIGHT, g, lower, upper)

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        """See `Workspace`: to Clarabel's own tolerance."""
        return self._to(_LOOSE, g, lower, upper)

    def _to(self, tolerance: float, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        self._g.value = g
        for (at, parameter), bound in ((self._low, lower), (self._high, upper)):
            if parameter is not None:
                parameter.value = bound[at]
        if not self._solved(tolerance):
            return Answer(np.full(len(g), np.nan), np.full(self._size, np.nan), QPStatus.FAILED, 0)
        status = _STATUS.get(self._problem.status, QPStatus.FAILED)
        iterations = self._problem.solver_stats.num_iters or 0
        if status is not QPStatus.SOLVED:
            return Answer(np.full(len(g), np.nan), np.full(self._size, np.nan), status, iterations)
        return Answer(np.array(self._x.value), self._multipliers(), status, iterations)

    def _solved(self, tolerance: float) -> bool:
        with optional_import():
            import cvxpy as cp

        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate": the residuals are checked
                self._problem.solve(solver=cp.CLARABEL, **options)
        except cp.SolverError:
            return False
        return True

    def _multipliers(self) -> np.ndarray:
        found, duals = np.zeros(self._size), iter(self._problem.constraints)
        for (at, parameter), sign in ((self._low, -1.0), (self._high, 1.0)):
            if parameter is not None:
                found[at] += sign * np.asarray(next(duals).dual_value)
        return found
