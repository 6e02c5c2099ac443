"""ARC: every epoch d, p ← p + alpha (b − gamma (d C − (q − q0))). Source: ARC paper, Algorithm 2.

On a router it takes one epoch's counters to the marking probability (`arc_probability`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from netctrl.core.errors import checked_number
from netctrl.core.units import packets_per_second
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


def arc_probability(
    law: ArcLaw,
    probability: float,
    arrived_bytes: float,
    backlog_bytes: float,
    elapsed_s: float | None = None,
    header_bytes: float = 0.0,
) -> float:
    """Marking probability of the next epoch, from the present one and the epoch's counters.

    Packets are what the law was designed for, so bytes are divided by a packet's; the link's rate is the Design's,
    counted without `header_bytes`.

    Parameters
    ----------
    law : ArcLaw
    probability : float
        In force until now, from 0 to 1.
    arrived_bytes : float
        b: came to the queue in the epoch, whether it was taken or dropped [byte].
    backlog_bytes : float
        q: waits at the epoch's end [byte].
    elapsed_s : float, optional
        How long the epoch really was [s]; the law's own length where a clock keeps it.
    header_bytes : float
        Of the link layer, which both counters hold for each packet beside the law's packet size [byte].

    Raises
    ------
    InvalidValue
        A probability outside 0 to 1, a count below 0, or an epoch that isn't above 0.
    """
    checked_number("probability", probability, "a probability from 0 to 1", at_least=0.0, at_most=1.0)
    checked_number("arrived_bytes", arrived_bytes, "a number of bytes of at least 0", at_least=0.0)
    checked_number("backlog_bytes", backlog_bytes, "a number of bytes of at least 0", at_least=0.0)
    checked_number("header_bytes", header_bytes, "a number of bytes of at least 0", at_least=0.0)
    elapsed = law.epoch_s if elapsed_s is None else elapsed_s
    checked_number("elapsed_s", elapsed, "a time above 0 in seconds", above=0.0)
    packet = law.packet_size_bytes + header_bytes
    capacity = packets_per_second(law.capacity_bit_per_s, law.packet_size_bytes)
    seen = Seen(elapsed, arrived_bytes / packet, 0.0, backlog_bytes / packet, capacity)
    parameters = ArcParameters(law.alpha_per_packet, law.target_utilization, law.target_queue_packets)
    return float(arc_step(ArcState(probability), seen, parameters).probability)
