"""Powers of 1/s to which the aliases of a queue's sampled loop tend, and the sums of these over all aliases."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import pi
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.plants.aliases import SMALL_ANGLE, held_aliases, turned
from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.window_response import leading

__all__ = ["Equilibrium", "Leading", "Sampled", "leading_of", "leading_terms", "tails", "turns"]


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


class Leading(NamedTuple):
    """Sum over j of e^(−s late_j) (third_j/s³ + fourth_j/s⁴), to which the terms tend, late_j = delay + turns_j · clock
    of the class j is of."""

    classes: tuple[int, ...]
    turns: tuple[float, ...]
    third: np.ndarray
    """(j, ..., 1)"""
    fourth: np.ndarray
    steep: tuple[bool, ...]
    """Whether `third` isn't 0."""


def turns(theta: np.ndarray, delay: Any, most: int) -> np.ndarray:
    """e^(−s delay) at all aliases, of a delay in epochs: the main alias's times powers of one turn."""
    powers = turned(2.0 * pi * delay * np.arange(1, most + 1))
    around = np.concatenate([powers[..., ::-1].conj(), np.ones((*powers.shape[:-1], 1)), powers], axis=-1)
    return turned(theta * delay) * around


def leading_terms(
    response: Sampled,
    omega: np.ndarray,
    theta: np.ndarray,
    point: Equilibrium,
    lead: Leading,
    echoes: list,
    marks: list,
) -> np.ndarray:
    """What the terms tend to at all aliases; the main alias's own at small angles is left out."""
    most = omega.shape[-1] // 2
    inverse = 1.0 / omega
    third_power = inverse * inverse * inverse
    third_power[..., most] *= np.abs(theta[..., 0]) > SMALL_ANGLE
    sums: list[Any] = [0.0] * len(echoes)
    for i, f, third, fourth, steep in zip(*lead, strict=True):
        falls = fourth * inverse
        if steep:
            falls = falls + 1j * third  # 1/s = −i/omega
        if f:
            falls = falls * _turned(response, i, f, theta, point, echoes, most)
        sums[i] = sums[i] + falls
    return sum(falls * mark for falls, mark in zip(sums, marks, strict=True)) * third_power


def _turned(
    response: Sampled, i: int, f: float, theta: np.ndarray, point: Equilibrium, echoes: list, most: int
) -> np.ndarray:
    """e^(−f s clock) of a class, from those that are known for its sender's turns."""
    known = dict(zip(response.classes[i].sender.turns, echoes[i], strict=True))
    if f in known:
        return known[f]
    for one, other in combinations_with_replacement(known, 2):
        if one + other == f:
            return known[one] * known[other]
    return turns(theta, f * point.clocks[i] / response.epoch, most)


def tails(response: Sampled, theta: np.ndarray, point: Equilibrium, lead: Leading, delays: list) -> np.ndarray:
    """Sums of `leading_terms` over all aliases, without the main one at small angles; without the last axis."""
    d, clocks = response.epoch, point.clocks
    late = [delays[i] + f * clocks[i] if f else delays[i] for i, f in zip(lead.classes, lead.turns, strict=True)]
    third, fourth = lead.third[..., 0] * d**3, lead.fourth[..., 0] * d**4
    return held_aliases(theta, np.stack(late)[..., 0] / d, third, fourth).sum(axis=0)


def leading_of(response: Sampled, point: Equilibrium) -> Leading:
    """What the terms of all classes tend to at an equilibrium of numbers."""
    per_trip = sum(point.shares[i] / point.trips[i] for i, k in enumerate(response.classes) if k.queued)
    rows = []
    for i, k in enumerate(response.classes):
        trip, weight = point.trips[i], point.shares[i] * k.power / point.trips[i]
        for f, first, second in leading(k.sender, point.dampings[i], point.modes[i]):
            if response.clocked:  # the window's response falls as 1/s²; no lag follows
                third, fourth = first / trip / per_trip, second / (trip * trip) / per_trip
            else:
                third, fourth = first, second / trip - first * per_trip
            rows.append((i, f, weight * third, weight * fourth))
    classes, delays, thirds, fourths = zip(*rows, strict=True)
    return Leading(classes, delays, np.stack(thirds), np.stack(fourths), tuple(bool(each.any()) for each in thirds))
