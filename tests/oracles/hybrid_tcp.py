"""The linear delay equation of TCP under a sampled law, stepped in time: what certificates are judged by.

Nothing of netctrl is used. TCP around its equilibrium (Misra, Gong, Towsley, linearised with its delayed window):

    X' = −(X + q)/(w0 tau) − y(t − tau)/w0 − (N w0²/(2 tau)) p(t − tau − late),   y = (X − q)/tau,   q' = y

for all flows together; without a standing queue q stays 0. Trapezoidal steps, linear interpolation of what is delayed;
the law acts every epoch on what arrived in it: p += alpha (b + gamma q).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


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
    substeps = max(4, math.ceil(epoch / rtt * per_rtt))
    seen = _course(flows, rtt, rate, epoch, alpha, queue, gamma, late, epochs, substeps)
    half = seen[epochs // 2 :]
    quarter = len(half) // 2
    return math.exp((half[quarter:].max() - half[:quarter].max()) / quarter)


@njit
def _course(flows, rtt, rate, epoch, alpha, queue, gamma, late, epochs, substeps):
    """log |marks| after each epoch; all is scaled together where it leaves what floats hold."""
    w0 = rtt * rate / flows
    h = epoch / substeps
    back, back_late = rtt / h, (rtt + late) / h
    start = math.ceil(back_late) + 2
    y = np.zeros(start + epochs * substeps + 1)
    p = np.zeros(start + epochs * substeps + 1)  # p[k] holds over step k
    marks, window, waiting, scale = 1e-3, 0.0, 0.0, 0.0
    seen = np.empty(epochs)
    gain = flows * w0 * w0 / (2.0 * rtt)
    a = h / (2.0 * w0 * rtt)
    c = h / (2.0 * rtt)
    i, j = math.floor(-back), math.floor(-back_late)
    part, part_late = -back - i, -back_late - j
    k = start
    for n in range(epochs):
        arrived = 0.0
        for _ in range(substeps):
            p[k] = marks
            # Both ends of the step: y(t − tau) and y(t + h − tau); p, held a step each, over the step.
            at = k + i
            delayed = (1.0 - part) * y[at] + y[at + 1] + part * y[at + 2]
            at = k + j
            pushed = -gain * ((1.0 - part_late) * p[at] + part_late * p[at + 1])
            # Trapezoidal: the window (and the queue) at both ends, the rest averaged.
            source = -0.5 * h * delayed / w0 + h * pushed
            if queue:
                # X1 (1 + a) + q1 a = X0 (1 − a) − q0 a + source;  q1 − q0 = (h/2)(y0 + y1), y = (X − q)/tau
                right = window * (1.0 - a) - waiting * a + source
                below = waiting + c * (window - waiting)
                new_window = (right * (1.0 + c) - a * below) / ((1.0 + a) * (1.0 + c) + a * c)
                new_waiting = (below + c * new_window) / (1.0 + c)
            else:
                new_window, new_waiting = (window * (1.0 - a) + source) / (1.0 + a), 0.0
            before, after = (window - waiting) / rtt, (new_window - new_waiting) / rtt
            arrived += 0.5 * h * (before + after)
            window, waiting = new_window, new_waiting
            k += 1
            y[k] = after
        marks += alpha * (arrived + gamma * waiting)
        seen[n] = scale + math.log(max(abs(marks), 1e-300))
        size = max(abs(marks), np.abs(y[max(k - start, 0) : k + 1]).max() / gain)
        if size > 1e100 or 0.0 < size < 1e-100:
            y /= size
            p /= size
            marks, window, waiting, scale = marks / size, window / size, waiting / size, scale + math.log(size)
    return seen
