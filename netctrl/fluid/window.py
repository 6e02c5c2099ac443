"""A queue that senders' windows drive from one round trip away: MPCC's plant, one acknowledgement after the other.

Source: MPCC thesis, (3.4) and (3.6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.fluid.link import backlog_step

__all__ = ["window_course"]


def window_course(
    decide: Callable[[float, np.ndarray], float], *, queue: float, fair_window: float, B: float, delay: int, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """A queue's course from its start, where all windows under way are fair: Q⁺ = max(Q + B (W(k − τ) − c), 0).

    Parameters
    ----------
    decide : callable
        From the queue [byte] and the last τ windows, oldest first, (τ,) [byte], to the next window.
    queue : float
        Q(0) [byte].
    fair_window : float
        c [byte].
    B : float
        Bytes that the queue gains for each byte of window above c.
    delay : int
        τ [samples].
    steps : int

    Returns
    -------
    queue, idle : ndarray, shapes (steps + 1,), (steps,)
        [byte]; idle is what the link could have sent and didn't have.
    """
    queues, idle, windows = np.empty(steps + 1), np.empty(steps), np.full(delay + steps, fair_window)
    queues[0] = queue
    for k in range(steps):
        windows[delay + k] = decide(queues[k], windows[k : delay + k])
        change = B * (windows[k] - fair_window)
        service = max(-change, 0.0)
        queues[k + 1], departures, _ = backlog_step(queues[k], max(change, 0.0), service, float("inf"))
        idle[k] = service - departures
    return queues, idle
