"""Margins of a loop from discs that are proved to hold its response: what they state holds between all points too.

A loop is given as a function from cells (boxes of angle and parameters) to discs: centres, and radii split by
coordinate. `least` finds the least value of an objective over all cells by branch and bound: a cell whose disc rules
out anything below the best value found is dropped, any other is halved along the coordinate that widens its disc most.
What remains is a value that is attained and a bound, as close below it as asked for, that is proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, pi
from typing import NamedTuple

import numpy as np

from netctrl.errors import NetctrlError

__all__ = [
    "Cells",
    "Minimum",
    "Sector",
    "angle_cells",
    "disk_bound",
    "gain_bound",
    "least",
    "phase_bound",
    "touch_bound",
]

MAX_CELLS = 400_000
MAX_ROUNDS = 120
_STUCK, _BLUR = 0.95, 1e-7
"""A disc of less than _BLUR of its centre that keeps more than _STUCK of its size when halved is all rounding."""
_ATTEMPT = 4
"""Rounds from one attempt at a better value to the next: an attempt costs as much as hundreds of cells."""


class Cells(NamedTuple):
    """Boxes: centres and half widths, both of shape (k, coordinates); the first coordinate is the angle [rad]."""

    centre: np.ndarray
    half: np.ndarray


class Minimum(NamedTuple):
    """A minimum between what is proved and what is attained."""

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
"""A few cells to a value that is attained in or near them, and where; inf where there is none."""


def least(
    discs: Discs,
    bound: Bound,
    attain: Attain,
    cells: Cells,
    *,
    tolerance: float,
    start: tuple[float, np.ndarray],
    loosest: float | None = None,
) -> Minimum:
    """The least value of an objective over `cells`, by branch and bound.

    Parameters
    ----------
    discs, bound, attain : callable
        See their types above.
    cells : Cells
        They cover what is asked about.
    tolerance : float
        Relative gap between what is proved and what is attained.
    start : (float, ndarray)
        A value that is attained, and where; inf where none is known.
    loosest : float, optional
        Gap that will do where no more than MAX_CELLS cells, or rounding, leave it; `tolerance` by default.

    Raises
    ------
    NetctrlError
        It isn't decided within the bounds on cells and rounds.
    """
    found, where = start
    bounded, widest, blurred = 0, np.full(len(cells.centre), inf), inf
    for turn in range(1, MAX_ROUNDS + 1):
        centre, parts, stretch = discs(cells.centre, cells.half)
        bounded += len(centre)
        radius, factor = parts.sum(axis=1), np.exp(stretch.sum(axis=1))
        # What can't be bounded yet may hold anything.
        lower = np.where(np.isfinite(radius) & np.isfinite(centre), bound(centre, radius, factor, cells), -inf)
        if turn % _ATTEMPT == 0:
            lowest = int(np.argmin(lower))
            value, at = attain(Cells(cells.centre[lowest : lowest + 1], cells.half[lowest : lowest + 1]))
            if value < found:
                found, where = value, at
        left = lower < found * (1.0 - tolerance)
        # The share that is halved is a quarter of a disc's size at least, unless rounding is most of it.
        shares = parts + stretch * np.abs(centre)[:, None]
        size = shares.sum(axis=1) / np.abs(centre)
        stuck = left & (size < _BLUR) & (size > _STUCK * widest)
        blurred = min(blurred, lower[stuck].min(initial=inf))
        left &= ~stuck
        if not left.any() or bounded > MAX_CELLS:
            proved = min(found * (1.0 - tolerance), blurred, lower[left].min(initial=inf))
            if proved < found * (1.0 - (tolerance if loosest is None else loosest)):
                break
            return Minimum(proved, found, where, bounded)
        cells, widest = _halved(Cells(cells.centre[left], cells.half[left]), shares[left]), np.tile(size[left], 2)
    raise NetctrlError(
        f"the margin isn't decided after {bounded} cells: the loop runs along the edge of what is allowed over a wide "
        "range of frequencies or of the box; narrow the box, or take fewer packets in a window"
    )


def _halved(cells: Cells, parts: np.ndarray) -> Cells:
    # Where nothing is known yet, the coordinate that is widest for its own scale.
    scale = np.maximum(cells.half[:, :1] / cells.centre[:, :1], 1e-300)
    widths = np.concatenate([scale, cells.half[:, 1:]], axis=1)
    shares = np.where(np.isfinite(parts).all(axis=1, keepdims=True), parts, widths)
    along = np.argmax(shares, axis=1)
    rows = np.arange(len(along))
    half = cells.half.copy()
    half[rows, along] *= 0.5
    step = np.zeros_like(half)
    step[rows, along] = half[rows, along]
    return Cells(np.concatenate([cells.centre - step, cells.centre + step]), np.concatenate([half, half]))


def angle_cells(lowest: float, others: list[tuple[float, float]], ratio: float = 1.2) -> Cells:
    """Cells over angles from `lowest` to pi, in geometric steps, times one interval for each other coordinate."""
    steps = max(2, int(np.ceil(np.log(pi / lowest) / np.log(ratio))))
    edges = np.geomspace(lowest, pi, steps + 1)
    centre = np.empty((steps, 1 + len(others)))
    half = np.empty_like(centre)
    centre[:, 0], half[:, 0] = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1:] - edges[:-1])
    for i, (low, high) in enumerate(others, start=1):
        centre[:, i], half[:, i] = 0.5 * (low + high), 0.5 * (high - low)
    # A cell's edges must not fall apart by rounding.
    return Cells(centre, half * (1.0 + 1e-12))


@dataclass(frozen=True, slots=True)
class Sector:
    """What a loop gain must stay away from: −1 with some of the gain, or turned by some of the phase.

    Parameters
    ----------
    gain : float
        The loop may be multiplied by up to 1/gain, so it crosses the negative axis nearer than −gain; 1 for stability.
    phase : float
        It crosses |L| = 1 at least so far from the negative axis [rad]; 0 for stability.
    """

    gain: float = 1.0
    phase: float = 0.0

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """(angle from the negative axis [rad], size) of what k L meets first: the axis, and the ends of the arc."""
        arc = ((self.phase, 1.0), (-self.phase, 1.0)) if self.phase > 0.0 else ()
        return ((0.0, self.gain), *arc)


def gain_bound(sector: Sector) -> Bound:
    """Least factor k at which k L meets the sector, for a loop that starts outside of it at k = 0."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        size, off = _polar(centre, radius)
        furthest = factor * (size + radius)
        with np.errstate(divide="ignore"):
            axis = np.where(off <= 0.0, sector.gain / furthest, inf)
            arc = np.where(off <= sector.phase, 1.0 / furthest, inf) if sector.phase > 0.0 else inf
        return np.minimum(axis, arc)

    return bound


