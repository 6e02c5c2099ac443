"""Estimator and closed loop from outputs: no offset under disturbances, rank failures by name, the filter itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

from netctrl.core.errors import InvalidValue
from netctrl.model.statespace import StateSpace
from netctrl.mpc.estimate import mpc_estimator, steady_target, with_disturbances
from netctrl.mpc.plan import solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.receding import RecedingController, receding_controller, start_receding, step_receding

OFFSET = 1e-6


class Loop:
    """A plant with an input and an output disturbance, both unknown to the controller, and delays."""

    def __init__(self, controller: RecedingController, problem: MpcProblem) -> None:
        self.controller, self.problem = controller, problem
        self.state = start_receding(controller)
        self.x = np.zeros(problem.plant.n_states)
        kept = int(problem.delays.max()) + problem.measurement_delay + 1
        self.inputs = [np.zeros(problem.n_inputs)] * kept
        self.outputs = [problem.plant.C @ self.x] * kept

    def run(self, steps: int, on_state: Any, on_output: Any, **given: Any) -> np.ndarray:
        """Outputs of the last steps."""
        plant, problem = self.problem.plant, self.problem
        w = np.atleast_1d(given.get("disturbances", np.zeros(len(problem.measured))))
        for k in range(steps):
            add, shift = (each(k) if callable(each) else each for each in (on_state, on_output))
            self.outputs.append(plant.C @ self.x + shift)
            measured = self.outputs[-1 - problem.measurement_delay]
            self.state = step_receding(self.controller, self.state, measured, **given)
            self.inputs.append(self.state.applied)
            u = np.zeros(plant.n_inputs)
            u[problem.manipulated] = [self.inputs[-1 - late][j] for j, late in enumerate(problem.delays)]
            u[list(problem.measured)] = w
            self.x = plant.A @ self.x + plant.B @ u + add
        assert self.state.failures == 0
        return np.array(self.outputs[-steps:])


def drawn(seed: int) -> tuple[MpcProblem, Any, np.random.Generator] | None:
    """A plant that the problem's own law stabilises within some 700 samples; None for others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    p = min(int(rng.integers(1, 3)), n)
    m, nw = p + int(rng.integers(0, 2)), int(rng.integers(0, 2))
    A = rng.standard_normal((n, n))
    A *= (rng.uniform(0.3, 0.95), 1.0, rng.uniform(1.02, 1.2))[seed % 3] / np.abs(np.linalg.eigvals(A)).max()
    B, C = rng.standard_normal((n, m + nw)), rng.standard_normal((p, n))
    weights: dict[str, Any] = {"output_weight": 1.0, "rate_weight": 0.1}
    weights |= {"input_weight": 0.1} if rng.random() < 0.5 else {}
    weights |= {"state_weight": 0.01} if rng.random() < 0.3 else {}
    late: Any = tuple(int(each) for each in rng.integers(0, 4, m)) if rng.random() < 0.5 else int(rng.integers(0, 3))
    problem = MpcProblem(
        plant=StateSpace(A, B, C, dt=1.0),
        horizon=25,
        delay=late,
        measurement_delay=int(rng.integers(0, 3)),
        measured=tuple(range(m, m + nw)),
        input_lower=-50.0,
        input_upper=50.0,
        **weights,
    )
    # An input disturbance where the plant may integrate.
    disturbance: Any = "output" if seed % 3 == 0 else (B[:, :p], np.zeros((p, p)))
    estimator = mpc_estimator(problem, disturbance=disturbance, measurement_noise=1e-3)
    controller = receding_controller(problem, estimator=estimator)
    made, K = controller.program.stages, controller.program.regulator.K[0]
    closed = np.abs(np.linalg.eigvals(made.A[made.kind[0]] - made.B[made.kind[0]] @ K))
    if (closed > 0.975).sum() > p or np.abs(estimator.poles).max() > 0.975:
        return None
    return problem, controller, rng


