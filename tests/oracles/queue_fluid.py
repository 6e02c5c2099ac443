"""Nonlinear fluid of senders in classes, one queue and a PI or averaging law, integrated in time: a judge of frequency
responses.

Written from the differential equations alone (Misra, Gong, Towsley 2000; Alizadeh, Javanmard, Prabhakar 2011), by
Heun's method with delays that depend on the state.
"""

from __future__ import annotations

import numba
import numpy as np

from netctrl.plants.queues.queue_laws import Averaged
from netctrl.plants.queues.queue_loop import QueueLoop

_STEPS = 160  # in the shortest round trip


def growth(loop: QueueLoop, flows: float, rtt: float, gain: float, periods: float, period_s: float) -> float:
    """Rate at which a small deviation of the delay grows, in natural logarithms a period."""
    law, x = loop.law, float(loop.output(flows, rtt))
    averaged = isinstance(law, Averaged)
    if averaged:
        p = x / (2.0 - x) if law.spaced else x
        target = law.start_s + p / law.slope
    else:
        target = law.target_s
    shortest = min(rtt * k.stretch + (target if k.queued else k.other_delay_s) for k in loop.classes)
    update = shortest / 4.0 if averaged else law.update_s  # of an averaging law, between two records
    inside = max(int(np.ceil(update / (shortest / _STEPS))), 8)
    rows = np.array(
        [
            (
                k.share * flows,
                rtt * k.stretch + (0.0 if k.queued else k.other_delay_s),
                k.sender.increase,
                k.sender.decrease,
                k.sender.averaging,
                float(k.sender.scalable),
                k.factor,
                k.power,
                float(k.queued),
                float(k.window(x, rtt * k.stretch + (target if k.queued else k.other_delay_s))),
                0.0 if k.queued else k.other_delay_s,
            )
            for k in loop.classes
        ]
    )
    updates = int(periods * period_s / update)
    # A gain turns the line of an averaging law around its equilibrium.
    line = (gain * law.slope, law.corner, law.spaced, p) if averaged else (0.0, 0.0, False, 0.0)
    delays = _run(
        rows,
        loop.rate,
        0.0 if averaged else gain * law.integral,
        0.0 if averaged else gain * law.proportional,
        update,
        target,
        inside,
        updates,
        x,
        loop.age_s + loop.age_queues * target,
        loop.marked_leaving,
        line,
        0.0 if averaged else law.spaced,
    )
    deviation = np.abs(delays - target)
    size = max(int(np.ceil(2.0 * period_s / update)), 4)
    peaks = [deviation[i : i + size].max() for i in range(0, len(deviation) - size, size)]
    late = np.log(np.maximum(peaks[len(peaks) // 2 :], 1e-300))
    return float(np.polyfit(np.arange(len(late)), late, 1)[0] / (size * update / period_s))


@numba.njit(cache=True)
def _at(history: np.ndarray, now: int, steps: float) -> float:
    n = len(history)
    whole = int(np.floor(steps))
    part = steps - whole
    a = history[(now - whole) % n]
    return a + part * (history[(now - whole - 1) % n] - a)


@numba.njit(cache=True)
def _run(rows, rate, integral, proportional, update, target, inside, updates, x0, age, leaving, line, later):
    K = len(rows)
    h = update / inside
    longest = 0.0
    for i in range(K):
        longest = max(longest, rows[i, 1] + 3.0 * target)
    n = int(np.ceil((longest + age) / h)) + 8
    w = np.empty((K, n))
    r = np.empty((K, n))  # round trips
    m = np.empty(K)
    p = np.full(n, x0)
    q = np.full(n, rate * target)
    for i in range(K):
        w[i] = rows[i, 9]
        r[i] = rows[i, 1] + rows[i, 8] * target
        m[i] = rows[i, 6] * x0 ** rows[i, 7]
        w[i, 0] *= 1.0 + 1e-6
    found = np.empty(updates)
    x, old, now = x0 / (1.0 + later * x0), target, 0  # a law that spreads drops computes less than their share
    slope, corner, spaced, p0 = line
    average = target
    slope_a = np.zeros(2)
    slope_w, slope_m = np.empty((2, K)), np.empty((2, K))
    for update_number in range(updates):
        delay = _at(q, now, age / h) / rate
        x += integral * (delay - target) + proportional * (delay - old)
        old = delay
        found[update_number] = q[now % n] / rate
        for _ in range(inside):
            p[now % n] = x / (1.0 - later * x)
            nxt = (now + 1) % n
            slope_q = np.zeros(2)
            for stage in range(2):
                at = now + stage
                qd = q[at % n] / rate
                if slope > 0.0 and np.isfinite(corner):
                    past = _at(q, at, age / h) / rate
                    slope_a[stage] = corner * (past - average - (slope_a[0] * h if stage else 0.0))
                for i in range(K):
                    a, b, g = rows[i, 2], rows[i, 3], rows[i, 4]
                    window = w[i, at % n]
                    trip = rows[i, 1] + rows[i, 8] * qd
                    r[i, at % n] = trip
                    lag = trip - ((qd if rows[i, 8] > 0.0 else rows[i, 10]) if leaving else 0.0)
                    output = _at(p, at, lag / h) if slope > 0.0 else _held(p, at, lag / h)
                    seen = rows[i, 6] * output ** rows[i, 7]
                    if rows[i, 5] > 0.0:
                        mark = m[i] + (slope_m[0, i] * h if stage else 0.0)
                        slope_m[stage, i] = g / trip * (seen - mark)
                        slope_w[stage, i] = a / trip - b * window * mark / trip
                    else:
                        delayed = _at(w[i], at, trip / h) / _at(r[i], at, trip / h)
                        slope_w[stage, i] = a / trip - b * window * delayed * seen
                    slope_q[stage] += rows[i, 0] * window / trip
                slope_q[stage] -= rate
                if stage == 0:
                    for i in range(K):
                        w[i, nxt] = w[i, now % n] + h * slope_w[0, i]
                    q[nxt] = q[now % n] + h * slope_q[0]
                    p[nxt] = p[now % n]
            for i in range(K):
                w[i, nxt] = w[i, now % n] + 0.5 * h * (slope_w[0, i] + slope_w[1, i])
                if rows[i, 5] > 0.0:
                    m[i] += 0.5 * h * (slope_m[0, i] + slope_m[1, i])
            q[nxt] = q[now % n] + 0.5 * h * (slope_q[0] + slope_q[1])
            now += 1
            if slope > 0.0:
                average = average + 0.5 * h * (slope_a[0] + slope_a[1])
                if not np.isfinite(corner):
                    average = _at(q, now, age / h) / rate
                x = p0 + slope * (average - target)
                if spaced:
                    x = 2.0 * x / (1.0 + x)
    return found


@numba.njit(cache=True)
def _held(history: np.ndarray, now: int, steps: float) -> float:
    """Of a held signal: the value at that time, not between two."""
    return history[(now - int(np.ceil(steps))) % len(history)]
