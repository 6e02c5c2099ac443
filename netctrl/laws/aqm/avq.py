"""AVQ: marks packets that would overflow a virtual queue of capacity v, v' = damping (gamma C − arrivals).

Source: Kunniyur, Srikant, "Analysis and design of an adaptive virtual queue", SIGCOMM 2001, eq. (1) and Figure 2.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.law import GAIN, UTILIZATION, QueueLaw, QueueRecord, Seen
from netctrl.model.io.fields import Size, optional, read_fields, size


class AvqQueue(QueueRecord, frozen=True, kw_only=True, tag="avq"):
    """AVQ: virtual capacity C~' = damping (gamma C − arrivals); what overflows a virtual queue of C~ is marked.

    Source: Kunniyur, Srikant, "Analysis and design of an adaptive virtual queue", SIGCOMM 2001; values as the ARC
    paper's Section IV.
    """

    target_utilization: float = 0.98
    """gamma, share of the capacity that is aimed at."""
    damping: float = 0.15
    """alpha, gain of the virtual capacity [1/s]."""
    virtual_buffer: Size | None = None
    """Of the virtual queue [byte]; the link's buffer if null."""

    def __post_init__(self) -> None:
        read_fields(self, target_utilization=UTILIZATION, damping=GAIN, virtual_buffer=optional(size))


class AvqParameters(NamedTuple):
    """Parameters of AVQ."""

    utilization: float
    """Target utilization gamma"""
    damping: float
    """Gain of the virtual capacity [1/s]"""
    virtual_buffer: float
    """Of the virtual queue [packet]"""


class AvqState(NamedTuple):
    """State of AVQ."""

    probability: float
    """Of marking what arrives now: 0 or 1 for a packet"""
    backlog: float
    """Of the virtual queue [packet]"""
    capacity: float
    """Of the virtual queue [packet/s]"""
    begun: float
    """0 before the first arrival, then 1"""


def avq_step(state: AvqState, seen: Seen, p: AvqParameters) -> AvqState:
    """AVQ: a packet that would overflow the virtual queue is marked, and not added to it (SIGCOMM 2001, Figure 2)."""
    served = state.capacity if state.begun > 0.0 else seen.capacity
    drained = max(state.backlog - seen.elapsed * served, 0.0)
    grown = min(served + p.damping * p.utilization * seen.capacity * seen.elapsed, seen.capacity)
    capacity = max(grown - p.damping * seen.offered, 0.0)
    if drained + seen.offered > p.virtual_buffer:
        return AvqState(1.0, drained, capacity, 1.0)
    return AvqState(0.0, drained + seen.offered, capacity, 1.0)


def avq_fluid(state: AvqState, seen: Seen, p: AvqParameters) -> AvqState:
    """AVQ in a fluid: of what arrives in a step, the part that overflows the virtual queue is marked (eq. (1))."""
    before = state.capacity if state.begun > 0.0 else p.utilization * seen.capacity  # begins where it would rest
    desired = before + p.damping * (p.utilization * seen.capacity * seen.elapsed - seen.offered)
    capacity = min(max(desired, 0.0), seen.capacity)
    served = 0.5 * seen.elapsed * before + 0.5 * seen.elapsed * capacity
    waiting = max(state.backlog + seen.offered - served, 0.0)
    backlog = min(waiting, p.virtual_buffer)
    marked = waiting - backlog
    return AvqState(marked / seen.offered if marked > 0.0 else 0.0, backlog, capacity, 1.0)


def _read(queue: AvqQueue, packet: float, buffer: float) -> AvqParameters:
    virtual = buffer if queue.virtual_buffer is None else queue.virtual_buffer
    if virtual == inf:
        raise InvalidValue("virtual_buffer", queue.virtual_buffer, "a size, where the link's buffer is unlimited")
    return AvqParameters(queue.target_utilization, queue.damping, virtual / packet)


AVQ = QueueLaw(AvqQueue, AvqParameters, AvqState, _read, avq_step, fluid=avq_fluid)
