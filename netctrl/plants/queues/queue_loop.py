"""Loop of a queue with bounds over cells of angles, flows, round-trip times and extra delays, for proofs.

A law in continuous time has frequencies without end. `tail_bound` bounds its response beyond one of them. With u =
omega R_i and the damping k_i = a/w_i of class i, for u > 2 k_i,

    |Q_i| <= k_i/(u − 2 k_i),   |V_i| <= 2 k_i/(u − 2 k_i)   (AIMD),   |Q_i| <= k_i g/u²,   V_i = 0   (DCTCP),

and for Cubic |Q_i| <= k_i/u, |V_i| <= 2 k_i/u with the greatest k_i = |sigma Q_i|; for senders that acknowledgements
clock `clocked_most`, where the denominator is the mean of 1/R_i. With shares y_i that sum to 1 the denominator of δD/δx
is at least omega − max (1 + |V_i|)/R_i. So

    |L| <= (dx/dD) max (power_i k_i/x / (u − 2 k_i)) / (omega − max (1 + |V_i|)/R_i) / |1 + i omega/corner|.

It falls with omega; over a box its parts are taken where they are greatest.
"""

from __future__ import annotations

from math import hypot, inf, pi
from typing import Any

import numpy as np

from netctrl.plants.aliases import majorant
from netctrl.plants.queues.clocked_response import Means, clocked_most
from netctrl.plants.queues.high_frequencies import Equilibrium, dropped_factor
from netctrl.plants.queues.mean_value import MeanValue, coordinate, mean_fall, mean_turn, unknown_phase
from netctrl.plants.queues.queue_laws import MOST_SPACED, Averaged, SampledPi, WindowClass
from netctrl.plants.queues.queue_response import EDGE, QueueResponse
from netctrl.plants.queues.several_trips import sharp_angles

BLOCK = 30_000
"""Numbers in an array of a block: what is computed from them stays in the processor's cache."""
_COARSE, _FINE = 1e-5, 5e-8
"""Relative error bounds of the response with few and with all aliases."""


