"""Gain and phase margins of a loop at many points, from grids of angles and without proof."""

from __future__ import annotations

from math import inf, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.frequency.sampled_gain import illinois
from netctrl.frequency.sampled_stability import (
    _AT_ONCE,
    _CLOSE,
    _NARROWINGS,
    PacedResponse,
    _angles,
    _crossings,
    _tabled,
    deciding,
)

__all__ = ["PointMargins", "point_margins"]


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
    """Gain and phase margins at arrays of points (k,), `gain` times the response."""
    flows, rtt, gain = (np.array(a, dtype=float).ravel() for a in np.broadcast_arrays(flows, rtt, gain))
    parts = [slice(start, start + _AT_ONCE) for start in range(0, flows.size, _AT_ONCE)]
    found = [_margins_of(response, flows[part], rtt[part], gain[part]) for part in parts]
    return PointMargins(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _margins_of(response: PacedResponse, flows: np.ndarray, rtt: np.ndarray, gain: np.ndarray) -> PointMargins:
    angles = _angles(response, flows, rtt)
    values = response.at(angles, flows[:, None], rtt[:, None], coarse=True)
    known = _tabled(len(flows), _crossings(response, flows, rtt, angles, values, coarse=True))
    gains = known.gains / gain[:, None]
    factor = gains[np.arange(len(gains)), deciding(gains, known.changes)]
    with np.errstate(divide="ignore"):
        reduction = 1.0 / np.where(gains < 1.0, gains, 0.0).max(axis=-1)
    sizes = np.log(gain[:, None] * np.abs(values))
    least = np.full(len(flows), pi)
    # With an integrator |L| goes on to rise below the grid, as 1/theta.
    integrates = sizes[:, 0] - sizes[:, 1] > 0.5 * np.log(angles[:, 1] / angles[:, 0])
    if len(low := np.flatnonzero(integrates & (sizes[:, 0] < 0.0))):
        crossed = response.at(angles[low, 0] * np.exp(sizes[low, 0]), flows[low], rtt[low], coarse=True)
        least[low] = np.abs(np.angle(-crossed))
    row, column = np.nonzero(np.signbit(sizes[:, 1:]) != np.signbit(sizes[:, :-1]))
    if len(row):
        a, b = (np.log(np.broadcast_to(angles, values.shape)[row, column + i]) for i in (0, 1))

        def off(u: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            value = gain[row[i]] * response.at(np.exp(u), flows[row[i]], rtt[row[i]], coarse=True)
            return np.log(np.abs(value)), value

        _, value = illinois(off, a, b, sizes[row, column], sizes[row, column + 1], _NARROWINGS, _CLOSE)
        np.minimum.at(least, row, np.abs(np.angle(-value)))
    return PointMargins(factor, np.where(factor >= 1.0, reduction, inf), least)
