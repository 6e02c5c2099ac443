"""Margins of a loop from discs that provably contain its response, so they hold between all points too.

A loop is given as a function from cells (boxes of angle and parameters) to discs: centres, and radii split by
coordinate. `least` finds the least value of an objective over all cells by branch and bound: a cell whose disc rules
out anything below the best value found is dropped, any other is split along the coordinate that widens its disc most.
The result is an attained value and a proved lower bound within the requested tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, pi
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError

MAX_CELLS = 400_000
MAX_ROUNDS = 120
_STUCK, _BLUR = 0.95, 1e-7
"""A disc smaller than _BLUR of its centre that keeps more than _STUCK of its size when halved is rounding error."""
_ATTEMPT = 4
"""Rounds between attempts at a better value: an attempt costs as much as hundreds of cells."""
_RATIO = 1.2
"""Of neighbouring edges of the angle to begin with."""
_FULL, _PIECES = 256, 16
"""Cells of a round that takes hardly longer than one of a few; so few are split into up to so many pieces."""


class Cells(NamedTuple):
    """Boxes: centres and half widths, both of shape (k, coordinates); the first coordinate is the angle [rad]."""

    centre: np.ndarray
    half: np.ndarray


class Cover(NamedTuple):
    """Cells that cover a domain, with their discs, (k,), (k, n) and (k, n) as of `Discs`."""

    cells: Cells
    centre: np.ndarray
    parts: np.ndarray
    stretch: np.ndarray

    def rows(self, chosen: np.ndarray) -> Cover:
        """Some of the cells."""
        return Cover(Cells(*(each[chosen] for each in self.cells)), *(each[chosen] for each in self[1:]))

    @classmethod
    def of(cls, parts: Sequence[Cover]) -> Cover:
        """All of several parts' cells."""
        cells, *discs = zip(*parts, strict=True)
        return cls(Cells(*map(np.concatenate, zip(*cells, strict=True))), *map(np.concatenate, discs))


class Minimum(NamedTuple):
    """Minimum with a proved lower bound and an attained value."""

    proved: float
    """Nothing in the box is below this."""
    found: float
    """Attained at `where`."""
    where: np.ndarray
    """Coordinates of `found`."""
    cells: int
    """How many cells were bounded."""


Discs = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Centres and half widths of cells to complex centres of discs, shape (k,), shares of the radii, (k, n), and shares of
a logarithm, (k, n): the response is a point of the disc times a real factor within e^± of their sum."""
Bound = Callable[[np.ndarray, np.ndarray, np.ndarray, Cells], np.ndarray]
"""Centres and radii of discs, real factors (at least 1), and cells, to a lower bound of the objective in each."""
Attain = Callable[[Cells], tuple[float, np.ndarray]]
"""A few cells to a value attained in or near them, and its place; inf where there is none."""


class Objective(NamedTuple):
    """What is to be minimised over cells."""

    bound: Bound
    attain: Attain
    tolerance: float
    """Relative gap between the proved bound and the attained value."""
    start: tuple[float, np.ndarray]
    """An attained value and its place; inf where none is known."""


class _Discs(NamedTuple):
    """Discs of the cells of a round."""

    cells: Cells
    centre: np.ndarray
    radius: np.ndarray
    factor: np.ndarray
    known: np.ndarray
    """Whether the disc is bounded."""
    stuck: np.ndarray
    """Whether it is rounding error."""


class _Search:
    """Minimum of one objective in the making."""

    def __init__(self, objective: Objective, cells: int) -> None:
        self.objective = objective
        self.found, self.where = objective.start
        self.pending = np.ones(cells, dtype=bool)
        """Which cells of the next round it asks for."""
        self.cells, self.blurred, self.open = 0, inf, -inf

    def look(self, discs: _Discs, *, attempt: bool, known: bool) -> None:
        """Leaves those cells pending in which the objective may be less than the best value found; cells whose discs
        were known before don't count."""
        if not self.pending.any():
            return
        bound, attain, tolerance, _ = self.objective
        self.cells += 0 if known else int(self.pending.sum())
        # A cell without a bound yet may contain any value.
        lower = np.where(discs.known, bound(discs.centre, discs.radius, discs.factor, discs.cells), -inf)
        lower = np.where(self.pending, lower, inf)
        lowest = int(np.argmin(lower))
        if attempt and lower[lowest] < self.found:
            value, at = attain(Cells(*(each[lowest : lowest + 1] for each in discs.cells)))
            if value < self.found:
                self.found, self.where = value, at
        left = lower < self.found * (1.0 - tolerance)
        stuck = left & discs.stuck
        self.blurred = min(self.blurred, lower[stuck].min(initial=inf))
        left &= ~stuck
        self.open = lower[left].min(initial=inf)
        self.pending = left & (self.cells <= MAX_CELLS)

    def minimum(self) -> Minimum:
        proved = min(self.found * (1.0 - self.objective.tolerance), self.blurred, self.open)
        return Minimum(proved, self.found, self.where, self.cells)


