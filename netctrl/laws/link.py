"""A link's backlog: the one place where a buffer saturates."""

from __future__ import annotations

from netctrl.jit import njit

__all__ = ["backlog_step"]


@njit(cache=True)
def backlog_step(backlog: float, arrivals: float, service: float, buffer: float) -> tuple[float, float, float]:
    """Backlog after a step, what departed in it and what was lost; arrivals = departures + loss + growth of backlog.

    Parameters
    ----------
    backlog : float
        At the step's beginning, from 0 to `buffer`; in any unit that all four share.
    arrivals, service : float
        What arrives in the step, and what the link can serve in it.
    buffer : float
        What may wait at the step's end; inf is no bound.
    """
    offered = backlog + arrivals
    departures = min(offered, service)
    waiting = offered - departures
    after = min(waiting, buffer)
    return after, departures, waiting - after
