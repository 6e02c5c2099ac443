"""MPC of unstable plants: against Riccati recursions, cvxpy's sparse form and the problem as it stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl
from mpc_problems import by_cvxpy

from netctrl.core.errors import InfeasibleProgram, NetctrlError
from netctrl.core.register import QP_SOLVERS
from netctrl.model.statespace import StateSpace
from netctrl.mpc.plan import FORMS, PlanResiduals, formulated, residuals, solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.solve import solve_qp
from netctrl.mpc.receding import receding_controller, start_receding, step_receding


def pendulum(horizon: int, **changed: Any) -> MpcProblem:
    """An inverted pendulum with poles at ±5 rad/s, sampled each 50 ms."""
    step = sl.expm(0.05 * np.array([[0.0, 1.0, 0.0], [25.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    plant = StateSpace(step[:2, :2], step[:2, 2:], [[1.0, 0.0]], dt=0.05)
    requested: dict[str, Any] = {"state_weight": 1.0, "input_weight": 0.1, "input_lower": -20.0, "input_upper": 20.0}
    return MpcProblem(plant=plant, horizon=horizon, **(requested | changed))


def without_bounds(problem: MpcProblem, state: np.ndarray) -> np.ndarray:
    """u_0 by the Riccati recursion, which knows no unstable powers."""
    A, B, Q, R = problem.plant.A, problem.plant.B, problem.state_weight, problem.input_weight
    X, K = problem.terminal_weight, np.zeros((B.shape[1], len(A)))
    for _ in range(problem.horizon):
        K = np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A)
        X = Q + A.T @ X @ (A - B @ K)
    return -K @ state


@pytest.mark.parametrize("solver", QP_SOLVERS)
@pytest.mark.parametrize("form", FORMS)
def test_the_pendulum_over_sixty_samples(solver: str, form: str) -> None:
    """qpOASES gave +20 for it; −4.43797 is the Riccati recursion's."""
    problem = pendulum(60)
    found = solve_mpc(problem, [0.1, 0.0], solver=solver, form=form)
    assert without_bounds(problem, np.array([0.1, 0.0]))[0] == pytest.approx(-4.43797, abs=5e-6)
    assert found.inputs[0, 0] == pytest.approx(-4.43797, abs=5e-6)
    assert np.abs(found.states[-1]).max() < 1e-3
    assert found.residuals.solved


@pytest.mark.parametrize("horizon", [1, 2, 70, 200])
def test_the_pendulum_over_any_horizon(horizon: int) -> None:
    """From 70 samples on it was refused, for a Hessian that no form needs."""
    problem, state = pendulum(horizon), np.array([0.1, 0.0])
    for form in FORMS if horizon < 200 else ["condensed"]:
        found = solve_mpc(problem, state, form=form)
        np.testing.assert_allclose(found.inputs[0], without_bounds(problem, state), rtol=1e-7)


