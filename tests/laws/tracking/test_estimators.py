"""Recursive least squares: the weighted ones of all samples, a jump that is followed, a bound that holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl import InvalidValue
from netctrl.laws.tracking.estimators import (
    correct_lms,
    energy,
    nlms_step,
    recursive_start,
    recursive_step,
    sgd_step,
    sgd_step_limit,
)


def data(count: int = 60):
    random = np.random.default_rng(0)
    phi = random.standard_normal((count, 3))
    return phi, phi @ random.standard_normal((3, 2)) + 0.1 * random.standard_normal((count, 2))


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_all_samples_at_once_give_the_same(forgetting) -> None:
    phi, y = data()
    known = recursive_start(np.zeros((3, 2)), doubt=1e10)
    for row, out in zip(phi, y, strict=True):
        known, _ = recursive_step(known, row, out, forgetting=forgetting, most=1e12)
    root = np.sqrt(forgetting ** np.arange(len(phi))[::-1])[:, None]
    assert known.theta == pytest.approx(np.linalg.lstsq(root * phi, root * y, rcond=None)[0], abs=1e-7)


def test_a_jump_is_followed_and_the_error_is_that_of_the_prediction() -> None:
    phi, _ = data(400)
    known = recursive_start([[1.0], [0.0], [0.0]])
    for t, row in enumerate(phi):
        before = known.theta
        known, error = recursive_step(known, row, row[0] * (1.0 if t < 200 else 3.0), forgetting=0.9)
        assert error == pytest.approx(row[0] * (1.0 if t < 200 else 3.0) - row @ before[:, 0])
    assert known.theta[:, 0] == pytest.approx([3.0, 0.0, 0.0], abs=1e-6)


def test_without_excitation_P_is_bounded() -> None:
    known = recursive_start(np.zeros((2, 1)), doubt=1.0)
    for _ in range(3000):
        known, _ = recursive_step(known, [1.0, 0.0], [1.0], forgetting=0.9, most=100.0)
    assert np.linalg.eigvalsh(known.P) == pytest.approx([0.1, 100.0], rel=1e-6)  # 1 - λ, and the bound
    assert known.theta[:, 0] == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"phi": [1.0]}, "phi"),
        ({"phi": [1.0, np.nan]}, "phi"),
        ({"phi": [1e300, 1e300]}, "phi"),
        ({"y": [1.0, 2.0]}, "y"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"forgetting": 1.1}, "forgetting"),
        ({"most": 0.0}, "most"),
    ],
)
def test_what_is_refused(change, argument) -> None:
    values = {"phi": [1.0, 0.0], "y": [1.0]} | change
    with np.errstate(all="ignore"), pytest.raises(InvalidValue) as refusal:
        recursive_step(recursive_start(np.zeros((2, 1))), **values)
    assert refusal.value.argument == argument


def test_what_is_known_is_a_record() -> None:
    with pytest.raises(InvalidValue, match="known: got 'int', takes a RecursiveEstimate"):
        recursive_step(1, [1.0], [1.0])
    with pytest.raises(InvalidValue, match="phi"):
        sgd_step_limit([10**400])


def test_gradient_steps_of_the_theory_note() -> None:
    """Note on pacing: p = 2, q = 1, alpha = .5: a = (.5, .5), b = .1 and (.5, .5, .4) telling .52 give (.495, .495,
    .096)."""
    theta, error = sgd_step([[0.5], [0.5], [0.1]], [0.5, 0.5, 0.4], [0.52])
    assert theta[:, 0] == pytest.approx([0.495, 0.495, 0.096], abs=1e-12)
    assert error == pytest.approx([-0.02], abs=1e-12)


@given(st.floats(0.01, 1.99), st.floats(1e-6, 1e6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_what_a_step_leaves_of_the_error(step, unit, k, seed) -> None:
    """1 - α of NLMS in any unit, 1 - α |φ|² of SGD."""
    random = np.random.default_rng(seed)
    phi, theta = unit * random.standard_normal(k), random.standard_normal((k, 2))
    y = phi @ random.standard_normal((k, 2))
    after, error = nlms_step(theta, phi, y, step=step)
    assert y - phi @ after == pytest.approx((1.0 - step) * error, abs=1e-9 * np.abs(y).max() + 1e-9 * unit)
    small = step / (phi @ phi)
    assert sgd_step(theta, phi, y, step=small)[0] == pytest.approx(after, rel=1e-9, abs=1e-9)
    assert sgd_step_limit(phi) * (phi @ phi) == pytest.approx(2.0)


def test_gradient_steps_find_what_least_squares_find() -> None:
    phi, _ = data(4000)
    truth = np.array([[1.0, -2.0], [0.5, 0.0], [3.0, 1.0]])
    sgd = nlms = np.zeros((3, 2))
    known = recursive_start(sgd)
    for row in phi:
        sgd, _ = sgd_step(sgd, row, row @ truth, step=0.05)
        nlms, _ = nlms_step(nlms, row, row @ truth)
        known, _ = recursive_step(known, row, row @ truth)
    for found in (sgd, nlms, known.theta):
        assert found == pytest.approx(truth, abs=1e-6)


def test_the_kernel_takes_the_same_step() -> None:
    phi, theta = np.array([0.3, -2.0, 5.0]), np.array([1.0, 2.0, 3.0])
    after, error = nlms_step(theta[:, None], phi, [0.7], step=0.4, least=0.1)
    values = np.concatenate([theta, phi])
    size = correct_lms(values, 0, 3, 3, 0.4 * error[0] / (0.1 + energy(values, 3, 3)))
    moved = values[:3]
    assert moved == pytest.approx(after[:, 0], rel=1e-12)
    assert size == pytest.approx(moved @ moved)


@pytest.mark.parametrize("unit_s", [1.0, 1e3], ids=["s and Gbit/s", "ms and Gbit/s"])
def test_the_printed_step_diverges_in_the_notes_units_and_the_normalised_one_does_not(unit_s) -> None:
    """Note on pacing: alpha = .5 needs |φ|² < 4; with 10 Gbit/s as 10 it is above 100, whatever the RTT's unit."""
    random = np.random.default_rng(3)
    rtt = unit_s * (4e-3 + 1e-4 * random.standard_normal(400))
    rate = 10.0 + 0.1 * random.standard_normal(400)
    sgd = nlms = np.array([[1.0], [0.0]])
    left = []
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, 100):
            phi = [rtt[t - 1], rate[t - 1]]
            assert sgd_step_limit(phi) < 0.5
            sgd, _ = sgd_step(sgd, phi, [rtt[t]])
            nlms, error = nlms_step(nlms, phi, [rtt[t]])
            left.append(abs(float(error[0])))
    assert not np.abs(sgd).max() <= 1e50
    assert np.abs(nlms).max() < 2.0
    assert np.mean(left[20:]) < 0.1 * unit_s * 4e-3


