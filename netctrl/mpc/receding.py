"""Receding horizon: each sample solves the program and applies the first input, with a fallback for failed solves."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_kind, checked_numbers, checked_whole
from netctrl.model.io.matrix import dense
from netctrl.mpc.active.dual import DualSet
from netctrl.mpc.estimate import Estimator, Target, steady_target, with_disturbances
from netctrl.mpc.parametric import ParametricProgram, parameters, series
from netctrl.mpc.plan import formulated, planned
from netctrl.mpc.problem import MpcProblem, vector
from netctrl.mpc.qp.certificate import conflict
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import CheckedWorkspace, open_solver
from netctrl.mpc.stages import Given

_FAST = ("daqp", "condensed")  # solver and form of which a step starts from the last active set


class RecedingController(NamedTuple):
    """Data set up once. The workspace keeps factors and the last active set, so it serves one loop at a time."""

    problem: MpcProblem
    """With an estimator, of the plant with the disturbance's states."""
    program: ParametricProgram
    workspace: CheckedWorkspace
    hold: int
    """Samples for which the last input is held when solves fail."""
    safe_input: np.ndarray
    """(m,) input applied after that."""
    warm: bool
    """Whether the solver uses an initial guess."""
    estimator: Estimator | None
    near: DualSet | None
    """Active set of the last solution, tried before the solver; None for other solvers than daqp."""
    target: Target | None
    """Where states, inputs or changes have a weight and an estimator finds the disturbance, or a terminal weight or set
    counts from the steady state."""
    lower: np.ndarray
    """(m,) hard bounds of the inputs."""
    upper: np.ndarray
    into_theta: Any
    """Sparse matrix from [state; past inputs; past disturbances; disturbances; references; inputs' references] to θ."""


class RecedingState(NamedTuple):
    """State from one sample to the next."""

    applied: np.ndarray
    """(m,) input until the next sample."""
    past: np.ndarray
    """Inputs applied, the newest last; as many as the delays need, shape (any, m)."""
    plan: np.ndarray
    """(P, m) inputs of the last solution from now on."""
    estimate: np.ndarray
    """(n + nd,) prediction of state and disturbance for the next measurement; empty without an estimator."""
    past_disturbances: np.ndarray
    """(measurement delay, nw) measured disturbances, the newest last."""
    status: QPStatus
    """Status of the last solve."""
    failed_at: np.ndarray | None
    """θ of the last failed solve; NaN where the measurement was not a number. None: no solve has failed."""
    steps: int
    failures: int
    """Total number of failed solves."""
    failing: int
    """Number of consecutive failed solves up to now."""
    held: int
    """Total number of samples at which the last input was held."""
    safe: int
    """Total number of samples at which the safe input was applied."""
    reason: str = ""
    """Reason of the last failed solve in words; empty where its program was proved infeasible or unbounded."""

    @property
    def report(self) -> str:
        """Summary of failed solves in words."""
        if self.failures == 0:
            return f"{self.steps} steps, all solved"
        counted = f"{self.failures} of {self.steps} steps failed: input held {self.held} times, safe input {self.safe}"
        return f"{counted} times; the last solve: {self.status}"


