"""Functions over cells with bounds of slopes: the bounds hold at random points of random cells."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.plants.queues.mean_value import MeanValue, coordinate, mean_fall, mean_turn, unknown_phase

RNG = np.random.default_rng(7)
CENTRE = RNG.uniform(0.5, 3.0, (50, 3))
HALF = RNG.uniform(0.0, 0.4, (50, 3))


def cells(n: int) -> MeanValue:
    return coordinate(CENTRE, HALF, n)


@pytest.mark.parametrize(
    ("bounded", "plain"),
    [
        (lambda x, y, z: x * y + 3.0 * z - 1.0, lambda x, y, z: x * y + 3.0 * z - 1.0),
        (lambda x, y, z: (1j * x + y) / (z + 2.0), lambda x, y, z: (1j * x + y) / (z + 2.0)),
        (lambda x, y, z: 2.0 / (1j * x + 0.3) - y, lambda x, y, z: 2.0 / (1j * x + 0.3) - y),
        (lambda x, y, z: (x * y).turn() * (1.0 - z), lambda x, y, z: np.exp(-1j * x * y) * (1.0 - z)),
        (lambda x, y, z: (x - y).exp() * z.inverse(), lambda x, y, z: np.exp(x - y) / z),
    ],
)
def test_bounds_contain_the_function(bounded, plain) -> None:
    found = bounded(*map(cells, range(3)))
    points = CENTRE + HALF * RNG.uniform(-1.0, 1.0, (400, 50, 3))
    off = np.abs(plain(*np.moveaxis(points, -1, 0)) - found.value[:, 0])
    assert np.all(off <= found.radius[:, 0] * (1.0 + 1e-12) + 1e-14)
    assert np.median(off.max(axis=0) / np.maximum(found.radius[:, 0], 1e-300)) > 0.2  # and aren't idle


@pytest.mark.parametrize("far", [1e-4, 0.1, 1.0, 20.0])
def test_means_of_turns_are_integrals_whose_bounds_hold(far: float) -> None:
    x, y = cells(0) * far, cells(1)
    s = 1j * (x * y)
    mean = mean_turn(s, (x * y).turn())
    nodes, weights = np.polynomial.legendre.leggauss(300)
    v, weights = 0.5 * (1.0 + nodes), 0.5 * weights
    points = CENTRE + HALF * RNG.uniform(-1.0, 1.0, (60, 50, 3))
    turns = np.exp(-1j * far * (points[..., 0] * points[..., 1])[..., None] * v)
    for found, weight in ((mean, weights), (mean_fall(s, mean), 2.0 * weights * (1.0 - v))):
        off = np.abs(turns @ weight - found.value[:, 0])
        assert np.all(off <= found.radius[:, 0] * (1.0 + 1e-9) + 1e-10)
        assert np.median(off.max(axis=0) / np.maximum(found.radius[:, 0], 1e-300)) > (0.1 if far < 10.0 else 0.02)


def test_an_inverse_that_may_vanish_has_no_bound() -> None:
    with np.errstate(all="ignore"):
        found = coordinate(np.array([[1.0]]), np.array([[1.5]]), 0).inverse()
    assert not np.isfinite(found.radius).any()


def test_slopes_of_a_constant_coordinate_do_not_count() -> None:
    found = coordinate(np.array([[1.0, 2.0]]), np.array([[0.0, 0.1]]), 0).inverse()
    assert found.radius[0, 0] == 0.0


def test_an_unknown_phase_covers_all_phases() -> None:
    x = coordinate(np.array([[2.0, 0.0]]), np.array([[0.0, 1.0]]), 0)
    found = 1.0 / (x * 1j + 0.5 * (1.0 + unknown_phase(x, 1)))
    angles = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, 90))
    assert np.all(np.abs(1.0 / (2j + 0.5 * (1.0 + angles)) - found.value[0, 0]) <= found.radius[0, 0])
