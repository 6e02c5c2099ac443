"""Stability of sampled loops that may be stable at one gain and not at a lower one: at points, and over boxes.

The open loop has one pole at z = 1 and none outside the unit circle. As the gain k grows from 0, the closed loop's
poles leave or enter the unit circle where k L passes through −1: a crossing of the negative axis at −1/k at which the
imaginary part grows with the angle takes a pair of poles out, one at which it falls takes a pair back, and one at
z = −1 moves one pole. So the number of unstable poles at any gain is a sum over the crossings (Nyquist's criterion).

Crossings are found on a grid of angles that resolves a turn of the longest delay, and refined on the angle of −L, which
is nearly linear in ln theta where the imaginary part itself spans decades. That the grid missed none isn't proved at
points; over boxes, branch and bound proves that no other factor meets −1 (`netctrl.frequency.branch_bound`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf, pi
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.core.errors import NetctrlError
from netctrl.frequency.branch_bound import (
    Attain,
    Cells,
    Cover,
    Minimum,
    Objective,
    Sector,
    gain_bound,
    least,
    phase_bound,
    reduction_bound,
)
from netctrl.frequency.loop import illinois
from netctrl.frequency.sampled_gain import (
    BOX_TOLERANCE,
    LOOSEST,
    BoundedResponse,
    box_cells,
    gain_crossovers,
    nothing,
    scanned,
)

_ANGLES = 96
"""In geometric steps."""
_PER_TURN, _MOST_EVEN = 12, 400
"""Even steps, a turn of the longest delay and in all."""
_STILL = 0.2
"""Angle by which the response has turned at most where a look at it begins [rad]."""
_NARROWINGS = 60
_CLOSE, _ROUNDING = 1e-5, 1e-13
"""Angle from the axis at which a crossing of it is found, at many points and at one [rad]."""
_ROUGH = 0.01
"""The same where a crossing need not be known well."""
_AT_ONCE = 4096
"""Points."""
_CAP = 1e4
"""Factor beyond which no crossing is looked for."""
_POINT = 1e-3
"""Relative gap between what is proved and attained at a point."""


class PlacedResponse(Protocol):
    """A response at k points."""

    def at(self, theta: np.ndarray, row: np.ndarray) -> np.ndarray:
        """L(e^(i theta)) at angles and numbers of points, (n,)."""
        ...


class PacedResponse(BoundedResponse, Protocol):
    """A loop that is looked at at many points."""

    def placed(self, flows: np.ndarray, rtt: np.ndarray, *, coarse: bool = False) -> PlacedResponse:
        """The response at k points (N, tau [s]), (k,) and (k,)."""
        ...

    def slowest(self, flows: np.ndarray, rtt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the loop's lags and delays, and its longest delay, at k points, (k,) and (k,) [s]."""


class StableGains(NamedTuple):
    """Gains around 1 at which stability changes."""

    unstable_poles: int
    """At the gain 1."""
    upper: float
    """Least factor from 1 on at which a pole crosses; inf: none."""
    lower: float
    """Greatest factor up to 1 at which a pole of a stable loop crosses, or below which an unstable loop is stable; 0:
    none."""
    upper_angle: float
    """Where `upper` is [rad]."""
    lower_angle: float

    @property
    def factor(self) -> float:
        """Gain margin: `upper` of a stable loop, `lower` of an unstable one."""
        return self.upper if self.unstable_poles == 0 else self.lower


@lru_cache(maxsize=256)
def stable_gains(response: PacedResponse, flows: float, rtt: float) -> StableGains:
    """Crossings of the negative axis around the gain 1, at one point, each refined to rounding.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : float
        N and tau [s].
    """
    known = response.placed(np.array([flows]), np.array([rtt]))
    angles, values = scanned(response, flows, rtt)
    (_, where), gains, changes = _crossings(known, angles[None], values[None], _ROUNDING)
    above, below = gains >= 1.0, gains < 1.0
    unstable = int(changes[below].sum())
    ends = below & (_unstable_below(gains, changes) == 0) if unstable else below
    up = int(np.argmin(np.where(above, gains, inf))) if above.any() else -1
    down = int(np.argmax(np.where(ends, gains, -inf))) if ends.any() else -1
    return StableGains(
        unstable,
        float(gains[up]) if up >= 0 else inf,
        float(gains[down]) if down >= 0 else 0.0,
        float(where[up]) if up >= 0 else pi,
        float(where[down]) if down >= 0 else pi,
    )


