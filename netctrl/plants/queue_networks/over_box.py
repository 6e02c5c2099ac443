"""Closed loop of a network with bounds over cells of angles, gains, phases and operating points, for proofs.

F = det(r + r κ L) as in `netctrl.plants.queue_networks.bounded`, where round-trip times, numbers of flows and rates
vary too, with the equilibria over cells of `netctrl.plants.queue_networks.cells`. All laws act at one interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np

from netctrl.plants.queue_networks.bounded import held_bound
from netctrl.plants.queue_networks.cells import CellEquilibria, NetworkCells
from netctrl.plants.queue_networks.group import GroupResponse
from netctrl.plants.queue_networks.matrices import Matrix, determinant, solved
from netctrl.plants.queue_networks.response import NetworkResponse, link_matrices, phases
from netctrl.plants.queues.mean_value import MeanValue, coordinate

_THETA, _GAIN, _PHASE, _FIRST = range(4)
_AT_ONCE, _PIECES = 1000, 8
"""Cells, and pieces of a cell's gains or phases."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxLoop:
    """Loop of a network over a box around an operating point.

    Parameters
    ----------
    response : NetworkResponse
        At a point of the box; its links queue in the whole box.
    cells : NetworkCells
        Equilibria over the box.
    shortest_s : float
        Shortest round trip in the box [s].
    """

    response: NetworkResponse
    cells: NetworkCells
    shortest_s: float

    def disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Discs over cells (k, 3 + d) of (angle, gain, phase, logarithms of the coordinates): centres (k,), and shares
        of the radii (k, 3 + d). They contain F over the part of the cell's gains and phases in which 0 is closest.

        Where such a disc leaves 0 out, F isn't 0 in the whole cell.
        """
        parts = [self._disc(centre[i : i + _AT_ONCE], half[i : i + _AT_ONCE]) for i in range(0, len(centre), _AT_ONCE)]
        if not parts:
            return np.empty(0, dtype=complex), np.empty(half.shape)
        return np.concatenate([each[0] for each in parts]), np.concatenate([each[1] for each in parts])

    def _disc(self, centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ranges, rows = np.unique(
            np.concatenate([centre[:, _FIRST:], half[:, _FIRST:]], axis=1), axis=0, return_inverse=True
        )
        d = ranges.shape[1] // 2
        found = self.cells.at(ranges[:, :d], ranges[:, d:])
        found = CellEquilibria(*(each[rows.ravel()] for each in found))
        values, shares = np.zeros(len(centre), dtype=complex), np.zeros(half.shape)
        unknown = ~found.known  # the equilibrium first: the box is divided and not the angle
        shares[unknown, _FIRST:] = np.where(half[unknown, _FIRST:] > 0.0, np.inf, 0.0)
        shares[unknown & ~np.isinf(shares).any(axis=1), _THETA] = np.inf
        some = found.known
        if some.any():
            with np.errstate(all="ignore"):  # where no bound is known
                values[some], shares[some] = self._closed(
                    centre[some], half[some], CellEquilibria(*(each[some] for each in found))
                )
        return values, np.where(np.isfinite(shares), shares, np.inf)

    def _closed(self, centre: np.ndarray, half: np.ndarray, found: CellEquilibria) -> tuple[np.ndarray, np.ndarray]:
        """F over cells whose equilibria are known."""
        columns = [_THETA, *range(_FIRST, centre.shape[1])]
        points = np.concatenate([centre[:, columns], np.zeros((len(centre), 1))], axis=1)
        widths = np.concatenate([half[:, columns], np.ones((len(centre), 1))], axis=1)
        rows, weight = self._rows(coordinate(points, widths, 0), found)
        # Gain and phase are coordinates of the determinant alone, and narrower than the cell: it has several pieces.
        points = np.concatenate([centre, np.zeros((len(centre), 1))], axis=1)
        widths = np.concatenate([half, np.ones((len(centre), 1))], axis=1)
        widths[:, [_GAIN, _PHASE]] /= _PIECES
        pieces = np.arange(1 - _PIECES, _PIECES, 2)
        gain, phase = (coordinate(points, widths, at) + widths[:, at, None] * pieces for at in (_GAIN, _PHASE))
        factor = gain * phase.turn()
        kept = [*columns, centre.shape[1]]
        weight = _embedded(weight, kept, factor)
        closed: Matrix = []
        for i, row in enumerate(rows):
            scaled = [_embedded(each, kept, factor) * factor for each in row]
            scaled[i] = scaled[i] + weight
            closed.append(scaled)
        total = determinant(closed)
        worst = np.argmin(np.where(np.isfinite(total.radius), total.least, -np.inf), axis=1)
        slopes = np.take_along_axis(total.slopes, worst[None, :, None], axis=2)[:, :, 0]
        shares = np.where(widths.T > 0.0, slopes * widths.T, 0.0).T
        # What is not known is no coordinate of a cell: it counts with the angle, by which it falls.
        parts = shares[:, :-1].copy()
        parts[:, _THETA] += shares[:, -1]
        return np.take_along_axis(total.value, worst[:, None], axis=1)[:, 0], parts

    def _rows(self, theta: MeanValue, found: CellEquilibria) -> tuple[Matrix, MeanValue]:
        """r L and r over cells of the angle and the coordinates."""
        response = self.response
        d = response.epoch
        most = int(np.ceil(5.0 + 8.0 * d / (pi * self.shortest_s)))
        x = [_logarithm(found.ln_x[:, at], found.by[:, at], theta).exp() for at in range(found.ln_x.shape[1])]
        groups = self._groups(theta, found)

        def plant(angles: MeanValue, known: bool) -> Matrix:
            omega = angles * (1.0 / d)
            s, turn = omega * 1j, phases(omega, known)
            A, B = link_matrices(groups, len(x), s, turn)
            G = solved(A, [[B[row][k] for k in response.marking] for row in range(len(A))])
            return [
                [theta * 0.0 if isinstance(g, float) else g * turn(response.ages[i]) for g in G[row]]
                for i, row in enumerate(response.marking)
            ]

        near = plant(theta + 2.0 * pi * np.arange(-most, most + 1), known=True)
        far = plant(theta + 2.0 * pi * np.array([-most, most]), known=False)
        rows: Matrix = []
        for i, at in enumerate(response.marking):
            held = [held_bound(response.laws[i], x[at], theta, near[i][j], far[i][j]) for j in range(len(near))]
            rows.append([main + others for main, others in held])
        return rows, (-theta.turn()) + 1.0

    def _groups(self, theta: MeanValue, found: CellEquilibria) -> list[GroupResponse]:
        """Groups of flows as functions over the cells."""
        groups = []
        for i, group in enumerate(self.response.groups):
            sender = group.sender
            trip = _logarithm(np.log(found.trips[:, i]), found.trips_by[:, i], theta)
            marked = _logarithm(found.ln_marked[:, i], found.marked_by[:, i], theta)
            ln_damping = log(sender.increase) - np.log(found.windows[:, i])
            whole = trip.exp()

            def positive(value: np.ndarray, by: np.ndarray) -> MeanValue:
                return _logarithm(np.log(value), by, theta).exp()

            groups.append(
                GroupResponse(
                    sender=sender,
                    trip=whole,
                    damping=_logarithm(ln_damping, found.windows_by[:, i], theta).exp(),
                    at=group.at,
                    shares=tuple(positive(found.shares[:, i, at], found.shares_by[:, i, at]) for at in group.at),
                    queued=group.queued,
                    ahead=group.ahead,
                    back=tuple(whole + (back - group.trip) for back in group.back),  # queues stand at their targets
                    marks=tuple(
                        positive(found.marks[:, i, at], found.marks_by[:, i, at]) if marks else 0.0
                        for at, marks in zip(group.at, group.marks, strict=True)
                    ),
                    mode=sender.mode(marked, trip)[1],
                )
            )
        return groups


def _logarithm(value: np.ndarray, by: np.ndarray, theta: MeanValue) -> MeanValue:
    """Function over cells with values (k,) and bounds of its slopes by the coordinates (k, d)."""
    slopes = np.zeros((len(theta.half), len(value), 1))
    slopes[1:-1, :, 0] = by.T
    return MeanValue(value[:, None], slopes, theta.half)


def _embedded(some: MeanValue, kept: list[int], like: MeanValue) -> MeanValue:
    """A function of some of the coordinates as one of all."""
    slopes = np.zeros((len(like.half), *some.slopes.shape[1:]))
    slopes[kept] = some.slopes
    return MeanValue(some.value, slopes, like.half)
