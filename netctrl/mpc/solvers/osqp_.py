"""OSQP, an operator-splitting method (ADMM), for large sparse programs and warm starts; coarse unless polished.

Source: Stellato, Banjac, Goulart, Bemporad, Boyd, Math. Programming Computation 12 (2020) 637-672.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from netctrl.core.errors import optional_import
from netctrl.model.io.matrix import is_sparse
from netctrl.mpc.qp.program import Answer, QPStatus, QuadraticProgram

_SETTINGS = {
    "eps_abs": 1e-8,
    "eps_rel": 1e-8,
    "eps_prim_inf": 1e-9,
    "max_iter": 20000,
    "polishing": True,
    "warm_starting": True,
    "verbose": False,
}
# OSQP's own scaling makes some feasible programs look infeasible; more steps cost time only after a failure.
_ANEW = _SETTINGS | {"scaling": 0, "max_iter": 100_000, "eps_prim_inf": 1e-12, "eps_dual_inf": 1e-12}


class OsqpWorkspace:
    """Keeps OSQP's factors and its last iterate; g and bounds are updated in place."""

    __slots__ = ("_H", "_rows", "_solver", "_status")

    def __init__(self, program: QuadraticProgram) -> None:
        with optional_import():
            import osqp
        import scipy.sparse as sp

        H = sp.triu(program.H if is_sparse(program.H) else sp.csc_array(program.H), format="csc")
        rows = sp.vstack([sp.eye_array(program.n_variables), sp.csc_array(program.A)], format="csc")
        self._H, self._rows = sp.csc_matrix(H), sp.csc_matrix(rows)
        named = {
            osqp.SolverStatus.OSQP_SOLVED: QPStatus.SOLVED,
            osqp.SolverStatus.OSQP_PRIMAL_INFEASIBLE: QPStatus.INFEASIBLE,
            osqp.SolverStatus.OSQP_DUAL_INFEASIBLE: QPStatus.UNBOUNDED,
        }
        self._status = {int(code): status for code, status in named.items()}
        self._solver = self._set_up(program.g.copy(), program.lower.copy(), program.upper.copy(), _SETTINGS)

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """See `Workspace`."""
        self._solver.update(q=g, l=lower, u=upper)
        return self._solved(self._solver, start)

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        """See `Workspace`: without OSQP's scaling, and from 0."""
        return self._solved(self._set_up(g, lower, upper, _ANEW))

    def _set_up(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, settings: dict[str, Any]) -> Any:
        with optional_import():
            import osqp

        solver = osqp.OSQP()
        solver.setup(P=self._H, q=g, A=self._rows, l=lower, u=upper, **settings)
        return solver

    def _solved(self, solver: Any, start: np.ndarray | None = None) -> Answer:
        if start is not None:
            solver.warm_start(x=start)
        with contextlib.redirect_stdout(io.StringIO()):  # OSQP prints a message where there is nothing to polish
            found = solver.solve(raise_error=False)
        status = self._status.get(int(found.info.status_val), QPStatus.FAILED)
        return Answer(np.asarray(found.x), np.asarray(found.y), status, int(found.info.iter))
