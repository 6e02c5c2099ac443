"""Queues of a network alone, with windows that don't answer marks: poles of A⁻¹, by a function with bounds over cells.

f = det A/(s + a)^S for S queues tends to 1. A has no poles on the right, since a window's own loop,
sigma + k (1 + e^(−sigma)), has no zeros there: on the axis its real part k (1 + cos omega) is 0 at odd multiples of pi
alone, where its imaginary part is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi

import numpy as np

from netctrl.plants.queue_networks.matrices import determinant
from netctrl.plants.queue_networks.response import NetworkResponse, phases
from netctrl.plants.queues.mean_value import MeanValue, coordinate

__all__ = ["QueuesAlone", "queues_alone"]

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