def least(
    discs: Discs,
    bound: Bound,
    attain: Attain,
    cells: Cells | Cover,
    *,
    tolerance: float,
    start: tuple[float, np.ndarray],
    loosest: float | None = None,
    leaves: list[Cover] | None = None,
) -> Minimum:
    """Minimum of an objective over `cells`, by branch and bound.

    Parameters
    ----------
    discs, bound, attain : callable
        Of the types defined above.
    cells : Cells or Cover
        They cover the whole domain.
    tolerance : float
        Relative gap between the proved bound and the attained value.
    start : (float, ndarray)
        An attained value and its place; inf where none is known.
    loosest : float, optional
        Gap accepted where MAX_CELLS cells or rounding errors prevent a smaller one; `tolerance` by default.
    leaves : list of Cover, optional
        Takes parts of a cover by cells that were not split, to begin another question with.

    Raises
    ------
    NetctrlError
        No decision within the limits on cells and rounds.
    """
    (found,) = least_each(discs, [Objective(bound, attain, tolerance, start)], cells, leaves)
    return decided(found, tolerance if loosest is None else loosest)


def least_each(
    discs: Discs, objectives: Sequence[Objective], cells: Cells | Cover, leaves: list[Cover] | None = None
) -> list[Minimum]:
    """Minima of several objectives over the same `cells`, which share their discs; each as of `least`.

    What is proved may be less than the tolerance asks for, or nothing (−inf): see `decided`.

    Parameters
    ----------
    discs : callable
    objectives : sequence of Objective
    cells : Cells or Cover
        They cover the whole domain.
    leaves : list of Cover, optional
        As of `least`.
    """
    known = isinstance(cells, Cover)
    cover = cells if isinstance(cells, Cover) else Cover(cells, *discs(*cells))
    searches = [_Search(objective, len(cover.centre)) for objective in objectives]
    widest = np.full(len(cover.centre), inf)
    for turn in range(1, MAX_ROUNDS + 1):
        some, centre, parts, stretch = cover
        radius, factor = parts.sum(axis=1), np.exp(stretch.sum(axis=1))
        # The split share is at least a quarter of a disc's size, unless rounding dominates.
        shares = parts + stretch * np.abs(centre)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # a response of 0 touches nothing
            size = shares.sum(axis=1) / np.abs(centre)
        bounded = np.isfinite(radius) & np.isfinite(centre)
        found = _Discs(some, centre, radius, factor, bounded, (size < _BLUR) & (size > _STUCK * widest))
        for each in searches:
            each.look(found, attempt=turn % _ATTEMPT == 0, known=known and turn == 1)
        left = np.logical_or.reduce([each.pending for each in searches])
        if leaves is not None:
            leaves.append(cover.rows(~left))
        if not left.any():
            break
        pieces = max(2, min(_PIECES, _FULL // int(left.sum())))
        some = _split(Cells(some.centre[left], some.half[left]), shares[left], pieces)
        cover = Cover(some, *discs(*some))
        widest = np.tile(size[left], pieces)
        for each in searches:
            each.pending = np.tile(each.pending[left], pieces)
    else:
        raise NetctrlError(f"no decision on the margin after {MAX_ROUNDS} divisions")
    return [each.minimum() for each in searches]


def decided(found: Minimum, loosest: float) -> Minimum:
    """A minimum that is proved up to a relative gap; NetctrlError for any other."""
    if found.proved < found.found * (1.0 - loosest):
        raise NetctrlError(
            f"no decision on the margin after {found.cells} cells: the loop stays close to the limit over a wide "
            "range of frequencies or of the box; narrow the box, or take fewer packets in a window"
        )
    return found


def _split(cells: Cells, parts: np.ndarray, pieces: int) -> Cells:
    # Without a bound yet: the coordinate that is widest relative to its own scale.
    scale = np.maximum(cells.half[:, :1] / cells.centre[:, :1], 1e-300)
    widths = np.concatenate([scale, cells.half[:, 1:]], axis=1)
    shares = np.where(np.isfinite(parts).all(axis=1, keepdims=True), parts, widths)
    rows, along = np.arange(len(shares)), np.argmax(shares, axis=1)
    step, half = np.zeros_like(cells.half), cells.half.copy()
    step[rows, along] = cells.half[rows, along] / pieces
    # Neighbouring pieces must share their edges, despite rounding.
    half[rows, along] = step[rows, along] + 2.0 * np.spacing(np.abs(cells.centre[rows, along]))
    centres = [cells.centre + i * step for i in range(1 - pieces, pieces, 2)]
    return Cells(np.concatenate(centres), np.tile(half, (pieces, 1)))


def angle_cells(lowest: float, others: list[tuple[float, float]]) -> Cells:
    """Cells over angles from `lowest` to pi, in geometric steps, times one interval for each other coordinate.

    Parameters
    ----------
    lowest : float
        Least angle, above 0 [rad].
    others : list of (float, float)
        Intervals of the other coordinates.
    """
    steps = max(2, int(np.ceil(np.log(pi / lowest) / np.log(_RATIO))))
    edges = np.geomspace(lowest, pi, steps + 1)
    centre = np.empty((steps, 1 + len(others)))
    half = np.empty_like(centre)
    centre[:, 0], half[:, 0] = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1:] - edges[:-1])
    for i, (low, high) in enumerate(others, start=1):
        centre[:, i], half[:, i] = 0.5 * (low + high), 0.5 * (high - low)
    # Neighbouring cells must share their edges, despite rounding.
    return Cells(centre, half * (1.0 + 1e-12))


