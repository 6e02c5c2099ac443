"""References, disturbances, delays, rows, blocks, soft bounds: random instances against cvxpy, and each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpc_instances import Instance, random_instance, written
from mpc_problems import double_integrator
from scipy.linalg import solve_discrete_are

from netctrl.core.errors import InfeasibleProgram, InvalidValue
from netctrl.laws.pacing.best_rate import best_rate, clipped
from netctrl.model.datasets import model_of
from netctrl.model.statespace import StateSpace
from netctrl.mpc.formulate import FORMS, condensed
from netctrl.mpc.parametric import parameters
from netctrl.mpc.plan import MpcPlan, solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.receding import receding_controller, start_receding, step_receding

FIRST = 1e-6
"""Of an input's range: what first moves may differ by from Clarabel's."""


def solved(instance: Instance, **options: Any) -> tuple[MpcProblem, MpcPlan | None]:
    """The plan; None for an infeasible problem."""
    problem, call = MpcProblem(**instance.problem), dict(instance.call)
    try:
        return problem, solve_mpc(problem, call.pop("state"), **call, **options)
    except InfeasibleProgram:
        return problem, None


def judged(instance: Instance, **options: Any) -> None:
    """Statuses and first moves are Clarabel's, on the problem as written."""
    problem, plan = solved(instance, **options)
    judge = written(instance)
    status, inputs = judge.solved()
    if plan is None:
        assert status.startswith("infeasible")
    elif inputs is None:  # a plan that meets all bounds of the problem as written proves that Clarabel is wrong
        assert judge.at(plan.inputs)[1] < 1e-9
    else:
        wide = problem.input_upper - problem.input_lower
        wide = np.where(np.isfinite(wide), wide, np.maximum(1.0, np.abs(inputs).max(axis=0)))
        assert (np.abs(plan.inputs[0] - inputs[0]) / wide).max() < FIRST


@pytest.mark.parametrize("seed", range(16))
def test_small_instances(seed: int) -> None:
    judged(random_instance(seed, most_states=5, longest=12, latest=4), form="sparse" if seed % 4 == 3 else "condensed")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 200, 20))
def test_instances_of_any_size(start: int) -> None:
    """To 30 states, 200 samples and 20 of delay; stable, integrating and unstable in turn."""
    for seed in range(start, start + 20):
        judged(random_instance(seed))


@pytest.mark.parametrize("seed", range(20))
def test_the_pacing_paper_s_law_is_an_instance(seed: int) -> None:
    """Eq. (3), ψ (ℓ − μ_ℓ)²/μ_v + ℓ/μ_ℓ − ξ r/μ_r over 0 <= r <= R with ℓ = ℓ_0 + b_1 r: a reference stands for the
    linear terms. Its law is eq. (7) within the bounds."""
    random = np.random.default_rng(seed)
    psi, xi, b1, rtt_at_zero, mean_rtt, variance, mean_rate = 10.0 ** random.uniform(-1.0, 1.0, 7)
    most = 10.0 ** random.uniform(-1.0, 2.0)
    problem = MpcProblem(
        plant=StateSpace([[0.0]], [[b1]], [[1.0]], dt=1.0), horizon=1, output_weight=psi / variance,
        input_lower=0.0, input_upper=most,
    )  # fmt: skip
    wanted = mean_rtt + (xi / (mean_rate * b1) - 1.0 / mean_rtt) * variance / (2.0 * psi)
    plan = solve_mpc(problem, [0.0], reference=[[0.0], [wanted - rtt_at_zero]])
    law = clipped(best_rate(psi, xi, b1, rtt_at_zero, mean_rtt, variance, mean_rate), 0.0, most)
    assert plan.inputs[0, 0] == pytest.approx(law, abs=1e-9 * most)


