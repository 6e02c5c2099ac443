"""Slopes of a plant's curve with which a law's loop is proved stable, and the references where these are its slopes.

The plant is y = G(q) φ(v), the law's model y = G(q) v: φ is the true curve behind the inverse of the law's own. The
slope ratio k is φ', 1 where the curve is right. Loops M(k) = M₀ + k b c differ by a matrix of rank one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from netctrl.frequency.hinf_norm import discrete_disk_margin, gain_at, level_crossings
from netctrl.laws.tracking.tracking import linearised
from netctrl.model.design.connet import HeldReferences, SlopeProof
from netctrl.model.identified import IdentifiedModel, InputCurve
from netctrl.model.law import LqiLaw, TrackingLaw
from netctrl.model.statespace import StateSpace
from netctrl.synthesis.riccati.tracking import tracking_loop

_POINTS = 81
_SPREAD = 4.0  # standard deviations of the input that are to stay within limits: delays have long tails
_ON_CIRCLE = 1e-6
_MOST = 1e6
_HALVES = 8
_ALPHA = 2.0 / 3.0


class SlopeLoop(NamedTuple):
    """Closed loops M₀ + k b c of one input, for all slope ratios k."""

    open: np.ndarray
    """(N, N) M₀"""
    enters: np.ndarray
    """(N, 1) b"""
    command: np.ndarray
    """(1, N) c"""
    dt: float
    """Sampling interval [s]."""

    def at(self, slope: float) -> np.ndarray:
        """(N, N) M(k)."""
        return self.open + slope * self.enters @ self.command

    def alpha(self, slope: float) -> float:
        """Disk margin at the plant's input; 0 where the loop isn't stable."""
        return discrete_disk_margin(found).alpha if (found := self._difference(slope)) else 0.0

    def keeps(self, slope: float, alpha: float) -> bool:
        """Whether the disk margin is above `alpha`."""
        return bool(found := self._difference(slope)) and _below(found, 2.0 / alpha)

    def _difference(self, slope: float) -> StateSpace | None:
        """S − T; None where the loop isn't stable."""
        closed = self.at(slope)
        if np.abs(np.linalg.eigvals(closed)).max() >= 1.0:
            return None
        return StateSpace(closed, slope * self.enters, 2.0 * self.command, [[1.0]], self.dt)


def _below(system: StateSpace, level: float) -> bool:
    """Whether a stable system's gain is below a level at all frequencies."""
    return gain_at(system, 0.0) < level and not len(level_crossings(system, level))


def slope_loop(plant: StateSpace, law: TrackingLaw) -> SlopeLoop:
    """The loops of a law with one input around its model's plant."""
    loop = tracking_loop(plant, law)
    b, c = np.asarray(loop.difference.B), np.asarray(loop.effort.C)
    return SlopeLoop(np.asarray(loop.response.A) - b @ c, b, c, plant.dt)


def stable_slopes(loop: SlopeLoop) -> tuple[float, float]:
    """Ends of the slope ratios around 1 with which the loop is stable; infinite where a million times is.

    With l(z) = c (z I − M₀)⁻¹ b, an eigenvalue of M(k) is z where k l(z) = 1. On the circle k is real where l(z) =
    l(1/z): at the eigenvalues of the pencil of x z = M₀ x + b w, p = z (M₀ p + b w), c x = c p.
    """
    M, b, c = loop.open, loop.enters, loop.command
    N = len(M)
    E, F = np.zeros((2, 2 * N + 1, 2 * N + 1))
    E[:N, :N], E[N : 2 * N, N : 2 * N], E[N : 2 * N, 2 * N :] = np.eye(N), M, b
    F[:N, :N], F[:N, 2 * N :], F[N : 2 * N, N : 2 * N] = M, b, np.eye(N)
    F[2 * N :, :N], F[2 * N :, N : 2 * N] = c, -c
    with np.errstate(all="ignore"):
        roots = sl.eigvals(F, E)
    on = roots[np.isfinite(roots) & (np.abs(np.abs(roots) - 1.0) < _ON_CIRCLE)]
    found = []
    for z in np.concatenate([np.exp(1j * np.angle(on)), [-1.0]]):
        # 1/l(z) from det(z I - M(k)), whose ratio is finite where z is a pole of l, as the integrator's z = 1 is
        whole = np.linalg.det(z * np.eye(N) - M)
        other = whole - np.linalg.det(z * np.eye(N) - loop.at(1.0))
        if abs(other) > 0.0 and 0.0 <= (k := float((whole / other).real)) < _MOST:
            found.append(k)
    ks = np.array(found)
    return abs(float(ks[ks < 1.0].max(initial=0.0))), float(ks[ks > 1.0].min(initial=np.inf))


def in_sector(loop: SlopeLoop, low: float, high: float) -> bool:
    """Whether the loop is stable for all curves with slopes in [low, high], also where they change with time.

    Source: circle criterion in discrete time (small gain around the middle): Khalil, Nonlinear Systems, 3rd ed., 7.1.
    """
    middle, radius = 0.5 * (low + high), 0.5 * (high - low)
    closed = loop.at(middle)
    if np.abs(np.linalg.eigvals(closed)).max() >= 1.0:
        return False
    return radius == 0.0 or _below(StateSpace(closed, loop.enters, loop.command, [[0.0]], loop.dt), 1.0 / radius)


