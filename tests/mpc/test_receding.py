"""Receding horizon: the loop it closes, warm starts, and what it does when solves fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.model.statespace import StateSpace
from netctrl.mpc.explicit import queue_gain, window_problem
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.receding import (
    RecedingController,
    RecedingState,
    explain_failure,
    receding_controller,
    start_receding,
    step_receding,
)

INTEGRATORS = StateSpace([[1.0, 1.0], [0.0, 1.0]], [[0.5], [1.0]], [[1.0, 0.0]], dt=1.0)
SAME = {"daqp": 1e-9, "qpoases": 1e-9, "osqp": 1e-6, "clarabel": 1e-6}


def problem(**changed: Any) -> MpcProblem:
    requested: dict[str, Any] = {
        "plant": INTEGRATORS,
        "horizon": 6,
        "state_weight": np.eye(2),
        "input_weight": 0.1,
        "state_lower": -5.0,
        "state_upper": 5.0,
        "input_lower": -1.0,
        "input_upper": 0.8,
    }
    return MpcProblem(**(requested | changed))


def closed_loop(
    controller: RecedingController, start: np.ndarray, steps: int = 30, delay: int = 0
) -> tuple[np.ndarray, np.ndarray, RecedingState]:
    """States and inputs, through a pipeline of `delay` samples that starts empty."""
    state, x = start_receding(controller), start
    pipeline = [np.zeros(1)] * delay
    xs, us = [], []
    for _ in range(steps):
        state = step_receding(controller, state, x)
        pipeline.append(state.applied)
        x = INTEGRATORS.A @ x + INTEGRATORS.B @ pipeline.pop(0)
        xs.append(x)
        us.append(state.applied)
    return np.array(xs), np.array(us), state


@pytest.mark.parametrize("solver", SAME)
@pytest.mark.parametrize("form", ["condensed", "sparse"])
def test_all_solvers_close_the_same_loop(solver: str, form: str) -> None:
    reference, _, _ = closed_loop(receding_controller(problem()), np.array([3.0, 1.0]))
    found, inputs, state = closed_loop(receding_controller(problem(), solver=solver, form=form), np.array([3.0, 1.0]))
    np.testing.assert_allclose(found, reference, atol=20.0 * SAME[solver])
    assert np.abs(found[-1]).max() < 1e-3
    assert inputs.min() == pytest.approx(-1.0, abs=1e-9)
    assert state.failures == 0
    assert state.steps == 30
    assert state.report == "30 steps, all solved"


def test_a_delay_that_is_known_is_met() -> None:
    """The loop with a pipeline of three samples is the one without it, three samples later."""
    start = np.array([3.0, 0.0])
    late = receding_controller(problem(delay=3), safe_input=0.0)
    xs, us, state = closed_loop(late, start, delay=3)
    drifted = start
    for _ in range(3):
        drifted = INTEGRATORS.A @ drifted
    reference, inputs, _ = closed_loop(receding_controller(problem()), drifted)
    assert state.failures == 0
    np.testing.assert_allclose(us, inputs, atol=1e-9)
    np.testing.assert_allclose(xs[3:], reference[:-3], atol=1e-9)


def test_it_is_mpcc_s_law() -> None:
    B, c, bdp = 1.0 / 3.0, 937.5, 3750.0
    requested = window_problem(
        input_gain=B, fair_window_bytes=c, bdp_bytes=bdp, flows=4, horizon=5, queue_weight=1.0, window_weight=1.0
    )
    controller = receding_controller(requested)
    state, K, queue = start_receding(controller), queue_gain(B, 5, 1.0, 1.0), 9000.0
    for _ in range(80):
        state = step_receding(controller, state, np.array([queue]))
        assert state.applied[0] == pytest.approx(max(-K * queue, -c), abs=1e-9 * bdp)
        queue += B * state.applied[0]
    assert queue < 1.0


@pytest.mark.parametrize("linear", [0.0, 3.0])
def test_the_last_active_set_leads_to_the_solver_s_plan(linear: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of inputs, changes and, soft, of states, under pushes: no sample needs the solver."""
    rng = np.random.default_rng(4)
    asked = problem(
        horizon=25, rate_lower=-0.4, rate_upper=0.4, rate_weight=0.1, state_lower=-2.0, state_upper=[2.0, 0.5],
        soft_weight=20.0, soft_linear=linear,
    )  # fmt: skip
    near, bare = (receding_controller(asked) for _ in range(2))
    bare = bare._replace(near=None)
    monkeypatch.setattr(type(near.workspace), "answers", _not_of(near.workspace))
    one, other, x, active = start_receding(near), start_receding(bare), np.array([3.0, 1.0]), set()
    for _ in range(60):
        one, other = step_receding(near, one, x), step_receding(bare, other, x)
        assert one.failures == other.failures == 0
        np.testing.assert_allclose(one.plan, other.plan, atol=1e-7)
        x = INTEGRATORS.A @ x + INTEGRATORS.B @ one.applied + rng.uniform(-0.7, 0.7, 2)
        active |= set(np.abs(near.near._active).tolist())
    assert active == {0, 1, 2}  # none, met and exceeded


