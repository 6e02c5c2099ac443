"""One solution of an MPC problem, from a measured state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import NetctrlError, checked_word
from netctrl.mpc.formulate import condensed, sparse
from netctrl.mpc.parametric import ParametricProgram, parameters
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import Answer, QPSolution, QPStatus
from netctrl.mpc.qp.solve import CheckedWorkspace, failure, open_solver
from netctrl.mpc.refine import Refined, refined
from netctrl.mpc.stages import growth
from netctrl.mpc.verify import PlanResiduals, residuals

_LOST = 1e-4 / float(
    np.finfo(float).eps
)  # growth over the horizon by which rounding becomes as large as inputs' errors

FORMS = {"condensed": condensed, "sparse": sparse}
"""Forms of the program by name: condensed for active-set solvers, sparse for osqp and long horizons."""


@dataclass(frozen=True, slots=True, eq=False)
class MpcPlan:
    """Optimal inputs of an MPC problem, and the predicted states."""

    inputs: np.ndarray
    """(P, m) u_0 .. u_{P−1} [the plant's units]; u_0 is to be applied."""
    states: np.ndarray
    """(P + 1, n) x_0 .. x_P; x_0 is the state after the delay."""
    excess: np.ndarray
    """(P + 1, n) violation of state bounds; 0 except for soft bounds, and for x_0, which no input changes."""
    solution: QPSolution
    """The solver's solution of the scaled quadratic program; where it has none, or one that is too coarse, the plan
    comes from a refinement stage by stage."""
    residuals: PlanResiduals
    """Residuals of the problem itself, stage by stage; a plan with large ones is rejected."""

    def __post_init__(self) -> None:
        for part in (self.inputs, self.states, self.excess):
            part.setflags(write=False)


def formulated(problem: MpcProblem, form: str = "condensed") -> ParametricProgram:
    """Program of a problem in one of FORMS; raises InvalidValue for another name."""
    return FORMS[checked_word("form", form, FORMS)](problem)


def solve_mpc(
    problem: MpcProblem, state: Any, *, past_inputs: Any = None, solver: str = "daqp", form: str = "condensed"
) -> MpcPlan:
    """Solve an MPC problem from a measured state.

    Parameters
    ----------
    problem : MpcProblem
        n states, m inputs, delay d.
    state : array_like, shape (n,)
        Measured state.
    past_inputs : array_like, shape (at least d, m), optional
        Inputs applied before, oldest first; needed with a delay or a rate weight.
    solver : str
        One of `netctrl.register.QP_SOLVERS`.
    form : {"condensed", "sparse"}
        Quadratic program in the inputs alone, or in inputs and states.

    Returns
    -------
    MpcPlan

    Raises
    ------
    InfeasibleProgram
        No plan meets all bounds; the message names the conflicting bounds by state or input and step.
    InvalidValue
        Shapes that don't fit, an unknown solver or form.
    NetctrlError
        No plan passes the check; the message says whether the solver stopped or rounding decides.

    Examples
    --------
    >>> import netctrl
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_weight=1.0)
    >>> plan = netctrl.solve_mpc(problem, [2.0])
    >>> round(float(plan.inputs[0, 0]), 3), plan.states.shape
    (-1.236, (6, 1))
    """
    program = formulated(problem, form)
    theta = parameters(problem, state, past_inputs)
    at = program.program(theta)
    status, answer, inputs, states, errors, reason = planned(problem, program, open_solver(at, solver), theta)
    if errors is None:
        raise NetctrlError(reason) if status is QPStatus.FAILED else failure(at, status, solver)
    x, y = answer.x, answer.multipliers
    if answer.status is not QPStatus.SOLVED:
        x, y = np.full_like(x, np.nan), np.full_like(y, np.nan)
    solution = QPSolution(at, x, y, answer.status, solver, answer.iterations)
    states = np.ascontiguousarray(states[:, : problem.plant.n_states])
    excess = np.maximum(states - problem.state_upper, 0.0) + np.maximum(problem.state_lower - states, 0.0)
    return MpcPlan(inputs, states, excess, solution, errors)


class Outcome(NamedTuple):
    """Result of one solve: a plan that passes the check, or the reason why there is none."""

    status: QPStatus
    """SOLVED with a plan; INFEASIBLE and UNBOUNDED are proved."""
    answer: Answer
    """Last answer of the solver."""
    inputs: np.ndarray
    """(P, m)"""
    states: np.ndarray
    """(P + 1, q) z_0 .. z_P."""
    residuals: PlanResiduals | None
    """Residuals of the plan; None without one."""
    reason: str
    """Reason of status FAILED in words; empty otherwise."""


def planned(
    problem: MpcProblem,
    program: ParametricProgram,
    workspace: CheckedWorkspace,
    theta: np.ndarray,
    start: np.ndarray | None = None,
) -> Outcome:
    """Plan at θ, shape (q,), by a solver that was set up for the program; `start` is its initial guess.

    A plan of the solver that fails the check is refined; so is the clipped regulator, where the solver has no plan.
    """
    shift = program.E @ theta
    none = (np.empty((0, 0)), np.empty((0, 0)), None)
    worst, tried = np.inf, 0
    answer = Answer(np.full(len(program.g), np.nan), np.full(len(program.lower), np.nan), QPStatus.FAILED, 0)
    for answer in workspace.answers(program.g + program.F @ theta, program.lower + shift, program.upper + shift, start):
        tried += answer.iterations
        answer = answer._replace(iterations=tried)
        if answer.status in (QPStatus.INFEASIBLE, QPStatus.UNBOUNDED):
            return Outcome(answer.status, answer, *none, "")
        for found in _candidates(problem, program, answer, theta):
            errors = residuals(problem, program, *found)
            if errors.solved:
                return Outcome(QPStatus.SOLVED, answer, found.inputs, found.states, errors, "")
            worst = min(worst, errors.worst)
    status = workspace.proved(program.program(theta)) if answer.status is QPStatus.FAILED else QPStatus.FAILED
    reason = _reason(program, worst) if status is QPStatus.FAILED else ""
    return Outcome(status, answer, *none, reason)


def _candidates(
    problem: MpcProblem, program: ParametricProgram, answer: Answer, theta: np.ndarray
) -> Iterator[Refined]:
    """Plans with their multipliers: the solver's, that one refined, the clipped regulator refined."""
    made, gains = program.stages, program.regulator.K
    starts: list[tuple[np.ndarray, np.ndarray, np.ndarray] | None] = [None]
    if np.isfinite(answer.x).all() and np.isfinite(answer.multipliers).all():
        inputs, states = program.plan(answer.x, theta)
        if np.isfinite(states).all():
            nu, mu = program.multipliers(answer.multipliers)
            if answer.status is QPStatus.SOLVED:
                yield Refined(inputs, states, nu, mu, program.regulator)
            starts = [(inputs, nu, mu), None]
    for near in starts:
        found = refined(problem, made, gains, theta, near)
        if found is not None:
            yield found


def _reason(program: ParametricProgram, worst: float) -> str:
    """Why no plan passed the check."""
    grown = growth(program.stages.A, program.horizon)
    if np.isfinite(worst):
        said = f"the closest plan differs from the problem's solution by {worst:.1e}"
    else:
        said = "the solver found no plan, and the set of active bounds did not settle"
    if grown > _LOST:
        return (
            f"{said}: the plant's fastest mode grows by {grown:.0e} over the horizon, more than double precision "
            "resolves; shorten the horizon, or try another solver or form"
        )
    return f"{said}: try another solver or form, or scale the problem"
