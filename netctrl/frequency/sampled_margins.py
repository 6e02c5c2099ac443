"""Gain, phase, delay and disk margins of one sampled loop, from its response on the unit circle, each with a proof.

The open loop has one pole at z = 1 and none outside the unit circle, and small gains are stable. So the first gain at
which the response meets −1 is the limit of stability, and all margins are least values of an objective over angles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import degrees, inf, log10, pi
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from netctrl.errors import NetctrlError
from netctrl.frequency.branch_bound import (
    Cells,
    Least,
    Sector,
    angle_cells,
    disk_bound,
    gain_bound,
    least,
    phase_bound,
    touch_bound,
)

__all__ = [
    "BoundedResponse",
    "SampledMargins",
    "gains_at",
    "greatest_gain",
    "keeps",
    "sampled_margins",
    "spectral_radius",
]

POINT_TOLERANCE = 1e-6
BOX_TOLERANCE = 1e-2
DELAY_TOLERANCE = 1e-3
LOOSEST = 0.99
"""Gap with which a limit over a box is still worth something: where windows go up to 1e4 packets and more, the limit of
stability is a thousand times the gain that keeps the rule, and costs the most cells."""
_NEWTON_STEPS = 40
_MAP_ANGLES = 72
_SCAN = 33  # points of a scan that narrows a sign change


class BoundedResponse(Protocol):
    """A loop at gain 1 over angle, flows, round-trip time [s] and extra delay [s] (`netctrl.fluid.tcp_response`)."""

    @property
    def epoch(self) -> float: ...

    @property
    def rate(self) -> float: ...

    def at(
        self, theta: ArrayLike, flows: ArrayLike, rtt: ArrayLike, extra: ArrayLike = 0.0, *, coarse: bool = False
    ) -> np.ndarray: ...

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    def least_angle(self, flows: tuple[float, float], rtt: tuple[float, float], extra: float = 0.0) -> float: ...


class SampledMargins(NamedTuple):
    """How far one sampled loop at one gain is from instability; nothing is left of an unstable loop's."""

    stable: bool
    limit: float
    """Gain at which it becomes unstable."""
    gain_margin_db: float
    phase_margin_deg: float
    """At the worst gain crossover; in (−180, 180]."""
    delay_margin_s: float
    """Extra delay in the path that it stands [s]; 0 where it is unstable."""
    disk_margin: float
    """2/‖S − T‖∞; 0 where it is unstable."""
    crossover_rad_s: float
    """Gain crossover of the phase margin; nan where |L| is never 1."""
    phase_crossover_rad_s: float
    """Phase crossover of the limit."""


def greatest_gain(
    response: BoundedResponse,
    flows: tuple[float, float],
    rtt: tuple[float, float],
    sector: Sector,
    tolerance: float | None = None,
) -> Least:
    """Greatest gain up to which the loop stays out of a sector, over a whole box of flows and round-trip times.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : (float, float)
        Ranges of N and tau [s]; a point has both ends equal.
    sector : Sector
        What to keep: stability alone, or margins.
    tolerance : float, optional
        Relative gap between what is proved and what is attained.

    Returns
    -------
    Least
        `where` holds angle, ln N, ln tau and 0.
    """
    point = flows[0] == flows[1] and rtt[0] == rtt[1]
    chosen = tolerance or (POINT_TOLERANCE if point else BOX_TOLERANCE)
    loosest = BOX_TOLERANCE if point else LOOSEST
    lowest = response.least_angle(flows, rtt)
    start: tuple[float, np.ndarray] = (inf, np.zeros(4))
    # Fewest flows at the longest round-trip time are usually worst: a good value drops most cells at once.
    for n, tau in {(flows[0], rtt[1]), (flows[0], rtt[0]), (flows[1], rtt[1])}:
        start = min(start, _met(response, sector, np.log(n), np.log(tau), lowest, pi), key=lambda pair: pair[0])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        values = [
            _met(response, sector, c[1], c[2], max(c[0] - 2.0 * h[0], lowest), min(c[0] + 2.0 * h[0], pi))
            for c, h in zip(*cells, strict=True)
        ]
        return min(values, key=lambda pair: pair[0])

    cells = _cells(lowest, flows, rtt)
    return least(response.disc, gain_bound(sector), attain, cells, tolerance=chosen, start=start, loosest=loosest)


