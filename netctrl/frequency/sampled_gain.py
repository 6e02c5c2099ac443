"""Greatest gains at which sampled loops meet a rule, over points and boxes, proved by branch and bound over angles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, pi
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from netctrl.errors import NetctrlError
from netctrl.frequency.branch_bound import (
    Cells,
    Minimum,
    Sector,
    angle_cells,
    gain_bound,
    least,
)

__all__ = [
    "BOX_TOLERANCE",
    "LOOSEST",
    "POINT_TOLERANCE",
    "SCAN",
    "BoundedResponse",
    "box_cells",
    "gains_at",
    "greatest_gain",
    "illinois",
    "keeps",
    "nothing",
    "scan",
    "sign_changes",
]


POINT_TOLERANCE = 1e-6
BOX_TOLERANCE = 1e-2
LOOSEST = 0.99
"""Gap accepted for a stability limit over a box: with windows of 1e4 packets and more, that limit is a thousand times
the gain that meets the rule, and needs the most cells."""
_MAP_ANGLES = 72
_NARROWINGS = 14
SCAN = 33  # points of a scan that narrows a sign change


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

    def __hash__(self) -> int: ...


def greatest_gain(
    response: BoundedResponse,
    flows: tuple[float, float],
    rtt: tuple[float, float],
    sector: Sector,
    tolerance: float | None = None,
    starts: Sequence[tuple[float, float]] | None = None,
) -> Minimum:
    """Greatest gain up to which the loop avoids a sector, over a whole box of flows and round-trip times.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : (float, float)
        Ranges of N and tau [s]; a point has both ends equal.
    sector : Sector
        Region to avoid: stability alone, or with margins.
    tolerance : float, optional
        Relative gap between the proved bound and the attained value.
    starts : sequence of (float, float), optional
        Points (N, tau) of the box to begin with; by default those of its corners that are usually worst.

    Returns
    -------
    Minimum
        `where` holds angle, ln N, ln tau and 0.
    """
    point = flows[0] == flows[1] and rtt[0] == rtt[1]
    chosen = tolerance or (POINT_TOLERANCE if point else BOX_TOLERANCE)
    loosest = BOX_TOLERANCE if point else LOOSEST
    lowest = response.min_angle(flows, rtt)
    start: tuple[float, np.ndarray] = (inf, np.zeros(4))
    # The fewest flows at the longest round-trip time are usually worst: a good start value drops most cells at once.
    corners = {(flows[0], rtt[1]), (flows[0], rtt[0]), (flows[1], rtt[1])}
    for n, tau in corners if starts is None else starts:
        start = min(start, _met(response, sector, np.log(n), np.log(tau), lowest, pi), key=lambda pair: pair[0])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        values = [
            _met(response, sector, c[1], c[2], max(c[0] - 2.0 * h[0], lowest), min(c[0] + 2.0 * h[0], pi))
            for c, h in zip(*cells, strict=True)
        ]
        return min(values, key=lambda pair: pair[0])

    cells = box_cells(lowest, flows, rtt)
    return least(response.disc, gain_bound(sector), attain, cells, tolerance=chosen, start=start, loosest=loosest)


def keeps(
    response: BoundedResponse, flows: tuple[float, float], rtt: tuple[float, float], sector: Sector, gain: float
) -> bool:
    """Whether the loop provably avoids a sector at this gain over a whole box; False also where undecided."""
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
            i, k = np.nonzero(
                (np.signbit(height.imag[:, 1:]) != np.signbit(height.imag[:, :-1]))
                & ((height.real[:, 1:] > 0.0) | (height.real[:, :-1] > 0.0))
            )
            found = _narrowed(response, flows[i], rtt[i], angles[i, k], angles[i, k + 1], np.exp(-1j * turn))
            met = found.real > 0.0
            np.minimum.at(row, i[met], part / np.abs(found[met]))
        end = values[:, -1].real
        with np.errstate(divide="ignore"):
            np.minimum(row, np.where(end < 0.0, sector.gain / -end, inf), out=row)
    return out.reshape(len(sectors), *shape)


def _narrowed(response: BoundedResponse, flows, rtt, low, high, rotated: complex) -> np.ndarray:
    """Rotated −L where it crosses the positive axis between two angles, by the Illinois method, vectorised."""

    def height(theta: np.ndarray) -> np.ndarray:
        return -response.at(theta, flows, rtt) * rotated

    if not low.size:
        return np.empty(0, dtype=complex)

    def off(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = height(np.exp(u))
        return value.imag, value

    return illinois(off, np.log(low), np.log(high), height(low).imag, height(high).imag, _NARROWINGS)[1]


def illinois(
    off: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    a: np.ndarray,
    b: np.ndarray,
    fa: np.ndarray,
    fb: np.ndarray,
    steps: int,
    close: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Roots between a and b by the Illinois method, each on its own: (root, what `off` gave beside its function there).

    `off` takes arguments to the function's values and anything else; fa and fb are its values at both ends. It ends
    after `steps` or where all values are at most `close`.
    """
    beside = b
    for _ in range(steps):
        with np.errstate(divide="ignore", invalid="ignore"):
            c = b - fb * (b - a) / (fb - fa)
        c = np.where(np.isfinite(c) & (c > np.minimum(a, b)) & (c < np.maximum(a, b)), c, 0.5 * (a + b))
        fc, beside = off(c)
        crossed = np.signbit(fc) != np.signbit(fb)
        a, fa = np.where(crossed, b, a), np.where(crossed, fb, 0.5 * fa)
        b, fb = c, fc
        if np.all(np.abs(fc) <= close):
            break
    return b, beside


def box_cells(lowest: float, flows: tuple[float, float], rtt: tuple[float, float], longest_extra: float = 0.0) -> Cells:
    """Cells over all angles from `lowest`, a range of flows, of round-trip times, and of extra delays [s]."""
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

        for angle in sign_changes(height, scan(low, high)):
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


def sign_changes(height: Callable[[np.ndarray], np.ndarray], grid: np.ndarray) -> list[float]:
    """Angles at which a complex function crosses the positive axis, each refined to rounding."""
    values = height(grid)
    crosses = (np.signbit(values.imag[1:]) != np.signbit(values.imag[:-1])) & (
        (values.real[1:] > 0.0) | (values.real[:-1] > 0.0)
    )
    found = []
    for i in np.flatnonzero(crosses):
        low, high = grid[i], grid[i + 1]
        for _ in range(20):
            inner = np.linspace(low, high, SCAN)
            signs = np.signbit(height(inner).imag)
            at = int(np.argmax(signs[1:] != signs[:-1]))
            low, high = inner[at], inner[at + 1]
            if high - low <= 4e-16 * high:
                break
        middle = 0.5 * (low + high)
        if height(np.array([middle]))[0].real > 0.0:
            found.append(float(middle))
    return found
