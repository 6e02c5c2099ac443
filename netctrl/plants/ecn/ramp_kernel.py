"""Fluids of DCTCP and DCQCN below marks that rise in any way with the queue, integrated in time: kernels of `ramp`.

A law of marks is a list of points (queue, probability), straight between them and 0 before the first; two points at one
queue are a jump. The marks of a step of the integration are the mean over the queues that it passes, by the integral
of the law, so that thresholds may be as near to each other as one likes. A mark comes back when its packet does:
what entered at s arrives at s + d + q(s)/C, and its share of the time there is what the queue's change makes of it.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit

_LEAST_WINDOW = 1.0
_LEAST_SHARE = 1e-6
"""Rate of a flow over its equilibrium's below which it doesn't fall."""


@njit(cache=True, error_model="numpy")
def _marks(x: float, points: np.ndarray) -> tuple[float, float]:
    """Probability at a queue, and its integral from 0 to it."""
    total = 0.0
    for i in range(len(points)):
        end = points[i + 1, 0] if i + 1 < len(points) else np.inf
        begin, p = points[i]
        if x <= begin:
            return (points[i - 1, 1] if i else 0.0), total
        if x < end:
            slope = (points[i + 1, 1] - p) / (end - begin) if end < np.inf else 0.0
            return p + slope * (x - begin), total + (x - begin) * (p + 0.5 * slope * (x - begin))
        total += 0.5 * (end - begin) * (p + points[i + 1, 1])
    return 0.0, total


@njit(cache=True, error_model="numpy")
def _mean_marks(a: float, b: float, points: np.ndarray, spaced: bool) -> float:
    """Mean share of marked packets while the queue goes from a to b."""
    if abs(b - a) > 1e-12 * (1.0 + abs(a)):
        p = (_marks(b, points)[1] - _marks(a, points)[1]) / (b - a)
    else:
        p = _marks(0.5 * (a + b), points)[0]
    p = min(max(p, 0.0), 1.0)
    return 2.0 * p / (1.0 + p) if spaced else p


@njit(cache=True, error_model="numpy")
def _back(came: np.ndarray, sum_: np.ndarray, last: int, now: float, at: int) -> tuple[float, int]:
    """Marks that have come back until now, and the step after which their packets entered."""
    while at < last and came[at + 1] <= now:
        at += 1
    if now <= came[at] or at == last:
        return sum_[at], at
    return sum_[at] + (sum_[at + 1] - sum_[at]) * (now - came[at]) / (came[at + 1] - came[at]), at


@njit(cache=True, error_model="numpy")
def run_dctcp_ramp(
    b: float, points: np.ndarray, g: float, forgetting: float, spaced: bool, start: float, h: float, steps: int
) -> np.ndarray:
    """Queue, what stays unused and the marks that enter, at each step, (3, n + 1); time in d and the queue in C d.

        w' = (1 − (w alpha/2) (1 − (1 − p)^w))/R,  alpha' = (g/R)(p − alpha),  x' = w/(b R) − 1,  R = 1 + x

    A window is cut once a round trip, if one of its packets was marked: with p of 0 and 1 it is the fluid of
    `netctrl.plants.ecn.dctcp`. `forgetting` is −ln(1 − weight) C d of an average of the queue; 0: the present queue.
    """
    out = np.zeros((3, steps + 1))
    came, sum_ = np.empty(steps + 1), np.zeros(steps + 1)
    w, x = 1.02 * b * (1.0 + start), start
    alpha = min(np.sqrt(2.0 / w), 1.0)
    average = start
    out[0, 0], came[0] = x, 1.0 + x
    before, at = 0.0, 0
    for i in range(steps):
        back, at = _back(came, sum_, i, (i + 1) * h, at)
        p = min(max((back - before) / h, 0.0), 1.0)
        before = back
        R = 1.0 + x
        cut = 0.5 * alpha * (1.0 - (1.0 - p) ** w)
        middle = w + 0.5 * h * (1.0 - w * cut) / R
        halfway = alpha + 0.5 * h * g / R * (p - alpha)
        R = 1.0 + max(x + 0.5 * h * (w / (b * R) - 1.0), 0.0)
        rise = middle / (b * R) - 1.0
        cut = 0.5 * halfway * (1.0 - (1.0 - p) ** middle)
        w = max(w + h * (1.0 - middle * cut) / R, _LEAST_WINDOW)
        alpha = min(max(alpha + h * g / R * (p - halfway), 0.0), 1.0)
        following = x + h * rise
        out[1, i + 1] = max(-following, 0.0)
        following = max(following, 0.0)
        moved = following
        if forgetting > 0.0:
            arrivals = rise + 1.0 if x > 0.0 else 1.0
            moved = average - np.expm1(-forgetting * h * arrivals) * (0.5 * (x + following) - average)
        share = _mean_marks(average, moved, points, spaced)
        x, average = following, moved
        out[0, i + 1], out[2, i + 1] = x, share
        came[i + 1] = (i + 1) * h + 1.0 + x
        sum_[i + 1] = sum_[i] + share * (came[i + 1] - came[i])
    return out


@njit(cache=True, error_model="numpy")
def _chance(p: float, packets: float) -> float:
    """1 − (1 − p)^packets."""
    return 1.0 if p >= 1.0 else -np.expm1(packets * np.log1p(-p))


@njit(cache=True, error_model="numpy")
def _events(p: float, packets: float, stages: float) -> float:
    """p/((1 − p)^(−n) − 1) (1 − p)^(stages n)."""
    if p >= 1.0:
        return 0.0
    n = -packets * np.log1p(-p)
    if n < 1e-9:
        return 1.0 / packets
    return p / np.expm1(n) * np.exp(-stages * n) if n < 700.0 else 0.0


@njit(cache=True, error_model="numpy")
def _dcqcn_slopes(
    R: float, T: float, alpha: float, p: float, u: float, sender: tuple[float, ...]
) -> tuple[float, float, float]:
    increase, counter, tau, tau_a, timer, g, stages = sender
    cut = _chance(p, tau * u) / tau
    more = _events(p, counter, 0.0) + _events(p, timer * u, 0.0)
    late = _events(p, counter, stages) + _events(p, timer * u, stages)
    return (
        0.5 * (T - R) * u * more - 0.5 * R * alpha * cut,
        increase * u * late - (T - R) * cut,
        g / tau_a * (_chance(p, tau_a * u) - alpha),
    )


@njit(cache=True, error_model="numpy")
def run_dcqcn_ramp(
    rate: float,
    points: np.ndarray,
    sender: tuple[float, ...],
    rtt: float,
    waits: bool,
    start: np.ndarray,
    h: float,
    steps: int,
) -> np.ndarray:
    """The same of DCQCN's flows (`netctrl.plants.ecn.dcqcn`); seconds, and the queue in packets of each flow.

    `rate` is C/N, and `start` the queue, R_C, R_T and alpha. Marks come back after the round trip without the queue, or
    where it `waits` with the queue that they met.
    """
    out = np.zeros((3, steps + 1))
    came, sum_, sent = np.empty(steps + 1), np.zeros(steps + 1), np.zeros(steps + 1)
    x, R, T, alpha = start
    out[0, 0] = x
    came[0] = rtt + (x / rate if waits else 0.0)
    before, at = 0.0, 0
    for i in range(steps):
        back, at = _back(came, sum_, i, (i + 1) * h, at)
        p = min(max((back - before) / h, 0.0), 1.0)
        before = back
        u = (sent[at + 1] - sent[at]) / h if at < i and came[0] <= (i + 1) * h else start[1]
        slopes = _dcqcn_slopes(R, T, alpha, p, u, sender)
        middle = R + 0.5 * h * slopes[0], T + 0.5 * h * slopes[1], alpha + 0.5 * h * slopes[2]
        slopes = _dcqcn_slopes(*middle, p, u, sender)
        R = max(R + h * slopes[0], _LEAST_SHARE * rate)
        T += h * slopes[1]
        alpha = min(max(alpha + h * slopes[2], 0.0), 1.0)
        following = x + h * (middle[0] - rate)
        out[1, i + 1] = max(-following, 0.0)
        following = max(following, 0.0)
        share = _mean_marks(x, following, points, False)
        x = following
        out[0, i + 1], out[2, i + 1] = x, share
        sent[i + 1] = sent[i] + max(middle[0], _LEAST_SHARE * rate) * h
        came[i + 1] = (i + 1) * h + rtt + (x / rate if waits else 0.0)
        sum_[i + 1] = sum_[i] + share * (came[i + 1] - came[i])
    return out