def receding_controller(
    problem: MpcProblem,
    *,
    solver: str = "daqp",
    form: str = "condensed",
    hold: int = 3,
    safe_input: Any = None,
    estimator: Estimator | None = None,
    preview: bool = False,
) -> RecedingController:
    """Set up a receding-horizon controller.

    Parameters
    ----------
    problem : MpcProblem
    solver : str
        One of `netctrl.core.register.QP_SOLVERS`.
    form : {"condensed", "sparse"}
        sparse suits osqp, condensed the others.
    hold : int
        Number of consecutive samples that hold the last input when solves fail, before the safe input is applied.
    safe_input : array_like, shape (m,), optional
        Input within the bounds; by default the one nearest to 0.
    estimator : Estimator, optional
        Of `netctrl.mpc.estimate.mpc_estimator`: each step then takes measured outputs instead of the state. Weights of
        states, inputs and changes count from those with which the outputs meet the reference under the estimated
        disturbance, so that no offset remains.
    preview : bool
        Whether references and disturbances are series or functions; without it they are constant over the horizon.

    Raises
    ------
    InvalidValue
        An unknown solver or form, a safe input out of bounds, or a problem that `condensed` rejects.
    """
    checked_kind("problem", problem, MpcProblem)
    low, high = problem.input_limits
    safe = np.clip(0.0, low, high) if safe_input is None else vector("safe_input", safe_input, len(low))
    if not ((safe >= low) & (safe <= high)).all():
        raise InvalidValue("safe_input", safe.tolist(), f"numbers from {low.tolist()} to {high.tolist()}")
    hold = checked_whole("hold", hold, "a number of samples of at least 0")
    form_of = "series" if checked_flag("preview", preview) else "constant"
    target = None
    if estimator is not None:
        checked_kind("estimator", estimator, Estimator)
        n = problem.plant.n_states + estimator.n_disturbances
        if estimator.plant.n_states != n or estimator.plant.n_inputs != problem.plant.n_inputs:
            raise InvalidValue(
                "estimator", f"one of {estimator.plant.n_states} states", "the estimator of this problem"
            )
        problem = with_disturbances(problem, estimator)
    whole = len(problem.terminal_weight) > problem.plant.n_states or len(problem.terminal_rows)
    weighs = problem.input_weight.any() or problem.state_weight.any() or not problem.outputs_at_end
    if whole or estimator is not None:
        target = steady_target(problem, estimator.n_disturbances if estimator else 0)
        moves = len(target.states) > 1  # disturbances that aren't constant move the inputs as well
        target = target if whole or weighs or (moves and problem.has_rate) else None
    aim = form_of if target is None or len(target.states) == 1 else "series"
    given = Given(
        reference=form_of if problem.output_weight.any() or target is not None else "none",
        state_reference="none" if target is None else aim,
        input_reference=aim if problem.input_weight.any() or whole else "none",
        rate_reference="series" if target is not None and len(target.states) > 1 else "none",
        disturbances=form_of if problem.measured else "none",
    )
    program = formulated(problem, form, given)
    start, into = np.zeros(program.n_parameters), _into_theta(problem, given, target, estimator)
    return RecedingController(
        problem,
        program,
        open_solver(program.program(start), solver),
        hold,
        safe,
        solver == "osqp",
        estimator,
        DualSet.of(program, into) if (solver, form) == _FAST else None,
        target,
        low,
        high,
        into,
    )


def start_receding(controller: RecedingController, applied: Any = None, *, estimate: Any = None) -> RecedingState:
    """Initial state, in which `applied` (m,), by default the safe input, has been applied for long.

    `estimate` (n,) is the first guess of the state for the estimator, by default 0.
    """
    problem = checked_kind("controller", controller, RecedingController).problem
    u = controller.safe_input if applied is None else vector("applied", applied, problem.n_inputs)
    if not np.isfinite(u).all():
        raise InvalidValue("applied", u.tolist(), "finite numbers")
    kept = max(int(problem.delays.max()) + problem.measurement_delay, 1)
    first = np.zeros(0)
    if controller.estimator is not None:
        nd = controller.estimator.n_disturbances
        x = vector("estimate", 0.0 if estimate is None else estimate, problem.plant.n_states - nd)
        if not np.isfinite(x).all():
            raise InvalidValue("estimate", x.tolist(), "finite numbers")
        first = np.concatenate([x, np.zeros(nd)])
    elif estimate is not None:
        raise InvalidValue("estimate", estimate, "None: the controller has no estimator, and takes measured states")
    drawn, plan = np.zeros((problem.measurement_delay, len(problem.measured))), np.tile(u, (problem.horizon, 1))
    return RecedingState(u, np.tile(u, (kept, 1)), plan, first, drawn, QPStatus.SOLVED, None, 0, 0, 0, 0, 0)


