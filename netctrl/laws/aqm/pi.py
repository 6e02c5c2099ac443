"""PI: every epoch, p ← p + alpha (q − q_ref) − beta (q_old − q_ref).

Source: Hollot, Misra, Towsley, Gong, "On designing improved controllers for AQM routers supporting TCP flows",
INFOCOM 2001.
"""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.aqm.law import FREQUENCY, GAIN, GAIN_OR_0, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import Size, backlog, read_fields


class PiQueue(QueueRecord, frozen=True, kw_only=True, tag="pi"):
    """PI: every 1/frequency, p ← p + alpha (q − q_ref) − beta (q_old − q_ref).

    Source: Hollot, Misra, Towsley, Gong, "On designing improved controllers for AQM routers supporting TCP flows",
    INFOCOM 2001; gains and frequency as the ARC paper's Section IV, whose reference queue isn't stated (here 50 kB).
    """

    alpha: float = 1.822e-5
    """Gain on this sample's error [per packet]."""
    beta: float = 1.816e-5
    """Gain on the last sample's error [per packet]."""
    frequency_hz: float = 170.0
    """Updates in a second [Hz]."""
    reference_queue: Size = 50e3
    """q_ref, backlog that is aimed at [byte]."""

    def __post_init__(self) -> None:
        read_fields(self, alpha=GAIN, beta=GAIN_OR_0, reference_queue=backlog, frequency_hz=FREQUENCY)


class PiParameters(NamedTuple):
    """Parameters of PI."""

    alpha: float
    """Gain on the queue [1/packet]"""
    beta: float
    """Gain on the queue of the epoch before [1/packet]"""
    reference_queue: float
    """q_ref [packet]"""


class PiState(NamedTuple):
    """State of PI."""

    probability: float
    """Of marking a packet"""
    old_backlog: float
    """q_old [packet]"""


def pi_step(state: PiState, seen: Seen, p: PiParameters) -> PiState:
    """PI: p <- p + alpha (q - q_ref) - beta (q_old - q_ref). Source: Hollot, Misra, Towsley, Gong, INFOCOM 2001."""
    rise = p.alpha * (seen.backlog - p.reference_queue) - p.beta * (state.old_backlog - p.reference_queue)
    return PiState(clip(state.probability + rise), seen.backlog)


def _read(queue: PiQueue, packet: float, _: float) -> PiParameters:
    return PiParameters(queue.alpha, queue.beta, queue.reference_queue / packet)


PI = QueueLaw(PiQueue, PiParameters, PiState, _read, pi_step, epoch=lambda queue: 1.0 / queue.frequency_hz)
