"""What stands at a link: a queue discipline with its parameters, as data. Gains are per packet of the scenario's size.

The laws themselves are in `netctrl.laws.aqm.fluid` (fluid) and in the exported C++ (ns-3).
"""

from __future__ import annotations

from typing import get_args

import msgspec

from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    backlog,
    duration,
    instant,
    number,
    optional,
    rate,
    read_fields,
    record,
    size,
)
from netctrl.model.law import ArcLaw

__all__ = [
    "QUEUES",
    "ArcQueue",
    "AvqQueue",
    "CodelQueue",
    "DesignQueue",
    "DropTailQueue",
    "FastArcQueue",
    "PiQueue",
    "PieQueue",
    "Queue",
    "RateError",
    "RedQueue",
    "SfcQueue",
    "arc_queue",
]

_MAX = 1e9  # of gains and frequencies: beyond all use, and what is computed with it stays finite

_GAIN = number("a gain above 0, as in 1.42e-5, to 1e9", above=0.0, at_most=_MAX)
_GAIN_OR_0 = number("a gain from 0 to 1e9", at_least=0.0, at_most=_MAX)
_FREQUENCY = number("a frequency from 1e-9 to 1e9", at_least=1.0 / _MAX, at_most=_MAX)
_UTILIZATION = number("a number in (0, 1], as in 0.98", above=0.0, at_most=1.0)
_PROBABILITY = number("a probability in (0, 1]", above=0.0, at_most=1.0)


class _Queue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    pass


class RateError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """amplitude · sin(frequency (t − start)) [bit/s] added to the arrivals that a rate-based law measures.

    Source: ARC paper, Section II (Fig. 4), where it stands for an error of the rate estimate.
    """

    amplitude: Rate
    frequency_rad_s: float
    start: Duration = 0.0

    def __post_init__(self) -> None:
        read_fields(
            self,
            amplitude=rate,
            frequency_rad_s=_FREQUENCY,
            start=instant,
        )


class ArcQueue(_Queue, frozen=True, kw_only=True, tag="arc"):
    """ARC: every epoch, p ← p + alpha (b − gamma (d C − (q − q0))), b ← 0. C follows the link.

    Source: ARC paper, Algorithm 2; defaults from its Section IV.
    """

    alpha: float = 1.42e-5
    """Per packet."""
    epoch: Duration = 1.0
    """d."""
    target_utilization: float = 0.98
    """gamma."""
    target_queue: Size = 0.0
    """q0 [byte]."""
    rate_error: RateError | None = None

    def __post_init__(self) -> None:
        read_fields(self, alpha=_GAIN, epoch=duration, target_utilization=_UTILIZATION, target_queue=backlog)
        read_fields(self, rate_error=optional(record(RateError)))


class FastArcQueue(_Queue, frozen=True, kw_only=True, tag="fast-arc"):
    """FAST-extended ARC: every epoch, q_v ← q_v + b − gamma (d C − (q − q0)); TCP is marked with alpha q_v,
    FAST with 1 − phi^(−q_v/(gamma C)) (REM's coding of the price q_v/(gamma C)).

    Source: ARC paper, Algorithm 3, which leaves out the "1 −" (theory: REM, reference [6] of the paper).
    """

    alpha: float = 1.42e-5
    epoch: Duration = 1.0
    target_utilization: float = 0.98
    target_queue: Size = 0.0
    phi: float = 1.5
    """REM's constant, above 1; price in seconds."""

    def __post_init__(self) -> None:
        read_fields(self, alpha=_GAIN, epoch=duration, target_utilization=_UTILIZATION, target_queue=backlog)
        read_fields(self, phi=number("REM's constant, above 1, to 1e9", above=1.0, at_most=_MAX))


class PiQueue(_Queue, frozen=True, kw_only=True, tag="pi"):
    """PI: every 1/frequency, p ← p + alpha (q − q_ref) − beta (q_old − q_ref).

    Source: Hollot, Misra, Towsley, Gong, "On designing improved controllers for AQM routers supporting TCP flows",
    INFOCOM 2001; gains and frequency as the ARC paper's Section IV, whose reference queue isn't stated (here 50 kB).
    """

    alpha: float = 1.822e-5
    beta: float = 1.816e-5
    frequency_hz: float = 170.0
    reference_queue: Size = 50e3

    def __post_init__(self) -> None:
        read_fields(self, alpha=_GAIN, beta=_GAIN_OR_0, reference_queue=backlog)
        read_fields(
            self,
            frequency_hz=_FREQUENCY,
        )


