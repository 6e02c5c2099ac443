"""Margins at many operating points without proof: at arrays of points, and over grids by following crossings.

Over a grid, all crossings of the negative axis are found at the corners of tiles of it. In a tile whose corners have
the same crossings, each point's deciding crossing is interpolated, and the response is evaluated there: with the
interpolated D = d ln L/d ln theta and ln(−L) = a + i b, the crossing is at a ln theta of −b/Im D more, and |L| there is
e^(a − b Re D/Im D). Where b is large, this is done again. Tiles whose corners differ are divided; single points are
looked at by `gain_factors`.
"""

from __future__ import annotations

from math import inf, log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.frequency.loop import illinois
from netctrl.frequency.sampled_stability import (
    _AT_ONCE,
    _CLOSE,
    _NARROWINGS,
    Crossings,
    PacedResponse,
    _angles,
    _crossings,
    _tabled,
    all_crossings,
    deciding,
    everywhere,
)

_WIDEST = log(1.25)
"""Of a tile, in logarithms of flows and round-trip times."""
_LARGEST, _SMALLEST = 32, 2
"""Points along a tile's side; of narrower tiles each point is looked at."""
_PIECES = 2
_STEP = 1e-5
"""Of ln theta, for difference quotients."""
_NEAR, _FAR = 0.01, 0.1
"""Angle from the axis [rad] and step of ln theta from which a crossing is found, and how far ln theta may move."""
_STEPS = 5
_APART = 0.4, 1.2
"""Of ln theta and of ln k, between the corners of a tile; crossings further apart are different ones."""
_TIE = 1.1
"""Ratio of interpolated gains up to which either may decide."""
_TILED = 200_000
"""Points of tiles in a block."""


class PointMargins(NamedTuple):
    """Margins at k points, (k,) each, from a grid of angles and without proof."""

    factor: np.ndarray
    """Gain margin as a factor, as of `gain_factors`."""
    reduction: np.ndarray
    """Factor by which the gain of a stable loop may fall; inf: to 0."""
    phase: np.ndarray
    """Least angle from the negative axis where |L| is 1 [rad]."""

    def over(self, factor: float, phase_rad: float) -> np.ndarray:
        """Logarithm of the margin over a rule, of the criterion that has least: at least 0 where the rule is kept."""
        gains = np.minimum(self.factor, self.reduction) / factor
        return np.log(np.minimum(gains, np.maximum(self.phase, 1e-9) / phase_rad))


def point_margins(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray, gain: ArrayLike = 1.0) -> PointMargins:
    """Gain and phase margins at arrays of points, from a coarse response and without proof.

    Parameters
    ----------
    response : PacedResponse
    flows, rtt, gain : array_like
        N, tau [s] and a factor of the response, broadcast to k points.
    """
    all_flows, all_rtt, all_gain = (np.array(a, dtype=float).ravel() for a in np.broadcast_arrays(flows, rtt, gain))
    found = []
    for start in range(0, all_flows.size, _TILED):
        flows, rtt, gain = (each[start : start + _TILED] for each in (all_flows, all_rtt, all_gain))
        known, angles = response.placed(flows, rtt, coarse=True), _angles(response, flows, rtt)
        values = everywhere(known, angles)
        table = _tabled(len(flows), _crossings(known, angles, values, _CLOSE))
        gains = table.gains / gain[:, None]
        factor = gains[np.arange(len(gains)), deciding(gains, table.changes)]
        with np.errstate(divide="ignore"):
            reduction = 1.0 / np.where(gains < 1.0, gains, 0.0).max(axis=-1)
        sizes = np.log(gain[:, None] * np.abs(values))
        least = np.full(len(flows), pi)
        # With an integrator |L| goes on to rise below the grid, as 1/theta.
        integrates = sizes[:, 0] - sizes[:, 1] > 0.5 * np.log(angles[:, 1] / angles[:, 0])
        if len(low := np.flatnonzero(integrates & (sizes[:, 0] < 0.0))):
            crossed = known.at(angles[low, 0] * np.exp(sizes[low, 0]), low)
            least[low] = np.abs(np.angle(-crossed))
        row, column = np.nonzero(np.signbit(sizes[:, 1:]) != np.signbit(sizes[:, :-1]))
        if len(row):
            a, b = (np.log(angles[row, column + i]) for i in (0, 1))
            at = known, row, gain[row]

            def off(u: np.ndarray, i: np.ndarray, at: tuple = at) -> tuple[np.ndarray, np.ndarray]:
                value = at[2][i] * at[0].at(np.exp(u), at[1][i])
                return np.log(np.abs(value)), value

            _, value = illinois(off, a, b, sizes[row, column], sizes[row, column + 1], _NARROWINGS, _CLOSE)
            np.minimum.at(least, row, np.abs(np.angle(-value)))
        found.append((factor, np.where(factor >= 1.0, reduction, inf), least))
    return PointMargins(*(np.concatenate(each) for each in zip(*found, strict=True)))