def step_receding(
    controller: RecedingController,
    state: RecedingState,
    measured: np.ndarray,
    *,
    reference: Any = None,
    input_reference: Any = None,
    disturbances: Any = None,
) -> RecedingState:
    """One sample: from the measured state (n,), or outputs (p,) with an estimator, to `applied`, the next input.

    After a failed solve or a measurement that isn't finite, the last input is held for `hold` samples and then the safe
    input is applied, until a solve succeeds. The state counts these samples. References and disturbances are as in
    `netctrl.mpc.plan.solve_mpc`, from this sample on; a function gets the number of the sample, from the start of the
    loop.
    """
    checked_kind("state", state, RecedingState)
    program = checked_kind("controller", controller, RecedingController).program
    problem, estimator = controller.problem, controller.estimator
    size = problem.plant.n_states if estimator is None else problem.plant.n_outputs
    if type(measured) is not np.ndarray or measured.dtype != float or not measured.ndim:  # checking takes a while
        measured = np.atleast_1d(checked_numbers("measured", measured, f"{size} numbers"))
    if measured.shape != (size,):
        raise InvalidValue("measured", f"shape {measured.shape}", f"{size} numbers")
    w = _rows(problem, state, "disturbances", disturbances, len(problem.measured), program.given.disturbances)
    drawn = state.past_disturbances
    at, seen = measured, isfinite(measured.sum())
    if estimator is not None:
        at = corrected(controller, state, measured, w)
    plan, low, high, status, reason = state.plan, controller.lower, controller.upper, QPStatus.SOLVED, ""
    if seen:
        given = program.given
        r = _rows(problem, state, "reference", reference, problem.plant.n_outputs, given.reference)
        form = given.input_reference if controller.target is None else given.reference
        wanted = _rows(problem, state, "input_reference", input_reference, problem.n_inputs, form)
        signals = np.concatenate((at, state.past.ravel(), drawn.ravel(), w.ravel(), r.ravel(), wanted.ravel()))
        found = theta = None
        if controller.near is not None:
            found, theta = controller.near.inputs(signals)
        if found is None:
            theta = controller.into_theta @ signals
            start = _guess(program, _later(plan)) if controller.warm and not program.gains.any() else None
            status, _, found, *_, reason = planned(program, controller.workspace, theta, start)
            if status is QPStatus.SOLVED:
                found = np.vstack([np.clip(found[:1], low, high), found[1:]])
    else:
        theta, status = np.full(program.n_parameters, np.nan), QPStatus.FAILED
        reason = "a measurement was not finite"
    if status is QPStatus.SOLVED:
        u, plan, changes = found[0], found, _changes(failing=0)
    else:
        holds, plan = state.failing < controller.hold, _later(plan)
        u = np.clip(state.applied, low, high) if holds else _towards(problem, state.applied, controller.safe_input)
        changes = _changes(failed_at=theta, reason=reason, held=state.held + holds, safe=state.safe + (not holds))
        changes |= {"failures": state.failures + 1, "failing": state.failing + 1}
    past = np.concatenate([state.past, u[None]])
    if estimator is not None:
        acting = _acting(problem, past, problem.delays + problem.measurement_delay, drawn[0] if len(drawn) else w[0])
        at = dense(problem.plant.A) @ at + dense(problem.plant.B) @ acting
        changes["estimate"] = at
    if len(drawn):
        changes["past_disturbances"] = np.concatenate([drawn[1:], w[:1]])
    return state._replace(applied=u, past=past[1:], plan=plan, status=status, steps=state.steps + 1, **changes)


def _towards(problem: MpcProblem, applied: np.ndarray, safe: np.ndarray) -> np.ndarray:
    """The safe input, or as far towards it as hard bounds of changes allow."""
    hard = ~np.isfinite(problem.rate_soft_weight)
    lower, upper = np.where(hard, problem.rate_lower, -np.inf), np.where(hard, problem.rate_upper, np.inf)
    return np.clip(safe, applied + np.minimum(lower, 0.0), applied + np.maximum(upper, 0.0))


def _changes(**fields: Any) -> dict[str, Any]:
    """Fields of the next state, gathered for one replacement, each of which takes a while."""
    return fields


