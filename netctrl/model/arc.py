"""ARC's inputs and certificate, as they stand in a Design file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.errors import InvalidValue, Status, checked_number
from netctrl.model.loop import DelayLoop
from netctrl.units import packets_per_second

__all__ = [
    "PLANTS",
    "AlphaBand",
    "ArcBox",
    "ArcCertificate",
    "ArcInputs",
    "ArcSampled",
    "ArcSetting",
    "Corner",
    "MinimumStability",
    "Plant",
    "PlantLimits",
    "TcpOperatingPoint",
]

Plant = Literal["paper", "noq", "phys"]
"""Model of ARC's loop: `paper`, eq. (7); `noq`, no queue stands; `phys`, a queue stands and slows the senders."""

PLANTS: tuple[Plant, ...] = ("paper", "noq", "phys")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcSetting:
    """The link and ARC's parameters other than its gain.

    Parameters
    ----------
    capacity_packet_per_s : float or ndarray
        C, above 0 [packet/s]; an array broadcasts with flows and round-trip times.
    utilization : float
        gamma, in (0, 1].
    epoch_s : float
        d, above 0 [s].
    target_queue_packets : float
        q0, at least 0 [packet].

    Raises
    ------
    InvalidValue
        A value outside these bounds.
    """

    capacity_packet_per_s: Any
    utilization: float = 0.98
    epoch_s: float = 1.0
    target_queue_packets: float = 0.0

    def __post_init__(self) -> None:
        if not np.all(np.isfinite(self.capacity_packet_per_s)) or not np.all(
            np.asarray(self.capacity_packet_per_s) > 0
        ):
            raise InvalidValue("capacity", self.capacity_packet_per_s, "a rate above 0 in packet/s")
        checked_number("utilization", self.utilization, "a number in (0, 1], as in 0.98", above=0.0, at_most=1.0)
        checked_number("epoch", self.epoch_s, "an epoch above 0 in seconds", above=0.0)
        checked_number("target_queue", self.target_queue_packets, "a queue of at least 0 packets", at_least=0.0)


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ArcInputs(_Record, frozen=True):
    """What was asked for. `flows` and `rtt_s` are ranges; a single operating point has both ends equal."""

    flows: tuple[float, float]
    rtt_s: tuple[float, float]
    capacity_bit_per_s: float
    packet_size_bytes: float
    utilization: float
    epoch_s: float
    target_queue_packets: float
    plant: Plant
    alpha_per_packet: float | None
    """A given gain to analyse; None to design one."""
    fragile_flows: float
    """N_min of the paper's minimum-stability condition."""
    fragile_rtt_s: float
    """tau_max of the paper's minimum-stability condition."""

    @property
    def setting(self) -> ArcSetting:
        """The link and the law without its gain, in packets."""
        return ArcSetting(
            capacity_packet_per_s=packets_per_second(self.capacity_bit_per_s, self.packet_size_bytes),
            utilization=self.utilization,
            epoch_s=self.epoch_s,
            target_queue_packets=self.target_queue_packets,
        )

    @property
    def is_point(self) -> bool:
        """One operating point, not a box."""
        return self.flows[0] == self.flows[1] and self.rtt_s[0] == self.rtt_s[1]


class TcpOperatingPoint(_Record, frozen=True):
    """Equilibrium that the certificate's loop is linearised at; of a box, its worst corner."""

    flows: float
    rtt_s: float
    rate_packet_per_s: float
    """Arrival rate in equilibrium."""
    window_packets: float
    """w0, for one flow; TCP's model wants at least 2."""
    marking_probability: float
    """p0 = 2/w0²; the model holds while it is at most 1."""


class AlphaBand(_Record, frozen=True):
    """alpha/epoch [1/s per packet] that meets GM >= 6 dB and 30° <= PM <= 60°, exact for the delay."""

    low: float
    high: float
    limit: float
    """alpha/epoch at which the loop becomes unstable."""
    binding: Literal["phase margin", "gain margin"]
    """What sets `high`."""
    intervals: tuple[tuple[float, float], ...]
    """All admissible intervals; more than one only where the phase isn't monotone, none where low > high."""


class PlantLimits(_Record, frozen=True):
    """alpha per packet at which the exact sampled loop becomes unstable, under each plant."""

    paper: float
    noq: float
    phys: float


class ArcSampled(_Record, frozen=True):
    """The exact sampled loop: p held over each epoch, arrivals counted over it, the queue sampled at its end."""

    plant: Plant
    """The plant that applies: noq where the equilibrium has no queue, else phys."""
    epoch_s: float
    alpha_limit: float
    """alpha per packet at which it becomes unstable; of a box, the least over it."""
    spectral_radius: float
    """Of one epoch at the chosen alpha; stable iff below 1. Of a box, at the point with the least limit."""
    gain_margin_db: float
    """alpha_limit over alpha."""
    alpha_limits: PlantLimits
    """The limit under each plant, at the certificate's operating point."""


class MinimumStability(_Record, frozen=True):
    """The paper's check (eq. 9) that alpha is much smaller than the marking error that a fragile system sustains."""

    flows: float
    rtt_s: float
    sustainable_error: float
    """4 N²/(tau gamma C)² = 2 p0: eq. 9 with its dimension mended."""
    sustainable_error_as_printed: float
    """4 N²/(tau³ gamma² C²), as eq. 9 prints it."""
    alpha_ratio: float
    """alpha/sustainable_error; "much smaller" is taken as at most 0.1."""
    satisfied: bool
    gain_margin_db: float
    """Of the loop at the fragile point itself: eq. 9 is no stability condition."""
    stable: bool


class Corner(_Record, frozen=True):
    """A corner of a box, or the point of a grid over it."""

    flows: float
    rtt_s: float


class ArcBox(_Record, frozen=True):
    """What holds over a whole box of flows and round-trip times; alpha/epoch [1/s per packet]."""

    admissible: tuple[float, float] | None
    """Admissible at every point of the box; None where there is no such gain."""
    margins_kept_below: float
    """Up to here GM >= 6 dB and PM >= 30° hold at every point; PM may exceed 60°: stable, and slow."""
    stable_below: float
    """Below it the loop is stable at every point."""
    worst_corner: Corner
    """Least stable: sets the two bounds above, and the certificate's margins are taken here."""
    slow_corner: Corner
    """Slowest: sets the low end of what is admissible."""
    slow_phase_margin_deg: float
    """Phase margin at the slow corner with the chosen alpha."""
    points: int
    """4 where the bounds are monotone and the corners decide; else how many points of a grid were searched."""


class ArcCertificate(_Record, frozen=True):
    """Why the gain can be trusted: everything here is exact for the delay. Unlimited margins are null."""

    status: Status
    stable: bool
    """The continuous loop of `plant` and the sampled loop of `sampled.plant` are both stable."""
    plant: Plant
    operating_point: TcpOperatingPoint
    loop: DelayLoop
    """Open loop at the chosen alpha."""
    alpha_over_epoch: AlphaBand
    gain_margin_db: float | None
    phase_margin_deg: float | None
    delay_margin_s: float | None
    crossover_rad_s: float | None
    phase_crossover_rad_s: float | None
    sampled: ArcSampled
    minimum_stability: MinimumStability
    box: ArcBox | None
    warnings: tuple[str, ...]
