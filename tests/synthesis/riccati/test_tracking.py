"""Laws that follow references: gains against an independent design, the loop against its steps, saturation."""

import numpy as np
import pytest
import scipy.linalg as sl
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue, RiccatiStatus
from netctrl.design.connet.design import connet
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.datasets import model_path
from netctrl.model.identified import IdentifiedModel, read_model
from netctrl.model.law import LqgLaw
from netctrl.model.statespace import StateSpace
from netctrl.synthesis.riccati.tracking import integral_regulator, kalman_filter, tracking_loop

PRINTED = read_model(model_path("connet-paper"))


def random_model(seed: int, m: int = 1) -> IdentifiedModel:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 4)), int(rng.integers(m, 4))
    A = rng.normal(size=(n, n))
    A *= rng.uniform(0.2, 0.95) / np.abs(np.linalg.eigvals(A)).max()
    C = rng.normal(size=(p, n))
    W, V = np.eye(n), np.eye(p)
    P = sl.solve_discrete_are(A.T, C.T, W, V)
    K = A @ P @ C.T @ np.linalg.inv(C @ P @ C.T + V)
    return IdentifiedModel(
        A=A,
        B=rng.normal(size=(n, m)),
        C=C,
        D=rng.normal(size=(p, m)),
        dt=1.0,
        K=K,
        innovation_covariance=C @ P @ C.T + V,
        input_offset=rng.normal(size=m),
        output_offset=rng.normal(size=p),
    )


def run(law, plant, references, noise=0.0, seed=0):
    """Outputs and inputs of a linear plant around the law's offsets."""
    rng = np.random.default_rng(seed)
    gains = tracking_gains(law)
    x, state = np.zeros(len(plant.A)), start_tracking(gains)
    outputs, applied = [], []
    for r in references:
        v = state.applied - law.input_offset
        y = plant.C @ x + plant.D @ v + law.output_offset + noise * rng.normal(size=len(plant.C))
        x = plant.A @ x + plant.B @ v
        outputs.append(y)
        applied.append(state.applied)
        state = step_tracking(gains, state, y, r)
    return np.array(outputs), np.array(applied)


def test_the_note_s_integral_regulator():
    K, Kz, solution = integral_regulator(PRINTED.state_space, [[1.0, 0.0]])
    assert np.hstack([K, Kz])[0] == pytest.approx([-11.91143, -3.68171, -8.59048], abs=5e-6)
    assert solution.status is RiccatiStatus.STABILISING
    A, B, C, D = PRINTED.A, PRINTED.B, PRINTED.C[:1], PRINTED.D[:1]
    closed = np.block([[A, np.zeros((2, 1))], [-C, np.eye(1)]]) - np.vstack([B, -D]) @ np.hstack([K, Kz])
    assert sorted(np.linalg.eigvals(closed)) == pytest.approx([0.18219, 0.67480, 0.91233], abs=5e-6)


def test_the_kalman_gain_of_an_innovation_form_is_its_own():
    G, V = PRINTED.K, PRINTED.innovation_covariance
    L, solution = kalman_filter(PRINTED.A, PRINTED.C, G @ V @ G.T, V, G @ V)
    assert pytest.approx(G, abs=1e-12) == L
    assert np.abs(solution.X).max() < 1e-12
    L, _ = kalman_filter(PRINTED.A, PRINTED.C, G @ V @ G.T, 4.0 * V, 2.0 * G @ V)
    assert np.abs(L - [[-0.1020, -0.1649], [0.1008, -0.6491]]).max() < 6e-5  # as printed


