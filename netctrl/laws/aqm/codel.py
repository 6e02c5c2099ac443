"""CoDel in a fluid: once the delay has stood above target for an interval, a mark each interval/√count.

Source: RFC 8289, Section 5, with the marks spread over the packets of the time between two of them. What drops packets
at a fluid's queue one by one is `netctrl.laws.aqm.codel_packets`.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from netctrl.laws.aqm.law import QueueLaw, QueueRecord, Seen
from netctrl.model.io.fields import Duration, duration, read_fields

__all__ = ["CODEL", "CodelParameters", "CodelQueue", "CodelState", "codel_step"]


class CodelQueue(QueueRecord, frozen=True, kw_only=True, tag="codel"):
    """CoDel: once the delay has stood above target for an interval, a mark each interval/√count.

    Source: RFC 8289; the fluid model spreads the marks over the packets of the time between two of them.
    """

    target: Duration = 5e-3
    interval: Duration = 100e-3

    def __post_init__(self) -> None:
        read_fields(self, target=duration, interval=duration)


class CodelParameters(NamedTuple):
    """Parameters of CoDel."""

    target: float
    """Delay [s]"""
    interval: float
    """[s]"""


class CodelState(NamedTuple):
    """State of CoDel."""

    probability: float
    """Of marking a packet"""
    above: float
    """Time above target [s]"""
    count: float
    """Marks since"""


def codel_step(state: CodelState, seen: Seen, p: CodelParameters) -> CodelState:
    """CoDel-like: after an interval above target, sqrt(count)/interval marks a second among C packets that leave."""
    if seen.backlog / seen.capacity < p.target or seen.backlog <= 1.0:
        return CodelState(0.0, 0.0, max(state.count - 2.0, 1.0) if state.count > 0.0 else 0.0)
    above = state.above + seen.elapsed
    if above < p.interval:
        return CodelState(state.probability, above, state.count)
    count = max(state.count, 1.0)
    marks = sqrt(count) / p.interval
    return CodelState(min(marks / seen.capacity, 1.0), above, count + marks * seen.elapsed)


def _read(queue: CodelQueue, _: float, __: float) -> CodelParameters:
    return CodelParameters(queue.target, queue.interval)


CODEL = QueueLaw(CodelQueue, CodelParameters, CodelState, _read, codel_step)