def settles(seed: int) -> bool:
    """Whether the instance counts; its outputs end at the reference under constant disturbances."""
    made = drawn(seed)
    if made is None:
        return False
    problem, controller, rng = made
    n, p = problem.plant.n_states, problem.plant.n_outputs
    B, measured = problem.plant.B, problem.plant.B[:, list(problem.measured)]
    r, w = 0.5 * rng.standard_normal(p), 0.3 * rng.standard_normal(measured.shape[1])
    add, shift = B[:, :p] @ (0.3 * rng.standard_normal(p)), 0.2 * rng.standard_normal(p) * (seed % 3 == 0)
    held = np.block(
        [[problem.plant.A - np.eye(n), B[:, problem.manipulated]], [problem.plant.C, np.zeros((p, problem.n_inputs))]]
    )
    steady = np.linalg.lstsq(held, np.concatenate([-add - measured @ w, r - shift]), rcond=None)[0]
    if np.abs(steady[n:]).max() > 20.0:  # near the inputs' bounds
        return False
    given = {"disturbances": w} if len(w) else {}
    found = Loop(controller, problem).run(900, add, shift, reference=r, **given)
    np.testing.assert_allclose(found[-10:], np.tile(r, (10, 1)), atol=OFFSET)
    return True


def test_no_offset() -> None:
    assert sum(settles(seed) for seed in range(10)) >= 3


@pytest.mark.slow
def test_no_offset_of_a_hundred_plants() -> None:
    count, seed = 0, 10
    while count < 100:
        count, seed = count + settles(seed), seed + 1
    assert seed < 260


def lag(**changed: Any) -> MpcProblem:
    requested: dict[str, Any] = {"plant": StateSpace([[0.8]], [[0.5]], [[1.0]], dt=1.0), "horizon": 15}
    return MpcProblem(**(requested | {"output_weight": 1.0, "rate_weight": 0.1} | changed))


def test_without_a_disturbance_model_the_offset_stays() -> None:
    for disturbance, off in (("none", 0.1), ("output", 0.0)):
        problem = lag()
        loop = Loop(receding_controller(problem, estimator=mpc_estimator(problem, disturbance=disturbance)), problem)
        error = abs(loop.run(200, 0.3, 0.0, reference=1.0)[-1, 0] - 1.0)
        assert error > off if off else error < OFFSET


@pytest.mark.parametrize("where", ["input", "output"])
@pytest.mark.parametrize("weights", [{}, {"input_weight": 0.1}, {"input_weight": 0.1, "state_weight": 0.1}])
@pytest.mark.parametrize("late", [{}, {"delay": 2, "measurement_delay": 1}])
def test_ramps_and_periods_leave_no_offset(where: str, weights: dict, late: dict) -> None:
    """By an internal model of the disturbance, whatever has a weight; a model of steps leaves an error."""
    turn = 2.0 * np.pi / 12.0

    def ramp(k: int) -> float:
        return 0.01 * k

    def wave(k: int) -> float:
        return 0.2 * np.sin(turn * k)

    problem = lag(**weights, **late)
    for drive, options in ((ramp, {"kind": "ramp"}), (wave, {"periods": (12,)})):
        errors = []
        for model in ({}, options):
            estimator = mpc_estimator(problem, disturbance=where, measurement_noise=1e-3, **model)
            loop = Loop(receding_controller(problem, estimator=estimator), problem)
            parts = (drive, 0.0) if where == "input" else (0.0, drive)
            errors.append(np.abs(loop.run(300, *parts, reference=1.0)[-24:] - 1.0).max())
        assert errors[0] > 1e-3
        assert errors[1] < OFFSET


def test_delays_that_differ_under_a_wave() -> None:
    plant = StateSpace(np.diag([0.8, 0.5]), [[0.5, 0.2], [0.1, 0.4]], np.eye(2), dt=1.0)
    problem = lag(plant=plant, delay=(3, 1), input_weight=0.2, measurement_delay=1)
    estimator = mpc_estimator(problem, disturbance="input", measurement_noise=1e-3, periods=(15,))
    loop = Loop(receding_controller(problem, estimator=estimator, preview=True), problem)
    found = loop.run(300, lambda k: plant.B @ [0.2 * np.sin(2.0 * np.pi * k / 15.0), 0.1], 0.0, reference=[1.0, -0.5])
    np.testing.assert_allclose(found[-15:], np.tile([1.0, -0.5], (15, 1)), atol=OFFSET)


