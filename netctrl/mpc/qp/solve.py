"""Solve a program with any solver of `netctrl.core.register.QP_SOLVERS`, and check its verdict before returning it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netctrl.core.errors import InfeasibleProgram, NetctrlError, checked_kind, checked_word
from netctrl.core.register import QP_SOLVERS
from netctrl.mpc.qp.certificate import Optimality, farkas, ray
from netctrl.mpc.qp.program import Answer, QPSolution, QPStatus, QuadraticProgram, Workspace
from netctrl.mpc.qp.scaling import balance, balanced

_MIN = 1e-9  # smallest size of g and of violated bounds at x = 0, in balanced units


class CheckedWorkspace:
    """Solver set up once, whose answers are checked in the program's own data before they are returned.

    The solver gets the program with rows and columns of similar size. Its answer is accepted where
    `netctrl.mpc.qp.certificate` proves it. Otherwise the solver is called again with safer settings
    (`Workspace.anew`). Without a proof of this answer either, the status is FAILED.
    """

    __slots__ = ("_optimality", "_program", "_scaling", "_workspace")

    def __init__(self, program: QuadraticProgram, solver: str) -> None:
        self._program, self._scaling = program, balance(program.H, program.A)
        self._optimality = Optimality(program.H, program.A, self._scaling)
        self._workspace: Workspace = QP_SOLVERS[solver](balanced(program, self._scaling))

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """Solution for other g (n,) and bounds (n + k,), infinite where those of the program are.

        SOLVED: bounds, stationarity and complementarity hold to `netctrl.mpc.qp.certificate.TOLERANCE`. INFEASIBLE,
        UNBOUNDED: `farkas` or `ray` gives the proof.
        """
        tried = 0
        for answer in self.answers(g, lower, upper, start):
            tried += answer.iterations
            if answer.status is not QPStatus.FAILED:
                return answer._replace(iterations=tried)
        return Answer(
            np.full(len(g), np.nan),
            np.full(len(lower), np.nan),
            self.proved(self._program.changed(g, lower, upper)),
            tried,
        )

    def answers(
        self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None
    ) -> Iterator[Answer]:
        """Answers of the solver as usual and, if asked for another, with safer settings.

        Each status but FAILED is proved. x and y of a FAILED answer are what the solver found, without a proof.
        """
        columns, bounds, cost = self._scaling
        n = len(g)
        # A row of zeros constrains nothing. The final check covers it, as 0 ≤ −1e-17 doesn't make a program infeasible.
        low, high = lower * bounds, upper * bounds
        low[n:][self._optimality.empty & (low[n:] > 0.0)] = 0.0
        high[n:][self._optimality.empty & (high[n:] < 0.0)] = 0.0
        pull = g * columns * cost
        # Size of the data that move x away from 0: tolerances must be small where it is.
        drive = max(float(np.abs(pull).max(initial=0.0)), float(low.max(initial=0.0)), float(-high.min(initial=0.0)))
        unit = 2.0 ** np.round(np.log2(min(max(drive, _MIN), 1.0)))
        if drive == 0.0 and self._optimality.holds(g, lower, upper, np.zeros(n), np.zeros(len(low))):
            yield Answer(np.zeros(n), np.zeros(len(low)), QPStatus.SOLVED, 0)
            return
        scaled = (pull / unit, low / unit, high / unit)
        start = None if start is None else start / columns / unit
        for usual in (True, False):
            answer = self._workspace.solve(*scaled, start) if usual else self._workspace.anew(*scaled)
            x, y = self._scaling.point(answer.x) * unit, self._scaling.multipliers(answer.multipliers) * unit
            status = QPStatus.FAILED
            if answer.status is QPStatus.SOLVED:
                status = QPStatus.SOLVED if self._optimality.holds(g, lower, upper, x, y) else status
            elif answer.status is not QPStatus.FAILED:
                status = self.proved(self._program.changed(g, lower, upper))
            yield Answer(x, y, status, answer.iterations)

    def proved(self, program: QuadraticProgram) -> QPStatus:
        """Provable status of a program that wasn't solved; FAILED without a proof."""
        if farkas(program) is not None:
            return QPStatus.INFEASIBLE
        return QPStatus.UNBOUNDED if ray(program) is not None else QPStatus.FAILED


def open_solver(program: QuadraticProgram, solver: str = "daqp") -> CheckedWorkspace:
    """Set up a program in a solver, to be solved for many g and bounds.

    Raises
    ------
    InvalidValue
        An unknown solver (the message lists the known ones), or one that isn't installed (the message says how to
        install it).
    """
    checked_kind("program", program, QuadraticProgram)
    checked_word("solver", solver, QP_SOLVERS)
    return CheckedWorkspace(program, solver)


def solve_qp(
    program: QuadraticProgram, *, solver: str = "daqp", start: np.ndarray | None = None, strict: bool = True
) -> QPSolution:
    """Solve a convex quadratic program.

        min ½ x'Hx + g'x  over x,  lower ≤ [x; A x] ≤ upper

    Parameters
    ----------
    program : QuadraticProgram
        n variables.
    solver : str
        "daqp" and "qpoases" are active-set methods, accurate to rounding on small dense programs; "osqp" is for large
        sparse ones; "clarabel" is an interior-point method, through cvxpy.
    start : ndarray, shape (n,), optional
        Initial guess of x; only osqp uses it.
    strict : bool
        Whether to raise an exception where there is no solution; otherwise see `status` of the result.

    Returns
    -------
    QPSolution

    Raises
    ------
    InvalidValue
        An unknown solver, or a program that the solver does not support.
    InfeasibleProgram
        Conflicting bounds; the message names them and the size of the conflict.
    NetctrlError
        The cost has no lower bound, or the solver fails.

    Examples
    --------
    The point nearest to (1, 1) with x[0] + x[1] ≤ 1:

    >>> import netctrl, numpy as np
    >>> from netctrl.mpc.qp.program import QuadraticProgram
    >>> from netctrl.mpc.qp.solve import solve_qp
    >>> free = [np.inf, np.inf]
    >>> program = QuadraticProgram(np.eye(2), [-1, -1], [[1, 1]], [-np.inf, -np.inf, -np.inf], [*free, 1.0])
    >>> solve_qp(program).x.round(3).tolist()
    [0.5, 0.5]
    """
    checked_kind("program", program, QuadraticProgram)
    own = (program.g.copy(), program.lower.copy(), program.upper.copy())  # DAQP rejects read-only arrays
    answer = open_solver(program, solver).solve(*own, start)
    if answer.status is QPStatus.SOLVED:
        return QPSolution(program, answer.x, answer.multipliers, answer.status, solver, answer.iterations)
    if strict:
        raise failure(program, answer.status, solver)
    x, y = np.full(program.n_variables, np.nan), np.full(len(program.lower), np.nan)
    return QPSolution(program, x, y, answer.status, solver, answer.iterations)


def failure(program: QuadraticProgram, status: QPStatus, solver: str) -> NetctrlError:
    """Exception for a program without a solution."""
    if status is QPStatus.INFEASIBLE:
        from netctrl.mpc.qp.certificate import conflict

        found = conflict(program)
        if found is not None:
            return InfeasibleProgram(found.message, found)
    if status is QPStatus.UNBOUNDED:
        return NetctrlError("the program's cost is unbounded below: give every direction a weight or a bound")
    others = ", ".join(name for name in QP_SOLVERS if name != solver)
    return NetctrlError(f"{solver} stopped before its tolerance: try {others}, or scale the problem")
