"""A queue that senders' windows drive from one round trip away: MPCC's plant, one acknowledgement after the other.

Source: MPCC thesis, (3.4) and (3.6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.link import backlog_step


def window_course(
    decide: Callable[[np.ndarray], np.ndarray], *, queue: float, fair_window: float, B: float, delay: int, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """A queue's course from its start, where all windows under way are fair: Q⁺ = max(Q + B (W(k − τ) − c), 0).

    What is under way is known τ samples ahead, so τ samples are taken at once: time and memory grow with `steps` alone.

    Parameters
    ----------
    decide : callable
        From queues [byte] to windows [byte], both (any,).
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
    for k in range(0, steps, max(delay, 1)):
        end = min(k + max(delay, 1), steps)
        if delay == 0:
            windows[k:end] = decide(queues[k:end])
        _advance(B * (windows[k:end] - fair_window), queues[k : end + 1], idle[k:end])
        if delay > 0:
            windows[k + delay : end + delay] = decide(queues[k:end])
    return queues, idle


@njit(cache=True)
def _advance(change: np.ndarray, queues: np.ndarray, idle: np.ndarray) -> None:
    for i in range(len(change)):
        service = max(-change[i], 0.0)
        queues[i + 1], departures, _ = backlog_step(queues[i], max(change[i], 0.0), service, np.inf)
        idle[i] = service - departures
