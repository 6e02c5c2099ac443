"""Receding horizon: each sample solves the program and applies the first input, with a fallback for failed solves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_numbers, checked_whole
from netctrl.mpc.parametric import ParametricProgram, parameters
from netctrl.mpc.plan import formulated, planned
from netctrl.mpc.problem import MpcProblem, vector
from netctrl.mpc.qp.certificate import conflict
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import CheckedWorkspace, open_solver


class RecedingController(NamedTuple):
    """Data set up once. The workspace keeps factors and the last active set, so it serves one loop at a time."""

    problem: MpcProblem
    program: ParametricProgram
    workspace: CheckedWorkspace
    hold: int
    """Samples for which the last input is held when solves fail."""
    safe_input: np.ndarray
    """(m,) input applied after that."""
    warm: bool
    """Whether the solver uses an initial guess."""


class RecedingState(NamedTuple):
    """State from one sample to the next."""

    applied: np.ndarray
    """(m,) input until the next sample."""
    past: np.ndarray
    """(max(d, 1), m) inputs applied, the newest last."""
    plan: np.ndarray
    """(P, m) inputs of the last solution from now on."""
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
    problem: MpcProblem, *, solver: str = "daqp", form: str = "condensed", hold: int = 3, safe_input: Any = None
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

    Raises
    ------
    InvalidValue
        An unknown solver or form, a safe input out of bounds, or a problem that `condensed` rejects.
    """
    checked_kind("problem", problem, MpcProblem)
    low, high = problem.input_lower, problem.input_upper
    safe = np.clip(0.0, low, high) if safe_input is None else vector("safe_input", safe_input, len(low))
    if not ((safe >= low) & (safe <= high)).all():
        raise InvalidValue("safe_input", safe.tolist(), f"numbers from {low.tolist()} to {high.tolist()}")
    hold = checked_whole("hold", hold, "a number of samples of at least 0")
    program = formulated(problem, form)
    start = np.zeros(program.n_parameters)
    return RecedingController(
        problem, program, open_solver(program.program(start), solver), hold, safe, solver == "osqp"
    )


def start_receding(controller: RecedingController, applied: Any = None) -> RecedingState:
    """Initial state, in which `applied` (m,), by default the safe input, has been applied for long."""
    problem = checked_kind("controller", controller, RecedingController).problem
    u = controller.safe_input if applied is None else vector("applied", applied, problem.plant.n_inputs)
    if not np.isfinite(u).all():
        raise InvalidValue("applied", u.tolist(), "finite numbers")
    past, plan = np.tile(u, (max(problem.delay, 1), 1)), np.tile(u, (problem.horizon, 1))
    return RecedingState(u, past, plan, QPStatus.SOLVED, None, 0, 0, 0, 0, 0)


def step_receding(controller: RecedingController, state: RecedingState, measured: np.ndarray) -> RecedingState:
    """One sample: from the measured state (n,) to `applied`, the input until the next sample.

    After a failed solve or a measurement that isn't finite, the last input is held for `hold` samples and then the safe
    input is applied, until a solve succeeds. The state counts these samples.
    """
    checked_kind("state", state, RecedingState)
    program = checked_kind("controller", controller, RecedingController).program
    measured = checked_numbers("measured", measured, f"{controller.problem.plant.n_states} numbers")
    plan = np.vstack([state.plan[1:], state.plan[-1:]])
    if np.isfinite(measured).all():
        theta = parameters(controller.problem, measured, state.past)
        start = _guess(program, plan) if controller.warm and not program.gains.any() else None
        found = planned(program, controller.workspace, theta, start)
        status, reason = found.status, found.reason
        if status is QPStatus.SOLVED:
            low, high = controller.problem.input_lower, controller.problem.input_upper
            return _given(state, np.clip(found.inputs[0], low, high), found.inputs, status)
    else:
        theta, status, reason = np.full(program.n_parameters, np.nan), QPStatus.FAILED, "a measurement was not finite"
    holds = state.failing < controller.hold
    low, high = controller.problem.input_lower, controller.problem.input_upper
    u = np.clip(state.applied, low, high) if holds else controller.safe_input
    return _given(state, u, plan, status)._replace(
        failed_at=theta,
        reason=reason,
        failures=state.failures + 1,
        failing=state.failing + 1,
        held=state.held + holds,
        safe=state.safe + (not holds),
    )


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


def _given(state: RecedingState, u: np.ndarray, plan: np.ndarray, status: QPStatus) -> RecedingState:
    past = np.vstack([state.past[1:], u])
    return state._replace(applied=u, past=past, plan=plan, status=status, steps=state.steps + 1, failing=0)


def _guess(program: ParametricProgram, plan: np.ndarray) -> np.ndarray:
    start = np.zeros(len(program.g))
    start[: plan.size] = (plan / program.input_scale).ravel()
    return start
