"""MPC problems as quadratic programs: both forms, against cvxpy, LQR and each other; units; what the door refuses."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl
from hypothesis import given, settings
from hypothesis import strategies as st
from mpc_problems import by_cvxpy, double_integrator

from netctrl.core.errors import InfeasibleProgram, InvalidValue
from netctrl.model.statespace import StateSpace
from netctrl.mpc.formulate import condensed, sparse
from netctrl.mpc.parametric import parameters, predict_through_delay
from netctrl.mpc.plan import solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.solve import solve_qp


def spd(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.standard_normal((size, size))
    return root @ root.T


def plant(rng: np.random.Generator, n: int, m: int, p: int, radius: float = 1.05) -> StateSpace:
    A = rng.standard_normal((n, n))
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    return StateSpace(A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m)), 1.0)


def everything(seed: int = 0, **changed: Any) -> MpcProblem:
    """Four states, two inputs, three outputs, horizon 8: all weights, hard and soft bounds, a delay of two."""
    rng = np.random.default_rng(seed)
    n, m, p = 4, 2, 3
    requested: dict[str, Any] = {
        "plant": plant(rng, n, m, p),
        "horizon": 8,
        "state_weight": spd(rng, n),
        "output_weight": spd(rng, p),
        "input_weight": spd(rng, m),
        "rate_weight": spd(rng, m),
        "terminal_weight": spd(rng, n),
        "state_lower": [-np.inf, -1.0, -3.0, -np.inf],
        "state_upper": [np.inf, 1.0, 2.0, np.inf],
        "input_lower": -1.0,
        "input_upper": [1.0, 0.7],
        "soft_weight": [np.inf, 50.0, np.inf, np.inf],
        "soft_linear": [0.0, 3.0, 0.0, 0.0],
        "delay": 2,
    }
    return MpcProblem(**(requested | changed))


SCALED = 1e-9
"""Of the inputs' bounds: what two exact ways may differ by."""
PAST = np.array([[0.3, -0.4], [-0.9, 0.2]])


def changed(problem: MpcProblem, **parts: Any) -> MpcProblem:
    """The problem with other fields; scales are chosen anew."""
    kept = {each.name: getattr(problem, each.name) for each in fields(problem)} | {
        "input_scale": None,
        "state_scale": None,
    }
    return MpcProblem(**(kept | parts))


def first_inputs(problem: MpcProblem, theta: np.ndarray, form: Any = condensed, solver: str = "daqp") -> np.ndarray:
    program = form(problem)
    return program.plan(solve_qp(program.program(theta), solver=solver).x, theta)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", [condensed, sparse])
def test_both_forms_are_the_problem_as_written(seed: int, form: Any) -> None:
    problem = everything(seed)
    state = 0.8 * np.random.default_rng(seed + 100).standard_normal(4)
    theta = parameters(problem, state, PAST)
    np.testing.assert_allclose(first_inputs(problem, theta, form), by_cvxpy(problem, theta), atol=1e-6)


def test_soft_bounds_are_broken_and_hard_ones_met() -> None:
    problem = everything(1, soft_linear=0.0, state_upper=[np.inf, 0.3, 2.0, np.inf])
    theta = parameters(problem, np.array([0.5, 3.0, 0.5, 0.0]), PAST)
    u = first_inputs(problem, theta)
    np.testing.assert_allclose(u, by_cvxpy(problem, theta), atol=1e-6)
    x, reached = theta[:4], []
    for each in u:
        x = problem.plant.A @ x + problem.plant.B @ each
        reached.append(x)
    reached = np.array(reached)
    assert reached[:, 1].max() > 0.3 + 1e-3
    assert reached[:, 2].max() <= 2.0 + 1e-9
    assert reached[:, 2].min() >= -3.0 - 1e-9


def test_a_steep_slack_keeps_what_can_be_kept() -> None:
    """With a linear weight above the hard bound's multiplier soft is hard."""
    hard = double_integrator()
    theta = np.array([4.2, 0.9])
    soft = double_integrator(soft_weight=1.0, soft_linear=1e4)
    np.testing.assert_allclose(first_inputs(soft, theta), first_inputs(hard, theta), atol=1e-8)
    beyond = np.array([5.5, 1.5])
    with pytest.raises(InfeasibleProgram):
        first_inputs(hard, beyond)
    assert first_inputs(soft, beyond)[0, 0] == pytest.approx(-1.0)


