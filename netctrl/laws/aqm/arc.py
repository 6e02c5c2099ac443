"""ARC: every epoch d, p ← p + alpha (b − gamma (d C − (q − q0))). Source: ARC paper, Algorithm 2."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from netctrl.laws.aqm.law import FREQUENCY, GAIN, UTILIZATION, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    backlog,
    duration,
    instant,
    optional,
    rate,
    read_fields,
    record,
)
from netctrl.model.law import ArcLaw

__all__ = ["ARC", "ArcParameters", "ArcQueue", "ArcState", "RateError", "arc_queue", "arc_step"]


class RateError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """amplitude · sin(frequency (t − start)) [bit/s] added to the arrivals that a rate-based law measures.

    Source: ARC paper, Section II (Fig. 4), where it stands for an error of the rate estimate.
    """

    amplitude: Rate
    """Amplitude of the sine [bit/s]."""
    frequency_rad_s: float
    """Frequency of the sine [rad/s]."""
    start: Duration = 0.0
    """When the error begins [s]."""

    def __post_init__(self) -> None:
        read_fields(self, amplitude=rate, frequency_rad_s=FREQUENCY, start=instant)


class ArcQueue(QueueRecord, frozen=True, kw_only=True, tag="arc"):
    """ARC: every epoch, p ← p + alpha (b − gamma (d C − (q − q0))), b ← 0. C follows the link.

    Source: ARC paper, Algorithm 2; defaults from its Section IV.
    """

    alpha: float = 1.42e-5
    """Gain [per packet]."""
    epoch: Duration = 1.0
    """d, from one update to the next [s]."""
    target_utilization: float = 0.98
    """gamma, share of the capacity that is aimed at."""
    target_queue: Size = 0.0
    """q0, backlog that is aimed at [byte]."""
    rate_error: RateError | None = None
    """Error of the measured arrivals; null: none."""

    def __post_init__(self) -> None:
        read_fields(self, alpha=GAIN, epoch=duration, target_utilization=UTILIZATION, target_queue=backlog)
        read_fields(self, rate_error=optional(record(RateError)))


class ArcParameters(NamedTuple):
    """Parameters of ARC."""

    alpha: float
    """Gain [1/packet]"""
    utilization: float
    """Target utilization gamma"""
    target_queue: float
    """q0 [packet]"""


class ArcState(NamedTuple):
    """State of ARC."""

    probability: float
    """Of marking a packet"""


def arc_step(state: ArcState, seen: Seen, p: ArcParameters) -> ArcState:
    """ARC: p <- p + alpha (b - gamma (d C - (q - q0))) each epoch d. Source: ARC paper, Algorithm 2."""
    served = seen.elapsed * seen.capacity
    excess = seen.backlog - p.target_queue
    return ArcState(clip(state.probability + p.alpha * (seen.arrived - p.utilization * (served - excess))))


def _read(queue: ArcQueue, packet: float, _: float) -> ArcParameters:
    return ArcParameters(queue.alpha, queue.target_utilization, queue.target_queue / packet)


ARC = QueueLaw(ArcQueue, ArcParameters, ArcState, _read, arc_step, epoch=lambda queue: queue.epoch)


def arc_queue(law: ArcLaw, packet_size_bytes: float) -> ArcQueue:
    """The queue that runs a law of a Design, with its gain per packet of another size if need be."""
    return ArcQueue(
        alpha=law.alpha_per_byte * packet_size_bytes,
        epoch=law.epoch_s,
        target_utilization=law.target_utilization,
        target_queue=law.target_queue_packets * law.packet_size_bytes,
    )
