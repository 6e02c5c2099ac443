"""DCTCP's fluid at a threshold, integrated from one change of the mark to the next: kernel of `fluid_cycle`."""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit

_STEPS = 40
"""Steps in R*."""
_MOST_CYCLES = 4000
_MOST_TRIPS = 40_000.0
_AGREE = 3
"""Cycles in a row that agree before the last one is taken as the limit cycle."""
_SAME = 1e-6
_AVERAGED = 50
"""Cycles over which a motion without a limit cycle is described."""
_PENDING = 256


@njit(cache=True, error_model="numpy")
def _slopes(w: float, a: float, x: float, p: float, b: float, g: float) -> tuple[float, float, float]:
    R = 1.0 + max(x, 0.0)
    rise = w / (b * R) - 1.0
    if x <= 0.0 and rise < 0.0:
        rise = 0.0
    return (1.0 - 0.5 * w * a * p) / R, g / R * (p - a), rise


@njit(cache=True, error_model="numpy")
def _step(w: float, a: float, x: float, p: float, b: float, g: float, h: float) -> tuple[float, float, float]:
    k1 = _slopes(w, a, x, p, b, g)
    k2 = _slopes(w + 0.5 * h * k1[0], a + 0.5 * h * k1[1], x + 0.5 * h * k1[2], p, b, g)
    k3 = _slopes(w + 0.5 * h * k2[0], a + 0.5 * h * k2[1], x + 0.5 * h * k2[2], p, b, g)
    k4 = _slopes(w + h * k3[0], a + h * k3[1], x + h * k3[2], p, b, g)
    c = h / 6.0
    return (
        w + c * (k1[0] + 2.0 * (k2[0] + k3[0]) + k4[0]),
        a + c * (k1[1] + 2.0 * (k2[1] + k3[1]) + k4[1]),
        max(x + c * (k1[2] + 2.0 * (k2[2] + k3[2]) + k4[2]), 0.0),
    )


@njit(cache=True, error_model="numpy")
def _crossing(y0: float, y1: float, d0: float, d1: float, h: float) -> float:
    """Part of a step after which the cubic through two values of opposite signs and their slopes is 0, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        u = 0.5 * (low + high)
        v = 1.0 - u
        y = v * v * (y0 * (1.0 + 2.0 * u) + h * d0 * u) + u * u * (y1 * (1.0 + 2.0 * v) - h * d1 * v)
        if (y > 0.0) == (y1 > 0.0):
            high = u
        else:
            low = u
    return 0.5 * (low + high)


@njit(cache=True, error_model="numpy")
def run_step(b: float, kappa: float, g: float) -> tuple[float, float, float, float, float, float, float, float]:
    """Highest, lowest and mean queue, its deviation, period, marked and lost share, and whether it repeats itself."""
    trip = 1.0 + kappa
    h0 = trip / _STEPS
    p0 = min(np.sqrt(2.0 / (b * trip)), 1.0)
    w, a, x, p = 1.02 * b * trip, p0, kappa, 0.0
    pending = np.empty(_PENDING)  # times at which the mark changes for the sender
    first, count = 0, 0
    t = 0.0
    above = False
    began = -1.0
    highest, lowest, area, square, marked, lost = x, x, 0.0, 0.0, 0.0, 0.0
    cycles = np.empty((_MOST_CYCLES, 7))
    n, agreed = 0, 0
    while n < _MOST_CYCLES and t < _MOST_TRIPS * trip:
        h = h0
        change = False
        if count > 0 and pending[first] <= t + h:
            h = max(pending[first] - t, 0.0)
            change = True
        before = _slopes(w, a, x, p, b, g)
        w1, a1, x1 = _step(w, a, x, p, b, g, h)
        crossed = (x1 > kappa) != above
        u = 1.0
        if crossed and h > 0.0:
            after = _slopes(w1, a1, x1, p, b, g)
            u = _crossing(x - kappa, x1 - kappa, before[2], after[2], h)
        if crossed:
            above = x1 > kappa
            if count < _PENDING:
                pending[(first + count) % _PENDING] = t + u * h + trip
                count += 1
        # Parts of the step before and after a crossing upwards, at which a cycle begins.
        split = u if crossed and above else 1.0
        highest, lowest = max(highest, x1), min(lowest, x1)
        idle = 0.0
        if x <= 0.0:
            idle = max(1.0 - 0.5 * (w + w1) / b, 0.0) * h
        mean, power = 0.5 * (x + x1) * h, (x * x + x * x1 + x1 * x1) / 3.0 * h
        area += mean * split
        square += power * split
        marked += p * h * split
        lost += idle
        if crossed and above:
            now = t + u * h
            if began >= 0.0:
                span = now - began
                cycles[n] = (highest, lowest, area / span, span, marked / span, lost / span, square / span)
                same = n > 0
                for i in range(4):
                    if same and abs(cycles[n, i] - cycles[n - 1, i]) > _SAME * (cycles[n, i] + 1e-3):
                        same = False
                agreed = agreed + 1 if same else 0
                n += 1
                if agreed >= _AGREE:
                    break
            began = now
            highest, lowest, area, square = x1, x1, mean * (1.0 - u), power * (1.0 - u)
            marked, lost = p * h * (1.0 - u), 0.0
        w, a, x = w1, a1, x1
        t += h
        if change:
            p = 1.0 - p
            first = (first + 1) % _PENDING
            count -= 1
    if n == 0:  # hardly more than 2 packets: nearly every packet is marked
        return x, x, x, 0.0, 0.0, p, 0.0, 0.0
    periodic = agreed >= _AGREE
    last = cycles[n - 1 : n] if periodic else cycles[max(n - _AVERAGED, 0) : n]
    span = last[:, 3].sum()
    mean, power = (last[:, 2] * last[:, 3]).sum() / span, (last[:, 6] * last[:, 3]).sum() / span
    return (
        last[:, 0].max(),
        last[:, 1].min(),
        mean,
        np.sqrt(max(power - mean * mean, 0.0)),
        span / len(last),
        (last[:, 4] * last[:, 3]).sum() / span,
        (last[:, 5] * last[:, 3]).sum() / span,
        1.0 if periodic else 0.0,
    )
