"""OSQP, an operator-splitting method (ADMM): for large sparse programs and warm starts; polished, else coarse.

Source: Stellato, Banjac, Goulart, Bemporad, Boyd, Math. Programming Computation 12 (2020) 637-672.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np

from netctrl.model.matrix import is_sparse
from netctrl.mpc.qp import QPStatus, QuadraticProgram
from netctrl.mpc.solvers.answer import Answer, missing

__all__ = ["OsqpWorkspace"]

_SETTINGS = {
    "eps_abs": 1e-8,
    "eps_rel": 1e-8,
    "eps_prim_inf": 1e-9,
    "max_iter": 20000,
    "polishing": True,
    "warm_starting": True,
    "verbose": False,
}


class OsqpWorkspace:
    """Keeps OSQP's factors and its last iterate; g and bounds are updated in place."""

    __slots__ = ("_size", "_solver", "_status")

    def __init__(self, program: QuadraticProgram) -> None:
        try:
            import osqp
        except ImportError:
            raise missing("osqp", "osqp", "pip install osqp") from None
        import scipy.sparse as sp

        n = program.n_variables
        H = sp.triu(program.H if is_sparse(program.H) else sp.csc_array(program.H), format="csc")
        rows = sp.vstack([sp.eye_array(n), sp.csc_array(program.A)], format="csc")
        self._size = n
        self._solver = osqp.OSQP()
        self._solver.setup(
            P=sp.csc_matrix(H),
            q=program.g.copy(),
            A=sp.csc_matrix(rows),
            l=program.lower.copy(),
            u=program.upper.copy(),
            **_SETTINGS,
        )
        named = {
            osqp.SolverStatus.OSQP_SOLVED: QPStatus.SOLVED,
            osqp.SolverStatus.OSQP_PRIMAL_INFEASIBLE: QPStatus.INFEASIBLE,
            osqp.SolverStatus.OSQP_DUAL_INFEASIBLE: QPStatus.UNBOUNDED,
        }
        self._status = {int(code): status for code, status in named.items()}

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """Of `Workspace`."""
        self._solver.update(q=g, l=lower, u=upper)
        if start is not None:
            self._solver.warm_start(x=start)
        with contextlib.redirect_stdout(io.StringIO()):  # it says so where there is nothing to polish
            found = self._solver.solve(raise_error=False)
        status = self._status.get(int(found.info.status_val), QPStatus.FAILED)
        return Answer(np.asarray(found.x), np.asarray(found.y), status, int(found.info.iter))