def keeps(
    response: BoundedResponse, flows: tuple[float, float], rtt: tuple[float, float], sector: Sector, gain: float
) -> bool:
    """Whether the loop stays out of a sector at this gain, proved over a whole box; False also where undecided."""
    cells = _cells(response.least_angle(flows, rtt), flows, rtt)
    try:
        least(response.disc, gain_bound(sector), _nothing, cells, tolerance=0.0, start=(gain, cells.centre[0]))
    except NetctrlError:
        return False
    return True


def gains_at(response: BoundedResponse, flows: np.ndarray, rtt: np.ndarray, sectors: Sequence[Sector]) -> np.ndarray:
    """Gain up to which the loop stays out of each sector, for arrays of points: found on a grid of angles, not proved.

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
    """−L, turned, where it crosses the positive axis between two angles, by the Illinois method, all at once."""

    def height(theta: np.ndarray) -> np.ndarray:
        return -response.at(theta, flows, rtt) * rotated

    if not low.size:
        return np.empty(0, dtype=complex)
    a, b = np.log(low), np.log(high)
    fa, fb = height(low).imag, height(high).imag
    value = height(low)
    for _ in range(14):
        with np.errstate(divide="ignore", invalid="ignore"):
            c = b - fb * (b - a) / (fb - fa)
        c = np.where(np.isfinite(c), c, 0.5 * (a + b))
        value = height(np.exp(c))
        fc = value.imag
        crossed = np.signbit(fc) != np.signbit(fb)
        a, fa = np.where(crossed, b, a), np.where(crossed, fb, 0.5 * fa)
        b, fb = c, fc
    return value


def sampled_margins(
    response: BoundedResponse, flows: float, rtt: float, gain: float, limit: Least | None = None
) -> SampledMargins:
    """All margins of one loop at one gain.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt, gain : float
        N, tau [s], and what the response is multiplied by.
    limit : Least, optional
        `greatest_gain` of stability at this very point, where it is known.
    """
    limit = limit or greatest_gain(response, (flows, flows), (rtt, rtt), Sector())
    stable = gain < limit.found
    phase, crossover = _phase_margin(response, flows, rtt, gain, stable)
    return SampledMargins(
        stable=stable,
        limit=limit.found,
        gain_margin_db=20.0 * log10(limit.found / gain),
        phase_margin_deg=degrees(phase),
        delay_margin_s=_delay_margin(response, flows, rtt, gain) if stable else 0.0,
        disk_margin=_disk_margin(response, flows, rtt, gain) if stable else 0.0,
        crossover_rad_s=crossover / response.epoch,
        phase_crossover_rad_s=float(limit.where[0]) / response.epoch,
    )


def spectral_radius(response: BoundedResponse, flows: float, rtt: float, gain: float) -> float:
    """Largest modulus of the closed loop's eigenvalues over one epoch, by Newton's method from many starts.

    The response continues analytically off the unit circle, so that 1 + gain · L(z) = 0 can be solved for z itself.
    """
    scale = _crossover_scale(response, flows, rtt, gain)
    turns = np.concatenate([scale * np.array([0.0, 0.5, 1.0, 1.6, 2.5]), np.linspace(0.1, pi, 9)])
    decays = np.concatenate([scale * np.array([-0.5, 0.0, 0.15, 0.5, 1.5]), [0.2, 0.7, 2.0]])
    theta = (turns[:, None] + 1j * decays).ravel()  # z = e^(i theta) = e^(−decay + i turn)
    theta = theta[np.abs(theta) > 1e-3 * scale]

    def closed(x: np.ndarray) -> np.ndarray:
        return 1.0 + gain * response.at(x, flows, rtt)

    going = np.ones(theta.shape, dtype=bool)
    with np.errstate(all="ignore"):
        for _ in range(_NEWTON_STEPS):
            x = theta[going]
            value = closed(x)
            near = x * (1.0 + 1e-7)
            move = value * (near - x) / (closed(near) - value)
            move *= np.minimum(1.0, 0.5 * (np.abs(x) + scale) / np.abs(move))
            new = x - move
            lost = ~(np.isfinite(new) & (np.abs(new.imag) < 30.0) & (np.abs(new.real) < 7.0))
            theta[going] = np.where(lost, np.nan, new)
            going[going] = ~lost & (np.abs(move) > 1e-12 * np.abs(new))
            if not going.any():
                break
        theta = theta[np.isfinite(theta)]
        roots = theta[(np.abs(closed(theta)) < 1e-6) & (np.abs(theta) > 1e-9 * scale)]
    # With no root but far inside, the slowest thing left is the plant's own echo; 0 says that nothing was found.
    return float(np.exp(-roots.imag.min())) if roots.size else 0.0


def _crossover_scale(response: BoundedResponse, flows: float, rtt: float, gain: float) -> float:
    """About the angle at which |gain · L| is 1; that of the greatest |L| near pi where it never is."""
    angles = np.geomspace(response.least_angle((flows, flows), (rtt, rtt)) * 1e-3, pi, 400)
    above = np.flatnonzero(gain * np.abs(response.at(angles, flows, rtt)) >= 1.0)
    return float(angles[above[-1]]) if above.size else float(angles[0])


def _cells(lowest: float, flows: tuple[float, float], rtt: tuple[float, float], longest_extra: float = 0.0) -> Cells:
    """Cells over all angles from `lowest` on, a range of flows and round-trip times, and of extra delays [s]."""
    logarithms = [(np.log(low), np.log(high)) for low, high in (flows, rtt)]
    return angle_cells(lowest, [*logarithms, (0.0, longest_extra)])


def _nothing(cells: Cells) -> tuple[float, np.ndarray]:
    """No attempt at a better value: what is asked about is proved or not."""
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

        for angle in _sign_changes(height, _scan(low, high)):
            gain = part / float(np.abs(value(np.array([angle]))[0]))
            if gain < best:
                best, where = gain, np.array([angle, ln_flows, ln_rtt, 0.0])
    # At z = −1 the response is real: there it may meet the axis without crossing it.
    if high >= pi:
        end = value(np.array([pi]))[0].real
        if end < 0.0 and sector.gain / -end < best:
            best, where = sector.gain / -end, np.array([pi, ln_flows, ln_rtt, 0.0])
    return best, where


def _scan(low: float, high: float) -> np.ndarray:
    if high < 1.5 * low:
        return np.linspace(low, high, _SCAN)
    even = np.linspace(low, high, 401)
    return np.unique(np.concatenate([np.geomspace(low, high, 201), even]))


def _sign_changes(height: Callable[[np.ndarray], np.ndarray], grid: np.ndarray) -> list[float]:
    """Angles at which a complex function crosses the positive axis, each narrowed to rounding."""
    values = height(grid)
    crosses = (np.signbit(values.imag[1:]) != np.signbit(values.imag[:-1])) & (
        (values.real[1:] > 0.0) | (values.real[:-1] > 0.0)
    )
    found = []
    for i in np.flatnonzero(crosses):
        low, high = grid[i], grid[i + 1]
        for _ in range(20):
            inner = np.linspace(low, high, _SCAN)
            signs = np.signbit(height(inner).imag)
            at = int(np.argmax(signs[1:] != signs[:-1]))
            low, high = inner[at], inner[at + 1]
            if high - low <= 4e-16 * high:
                break
        middle = 0.5 * (low + high)
        if height(np.array([middle]))[0].real > 0.0:
            found.append(float(middle))
    return found


def _gain_crossovers(response: BoundedResponse, flows: float, rtt: float, gain: float) -> list[tuple[float, float]]:
    """(angle, signed angle of −gain · L there) where |gain · L| = 1."""
    lowest = min(response.least_angle((flows, flows), (rtt, rtt)), 0.1 * _crossover_scale(response, flows, rtt, gain))

    def height(theta: np.ndarray) -> np.ndarray:
        return 1.0 + 1j * (gain * np.abs(response.at(theta, flows, rtt)) - 1.0)

    angles = _sign_changes(height, _scan(lowest, pi))
    return [(a, float(np.angle(-gain * response.at(np.array([a]), flows, rtt))[0])) for a in angles]


def _phase_margin(
    response: BoundedResponse, flows: float, rtt: float, gain: float, stable: bool
) -> tuple[float, float]:
    """The phase margin [rad], proved where the loop is stable, and its crossover's angle; pi where there is none."""
    crossovers = _gain_crossovers(response, flows, rtt, gain)
    if not crossovers:
        return pi, float("nan")
    if not stable:
        worst = min(crossovers, key=lambda pair: pair[1])
        return worst[1], worst[0]
    worst = min(crossovers, key=lambda pair: abs(pair[1]))
    lowest = min(response.least_angle((flows, flows), (rtt, rtt)), 0.5 * crossovers[0][0])
    cells = _cells(lowest, (flows, flows), (rtt, rtt))
    start = (abs(worst[1]), np.array([worst[0], np.log(flows), np.log(rtt), 0.0]))
    found = least(response.disc, phase_bound(gain), _nothing, cells, tolerance=1e-4, start=start, loosest=BOX_TOLERANCE)
    return found.found, worst[0]


