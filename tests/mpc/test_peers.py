"""Numbers that other MPC packages print or test, with the file that has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

from netctrl.core.errors import InfeasibleProgram
from netctrl.model.statespace import StateSpace
from netctrl.mpc.plan import MpcPlan, solve_mpc
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.receding import receding_controller, start_receding, step_receding

# MPT3, github.com/kvasnica/mpt3, source/mpt/tests/ui/mpccontroller/test_mpccontroller_*_pass.m: no terminal weight.
CHAIN = StateSpace([[1.0, 1.0], [0.0, 1.0]], [[1.0], [0.5]], [[1.0, 0.0]], dt=1.0)
LEAKY = StateSpace([[1.0, 1.0], [0.1, 1.0]], [[1.0], [0.5]], np.eye(2), dt=1.0)


def mpt(plant: StateSpace = CHAIN, horizon: int = 20, most: float = 1.0, **more: Any) -> MpcProblem:
    bounds: dict[str, Any] = {"input_lower": -most, "input_upper": most, "terminal_weight": np.zeros((2, 2))}
    return MpcProblem(plant=plant, horizon=horizon, **(bounds | more))


def cost(problem: MpcProblem, plan: MpcPlan, last: float = 0.0, **of: Any) -> float:
    """Cost as written, from the plan alone."""
    u, x = plan.inputs, plan.states[:-1]
    y = x @ problem.plant.C.T - of.get("reference", 0.0)
    du, u, x = np.diff(np.vstack([[[last]], u]), axis=0), u - of.get("input", 0.0), x - of.get("state", 0.0)
    terms = (
        (x, problem.state_weight),
        (y, problem.output_weight),
        (u, problem.input_weight),
        (du, problem.rate_weight),
    )
    return float(sum(np.einsum("ki,ij,kj", each, weight, each) for each, weight in terms))


@pytest.mark.parametrize(
    ("weights", "references", "first", "worth"),
    [
        ({"state_weight": 1.0, "input_weight": 1.0}, {"state": [3.0, 0.0]}, 0.0995504267932259, 8.95857047171481),
        ({"state_weight": 1e-2, "input_weight": 100.0}, {"input": 0.5}, 0.186037667506576, 195.915561546513),
        ({"state_weight": 1e-2, "input_weight": 100.0}, {"input": -1.0}, None, 218.418966173325),
        (
            {"output_weight": 1.0, "input_weight": 1.0},
            {"input": 0.5, "reference": 1.0},
            -0.869123522230408,
            7.85511650857683,
        ),
    ],
)
def test_mpt_s_tracking(weights: dict, references: dict, first: float | None, worth: float) -> None:
    """tracking_01, 02 and 03."""
    problem = mpt(**weights)
    given = {name if name == "reference" else f"{name}_reference": value for name, value in references.items()}
    plan = solve_mpc(problem, [1.0, 1.0], **given)
    assert cost(problem, plan, **references) == pytest.approx(worth, abs=1e-8)
    if first is not None:
        # Their solver's first input is accurate to 5e-8: its own cost is reproduced to 1e-8.
        assert plan.inputs[0, 0] == pytest.approx(first, abs=1e-7)


def test_mpt_s_tracking_with_a_weight_of_steps() -> None:
    """tracking_05."""
    for weights, worth in (({"input_weight": 1.0}, 10.0469828264527), ({"rate_weight": 1.0}, 6.74386652254278)):
        problem = mpt(StateSpace(LEAKY.A, LEAKY.B, LEAKY.C, dt=1.0), most=5.0, state_weight=1.0, **weights)
        plan = solve_mpc(problem, [1.0, 1.0], past_inputs=[[0.0]], state_reference=[2.0, 0.0])
        assert cost(problem, plan, state=[2.0, 0.0]) == pytest.approx(worth, abs=1e-8)


def test_mpt_s_preview() -> None:
    """tracking_06 and 07: outputs at the samples 0 .. 9."""
    r = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    one = mpt(StateSpace(LEAKY.A, LEAKY.B, [[1.0, 0.0]], dt=1.0), 10, 5.0, output_weight=1.0, input_weight=1.0)
    plan = solve_mpc(one, [1.0, 1.0], reference=r)
    expected = [1, 1.97388042422775, 2.88309398339912, 3.67670650841644, 4.21431143073078, 4.20533661058294]
    expected += [3.66106902852724, 2.90602627391071, 2.15425863807015, 1.61617835892417]
    np.testing.assert_allclose(plan.states[:-1, 0], expected, atol=1e-9)
    assert cost(one, plan, reference=r[:, None]) == pytest.approx(10.4523024830048, abs=1e-9)
    both = mpt(LEAKY, 10, 5.0, output_weight=1.0, input_weight=1.0)
    rows = np.column_stack([r, np.repeat([0.0, 1.0], 5)])
    plan = solve_mpc(both, [1.0, 1.0], reference=lambda k: rows[min(k, 9)])
    assert cost(both, plan, reference=rows) == pytest.approx(18.8950570408202, abs=1e-9)
    expected = [1, 1.01101460429088, 1.08488119244289, 1.15719997426569, 1.16989232855393, 1.04698210345592]
    expected += [0.725922869084997, 0.420813444114332, 0.210592262570128, 0.153953079787489]
    np.testing.assert_allclose(plan.states[:-1, 1], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("bounds", "worth"),
    [
        ({"rate_upper": 0.5}, 297.280032925402),
        ({"rate_lower": -0.5}, 483.549843793654),
        ({"rate_lower": -2.0, "rate_upper": 1.3}, 266.904033535472),
    ],
)
def test_mpt_s_bounds_of_steps(bounds: dict, worth: float) -> None:
    """deltabound_01."""
    problem = mpt(most=5.0, state_weight=1.0, input_weight=1.0, **bounds)
    plan = solve_mpc(problem, [10.0, 1.0], past_inputs=[[0.0]])
    assert cost(problem, plan) == pytest.approx(worth, abs=1e-6)
    if len(bounds) == 2:
        with pytest.raises(InfeasibleProgram, match="change of input 0 at step 0, lower"):
            solve_mpc(problem, [10.0, 1.0], past_inputs=[[10.0]])


@pytest.mark.parametrize(
    ("bounds", "start", "worth"),
    [
        ({"mixed_upper": [1.0, 0.2]}, [-10.0, -1.0], 1234.46947430216),
        ({"mixed_lower": [-1.0, -0.2]}, [11.0, 1.0], 1518.34690076945),
    ],
)
def test_mpt_s_bounds_of_steps_of_states(bounds: dict, start: list, worth: float) -> None:
    """deltabound_02: x_{k+1} − x_k = (A − I) x_k + B u_k."""
    rows = {"mixed_states": CHAIN.A - np.eye(2), "mixed_inputs": CHAIN.B}
    problem = mpt(most=5.0, state_weight=1.0, input_weight=1.0, **rows, **bounds)
    assert cost(problem, solve_mpc(problem, start)) == pytest.approx(worth, abs=1e-5)


def test_mpt_s_soft_bounds() -> None:
    """soft_01 and 02; there the weight of a violation is 1e3."""
    plant = StateSpace([[0.9]], [[1.0]], [[1.0]], dt=1.0)
    weights: dict[str, Any] = {"state_weight": 1.0, "input_weight": 1.0, "terminal_weight": 0.0}
    bounds: dict[str, Any] = {"state_lower": -1.0, "state_upper": 1.0, "input_lower": -1.0, "input_upper": 1.0}
    problem = MpcProblem(plant=plant, horizon=4, **weights, **bounds, soft_weight=1e-6, soft_linear=1e3)
    for sign in (1.0, -1.0):
        plan = solve_mpc(problem, [3.5 * sign])
        np.testing.assert_allclose(sign * plan.inputs[:, 0], [-1.0, -1.0, -0.42075, 0.0], atol=1e-6)


def test_mpt_s_penalties() -> None:
    """08, which prints 142.9453: x_k within ±5, weights .1, then the inputs' weight or bound changed."""
    box = {"state_lower": -5.0, "state_upper": 5.0, "state_weight": 0.1}
    for weight, worth in ((1.0, 10.995), (100.0, 142.9453125)):
        problem = mpt(horizon=4, **box, input_weight=weight)
        assert cost(problem, solve_mpc(problem, [5.0, 1.0])) == pytest.approx(worth, abs=1e-8)
    wider = mpt(horizon=4, **box, input_weight=1.0, input_lower=-1.5)
    assert solve_mpc(wider, [5.0, 1.0]).inputs[0, 0] == pytest.approx(-1.5, abs=1e-7)


