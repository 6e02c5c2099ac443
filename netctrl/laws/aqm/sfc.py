"""SFC: every epoch, p = k1 (q − q0) + k2 (r/C − 1). Source: Gao, Hou, INFOCOM 2003 (assumed)."""

from __future__ import annotations

from typing import NamedTuple

from netctrl.laws.aqm.law import GAIN, GAIN_OR_0, QueueLaw, QueueRecord, Seen, clip
from netctrl.model.io.fields import Duration, Size, backlog, duration, read_fields


class SfcQueue(QueueRecord, frozen=True, kw_only=True, tag="sfc"):
    """SFC: every epoch, p = k1 (q − q0) [packet] + k2 (r/C − 1), with the rate r counted over the epoch.

    Source: Gao, Hou, INFOCOM 2003 as the ARC paper uses it (Section IV, footnote 3). The paper doesn't print the law:
    this form is assumed.
    """

    k1: float = 0.0005
    """Gain on the queue's error [per packet]."""
    k2: float = 0.2
    """Gain on the rate's relative error."""
    epoch: Duration = 1.0
    """From one update to the next [s]."""
    target_queue: Size = 0.0
    """q0, backlog that is aimed at [byte]."""

    def __post_init__(self) -> None:
        read_fields(self, k1=GAIN, k2=GAIN_OR_0, epoch=duration, target_queue=backlog)


class SfcParameters(NamedTuple):
    """Parameters of SFC."""

    k1: float
    """Gain on the queue [1/packet]"""
    k2: float
    """Gain on the rate over the capacity"""
    target_queue: float
    """q0 [packet]"""


class SfcState(NamedTuple):
    """State of SFC."""

    probability: float
    """Of marking a packet"""


def sfc_step(state: SfcState, seen: Seen, p: SfcParameters) -> SfcState:
    """SFC: p = k1 (q - q0) + k2 (r/C - 1), r counted over the epoch (Gao, Hou, INFOCOM 2003; the form is assumed)."""
    load = seen.arrived / (seen.elapsed * seen.capacity)
    return SfcState(clip(p.k1 * (seen.backlog - p.target_queue) + p.k2 * (load - 1.0)))


def _read(queue: SfcQueue, packet: float, _: float) -> SfcParameters:
    return SfcParameters(queue.k1, queue.k2, queue.target_queue / packet)


SFC = QueueLaw(SfcQueue, SfcParameters, SfcState, _read, sfc_step, epoch=lambda queue: queue.epoch)
