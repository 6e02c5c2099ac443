"""Models by likelihood, and the choice among ways to a model: against independent descents, truths and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.signal import lfilter

import netctrl
from netctrl.ident.descent.likelihood import by_likelihood, joined
from netctrl.ident.descent.output_error import directions, fit, output_normal
from netctrl.ident.search.choice import Validation, by_information, choose
from netctrl.ident.search.learner import Candidate, Learner
from netctrl.ident.validate import predicted

Segments = list[tuple[np.ndarray, np.ndarray]]


def armax(samples: int, seed: int, c: float = -0.5) -> Segments:
    """y_t = .8 y_{t-1} + u_{t-1} + e_t + c e_{t-1}."""
    random = np.random.default_rng(seed)
    u, e = random.standard_normal((2, samples))
    y = lfilter([0.0, 1.0], [1.0, -0.8], u) + lfilter([1.0, c], [1.0, -0.8], e)
    return [(u[:, None], y[:, None])]


def box_jenkins(samples: int, seed: int) -> Segments:
    """A plant and a noise with poles of their own: y = 1 / (q - .7) u + 1 / (1 - .95 / q) e, e of deviation .2."""
    random = np.random.default_rng(seed)
    u = random.standard_normal(samples)
    v = lfilter([1.0], [1.0, -0.95], 0.2 * random.standard_normal(samples))
    return [(u[:, None], (lfilter([0.0, 1.0], [1.0, -0.7], u) + v)[:, None])]


def test_the_greatest_likelihood_is_that_of_a_general_descent() -> None:
    """ARMAX(1, 1, 1) with an offset, by SciPy's simplex on the recursion e = (y - a y_1 - b u_1 - d) / (1 + c / q)."""
    segments = armax(400, 1)
    (u, y), *_ = segments
    found = by_likelihood(((np.eye(1) * 0.5, np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 1))), np.eye(1) * 0.1),
                          segments, feedthrough=False, enough=1e-10)  # fmt: skip
    assert found is not None

    def loss(theta: np.ndarray) -> float:
        a, b, c, offset, start = theta
        if abs(c) >= 1.0:
            return np.inf
        left = np.concatenate([[y[0, 0] - start], y[1:, 0] - a * y[:-1, 0] - b * u[:-1, 0] - offset])
        return float(np.mean(lfilter([1.0], [1.0, c], left) ** 2))

    other = minimize(loss, [0.5, 0.5, 0.0, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12,
                                                                                    "maxiter": 10_000})  # fmt: skip
    assert found.V[0, 0] == pytest.approx(other.fun, rel=1e-6)
    assert found.A[0, 0] == pytest.approx(other.x[0], abs=1e-4)
    assert (found.A - found.K @ found.C)[0, 0] == pytest.approx(-other.x[2], abs=1e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 100))
def test_other_units_of_the_outputs_give_the_same_model(seed) -> None:
    """log det V is the same but for the units' determinant, and the poles stay: the weights are V's own."""
    random = np.random.default_rng(seed)
    u, e = random.standard_normal((300, 1)), random.standard_normal((300, 2))
    x = lfilter([0.0, 1.0], [1.0, -0.8], u[:, 0])
    y = np.column_stack([x, 0.5 * x]) + e @ np.array([[0.3, 0.0], [0.2, 0.1]])
    T = np.eye(2) + 0.5 * random.standard_normal((2, 2))
    start = (np.eye(1) * 0.7, np.ones((1, 1)), np.array([[1.0], [0.5]]), np.zeros((2, 1)))
    K = np.array([[0.1, 0.1]])
    one = by_likelihood((start, K), [(u, y)], feedthrough=False, enough=1e-9)
    there = (*start[:2], T @ start[2], start[3])
    other = by_likelihood((there, K @ np.linalg.inv(T)), [(u, y @ T.T)], feedthrough=False, enough=1e-9)
    assert one is not None and other is not None
    assert other.loss == pytest.approx(one.loss + 2.0 * np.log(abs(np.linalg.det(T))), abs=2e-3)
    assert other.A[0, 0] == pytest.approx(one.A[0, 0], abs=0.02)


@given(st.integers(0, 1000))
def test_directions_are_all_that_outputs_tell(seed) -> None:
    """With the n² changes of coordinates, T A - A T and C T, they span all changes of A and C."""
    random = np.random.default_rng(seed)
    n, p = int(random.integers(1, 5)), int(random.integers(1, 4))
    A = random.standard_normal((n, n))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    u, C = random.standard_normal((40, 1)), random.standard_normal((p, n))
    at = output_normal(fit(A, C, [(u, random.standard_normal((40, p)))], 0))
    assert pytest.approx(np.eye(n), abs=1e-6) == at.A.T @ at.A + at.C.T @ at.C
    moves = []
    for k in range(n * n):
        T = np.zeros(n * n)
        T[k] = 1.0
        T = T.reshape(n, n)
        moves.append(np.concatenate([(at.A @ T - T @ at.A).ravel(), (at.C @ T).ravel()]))
    s = np.linalg.svd(np.column_stack([directions(at.A, at.C), *moves]), compute_uv=False)
    assert len(s) == n * n + p * n
    assert s[-1] > 1e-9 * s[0]


