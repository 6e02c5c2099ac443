"""DCTCP's fluid at a threshold in packets and seconds, integrated by small Euler steps: a judge of its limit cycle.

Written from Alizadeh, Javanmard, Prabhakar (SIGMETRICS 2011), (3) to (5), with marks from a history of the queue.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def queue_over_time(flows, rtt, rate, threshold, gain, trips, steps):
    """Queue [packet] at `steps` points in each round trip at the threshold, and the share of capacity that is used."""
    lag = rtt + threshold / rate
    h = lag / steps
    n = int(trips) * steps
    q = np.empty(n + 1)
    window, alpha = 1.05 * rate * lag / flows, 0.5
    q[0] = threshold
    used = np.empty(n + 1)
    used[0] = 1.0
    for k in range(n):
        trip = rtt + q[k] / rate
        mark = 1.0 if k >= steps and q[k - steps] > threshold else 0.0
        arrivals = flows * window / trip
        used[k + 1] = 1.0 if q[k] > 0.0 else min(arrivals / rate, 1.0)
        q[k + 1] = max(q[k] + h * (arrivals - rate), 0.0)
        window, alpha = (
            window + h * (1.0 / trip - 0.5 * window * alpha * mark / trip),
            alpha + h * gain / trip * (mark - alpha),
        )
    return q, used


def cycle(flows, rtt, rate, threshold, gain=1.0 / 16.0, trips=2000, steps=1000):
    """(highest, lowest, mean, period in seconds, lost share) over the last third."""
    q, used = queue_over_time(flows, rtt, rate, threshold, gain, trips, steps)
    late = q[2 * len(q) // 3 :]
    above = late > threshold
    starts = np.flatnonzero(above[1:] & ~above[:-1])
    whole = slice(starts[0], starts[-1])
    period = (starts[-1] - starts[0]) / (len(starts) - 1) * (rtt + threshold / rate) / steps
    lost = 1.0 - used[2 * len(q) // 3 :][whole].mean()
    return late.max(), late.min(), late[whole].mean(), period, lost
