"""RED, gentle. Source: Floyd, Jacobson 1993; Floyd, "Recommendation on using the gentle variant of RED", 2000."""

from __future__ import annotations

from math import expm1, log1p
from typing import NamedTuple

from netctrl.laws.aqm.law import PROBABILITY, QueueLaw, QueueRecord, Seen
from netctrl.model.io.fields import Size, number, read_fields, size

__all__ = ["RED", "RedParameters", "RedQueue", "RedState", "red_step"]


class RedQueue(QueueRecord, frozen=True, kw_only=True, tag="red"):
    """RED, gentle: p grows with the average queue, from 0 at min to max_probability at max, to 1 at 2 max.

    Source: Floyd, Jacobson 1993; Floyd, "Recommendation on using the gentle variant of RED", 2000.
    """

    min_threshold: Size = 25e3
    """Average queue above which packets are marked [byte]."""
    max_threshold: Size = 75e3
    """Average queue at which `max_probability` is reached [byte]."""
    max_probability: float = 0.1
    """Probability at `max_threshold`."""
    weight: float = 0.002
    """Of one packet in the moving average."""

    def __post_init__(self) -> None:
        read_fields(self, min_threshold=size, max_threshold=size, max_probability=PROBABILITY)
        read_fields(self, weight=number("a weight in (0, 1]", above=0.0, at_most=1.0))
        number("a threshold above min_threshold", above=self.min_threshold)("max_threshold", self.max_threshold)


class RedParameters(NamedTuple):
    """Parameters of RED."""

    min_threshold: float
    """[packet]"""
    max_threshold: float
    """[packet]"""
    max_probability: float
    """At max_threshold"""
    log_forgetting: float
    """ln(1 - weight) of one packet in the moving average"""


class RedState(NamedTuple):
    """State of RED."""

    probability: float
    """Of marking a packet"""
    average: float
    """Of the queue [packet]"""


def red_step(state: RedState, seen: Seen, p: RedParameters) -> RedState:
    """RED, gentle. Marks are spread evenly: 2 p/(1 + p) of the packets are marked (Floyd, Jacobson 1993, Section 7).

    The average follows the queue with -ln(1 - weight) C; it stands half a step after the backlog that is seen.
    """
    kept = p.log_forgetting * seen.capacity * seen.elapsed
    average = state.average - expm1(kept) * (seen.backlog - state.average)
    if average < p.min_threshold:
        base = 0.0
    elif average < p.max_threshold:
        base = p.max_probability * (average - p.min_threshold) / (p.max_threshold - p.min_threshold)
    else:
        base = p.max_probability + (1.0 - p.max_probability) * (average - p.max_threshold) / p.max_threshold
        base = min(base, 1.0)
    return RedState(2.0 * base / (1.0 + base), average)


def _read(queue: RedQueue, packet: float, _: float) -> RedParameters:
    low, high = queue.min_threshold / packet, queue.max_threshold / packet
    return RedParameters(low, high, queue.max_probability, log1p(-queue.weight))


RED = QueueLaw(RedQueue, RedParameters, RedState, _read, red_step)
