"""One solution of an MPC problem, from a measured state, verified: model, bounds, stationarity and gap, stage by stage.

Of the solved program the verification uses the multipliers only, so errors of the formulation are detected as well.
Where an unstable plant leaves its bounds, multipliers reach any power of ten, and rounding times a multiplier is no
error of the plan. An input exactly on its bound has no slack, and takes the multiplier that its gradient asks for; a
state is as far from its bound as its summands' rounding doesn't explain (componentwise backward error).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError, checked_kind, checked_word
from netctrl.core.register import QP_SOLVERS
from netctrl.model.io.display import Shown
from netctrl.model.io.matrix import is_sparse
from netctrl.mpc.formulate import FORMS
from netctrl.mpc.parametric import Case, ParametricProgram, given, parameters
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import Answer, QPSolution, QPStatus
from netctrl.mpc.qp.solve import CheckedWorkspace, failure, open_solver
from netctrl.mpc.refine import Refined, refined
from netctrl.mpc.stages import Given, Regulator, growth

_OF_BOUNDS, _OF_INPUTS = 1e-6, 1e-4
_LARGE = 500  # variables of a dense program above which a plan is sought stage by stage first


class PlanResiduals(NamedTuple):
    """Relative errors of a plan; 0 for the exact one."""

    bounds: float
    """Largest violation of an input's or a state's hard bound, relative to the bound or to the state's summands."""
    stationarity: float
    """Gradient of the cost by an input over its curvature, an error of the input, relative to the inputs' size."""
    gap: float
    """Distance of the multipliers' lower bound from the cost, as an error of the inputs relative to their size."""

    @property
    def worst(self) -> float:
        """Largest of the errors; NaN where any is NaN."""
        return float(np.max(self))

    @property
    def solved(self) -> bool:
        """Whether bounds are met to 1e-6 and inputs accurate to 1e-4; False for NaN."""
        return bool(self.bounds <= _OF_BOUNDS and max(self.stationarity, self.gap) <= _OF_INPUTS)


def residuals(
    case: Case,
    inputs: np.ndarray,
    states: np.ndarray,
    input_multipliers: np.ndarray,
    row_multipliers: np.ndarray,
    regulator: Regulator | None = None,
) -> PlanResiduals:
    """Residuals of inputs (P, m) and predicted states z (P + 1, q), with multipliers ν (P, m) and μ (P + 1, R).

    λ_P = 2 (T z_P + L_q s_P) + E'μ_P, λ_k = 2 (Q z_k + N u_k + L_q s_k) + A'λ_{k+1} + E'μ_k and
    r_k = 2 (N'z_k + R u_k + L_r s_k) + B'λ_{k+1} + F'μ_k + ν_k = 0.
    Subtracting K_k'r_k from λ_k, which has no effect where r = 0, makes r the gradient by v of u = v − K z with the
    regulator's gains. This avoids powers of an unstable A, and r_k over 2 M_k is the distance of v_k from its optimum.
    `regulator` is the one while the inputs on their bounds stay there, by default the one without bounds, whose prices
    M_k are lower: the more later inputs are on their bounds, the more each free one costs.
    """
    from netctrl.mpc.kernels import errors_of_plan

    free, made = case.regulator, case.stages
    K, price = free if regulator is None else regulator
    if price is not free.price:
        price = np.maximum(price, free.price)
    held = inputs if made.free.all() else np.where(made.free[:, None], inputs, 0.0)
    found = errors_of_plan(
        *made[:8], case.c, case.linear_z, case.linear_u, case.lower, case.upper, made.rho, made.w, made.state_of,
        made.input_lower, made.input_upper, K, price, free.price[0], held, states, input_multipliers, row_multipliers,
    )  # fmt: skip
    return PlanResiduals(*found)


_LOST = 1e-4 / float(
    np.finfo(float).eps
)  # growth over the horizon by which rounding becomes as large as inputs' errors


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MpcPlan(Shown):
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


def formulated(problem: MpcProblem, form: str = "condensed", given: Given | None = None) -> ParametricProgram:
    """Program of a problem in one of FORMS; raises InvalidValue for another name."""
    return FORMS[checked_word("form", form, FORMS)](problem, given)