def gain_factors(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
    """Gain margins as factors at arrays of points: above 1 where the loop is stable, else the factor to reduce it by.

    Found on a grid of angles, without proof. Where the response is 0 throughout, so that the loop isn't valid there,
    inf.

    Parameters
    ----------
    response : PacedResponse
    flows, rtt : ndarray
        N and tau [s] at each point, broadcast.
    """
    flows, rtt = (np.asarray(a, dtype=float) for a in np.broadcast_arrays(flows, rtt))
    found = np.empty(flows.size)
    for start in range(0, flows.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        known = all_crossings(response, flows.ravel()[part], rtt.ravel()[part])
        decides = deciding(known.gains, known.changes)
        found[part] = known.gains[np.arange(len(decides)), decides]
    return found.reshape(flows.shape)


class _Grid(NamedTuple):
    response: PacedResponse
    flows: np.ndarray
    rtt: np.ndarray
    wanted: np.ndarray


class _Corners(NamedTuple):
    """What is interpolated in tiles, for their crossings in the order of angles and last that at z = −1."""

    ln_gain: np.ndarray
    """(tiles, 2, 2, P + 1); inf: none."""
    ln_angle: np.ndarray
    slope: np.ndarray
    """D."""
    changes: np.ndarray
    """Poles that leave, (tiles, P + 1)."""


def gain_grid(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Gain margins as factors, as `gain_factors` finds them, at points of a grid.

    Parameters
    ----------
    response : PacedResponse
    flows, rtt : ndarray, shapes (n,) and (m,)
        N and tau [s], sorted.
    wanted : ndarray of bool, shape (m, n)
        Points to be found.

    Returns
    -------
    ndarray, shape (m, n)
        inf where it isn't wanted.
    """
    grid, found = _Grid(response, flows, rtt, wanted), np.full(wanted.shape, inf)
    sides = tuple(_side(axis) for axis in (rtt, flows))
    tiles = _divided(grid, np.array([[0, len(rtt) - 1, 0, len(flows) - 1]]), sides)
    while min(sides) >= _SMALLEST and len(tiles):
        alike, corners = _corners(grid, tiles)
        size = max(1, _TILED // ((sides[0] + 1) * (sides[1] + 1)))
        for start in range(0, int(alike.sum()), size):
            part = slice(start, start + size)
            _follow(grid, found, tiles[alike][part], _Corners(*(a[part] for a in corners)), sides)
        sides = tuple(-(-side // _PIECES) for side in sides)
        tiles = _divided(grid, tiles[~alike], sides)
    left = np.zeros(wanted.shape, dtype=bool)
    for i, k, j, n in tiles:
        left[i : k + 1, j : n + 1] = True
    _look(grid, found, *np.nonzero(left & wanted & ~np.isfinite(found)))
    return found


def _side(axis: np.ndarray) -> int:
    """Points along a tile's side."""
    if len(axis) < 2:
        return 1
    return int(np.clip(_WIDEST * (len(axis) - 1) / log(axis[-1] / axis[0]), 1, _LARGEST))


def _divided(grid: _Grid, tiles: np.ndarray, sides: tuple[int, ...]) -> np.ndarray:
    """Tiles (first and last row, first and last column) cut into smaller ones with wanted points; they share edges."""
    cut = [
        (i, min(i + sides[0], k), j, min(j + sides[1], n))
        for first, k, left, n in tiles.tolist()
        for i in range(first, max(k, first + 1), sides[0])
        for j in range(left, max(n, left + 1), sides[1])
    ]
    kept = [(i, k, j, n) for i, k, j, n in cut if grid.wanted[i : k + 1, j : n + 1].any()]
    return np.array(kept, dtype=int).reshape(-1, 4)


def _corners(grid: _Grid, tiles: np.ndarray) -> tuple[np.ndarray, _Corners]:
    """Which tiles have the same crossings at all corners, as far as they decide, and those tiles' crossings."""
    i, j = tiles[:, [[0, 0], [1, 1]]], tiles[:, [[2, 3], [2, 3]]]
    nodes, place = np.unique(np.ravel(i * len(grid.flows) + j), return_inverse=True)
    place = place.reshape(i.shape)
    rows, columns = np.divmod(nodes, len(grid.flows))
    flows, rtt = grid.flows[columns], grid.rtt[rows]
    known = all_crossings(grid.response, flows, rtt)
    slopes = _slopes(grid.response, flows, rtt, known)
    gains, changes = known.gains[place], known.changes[place]
    # Beyond the deciding crossing, and those below a gain of 1, no crossing of a higher angle matters.
    order = np.arange(gains.shape[-1])
    matters = (order <= deciding(known.gains, known.changes)[place][..., None]) | (gains < 1.0)
    matters[..., :-1] = np.maximum.accumulate(matters[..., -2::-1], axis=-1)[..., ::-1]
    matters = np.any(matters, axis=(1, 2), keepdims=True)
    ln_angle, ln_gain = np.log(known.angles)[place], np.log(np.where(np.isfinite(gains) & matters, gains, 1.0))
    apart = [np.ptp(values, axis=(1, 2), keepdims=True) for values in (ln_angle, ln_gain)]
    near = (apart[0] <= _APART[0]) & (apart[1] <= _APART[1])
    same = (np.isfinite(gains) & (changes == changes[:, :1, :1]) & near) | ~matters
    alike = np.all(same, axis=(1, 2, 3)) & np.any(matters, axis=(1, 2, 3))
    ln_gain = np.where(matters, ln_gain, inf)
    return alike, _Corners(ln_gain[alike], ln_angle[alike], slopes[place][alike], changes[alike, 0, 0])


def _slopes(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray, known: Crossings) -> np.ndarray:
    """D at crossings, (k, P + 1)."""
    row, column = np.nonzero(np.isfinite(known.gains))
    at = [known.angles[row, column] * np.exp(shift) for shift in (-_STEP, _STEP)]
    placed = response.placed(flows, rtt, coarse=True)
    low, high = (placed.at(theta, row) for theta in at)
    slopes = np.zeros(known.gains.shape, dtype=complex)
    slopes[row, column] = np.log(high / low) / (2.0 * _STEP)
    return slopes


def _follow(grid: _Grid, found: np.ndarray, tiles: np.ndarray, corners: _Corners, sides: tuple[int, ...]) -> None:
    """Gain margins at all points of tiles, into `found`."""
    rows = np.minimum(tiles[:, :1] + np.arange(sides[0] + 1), tiles[:, 1:2])
    columns = np.minimum(tiles[:, 2:3] + np.arange(sides[1] + 1), tiles[:, 3:])
    weights = _shares(np.log(grid.rtt), rows), _shares(np.log(grid.flows), columns)

    def between(values: np.ndarray) -> np.ndarray:
        return np.einsum("tia,tab,tjb->tij", weights[0], values, weights[1], optimize=True)

    last = corners.changes.shape[-1] - 1
    with np.errstate(invalid="ignore"):
        gains = np.exp(np.stack([between(corners.ln_gain[..., p]) for p in range(last + 1)], axis=-1))
    gains[np.isnan(gains)] = inf
    changes = corners.changes[:, None, None, :]
    decided = np.take_along_axis(gains, deciding(gains, changes)[..., None], axis=-1)
    rows, columns = np.broadcast_arrays(rows[:, :, None], columns[:, None, :])
    wanted = grid.wanted[rows, columns] & np.isfinite(decided[..., 0])
    close = (gains < decided * _TIE) & (gains * _TIE > decided) & wanted[..., None]
    lost = np.zeros(rows.shape, dtype=bool)
    for p in np.flatnonzero(close.any(axis=(0, 1, 2))):
        at = close[..., p]
        ln_angle, slope = (between(a[..., p])[at] for a in (corners.ln_angle, corners.slope))
        place = grid.flows[columns[at]], grid.rtt[rows[at]]
        gains[at, p], missed = _refined(grid.response, *place, ln_angle, slope, end=p == last)
        lost[at] |= missed
    decided = np.take_along_axis(gains, deciding(gains, changes)[..., None], axis=-1)
    found[rows[wanted], columns[wanted]] = decided[wanted, 0]
    _look(grid, found, rows[lost], columns[lost])


def _shares(axis: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Weights of the first and the last of places on an axis at all of them, (tiles, places, 2)."""
    width = axis[places[:, -1:]] - axis[places[:, :1]]
    share = (axis[places] - axis[places[:, :1]]) / np.where(width == 0.0, 1.0, width)
    return np.stack([1.0 - share, share], axis=-1)


def _refined(
    response: PacedResponse, flows: np.ndarray, rtt: np.ndarray, ln_angle: np.ndarray, slope: np.ndarray, *, end: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Gains of crossings near given angles, (k,), and where none was found."""
    gains, now, left = np.empty(flows.shape), ln_angle.copy(), np.arange(len(flows))
    known = response.placed(flows, rtt, coarse=True)
    for _ in range(_STEPS):
        value = known.at(np.minimum(np.exp(now[left]), pi), left)
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.log(-value)
            step = np.zeros(left.shape) if end else -off.imag / slope.imag[left]
            gains[left] = np.exp(-(off.real + slope.real[left] * step))
        now[left] += step
        near = np.maximum(np.abs(off.imag), np.abs(step)) <= _NEAR
        left = left[~(near & (np.abs(now - ln_angle)[left] <= _FAR))]
    missed = np.zeros(flows.shape, dtype=bool)
    missed[left] = True
    return gains, missed


def _look(grid: _Grid, found: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
    """Gain margins at single points, into `found`."""
    found[rows, columns] = gain_factors(grid.response, grid.flows[columns], grid.rtt[rows])
