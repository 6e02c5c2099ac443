"""Powers of 1/s to which the aliases of a queue's sampled loop tend, and the sums of these over all aliases."""

from __future__ import annotations

from math import pi
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.plants.aliases import SMALL_ANGLE, held_aliases, turned
from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.window_response import leading


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


class Leading(NamedTuple):
    """Sum over j of e^(−s (delay + lag_j)) (third_j/s³ + fourth_j/s⁴), to which the terms tend, with the delay of the
    class that j is of."""

    classes: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    """Numbers of the class's lags that make up lag_j."""
    lags: tuple[Any, ...]
    """[s]"""
    third: np.ndarray
    """(j, ..., 1)"""
    fourth: np.ndarray
    steep: tuple[bool, ...]
    """Whether `third` isn't 0."""
    second: Any = None
    """Factor of e^(−s delay)/s² of packets that are dropped; None: none is."""


def turns(theta: np.ndarray, delay: Any, most: int) -> np.ndarray:
    """e^(−s delay) at all aliases, of a delay in epochs: the main alias's times powers of one turn."""
    powers = turned(2.0 * pi * delay * np.arange(1, most + 1))
    around = np.concatenate([powers[..., ::-1].conj(), np.ones((*powers.shape[:-1], 1)), powers], axis=-1)
    return turned(theta * delay) * around


def leading_terms(omega: np.ndarray, theta: np.ndarray, lead: Leading, echoes: list, marks: list) -> np.ndarray:
    """What the terms tend to at all aliases; the main alias's own at small angles is left out.

    `echoes` has the phases of each class's lags. Where packets are dropped, `marks` has one more, of a drop itself.
    """
    most = omega.shape[-1] // 2
    inverse = 1.0 / omega
    third_power = inverse * inverse * inverse
    third_power[..., most] *= np.abs(theta[..., 0]) > SMALL_ANGLE
    sums: list[Any] = [0.0] * len(echoes)
    for i, counts, third, fourth, steep in zip(
        lead.classes, lead.counts, lead.third, lead.fourth, lead.steep, strict=True
    ):
        falls = fourth * inverse
        if steep:
            falls = falls + 1j * third  # 1/s = −i/omega
        for phase, count in zip(echoes[i], counts, strict=True):
            if count:
                falls = falls * (phase if count == 1 else phase**count)
        sums[i] = sums[i] + falls
    if lead.second is not None:
        sums.append(-lead.second * omega)
    return sum(falls * mark for falls, mark in zip(sums, marks, strict=True)) * third_power


def tails(d: float, theta: np.ndarray, lead: Leading, delays: list) -> np.ndarray:
    """Sums of `leading_terms` over all aliases at the interval d [s], without the main one at small angles; without the
    last axis."""
    late = [delays[i] + lag for i, lag in zip(lead.classes, lead.lags, strict=True)]
    third, fourth = lead.third[..., 0] * d**3, lead.fourth[..., 0] * d**4
    total = held_aliases(theta, np.stack(late)[..., 0] / d, third, fourth).sum(axis=0) if late else np.zeros(())
    if lead.second is None:
        return total
    none = np.zeros_like(lead.second[..., 0])
    return total + held_aliases(theta, delays[-1][..., 0] / d, none, none, lead.second[..., 0] * d**2)


def dropped_factor(response: Sampled, point: Equilibrium) -> Any:
    """Factor of e^(−s late)/s² of packets that are dropped; None where none is."""
    if not any(k.sender.notice for k in response.classes):
        return None
    each = [
        (point.shares[i] * k.power * point.modes[i].dropped, point.trips[i])
        for i, k in enumerate(response.classes)
        if k.sender.notice
    ]
    if response.several_clocks:  # where all classes have one probability
        return sum(dropped for dropped, _ in each)
    return sum(dropped / trip for dropped, trip in each) / _per_trip(response, point)


def _per_trip(response: Sampled, point: Equilibrium) -> Any:
    """Mean of 1/R of the classes that wait in the queue."""
    return sum(point.shares[i] / point.trips[i] for i, k in enumerate(response.classes) if k.queued)


def leading_of(response: Sampled, point: Equilibrium) -> Leading:
    """What the terms of all classes tend to at an equilibrium of numbers; of `several_clocks` drops alone are known."""
    if response.several_clocks:
        none = np.zeros((0, 1))
        return Leading((), (), (), none, none, (), dropped_factor(response, point))
    per_trip, lags = _per_trip(response, point), point.lags(response.classes)
    rows = []
    for i, k in enumerate(response.classes):
        trip, weight = point.trips[i], point.shares[i] * k.power / point.trips[i]
        for counts, first, second in leading(k.sender, point.dampings[i], point.modes[i]):
            if response.clocked:  # the window's response falls as 1/s²; no lag follows
                third, fourth = first / trip / per_trip, second / (trip * trip) / per_trip
            else:
                third, fourth = first, second / trip - first * per_trip
            padded = counts + (0,) * (len(lags[i]) - len(counts))
            lag = sum((each * n for each, n in zip(lags[i], padded, strict=True) if n), 0.0)
            rows.append((i, padded, lag, weight * third, weight * fourth))
    classes, counts, late, thirds, fourths = zip(*rows, strict=True)
    steep = tuple(bool(each.any()) for each in thirds)
    return Leading(classes, counts, late, np.stack(thirds), np.stack(fourths), steep, dropped_factor(response, point))