def solve_mpc(
    problem: MpcProblem,
    state: Any,
    *,
    past_inputs: Any = None,
    reference: Any = None,
    state_reference: Any = None,
    input_reference: Any = None,
    disturbances: Any = None,
    past_disturbances: Any = None,
    solver: str = "daqp",
    form: str = "condensed",
) -> MpcPlan:
    """Solve an MPC problem from a measured state.

    Parameters
    ----------
    problem : MpcProblem
        n states, m inputs, p outputs, delay d.
    state : array_like, shape (n,)
        Measured state.
    past_inputs : array_like, shape (at least d, m), optional
        Inputs applied before, oldest first; needed with a delay, blocks, or a weight or bounds of changes.
    reference : array_like, shape (p,) or (any, p), or function, optional
        r: constant, or one row for each sample from the present one on (preview), the last of which is held, or a
        function of the sample 0, 1, ... that gives a row. The first output that the plan can change is d samples ahead.
    state_reference, input_reference : likewise, shapes (n,) and (m,), optional
        x_ref and u_ref, from which the state, terminal and input weights count; u_ref from the first input decided.
    disturbances : likewise, shape (number of measured disturbances,), optional
        w from the present sample on; 0 by default.
    past_disturbances : array_like, optional
        Rows of w before, oldest first, over the measurement delay; by default the present w.
    solver : str
        One of `netctrl.core.register.QP_SOLVERS`.
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

    A step of the reference three samples ahead, which the plan prepares for:

    >>> problem = netctrl.MpcProblem(plant=plant, horizon=5, output_weight=1.0, input_weight=1.0)
    >>> netctrl.solve_mpc(problem, [0.0], reference=[0, 0, 0, 1, 1, 1]).inputs.ravel().round(2).tolist()
    [0.09, 0.18, 0.45, 0.17, 0.06]
    """
    signals = {
        "reference": reference,
        "state_reference": state_reference,
        "input_reference": input_reference,
        "disturbances": disturbances,
    }
    checked_kind("problem", problem, MpcProblem)
    checked_word("solver", solver, QP_SOLVERS)
    program = formulated(problem, form, given(problem, **signals))
    theta = parameters(problem, state, past_inputs, program.given, past_disturbances=past_disturbances, **signals)
    at = program.program(theta)
    found = by_stages(program, program.case(theta))  # before a solver is set up, which takes long for large programs
    found = planned(program, open_solver(at, solver), theta) if found is None else found
    status, answer, inputs, states, errors, reason = found
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
    program: ParametricProgram, workspace: CheckedWorkspace, theta: np.ndarray, start: np.ndarray | None = None
) -> Outcome:
    """Plan at θ by a solver that was set up for the program; `start` is its initial guess.

    A plan of the solver that fails the check is refined; so is the clipped regulator, where the solver has no plan.
    """
    case = program.case(theta)
    if (staged := by_stages(program, case)) is not None:
        return staged
    shift = program.E @ theta
    none = (np.empty((0, 0)), np.empty((0, 0)), None)
    worst, tried = np.inf, 0
    answer = Answer(np.full(len(program.g), np.nan), np.full(len(program.lower), np.nan), QPStatus.FAILED, 0)
    for answer in workspace.answers(program.g + program.F @ theta, program.lower + shift, program.upper + shift, start):
        tried += answer.iterations
        answer = answer._replace(iterations=tried)
        if answer.status in (QPStatus.INFEASIBLE, QPStatus.UNBOUNDED):
            return Outcome(answer.status, answer, *none, "")
        for found in _candidates(program, case, answer):
            errors = residuals(case, *found)
            if errors.solved:
                inputs = case.held(found.inputs, found.states)
                return Outcome(QPStatus.SOLVED, answer, inputs, found.states, errors, "")
            worst = min(worst, errors.worst)
    status = workspace.proved(program.program(theta)) if answer.status is QPStatus.FAILED else QPStatus.FAILED
    reason = _reason(program, worst) if status is QPStatus.FAILED else ""
    return Outcome(status, answer, *none, reason)


def by_stages(program: ParametricProgram, case: Case) -> Outcome | None:
    """Plan of a large condensed program stage by stage; None for other programs, or where this doesn't settle.

    Dense active-set solvers take seconds there; stage by stage most plans take a tenth of a second.
    """
    if len(program.g) <= _LARGE or is_sparse(program.F):
        return None
    found = refined(case, None)
    if found is None or not (errors := residuals(case, *found)).solved:
        return None
    answer = Answer(*program.solution(case, *found[:4]), QPStatus.SOLVED, 0)
    return Outcome(QPStatus.SOLVED, answer, case.held(found.inputs, found.states), found.states, errors, "")


def _candidates(program: ParametricProgram, case: Case, answer: Answer) -> Iterator[Refined]:
    """Plans with their multipliers: the solver's, that one refined, the clipped regulator refined."""
    starts: list[tuple[np.ndarray, np.ndarray, np.ndarray] | None] = [None]
    if np.isfinite(answer.x).all() and np.isfinite(answer.multipliers).all():
        inputs, states = case.rolled(program.gains, program.corrections(answer.x))
        if np.isfinite(states).all():
            nu, mu = program.multipliers(answer.multipliers)
            if answer.status is QPStatus.SOLVED:
                yield Refined(inputs, states, nu, mu, program.regulator)
            starts = [(inputs, nu, mu), None]
    for near in starts:
        found = refined(case, near)
        if found is not None:
            yield found


def _reason(program: ParametricProgram, worst: float) -> str:
    """Why no plan passed the check."""
    made = program.stages
    grown = growth(made.A[made.kind[0]], program.horizon)
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