# LinearMPC.jl, github.com/darnstrom/LinearMPC.jl, src/mpc_examples.jl and test/runtests.jl.


def test_linearmpc_s_pendulum() -> None:
    """Test set "Compute control": 50 samples, five free inputs, u = 1.7612519326."""
    A = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, -10.0, 9.81, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, -20.0, 39.24, 0.0]])
    step = sl.expm(0.01 * np.block([[A, np.array([[0.0], [100.0], [0.0], [200.0]])], [np.zeros((1, 5))]]))
    plant = StateSpace(step[:4, :4], step[:4, 4:], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], dt=0.01)
    problem = MpcProblem(
        plant=plant,
        horizon=50,
        control_horizon=5,
        output_weight=np.diag([1.44, 1.0]),
        rate_weight=1.0,
        input_lower=-2.0,
        input_upper=2.0,
    )
    found = solve_mpc(problem, [5.0, 5.0, 0.0, 0.0], past_inputs=[[0.0]])
    assert found.inputs[0, 0] == pytest.approx(1.7612519326, abs=1e-6)


def test_linearmpc_s_blocks() -> None:
    """Test set "Unconstrained": blocks of 2, 2, 2 and 24, no weight but the output's; y reaches 5 within 20 samples."""
    plant = StateSpace([[0.77880078307]], [[1.0]], [[2.211992169]], dt=100.0)
    problem = MpcProblem(plant=plant, horizon=30, output_weight=1.0, blocks=(2, 2, 2, 24))
    controller = receding_controller(problem)
    state, x = start_receding(controller), np.zeros(1)
    for _ in range(20):
        state = step_receding(controller, state, x, reference=5.0)
        x = plant.A @ x + plant.B @ state.applied
    assert (plant.C @ x)[0] == pytest.approx(5.0, rel=1e-6)