class QueueLoop(QueueResponse):
    """Loop of a queue: a `BoundedResponse`, whose statements over boxes can be proved, but for `several_clocks`."""

    __slots__ = ()

    def sharp_angles(self, flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
        """Angles around which the response bends more sharply than by its delays, at k points (N, tau [s]): (k, n)."""
        if not self.several_clocks:
            return np.empty((np.broadcast(flows, rtt).size, 0))
        x = np.minimum(np.maximum(self.output(flows, rtt), self.within[0]), self.within[1])
        point = self.point(x[:, None], flows[:, None], rtt[:, None])
        return sharp_angles([k.stretch for k in self.classes], point.trips, point.shares, self.epoch)

    def starts(self, flows: tuple[float, float], rtt: tuple[float, float]) -> list[tuple[float, float]]:
        """Points (N, tau) of a box within the loop's range: its corners, and where its edges leave the range."""
        found = []
        for tau in dict.fromkeys(rtt):
            low, high = (self.flows(end, tau) if 0.0 < end < inf else end for end in self.within)
            low, high = max(flows[0], low * (1.0 - EDGE)), min(flows[1], high * (1.0 + EDGE))
            if low <= high:
                found += [(float(n), tau) for n in {low, high}]
        if rtt[0] < rtt[1]:
            for n in flows:  # the output falls with the round-trip time
                low, high = self.output(n, rtt[1]), self.output(n, rtt[0])
                found += [(n, self._rtt(end, n, rtt)) for end in self.within if low < end < high]
        return found

    def _rtt(self, x: float, flows: float, rtt: tuple[float, float]) -> float:
        """Base round trip in a range at which N flows have the output x, by bisection."""
        low, high = rtt
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.flows(x, middle) < flows else (low, middle)
        return 0.5 * (low + high)

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Discs that contain L over cells of (theta, ln N, ln tau, extra delay [s]): centres (k,), shares of the radii
        and of a logarithm's range, (k, 4). Angles stay above 0."""
        if self.several_clocks:
            raise TypeError("acknowledgements clock flows of several round-trip times: no bound over cells is known")
        alike = not half[:, 1:3].any() and bool((centre[:, 1:3] == centre[:1, 1:3]).all())
        one = slice(1) if len(centre) > 1 and alike else slice(None)  # an equilibrium for all cells, or one for each
        flows, rtt = np.exp(centre[one, 1]), np.exp(centre[one, 2])
        x = self.output(flows, rtt)
        moves = half[one, 1:3] * _output_slopes(self, x, rtt, half[one, 1:3])
        spread = np.exp(moves.sum(axis=1))
        inside = np.broadcast_to((x * spread >= self.within[0]) & (x / spread <= self.within[1]), len(centre))
        values, parts = np.zeros(len(centre), dtype=complex), np.zeros(half.shape)
        stretch = np.zeros(half.shape)
        rows = np.flatnonzero(inside)
        shortest = float(np.exp((centre - half)[:, 2].min(initial=0.0)))
        few, most = (self.aliases(shortest, coarse=coarse) for coarse in (True, False))
        # Large cells need few digits.
        large = half[:, 0] >= 1e-3 * centre[:, 0]
        for some, aliases in ((rows[large[rows]], few), (rows[~large[rows]], most)):
            if some.size:
                known = self.placed_at(*(_rows(a, some) for a in (x, flows, rtt)), aliases)
                row = np.zeros(len(some), dtype=int) if len(x) == 1 else np.arange(len(some))
                values[some] = known.at(centre[some, 0], row, centre[some, 3])
        size = max(1, BLOCK // (2 * few[0] + 1) // 2)
        for start in range(0, len(rows), size):
            i = rows[start : start + size]
            with np.errstate(all="ignore"):  # where no bound is known
                parts[i] = _shares(self, centre[i], half[i], _rows(x, i), few[0])
        parts[rows] = np.where(_rows(self.solved(x), rows)[:, None], parts[rows], inf)
        parts[rows, 0] += np.where(large, _COARSE, _FINE)[rows] * np.abs(values[rows])
        stretch[rows, 1:3] = _rows(moves, rows)
        return values, np.where(np.isfinite(parts), parts, inf), stretch


def _rows(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows of an array, or its only one."""
    return values if len(values) == 1 else values[rows]


def _output_slopes(loop: QueueResponse, x: np.ndarray, rtt: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Bounds of |∂ ln x/∂ ln N| and |∂ ln x/∂ ln tau| over cells with these half widths, (k, 2)."""
    least = min(k.sender.exponents[0] * k.power for k in loop.classes)
    falls = max(k.sender.trip_exponents[1] for k in loop.classes)
    whole = np.stack([np.ones_like(rtt), _based(loop, rtt, half[:, 1])[:, 1]], axis=1)
    bounds = whole * [1.0 / least, falls / least]
    if isinstance(loop.law, Averaged) or not any(k.sender.curve for k in loop.classes):
        return bounds
    moved = (bounds * half).sum(axis=1)  # how far ln x can move, by what holds everywhere
    near = [
        k.sender.exponents_near(
            k.factor * x**k.power, loop.trip(k, rtt, loop.standing(1.0)), k.power * moved, half[:, 1]
        )
        for k in loop.classes
    ]
    least = np.min([e * k.power for (e, _), k in zip(near, loop.classes, strict=True)], axis=0)
    return whole * np.stack([1.0 / least, np.max([g for _, g in near], axis=0) / least], axis=1)


def _based(loop: QueueResponse, rtt: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Bounds over cells of the least and greatest share of a round trip that is its base, (k, 2)."""
    if isinstance(loop.law, Averaged):
        return np.stack([np.zeros_like(rtt), np.ones_like(rtt)], axis=1)
    found = np.stack([_base(loop, k, rtt * np.exp(sign * half)) for k in loop.classes for sign in (-1.0, 1.0)])
    return np.stack([found.min(axis=0), found.max(axis=0)], axis=1)


def _base(loop: QueueResponse, k: WindowClass, rtt: Any) -> Any:
    return rtt * k.stretch / loop.trip(k, rtt, loop.standing(1.0))  # for a law with a target


def _share_slopes(
    loop: QueueResponse, rtt: np.ndarray, half: np.ndarray, x: tuple[np.ndarray, np.ndarray]
) -> list[np.ndarray]:
    """Bounds of |∂ ln y_i/∂ ln N| and |∂ ln y_i/∂ ln tau| over cells, (2, k) for each class.

    y_i ~ N x^(−e_i)/R_i^g_i and Σ y_i = 1, so ∂ ln x = (∂ ln N − Σ y g b ∂ ln tau)/Σ y e with the bases b of round
    trips; g_i is 1, and e_i a constant, for all but Cubic. With an averaging law R_i grows with x, too: e_i becomes
    e_i + g_i l_i with l_i of at most the elasticity of the delay between both `x`.
    """
    if len(loop.classes) == 1:
        return [np.zeros((2, len(rtt)))]
    exponents = [tuple(e * k.power for e in k.sender.exponents) for k in loop.classes]
    flattest, steepest = min(e[0] for e in exponents), max(e[1] for e in exponents)
    falls = [k.sender.trip_exponents for k in loop.classes]
    low, high = _based(loop, rtt, half).T
    low, high = low * min(g[0] for g in falls), high * max(g[1] for g in falls)
    found = []
    for k, e, g in zip(loop.classes, exponents, falls, strict=True):
        least, most = e[0] / steepest, e[1] / flattest
        if isinstance(loop.law, Averaged):
            bound = g[1] + max(g[1], 1.0) * (most + g[1] * _elasticity(loop.law, *x) / flattest)
            found.append(np.stack([bound, bound]))
            continue
        own = np.stack([_base(loop, k, rtt * np.exp(sign * half)) for sign in (-1.0, 1.0)])
        by_rtt = np.maximum(most * high - g[0] * own.min(axis=0), g[1] * own.max(axis=0) - least * low)
        found.append(np.stack([np.full(len(rtt), max(most - 1.0, 1.0 - least)), by_rtt]))
    return found


def _elasticity(law: Averaged, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Greatest |∂ ln D/∂ ln x| between two x, (k,); inf where the line doesn't reach so far."""
    known = np.minimum(high, MOST_SPACED) if law.spaced else high
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.maximum(law.elasticity(low), law.elasticity(known))
    return np.where((law.delay(low) > 0.0) & (known == high), found, inf)


def _shares(loop: QueueResponse, centre: np.ndarray, half: np.ndarray, x: np.ndarray, most: int) -> np.ndarray:
    """Each coordinate's bound of |∂(x L)|/x times its half width, (k, 4)."""
    # A fifth coordinate, of half width 1, stands for phases of which only the modulus is known.
    padded = np.concatenate([half, np.ones((len(half), 1))], axis=1)
    points = np.concatenate([centre, np.zeros((len(half), 1))], axis=1)
    wide = np.flatnonzero(half.any(axis=0))  # the others have no shares
    if not wide.size:
        return np.zeros(half.shape)
    four = [coordinate(points, padded, i) for i in range(4)]
    flows, rtt = (np.exp(centre[: len(x), i : i + 1]) for i in (1, 2))
    middle = loop.point(x[:, None], flows, rtt)  # the same in a whole cell, of a point

    def bounded(angles: np.ndarray, chosen: np.ndarray, *, known: bool) -> tuple[MeanValue, Equilibrium, MeanValue]:
        theta, ln_flows, ln_rtt, extra = (MeanValue(u.value, u.slopes[chosen], u.half[chosen]) for u in four)
        over = half[:, 1:3].any()
        point = _over_cells(loop, middle, x, (ln_flows, ln_rtt), half[:, 1:3]) if over else middle
        return theta, point, _bounded(loop, theta + angles, point, extra, known=known)

    law = loop.law
    turns = 2.0 * pi * np.arange(-most, most + 1) if isinstance(law, SampledPi) else np.zeros(1)
    *_, near = bounded(turns, wide, known=True)
    found = near.slopes
    if isinstance(law, SampledPi):
        theta, point, ends = bounded(turns[[0, -1]], np.append(wide, 4), known=False)
        edges = ends.slopes
        # Slopes fall as the square of the alias at least: angles and delays turn terms that fall as its cube.
        inner = np.concatenate([found[:, :, 1:-1], np.zeros_like(found[:1, :, 1:-1])])  # no slope by the fifth
        size = np.concatenate([edges[:, :, :1], inner, edges[:, :, 1:]], axis=2)
        sums = np.stack([majorant(each, 2.0) for each in size])
        total = MeanValue(near.value.sum(axis=1, keepdims=True), sums[:, :, None], ends.half)
        counted = (1.0 - theta.turn()) * law.proportional + law.integral
        found = (counted * total * (1.0 / loop.epoch)).slopes
        if loop.drops:
            found[:-1][wide == 3] += (counted * _drops_by_delay(loop, centre, half, point)).most
    parts = np.zeros(half.shape)
    parts[:, wide] = np.where(half[:, wide] > 0.0, found[: len(wide), :, 0].T * half[:, wide], 0.0)
    steeper = law.steeper(x) if isinstance(law, SampledPi) else 1.0  # its logarithm moves less than that of x
    return parts * (steeper / x)[:, None]


def _drops_by_delay(loop: QueueResponse, centre: np.ndarray, half: np.ndarray, point: Equilibrium) -> np.ndarray:
    """Bound of |∂/∂(extra delay)| of (1/d) Σ_m e^(−s_m late)/s_m² times its factor, (k, 1).

    Σ_m e^(−s_m late)/s_m is d e^(−i theta n)/(1 − e^(−i theta)) with a whole number n; bounds of its terms have no sum.
    """
    factor = dropped_factor(loop, point)
    most = factor.most if isinstance(factor, MeanValue) else np.abs(factor)
    lowest = np.maximum(centre[:, :1] - half[:, :1], 0.0)
    return most / (2.0 * np.sin(0.5 * np.minimum(lowest, pi)))


def _over_cells(
    loop: QueueResponse, at: Equilibrium, x: np.ndarray, logarithms: tuple[MeanValue, MeanValue], half: np.ndarray
) -> Equilibrium:
    """Equilibria over cells of ln N and ln tau with these half widths, (k, 2), from those at their centres."""
    ln_flows, ln_rtt = logarithms
    rtt = ln_rtt.exp()
    by = _output_slopes(loop, x, rtt.value[:, 0], half)
    ln_x = MeanValue(np.log(x)[:, None], by[:, 0, None] * ln_flows.slopes + by[:, 1, None] * ln_rtt.slopes, rtt.half)
    standing = loop.standing(ln_x.exp())
    trips = [loop.trip(k, rtt, standing) for k in loop.classes]
    dampings, modes = [], []
    for k, trip in zip(loop.classes, trips, strict=True):
        ln_window, mode = k.sender.mode(ln_x * k.power + float(np.log(k.factor)), trip.log() if k.sender.curve else 0.0)
        dampings.append((-ln_window + float(np.log(k.sender.increase))).exp())
        modes.append(mode)
    spread = np.exp((half * by).sum(axis=1))
    slopes = _share_slopes(loop, rtt.value[:, 0], half[:, 1], (x / spread, x * spread))
    shares = [
        MeanValue(np.log(y), n[0][:, None] * ln_flows.slopes + n[1][:, None] * ln_rtt.slopes, rtt.half).exp()
        for y, n in zip(at.shares, slopes, strict=True)
    ]
    return Equilibrium(standing, loop.late(standing), loop.law.rise(ln_x.exp()), trips, dampings, shares, modes)


def _bounded(loop: QueueResponse, angle: MeanValue, point: Equilibrium, extra: MeanValue, *, known: bool) -> MeanValue:
    """Terms over cells; without `known` phases are taken as unknown, so that bounds fall with the angle."""
    omega = angle * (1.0 / loop.epoch)
    turned = [[(omega * lag).turn() for lag in lags] for lags in point.lags(loop.classes)]
    echoes = turned if known else [[_with_slopes(unknown_phase(e, -1), e) for e in each] for each in turned]
    marks = [(omega * delay).turn() for delay in loop.delays(point, extra)]
    if loop.drops and isinstance(loop.law, SampledPi):  # without what `_drops_by_delay` bounds
        marks[-1] = (omega * (point.late + extra.value)).turn()
    s = 1j * omega
    return loop.term(s, point, echoes, marks, _means(loop, s, point, turned) if known else None)


def _means(loop: QueueResponse, s: MeanValue, point: Equilibrium, turned: list) -> list[Means | None]:
    """Of each class whose sender acknowledgements clock."""
    found: list[Means | None] = []
    for k, trip, lags, phases in zip(loop.classes, point.trips, point.lags(loop.classes), turned, strict=True):
        if not k.sender.spread:
            found.append(None)
            continue
        means = [mean_turn(s * lag, phase) for lag, phase in zip(lags, phases, strict=True)]
        if not k.sender.notice:
            found.append(Means(means))
            continue
        path = trip - (k.wait(point.standing) if loop.marked_leaving else 0.0)
        turn = (s * -1j * path).turn()
        found.append(Means(means, mean_fall(s * lags[0], means[0]), mean_turn(s * path, turn) * (path / trip)))
    return found


def _with_slopes(bounded: MeanValue, turned: MeanValue) -> MeanValue:
    """A phase whose value is unknown and whose slopes are those of another."""
    return MeanValue(bounded.value + 0.0 * turned.value, bounded.slopes + turned.slopes, bounded.half)


def tail_bound(loop: QueueResponse, omega: float, flows: tuple[float, float], rtt: tuple[float, float]) -> float:
    """Bound of |L| at `omega` and above for every point of a box in the loop's range; inf where it says nothing.

    Parameters
    ----------
    loop : QueueResponse
        With an averaging law.
    omega : float
        [rad/s]
    flows, rtt : (float, float)
        Ranges of N and of tau [s].
    """
    law = loop.law
    if not isinstance(law, Averaged):
        raise TypeError("a law that acts at intervals has no response beyond its angles")
    low = max(float(loop.output(flows[0], rtt[1])), loop.within[0])
    high = min(float(loop.output(flows[1], rtt[0])), loop.within[1])
    if low > high:
        return 0.0
    rise = max(float(law.rise(x)) for x in (low, high))
    if loop.clocked:
        return rise * _clocked(loop, omega, rtt, (low, high)) / hypot(1.0, omega / law.corner)
    moved, turned = 0.0, 0.0
    for k in loop.classes:
        trips = [float(loop.trip(k, tau, loop.standing(x))) for tau, x in zip(rtt, (low, high), strict=True)]
        steepness = [(float(k.sender.fastest(k.factor * x**k.power, R)), x, R) for x in (low, high) for R in trips]
        fastest = max(each[0] for each in steepness)
        trip = trips[0]
        room = omega * trip - (0.0 if k.sender.scalable or k.sender.curve else 2.0 * fastest)
        if room <= 0.0:
            return inf
        steepest = max(k.power * fast / x for fast, x, _ in steepness)
        slow = k.sender.averaging / room if k.sender.averaging else 1.0
        moved = max(moved, steepest / room * min(slow, 1.0))
        if k.queued:
            turned = max(turned, (1.0 + (0.0 if k.sender.scalable else 2.0 * fastest / room)) / trip)
    if omega <= turned:
        return inf
    return rise * moved / (omega - turned) / hypot(1.0, omega / law.corner)


def _clocked(loop: QueueResponse, omega: float, rtt: tuple[float, float], x: tuple[float, float]) -> float:
    """Bound of |δD/δx| at `omega` and above [s]."""
    most, longest = 0.0, 0.0
    for k in loop.classes:
        trips = [float(loop.trip(k, tau, loop.standing(each))) for tau, each in zip(rtt, x, strict=True)]
        # Each part of the bound is greatest at an end of the range.
        bounds = [k.power * clocked_most(k.sender, k.factor * each**k.power, omega * trips[0]) / each for each in x]
        most, longest = max(most, *bounds), max(longest, *trips)
    return longest * most
