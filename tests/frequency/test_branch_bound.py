"""Branch and bound over cells: the least value stays in the cells until it is proved."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from netctrl.frequency.branch_bound import Cells, angle_cells, least


@pytest.mark.parametrize("lowest", [1e-3, 0.5])
def test_cells_never_lose_the_place_of_the_least_value(lowest: float) -> None:
    """Of |theta − 1| + |y − .3| + 1, whose slopes are 1, over angles and a second coordinate."""
    seen = []

    def discs(centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        seen.append(Cells(centre, half))
        value = np.abs(centre[:, 0] - 1.0) + np.abs(centre[:, 1] - 0.3) + 1.0
        return value.astype(complex), half, np.zeros_like(half)

    found = least(
        discs,
        lambda centre, radius, factor, cells: centre.real - radius,
        lambda cells: (np.inf, cells.centre[0]),
        angle_cells(lowest, [(0.0, 1.0)]),
        tolerance=1e-4,
        start=(1.0, np.array([1.0, 0.3])),
    )
    assert found.proved == pytest.approx(1.0 - 1e-4)
    assert len(seen) < 20
    for cells in seen:
        low, high = cells.centre - cells.half, cells.centre + cells.half
        assert ((low <= [1.0, 0.3]) & (high >= [1.0, 0.3])).all(axis=1).any()
        assert low.min() >= -1e-11
        assert high[:, 0].max() <= pi + 1e-11


def test_pieces_of_few_cells_cover_them() -> None:
    """While nothing is proved, as in the first rounds here, the cells have all the area of the first."""
    areas = []

    def discs(centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        areas.append(float((4.0 * half[:, 0] * half[:, 1]).sum()))
        return np.ones(len(centre), dtype=complex), half, np.zeros_like(half)

    least(
        discs,
        lambda centre, radius, factor, cells: np.where(radius > 1e-2, 0.0, 1.0),
        lambda cells: (np.inf, cells.centre[0]),
        angle_cells(0.1, [(0.0, 1.0)]),
        tolerance=1e-3,
        start=(1.0, np.zeros(2)),
    )
    assert len(areas) > 4
    np.testing.assert_allclose(areas[:6], pi - 0.1, rtol=1e-9)
