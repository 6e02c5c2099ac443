"""Mean field of AIMD and Cubic flows that are cut by chance, in two ways: renewal equations, and many flows drawn.

Windows and times are scaled so that a flow is cut with the intensity w, and Cubic's curve is (s − K)³ + M; `eta` is the
slope of the Reno-friendly line. Written from RFC 9438 and the theory of Markov renewal processes alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np


class Population(NamedTuple):
    """Flows after their cuts, one row for each window at the cut and whether it was below the last maximum."""

    windows: np.ndarray
    ages: np.ndarray
    """(2n, m + 1)"""
    quarter: np.ndarray
    """Windows at the edges, first quarters and middles of the steps of age."""
    edge: np.ndarray
    middle: np.ndarray
    cut: np.ndarray
    """Probability of a cut in each step."""
    there: np.ndarray
    """Expected time in each step."""
    into: np.ndarray
    """Row of the next cut."""
    part: np.ndarray
    """Share that goes to the row after that."""
    starts: np.ndarray
    """Cuts in a unit of time, of all flows together one flow."""
    mean: float
    square: float


def population(eta: float, *, curve: bool = True, beta: float = 0.7, n: int = 120, m: int = 500) -> Population:
    """Stationary law by renewal equations, with windows on a grid and steps of age."""
    scale = max(1.0, 1.3 * np.sqrt(eta)) if curve else np.sqrt(eta)
    grid = np.geomspace(0.01, 22.0 if eta < 2.0 and curve else 9.0, n) * scale
    at_cut = np.tile(grid, 2)[:, None]
    highest = np.concatenate([grid, grid * (0.5 + 0.5 * beta)])[:, None]
    K = np.cbrt(highest - beta * at_cut)

    def window(age: np.ndarray) -> np.ndarray:
        line = beta * at_cut + eta * age
        return np.maximum((age - K) ** 3 + highest, line) if curve else line

    low, high = np.zeros((2 * n, 1)), np.full((2 * n, 1), 1e3)
    for _ in range(40):  # the age that hardly any flow reaches
        end = 0.5 * (low + high)
        far = window(end * np.linspace(0.0, 1.0, 200)).mean(axis=1, keepdims=True) * end > 30.0
        low, high = np.where(far, low, end), np.where(far, end, high)
    ages = high * np.linspace(0.0, 1.0, m + 1) ** 1.5
    step = np.diff(ages, axis=1)
    middles = ages[:, :-1] + 0.5 * step
    edge, quarter, middle = window(ages), window(ages[:, :-1] + 0.25 * step), window(middles)
    done = np.cumsum(step * (edge[:, 1:] + 4.0 * middle + edge[:, :-1]) / 6.0, axis=1)
    left = np.exp(-np.concatenate([np.zeros((2 * n, 1)), done], axis=1))
    half = left[:, :-1] * np.exp(-step / 12.0 * (edge[:, :-1] + 4.0 * quarter + middle))
    below = (middle < highest) & curve
    into = np.clip(np.searchsorted(grid, middle) - 1, 0, n - 2)
    part = np.clip((middle - grid[into]) / (grid[into + 1] - grid[into]), 0.0, 1.0)
    there = step * (left[:, :-1] + 4.0 * half + left[:, 1:]) / 6.0
    cut, row = -np.diff(left, axis=1), into + n * below
    found = Population(grid, ages, quarter, edge, middle, cut, there, row, part, np.ones(2 * n), 1.0, 1.0)
    moved, *_ = _moves(0.0, ages, quarter, edge, middle, found.cut, there, found.into, part, found.starts)
    moved = moved.real / moved.real.sum(axis=0)
    law = np.linalg.lstsq(np.vstack([moved - np.eye(2 * n), np.ones(2 * n)]), np.eye(2 * n + 1)[-1], rcond=None)[0]
    starts = law / (law @ there.sum(axis=1))
    return found._replace(
        starts=starts, mean=starts @ (there * middle).sum(axis=1), square=starts @ (there * middle**2).sum(axis=1)
    )


def renewal_response(flows: Population, z: float) -> complex:
    """−d ln(mean window)/d ln(intensity) at the angular frequency z times the mean rate of cuts."""
    omega = z * flows.mean
    arrays = flows[1:9]
    moved, drawn, kept, lost = _moves(omega, *arrays, flows.starts)
    starts = np.linalg.solve(np.eye(len(moved)) - moved, drawn)
    return -(starts @ kept - lost) / flows.mean


@numba.njit(cache=True)
def _moves(omega, ages, quarter, edge, middle, cut, there, into, part, starts):
    """Transforms of the next cut, first order of cuts, and windows of flows that started and that were lost."""
    n = len(ages)
    moved, drawn = np.zeros((n, n), dtype=np.complex128), np.zeros(n, dtype=np.complex128)
    kept, lost = np.zeros(n, dtype=np.complex128), 0j
    for i in range(n):
        past = 0j
        for k in range(len(cut[i])):
            step = ages[i, k + 1] - ages[i, k]
            turn = np.exp(1j * omega * (ages[i, k] + 0.5 * step))
            first = edge[i, k] * np.exp(1j * omega * ages[i, k])
            second = quarter[i, k] * np.exp(1j * omega * (ages[i, k] + 0.25 * step))
            third, last = middle[i, k] * turn, edge[i, k + 1] * np.exp(1j * omega * ages[i, k + 1])
            missed = (past + step / 12.0 * (first + 4.0 * second + third)) / turn
            past += step / 6.0 * (first + 4.0 * third + last)
            row, share = into[i, k], part[i, k]
            moved[row, i] += cut[i, k] / turn * (1.0 - share)
            moved[row + 1, i] += cut[i, k] / turn * share
            drawn[row] += cut[i, k] * (1.0 - missed) * starts[i] * (1.0 - share)
            drawn[row + 1] += cut[i, k] * (1.0 - missed) * starts[i] * share
            kept[i] += there[i, k] * middle[i, k] / turn
            lost += starts[i] * there[i, k] * middle[i, k] * missed
    return moved, drawn, kept, lost


@numba.njit(cache=True)
def drawn_response(marks, eta, omega, depth, step, steps, warmup, beta):
    """Mean window, and minus its relative amplitude over that of the intensity, of flows drawn one by one.

    `marks` has exponential numbers, a row for each flow: what its intensity sums up to from one cut to the next.
    """
    count = len(marks)
    start, highest, age = np.full(count, 1.0), np.full(count, 1.4), np.zeros(count)
    summed, used = np.zeros(count), np.zeros(count, dtype=np.int64)
    for i in range(count):
        start[i] = 0.4 + 0.8 * (i + 0.5) / count
        highest[i] = start[i] / beta
    mean, wave, seen = 0.0, 0j, 0
    for k in range(steps):
        now = (k + 0.5) * step
        intensity, total = 1.0 + depth * np.cos(omega * now), 0.0
        for i in range(count):
            K = np.cbrt(highest[i] - start[i])
            middle = age[i] + 0.5 * step
            window = max((middle - K) ** 3 + highest[i], start[i] + eta * middle)
            total += window
            before = summed[i]
            summed[i] += intensity * window * step
            due = marks[i, used[i] % len(marks[i])]
            age[i] += step
            if summed[i] >= due:
                over = (summed[i] - due) / (summed[i] - before) * step
                window = max((age[i] - over - K) ** 3 + highest[i], start[i] + eta * (age[i] - over))
                highest[i] = window * (1.0 + beta) / 2.0 if window < highest[i] else window
                start[i] = beta * window
                age[i], summed[i] = over, 0.0
                used[i] += 1
        if k >= warmup:
            mean += total / count
            wave += total / count * np.exp(-1j * omega * now)
            seen += 1
    return mean / seen, -2.0 * wave / mean / depth
