"""The linear delay equation of TCP under a sampled law, stepped in time: what certificates are judged by.

Nothing of netctrl is used. TCP around its equilibrium (Misra, Gong, Towsley, linearised with its delayed window):

    X' = −(X + q)/(w0 tau) − y(t − tau)/w0 − (N w0²/(2 tau)) p(t − tau − late),   y = (X − q)/tau,   q' = y

for all flows together; without a standing queue q stays 0. Trapezoidal steps, linear interpolation of what is delayed;
the law acts every epoch on what arrived in it: p += alpha (b + gamma q).
"""

from __future__ import annotations

import math

import numpy as np


def growth(
    flows: float,
    rtt: float,
    rate: float,
    epoch: float,
    alpha: float,
    *,
    queue: bool = False,
    gamma: float = 1.0,
    late: float = 0.0,
    epochs: int = 400,
    per_rtt: int = 40,
) -> float:
    """Factor by which the deviation grows in an epoch, from its envelope over the last half of the run."""
    w0 = rtt * rate / flows
    substeps = max(4, math.ceil(epoch / rtt * per_rtt))
    h = epoch / substeps
    steps = epochs * substeps
    back, back_late = rtt / h, (rtt + late) / h
    start = math.ceil(back_late) + 2
    y = np.zeros(start + steps + 1)
    p = np.zeros(start + steps + 1)  # p[k] holds over step k
    marks, window, waiting = 1e-3, 0.0, 0.0
    seen = np.empty(epochs)
    p[:start] = 0.0
    gain = flows * w0 * w0 / (2.0 * rtt)
    k = start
    for n in range(epochs):
        arrived = 0.0
        for _ in range(substeps):
            p[k] = marks
            forces = []
            for ahead in (0.0, 1.0):  # both ends of the step
                at = k + ahead - back
                i = math.floor(at)
                forces.append(-((1.0 - (at - i)) * y[i] + (at - i) * y[i + 1]) / w0)
            pushed = -gain * _mean(p, k - back_late, k + 1 - back_late)
            # Trapezoidal: the window (and the queue) at both ends, the rest averaged.
            a = h / (2.0 * w0 * rtt)
            source = 0.5 * h * sum(forces) + h * pushed
            if queue:
                # X1 (1 + a) + q1 a = X0 (1 − a) − q0 a + source;  q1 − q0 = (h/2)(y0 + y1), y = (X − q)/tau
                c = h / (2.0 * rtt)
                left = np.array([[1.0 + a, a], [-c, 1.0 + c]])
                right = [window * (1.0 - a) - waiting * a + source, waiting + c * (window - waiting)]
                new_window, new_waiting = np.linalg.solve(left, right)
            else:
                new_window, new_waiting = (window * (1.0 - a) + source) / (1.0 + a), 0.0
            before, after = (window - waiting) / rtt, (new_window - new_waiting) / rtt
            arrived += 0.5 * h * (before + after)
            window, waiting = new_window, new_waiting
            k += 1
            y[k] = after
        marks += alpha * (arrived + gamma * waiting)
        seen[n] = marks
        size = max(abs(marks), np.abs(y[max(k - math.ceil(back_late) - 2, 0) : k + 1]).max() / (gain + 1e-300))
        if size > 1e100 or size < 1e-100:
            y /= size
            p /= size
            marks, window, waiting, seen = marks / size, window / size, waiting / size, seen / size
    half = np.abs(seen[epochs // 2 :])
    quarter = len(half) // 2
    first, last = half[:quarter].max(), half[quarter:].max()
    return (last / first) ** (1.0 / quarter)


def _mean(held: np.ndarray, low: float, high: float) -> float:
    """Mean of what is held a step each, over an interval of one step's length."""
    i = math.floor(low)
    part = low - i
    return (1.0 - part) * held[i] + part * held[i + 1]