@dataclass(frozen=True, slots=True)
class Sector:
    """Region that a loop gain must avoid: −1 with a margin in gain, or rotated by a margin in phase.

    Parameters
    ----------
    gain : float
        The loop may be multiplied by up to 1/gain: it crosses the negative axis between −gain and 0; 1 for stability.
    phase : float
        Least angle from the negative axis at |L| = 1 [rad]; 0 for stability.
    """

    gain: float = 1.0
    phase: float = 0.0

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """Angle from the negative axis [rad] and size at which k L first meets the axis and the ends of the arc."""
        arc = ((self.phase, 1.0), (-self.phase, 1.0)) if self.phase > 0.0 else ()
        return ((0.0, self.gain), *arc)


def gain_bound(sector: Sector, floor: float = 0.0) -> Bound:
    """Lower bound of the factor k, from `floor` on, at which k L meets the sector, for a loop outside of it there."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        size, off = _polar(centre, radius)
        furthest = factor * (size + radius)
        with np.errstate(divide="ignore"):
            axis = np.where(off <= 0.0, sector.gain / furthest, inf)
            arc = np.where(off <= sector.phase, 1.0 / furthest, inf) if sector.phase > 0.0 else inf
        met = np.minimum(axis, arc)
        if floor == 0.0:
            return met
        reached = floor * (size - radius) <= factor  # else the disc meets the axis only at lower factors
        return np.where(reached, np.maximum(met, floor), inf)

    return bound


def reduction_bound(ceiling: float) -> Bound:
    """Lower bound of 1/k over the factors k up to `ceiling` at which k L is −1."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        size, off = _polar(centre, radius)
        reached = (off <= 0.0) & (ceiling * factor * (size + radius) >= 1.0)
        return np.where(reached, np.maximum((size - radius) / factor, 1.0 / ceiling), inf)

    return bound


def phase_bound(gain: float) -> Bound:
    """Lower bound of the angle between gain · L and the negative axis where |gain · L| = 1 [rad]."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        size, off = _polar(centre, radius)
        meets = (gain * (size - radius) <= factor) & (gain * (size + radius) * factor >= 1.0)
        return np.where(meets, np.maximum(off, 0.0), inf)

    return bound


def disk_bound(gain: float) -> Bound:
    """Lower bound of 2 |1 + L|/|1 − L|, the disk margin 2/‖S − T‖∞."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        L, rho = gain * centre, gain * _stretched(centre, radius, factor)
        with np.errstate(invalid="ignore"):
            ratio = 2.0 * np.maximum(np.abs(1.0 + L) - rho, 0.0) / (np.abs(1.0 - L) + rho)
        return np.where(np.isfinite(rho), ratio, 0.0)

    return bound


def touch_bound(gain: float, coordinate: int) -> Bound:
    """Lower bound of a coordinate's value at which gain · L is −1."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        meets = np.abs(1.0 + gain * centre) <= gain * _stretched(centre, radius, factor)
        return np.where(meets, cells.centre[:, coordinate] - cells.half[:, coordinate], inf)

    return bound


def _stretched(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Radius of the disc that contains all multiples."""
    return factor * radius + (factor - 1.0) * np.abs(centre)


def _polar(centre: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Modulus of the centres, and the least angle of a disc from the negative axis (below 0: it meets the axis)."""
    size = np.abs(centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(radius < size, np.arcsin(np.minimum(radius / size, 1.0)), pi)
    return size, np.abs(np.angle(-centre)) - spread