@pytest.mark.parametrize("form", [condensed, sparse])
def test_without_bounds_it_is_the_regulator(form: Any) -> None:
    """Terminal weight X of the Riccati equation: u_k = −K x_k at each step, whatever the horizon."""
    rng = np.random.default_rng(3)
    model = plant(rng, 4, 2, 3)
    Q, R = spd(rng, 4), spd(rng, 2)
    X = sl.solve_discrete_are(model.A, model.B, Q, R)
    K = np.linalg.solve(R + model.B.T @ X @ model.B, model.B.T @ X @ model.A)
    x = rng.standard_normal(4)
    for P in (1, 2, 7):
        problem = MpcProblem(plant=model, horizon=P, state_weight=Q, input_weight=R, terminal_weight=X)
        u, at = first_inputs(problem, x, form), x
        for each in u:
            np.testing.assert_allclose(each, -K @ at, atol=1e-9)
            at = (model.A - model.B @ K) @ at


def test_a_delay_is_states_that_hold_past_inputs() -> None:
    """The same problem with the pipeline of inputs as states of a longer model, without a delay."""
    rng = np.random.default_rng(6)
    model = plant(rng, 3, 1, 1, radius=0.9)
    d, n = 2, 3
    A, B = np.zeros((n + d, n + d)), np.zeros((n + d, 1))
    A[:n, :n], A[:n, n : n + 1] = model.A, model.B
    A[n, n + 1] = B[n + d - 1, 0] = 1.0
    Q, T = spd(rng, n), spd(rng, n)
    requested: dict[str, Any] = {"input_weight": 0.3, "input_lower": -0.4, "input_upper": 0.4}
    delayed = MpcProblem(plant=model, horizon=6, state_weight=Q, terminal_weight=T, delay=d, **requested)
    wide = StateSpace(A, B, np.eye(n + d), dt=1.0)
    none = np.zeros((n + d, n + d))
    big_Q, big_T = none.copy(), none.copy()
    big_Q[:n, :n], big_T[:n, :n] = Q, T
    # Its first d steps can't be changed and its last d inputs reach no state that costs.
    lifted = MpcProblem(plant=wide, horizon=6 + d, state_weight=big_Q, terminal_weight=big_T, **requested)
    x, past = rng.standard_normal(n), np.array([[0.3], [-0.2]])
    u = first_inputs(delayed, parameters(delayed, x, past))
    v = first_inputs(lifted, np.concatenate([x, past[:, 0]]))
    np.testing.assert_allclose(u[:, 0], v[:6, 0], atol=1e-9)