class AvqQueue(_Queue, frozen=True, kw_only=True, tag="avq"):
    """AVQ: virtual capacity C~' = damping (gamma C − arrivals); what overflows a virtual queue of C~ is marked.

    Source: Kunniyur, Srikant, "Analysis and design of an adaptive virtual queue", SIGCOMM 2001; values as the ARC
    paper's Section IV.
    """

    target_utilization: float = 0.98
    damping: float = 0.15
    """alpha [1/s]."""
    virtual_buffer: Size | None = None
    """Of the virtual queue [byte]; the link's buffer if null."""

    def __post_init__(self) -> None:
        read_fields(self, target_utilization=_UTILIZATION, damping=_GAIN, virtual_buffer=optional(size))


class SfcQueue(_Queue, frozen=True, kw_only=True, tag="sfc"):
    """SFC: every epoch, p = k1 (q − q0) [packet] + k2 (r/C − 1), with the rate r counted over the epoch.

    Source: Gao, Hou, INFOCOM 2003 as the ARC paper uses it (Section IV, footnote 3). The paper doesn't print the law:
    this form is assumed.
    """

    k1: float = 0.0005
    k2: float = 0.2
    epoch: Duration = 1.0
    target_queue: Size = 0.0

    def __post_init__(self) -> None:
        read_fields(self, k1=_GAIN, k2=_GAIN_OR_0, epoch=duration, target_queue=backlog)


class RedQueue(_Queue, frozen=True, kw_only=True, tag="red"):
    """RED, gentle: p grows with the average queue, from 0 at min to max_probability at max, to 1 at 2 max.

    Source: Floyd, Jacobson 1993; Floyd, "Recommendation on using the gentle variant of RED", 2000.
    """

    min_threshold: Size = 25e3
    max_threshold: Size = 75e3
    max_probability: float = 0.1
    weight: float = 0.002
    """Of one packet in the moving average."""

    def __post_init__(self) -> None:
        read_fields(self, min_threshold=size, max_threshold=size, max_probability=_PROBABILITY)
        read_fields(self, weight=number("a weight in (0, 1]", above=0.0, at_most=1.0))
        number("a threshold above min_threshold", above=self.min_threshold)("max_threshold", self.max_threshold)


class PieQueue(_Queue, frozen=True, kw_only=True, tag="pie"):
    """PIE: every update, p ← p + s(p) (alpha (D − target) + beta (D − D_old)), with the delay D = q/C.

    Source: RFC 8033, Section 4.2 with its scaling s(p), its caps and its burst allowance.
    """

    target: Duration = 15e-3
    update: Duration = 15e-3
    alpha: float = 0.125
    """[1/s]"""
    beta: float = 1.25
    """[1/s]"""
    burst: Duration = 150e-3

    def __post_init__(self) -> None:
        read_fields(self, target=duration, update=duration, alpha=_GAIN, beta=_GAIN_OR_0, burst=instant)


class CodelQueue(_Queue, frozen=True, kw_only=True, tag="codel"):
    """CoDel: once the delay has stood above target for an interval, a mark each interval/√count.

    Source: RFC 8289; the fluid model spreads the marks over the packets of the time between two of them.
    """

    target: Duration = 5e-3
    interval: Duration = 100e-3

    def __post_init__(self) -> None:
        read_fields(self, target=duration, interval=duration)


class DropTailQueue(_Queue, frozen=True, kw_only=True, tag="droptail"):
    """A buffer and nothing else."""


class DesignQueue(_Queue, frozen=True, kw_only=True, tag="design"):
    """A place for the law of a Design file: `--design FILE`."""


Queue = (
    ArcQueue
    | FastArcQueue
    | PiQueue
    | AvqQueue
    | SfcQueue
    | RedQueue
    | PieQueue
    | CodelQueue
    | DropTailQueue
    | DesignQueue
)
"""Every kind of queue; in a file, `kind` tells which."""

QUEUES = get_args(Queue)


def arc_queue(law: ArcLaw, packet_size_bytes: float) -> ArcQueue:
    """The queue that runs a law of a Design, with its gain per packet of another size if need be."""
    return ArcQueue(
        alpha=law.alpha_per_byte * packet_size_bytes,
        epoch=law.epoch_s,
        target_utilization=law.target_utilization,
        target_queue=law.target_queue_packets * law.packet_size_bytes,
    )
