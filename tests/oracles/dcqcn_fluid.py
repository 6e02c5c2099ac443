"""DCQCN's nonlinear fluid, integrated in time: a judge of its loop's margins and of its equilibrium.

Written from Zhu et al. (SIGCOMM 2015), (5) to (9), by the classical Runge-Kutta method with the past interpolated by
cubic Hermite polynomials. Nothing here comes from `netctrl.plants.ecn`.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from histories import grown


class Reds(NamedTuple):
    """A RED line and the senders below it; packets, seconds."""

    increase: float
    counter: float
    notification: float
    alpha_time: float
    timer: float
    g: float
    stages: float
    flows: float
    capacity: float
    low: float
    """Queue at which p would be 0 [packet]."""
    slope: float
    """[1/packet]"""
    delay: float


@numba.njit(cache=True)
def _rates(y, delayed_rate, delayed_queue, m):
    """Right side of the equations at (alpha, R_T, R_C, q)."""
    alpha, target, rate, queue = y
    p = min(max(m.slope * (delayed_queue - m.low), 0.0), 1.0 - 1e-12)
    out = np.zeros(4)
    cut = 1.0 - (1.0 - p) ** (m.notification * delayed_rate)
    mean = 1.0 - (1.0 - p) ** (m.alpha_time * delayed_rate)
    if p > 0.0:
        b = p / ((1.0 - p) ** (-m.counter) - 1.0)
        d = p / ((1.0 - p) ** (-m.timer * delayed_rate) - 1.0)
    else:
        b, d = 1.0 / m.counter, 1.0 / (m.timer * delayed_rate)
    c = b * (1.0 - p) ** (m.stages * m.counter)
    e = d * (1.0 - p) ** (m.stages * m.timer * delayed_rate)
    out[0] = m.g / m.alpha_time * (mean - alpha)
    out[1] = -(target - rate) * cut / m.notification + m.increase * delayed_rate * (c + e)
    out[2] = -rate * alpha * cut / (2.0 * m.notification) + 0.5 * (target - rate) * delayed_rate * (b + d)
    out[3] = m.flows * rate - m.capacity
    if queue <= 0.0:
        out[3] = max(out[3], 0.0)
    return out


@numba.njit(cache=True)
def _run(start, m, steps, per_delay):
    h = m.delay / per_delay
    y = np.empty((steps + 1, 4))
    f = np.empty((steps + 1, 4))
    y[0] = start
    still = np.zeros(4)
    for k in range(steps):
        now = y[k]
        past = np.empty((3, 2))  # R_C and q one delay ago, at the step's start, middle and end
        for stage in range(3):
            at = k - per_delay
            if at < 0:
                past[stage, 0], past[stage, 1] = start[2], start[3]
            elif stage == 0:
                past[stage, 0], past[stage, 1] = y[at, 2], y[at, 3]
            elif stage == 2:
                past[stage, 0], past[stage, 1] = y[at + 1, 2], y[at + 1, 3]
            else:
                for i in range(2):
                    middle = 0.5 * (y[at, 2 + i] + y[at + 1, 2 + i])
                    past[stage, i] = middle + h / 8.0 * (f[at, 2 + i] - f[at + 1, 2 + i])
        k1 = _rates(now, past[0, 0], past[0, 1], m)
        f[k] = k1
        k2 = _rates(now + 0.5 * h * k1, past[1, 0], past[1, 1], m)
        k3 = _rates(now + 0.5 * h * k2, past[1, 0], past[1, 1], m)
        k4 = _rates(now + h * k3, past[2, 0], past[2, 1], m)
        y[k + 1] = now + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        y[k + 1, 3] = max(y[k + 1, 3], 0.0)
        f[k + 1] = still
        f[k + 1] = _rates(y[k + 1], past[2, 0], past[2, 1], m)
    return y


def trajectory(m: Reds, start, seconds: float, per_delay: int = 40) -> np.ndarray:
    """(alpha, R_T, R_C, q) over time, (steps + 1, 4)."""
    return _run(np.asarray(start, dtype=float), m, int(seconds / m.delay * per_delay), per_delay)


def growth(m: Reds, rest, period_s: float, periods: float = 80.0) -> float:
    """Rate at which a small deviation of the queue from its rest grows, in natural logarithms a period."""
    start = np.array(rest, dtype=float)
    start[3] *= 1.0 + 1e-6
    per_delay = max(20, int(np.ceil(60.0 * m.delay / period_s)))
    queue = trajectory(m, start, periods * period_s, per_delay)[:, 3]
    deviation = np.abs(queue - rest[3])
    size = int(2.0 * period_s / m.delay * per_delay)
    return grown(deviation, size) * size / 2.0