def test_thirty_decades_of_growth() -> None:
    """Two inputs, three states, a mode of 1e30 over the horizon: the plan stays where the regulator's stays."""
    rng = np.random.default_rng(3)
    T = rng.standard_normal((3, 3))
    A = T @ np.diag([10.0**0.3, -1.2, 0.5]) @ np.linalg.inv(T)
    requested: dict[str, Any] = {"state_weight": 1.0, "input_weight": 0.5}
    problem = MpcProblem(plant=StateSpace(A, rng.standard_normal((3, 2)), np.eye(3), dt=1.0), horizon=100, **requested)
    state = rng.standard_normal(3)
    found = solve_mpc(problem, state)
    np.testing.assert_allclose(found.inputs[0], without_bounds(problem, state), rtol=1e-9)
    expected = found.states[:-1] @ A.T + found.inputs @ problem.plant.B.T
    np.testing.assert_allclose(found.states[1:], expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_saturated_inputs_and_bounded_states(seed: int) -> None:
    """Random plants that grow by up to ten decades, bounds active, held against the sparse form by Clarabel."""
    rng = np.random.default_rng(seed)
    n, m, P = 3, 1 + seed % 2, 20
    T = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = T @ np.diag([10.0 ** rng.uniform(0.1, 0.5), 0.9, -0.6]) @ T.T
    requested: dict[str, Any] = {"state_weight": 1.0, "input_weight": 0.01, "input_lower": -1.0, "input_upper": 1.0}
    plant = StateSpace(A, rng.standard_normal((n, m)), np.eye(n), dt=1.0)
    problem = MpcProblem(plant=plant, horizon=P, state_lower=-1.0, state_upper=1.0, **requested)
    state = rng.standard_normal(n)
    found = None
    while found is None:
        state = 0.8 * state
        try:
            found = solve_mpc(problem, state)
        except InfeasibleProgram:
            continue
    for form, solver in (("condensed", "qpoases"), ("sparse", "daqp")):
        other = solve_mpc(problem, state, solver=solver, form=form)
        np.testing.assert_allclose(other.inputs[0], found.inputs[0], atol=1e-6)
    np.testing.assert_allclose(found.inputs[0], by_cvxpy(problem, state, 1e-11)[0], atol=1e-5)


def test_bounds_see_what_the_weights_do_not() -> None:
    """No weight on an unstable state, but a bound: the input that holds it costs least."""
    plant = StateSpace([[1.5]], [[1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(
        plant=plant, horizon=40, input_weight=1.0, state_lower=-1.0, state_upper=1.0, input_lower=-1.0, input_upper=1.0
    )
    found = solve_mpc(problem, [0.9], solver="clarabel")
    assert np.abs(found.states[1:]).max() <= 1.0 + 1e-6
    np.testing.assert_allclose(found.inputs[0], by_cvxpy(problem, np.array([0.9]), 1e-11)[0], atol=1e-5)


def test_an_infeasible_one_says_so() -> None:
    """Beyond what 20 can hold: 25 x + v … > 20."""
    with pytest.raises(InfeasibleProgram, match="input 0 at step 0"):
        solve_mpc(pendulum(60, state_lower=-1.0, state_upper=1.0), [0.9, 0.5])


def test_a_plan_that_is_wrong_is_seen() -> None:
    """The model, its bounds and its gradient: each wrong input is told from the right one."""
    problem = pendulum(60)
    program, theta = formulated(problem), np.array([0.1, 0.0])
    solution = solve_qp(program.program(theta))
    right, y = solution.x, solution.multipliers

    def errors(x: np.ndarray, multipliers: np.ndarray) -> PlanResiduals:
        return residuals(program.case(theta), *program.plan(x, theta), *program.multipliers(multipliers))

    first, pulled = np.eye(len(right))[0], y.copy()
    pulled[len(right)] = 1.0
    assert errors(right, y).worst < 1e-9
    for by in (1.0, 1e-3):
        assert not errors(right + by * first, y).solved
    assert errors(right + 3.0 * first, y).bounds > 0.1  # beyond the bound
    assert errors(right, pulled).gap > 1e-3


def test_a_plan_that_fails_the_check_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from netctrl.mpc import plan
    from netctrl.mpc.active import dual

    monkeypatch.setattr(dual, "_EXACT", -1.0)  # error up to which a plan of the last active set is taken
    monkeypatch.setattr(plan, "residuals", lambda *_: PlanResiduals(0.0, 1.0, 0.0))
    with pytest.raises(NetctrlError, match="try another solver or form"):
        solve_mpc(pendulum(5), [0.1, 0.0])
    controller = receding_controller(pendulum(5))
    state = step_receding(controller, start_receding(controller), np.array([0.1, 0.0]))
    assert (state.status, state.failures) == ("failed", 1)


@pytest.mark.parametrize("solver", QP_SOLVERS)
def test_the_loop_that_runs(solver: str) -> None:
    """From near where 20 just holds it: the input saturates, then the pendulum stands."""
    problem = pendulum(70)
    controller = receding_controller(problem, solver=solver)
    state, x = start_receding(controller), np.array([0.7, 0.0])
    for k in range(40):
        state = step_receding(controller, state, x)
        assert k > 0 or state.applied[0] == pytest.approx(-20.0, abs=1e-6)
        x = problem.plant.A @ x + problem.plant.B @ state.applied
    assert state.failures == 0
    assert np.abs(x).max() < 1e-2
