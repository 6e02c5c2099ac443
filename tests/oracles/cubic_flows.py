"""Population of Cubic flows in time: densities over the window at the last cut and the age since then.

Written from RFC 9438 (Sections 4.2 to 4.7) alone, by the method of characteristics: all ages grow by one step, and what
is cut in a step starts anew at the window that it had. Marks cut each flow in proportion to its window.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

_BETA = 0.7


class CubicFlows(NamedTuple):
    """Flows of one group, rows for the window at the cut, twice: after a rise and after a fall of the maximum."""

    density: np.ndarray
    """(2n, m), of flows."""
    curve: np.ndarray
    """Windows on the cubic curve at the middles and, further on, at the ends of the steps of age, (2, 2n, m)."""
    base: np.ndarray
    """Windows after the cut, (2n,)."""
    still: np.ndarray
    """Windows in equilibrium at the ends of the steps, (2n, m)."""
    into: np.ndarray
    """Row after a cut there, (2n, m)."""
    part: np.ndarray
    """Share that goes to the row after that."""
    turns: np.ndarray
    """Round trips up to each of the last steps, the last first, (m + 2,)."""
    width: float
    """Of a row, in logarithms."""
    increase: float
    every: int
    """Steps of the fluid in one of the population."""
    scale: np.ndarray
    """Mean window that counts over that of the rows, which differ by the rows' width, (1,)."""


def cubic_flows(marked: float, trip: float, curve: float, increase: float, window: float, n: int = 60) -> CubicFlows:
    """Flows at rest: marked with a probability, at a round trip [step], with C [packet/step^3]."""
    every = max(int(trip / 5.0), 1)
    between = trip / (marked * window)  # two cuts
    m = int(6.0 * between / every)
    grid = np.geomspace(window / 12.0, window * 6.0, n)
    at_cut = np.tile(grid, 2)[:, None]
    highest = np.concatenate([grid, grid * (0.5 + 0.5 * _BETA)])[:, None]
    K = np.cbrt((highest - _BETA * at_cut) / curve)
    ages = every * np.stack([np.arange(m) + 0.5, np.arange(m) + 1.0])
    bent = curve * (ages[:, None, :] - K) ** 3 + highest
    still = np.maximum(bent[1], _BETA * at_cut + increase * ages[1] / trip)
    place = np.clip((np.log(still) - np.log(grid[0])) / np.log(grid[1] / grid[0]), 0.0, n - 1.001)
    into = place.astype(np.int64)
    density = np.exp(-ages[0] / between) * np.exp(-((np.log(at_cut / window)) ** 2))
    base, row, turns = (_BETA * at_cut)[:, 0], into + n * (still < highest), -np.arange(m + 2) * every / trip
    width, rest = float(np.log(grid[1] / grid[0])), density / density.sum()
    found = CubicFlows(rest, bent, base, still, row, place - into, turns, width, increase, every, np.ones(1))
    for _ in range(int(20.0 * between / every)):
        follow(found, marked / trip, trip)
    found.scale[0] = window / follow(found, marked / trip, trip)
    return found


@numba.njit(cache=True)
def follow(flows: CubicFlows, intensity: float, trip: float) -> float:
    """Mean window after one step of the population, with a flow's cuts per packet of its window and step."""
    density, turns = flows.density, flows.turns
    rows, m = density.shape
    for k in range(m + 1, 0, -1):
        turns[k] = turns[k - 1]
    turns[0] = turns[1] + flows.every / trip
    new = np.zeros(rows)
    for i in range(rows):
        base = flows.base[i]
        for k in range(m - 1, -1, -1):
            amount = density[i, k]
            if amount < 1e-14:
                density[i, k] = 0.0
                if k + 1 < m:
                    density[i, k + 1] = 0.0
                continue
            half = 0.5 * (turns[0] + turns[1])  # the middle of the step, from k + 1 steps before
            line = base + flows.increase * (half - 0.5 * (turns[k + 1] + turns[k + 2]))
            window = max(flows.curve[1, i, k], line)
            lost = intensity * window * flows.every
            lost = min(lost * (1.0 - 0.5 * lost * (1.0 - lost / 3.0)), 1.0) if k + 1 < m else 1.0
            still, row = flows.still[i, k], flows.into[i, k]
            part = flows.part[i, k] + (window / still - 1.0) / flows.width
            new[row] += amount * lost * (1.0 - part)
            new[row + 1] += amount * lost * part
            if k + 1 < m:
                density[i, k + 1] = amount * (1.0 - lost)
    total = 0.0
    for i in range(rows):
        density[i, 0] = new[i]
        base = flows.base[i]
        for k in range(m):
            if density[i, k] > 0.0:
                line = base + flows.increase * (turns[0] - 0.5 * (turns[k] + turns[k + 1]))
                total += density[i, k] * max(flows.curve[0, i, k], line)
    return total * flows.scale[0]