def test_noise_states_leave_the_simulation_as_it_is() -> None:
    segments = box_jenkins(2000, 3)
    learner = Learner(segments, 20, False)
    alone, both = (learner.model(Candidate("cva", 1, "simulation", noise=noise)) for noise in (None, 1))
    assert alone is not None and both is not None
    for t in range(5):
        now = [each.C @ np.linalg.matrix_power(each.A, t) @ each.B for each in (alone, both)]
        assert now[0] == pytest.approx(now[1], abs=1e-12)
    left = (
        segments[0][1]
        - both.offset
        - predicted(both.matrices, both.K, [(segments[0][0], segments[0][1] - both.offset)])
    )
    assert left.var() == pytest.approx(0.04, rel=0.1)
    poles = np.sort(np.linalg.eigvals(both.A).real)
    assert poles == pytest.approx([0.7, 0.95], abs=0.03)


def test_noise_states_stand_beside_the_models() -> None:
    segments = box_jenkins(300, 3)
    G = Learner(segments, 10, False).model(Candidate("cva", 1))
    H = Learner(segments, 10, False).model(Candidate("pbsid", 1, "likelihood"))
    assert G is not None and H is not None
    both = joined(G.matrices, G.offset, H)
    assert not both.K[:1].any() and not both.B[1:].any()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_chosen_predicts_as_well_as_the_truth_where_it_was_not_made(seed) -> None:
    """Variance one sample ahead on another record, over that of the noise drawn; few states, as there are few."""
    for record, states in ((armax, 3), (box_jenkins, 4)):
        (u, y), *_ = record(1200, seed)
        found = netctrl.identify(u[:600], y[:600], interval_s=1.0, held_out=netctrl.SignalTrace(
            interval_s=1.0, input_values=u[600:], output_values=y[600:]))  # fmt: skip
        assert found.held_out_predicted_vaf is not None
        noise = 1.0 if record is armax else 0.04
        assert (1.0 - found.held_out_predicted_vaf[0] / 100.0) * y[600:].var() < 1.15 * noise
        assert found.how.order <= states


def test_alternatives_are_told_with_the_chosen_one_among_them() -> None:
    (u, y), *_ = box_jenkins(600, 1)
    found = netctrl.identify(u, y, interval_s=1.0)
    assert [each.predicted for each in found.alternatives] == sorted(
        (each.predicted for each in found.alternatives), reverse=True
    )
    chosen = [each for each in found.alternatives if each.name == found.how.method and each.states == found.how.order]
    assert found.how.left_out_vaf is not None
    assert any(each.simulated == pytest.approx(found.how.left_out_vaf.mean()) for each in chosen)
    assert "of stretches left out" in found.verdict


def test_focus_is_what_is_compared() -> None:
    """Of a record with slow noise: the best simulation, the best prediction, and a prediction that keeps the former."""
    segments = box_jenkins(1200, 5)
    validation = Validation.of(segments, 15, False)
    by = {focus: choose(validation, 8, focus) for focus in ("simulation", "prediction", "both")}
    assert by["prediction"].prediction <= 1.03 * min(each.prediction for each in by.values())
    assert by["simulation"].simulation <= by["prediction"].simulation * 1.03
    assert by["both"].simulation <= by["simulation"].simulation + 0.025
    assert by["both"].prediction < 0.8 * by["both"].simulation


def test_an_unstable_plant_that_a_controller_holds_is_found_as_such() -> None:
    """x₊ = 1.05 x + u, u = r - .3 y: the only other case with feedback in the hard data is stable."""
    random = np.random.default_rng(1)
    x, u, y = 0.0, np.empty(1500), np.empty(1500)
    for t in range(1500):
        y[t] = x + random.standard_normal()
        u[t] = 0.5 * random.standard_normal() - 0.3 * y[t]
        x = 1.05 * x + u[t]
    found = netctrl.identify(u, y, interval_s=1.0)
    assert found.poles[0].real == pytest.approx(1.05, abs=0.01)
    assert found.how.feedback and not found.how.biased
    assert np.abs(netctrl.identify(u, y, interval_s=1.0, stable=True).poles).max() < 1.0


def test_the_criterion_takes_the_order_of_the_plant_and_its_noise() -> None:
    """Order 2: with one state the noise's pole would pull the plant's."""
    learner = Learner(box_jenkins(3000, 2), 10, False)
    candidate = by_information(learner, 6)
    assert candidate is not None and candidate.order == 2
