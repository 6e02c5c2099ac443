"""Branch and bound over cells: the least value stays in the cells until it is proved."""

from __future__ import annotations

from math import inf, pi

import numpy as np
import pytest

from netctrl.core.errors import NetctrlError
from netctrl.frequency import branch_bound
from netctrl.frequency.branch_bound import Cells, Cover, Objective, angle_cells, decided, least, least_each


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


def hills(centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Discs of |theta − 1| + |y − .3| + 1, whose slopes are 1."""
    value = np.abs(centre[:, 0] - 1.0) + np.abs(centre[:, 1] - 0.3) + 1.0
    return value.astype(complex), half, np.zeros_like(half)


def objective(share: float, tolerance: float) -> Objective:
    """That function and `share` of the second coordinate, whose least value is at its knee for a share below 1."""
    return Objective(
        lambda centre, radius, factor, cells: centre.real - radius + share * (cells.centre[:, 1] - cells.half[:, 1]),
        lambda cells: (inf, cells.centre[0]),
        tolerance,
        (1.0 + 0.3 * share, np.array([1.0, 0.3])),
    )


def test_objectives_that_share_their_discs_are_each_proved() -> None:
    first, second = objective(0.0, 1e-2), objective(0.5, 1e-4)
    cells = angle_cells(0.1, [(0.0, 1.0)])
    both = least_each(hills, [first, second], cells)
    for found, asked in zip(both, (first, second), strict=True):
        bound, attain, tolerance, start = asked
        alone = least(hills, bound, attain, cells, tolerance=tolerance, start=start)
        assert found.proved == pytest.approx(alone.proved) == pytest.approx(start[0] * (1.0 - tolerance))
        assert found.found == start[0]
    assert both[0].cells < both[1].cells


def test_an_objective_that_starts_too_high_is_not_decided_by_what_another_proves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing at or above 1.2 is proved of a function that falls to 1, where another one is."""
    monkeypatch.setattr(branch_bound, "MAX_CELLS", 3000)
    bound, attain, tolerance, _ = objective(0.0, 1e-3)
    high = Objective(bound, attain, tolerance, (1.2, np.zeros(2)))
    decided_one, other = least_each(hills, [objective(0.5, 1e-3), high], angle_cells(0.1, [(0.0, 1.0)]), leaves := [])
    assert decided(decided_one, 1e-3).proved == pytest.approx(1.15, rel=1e-3)
    assert other.proved <= 1.0 + 1e-9
    with pytest.raises(NetctrlError, match="no decision"):
        decided(other, 1e-2)
    assert leaves


def test_a_cover_is_where_another_question_begins() -> None:
    cells, leaves = angle_cells(0.1, [(0.0, 1.0)]), []
    bound, attain, tolerance, start = objective(0.0, 1e-4)
    least(hills, bound, attain, cells, tolerance=tolerance, start=start, leaves=leaves)
    cover = Cover.of(leaves)
    area = 4.0 * cover.cells.half[:, 0] * cover.cells.half[:, 1]
    assert area.sum() == pytest.approx(pi - 0.1)
    np.testing.assert_array_equal(hills(*cover.cells)[0], cover.centre)
    again = least(hills, bound, attain, cover, tolerance=2.0 * tolerance, start=start)
    assert again.proved == pytest.approx(1.0 - 2.0 * tolerance)
    assert again.cells == 0  # all is decided by discs that were known
