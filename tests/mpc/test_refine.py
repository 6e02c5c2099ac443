"""Plans of plants that leave their bounds: all growths and horizons, held against an active set in 240 digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from active_set import optimal_inputs

from netctrl.core.register import QP_SOLVERS
from netctrl.model.statespace import StateSpace
from netctrl.mpc import plan
from netctrl.mpc.plan import FORMS, formulated, residuals, solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.receding import explain_failure, receding_controller, start_receding, step_receding
from netctrl.mpc.refine import refined

SOFT: dict[str, dict[str, Any]] = {
    "none": {},
    "squares": {"state_lower": -0.5, "state_upper": 0.5, "soft_weight": 10.0},
    "lines": {"state_lower": -0.5, "state_upper": 0.5, "soft_weight": 10.0, "soft_linear": 5.0},
}


def growing(growth: float, horizon: int, **more: Any) -> MpcProblem:
    """x⁺ = growth x + 0.1 u, |u| ≤ 1."""
    plant = StateSpace([[growth]], [[0.1]], [[1.0]], dt=1.0)
    requested: dict[str, Any] = {"state_weight": 1.0, "input_weight": 1.0, "input_lower": -1.0, "input_upper": 1.0}
    return MpcProblem(plant=plant, horizon=horizon, **(requested | more))


def eight_states() -> tuple[MpcProblem, np.ndarray]:
    """Problem and state of cvxpy's issue 580: random, spectral radius 1.29, 50 samples, two bounded inputs."""
    drawn = np.random.RandomState(2)
    A, B = np.eye(8) + 0.2 * drawn.randn(8, 8), drawn.randn(8, 2)
    requested: dict[str, Any] = {"state_weight": 1.0, "input_weight": 1.0, "input_lower": -1.0, "input_upper": 1.0}
    return MpcProblem(plant=StateSpace(A, B, np.eye(8), dt=1.0), horizon=50, **requested), 5.0 * drawn.randn(8)


@pytest.mark.parametrize("solver", ["daqp", pytest.param("clarabel", marks=pytest.mark.slow)])
@pytest.mark.parametrize("horizon", [40, 80, 100, pytest.param(200, marks=pytest.mark.slow)])
def test_inputs_that_stay_on_their_bound(solver: str, horizon: int) -> None:
    """From 3 no input brings the state back: each is −1. It was refused from a horizon of 80 on."""
    found = solve_mpc(growing(1.1, horizon), [3.0], solver=solver)
    assert found.inputs[0, 0] == pytest.approx(-1.0, abs=1e-6)
    assert found.residuals.solved


@pytest.mark.slow
@pytest.mark.parametrize("solver", QP_SOLVERS)
@pytest.mark.parametrize("form", FORMS)
def test_each_solver_and_form(solver: str, form: str) -> None:
    for growth, horizon in ((1.1, 60), (2.0, 40)):
        assert solve_mpc(growing(growth, horizon), [3.0], solver=solver, form=form).inputs[0, 0] == pytest.approx(-1.0)


@pytest.mark.parametrize("soft", SOFT)
@pytest.mark.parametrize("growth", [1.05, 1.3, 2.0])
@pytest.mark.parametrize("horizon", [3, 40])
def test_the_refinement_needs_no_solver(soft: str, growth: float, horizon: int) -> None:
    """From the clipped regulator alone, near and beyond the states that the input can hold."""
    problem = growing(growth, horizon, **SOFT[soft])
    program = formulated(problem)
    for start in (3.0, 0.5 * 0.1 / (growth - 1.0), 0.95 * 0.1 / (growth - 1.0)):
        theta = np.array([start])
        found = refined(program.case(theta), None)
        assert found is not None
        expected = optimal_inputs(problem, theta, found.inputs)
        assert expected is not None
        np.testing.assert_allclose(found.inputs, expected, rtol=0.0, atol=1e-9)
        assert residuals(program.case(theta), *found).solved


@pytest.mark.parametrize("soft", SOFT)
@pytest.mark.parametrize("growth", [1.05, 1.3])
def test_the_refinement_with_a_weight_of_steps_needs_no_solver(soft: str, growth: float) -> None:
    """Costs that join states and inputs: all conditions of the optimum hold."""
    for horizon in (6, 40):
        problem = growing(growth, horizon, rate_weight=3.0, **SOFT[soft])
        program, theta = formulated(problem), np.array([0.6 * 0.1 / (growth - 1.0), -0.3])
        found = refined(program.case(theta), None)
        assert found is not None
        assert residuals(program.case(theta), *found).solved


def test_soft_bounds_by_osqp() -> None:
    """OSQP's sparse form comes to 1e-8 of a soft bound, whose multiplier is large: it was refused."""
    for growth, horizon in ((1.1, 30), (1.3, 20)):
        problem, state = growing(growth, horizon, **SOFT["squares"]), 0.9 * 0.1 / (growth - 1.0)
        found = solve_mpc(problem, [state], solver="osqp", form="sparse")
        expected = optimal_inputs(problem, np.array([state]), found.inputs)
        assert expected is not None
        np.testing.assert_allclose(found.inputs, expected, rtol=0.0, atol=1e-6)


@pytest.mark.slow
def test_eight_states_and_two_inputs() -> None:
    """All solvers' plans were refused; the one thrown away was right to 1e-11."""
    problem, state = eight_states()
    found = solve_mpc(problem, state)
    expected = optimal_inputs(problem, state, found.inputs)
    assert expected is not None
    np.testing.assert_allclose(found.inputs, expected, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("kind", ["eight states", "near the edge"])
def test_a_plan_beside_the_right_one_is_refused(kind: str) -> None:
    """One input moved by 1e-3 of its bound, whatever the size of the multipliers."""
    problem, state = eight_states() if kind == "eight states" else (growing(1.3, 60), np.array([0.33]))
    program = formulated(problem)
    found = refined(program.case(state), near(problem, state))
    assert found is not None
    assert residuals(program.case(state), *found).solved
    for k in range(0, problem.horizon, 7):
        inputs = found.inputs.copy()
        inputs[k, 0] -= 1e-3 * (np.sign(inputs[k, 0]) or 1.0)
        states = found.states.copy()
        for j in range(k, problem.horizon):
            states[j + 1] = problem.plant.A @ states[j] + problem.plant.B @ inputs[j]
        assert not residuals(program.case(state), *found._replace(inputs=inputs, states=states)).solved


def near(problem: MpcProblem, state: np.ndarray) -> tuple[np.ndarray, ...]:
    inputs = solve_mpc(problem, state).inputs
    return inputs, np.zeros_like(inputs), np.zeros((problem.horizon + 1, 0))


def test_a_loop_gets_the_plan_and_not_the_safe_input() -> None:
    controller = receding_controller(growing(1.1, 100), hold=0)
    state = step_receding(controller, start_receding(controller), np.array([3.0]))
    assert (state.failures, state.applied[0]) == (0, -1.0)
    assert explain_failure(controller, state) == ""


def test_the_reason_is_the_true_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check fails, its size and the growth are said; the solver isn't blamed."""
    monkeypatch.setattr(plan, "residuals", lambda *_: plan.PlanResiduals(0.0, 0.02, 0.0))
    for growth, words in ((1.1, "try another solver or form"), (2.0, "more than double precision resolves")):
        controller = receding_controller(growing(growth, 60), hold=0)
        state = step_receding(controller, start_receding(controller), np.array([3.0]))
        said = explain_failure(controller, state)
        assert said.startswith("the closest plan differs from the problem's solution by 2.0e-02")
        assert words in said
        assert "stopped" not in said