def test_prediction_through_the_delay() -> None:
    """The MPCC note's example of eq. (3.7): 5000 + (−900 − 900 + 2000 + 2000)/3."""
    queue = StateSpace([[1.0]], [[1.0 / 3.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=queue, horizon=2, state_weight=1.0, input_weight=1.0, delay=4)
    u = np.array([[-900.0], [-900.0], [2000.0], [2000.0]])
    assert predict_through_delay(problem, np.array([5000.0]), u)[0] == pytest.approx(5733.333333333)
    # What was given before the delay doesn't matter.
    longer = np.vstack([[[77.0]], u])
    np.testing.assert_array_equal(parameters(problem, [5000.0], longer), parameters(problem, [5000.0], u))


UNITS = st.floats(-6.0, 6.0).map(lambda e: 10.0**e)


@settings(max_examples=40)
@given(st.tuples(*[UNITS] * 4), st.tuples(*[UNITS] * 2), UNITS, st.integers(0, 5))
def test_units_do_not_matter(of_state: tuple, of_input: tuple, of_cost: float, seed: int) -> None:
    """x' = a x, u' = b u, J' = c J: the same inputs, in their unit."""
    problem = everything(seed)
    a, b = np.array(of_state), np.array(of_input)
    theta = parameters(problem, 0.5 * np.random.default_rng(seed).standard_normal(4), PAST)
    model = problem.plant
    other = changed(
        problem,
        plant=StateSpace(a[:, None] * model.A / a, a[:, None] * model.B / b, model.C / a, model.D / b, model.dt),
        state_weight=of_cost * problem.state_weight / a[:, None] / a,
        terminal_weight=of_cost * problem.terminal_weight / a[:, None] / a,
        input_weight=of_cost * problem.input_weight / b[:, None] / b,
        rate_weight=of_cost * problem.rate_weight / b[:, None] / b,
        output_weight=of_cost * problem.output_weight,
        soft_weight=of_cost * problem.soft_weight / a**2,
        soft_linear=of_cost * problem.soft_linear / a,
        state_lower=a * problem.state_lower,
        state_upper=a * problem.state_upper,
        input_lower=b * problem.input_lower,
        input_upper=b * problem.input_upper,
    )
    scaled = theta * np.concatenate([a, b])
    np.testing.assert_allclose(first_inputs(other, scaled) / b, first_inputs(problem, theta), atol=SCALED)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_both_forms_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, p = (int(rng.integers(1, k)) for k in (5, 3, 4))
    problem = MpcProblem(
        plant=plant(rng, n, m, p, radius=rng.uniform(0.3, 1.1)),
        horizon=int(rng.integers(1, 8)),
        state_weight=spd(rng, n),
        input_weight=rng.uniform(0.01, 1.0),
        output_weight=rng.uniform(0.0, 1.0),
        rate_weight=float(rng.integers(2)),
        state_lower=-1.0,
        state_upper=rng.uniform(0.5, 1.0, n),
        soft_weight=rng.uniform(1.0, 100.0, n),
        input_lower=-1.0,
        input_upper=rng.uniform(0.1, 1.0, m),
    )
    theta = parameters(problem, rng.standard_normal(n), rng.uniform(-1.0, 0.1, (1, m)))
    np.testing.assert_allclose(first_inputs(problem, theta), first_inputs(problem, theta, sparse), atol=1e-8)


def test_a_sparse_plant_is_taken() -> None:
    import scipy.sparse as sp

    problem = double_integrator()
    model = problem.plant
    same = changed(problem, plant=StateSpace(sp.csr_array(model.A), sp.csr_array(model.B), model.C, dt=1.0))
    theta = np.array([2.0, -0.5])
    np.testing.assert_array_equal(first_inputs(same, theta), first_inputs(problem, theta))


def test_a_state_that_no_input_moves() -> None:
    """It has no scale of its own but its bound; as long as it keeps that, nothing changes."""
    model = StateSpace(np.diag([0.9, 0.5]), [[1.0], [0.0]], np.eye(2), dt=1.0)
    requested: dict[str, Any] = {"plant": model, "horizon": 4, "state_weight": 1.0, "input_weight": 1.0}
    free = MpcProblem(**requested)
    held = MpcProblem(**requested, state_lower=[-np.inf, -2.0], state_upper=[np.inf, 2.0])
    theta = np.array([1.0, 3.0])
    np.testing.assert_allclose(first_inputs(held, theta), first_inputs(free, theta), atol=1e-12)
    with pytest.raises(InfeasibleProgram, match="state 1 at step 1, upper can't hold"):
        first_inputs(held, np.array([1.0, 5.0]))


@pytest.mark.parametrize(
    ("parts", "argument", "said"),
    [
        ({"horizon": 0}, "horizon", "at least 1"),
        ({"horizon": 2.0}, "horizon", "at least 1"),
        ({"delay": -1}, "delay", "at least 0"),
        ({"state_weight": np.diag([1.0, -1.0])}, "state_weight", "eigenvalue of -1.*convex"),
        ({"state_weight": -1.0}, "state_weight", "at least 0"),
        ({"state_weight": np.nan}, "state_weight", "finite"),
        ({"state_weight": [[1.0, 2.0], [0.0, 1.0]]}, "state_weight", "symmetric"),
        ({"state_weight": np.eye(3)}, "state_weight", "shape"),
        ({"input_weight": np.inf}, "input_weight", "finite"),
        ({"terminal_weight": [[0.0, 1.0], [1.0, 0.0]]}, "terminal_weight", "eigenvalue of -1"),
        ({"input_lower": 2.0}, "input_lower", "2 above input_upper 1 for input 0.*swap or widen"),
        ({"state_upper": [5.0, -6.0]}, "state_lower", "for state 1"),
        ({"state_lower": [0.0, np.nan]}, "state_lower", "NaN"),
        ({"state_lower": [0.0, 0.0, 0.0]}, "state_lower", "2 numbers"),
        ({"soft_weight": 0.0}, "soft_weight", "above 0"),
        ({"soft_linear": -1.0}, "soft_linear", "at least 0"),
        ({"input_scale": 0.0}, "input_scale", "above 0"),
        ({"plant": StateSpace([[0.0]], [[1.0]], [[1.0]])}, "plant", "dt > 0"),
        ({"plant": np.eye(2)}, "plant", "StateSpace"),
    ],
)
def test_the_door(parts: dict, argument: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as refusal:
        double_integrator(**parts)
    assert refusal.value.argument == argument


def test_inputs_that_cost_nothing_are_refused() -> None:
    with pytest.raises(InvalidValue, match="such as an input_weight above 0") as refusal:
        condensed(double_integrator(input_weight=0.0, state_weight=0.0))
    assert refusal.value.argument == "input_weight"


@pytest.mark.parametrize(
    ("state", "past", "argument"),
    [
        ([1.0], PAST, "state"),
        ([1.0, 0.0, np.inf, 0.0], PAST, "state"),
        (np.zeros(4), PAST[:1], "past_inputs"),
        (np.zeros(4), None, "past_inputs"),
        (np.zeros(4), PAST * np.nan, "past_inputs"),
    ],
)
def test_parameters_are_checked(state: Any, past: Any, argument: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        parameters(everything(), np.array(state), past)
    assert refusal.value.argument == argument


def test_theta_is_checked() -> None:
    with pytest.raises(InvalidValue, match="2 finite numbers"):
        condensed(double_integrator()).program(np.array([1.0]))


def test_an_mpc_problem_names_state_input_and_step() -> None:
    problem = everything(
        soft_weight=np.inf, soft_linear=0.0, state_upper=[np.inf, 1.0, 2.0, np.inf], state_lower=-np.inf, delay=0
    )
    program = condensed(problem)
    theta = np.zeros(program.n_parameters)
    theta[:4] = 50.0 * np.linalg.solve(problem.plant.A, [0.0, 1.0, 0.0, 0.0])
    with pytest.raises(InfeasibleProgram, match=r"state 1 at step 1, upper.*input \d at step 0") as refusal:
        solve_qp(program.program(theta))
    assert "soft_weight" in str(refusal.value)


@pytest.mark.parametrize("form", ["condensed", "sparse"])
def test_a_plan_is_what_the_model_does(form: str) -> None:
    problem = everything(1, soft_linear=0.0, state_upper=[np.inf, 0.3, 2.0, np.inf])
    state = np.array([0.5, 3.0, 0.5, 0.0])
    plan = solve_mpc(problem, state, past_inputs=PAST, form=form)
    theta = parameters(problem, state, PAST)
    np.testing.assert_allclose(plan.inputs, first_inputs(problem, theta), atol=SCALED)
    np.testing.assert_array_equal(plan.states[0], theta[:4])
    expected = plan.states[:-1] @ problem.plant.A.T + plan.inputs @ problem.plant.B.T
    np.testing.assert_allclose(plan.states[1:], expected, atol=1e-12)
    assert plan.excess[1:, 1].max() == pytest.approx(plan.states[1:, 1].max() - 0.3, abs=1e-12)
    assert plan.excess[1:, 2].max() <= 1e-9
    assert plan.solution.residuals.worst <= 1e-9


def test_a_plan_s_refusals() -> None:
    with pytest.raises(InvalidValue, match="condensed or sparse"):
        solve_mpc(double_integrator(), [0.0, 0.0], form="banded")


@pytest.mark.parametrize("form", ["condensed", "sparse"])
@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_a_conflict_is_in_the_plant_s_units(form: str, unit: float) -> None:
    """5 + 0.8 − 0.5 exceeds 5 by 0.3, which an input lower by 0.6 would mend; then all in units of 1/1000."""
    model = StateSpace([[1.0, 1.0], [0.0, 1.0]], [[0.5], [1.0]], [[1.0, 0.0]], dt=1.0)
    requested = double_integrator(
        plant=model, state_lower=-5.0 * unit, state_upper=5.0 * unit, input_lower=-unit, input_upper=unit
    )
    with pytest.raises(InfeasibleProgram) as refusal:
        solve_mpc(requested, [5.0 * unit, 0.8 * unit], form=form)
    found = refusal.value.conflict
    shortfall = dict(zip(found.names, found.shortfall, strict=True))
    assert shortfall["state 0 at step 1, upper"] == pytest.approx(0.3 * unit, rel=1e-9)
    assert shortfall["input 0 at step 0, lower"] == pytest.approx(0.6 * unit, rel=1e-9)
