"""The table of solvers, and one program solved by any of them."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from netctrl.errors import InfeasibleProgram, InvalidValue, NetctrlError
from netctrl.mpc.qp import QPSolution, QPStatus, QuadraticProgram
from netctrl.mpc.solvers.answer import Workspace

__all__ = ["SOLVERS", "open_solver", "solve_qp"]

SOLVERS = {
    "daqp": ("netctrl.mpc.solvers.daqp_", "DaqpWorkspace"),
    "qpoases": ("netctrl.mpc.solvers.qpoases_", "QpoasesWorkspace"),
    "osqp": ("netctrl.mpc.solvers.osqp_", "OsqpWorkspace"),
    "clarabel": ("netctrl.mpc.solvers.cvxpy_", "CvxpyWorkspace"),
}
"""Name: module and class of its adapter, imported when it is asked for."""


def open_solver(program: QuadraticProgram, solver: str = "daqp") -> Workspace:
    """Set a program up in a solver, to be solved for many g and bounds.

    Raises
    ------
    InvalidValue
        An unknown solver (the known ones are listed), or one that isn't installed (with how to get it).
    """
    if solver not in SOLVERS:
        raise InvalidValue("solver", solver, f"one of {', '.join(SOLVERS)}")
    module, name = SOLVERS[solver]
    return getattr(import_module(module), name)(program)


def solve_qp(
    program: QuadraticProgram, *, solver: str = "daqp", start: np.ndarray | None = None, strict: bool = True
) -> QPSolution:
    """Solve one program.

    Parameters
    ----------
    program : QuadraticProgram
    solver : str
        daqp and qpoases are active-set methods, to rounding on small dense programs; osqp is for large sparse ones;
        clarabel is an interior-point method, through cvxpy.
    start : ndarray, shape (n,), optional
        A guess of x; only osqp can use it.
    strict : bool
        Whether to raise where there is no solution; else look at `status`.

    Raises
    ------
    InvalidValue
        Of `open_solver`.
    InfeasibleProgram
        Bounds that exclude each other, by name and by how much.
    NetctrlError
        A cost without a least value, or a solver that gave up.
    """
    own = (program.g.copy(), program.lower.copy(), program.upper.copy())  # DAQP takes no read-only arrays
    answer = open_solver(program, solver).solve(*own, start)
    if answer.status is QPStatus.SOLVED:
        return QPSolution(program, answer.x, answer.multipliers, answer.status, solver, answer.iterations)
    if strict:
        raise failure(program, answer.status, solver)
    x, y = np.full(program.n_variables, np.nan), np.full(len(program.lower), np.nan)
    return QPSolution(program, x, y, answer.status, solver, answer.iterations)


def failure(program: QuadraticProgram, status: QPStatus, solver: str) -> NetctrlError:
    """What to raise where a program has no solution."""
    if status is QPStatus.INFEASIBLE:
        from netctrl.mpc.infeasible import conflict

        found = conflict(program)
        if found is not None:
            return InfeasibleProgram(found.message, found)
    if status is QPStatus.UNBOUNDED:
        return NetctrlError("the program's cost falls without end: weigh or bound every direction")
    others = ", ".join(name for name in SOLVERS if name != solver)
    return NetctrlError(f"{solver} stopped before its tolerance: try {others}, or scale the problem")