def test_connet_s_published_gain_is_an_instance() -> None:
    """Of the regulator's cost, Q1 = 43378 C'C and Q2 = 1, with its own end: the printed K at any horizon."""
    model = model_of("connet-paper")
    A, B, Q = model.A, model.B, 43378.0 * model.C.T @ model.C
    printed = np.array([[-15.7017, -9.3098]])
    for horizon in (1, 7, 40):
        problem = MpcProblem(
            plant=model.state_space, horizon=horizon, state_weight=Q, input_weight=1.0,
            terminal_weight=solve_discrete_are(A, B, Q, np.eye(1)),
        )  # fmt: skip
        gain = np.array([-solve_mpc(problem, x).inputs[0] for x in np.eye(2)]).T
        assert gain == pytest.approx(printed, rel=5e-4)


def test_both_forms_are_one_problem() -> None:
    for seed in range(40, 48):
        instance = random_instance(seed, most_states=5, longest=12, latest=4)
        one, other = (solved(instance, form=form)[1] for form in FORMS)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            np.testing.assert_allclose(one.inputs, other.inputs, atol=1e-7 * (1.0 + np.abs(one.inputs).max()))


@pytest.mark.parametrize("seed", range(0, 30, 2))
def test_a_loop_s_step_is_the_plan_s_first_move(seed: int) -> None:
    """Whatever the active set was before: constants without preview, series with it."""
    instance = random_instance(seed, most_states=5, longest=12, latest=4)
    problem, call = MpcProblem(**instance.problem), instance.call
    given = {name: call[name] for name in ("reference", "input_reference", "disturbances") if name in call}
    given = {name: value for name, value in given.items() if name != "input_reference" or problem.input_weight.any()}
    rng = np.random.default_rng(seed)
    for preview in (False, True):
        if not preview:
            given = {name: np.atleast_2d(value)[0] for name, value in given.items()}
        controller = receding_controller(problem, preview=preview)
        state = start_receding(controller)
        for _ in range(6):
            x = rng.uniform(0.0, 1.0) * rng.standard_normal(problem.plant.n_states)
            before = state
            state = step_receding(controller, state, x, **given)
            asked = {"past_disturbances": before.past_disturbances} if len(before.past_disturbances) else {}
            try:
                plan = solve_mpc(problem, x, past_inputs=before.past, **given, **asked)
            except InfeasibleProgram:
                assert state.status == "infeasible"
                continue
            np.testing.assert_allclose(state.applied, plan.inputs[0], atol=1e-7 * (1.0 + np.abs(plan.inputs).max()))


def test_a_reference_as_numbers_rows_or_function() -> None:
    problem = double_integrator(horizon=6, output_weight=1.0, delay=2)
    start: dict[str, Any] = {"state": [0.0, 0.0], "past_inputs": [[0.1], [0.2]]}
    constant = solve_mpc(problem, reference=1.0, **start).inputs
    np.testing.assert_array_equal(constant, solve_mpc(problem, reference=[1.0], **start).inputs)
    for same in (np.ones(9), np.ones((3, 1)), lambda _: 1.0):
        np.testing.assert_allclose(solve_mpc(problem, reference=same, **start).inputs, constant, atol=1e-12)
    # Rows count from now: the plan's states begin two samples ahead.
    late = solve_mpc(problem, reference=[5.0, 5.0, *np.ones(7)], **start).inputs
    np.testing.assert_allclose(late, constant, atol=1e-12)


def test_what_is_not_given_is_no_parameter() -> None:
    """An explicit law's θ stays the state, and u₋₁ where it matters."""
    assert condensed(double_integrator(output_weight=1.0)).n_parameters == 2
    assert condensed(double_integrator(output_weight=1.0, rate_upper=1.0)).n_parameters == 3


