"""Marking above a threshold, as DCTCP's switches do. Source: Alizadeh et al., SIGCOMM 2010, section 3.1."""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.aqm.law import QueueLaw, QueueRecord, Seen
from netctrl.model.io.fields import Size, read_fields, size


class ThresholdQueue(QueueRecord, frozen=True, kw_only=True, tag="threshold"):
    """Marks each packet that comes while more than a threshold waits.

    Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1.
    """

    threshold: Size = 30e3
    """K, backlog above which packets are marked [byte]."""

    def __post_init__(self) -> None:
        read_fields(self, threshold=size)


class ThresholdParameters(NamedTuple):
    """Parameters of a threshold."""

    threshold: float
    """K [packet]"""


class ThresholdState(NamedTuple):
    """State of a threshold."""

    probability: float
    """Of marking a packet, 0 or 1"""


def threshold_step(state: ThresholdState, seen: Seen, p: ThresholdParameters) -> ThresholdState:
    """p = 1 while q > K, else 0."""
    return ThresholdState(1.0 if seen.backlog > p.threshold else 0.0)


def _read(queue: ThresholdQueue, packet: float, _: float) -> ThresholdParameters:
    return ThresholdParameters(queue.threshold / packet)


THRESHOLD = QueueLaw(ThresholdQueue, ThresholdParameters, ThresholdState, _read, threshold_step)