def _disk_margin(response: BoundedResponse, flows: float, rtt: float, gain: float) -> float:
    lowest = response.least_angle((flows, flows), (rtt, rtt))

    def value(theta: np.ndarray) -> np.ndarray:
        L = gain * response.at(theta, flows, rtt)
        return 2.0 * np.abs(1.0 + L) / np.abs(1.0 - L)

    def narrowed(low: float, high: float) -> tuple[float, float]:
        for _ in range(12):
            grid = np.linspace(low, high, _SCAN)
            best = int(np.argmin(value(grid)))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, _SCAN - 1)]
        middle = 0.5 * (low + high)
        return float(value(np.array([middle]))[0]), middle

    grid = _scan(lowest, pi)
    best = int(np.argmin(value(grid)))
    first, angle = narrowed(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        c, h = cells.centre[0, 0], cells.half[0, 0]
        v, at = narrowed(max(c - 2.0 * h, lowest), min(c + 2.0 * h, pi))
        return v, np.array([at, *cells.centre[0, 1:]])

    start = (first, np.array([angle, np.log(flows), np.log(rtt), 0.0]))
    cells = _cells(lowest, (flows, flows), (rtt, rtt))
    return least(
        response.disc, disk_bound(gain), attain, cells, tolerance=1e-4, start=start, loosest=BOX_TOLERANCE
    ).found


def _delay_margin(response: BoundedResponse, flows: float, rtt: float, gain: float) -> float:
    """Least extra delay [s] at which gain · L is −1 at some angle; inf where |gain · L| stays below 1."""
    crossovers = _gain_crossovers(response, flows, rtt, gain)
    if not crossovers:
        return inf

    def solve(theta: float, extra: float) -> tuple[float, np.ndarray]:
        at = np.array([theta, extra])
        for _ in range(60):
            d_theta, d_extra = 1e-6 * at[0], 1e-6 * max(at[1], response.epoch * 1e-3)
            points = at[0] + np.array([0.0, d_theta, -d_theta, 0.0, 0.0])
            extras = at[1] + np.array([0.0, 0.0, 0.0, d_extra, -d_extra])
            f = 1.0 + gain * response.at(points, flows, rtt, extras)
            columns = ((f[1] - f[2]) / (2.0 * d_theta), (f[3] - f[4]) / (2.0 * d_extra))
            jacobian = np.array([[c.real for c in columns], [c.imag for c in columns]])
            try:
                step = np.linalg.solve(jacobian, [f[0].real, f[0].imag])
            except np.linalg.LinAlgError:
                return inf, at
            step *= min(1.0, 0.3 * at[0] / max(abs(step[0]), 1e-300))
            at = at - step
            if not 0.0 < at[0] <= 1.01 * pi:
                return inf, at
            if np.all(np.abs(step) <= 1e-12 * np.maximum(np.abs(at), 1e-12)):
                break
        left = abs(1.0 + gain * response.at(np.array([at[0]]), flows, rtt, at[1])[0])
        return (float(at[1]), at) if left < 1e-8 and at[1] > 0.0 and at[0] <= pi * (1.0 + 1e-9) else (inf, at)

    starts = [solve(theta, (phase % (2.0 * pi)) * response.epoch / theta) for theta, phase in crossovers]
    value, at = min(starts, key=lambda pair: pair[0])
    # With an integrator |L| is above 1 at low angles, so that some delay always ends stability.
    reach = min(value, max(2.0 * pi * response.epoch / theta for theta, _ in crossovers))
    lowest = min(response.least_angle((flows, flows), (rtt, rtt), reach), 0.5 * crossovers[0][0])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        v, where = min((solve(c[0], max(c[3], 1e-9 * reach)) for c in cells.centre), key=lambda pair: pair[0])
        return v, np.array([where[0], *cells.centre[0, 1:3], where[1]])

    start = (value, np.array([at[0], np.log(flows), np.log(rtt), at[1]]))
    cells = _cells(lowest, (flows, flows), (rtt, rtt), reach)
    return least(
        response.disc,
        touch_bound(gain, 3),
        attain,
        cells,
        tolerance=DELAY_TOLERANCE,
        start=start,
        loosest=BOX_TOLERANCE,
    ).found
