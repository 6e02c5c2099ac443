"""Greatest gains at which sampled loops meet a rule, over points and boxes, proved by branch and bound over angles.

A rule is a sector around −1 that k L must avoid (`Sector`): for stability −1 itself, with a gain margin the axis up to
it, with a phase margin an arc of the unit circle. The greatest gain is the least k at which k L meets an edge of the
sector. At a point it is found on a grid of angles: −L, turned by an edge's angle, crosses the positive axis there. Each
crossing is refined on the phase, which is nearly linear in ln theta over decades, by a bracketed secant method
(`illinois`) for all crossings at once. Branch and bound then proves that nothing in between is less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, pi
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from netctrl.core.errors import NetctrlError
from netctrl.frequency.branch_bound import Cells, Minimum, Sector, angle_cells, gain_bound, least
from netctrl.frequency.loop import illinois

_POINT_TOLERANCE = 1e-6
BOX_TOLERANCE = 1e-2
LOOSEST = 0.99
"""Gap accepted for a stability limit over a box: with windows of 1e4 packets and more, that limit is a thousand times
the gain that meets the rule, and needs the most cells."""
_MAP_ANGLES = 72
_NARROWINGS = 14
_ROUNDS, _ROUNDING = 60, 1e-14
"""Steps to a sign change, and the angle from the axis at which it is found [rad]."""
SCAN = 33
"""Points of a scan that narrows a minimum."""


Crossover = tuple[float, float]
"""(angle, signed angle of −gain · L there)."""


class BoundedResponse(Protocol):
    """A loop at gain 1 over angle, flows, round-trip time [s] and extra delay [s] (`netctrl.plants.tcp_response`)."""

    @property
    def epoch(self) -> float: ...

    @property
    def rate(self) -> float: ...

    def at(
        self, theta: ArrayLike, flows: ArrayLike, rtt: ArrayLike, extra: ArrayLike = 0.0, *, coarse: bool = False
    ) -> np.ndarray: ...

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    def min_angle(self, flows: tuple[float, float], rtt: tuple[float, float], extra: float = 0.0) -> float: ...

    def sharp_angles(self, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray: ...

    def __hash__(self) -> int: ...


def greatest_gain(
    response: BoundedResponse, flows: tuple[float, float], rtt: tuple[float, float], sector: Sector
) -> Minimum:
    """Greatest gain up to which the loop avoids a sector, over a whole box of flows and round-trip times.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : (float, float)
        Ranges of N and tau [s]; a point has both ends equal.
    sector : Sector
        Region to avoid: stability alone, or with margins.

    Returns
    -------
    Minimum
        `where` holds angle, ln N, ln tau and 0.
    """
    point = flows[0] == flows[1] and rtt[0] == rtt[1]
    tolerance = _POINT_TOLERANCE if point else BOX_TOLERANCE
    loosest = BOX_TOLERANCE if point else LOOSEST
    lowest = response.min_angle(flows, rtt)
    start: tuple[float, np.ndarray] = (inf, np.zeros(4))
    # The fewest flows at the longest round-trip time are usually worst: a good start value drops most cells at once.
    for n, tau in {(flows[0], rtt[1]), (flows[0], rtt[0]), (flows[1], rtt[1])}:
        start = min(start, _met(response, sector, np.log(n), np.log(tau), lowest, pi), key=lambda pair: pair[0])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        values = [
            _met(response, sector, c[1], c[2], max(c[0] - 2.0 * h[0], lowest), min(c[0] + 2.0 * h[0], pi))
            for c, h in zip(*cells, strict=True)
        ]
        return min(values, key=lambda pair: pair[0])

    cells = box_cells(lowest, flows, rtt)
    return least(response.disc, gain_bound(sector), attain, cells, tolerance=tolerance, start=start, loosest=loosest)


def keeps(
    response: BoundedResponse, flows: tuple[float, float], rtt: tuple[float, float], sector: Sector, gain: float
) -> bool:
    """Whether the loop provably avoids a sector at this gain over a whole box; False also where undecided.

    Parameters
    ----------
    response, flows, rtt, sector
        As of `greatest_gain`.
    gain : float
        Factor of the response.
    """
    cells = box_cells(response.min_angle(flows, rtt), flows, rtt)
    try:
        least(response.disc, gain_bound(sector), nothing, cells, tolerance=0.0, start=(gain, cells.centre[0]))
    except NetctrlError:
        return False
    return True


def gains_at(response: BoundedResponse, flows: np.ndarray, rtt: np.ndarray, sectors: Sequence[Sector]) -> np.ndarray:
    """Gain up to which the loop avoids each sector, for arrays of points: found on a grid of angles, without proof.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : ndarray
        N and tau [s], broadcast.
    sectors : sequence of Sector

    Returns
    -------
    ndarray, shape (sectors, points' shape)
    """
    flows, rtt = (np.asarray(a, dtype=float) for a in np.broadcast_arrays(flows, rtt))
    shape, flows, rtt = flows.shape, flows.ravel(), rtt.ravel()
    window = response.rate * rtt / flows
    lowest = np.minimum(0.02 * response.epoch / (rtt * (1.0 + window)), 0.02)
    share = np.linspace(0.0, 1.0, _MAP_ANGLES)
    angles = lowest[:, None] ** (1.0 - share) * pi**share
    values = response.at(angles, flows[:, None], rtt[:, None], coarse=True)
    out = np.full((len(sectors), len(flows)), inf)
    for row, sector in zip(out, sectors, strict=True):
        for turn, part in sector.edges:
            height = -values * np.exp(-1j * turn)
            if turn == 0.0:  # at z = −1 the response is real, which is looked at below: a sign there is rounding
                height.imag[:, -1] = height.imag[:, -2]
            i, k = np.nonzero(
                (np.signbit(height.imag[:, 1:]) != np.signbit(height.imag[:, :-1]))
                & ((height.real[:, 1:] > 0.0) | (height.real[:, :-1] > 0.0))
            )
            if not i.size:
                continue
            at, rotated = (flows[i], rtt[i]), np.exp(-1j * turn)

            def off(u: np.ndarray, j: np.ndarray, at: tuple = at, rotated: complex = rotated) -> tuple:
                value = -response.at(np.exp(u), at[0][j], at[1][j]) * rotated
                return value.imag, value

            low, high = angles[i, k], angles[i, k + 1]
            first, last = ((-response.at(end, *at) * rotated).imag for end in (low, high))
            found = illinois(off, np.log(low), np.log(high), first, last, _NARROWINGS)[1]
            met = found.real > 0.0
            np.minimum.at(row, i[met], part / np.abs(found[met]))
        end = values[:, -1].real
        with np.errstate(divide="ignore"):
            np.minimum(row, np.where(end < 0.0, sector.gain / -end, inf), out=row)
    return out.reshape(len(sectors), *shape)


def box_cells(lowest: float, flows: tuple[float, float], rtt: tuple[float, float], longest_extra: float = 0.0) -> Cells:
    """Cells over all angles from `lowest`, a range of flows, of round-trip times, and of extra delays [s].

    Parameters
    ----------
    lowest : float
        Least angle [rad].
    flows, rtt : (float, float)
        Ranges of N and tau [s].
    longest_extra : float
        Greatest extra delay [s].
    """
    logarithms = [(np.log(low), np.log(high)) for low, high in (flows, rtt)]
    return angle_cells(lowest, [*logarithms, (0.0, longest_extra)])


def nothing(cells: Cells) -> tuple[float, np.ndarray]:
    """No attempt at a better value, for questions that are only proved or not."""
    return inf, cells.centre[0]


def _met(
    response: BoundedResponse, sector: Sector, ln_flows: float, ln_rtt: float, low: float, high: float
) -> tuple[float, np.ndarray]:
    """Least gain at which the response meets the sector's edges between two angles, at one point of the box."""
    flows, rtt = np.exp(ln_flows), np.exp(ln_rtt)

    def value(theta: np.ndarray) -> np.ndarray:
        return response.at(theta, flows, rtt)

    best, where = inf, np.array([low, ln_flows, ln_rtt, 0.0])
    for turn, part in sector.edges:
        rotated = np.exp(-1j * turn)

        def height(theta: np.ndarray, rotated: complex = rotated) -> np.ndarray:
            return -value(theta) * rotated

        for angle in _sign_changes(height, scan(low, high)):
            gain = part / float(np.abs(value(np.array([angle]))[0]))
            if gain < best:
                best, where = gain, np.array([angle, ln_flows, ln_rtt, 0.0])
    # At z = −1 the response is real: there it may meet the axis without crossing it.
    if high >= pi:
        end = value(np.array([pi]))[0].real
        if end < 0.0 and sector.gain / -end < best:
            best, where = sector.gain / -end, np.array([pi, ln_flows, ln_rtt, 0.0])
    return best, where


def scan(low: float, high: float) -> np.ndarray:
    """Points from low to high, on a logarithmic scale where the range is wide."""
    if high < 1.5 * low:
        return np.linspace(low, high, SCAN)
    even = np.linspace(low, high, 401)
    return np.unique(np.concatenate([np.geomspace(low, high, 201), even]))


@lru_cache(maxsize=64)
def scanned(response: BoundedResponse, flows: float, rtt: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles of a scan of one point up to pi, from the lowest at which a margin can be, and the response there.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : float
        N and tau [s].
    """
    angles = scan(response.min_angle((flows, flows), (rtt, rtt)), pi)
    sharp = response.sharp_angles(np.array([flows]), np.array([rtt]))
    if sharp.size:
        angles = np.union1d(angles, np.maximum(sharp, angles[0]))
    values = response.at(angles, flows, rtt)
    for each in (angles, values):
        each.flags.writeable = False
    return angles, values


def _sign_changes(
    height: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, values: np.ndarray | None = None
) -> list[float]:
    """Angles at which a complex function crosses the positive axis, each refined to rounding; `values` are those on
    the grid, if known."""
    values = height(grid) if values is None else values
    crosses = (np.signbit(values.imag[1:]) != np.signbit(values.imag[:-1])) & (
        (values.real[1:] > 0.0) | (values.real[:-1] > 0.0)
    )
    i = np.flatnonzero(crosses)

    def off(u: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = height(np.exp(u))
        return np.angle(value), value

    ends = (i, i + 1)
    (a, b), (fa, fb) = ([np.log(grid[at]) for at in ends], [np.angle(values[at]) for at in ends])
    at, found = illinois(off, a, b, fa, fb, _ROUNDS, _ROUNDING)
    return [float(angle) for angle, value in zip(np.exp(at), found, strict=True) if value.real > 0.0]


def crossover_scale(response: BoundedResponse, flows: float, rtt: float, gain: float) -> float:
    """Approximate angle at which |gain · L| is 1; the angle of the greatest |L| near pi where it never is.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt, gain : float
        N, tau [s], and a factor of the response.
    """
    angles = np.geomspace(response.min_angle((flows, flows), (rtt, rtt)) * 1e-3, pi, 400)
    above = np.flatnonzero(gain * np.abs(response.at(angles, flows, rtt)) >= 1.0)
    return float(angles[above[-1]]) if above.size else float(angles[0])


@lru_cache(maxsize=256)
def gain_crossovers(response: BoundedResponse, flows: float, rtt: float, gain: float) -> tuple[Crossover, ...]:
    """Where |gain · L| = 1.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt, gain : float
        N, tau [s], and a factor of the response.
    """

    def around(values: np.ndarray) -> np.ndarray:
        return 1.0 + 1j * (gain * np.abs(values) - 1.0)

    def height(theta: np.ndarray) -> np.ndarray:
        return around(response.at(theta, flows, rtt))

    grid, values = scanned(response, flows, rtt)
    above = np.flatnonzero(gain * np.abs(values) >= 1.0)
    if above.size and 0.1 * grid[above[-1]] >= grid[0]:
        angles = _sign_changes(height, grid, around(values))
    else:
        # Below the grid |L| falls as 1/theta at most: with an integrator it is 1 at about this angle.
        integrated = float(grid[0]) * gain * float(np.abs(values[0]))
        lowest = min(float(grid[0]), 0.1 * crossover_scale(response, flows, rtt, gain), 0.1 * integrated)
        angles = _sign_changes(height, scan(lowest, pi))
    if not angles:
        return ()
    offs = np.angle(-gain * response.at(np.array(angles), flows, rtt))
    return tuple((angle, float(off)) for angle, off in zip(angles, offs, strict=True))
