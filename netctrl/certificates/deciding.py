"""Points of a box that decide on a criterion of the design rule: where the loop has least of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from netctrl.certificates.box import Box
from netctrl.certificates.loops import Mixture
from netctrl.frequency.point_margins import PointMargins, point_margins
from netctrl.plants.queues.queue_loop import QueueLoop

__all__ = ["least_point"]

_SIDE = 9
"""Numbers of flows, and of round-trip times, of a first look."""
_NEAR, _ROUNDS = 5, 6
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
        grid = [np.linspace(low, high, _SIDE if high > low else 1) for low, high in ends]
        places = _inside(loop, _product(*grid))
        if starts := loop.starts(box.flows, box.rtt):
            places = np.concatenate([places, np.log(starts)])
        if len(places):
            found.append((*_least(loop, places, criterion), mixture, loop))
    value, where, mixture, loop = min(found, key=lambda each: each[0])
    width = (ends[:, 1] - ends[:, 0]) / (_SIDE - 1)
    for _ in range(_ROUNDS if width.any() else 0):
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