class Crossings(NamedTuple):
    """All crossings of the negative axis at k points, in the order of angles; the last column is the one at z = −1."""

    gains: np.ndarray
    """(k, P + 1); inf: none."""
    angles: np.ndarray
    """[rad]"""
    changes: np.ndarray
    """Poles that leave there as the gain grows."""


def nearest_crossings(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
    """Greatest |L| up to 1 at a crossing of the negative axis before z = −1, within a few per cent, at points (k,): 0
    where there is none.

    Parameters
    ----------
    response : PacedResponse
    flows, rtt : ndarray, shape (k,)
        N and tau [s].
    """
    gains = all_crossings(response, flows, rtt, _ROUGH).gains[:, :-1]
    return 1.0 / np.where(gains >= 1.0, gains, inf).min(axis=-1, initial=inf)


def deciding(gains: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Which crossing is the gain margin, over the last axis: of a stable loop the least gain from 1 on, else the
    greatest below which the loop is stable."""
    unstable = np.where(gains < 1.0, changes, 0).sum(axis=-1) > 0
    above = np.where(gains >= 1.0, gains, inf).argmin(axis=-1)
    ends = (gains < 1.0) & (_unstable_below(gains, changes) == 0)
    return np.where(unstable, np.where(ends, gains, 0.0).argmax(axis=-1), above)


def _unstable_below(gains: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Unstable poles at gains just below those of crossings, over the last axis."""
    order = np.argsort(gains, axis=-1)
    sums = np.cumsum(np.take_along_axis(np.broadcast_to(changes, gains.shape), order, axis=-1), axis=-1)
    before = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)
    found = np.empty_like(before)
    np.put_along_axis(found, order, before, axis=-1)
    return found


def all_crossings(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray, close: float | None = None) -> Crossings:
    """All crossings at arrays of points (k,), found on a grid of angles, up to an angle `close` from the axis [rad].

    Parameters
    ----------
    response : PacedResponse
    flows, rtt : ndarray, shape (k,)
        N and tau [s].
    close : float, optional
        Angle from the axis at which a crossing is found [rad].
    """
    many = len(flows) > 1
    known, angles = response.placed(flows, rtt, coarse=many), _angles(response, flows, rtt)
    found = _crossings(known, angles, everywhere(known, angles), close or (_CLOSE if many else _ROUNDING))
    return _tabled(len(flows), found)


def everywhere(known: PlacedResponse, angles: np.ndarray) -> np.ndarray:
    """The response at angles of each point, (k, m)."""
    row = np.repeat(np.arange(len(angles)), angles.shape[1])
    return known.at(angles.ravel(), row).reshape(angles.shape)


def _tabled(points: int, found: tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]) -> Crossings:
    (row, angle), gain, change = found
    end = angle == pi
    order = np.lexsort((angle, row))
    order = order[~end[order]]
    inner = row[order]
    column = np.arange(len(inner)) - np.searchsorted(inner, inner)
    shape = (points, 1 + int(column.max(initial=-1)) + 1)
    gains, angles, changes = np.full(shape, inf), np.full(shape, pi), np.zeros(shape, dtype=int)
    for table, values in ((gains, gain), (angles, angle), (changes, change)):
        table[inner, column] = values[order]
        table[row[end], -1] = values[end]
    return Crossings(gains, angles, changes)


