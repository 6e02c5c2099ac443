"""One program solved by any solver of `netctrl.register.QP_SOLVERS`: no verdict is passed on that wasn't checked."""

from __future__ import annotations

import numpy as np

from netctrl.errors import InfeasibleProgram, NetctrlError, checked_kind, checked_word
from netctrl.mpc.qp.certificate import Optimality, farkas, ray
from netctrl.mpc.qp.program import QPSolution, QPStatus, QuadraticProgram
from netctrl.mpc.qp.scaling import balance, balanced
from netctrl.mpc.solvers.answer import Answer, Workspace
from netctrl.register import QP_SOLVERS

__all__ = ["CheckedWorkspace", "open_solver", "solve_qp"]

_MIN = 1e-9  # of g and of broken bounds at x = 0, in balanced units


class CheckedWorkspace:
    """A solver that is set up once, whose answers are checked in the program's own data before they are passed on.

    It sees the program in units in which its rows and columns are of one size. What it says stands where
    `netctrl.mpc.qp.certificate` can prove it; else it is asked once more, in another way (`Workspace.anew`). An answer
    that stands neither time is FAILED.
    """

    __slots__ = ("_optimality", "_program", "_scaling", "_workspace")

    def __init__(self, program: QuadraticProgram, solver: str) -> None:
        self._program, self._scaling = program, balance(program.H, program.A)
        self._optimality = Optimality(program.H, program.A, self._scaling)
        self._workspace: Workspace = QP_SOLVERS[solver](balanced(program, self._scaling).program)

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """The answer for other g (n,) and bounds (n + k,), infinite where those of the program are.

        SOLVED: bounds, stationarity and complementarity hold to `netctrl.mpc.qp.certificate.TOLERANCE`. INFEASIBLE,
        UNBOUNDED: `farkas` or `ray` has the proof.
        """
        columns, bounds, cost = self._scaling
        n = len(g)
        # A row of zeros bounds nothing. What it asks is left to the check, as 0 ≤ −1e-17 is no reason to refuse.
        low, high = lower * bounds, upper * bounds
        low[n:][self._optimality.empty & (low[n:] > 0.0)] = 0.0
        high[n:][self._optimality.empty & (high[n:] < 0.0)] = 0.0
        pull = g * columns * cost
        # What moves x from 0 at all: where it is small, tolerances have to be.
        drive = max(float(np.abs(pull).max(initial=0.0)), float(low.max(initial=0.0)), float(-high.min(initial=0.0)))
        unit = 2.0 ** np.round(np.log2(min(max(drive, _MIN), 1.0)))
        x, y, tried = np.full(n, np.nan), np.full(len(low), np.nan), 0
        if drive == 0.0 and self._optimality.holds(g, lower, upper, 0.0 * g, 0.0 * low):
            return Answer(np.zeros(n), np.zeros(len(low)), QPStatus.SOLVED, 0)
        scaled = (pull / unit, low / unit, high / unit)
        for ask in (self._workspace.solve, self._workspace.anew):
            answer = ask(*scaled, None if start is None else start / columns / unit)
            tried += answer.iterations
            if answer.status is QPStatus.SOLVED:
                found = self._scaling.point(answer.x) * unit, self._scaling.multipliers(answer.multipliers) * unit
                if self._optimality.holds(g, lower, upper, *found):
                    return Answer(*found, QPStatus.SOLVED, tried)
            elif answer.status is not QPStatus.FAILED:
                status = self._proved(g, lower, upper)
                if status is not QPStatus.FAILED:
                    return Answer(x, y, status, tried)
        return Answer(x, y, self._proved(g, lower, upper), tried)

    def _proved(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> QPStatus:
        """What can be proved of a program that wasn't solved; FAILED where nothing can."""
        program = self._program.changed(g, lower, upper)
        if farkas(program) is not None:
            return QPStatus.INFEASIBLE
        return QPStatus.UNBOUNDED if ray(program) is not None else QPStatus.FAILED


def open_solver(program: QuadraticProgram, solver: str = "daqp") -> CheckedWorkspace:
    """Set a program up in a solver, to be solved for many g and bounds.

    Raises
    ------
    InvalidValue
        An unknown solver (the known ones are listed), or one that isn't installed (with how to get it).
    """
    checked_kind("program", program, QuadraticProgram)
    checked_word("solver", solver, QP_SOLVERS)
    return CheckedWorkspace(program, solver)


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
    checked_kind("program", program, QuadraticProgram)
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
        from netctrl.mpc.qp.infeasible import conflict

        found = conflict(program)
        if found is not None:
            return InfeasibleProgram(found.message, found)
    if status is QPStatus.UNBOUNDED:
        return NetctrlError("the program's cost falls without end: weigh or bound every direction")
    others = ", ".join(name for name in QP_SOLVERS if name != solver)
    return NetctrlError(f"{solver} stopped before its tolerance: try {others}, or scale the problem")