def phase_bound(gain: float) -> Bound:
    """Least angle between gain · L and the negative axis where |gain · L| = 1 [rad]."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        size, off = _polar(centre, radius)
        meets = (gain * (size - radius) <= factor) & (gain * (size + radius) * factor >= 1.0)
        return np.where(meets, np.maximum(off, 0.0), inf)

    return bound


def disk_bound(gain: float) -> Bound:
    """Least 2 |1 + L|/|1 − L|: the disk margin, 2/‖S − T‖∞."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        L, rho = gain * centre, gain * _stretched(centre, radius, factor)
        with np.errstate(invalid="ignore"):
            ratio = 2.0 * np.maximum(np.abs(1.0 + L) - rho, 0.0) / (np.abs(1.0 - L) + rho)
        return np.where(np.isfinite(rho), ratio, 0.0)

    return bound


def touch_bound(gain: float, coordinate: int) -> Bound:
    """Least value of a coordinate at which gain · L is −1 somewhere."""

    def bound(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray, cells: Cells) -> np.ndarray:
        meets = np.abs(1.0 + gain * centre) <= gain * _stretched(centre, radius, factor)
        return np.where(meets, cells.centre[:, coordinate] - cells.half[:, coordinate], inf)

    return bound


def _stretched(centre: np.ndarray, radius: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Radius of the disc that holds all multiples."""
    return factor * radius + (factor - 1.0) * np.abs(centre)


def _polar(centre: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Modulus of the centres, and the least angle of a disc from the negative axis (below 0: it meets the axis)."""
    size = np.abs(centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(radius < size, np.arcsin(np.minimum(radius / size, 1.0)), pi)
    return size, np.abs(np.angle(-centre)) - spread
