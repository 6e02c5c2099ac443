"""Points of a box at which a loop is looked at where no bound over its cells is known, and its worst ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import exp, log

import numpy as np

from netctrl.certificates.box import Box, Ends
from netctrl.certificates.loops import Mixture
from netctrl.frequency.batch import PointMargins, point_margins
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_loop import QueueLoop

__all__ = ["box_points", "least_near", "least_point"]

_SIDE = 5
"""Numbers of flows, and of round-trip times, in equal ratios."""
_ROUNDS = 4
"""Halvings of the steps around the worst point."""


def box_points(loop: QueueLoop, box: Box) -> list[tuple[float, float]]:
    """Points (N, tau [s]) of a box in a loop's range: a grid, and where the range ends on the box's edges."""
    found = dict.fromkeys(loop.starts(box.flows, box.rtt))
    for flows, rtt in product(_spread(box.flows), _spread(box.rtt)):
        if loop.holds(loop.output(flows, rtt)):
            found[flows, rtt] = None
    return list(found)


def least_near(loop: QueueLoop, box: Box, flows: float, rtt: float) -> tuple[float, float, float]:
    """Point of a box with the least gain margin near a given one, by smaller and smaller steps: N, tau [s], factor."""
    best, least = (flows, rtt), stable_gains(loop, flows, rtt).factor
    steps = [log(high / low) / (2.0 * (_SIDE - 1)) for low, high in (box.flows, box.rtt)]
    for _ in range(_ROUNDS):
        for axis, sign in product((0, 1), (-1.0, 1.0)):
            if not steps[axis]:
                continue
            moved, ends = list(best), (box.flows, box.rtt)[axis]
            moved[axis] = min(max(best[axis] * exp(sign * steps[axis]), ends[0]), ends[1])
            if loop.holds(loop.output(*moved)) and (factor := stable_gains(loop, *moved).factor) < least:
                best, least = (moved[0], moved[1]), factor
        steps = [0.5 * step for step in steps]
    return *best, least


def _spread(ends: Ends) -> list[float]:
    low, high = ends
    return [low] if low == high else [low, *map(float, np.geomspace(low, high, _SIDE)[1:-1]), high]


_LOOK_SIDE = 9
"""Numbers of flows, and of round-trip times, of a first look."""
_NEAR, _LOOK_ROUNDS = 5, 6
"""The same around the worst point, in rounds that are a third as wide each."""

Point = tuple[Mixture, QueueLoop, float, float]
"""Senders, loop, flows of the loop and round-trip time [s]."""


def least_point(
    loops: Sequence[tuple[Mixture, QueueLoop]], box: Box, criterion: Callable[[PointMargins], np.ndarray]
) -> Point:
    """Point of the box with the least value of a criterion, among all loops; found by looking, without proof."""
    ends = np.log([box.flows, box.rtt])
    found = []
    for mixture, loop in loops:
        grid = [np.linspace(low, high, _LOOK_SIDE if high > low else 1) for low, high in ends]
        places = _inside(loop, _product(*grid))
        if starts := loop.starts(box.flows, box.rtt):
            places = np.concatenate([places, np.log(starts)])
        if len(places):
            found.append((*_least(loop, places, criterion), mixture, loop))
    value, where, mixture, loop = min(found, key=lambda each: each[0])
    width = (ends[:, 1] - ends[:, 0]) / (_LOOK_SIDE - 1)
    for _ in range(_LOOK_ROUNDS if width.any() else 0):
        steps = [w * np.linspace(-1.0, 1.0, _NEAR if w else 1) for w in width]
        sides = [np.clip(u + moved, *end) for u, moved, end in zip(where, steps, ends, strict=True)]
        if len(places := _inside(loop, _product(*sides))):
            value, where = min((value, where), _least(loop, places, criterion), key=lambda each: each[0])
        width = width / 3.0
    return mixture, loop, float(np.exp(where[0])), float(np.exp(where[1]))


def _product(flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
    return np.stack([each.ravel() for each in np.meshgrid(flows, rtt)], axis=1)


def _inside(loop: QueueLoop, places: np.ndarray) -> np.ndarray:
    """Those of the logarithms of points (k, 2) at which the loop holds."""
    return places[loop.holds(loop.output(*np.exp(places).T))]


def _least(
    loop: QueueLoop, places: np.ndarray, criterion: Callable[[PointMargins], np.ndarray]
) -> tuple[float, np.ndarray]:
    values = criterion(point_margins(loop, *np.exp(places).T))
    at = int(np.argmin(values))
    return float(values[at]), places[at]