@given(st.integers(0, 10**6))
def test_the_kalman_gain_is_scipy_s(seed):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 5), rng.integers(1, 4)
    A, C = rng.normal(size=(n, n)), rng.normal(size=(p, n))
    root = rng.normal(size=(n + p, n + p))
    joint = root @ root.T + 0.1 * np.eye(n + p)
    W, S, V = joint[:n, :n], joint[:n, n:], joint[n:, n:]
    P = sl.solve_discrete_are(A.T, C.T, W, V, s=S)
    L, _ = kalman_filter(A, C, W, V, S)
    assert pytest.approx((A @ P @ C.T + S) @ np.linalg.inv(C @ P @ C.T + V), rel=1e-6, abs=1e-8) == L


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_steps_of_the_law_are_the_linear_loop(seed, m):
    """Without limits the law, a step at a time, does what the closed loop's matrices say; and it tracks."""
    model = random_model(seed, m)
    plant = model.state_space
    gain = plant.C @ np.linalg.solve(np.eye(plant.n_states) - plant.A, plant.B) + plant.D
    assume(np.linalg.svd(gain[:m], compute_uv=False).min() > 0.1)
    law = connet(model, track=np.eye(len(gain))[:m].tolist(), limits=[(-1e9, 1e9)] * m).law
    loop = tracking_loop(plant, law)
    r = np.random.default_rng(seed).normal(size=len(gain))
    xi, expected, efforts = np.zeros(loop.response.n_states), [], []
    for _ in range(30):
        expected.append(loop.response.C @ xi + law.output_offset)
        efforts.append(loop.effort.C @ xi + law.input_offset)
        xi = loop.response.A @ xi + loop.response.B @ r
    outputs, applied = run(law, plant, [r + law.output_offset] * 30)
    size = max(1.0, np.abs(applied).max())
    assert outputs == pytest.approx(np.array(expected), abs=1e-9 * size)
    assert applied == pytest.approx(np.array(efforts), abs=1e-9 * size)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25])
def test_integral_action_tracks_whatever_the_gain_is_and_the_paper_s_law_does_not(factor):
    plant = PRINTED.state_space
    other = StateSpace(plant.A, factor * plant.B, plant.C, factor * plant.D, 1.0)
    r = [np.array([0.6, 0.7437 * 0.6])] * 400
    lqi = connet(PRINTED, track="delay", limits=[(0.0, 95.0)])
    assert run(lqi.law, other, r)[0][-1, 0] == pytest.approx(0.6, rel=1e-6)
    paper = connet(PRINTED, method="paper", track="delay", limits=[(0.0, 95.0)])
    assert abs(run(paper.law, other, r)[0][-1, 0] / 0.6 - 1.0) > 1e-3


def test_the_step_response_of_eq_4():
    law = connet(PRINTED, method="paper", limits=[(-1e6, 1e6)]).law
    assert isinstance(law, LqgLaw)
    printed = type(law)(
        **{name: getattr(law, name) for name in law.__struct_fields__}
        | {"L": np.array([[-0.1020, -0.1649], [0.1008, -0.6491]]), "K": np.array([[-15.7017, -9.3098]])}
    )
    outputs, _ = run(printed, PRINTED.state_space, [np.array([1.0, 0.7437])] * 51)
    assert outputs[[1, 5, 10, 50], 0] == pytest.approx([0.076495, 0.703358, 0.917502, 1.008215], abs=1e-6)


@pytest.mark.parametrize("track", ["delay", "jitter"])
def test_saturation_for_200_s_is_over_within_25_s(track):
    """A reference that can't be had, then one that can: within 2 % of the step 25 samples later."""
    law = connet(PRINTED, track=track, limits=[(0.0, 95.0)]).law
    high, low = np.array([5.0, 3.72]), np.array([1.0, 0.7437])
    outputs, applied = run(law, PRINTED.state_space, [low] * 100 + [high] * 200 + [low] * 100)
    column = law.outputs.index(track)
    assert (applied[110:300] == 95.0).mean() > 0.8
    stuck, desired = outputs[299, column], low[column]
    assert np.abs(outputs[325:, column] - desired).max() <= 0.02 * (stuck - desired)
    assert applied.min() >= 0.0


def test_a_start_from_a_given_input_is_without_a_bump():
    law = connet(PRINTED, track="delay", limits=[(0.0, 95.0)]).law
    gains = tracking_gains(law)
    state = start_tracking(gains, np.array([40.0]))
    assert state.applied == pytest.approx([40.0])
    assert -law.integral_gain @ state.integral + law.input_offset == pytest.approx([40.0])
    assert start_tracking(gains, np.array([400.0])).applied == pytest.approx([95.0])


def test_what_no_input_moves_is_refused():
    with pytest.raises(InvalidValue, match="move independently"):
        integral_regulator(PRINTED.state_space, np.eye(2))
    blind = StateSpace([[0.5]], [[1.0]], [[1.0]], [[-2.0]], 1.0)  # G(1) = 0
    with pytest.raises(InvalidValue, match="tracked"):
        integral_regulator(blind, [[1.0]])
