"""Gain, phase, delay and disk margins of one sampled loop, proved from its response on the unit circle.

The open loop has one pole at z = 1 and none outside the unit circle, and small gains are stable. So the first gain at
which the response meets −1 is the limit of stability, and all margins are minima of an objective over angles:

- gain: the least k with k L = −1;
- phase: the least angle of L from the negative axis where |L| = 1;
- disk: the least 2 |1 + L|/|1 − L| = 2/‖S − T‖∞;
- delay: the least extra delay at which L = −1 at some angle, found by Newton's method in both, from each crossover.

All but the last share the discs of one branch and bound, since the discs take nearly all of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import degrees, inf, log10, pi, tan
from typing import NamedTuple

import numpy as np

from netctrl.frequency.branch_bound import (
    Cells,
    Minimum,
    Objective,
    Sector,
    decided,
    disk_bound,
    least,
    least_each,
    phase_bound,
    touch_bound,
)
from netctrl.frequency.sampled_gain import (
    BOX_TOLERANCE,
    LOOSEST,
    SCAN,
    BoundedResponse,
    box_cells,
    crossover_scale,
    gain_crossovers,
    greatest_gain,
    nothing,
    scanned,
)
from netctrl.frequency.sampled_stability import capped, point_objectives

_TOLERANCE = 1e-3
"""Relative gap between the margins of a point and what is proved of them."""
_NEWTON_STEPS = 40
_AT_LOW_ANGLES = 2.0 * tan(0.5 * (0.5 * pi - 0.05))
"""No disk margin is less at angles below `min_angle`: there L is at least π/2 − 0.05 from the negative axis, and a
point at the angle φ from it has 2|1 + L|/|1 − L| of at least 2 tan(φ/2)."""
_FLAT = 1e-6
"""Relative width within which a minimum is flat to rounding."""


class SampledMargins(NamedTuple):
    """Margins of one sampled loop at one gain; the delay and disk margins of an unstable loop are 0."""

    stable: bool
    limit: float
    """Gain at which the loop becomes unstable."""
    gain_margin_db: float
    phase_margin_deg: float
    """Least phase change that takes the loop to the boundary, in (−180, 180]; that of an unstable loop has its sign."""
    delay_margin_s: float
    """Extra delay in the path that the loop tolerates [s]; 0 where it is unstable."""
    disk_margin: float
    """2/‖S − T‖∞; 0 where it is unstable."""
    crossover_rad_s: float
    """Gain crossover of the phase margin; nan where |L| is never 1."""
    phase_crossover_rad_s: float
    """Phase crossover of the limit."""


class PointProofs(NamedTuple):
    """Proofs at one point, from the same discs, of a loop that is stable at the gain 1."""

    upper: Minimum
    """Least factor from 1 on at which the loop meets −1; inf: none."""
    keeps: bool
    """What `box_keeps` proves; False also where it is open."""
    margins: tuple[Minimum | None, Minimum]
    """Phase margin [rad], None where |L| is never 1, and disk margin; see `decided`."""


@lru_cache(maxsize=64)
def point_proofs(response: BoundedResponse, flows: float, rtt: float, factor: float, phase_rad: float) -> PointProofs:
    """Proofs of the gain, phase and disk margins at one point at the gain 1, and of a rule.

    Parameters
    ----------
    response : BoundedResponse
        Stable at this point.
    flows, rtt : float
        N and tau [s].
    factor, phase_rad : float
        The rule that is to be kept, as in `box_keeps`.
    """
    upper, rule = point_objectives(response, flows, rtt, factor, phase_rad)
    asked = [upper] if rule is None else [upper, rule]
    phase, (disk, limit, *kept) = _phase_and_more(response, flows, rtt, 1.0, asked)
    return PointProofs(
        upper=capped(decided(limit, BOX_TOLERANCE)),
        keeps=any(each.proved >= 1.0 for each in kept),
        margins=(phase, disk),
    )


def sampled_margins(
    response: BoundedResponse,
    flows: float,
    rtt: float,
    gain: float,
    limit: Minimum | None = None,
    stable: bool | None = None,
    proofs: PointProofs | None = None,
    *,
    bounded: bool = True,
) -> SampledMargins:
    """All margins of one loop at one gain.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt, gain : float
        N, tau [s], and the factor of the response.
    limit : Least, optional
        `greatest_gain` of stability at this point, if known.
    stable : bool, optional
        Whether the loop is stable at this gain; by default, whether it is below the limit.
    proofs : PointProofs, optional
        At this point, where they are known and the gain is 1.
    bounded : bool
        Whether the response has discs. Without, the limit is to be given, and margins are those of a scan.
    """
    limit = limit or greatest_gain(response, (flows, flows), (rtt, rtt), Sector())
    stable = gain < limit.found if stable is None else stable
    if stable:
        if not bounded:  # those of a scan, with nothing proved
            least_phase = _least_phase(response, flows, rtt, gain)
            lowest = response.min_angle((flows, flows), (rtt, rtt))
            least_disk = _nearness(response, lowest, [(flows, rtt)], _TOLERANCE, gain).start
            phase = None if least_phase is None else Minimum(least_phase[0], *least_phase, 0)
            disk = Minimum(least_disk[0], *least_disk, 0)
        elif proofs is None:
            phase, (disk,) = _phase_and_more(response, flows, rtt, gain)
        else:
            phase, disk = proofs.margins
        disk_margin = decided(disk, BOX_TOLERANCE).found
        worst = (pi, float("nan")) if phase is None else (decided(phase, BOX_TOLERANCE).found, float(phase.where[0]))
    else:
        crossovers = gain_crossovers(response, flows, rtt, gain)
        angle, off = min(crossovers, key=lambda pair: abs(pair[1]), default=(float("nan"), pi))
        disk_margin, worst = 0.0, (off, angle)
    return SampledMargins(
        stable=stable,
        limit=limit.found,
        gain_margin_db=20.0 * log10(limit.found / gain),
        phase_margin_deg=degrees(worst[0]),
        delay_margin_s=_delay_margin(response, flows, rtt, gain, bounded=bounded) if stable else 0.0,
        disk_margin=disk_margin,
        crossover_rad_s=worst[1] / response.epoch,
        phase_crossover_rad_s=float(limit.where[0]) / response.epoch,
    )


def spectral_radius(response: BoundedResponse, flows: float, rtt: float, gain: float) -> float:
    """Largest modulus of the closed loop's eigenvalues over one epoch, by Newton's method from many starts.

    The response continues analytically off the unit circle, so that 1 + gain · L(z) = 0 can be solved for z itself.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt, gain : float
        N, tau [s], and a factor of the response.
    """
    scale = crossover_scale(response, flows, rtt, gain)
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
    # Without a root except far inside, the plant's own echo is slowest; 0 means that no root was found.
    return float(np.exp(-roots.imag.min())) if roots.size else 0.0


def _phase_and_more(
    response: BoundedResponse, flows: float, rtt: float, gain: float, more: Sequence[Objective] = ()
) -> tuple[Minimum | None, list[Minimum]]:
    """Phase margin [rad], None where |gain · L| is never 1; disk margin and more objectives; from the same discs."""
    crossovers = gain_crossovers(response, flows, rtt, gain)
    lowest = response.min_angle((flows, flows), (rtt, rtt))
    objectives = [_nearness(response, lowest, [(flows, rtt)], _TOLERANCE, gain), *more]
    start = _least_phase(response, flows, rtt, gain)
    if start is None:
        return None, least_each(response.disc, objectives, box_cells(lowest, (flows, flows), (rtt, rtt)))
    cells = box_cells(min(lowest, 0.5 * crossovers[0][0]), (flows, flows), (rtt, rtt))
    phase = Objective(phase_bound(gain), nothing, _TOLERANCE, start)
    found, *others = least_each(response.disc, [phase, *objectives], cells)
    return found, others


def _least_phase(response: BoundedResponse, flows: float, rtt: float, gain: float) -> tuple[float, np.ndarray] | None:
    """Least angle from the negative axis at a gain crossover [rad], and its place; None where |gain · L| is never 1."""
    crossovers = gain_crossovers(response, flows, rtt, gain)
    if not crossovers:
        return None
    angle, off = min(crossovers, key=lambda pair: abs(pair[1]))
    return abs(off), np.array([angle, np.log(flows), np.log(rtt), 0.0])


def box_disk_margin(
    response: BoundedResponse,
    flows: tuple[float, float],
    rtt: tuple[float, float],
    starts: Sequence[tuple[float, float]],
    tolerance: float = BOX_TOLERANCE,
    below: float = inf,
) -> Minimum:
    """Least 2|1 + L|/|1 − L| over all angles and a whole box, with a proof: the disk margin where L is stable.

    Parameters
    ----------
    response : BoundedResponse
    flows, rtt : (float, float)
        Ranges of N and tau [s]; a point has both ends equal.
    starts : sequence of (float, float)
        Points (N, tau) of the box to begin with.
    tolerance : float
        Relative gap between the proved bound and the attained value.
    below : float
        No value from here on is looked for: it is then what was found.

    Returns
    -------
    Minimum
        `where` holds angle, ln N, ln tau and 0. Where the limit on cells is reached, the proved bound is less close.

    Raises
    ------
    NetctrlError
        The loop passes so near −1 that nothing above 0 is proved.

    Source: Seiler, Packard, Gahinet, IEEE Control Systems Magazine 40 (2020) 78-95, with skew 0: 2/‖S − T‖∞.
    """
    lowest = response.min_angle(flows, rtt)
    bound, attain, _, start = _nearness(response, lowest, starts, tolerance, 1.0)
    start = min(start, (below, np.zeros(4)), key=lambda each: each[0])
    cells = box_cells(lowest, flows, rtt)
    loosest = max(BOX_TOLERANCE, tolerance) if flows[0] == flows[1] and rtt[0] == rtt[1] else LOOSEST
    found = least(response.disc, bound, attain, cells, tolerance=tolerance, start=start, loosest=loosest)
    return found._replace(proved=min(found.proved, _AT_LOW_ANGLES))


def _nearness(
    response: BoundedResponse, lowest: float, starts: Sequence[tuple[float, float]], tolerance: float, gain: float
) -> Objective:
    """2|1 + k L|/|1 − k L| at angles from `lowest` on, from what it is at some points."""

    def ratio(values: np.ndarray) -> np.ndarray:
        return 2.0 * np.abs(1.0 + gain * values) / np.abs(1.0 - gain * values)

    def nearest(n: float, tau: float, grid: np.ndarray, values: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """Least ratio between the ends of a grid of angles; `values` are those of L, if known."""
        while True:
            best = int(np.argmin(ratio(response.at(grid, n, tau) if values is None else values)))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
            if high - low <= _FLAT * high:
                break
            grid, values = np.linspace(low, high, SCAN), None
        angle = float(0.5 * (low + high))
        value = float(ratio(response.at(np.array([angle]), n, tau))[0])
        return value, np.array([angle, np.log(n), np.log(tau), 0.0])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        c, h = cells.centre[0], cells.half[0]
        around = np.linspace(max(c[0] - 2.0 * h[0], lowest), min(c[0] + 2.0 * h[0], pi), SCAN)
        if (c[1:3] == start[1][1:3]).all() and around[0] <= start[1][0] <= around[-1]:
            return start  # the same minimum
        return nearest(float(np.exp(c[1])), float(np.exp(c[2])), around)

    start = min((nearest(*point, *scanned(response, *point)) for point in starts), key=lambda pair: pair[0])
    return Objective(disk_bound(gain), attain, tolerance, start)


def _delay_margin(response: BoundedResponse, flows: float, rtt: float, gain: float, *, bounded: bool = True) -> float:
    """Least extra delay [s] at which gain · L is −1 at some angle; inf where |gain · L| stays below 1."""
    crossovers = gain_crossovers(response, flows, rtt, gain)
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
    if not bounded:
        return value
    # With an integrator |L| is above 1 at low angles, so some delay always destabilises the loop.
    reach = min(value, max(2.0 * pi * response.epoch / theta for theta, _ in crossovers))
    lowest = min(response.min_angle((flows, flows), (rtt, rtt), reach), 0.5 * crossovers[0][0])

    def attain(cells: Cells) -> tuple[float, np.ndarray]:
        if (np.abs(cells.centre[0] - start[1]) <= cells.half[0])[[0, 3]].all():
            return start  # the same solution
        v, where = min((solve(c[0], max(c[3], 1e-9 * reach)) for c in cells.centre), key=lambda pair: pair[0])
        return v, np.array([where[0], *cells.centre[0, 1:3], where[1]])

    start = (value, np.array([at[0], np.log(flows), np.log(rtt), at[1]]))
    cells = box_cells(lowest, (flows, flows), (rtt, rtt), reach)
    return least(
        response.disc, touch_bound(gain, 3), attain, cells, tolerance=_TOLERANCE, start=start, loosest=BOX_TOLERANCE
    ).found