def test_the_filter_is_the_kalman_filter() -> None:
    """Covariance and gain by iterating the recursion, gains of the current estimate."""
    rng = np.random.default_rng(1)
    A, C = 0.5 * rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    problem = MpcProblem(
        plant=StateSpace(A, rng.standard_normal((3, 2)), C, dt=1.0), horizon=5, output_weight=1.0, input_weight=1.0
    )
    W, V = np.diag([1.0, 2.0, 0.5]), np.diag([0.3, 0.1])
    found = mpc_estimator(problem, disturbance="none", process_noise=W, measurement_noise=V)
    X = np.eye(3)
    for _ in range(500):
        M = X @ C.T @ np.linalg.inv(C @ X @ C.T + V)
        X = A @ (X - M @ C @ X) @ A.T + W
    np.testing.assert_allclose(found.covariance, X, rtol=1e-9)
    np.testing.assert_allclose(found.gain, M, rtol=1e-8)
    assert np.abs(found.poles).max() < 1.0


@pytest.mark.parametrize(
    ("A", "options", "said"),
    [
        ([[1.0]], {"disturbance": "output"}, r"rank 1 instead of 2 at λ = 1.*integrates.*disturbance='input'"),
        ([[0.5]], {"disturbance": (np.eye(1, 2), np.eye(1, 2, 1))}, "more of them than the 1 outputs"),
        ([[0.5]], {"disturbance": ([[0.0]], [[0.0]])}, "none in a direction that a state"),
    ],
)
def test_rank_failures_are_named(A: list, options: dict, said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as refusal:
        mpc_estimator(lag(plant=StateSpace(A, [[1.0]], [[1.0]], dt=1.0)), **options)
    assert refusal.value.argument == "disturbance"


def test_a_plant_that_outputs_do_not_observe() -> None:
    plant = StateSpace(np.diag([1.1, 0.5]), [[1.0], [1.0]], [[0.0, 1.0]], dt=1.0)
    with pytest.raises(InvalidValue, match=r"λ = 1\.1.*observe each mode of the plant"):
        mpc_estimator(lag(plant=plant))


def test_a_zero_at_one_hides_an_input_disturbance() -> None:
    """x₁⁺ = u − x₁ ..: an output that is 0 at rest whatever the input."""
    plant = StateSpace([[0.5, 0.0], [0.0, 0.2]], [[1.0], [1.6]], [[1.0, -1.0]], dt=1.0)
    assert np.abs(plant.steady_gain()).max() < 1e-12
    with pytest.raises(InvalidValue, match=r"zero of the plant.*disturbance='output'"):
        mpc_estimator(lag(plant=plant), disturbance="input")
    assert "no inputs hold all outputs" in mpc_estimator(lag(plant=plant)).warning


def test_offsets_that_may_remain_are_said() -> None:
    plant = StateSpace(np.diag([0.5, 0.2]), [[1.0], [1.0]], np.eye(2), dt=1.0)
    assert "1 disturbances for 2 outputs" in mpc_estimator(lag(plant=plant), disturbance="input").warning
    assert mpc_estimator(lag()).warning == ""


def test_the_target_is_a_steady_state() -> None:
    rng = np.random.default_rng(3)
    plant = StateSpace(
        0.4 * rng.standard_normal((3, 3)), rng.standard_normal((3, 3)), rng.standard_normal((2, 3)), dt=1.0
    )
    problem = MpcProblem(plant=plant, horizon=4, output_weight=1.0, input_weight=1.0, measured=(1,))
    wide = with_disturbances(problem, mpc_estimator(problem))
    r, u_ref, d, w = (rng.standard_normal(size) for size in (2, 2, 2, 1))
    target = steady_target(wide, 2)
    steady = target.constant @ np.concatenate([r, u_ref, w])
    x, u = steady[:3] + (target.states[0] @ d)[:3], np.insert(steady[5:] + target.inputs[0] @ d, 1, w)
    np.testing.assert_allclose(plant.A @ x + plant.B @ u, x, atol=1e-12)
    np.testing.assert_allclose(plant.C @ x + d, r, atol=1e-12)


def test_lost_measurements_are_bridged() -> None:
    """The estimate goes on by the model; the input is held."""
    problem = lag()
    controller = receding_controller(problem, estimator=mpc_estimator(problem))
    state = step_receding(controller, start_receding(controller), [0.3], reference=1.0)
    lost = step_receding(controller, state, [np.nan], reference=1.0)
    np.testing.assert_array_equal(lost.applied, state.applied)
    expected = controller.problem.plant.A @ state.estimate + controller.problem.plant.B @ lost.applied
    np.testing.assert_allclose(lost.estimate, expected)
    assert (lost.failures, lost.status) == (1, "failed")
    again = step_receding(controller, lost, [0.4], reference=1.0)
    assert again.status == "solved"


def test_the_estimate_s_start() -> None:
    problem = lag()
    controller = receding_controller(problem, estimator=mpc_estimator(problem))
    np.testing.assert_array_equal(start_receding(controller, estimate=[2.0]).estimate, [2.0, 0.0])
    with pytest.raises(InvalidValue, match="no estimator"):
        start_receding(receding_controller(problem), estimate=[2.0])
    with pytest.raises(InvalidValue, match="finite"):
        start_receding(controller, estimate=[np.nan])


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"kind": "jump"}, "kind"),
        ({"periods": (2.0,)}, "periods"),
        ({"periods": 12}, "periods"),
        ({"disturbance": "state"}, "disturbance"),
        ({"disturbance_noise": 0.0}, "disturbance_noise"),
        ({"measurement_noise": -1.0}, "measurement_noise"),
    ],
)
def test_the_door(options: dict, argument: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        mpc_estimator(lag(), **options)
    assert refusal.value.argument == argument


def test_direct_effects_need_a_delay() -> None:
    plant = StateSpace([[0.8]], [[0.5]], [[1.0]], [[0.3]], dt=1.0)
    with pytest.raises(InvalidValue, match="delay of 1"):
        mpc_estimator(lag(plant=plant))
    late = lag(plant=plant, delay=1)
    wide = with_disturbances(late, mpc_estimator(late))
    assert solve_mpc(wide, [0.0, 0.0], past_inputs=[[0.0]], reference=1.0).inputs.shape == (15, 1)


def test_an_estimator_of_another_problem_is_refused() -> None:
    other = lag(plant=StateSpace(np.diag([0.5, 0.2]), [[1.0], [1.0]], [[1.0, 1.0]], dt=1.0))
    with pytest.raises(InvalidValue, match="the estimator of this problem"):
        receding_controller(lag(), estimator=mpc_estimator(other))


def test_the_law_of_a_problem_without_bounds_is_the_separated_one() -> None:
    """With the terminal weight of the Riccati equation and no disturbance model: u = −K x̂."""
    plant = StateSpace([[1.1]], [[1.0]], [[1.0]], dt=1.0)
    X = sl.solve_discrete_are(plant.A, plant.B, np.eye(1), np.eye(1))
    problem = MpcProblem(plant=plant, horizon=4, state_weight=1.0, input_weight=1.0, terminal_weight=X)
    estimator = mpc_estimator(problem, disturbance="none")
    controller = receding_controller(problem, estimator=estimator)
    state = step_receding(controller, start_receding(controller, estimate=[1.0]), [2.0])
    at = 1.0 + estimator.gain[0, 0]
    K = (plant.B.T @ X @ plant.A / (1.0 + plant.B.T @ X @ plant.B))[0, 0]
    assert state.applied[0] == pytest.approx(-K * at, rel=1e-9)
