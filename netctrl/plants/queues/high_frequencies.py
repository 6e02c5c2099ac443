"""Powers of 1/s to which the aliases of a queue's sampled loop tend, and the sums of these over all aliases."""

from __future__ import annotations

from math import pi
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.plants.aliases import SMALL_ANGLE, held_aliases
from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.window_response import leading

__all__ = ["Equilibrium", "Sampled", "leading_terms", "tails", "turns"]


class Sampled(Protocol):
    """What of a loop its high frequencies depend on."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Of `WindowClass`."""
        ...

    @property
    def clocked(self) -> bool: ...

    @property
    def epoch(self) -> float: ...


class Equilibrium(NamedTuple):
    """An equilibrium: numbers, arrays (k, 1) or functions over cells; a list has one entry a class."""

    standing: Any
    """Delay of the queue [s]."""
    late: Any
    """Age of the delay that the law reads [s]."""
    rise: Any
    """dx/dD of an averaging law [1/s]; else 1."""
    trips: list
    """R [s]."""
    dampings: list
    """a/w."""
    shares: list
    """y, of the link's rate."""
    modes: list
    """What the responses of some senders depend on; None for others."""

    @property
    def clocks(self) -> list:
        """Round trips of senders, with what waits at their receivers [s]."""
        return [
            trip * mode.waits if isinstance(mode, ClockedMode) else trip
            for trip, mode in zip(self.trips, self.modes, strict=True)
        ]


def turns(theta: np.ndarray, delay: Any, most: int) -> np.ndarray:
    """e^(−s delay) at all aliases, of a delay in epochs: the main alias's times powers of one turn."""
    powers = np.exp(-2j * pi * delay * np.arange(1, most + 1))
    around = np.concatenate([powers[..., ::-1].conj(), np.ones((*powers.shape[:-1], 1)), powers], axis=-1)
    return np.exp(-1j * theta * delay) * around


def leading_terms(
    response: Sampled, omega: np.ndarray, theta: np.ndarray, point: Equilibrium, echoes: list, marks: list
) -> np.ndarray:
    """What the terms tend to at all aliases; the main alias's own at small angles is left out."""
    most = omega.shape[-1] // 2
    inverse = 1.0 / omega
    third_power = inverse * inverse * inverse
    third_power[..., most] *= np.abs(theta[..., 0]) > SMALL_ANGLE
    fourth_power = third_power * inverse
    lead: Any = 0.0
    clocks = point.clocks
    for i, f, third, fourth in _expansion(response, point):
        falls = (1j * third) * third_power if third.any() else 0.0  # 1/s = −i/omega
        falls = (falls + fourth * fourth_power) * marks[i]
        if f == 1.0:
            falls *= echoes[i][0]
        elif f:
            falls *= turns(theta, f * clocks[i] / response.epoch, most)
        lead = lead + falls
    return lead


def tails(response: Sampled, theta: np.ndarray, point: Equilibrium, delays: list) -> np.ndarray:
    """Sums of `leading_terms` over all aliases, without the main one at small angles; without the last axis."""
    d, total, clocks = response.epoch, np.zeros(()), point.clocks
    for i, f, third, fourth in _expansion(response, point):
        late = delays[i] + f * clocks[i] if f else delays[i]
        total = total + held_aliases(theta, late[..., 0] / d, third[..., 0] * d**3, fourth[..., 0] * d**4)
    return total


def _expansion(response: Sampled, point: Equilibrium) -> list[tuple[int, float, np.ndarray, np.ndarray]]:
    """(class, f, factors of e^(−s late')/s³ and e^(−s late')/s⁴) of all classes, late' = late + f times the clock."""
    per_trip = sum(point.shares[i] / point.trips[i] for i, k in enumerate(response.classes) if k.queued)
    sums = []
    for i, k in enumerate(response.classes):
        trip, weight = point.trips[i], point.shares[i] * k.power / point.trips[i]
        for f, first, second in leading(k.sender, point.dampings[i], point.modes[i]):
            if response.clocked:  # the window's response falls as 1/s²; no lag follows
                third, fourth = first / trip / per_trip, second / (trip * trip) / per_trip
            else:
                third, fourth = first, second / trip - first * per_trip
            sums.append((i, f, weight * third, weight * fourth))
    return sums
