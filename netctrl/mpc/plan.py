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

from netctrl.core.errors import NetctrlError, checked_word
from netctrl.model.io.display import Shown
from netctrl.mpc.formulate import condensed, sparse
from netctrl.mpc.parametric import ParametricProgram, parameters
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import Answer, QPSolution, QPStatus
from netctrl.mpc.qp.solve import CheckedWorkspace, failure, open_solver
from netctrl.mpc.refine import Refined, refined
from netctrl.mpc.stages import Regulator, Stages, growth, widest

_OF_BOUNDS, _OF_INPUTS = 1e-6, 1e-4
_SMALL = 1e-3  # relative to the widest input: the smallest unit of errors
_EPS = float(np.finfo(float).eps)


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
    problem: MpcProblem,
    program: ParametricProgram,
    inputs: np.ndarray,
    states: np.ndarray,
    input_multipliers: np.ndarray,
    state_multipliers: np.ndarray,
    regulator: Regulator | None = None,
) -> PlanResiduals:
    """Residuals of inputs (P, m) and predicted states z (P + 1, q), with multipliers ν (P, m) and μ (P, n).

    λ_P = 2 T z_P + μ_P, λ_k = 2 (Q z_k + N u_k) + A'λ_{k+1} + μ_k and r_k = 2 (N'z_k + R u_k) + B'λ_{k+1} + ν_k = 0.
    Subtracting K_k'r_k from λ_k, which has no effect where r = 0, makes r the gradient by v of u = v − K z with the
    regulator's gains. This avoids powers of an unstable A, and r_k over 2 M_k is the distance of v_k from its optimum.
    `regulator` is the one while the inputs on their bounds stay there, by default the one without bounds, whose prices
    M_k are lower: the more later inputs are on their bounds, the more each free one costs.
    """
    free = program.regulator
    K, price = (free if regulator is None else regulator)[:2]
    price = np.maximum(price, free.price)
    n = problem.plant.n_states
    nu, mu = input_multipliers, state_multipliers
    x = states[1:, :n]
    nu = np.where(np.isfinite(np.where(nu > 0.0, problem.input_upper, problem.input_lower)), nu, 0.0)
    mu = np.where(np.isfinite(np.where(mu > 0.0, problem.state_upper, problem.state_lower)), mu, 0.0)
    r, nu = _gradient(problem, program.stages, K, inputs, states, nu, mu)
    reach = np.abs(states[:-1]) @ np.abs(program.stages.A).T + np.abs(inputs) @ np.abs(program.stages.B).T
    reach = reach[:, :n]
    broken = max(
        _broken(inputs, problem.input_lower, problem.input_upper, np.abs(inputs)),
        _broken(
            x[:, problem.hard],
            problem.state_lower[problem.hard],
            problem.state_upper[problem.hard],
            reach[:, problem.hard],
        ),
    )
    unit = np.maximum(np.abs(inputs).max(axis=0), _SMALL * widest(problem.input_lower, problem.input_upper))
    unit = np.maximum(unit, np.finfo(float).tiny)
    off = float((np.abs(r) / price / unit).max())
    gap = _gap(inputs, nu, problem.input_lower, problem.input_upper, np.zeros_like(inputs))
    gap += _state_gap(problem, x, mu, 4.0 * sum(program.stages.B.shape) * _EPS * reach)
    return PlanResiduals(
        broken, off, float(np.sqrt(max(gap, 0.0) / max(free.price[0] @ unit**2, np.finfo(float).tiny)))
    )


def _gradient(
    problem: MpcProblem,
    made: Stages,
    gains: np.ndarray,
    inputs: np.ndarray,
    states: np.ndarray,
    nu: np.ndarray,
    mu: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient r (P, m) by v of u = v − K z with the regulator's gains, and the multipliers ν.

    An input exactly on a bound takes the multiplier ν − r, with which its gradient is 0, where its sign allows that.
    """
    A, B, Q, R, N, T = made
    n = mu.shape[1]
    at = np.where(inputs == problem.input_upper, 1.0, np.where(inputs == problem.input_lower, -1.0, 0.0))
    fixed = problem.input_lower == problem.input_upper
    own = 2.0 * (inputs @ R + states[:-1] @ N)
    push = 2.0 * (states[:-1] @ Q + inputs @ N.T)
    push[1:, :n] += mu[:-1]
    costate = 2.0 * (T @ states[-1])
    costate[:n] += mu[-1]
    r, nu = np.empty_like(inputs), nu.copy()
    for k in reversed(range(len(inputs))):
        pull = own[k] + B.T @ costate
        nu[k] = np.where((fixed & (at[k] != 0.0)) | (-at[k] * pull > 0.0), -pull, nu[k])
        r[k] = pull + nu[k]
        costate = push[k] + A.T @ costate - gains[k].T @ r[k]
    return r, nu


def _broken(at: np.ndarray, lower: np.ndarray, upper: np.ndarray, terms: np.ndarray) -> float:
    if not at.size:
        return 0.0
    by = np.maximum(np.maximum(at - upper, lower - at), 0.0)
    return float((by / np.maximum(np.maximum(widest(lower, upper), terms), np.finfo(float).tiny)).max())


def _gap(at: np.ndarray, multipliers: np.ndarray, lower: np.ndarray, upper: np.ndarray, noise: np.ndarray) -> float:
    used = np.where(multipliers > 0.0, upper, lower)
    slack = np.abs(np.where(multipliers != 0.0, used - at, 0.0))
    return float((np.abs(multipliers) * np.maximum(slack - noise, 0.0)).sum())


def _state_gap(problem: MpcProblem, x: np.ndarray, mu: np.ndarray, noise: np.ndarray) -> float:
    """Duality gap of the states' bounds, each distance without what rounding explains.

    For soft ones φ(x) + φ*(μ) − μ x, φ(x) = ρ ε² + w ε with the violation ε of x. Of the bound that μ is on it is
    ρ (ε − (|μ| − w)₊ / 2ρ)² + (w − |μ|)₊ ε + |μ| s with the slack s, and φ(x) of the other one.
    """
    low, high, soft = problem.state_lower, problem.state_upper, problem.soft
    hard = _gap(x[:, ~soft], mu[:, ~soft], low[~soft], high[~soft], noise[:, ~soft])
    if not soft.any():
        return hard
    x, mu, low, high, noise = x[:, soft], mu[:, soft], low[soft], high[soft], noise[:, soft]
    rho, w = problem.soft_weight[soft], problem.soft_linear[soft]
    above, below, size = np.maximum(x - high, 0.0), np.maximum(low - x, 0.0), np.abs(mu)
    own, other = np.where(mu >= 0.0, above, below), np.where(mu >= 0.0, below, above)
    slack = np.abs(np.where(mu > 0.0, high - x, np.where(mu < 0.0, x - low, 0.0)))
    slack = np.where(own > 0.0, 0.0, slack)
    apart = np.maximum(np.abs(own - np.maximum(size - w, 0.0) / (2.0 * rho)) - noise, 0.0)
    gap = rho * apart**2 + np.maximum(w - size, 0.0) * np.maximum(own - noise, 0.0)
    gap += size * np.maximum(slack - noise, 0.0) + rho * other**2 + w * other
    return hard + float(gap.sum())


_LOST = 1e-4 / float(
    np.finfo(float).eps
)  # growth over the horizon by which rounding becomes as large as inputs' errors

FORMS = {"condensed": condensed, "sparse": sparse}
"""Forms of the program by name: condensed for active-set solvers, sparse for osqp and long horizons."""


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