def input_deviation(model: IdentifiedModel, law: LqiLaw, place: int) -> float:
    """Standard deviation of the law's v for a deviation of 1 of its output `place`, whose noise is the model's."""
    A, C = model.A, model.C[place : place + 1]
    K, V = np.asarray(model.K), np.asarray(model.innovation_covariance)
    spread = sl.solve_discrete_lyapunov(A, K @ V @ K.T)
    whole = float((C @ spread @ C.T)[0, 0] + V[place, place])
    loop = slope_loop(model.state_space, law)
    enters = np.vstack([K, law.L, -law.W])
    states = sl.solve_discrete_lyapunov(loop.at(1.0), enters @ V @ enters.T)
    return float(np.sqrt((loop.command @ states @ loop.command.T)[0, 0] / whole))


class SlopeCheck(NamedTuple):
    """References of a law with a curve, and why they are held or not; k points along the curve."""

    proof: SlopeProof
    points: np.ndarray
    """(k,) v"""
    held: np.ndarray
    """(k,) whether the reference there is proved."""
    loads: np.ndarray
    """(k,) other load that leaves it so [the input's unit]."""


def check_slopes(model: IdentifiedModel, curve: InputCurve, law: LqiLaw) -> SlopeCheck:
    """Prove stability for each reference along a model's curve.

    A reference is held where v, with four standard deviations of its noise to both sides, stays within limits wherever
    the trace allows the curve's ends to be, and the slopes that the trace allows there keep the loop stable (circle
    criterion) with a disk margin of 2/3 at each.
    Load x of other traffic moves the plant's curve to f(u + x): the slope ratio is then f'(u)/f'(u − x).
    """
    loop, place = slope_loop(model.state_space, law), model.outputs.index(curve.output)
    low, high = (float(linearised(law, each)[0]) for each in (law.low, law.high))
    unit = input_deviation(model, law, place)
    points = np.linspace(low, high, _POINTS)
    # An end may lie lower or higher, by what the trace leaves open.
    allowed = np.asarray(curve.level_band)
    low = max(low, float(np.interp(law.low[0], curve.inputs, allowed[:, 1])))
    high = min(high, float(np.interp(law.high[0], curve.inputs, allowed[:, 0])))
    inputs = curve.inverse(points)
    known: list[tuple[float, float, bool]] = []

    def proved(least: float, most: float) -> bool:
        """For a range of slopes: by one within which it is proved, or by one that it holds and isn't."""
        for a, b, yes in known:
            if (a <= least and most <= b) if yes else (least <= a and b <= most):
                return yes
        yes = in_sector(loop, least, most) and loop.keeps(least, _ALPHA) and loop.keeps(most, _ALPHA)
        known.append((least, most, yes))
        return yes

    held, loads, bands = np.zeros(_POINTS, dtype=bool), np.zeros(_POINTS), np.ones((_POINTS, 2))
    middles = curve.linear(0.5 * (curve.inputs[1:] + curve.inputs[:-1]))
    for k, (v, u) in enumerate(zip(points, inputs, strict=True)):
        spread = _SPREAD * unit * float(np.interp(u, curve.inputs, curve.deviation))
        spread = _SPREAD * unit * float(np.interp(curve.inverse(v + spread), curve.inputs, curve.deviation).max())
        pieces = (curve.linearised[1:] >= v - spread) & (curve.linearised[:-1] <= v + spread)
        bands[k] = curve.slope_band[pieces, 0].min(), curve.slope_band[pieces, 1].max()
        held[k] = low <= v - spread and v + spread <= high and proved(*bands[k])
        if held[k]:
            slope = float(np.interp(v, middles, curve.slopes))
            least, most = 0.0, u - float(law.low[0])
            for _ in range(_HALVES):
                load = 0.5 * (least + most)
                there = float(curve.linear(u - load))
                ratio = slope / float(np.interp(there, middles, curve.slopes))
                both = min(bands[k, 0], bands[k, 0] * ratio), max(bands[k, 1], bands[k, 1] * ratio)
                fits = there - spread >= low and proved(*both)
                least, most = (load, most) if fits else (least, load)
            loads[k] = least
    held, proof = _longest(held), None
    if held.any():
        sector = float(bands[held, 0].min()), float(bands[held, 1].max())
        gain = float(model.state_space.steady_gain()[place, 0])
        outputs = law.output_offset[place] + gain * (points[held][[0, -1]] - law.input_offset[0])
        proof = HeldReferences(
            references=(float(outputs.min()), float(outputs.max())),
            inputs=(float(inputs[held][0]), float(inputs[held][-1])),
            sector=sector,
            alpha=min(map(loop.alpha, (*sector, 1.0))),
            load=float(loads[held].min()),
        )
    least, most = stable_slopes(loop)
    stable = least, most if np.isfinite(most) else None
    return SlopeCheck(SlopeProof(stable=stable, held=proof, input_deviation=unit), points, held, loads)


def _longest(held: np.ndarray) -> np.ndarray:
    """The longest run of what is held."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], held, [False]]).astype(int))).reshape(-1, 2)
    kept = np.zeros(len(held), dtype=bool)
    if len(edges):
        start, stop = edges[np.argmax(edges[:, 1] - edges[:, 0])]
        kept[start:stop] = True
    return kept