def _not_of(workspace: Any) -> Any:
    """The method `answers`, which must not be called of this one."""
    answers = type(workspace).answers

    def called(self: Any, *given: Any) -> Any:
        assert self is not workspace
        return answers(self, *given)

    return called


def test_states_are_values() -> None:
    """A step changes nothing that it was given: the same state and measurement give the same answer again."""
    controller = receding_controller(problem(rate_weight=0.3))
    state = start_receding(controller, 0.2)
    kept = [np.copy(each) for each in (state.past, state.plan, state.applied)]
    first = step_receding(controller, state, np.array([2.0, 1.0]))
    step_receding(controller, first, np.array([-4.0, 0.0]))
    again = step_receding(controller, state, np.array([2.0, 1.0]))
    for before, after in zip(kept, (state.past, state.plan, state.applied), strict=True):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_allclose(again.applied, first.applied, atol=1e-12)


@pytest.mark.parametrize("solver", SAME)
def test_failures_are_held_then_safe_and_counted(solver: str) -> None:
    controller = receding_controller(problem(), solver=solver, hold=2, safe_input=0.5)
    state = step_receding(controller, start_receding(controller), np.array([1.0, 0.5]))
    last = state.applied
    beyond = np.array([5.0, 4.0])  # whatever the input, the position is above 5 at the next sample
    for k in range(4):
        state = step_receding(controller, state, beyond)
        np.testing.assert_array_equal(state.applied, last if k < 2 else [0.5])
        assert state.status is QPStatus.INFEASIBLE
        assert state.failing == k + 1
    assert (state.steps, state.failures, state.held, state.safe) == (5, 4, 2, 2)
    assert "4 of 5 steps failed: input held 2 times, safe input 2 times" in state.report
    assert "state 0 at step 1, upper" in explain_failure(controller, state)
    state = step_receding(controller, state, np.array([1.0, 0.5]))
    np.testing.assert_allclose(state.applied, last, atol=SAME[solver])
    assert (state.failures, state.failing, state.status) == (4, 0, QPStatus.SOLVED)


def test_a_measurement_that_is_no_number_is_a_failure() -> None:
    controller = receding_controller(problem(), hold=0)
    state = step_receding(controller, start_receding(controller), np.array([np.nan, 0.0]))
    np.testing.assert_array_equal(state.applied, [0.0])
    assert (state.failures, state.safe) == (1, 1)
    assert explain_failure(controller, state) == "a measurement was not finite"


def test_nothing_to_explain() -> None:
    controller = receding_controller(problem())
    assert explain_failure(controller, start_receding(controller)) == ""


def test_the_safe_input_is_within_bounds() -> None:
    controller = receding_controller(problem(input_lower=0.2), hold=0)
    np.testing.assert_array_equal(controller.safe_input, [0.2])


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"form": "dense"}, "form"),
        ({"solver": "fast"}, "solver"),
        ({"hold": -1}, "hold"),
        ({"hold": 1.5}, "hold"),
        ({"safe_input": 3.0}, "safe_input"),
        ({"safe_input": np.nan}, "safe_input"),
        ({"safe_input": [0.0, 0.0]}, "safe_input"),
    ],
)
def test_the_door(options: dict, argument: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        receding_controller(problem(), **options)
    assert refusal.value.argument == argument


def test_the_start_is_checked() -> None:
    with pytest.raises(InvalidValue, match="finite"):
        start_receding(receding_controller(problem()), np.inf)
