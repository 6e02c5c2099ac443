"""Epochs of a marking law: the counters of marker and queue are read, and the marker's probability is set."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from netctrl.linux.marking.program import MarkCounts, Marker

__all__ = ["Epoch", "MarkSample", "run_epochs"]


class Epoch(NamedTuple):
    """What a law is told of one epoch."""

    elapsed_s: float
    """Length [s]."""
    arrived_bytes: int
    """Arrivals in front of the queue [byte of frames]."""
    backlog_bytes: int
    """Backlog at its end [byte of frames]."""


class MarkSample(NamedTuple):
    """Results of one epoch."""

    time_s: float
    """Time of its end since the start [s]."""
    elapsed_s: float
    """Length [s]."""
    arrived_bytes: int
    """Arrivals during the epoch, in front of the queue [byte of frames]."""
    backlog_bytes: int
    """Backlog at its end [byte of frames]."""
    probability: float
    """Probability set at its end."""
    counts: MarkCounts
    """Counts since the start."""
    late: int
    """Number of epochs since the start that ended more than a tenth of their length late."""


def run_epochs(
    marker: Marker,
    backlog: Callable[[], int],
    epoch_s: float,
    decide: Callable[[float, Epoch], float],
    *,
    wait: Callable[[float], object] = time.sleep,
    duration_s: float | None = None,
    heard: Callable[[MarkSample], None] | None = None,
) -> MarkSample | None:
    """Run a law until `wait` returns True or the duration is over. Returns the last epoch.

    Epochs follow the monotonic clock and are never made up for: the law is given the actual length of a late one.

    Parameters
    ----------
    marker : Marker
    backlog : callable
        Reads the backlog [byte of frames].
    epoch_s : float
        Length of an epoch [s].
    decide : callable
        Probability of the next epoch, from the present one and the `Epoch` that ends.
    wait : callable
        Waits for a number of seconds; True ends the run.
    duration_s : float, optional
        Duration [s]; None: until `wait` ends the run.
    heard : callable, optional
        Called with each epoch.
    """
    sample = None
    begin = before = time.monotonic()
    due, late, probability = begin, 0, 0.0
    arrived = marker.counts().bytes
    while duration_s is None or before - begin < duration_s:
        due = max(due + epoch_s, before)
        if wait(max(0.0, due - time.monotonic())) is True:
            break
        waiting = backlog()
        counts, now = marker.counts(), time.monotonic()
        late += now - due > 0.1 * epoch_s
        epoch = Epoch(now - before, counts.bytes - arrived, waiting)
        probability = marker.set_probability(decide(probability, epoch))
        sample = MarkSample(now - begin, *epoch, probability, counts, late)
        before, arrived = now, counts.bytes
        if heard is not None:
            heard(sample)
    return sample