def corrected(controller: RecedingController, state: RecedingState, measured: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Estimate at the time of the measurement; the prediction where a measurement isn't finite."""
    problem, estimator = controller.problem, controller.estimator
    if estimator is None or not np.isfinite(measured).all():
        return state.estimate
    late = problem.delays + problem.measurement_delay
    # An input that isn't late has no direct effect on outputs; see `mpc_estimator`.
    drawn = state.past_disturbances[0] if len(state.past_disturbances) else w[0]
    acting = _acting(problem, state.past, np.maximum(late - 1, 0), drawn)
    expected = dense(problem.plant.C) @ state.estimate + dense(problem.plant.D) @ acting
    return state.estimate + estimator.gain @ (measured - expected)


def _acting(problem: MpcProblem, past: np.ndarray, age: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The plant's inputs, of which the manipulated ones are those of these ages before the last one."""
    found = np.zeros(problem.plant.n_inputs)
    found[problem.manipulated] = past[len(past) - 1 - age, np.arange(len(age))]
    found[list(problem.measured)] = w
    return found


def _rows(problem: MpcProblem, state: RecedingState, name: str, value: Any, size: int, form: str) -> np.ndarray:
    """Rows of a signal from now on: one where it is constant over the horizon, or all that the horizon needs."""
    if value is not None and form == "none":
        raise InvalidValue(name, "values", f"None: the controller's problem has no weight or input for a {name}")
    if form != "series":
        if value is None:
            return np.zeros((1, size))
        if type(value) is np.ndarray and value.dtype == float and value.shape == (size,) and isfinite(value.sum()):
            return value[None]  # the usual case; `series` takes longer than a solve
    count = 1 if form != "series" else int(problem.delays.min()) + problem.horizon + 1
    if callable(value):
        value = [value(state.steps + i) for i in range(count)]
    elif form == "constant" and np.size(value) > size:
        raise InvalidValue(name, f"shape {np.shape(value)}", f"{size} numbers; a series takes preview=True")
    return series(name, value, size, count)


def _into_theta(problem: MpcProblem, given: Given, target: Target | None, estimator: Estimator | None) -> Any:
    """Sparse matrix from signals to θ, by what θ is of each unit; see `RecedingController.into_theta`."""
    import scipy.sparse as sp

    n, m, p, nw = problem.plant.n_states, problem.n_inputs, problem.plant.n_outputs, len(problem.measured)
    old, common, P = problem.measurement_delay, int(problem.delays.min()), problem.horizon
    kept, many = max(int(problem.delays.max()) + old, 1), common + P + 1
    forms = (given.disturbances, given.reference, given.input_reference if target is None else given.reference)
    counts = [many if form == "series" else 1 for form in forms]
    ends = np.cumsum([n, kept * m, old * nw, *(count * size for count, size in zip(counts, (nw, p, m), strict=True))])
    past, unit, size = from_past(problem), np.zeros(ends[-1]), 0
    rows_of, entries = [], []
    for i in range(ends[-1]):
        unit[:] = 0.0
        unit[i] = 1.0
        at, before, drawn, *rows = np.split(unit, ends[:-1])
        w, r, u_ref = (each.reshape(count, -1) for each, count in zip(rows, counts, strict=True))
        drive = w[np.minimum(np.arange(common), len(w) - 1)]
        start = past @ np.concatenate([at, before, drawn, drive.ravel()])
        if max(counts) > 1:  # the first output that an input moves is that of after the delay
            w, r = (each[common:] if len(each) > 1 else each for each in (w, r))
            u_ref = u_ref[: P + 1]
        x_ref, du_ref = np.zeros((0, n)), np.zeros((0, 0))
        if target is not None:
            d = at[n - estimator.n_disturbances :] if estimator else at[:0]
            count = max(len(r), len(u_ref), len(w), len(target.states))
            wide = [np.broadcast_to(each, (count, each.shape[1])) for each in (r, u_ref, w)]
            steady = np.hstack(wide) @ target.constant.T
            x_ref, u_ref = steady[:, :n] + target.states @ d, steady[:, n:] + target.inputs @ d
            du_ref = target.changes @ d
        parts = zip(_order(given), (w, r, x_ref, u_ref, du_ref), strict=True)
        column = np.concatenate([start, *(each.ravel() for form, each in parts if form != "none")])
        rows_of.append(np.flatnonzero(column))
        entries.append(column[rows_of[-1]])
        size = len(column)
    first = np.cumsum([0, *map(len, rows_of)])
    return sp.csc_array((np.concatenate(entries), np.concatenate(rows_of), first), shape=(size, len(unit))).tocsr()


def _order(given: Given) -> tuple[str, ...]:
    """Forms of the signals in the order of θ."""
    return (
        *(given.disturbances, given.reference, given.state_reference),
        *(given.input_reference, given.rate_reference),
    )


def from_past(problem: MpcProblem) -> np.ndarray:
    """Matrix from [state; past inputs; past and present disturbances] to z_0, by what it does to each unit."""
    n, m, nw, old = problem.plant.n_states, problem.n_inputs, len(problem.measured), problem.measurement_delay
    kept, common = max(int(problem.delays.max()) + old, 1), int(problem.delays.min())
    ends = np.cumsum([n, kept * m, old * nw, common * nw])
    columns = []
    for unit in np.eye(ends[-1]):
        x, past, before, w = np.split(unit, ends[:-1])
        row = {
            "disturbances": np.append(w, np.zeros(nw)).reshape(-1, nw) if nw else None,
            "past_disturbances": before.reshape(-1, nw) if nw and old else None,
        }
        columns.append(parameters(problem, x, past.reshape(kept, m), None, **row))
    return np.array(columns).T


def explain_failure(controller: RecedingController, state: RecedingState) -> str:
    """Reason of the last failed solve in words; empty without one. Names the bounds of an infeasible program."""
    checked_kind("controller", controller, RecedingController)
    checked_kind("state", state, RecedingState)
    if state.failed_at is None:
        return ""
    if state.reason:
        return state.reason
    found = conflict(controller.program.program(state.failed_at))
    return found.message if found is not None else "the cost is unbounded below"


def _later(plan: np.ndarray) -> np.ndarray:
    """A plan from the next sample on."""
    return np.vstack([plan[1:], plan[-1:]])


def _guess(program: ParametricProgram, plan: np.ndarray) -> np.ndarray:
    start = np.zeros(len(program.g))
    free = (plan[program.stages.free] / program.input_scale).ravel()
    start[: free.size] = free
    return start
