"""A link: its backlog, the one place where a buffer saturates; the age of its head; the order of fair queues.

Self-clocked fair queueing, for WFQ and CBQ: Q queues have one row of tags, shape (Q + 1,): that of each queue's first
packet, inf where it is empty, and last that of the packet in service. Every packet has F = max(F of the queue's packet
before, F in service) + L/w (eq. 3), and the least F is sent next. Tags in service never fall while the node is busy, so
that the packet before has at most the tag in service once a packet is first of its queue: F = F in service + L/w then,
and until then it needs none.

Source: Golestani, A self-clocked fair queueing scheme for broadband applications, INFOCOM 1994.
"""

from __future__ import annotations

from math import inf

from netctrl.core.jit import INLINED, njit
from netctrl.laws.record import Numbers


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


@njit(cache=True, error_model="numpy")
def head_age(arrived: Numbers, head: int, step: int, gone: float) -> tuple[float, int]:
    """How long ago the head of a fluid's queue arrived, in steps, and in which step; 0 of an empty queue.

    With arrivals A, without what was lost, and departures D, both in total, the head at the time t came at t − w with
    A(t − w) = D(t). A is a line within a step.

    Parameters
    ----------
    arrived : ndarray, shape (n,)
        Ring: what had arrived in total by the end of each step before this one.
    head : int
        Step in which an earlier head arrived.
    step : int
        The one that begins now.
    gone : float
        What has left in total, from the same beginning.
    """
    n = len(arrived)
    k = max(head, step - n + 1)
    while k < step and arrived[k % n] <= gone:
        k += 1
    if k >= step:
        return 0.0, k
    before = arrived[(k - 1) % n] if k > 0 else 0.0
    return step - k - (gone - before) / (arrived[k % n] - before), k


@njit(**INLINED)
def tag_first(tags: Numbers, queue: int, cost: float) -> None:
    """A packet is now the first of its queue; cost: L/w, its length over the queue's weight."""
    tags[queue] = tags[-1] + cost


@njit(**INLINED)
def choose_queue(tags: Numbers) -> int:
    """The queue whose first packet goes into service, of equal tags the first; -1: all are empty, tags restart at 0.

    The caller tags the packet behind it, if there is one (`tag_first`).
    """
    queue, least = -1, inf
    for q in range(len(tags) - 1):
        if tags[q] < least:
            queue, least = q, tags[q]
    if queue < 0:
        tags[-1] = 0.0
    else:
        tags[-1], tags[queue] = least, inf
    return queue