def test_without_regressors_nothing_is_learned() -> None:
    theta, error = nlms_step([[1.0], [2.0]], [0.0, 0.0], [3.0])
    assert theta[:, 0].tolist() == [1.0, 2.0]
    assert error.tolist() == [3.0]
    assert sgd_step_limit([0.0, 0.0]) == np.inf


@pytest.mark.parametrize(
    ("step", "change", "argument"),
    [
        (sgd_step, {"step": 0.0}, "step"),
        (sgd_step, {"phi": [np.inf, 0.0]}, "phi"),
        (nlms_step, {"step": 2.0}, "step"),
        (nlms_step, {"step": -0.5}, "step"),
        (nlms_step, {"least": -1.0}, "least"),
        (nlms_step, {"phi": [1.0]}, "phi"),
        (nlms_step, {"y": [np.nan]}, "y"),
        (nlms_step, {"theta": [[1.0]]}, "phi"),
        (nlms_step, {"phi": [1e200, 1.0]}, "phi"),
    ],
)
def test_gradient_steps_refuse(step, change, argument) -> None:
    values = {"theta": [[0.0], [0.0]], "phi": [1.0, 0.0], "y": [1.0]} | change
    with np.errstate(all="ignore"), pytest.raises(InvalidValue) as refusal:
        step(**values)
    assert refusal.value.argument == argument