def _angles(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
    """Angles up to pi at points, (k, m): in geometric steps, even ones where those would be too wide for the turns of
    the longest delay, and where the response bends sharply."""
    lags, delays = response.slowest(flows, rtt)
    lowest = np.minimum(_STILL * response.epoch / lags, 0.02)[:, None]
    widest = max(2.0 * pi / _PER_TURN * response.epoch / float(delays.max()), pi / _MOST_EVEN)
    bend = min(widest * (_ANGLES - 1) / float(np.log(pi / lowest.min())), pi)
    share = np.linspace(0.0, 1.0, _ANGLES)
    even = np.linspace(bend, pi, 1 + int(np.ceil((pi - bend) / widest)))[1:]
    steps = lowest ** (1.0 - share) * bend**share
    found = np.concatenate([steps, np.broadcast_to(even, (len(steps), len(even)))], axis=1)
    sharp = response.sharp_angles(flows, rtt)
    return np.sort(np.concatenate([found, np.maximum(sharp, lowest)], axis=1), axis=1) if sharp.size else found


def _crossings(
    known: PlacedResponse, angles: np.ndarray, values: np.ndarray, close: float
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """All crossings of the negative axis between the angles (n, m) with the response's `values`, at n points: ((row,
    angle), gain, poles that leave)."""
    sign = np.signbit(values.imag)
    row, column = np.nonzero((sign[:, 1:] != sign[:, :-1]) & ((values.real[:, 1:] < 0.0) | (values.real[:, :-1] < 0.0)))
    column = np.where(column == angles.shape[1] - 1, column - 1, column)
    a, b = (np.log(angles[row, column + i]) for i in (0, 1))
    sides = (-values[row, column], -values[row, column + 1])
    fa, fb = map(np.angle, sides)  # nearly linear in ln theta
    rises = values.imag[row, column + 1] > values.imag[row, column]
    last = column + 1 == angles.shape[1] - 1  # at z = −1 the imaginary part is 0: no crossing is refined there

    def off(u: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = -known.at(np.exp(u), row[i])
        return np.angle(value), value

    b, value = illinois(off, a, b, fa, fb, _NARROWINGS, close, sides)
    kept = (value.real > 0.0) & ~(last & (np.abs(np.exp(b) - pi) < 1e-9))
    row, at = row[kept], np.exp(b[kept])
    gains, changes = 1.0 / value.real[kept], np.where(rises[kept], 2, -2)
    end = values[:, -1].real
    ends = np.flatnonzero(end < 0.0)
    # Just before z = −1 the response comes from below the axis, and takes a pole out, or from above.
    from_below = values.imag[ends, -2] < 0.0
    return (
        (np.concatenate([row, ends]), np.concatenate([at, np.full(len(ends), pi)])),
        np.concatenate([gains, -1.0 / end[ends]]),
        np.concatenate([changes, np.where(from_below, 1, -1)]),
    )


def _start(response: BoundedResponse, points: Sequence[tuple[float, float]]) -> tuple[float, np.ndarray]:
    """Least factor from 1 on at which the loop meets −1 at some of the points, and its place."""
    best: tuple[float, np.ndarray] = (inf, np.zeros(4))
    for flows, rtt in points:
        found = stable_gains(response, flows, rtt)
        if found.upper < best[0]:
            best = found.upper, np.array([found.upper_angle, np.log(flows), np.log(rtt), 0.0])
    return best


def box_upper_gain(
    response: BoundedResponse,
    flows: tuple[float, float],
    rtt: tuple[float, float],
    starts: Sequence[tuple[float, float]],
    leaves: list[Cover] | None = None,
    below: float = inf,
) -> Minimum:
    """Least factor from 1 on at which the loop meets −1 anywhere in a box, with a proof.

    Where it is above 1 the number of unstable poles at the gain 1 is the same in the whole box.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : (float, float)
        Ranges of N and tau [s].
    starts : sequence of (float, float)
        Points (N, tau) of the box to begin with.
    leaves : list of Cover, optional
        As of `netctrl.frequency.branch_bound.least`.
    below : float
        No factor from here on is looked for: it is then what was found.
    """

    def nearer(some: Cells) -> tuple[float, np.ndarray]:
        return _start(response, [(float(np.exp(c[1])), float(np.exp(c[2]))) for c in some.centre])

    start = min(_start(response, starts), (below, np.zeros(4)), key=lambda each: each[0])
    cells = box_cells(response.min_angle(flows, rtt), flows, rtt)
    asked = _upper(start, BOX_TOLERANCE, nearer)
    return capped(
        least(response.disc, *asked[:2], cells, tolerance=asked[2], start=asked[3], loosest=LOOSEST, leaves=leaves)
    )


def _upper(start: tuple[float, np.ndarray], tolerance: float, attain: Attain = nothing) -> Objective:
    """Least factor from 1 on at which the loop meets −1, up to a cap."""
    known = start if start[0] < _CAP else (_CAP, start[1])
    return Objective(gain_bound(Sector(), floor=1.0), attain, tolerance, known)


def capped(found: Minimum) -> Minimum:
    """The least factor of an objective that has a cap; attained is inf where it is there, and proved about the cap."""
    return found._replace(found=inf) if found.found >= _CAP else found


def point_objectives(
    response: BoundedResponse, flows: float, rtt: float, factor: float, phase_rad: float
) -> tuple[Objective, Objective | None]:
    """At a point: the least factor from 1 on at which the loop meets −1, to be `capped`; and what `box_keeps` proves,
    None where the point doesn't keep it.

    Parameters
    ----------
    response, flows, rtt, factor, phase_rad
        As of `point_keeps`.
    """
    upper = _upper(_start(response, [(flows, rtt)]), _POINT)
    return upper, _rule(factor, phase_rad) if point_keeps(response, flows, rtt, factor, phase_rad) else None


def _rule(factor: float, phase_rad: float) -> Objective:
    """At least 1 where no gain from 1/factor to factor meets −1 and |L| = 1 only far enough from the negative axis."""
    upper, lower, phase = gain_bound(Sector(), floor=1.0), reduction_bound(1.0), phase_bound(1.0)

    def bound(*discs: Any) -> np.ndarray:
        return np.minimum(np.minimum(upper(*discs), lower(*discs)) / factor, phase(*discs) / phase_rad)

    return Objective(bound, nothing, 0.0, (1.0, np.zeros(4)))


def point_keeps(response: BoundedResponse, flows: float, rtt: float, factor: float, phase_rad: float) -> bool:
    """What `box_keeps` asks, at one point, without proof.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : float
        N and tau [s].
    factor, phase_rad : float
        The rule: factor of the gain, and angle from the negative axis [rad].
    """
    gains = stable_gains(response, flows, rtt)
    if gains.upper < factor or gains.lower > 1.0 / factor:
        return False
    return all(abs(angle) >= phase_rad for _, angle in gain_crossovers(response, flows, rtt, 1.0))


def box_keeps(
    response: BoundedResponse,
    flows: tuple[float, float],
    rtt: tuple[float, float],
    factor: float,
    phase_rad: float,
    starts: Sequence[tuple[float, float]] = (),
    cover: Cover | None = None,
) -> bool:
    """Whether, provably in the whole box, no gain from 1/factor to factor meets −1, and |L| = 1 only at an angle of at
    least `phase_rad` from the negative axis. The number of unstable poles is then the same in the whole box.

    Parameters
    ----------
    response, flows, rtt, starts
        As of `box_upper_gain`; `starts` are looked at first.
    factor, phase_rad : float
        The rule.
    cover : Cover, optional
        One of the box, if it is known.
    """
    if not all(point_keeps(response, *each, factor, phase_rad) for each in starts):
        return False
    cells = cover or box_cells(response.min_angle(flows, rtt), flows, rtt)
    bound, attain, tolerance, start = _rule(factor, phase_rad)
    try:
        least(response.disc, bound, attain, cells, tolerance=tolerance, start=start)
    except NetctrlError:
        return False
    return True
