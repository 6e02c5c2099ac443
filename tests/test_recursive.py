"""Recursive least squares: the weighted ones of all samples, a jump that is followed, a bound that holds."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl import InvalidValue
from netctrl.ident.recursive import recursive_start, recursive_step


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