def test_linearmpc_s_preview_pays() -> None:
    """Test set "Reference Preview Simulation": with preview the error's norm is below .9 of that without."""
    plant = StateSpace([[1.0, 1.0], [0.0, 1.0]], [[0.0], [1.0]], np.eye(2), dt=1.0)
    bounds: dict[str, Any] = {"output_lower": [-1.0, -0.5], "output_upper": [1.0, 0.5], "output_soft_weight": 1e6}
    problem = MpcProblem(
        plant=plant, horizon=5, control_horizon=3, output_weight=1.0, input_weight=0.1, input_lower=-2.0,
        input_upper=2.0, **bounds,
    )  # fmt: skip
    rows, errors = np.column_stack([np.repeat([0.0, 1.0], 10), np.zeros(20)]), []
    for preview in (True, False):
        controller = receding_controller(problem, preview=preview)
        state, x, off = start_receding(controller), np.array([1.0, 0.0]), []
        for k in range(20):
            off.append(x - rows[k])
            state = step_receding(controller, state, x, reference=rows[k:] if preview else rows[k])
            x = plant.A @ x + plant.B @ state.applied
        errors.append(np.linalg.norm(off))
        assert np.linalg.norm(off[-1]) < 1e-3
    assert errors[0] < 0.9 * errors[1]


# do-mpc 5.1.2, github.com/do-mpc/do-mpc, examples/oscillating_masses_discrete, run with IPOPT at a tolerance of 1e-12.


