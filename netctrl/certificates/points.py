"""Points of a box at which a loop is looked at where no bound over its cells is known."""

from __future__ import annotations

from itertools import product
from math import exp, log

import numpy as np

from netctrl.certificates.box import Box, Ends
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_loop import QueueLoop

__all__ = ["box_points", "least_near"]

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
