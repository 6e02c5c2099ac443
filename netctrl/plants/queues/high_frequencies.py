"""Powers of 1/s to which the aliases of a queue's sampled loop tend, and the sums of these over all aliases."""

from __future__ import annotations

from math import pi
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.plants.aliases import SMALL_ANGLE, held_aliases
from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.window_response import leading

__all__ = ["Equilibrium", "Sampled", "dropped_factor", "leading_terms", "tails", "turns"]


class Sampled(Protocol):
    """What of a loop its high frequencies depend on."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Of `WindowClass`."""
        ...

    @property
    def clocked(self) -> bool: ...

    @property
    def several_clocks(self) -> bool: ...

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

    def lags(self, classes: tuple[Any, ...]) -> list[list]:
        """Delays of each class of which its sender's response needs e^(−s delay) [s]."""
        return [
            [clock * f for f in k.sender.turns(mode)]
            for k, clock, mode in zip(classes, self.clocks, self.modes, strict=True)
        ]

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
    """What the terms tend to at all aliases; the main alias's own at small angles is left out.

    `echoes` has the phases of each class's lags. Where packets are dropped, `marks` has one more, of a drop itself.
    """
    most = omega.shape[-1] // 2
    inverse = 1.0 / omega
    square = inverse * inverse
    square[..., most] *= np.abs(theta[..., 0]) > SMALL_ANGLE
    third_power = square * inverse
    fourth_power = third_power * inverse
    lead: Any = 0.0
    for i, counts, third, fourth in _expansion(response, point):
        falls = (1j * third) * third_power if third.any() else 0.0  # 1/s = −i/omega
        falls = (falls + fourth * fourth_power) * marks[i]
        for phase, count in zip(echoes[i], counts, strict=True):
            if count:
                falls = falls * (phase if count == 1 else phase**count)
        lead = lead + falls
    if (second := dropped_factor(response, point)) is not None:
        lead = lead - second * square * marks[-1]
    return lead


def tails(response: Sampled, theta: np.ndarray, point: Equilibrium, delays: list) -> np.ndarray:
    """Sums of `leading_terms` over all aliases, without the main one at small angles; without the last axis."""
    d, total, lags = response.epoch, np.zeros(()), point.lags(response.classes)
    for i, counts, third, fourth in _expansion(response, point):
        late = sum((lag * n for lag, n in zip(lags[i], counts, strict=True) if n), delays[i])
        total = total + held_aliases(theta, late[..., 0] / d, third[..., 0] * d**3, fourth[..., 0] * d**4)
    if (second := dropped_factor(response, point)) is not None:
        none = np.zeros_like(second[..., 0])
        total = total + held_aliases(theta, delays[-1][..., 0] / d, none, none, second[..., 0] * d**2)
    return total


def dropped_factor(response: Sampled, point: Equilibrium) -> Any:
    """Factor of e^(−s late)/s² of packets that are dropped; None where none is."""
    if not any(k.sender.notice for k in response.classes):
        return None
    each = [
        (point.shares[i] * k.power * point.modes[i].dropped, point.trips[i])
        for i, k in enumerate(response.classes)
        if k.sender.notice
    ]
    if response.several_clocks:  # on average over frequencies, and at each one where all classes have one probability
        return sum(dropped for dropped, _ in each)
    return sum(dropped / trip for dropped, trip in each) / _per_trip(response, point)


def _per_trip(response: Sampled, point: Equilibrium) -> Any:
    """Mean of 1/R of the classes that wait in the queue."""
    return sum(point.shares[i] / point.trips[i] for i, k in enumerate(response.classes) if k.queued)


def _expansion(response: Sampled, point: Equilibrium) -> list[tuple[int, tuple[int, ...], np.ndarray, np.ndarray]]:
    """(class, numbers of its turns, factors of their product over s³ and s⁴) of all classes, beside their marks'
    phase; none of flows of several round trips that acknowledgements clock."""
    if response.several_clocks:
        return []
    per_trip = _per_trip(response, point)
    sums = []
    for i, k in enumerate(response.classes):
        trip, weight = point.trips[i], point.shares[i] * k.power / point.trips[i]
        for counts, first, second in leading(k.sender, point.dampings[i], point.modes[i]):
            if response.clocked:  # the window's response falls as 1/s²; no lag follows
                third, fourth = first / trip / per_trip, second / (trip * trip) / per_trip
            else:
                third, fourth = first, second / trip - first * per_trip
            padded = counts + (0,) * (len(k.sender.turns(point.modes[i])) - len(counts))
            sums.append((i, padded, weight * third, weight * fourth))
    return sums