@pytest.mark.parametrize(
    ("most", "start", "at", "inputs"),
    [
        (
            5.0,
            [0.17227855863079178, -0.011921600759416284, 0.32549517403589634, -0.46855361237370186],  # the example's
            [0, 1, 2, 10, 20, 49],
            [
                [-0.665676288, 1.47696107],
                [0.186998234, 0.556860933],
                [0.16191138, 0.445124983],
                [0.0322413025, 0.0891065325],
                [0.00436365691, 0.0118651539],
                [1.31916711e-05, 3.4278984e-05],
            ],
        ),
        (
            1.0,
            [1.0, 1.0, 1.5, 1.0],
            [0, 3, 12, 20, 30, 49],
            [
                [-1.0, -1.0],
                [-1.0, 1.0],
                [1.0, 0.582392381],
                [0.109136712, 0.00547953086],
                [0.0145013488, 0.000827192685],
                [0.000313325489, 2.1936794e-05],
            ],
        ),
    ],
)
def test_do_mpc_s_oscillating_masses(most: float, start: list, at: list, inputs: list) -> None:
    """Closed loops of 50 samples; only changes of the inputs have a weight."""
    own, other = np.array([[0.96033209, 0.19734663], [-0.39337056, 0.96033209]]), [0.01973449, 0.0013227, 0.19470123]
    other = np.array([other[:2], [other[2], other[0]]])
    near, far = np.array([[1.98671102e-02], [1.97346631e-01]]), np.array([[6.63119354e-05], [1.32269963e-03]])
    plant = StateSpace(np.block([[own, other], [other, own]]), np.block([[near, far], [far, near]]), np.eye(4), dt=0.1)
    bounds: dict[str, Any] = {"state_lower": -3, "state_upper": 3, "input_lower": -most, "input_upper": most}
    controller = receding_controller(MpcProblem(plant=plant, horizon=20, state_weight=1.0, rate_weight=1e-4, **bounds))
    state, x, applied = start_receding(controller), np.array(start), []
    for _ in range(50):
        state = step_receding(controller, state, x)
        applied.append(state.applied)
        x = plant.A @ x + plant.B @ state.applied
    np.testing.assert_allclose(np.array(applied)[at], inputs, rtol=1e-8, atol=1e-12)


# mpc_qpbenchmark, github.com/qpsolvers/mpc_qpbenchmark, WHLIPBAL0 to 29, at whose matrices Clarabel's solutions are.


@pytest.mark.parametrize(
    ("number", "start", "inputs"),
    [
        (0, [0.0, 0.0, 0.0], [-10.0, 4.1673529, 3.1216979, -1.0450654]),
        (7, [0.120285749844, -0.472194227411, 0.92898859374], [4.9825047, 4.1073756, 2.1902663, -0.68636279]),
        (14, [0.195949868333, 0.174024657305, 0.221338005949], [4.0030388, 2.9676256, 1.4184047, -0.37869405]),
        (29, [0.162995515972, 1.04281762814, -0.281918389527], [1.7758075, 1.1361089, 0.41087477, -0.050469107]),
    ],
)
def test_qpbenchmark_s_wheeled_pendulum(number: int, start: list, inputs: list) -> None:
    """Plans of 50 samples at the inputs 0, 5, 20 and 49; positions count from the wheel's, speeds vary with time."""
    T, w = 0.02, np.sqrt(9.81 / 0.58)
    model = sl.expm(
        T * np.array([[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, w**2, 0, 0, -(w**2) / 9.81], [0] * 5])
    )
    problem = MpcProblem(
        plant=StateSpace(model[:4, :4], model[:4, 4:], np.eye(4), dt=T),
        horizon=50,
        state_weight=1.0,
        input_weight=1e-3,
        terminal_weight=10.0,
        input_lower=-10.0,
        input_upper=10.0,
    )
    speed = 0.5 + np.cos(0.5 * number * T)
    wanted = np.outer(np.arange(51), [T * speed, 0.0, 0.0, 0.0]) + np.array([0.0, 0.0, speed, 0.0])
    plan = solve_mpc(problem, [0.0, *start], state_reference=wanted)
    np.testing.assert_allclose(plan.inputs[[0, 5, 20, 49], 0], inputs, rtol=2e-7)