def test_blocks_hold_inputs() -> None:
    start = [3.0, 0.5]
    for options, held in (
        ({"control_horizon": 3}, [1, 1, 7]),
        ({"blocks": (1, 2, 3)}, [1, 2, 6]),
        ({"blocks": (9,)}, [9]),
    ):
        problem = double_integrator(horizon=9, state_lower=-np.inf, state_upper=np.inf, **options)
        plan = solve_mpc(problem, start, past_inputs=[[0.0]])
        assert condensed(problem).H.shape == (len(held), len(held))
        changes = np.flatnonzero(np.diff(plan.inputs[:, 0]) != 0.0) + 1
        assert set(changes) <= set(np.cumsum(held))
        np.testing.assert_array_equal(plan.inputs, np.repeat(plan.inputs[np.cumsum([0, *held[:-1]])], held, axis=0))
    assert MpcProblem(**_integrator(horizon=3, control_horizon=3)).blocks is None


def test_delays_that_differ() -> None:
    """x⁺ = x + u₁ + u₂ with u₂ two samples late: an input that can't act any more stays 0."""
    plant = StateSpace([[1.0]], [[1.0, 1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=plant, horizon=4, state_weight=1.0, input_weight=0.1, delay=(0, 2))
    plan = solve_mpc(problem, [1.0], past_inputs=[[0.0, 0.3], [0.0, -0.2]])
    np.testing.assert_allclose(plan.inputs[2:, 1], 0.0, atol=1e-12)
    moved = plan.inputs[:, 0] + [0.3, -0.2, *plan.inputs[:2, 1]]
    np.testing.assert_allclose(np.diff(plan.states[:, 0]), moved, atol=1e-12)


def test_an_old_measurement_is_brought_up_to_date() -> None:
    plant = StateSpace([[0.9]], [[1.0, 1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(**_integrator(plant=plant, measured=(1,), measurement_delay=2, delay=1))
    theta = parameters(
        problem, np.array([1.0]), np.array([[7.0], [0.1], [0.2], [0.4]]), disturbances=0.5, past_disturbances=[0.3, 0.4]
    )
    x = 0.9 * (0.9 * (0.9 + 0.1 + 0.3) + 0.2 + 0.4) + 0.4 + 0.5
    np.testing.assert_allclose(theta, [x], atol=1e-12)


def test_a_measured_disturbance_is_met_before_it_acts() -> None:
    plant = StateSpace([[1.0]], [[1.0, 1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_weight=1e-3, measured=[1])
    plan = solve_mpc(problem, [0.0], disturbances=[0.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(plan.inputs[:, 0], [0.0, 0.0, -1.0, 0.0, 0.0], atol=2e-3)


@pytest.mark.parametrize(
    ("bounds", "name"),
    [
        ({"rate_lower": -0.1, "rate_upper": 0.1, "input_lower": 0.5}, "change of input 0 at step 0, upper"),
        ({"output_lower": 6.0, "state_upper": 5.5}, "output 0 at step 1, lower"),
        ({"mixed_states": [[1.0, 0.0]], "mixed_inputs": [[1.0]], "mixed_lower": 2.0}, "mixed row 0 at step 0, lower"),
    ],
)
def test_rows_that_conflict_are_named(bounds: dict, name: str) -> None:
    with pytest.raises(InfeasibleProgram, match=name):
        solve_mpc(double_integrator(**bounds), [0.0, 0.0], past_inputs=[[0.0]])


def test_soft_bounds_of_inputs_and_steps_give_way() -> None:
    """Where hard ones conflict, soft ones are broken by no more than they must be."""
    bounds: dict[str, Any] = {"rate_lower": -0.1, "rate_upper": 0.1, "input_lower": 0.5}
    problem = double_integrator(**bounds, rate_soft_weight=1e6, rate_soft_linear=10.0)
    plan = solve_mpc(problem, [-1.0, 0.0], past_inputs=[[0.0]])
    assert plan.inputs[0, 0] == pytest.approx(0.5, abs=1e-4)
    problem = double_integrator(**bounds, input_soft_weight=1e6, input_soft_linear=1e3)
    plan = solve_mpc(problem, [-1.0, 0.0], past_inputs=[[0.0]])
    np.testing.assert_allclose(plan.inputs[:, 0], [0.1, 0.2, 0.3], atol=1e-6)


def _integrator(**changed: Any) -> dict[str, Any]:
    requested: dict[str, Any] = {"plant": StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0), "horizon": 4}
    return requested | {"input_weight": 1.0, "state_weight": 1.0} | changed


@pytest.mark.parametrize(
    ("parts", "argument", "said"),
    [
        ({"delay": (1, 2)}, "delay", "or 1 of them, one for each input"),
        ({"delay": (-1,)}, "delay", "at least 0"),
        ({"measurement_delay": -1}, "measurement_delay", "at least 0"),
        ({"control_horizon": 5}, "control_horizon", "from 1 to 4"),
        ({"control_horizon": 2, "blocks": (1,)}, "control_horizon", "not both"),
        ({"blocks": (2, 3)}, "blocks", "at most 4 in total"),
        ({"blocks": ()}, "blocks", "at least 1"),
        ({"blocks": 2}, "blocks", "at least 1"),
        ({"measured": (0,)}, "measured", "not all of them"),
        ({"measured": (3,)}, "measured", "from 0 to 0"),
        ({"measured": 0}, "measured", "different inputs"),
        ({"output_weight": np.ones((3, 1, 1))}, "output_weight", "or 4, one for each sample"),
        ({"output_weight": -np.ones((4, 1, 1))}, "output_weight", "eigenvalue"),
        ({"rate_lower": 2.0, "rate_upper": 1.0}, "rate_lower", "for rate 0"),
        ({"mixed_states": [[1.0, 2.0]]}, "mixed_states", "shape"),
        ({"mixed_inputs": [[1.0]], "mixed_states": [[1.0], [2.0]]}, "mixed_inputs", "shape"),
        ({"output_soft_weight": 0.0}, "output_soft_weight", "above 0"),
        ({"rate_soft_linear": np.inf}, "rate_soft_linear", "at least 0"),
    ],
)
def test_the_door(parts: dict, argument: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as refusal:
        MpcProblem(**_integrator(**parts))
    assert refusal.value.argument == argument


@pytest.mark.parametrize(
    ("signals", "argument", "said"),
    [
        ({"reference": [1.0, np.nan]}, "reference", "finite"),
        ({"reference": [[1.0, 2.0, 3.0]]}, "reference", "1 finite numbers"),
        ({"reference": lambda _: "high"}, "reference", "function of the sample"),
        ({"disturbances": 1.0}, "disturbances", "without the problem's `measured`"),
    ],
)
def test_signals_are_checked(signals: dict, argument: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as refusal:
        solve_mpc(MpcProblem(**_integrator(output_weight=1.0)), [0.0], **signals)
    assert refusal.value.argument == argument


@pytest.mark.parametrize("name", ["reference", "state_reference", "input_reference"])
def test_signals_without_a_weight_have_no_effect(name: str) -> None:
    weights = {"state_weight": float(name != "state_reference"), "input_weight": float(name != "input_reference")}
    with pytest.raises(InvalidValue, match="no effect") as refusal:
        solve_mpc(MpcProblem(**_integrator(**weights)), [0.0], **{name: 1.0})
    assert refusal.value.argument == name


def test_arrays_of_whole_numbers_are_taken() -> None:
    plant = StateSpace([[1.0]], [[1.0, 1.0, 1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(
        **_integrator(plant=plant, delay=np.array([1, 0]), blocks=np.arange(1, 3), measured=np.array([1]))
    )
    assert (problem.delay, problem.blocks, problem.measured) == ((1, 0), (1, 3), (1,))


def test_a_series_takes_preview() -> None:
    controller = receding_controller(MpcProblem(**_integrator(output_weight=1.0)))
    with pytest.raises(InvalidValue, match="preview=True"):
        step_receding(controller, start_receding(controller), np.zeros(1), reference=[[1.0], [2.0]])
    controller = receding_controller(MpcProblem(**_integrator(input_weight=0.0)))
    with pytest.raises(InvalidValue, match="no weight or input"):
        step_receding(controller, start_receding(controller), np.zeros(1), input_reference=1.0)
