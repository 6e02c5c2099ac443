"""Closed loop of a network's laws with bounds over cells of angles, gains and phases, for proofs.

F = det(r + r κ L) with the factors κ_l = k e^(−i phi) of the links that are looked at, and 1 of the others, is 0 where
the closed loop has a pole on the boundary of stability. The rows' factors r take the integrators out, so F is analytic
at the angle 0, too, and outside of the boundary it tends to 1.

The open loop's unstable poles are those of A⁻¹, of the queues alone with windows that don't answer marks. They are
counted by a function with bounds over cells, too (`queues_alone`): f = det A/(s + a)^S for S queues tends to 1. A has
no poles on the right, since a window's own loop, sigma + k (1 + e^(−sigma)), has no zeros there: on the axis its real
part k (1 + cos omega) is 0 at odd multiples of pi alone, where its imaginary part is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, pi
from typing import Any

import numpy as np

from netctrl.plants.aliases import majorant
from netctrl.plants.queue_networks.matrices import Matrix, determinant
from netctrl.plants.queue_networks.response import NetworkResponse, held_share, law_factor, phases
from netctrl.plants.queues.mean_value import MeanValue, coordinate, unknown_phase
from netctrl.plants.queues.queue_laws import SampledPi

_COARSE, _FINE = 1e-4, 1e-8
"""Error bounds of the response with few and with all aliases, over the largest entry of a row."""
_LARGE = 1e-3
"""Half width over angle from which few digits are enough."""
_THETA, _GAIN, _PHASE, _UNKNOWN = range(4)


@dataclass(frozen=True)
class NetworkLoop(NetworkResponse):
    """Loop of a network whose statements over cells of (angle [rad], gain, phase [rad]) can be proved.

    Parameters
    ----------
    moved : tuple of bool
        Laws whose gain and phase the cells' coordinates change; empty: all.
    any_phase : bool
        Whether the instants at which laws act may stand to each other in any way, instead of being the same.
    """

    moved: tuple[bool, ...] = field(default=())
    any_phase: bool = False

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Discs that contain F over cells (k, 3): centres (k,), and shares of the radii, (k, 3)."""
        if not len(centre):
            return np.empty(0, dtype=complex), np.empty((0, 3))
        large = half[:, 0] >= _LARGE * centre[:, 0]
        values, parts = np.empty(len(centre), dtype=complex), np.empty(half.shape)
        for some, coarse in ((large, True), (~large, False)):
            if some.any():
                with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # where no bound is known
                    values[some], parts[some] = self._disc(centre[some], half[some], coarse)
        return values, parts

    def _disc(self, centre: np.ndarray, half: np.ndarray, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
        points = np.concatenate([centre, np.zeros((len(centre), 1))], axis=1)
        widths = np.concatenate([half, np.ones((len(half), 1))], axis=1)
        theta = coordinate(points, widths, _THETA)
        rows, weights = self._rows(theta, centre[:, 0], coarse)
        factor = coordinate(points, widths, _GAIN) * coordinate(points, widths, _PHASE).turn()
        moved = self.moved or (True,) * len(self.laws)
        closed: Matrix = []
        for i, row in enumerate(rows):
            scaled = [each * factor for each in row] if moved[i] else list(row)
            scaled[i] = scaled[i] + weights[i]
            closed.append(scaled)
        found = determinant(closed)
        shares = np.where(widths.T > 0.0, found.slopes[:, :, 0] * widths.T, 0.0).T
        # What is not known is no coordinate of a cell: it counts with the angle, by which it falls.
        parts = shares[:, :3].copy()
        parts[:, _THETA] += shares[:, _UNKNOWN]
        return found.value[:, 0], np.where(np.isfinite(parts), parts, np.inf)

    def _rows(self, theta: MeanValue, centres: np.ndarray, coarse: bool) -> tuple[Matrix, list[MeanValue]]:
        """r L and r over cells."""
        size = len(self.laws)
        most = self.aliases(coarse=True) if self.sampled else 0
        exact = self.weighted(centres, coarse=coarse)
        errors = (_COARSE if coarse else _FINE) * np.abs(exact).max(axis=2)
        near = self._terms(theta + 2.0 * pi * np.arange(-most, most + 1), known=True)
        far = self._terms(theta + 2.0 * pi * np.array([-most, most]), known=False) if most else near
        weights = self._weights(theta)
        rows: Matrix = []
        for i, law in enumerate(self.laws):
            row = []
            for j in range(size):
                value = near[i][j]
                if self.sampled and isinstance(law, SampledPi):
                    bounded, apart = held_bound(law, self.outputs[i], theta, value, far[i][j])
                    value = bounded + apart
                    if self.any_phase and i != j:
                        unsure = unknown_phase(theta, _UNKNOWN)
                        value = bounded + unsure * apart.most
                        entry = MeanValue(bounded.value, value.slopes, theta.half)
                        row.append(_blurred(entry, errors[:, i]))
                        continue
                row.append(_blurred(MeanValue(exact[:, i, j][:, None], value.slopes, theta.half), errors[:, i]))
            rows.append(row)
        return rows, weights

    def _terms(self, theta: MeanValue, *, known: bool) -> Matrix:
        """A⁻¹ B with the readings' ages, and in continuous time the laws; phases that aren't `known` are any."""
        omega = theta * (1.0 / self.epoch)
        turn = phases(omega, known)
        s = omega * 1j
        G = self.plant(s, turn)
        found: Matrix = []
        for i, law in enumerate(self.laws):
            late = turn(self.ages[i])
            factor = late if self.sampled else law_factor(law, self.outputs[i], s, turn) * late
            found.append([theta * 0.0 if isinstance(g, float) else g * factor for g in G[i]])
        return found

    def _weights(self, theta: MeanValue) -> list[MeanValue]:
        if self.sampled:
            return [(-theta.turn()) + 1.0] * len(self.laws)
        found = []
        for law in self.laws:
            if isinstance(law, SampledPi):
                turned = theta * (1j * law.update_s / self.epoch)
                found.append(turned / (turned + 1.0))
            else:
                found.append(theta * 0.0 + 1.0)
        return found

    def rest(self, gain: float = 1.0) -> float:
        """Change of the argument of F at a gain beyond the angle pi, in units of pi; 0 on the unit circle."""
        if self.sampled:
            return 0.0
        end = np.array([pi])
        weights = np.array([weight[0] for weight in self.weights(end)])
        eigenvalues = np.linalg.eigvals(self.at(end)[0])  # of modulus below 1 from there on
        return float(-(np.angle(weights).sum() + np.angle(1.0 + gain * eigenvalues).sum()) / pi)

    def beyond(self) -> float:
        """Bound of the spectral radius of L at the angle pi and above, for laws in continuous time."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            omega = coordinate(np.array([[pi / self.epoch, 1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 0.0, 1.0]]), _THETA)
            terms = self._terms(omega * self.epoch, known=False)
            weights = self._weights(omega * self.epoch)
            sizes = np.array(
                [[(each / weights[i]).most[0, 0] for each in row] for i, row in enumerate(terms)], dtype=float
            )
        return float(np.abs(np.linalg.eigvals(sizes)).max()) if np.isfinite(sizes).all() else np.inf


def held_bound(
    law: SampledPi, x: Any, theta: MeanValue, near: MeanValue, far: MeanValue
) -> tuple[MeanValue, MeanValue]:
    """The main alias of an entry of r L and all others, from values at the near aliases and bounds at far ones.

    What is not known is the last coordinate of the cells, and the angle the first.
    """
    most = near.value.shape[1] // 2
    weight = (-theta.turn()) + 1.0
    counted = (weight * law.proportional + law.integral) * (law.steeper(x) * (1.0 / x))
    share = MeanValue(held_share(theta.value), 0.5 * theta.slopes, theta.half)  # |d/dtheta| is at most 1/2
    middle = MeanValue(near.value[:, most : most + 1], near.slopes[:, :, most : most + 1], near.half)
    angles = theta + 2.0 * pi * np.delete(np.arange(-most, most + 1), most)
    beside = MeanValue(np.delete(near.value, most, axis=1), np.delete(near.slopes, most, axis=2), near.half)
    terms = beside / (angles * 1j)
    ends = far / ((theta + 2.0 * pi * np.array([-most, most])) * 1j)
    # Beyond the near aliases terms and slopes fall as the square of the alias at least.
    edges = np.concatenate([ends.slopes[:, :, :1], terms.slopes, ends.slopes[:, :, 1:]], axis=2)
    slopes = np.stack([_beyond(each, most) for each in edges])
    sizes = np.concatenate([ends.most[:, :1], terms.most, ends.most[:, 1:]], axis=1)
    slopes[-1] += _beyond(sizes, most) - terms.most.sum(axis=1)
    rest = MeanValue(terms.value.sum(axis=1, keepdims=True), slopes[:, :, None], near.half)
    return counted * share * middle, counted * weight * rest


def _beyond(terms: np.ndarray, most: int) -> np.ndarray:
    """Sum over all aliases but the main one of bounds for 1 to `most` on both sides, with edges that bound the rest."""
    inner = terms[:, 1:-1]
    edges = np.concatenate([terms[:, :1], np.zeros((len(terms), 2 * most - 1)), terms[:, -1:]], axis=1)
    return inner.sum(axis=1) + majorant(edges, 2.0)


def _blurred(entry: MeanValue, errors: np.ndarray) -> MeanValue:
    """An entry whose values are known to within errors, (k,)."""
    slopes = entry.slopes.copy()
    slopes[_UNKNOWN] += errors[:, None]
    return MeanValue(entry.value, slopes, entry.half)


_CLOSE = 0.5
"""Distance of det(A/s) from 1 beyond which no frequency is looked at."""


@dataclass(frozen=True)
class QueuesAlone:
    """The function f over angles; theta is omega times `unit_s`."""

    response: NetworkResponse
    unit_s: float

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Discs that contain f over cells (k, 3) of (angle, 1, 0): centres (k,), and shares of the radii, (k, 3)."""
        points = np.concatenate([centre[:, :1], np.zeros((len(centre), 3))], axis=1)
        widths = np.concatenate([half[:, :1], np.zeros((len(half), 2)), np.ones((len(half), 1))], axis=1)
        found = self._ratio(coordinate(points, widths, 0) * (1.0 / self.unit_s), known=True, shift=self._rate)
        parts = np.zeros(half.shape)
        with np.errstate(invalid="ignore"):
            parts[:, 0] = np.where(half[:, 0] > 0.0, found.slopes[0, :, 0] * half[:, 0], 0.0)
        return found.value[:, 0], np.where(np.isfinite(parts), parts, inf)

    @property
    def rest(self) -> float:
        """Change of the argument beyond the angle pi, in units of pi."""
        end, _ = self.disc(np.array([[pi, 1.0, 0.0]]), np.zeros((1, 3)))
        turned = len(self.response.equilibrium.order) * np.angle(1.0 / (1.0 + self._rate * self.unit_s / (1j * pi)))
        near = np.angle(end[0] * np.exp(-1j * turned))  # of det(A/s), which stays near 1
        return float(-(near + turned) / pi)

    def beyond(self) -> float:
        """Bound of |det(A/s) − 1| at the angle pi and above."""
        points, widths = np.array([[pi / self.unit_s, 0.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 0.0, 1.0]])
        found = self._ratio(coordinate(points, widths, 0), known=False, shift=0.0) - 1.0
        return float(found.most[0, 0])

    @property
    def _rate(self) -> float:
        """a [1/s]."""
        return 1.0 / min(group.trip for group in self.response.groups)

    def _ratio(self, omega: MeanValue, *, known: bool, shift: float) -> MeanValue:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # where no bound is known
            s = omega * 1j
            A, _ = self.response.matrices(s, phases(omega, known))
            total = determinant(A)
            inverse = (s + shift).inverse()
            for _ in A:
                total = total * inverse
        return total


def queues_alone(response: NetworkResponse) -> QueuesAlone:
    """The function, with angles up to pi for frequencies beyond which it doesn't turn."""
    found = QueuesAlone(response, max(group.trip for group in response.groups))
    while found.beyond() > _CLOSE:
        found = QueuesAlone(response, 0.5 * found.unit_s)
    return found
