"""ARC's inputs and certificate, as they stand in a Design file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from netctrl.errors import InvalidValue, Status, checked_number
from netctrl.model.io.record_file import Record
from netctrl.model.loop import DelayLoop
from netctrl.units import packets_per_second

__all__ = [
    "PLANTS",
    "AlphaBand",
    "ArcBox",
    "ArcCertificate",
    "ArcInputs",
    "ArcReach",
    "ArcSampled",
    "ArcSetting",
    "ArcSimulated",
    "Corner",
    "MinimumStability",
    "PaperLoop",
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


class ArcInputs(Record, frozen=True):
    """What was asked for. `flows` and `rtt_s` are ranges; a single operating point has both ends equal."""

    flows: tuple[float, float]
    rtt_s: tuple[float, float]
    capacity_bit_per_s: float
    packet_size_bytes: float
    utilization: float
    epoch_s: float
    target_queue_packets: float
    plant: Plant | Literal["auto"]
    """Continuous loop of `PaperLoop`; auto is eq. (7). What decides is always the plant that applies."""
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


class TcpOperatingPoint(Record, frozen=True):
    """Equilibrium that the certificate's loop is linearised at; of a box, its worst corner."""

    flows: float
    rtt_s: float
    rate_packet_per_s: float
    """Arrival rate in equilibrium."""
    window_packets: float
    """w0, for one flow; TCP's model wants at least 2."""
    marking_probability: float
    """p0 = 2/w0²; the model holds while it is at most 1."""


class AlphaBand(Record, frozen=True):
    """alpha/epoch [1/s per packet] that meets GM >= 6 dB and 30° <= PM <= 60°, exact for the delay."""

    low: float
    high: float
    limit: float
    """alpha/epoch at which the loop becomes unstable."""
    binding: Literal["phase margin", "gain margin"]
    """What sets `high`."""
    intervals: tuple[tuple[float, float], ...]
    """All admissible intervals; more than one only where the phase isn't monotone, none where low > high."""


class PlantLimits(Record, frozen=True):
    """alpha per packet at which the sampled loop with Hollot's undelayed window becomes unstable, under each plant."""

    paper: float
    noq: float
    phys: float


class ArcSampled(Record, frozen=True):
    """The loop that decides: TCP's window delayed on itself, p held over each epoch, arrivals counted over it.

    All margins are those of this one loop on the unit circle. They are null where there is no equilibrium, and in
    Designs that an older netctrl made where it didn't compute them.
    """

    plant: Plant
    """The plant that applies: noq where the equilibrium has no queue, else phys."""
    epoch_s: float
    alpha_limit: float | None
    """alpha per packet at which it becomes unstable; of a box, at its worst point."""
    spectral_radius: float | None
    """Of one epoch at the chosen alpha; stable iff below 1."""
    gain_margin_db: float | None
    """alpha_limit over alpha."""
    phase_margin_deg: float | None = None
    """At the worst gain crossover; in (-180, 180]."""
    delay_margin_s: float | None = None
    """Extra delay in the path that it stands; 0 where it is unstable, null where it is unlimited."""
    disk_margin: float | None = None
    """2/||S - T||: gain and phase may change together by any f = (1 + x/2)/(1 - x/2), |x| below it."""
    crossover_rad_s: float | None = None
    phase_crossover_rad_s: float | None = None


class ArcSimulated(Record, frozen=True):
    """The nonlinear fluid at the chosen gain, the worst of several starts; of a box, of its corners too."""

    probability_cv: float
    """Standard deviation of p over its mean once it had time to settle; from 0.05 on it oscillates."""
    utilization: float
    queue_packets: float
    """Mean queue."""
    duration_s: float
    """Simulated time of the longest run."""
    settles: bool
    """It comes to rest from each start."""


class ArcReach(Record, frozen=True):
    """How far the operating point may move with the margins kept, one way at a time; proved over each interval."""

    fewest_flows: float
    """Down to so many flows at the design's round-trip time."""
    longest_rtt_s: float
    """Up to this round-trip time with the design's flows."""
    most_flows: float
    """Up to so many flows TCP has an equilibrium at the design's round-trip time (p0 = 1)."""


class MinimumStability(Record, frozen=True):
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


class Corner(Record, frozen=True):
    """A corner of a box, or the point of a grid over it."""

    flows: float
    rtt_s: float


class ArcBox(Record, frozen=True):
    """What holds at every point of a box of flows and round-trip times, proved between points too; alpha per packet."""

    margins_kept_below: float
    """Up to here GM >= 6 dB and PM >= 30 degrees hold at every point."""
    stable_below: float
    """Below it the loop is stable at every point."""
    gap: float
    """Relative: somewhere in the box the bounds fail at most so much above what is proved."""
    worst_corner: Corner
    """Where the margins are least; the certificate's margins are taken there."""
    cells: int
    """Boxes of angle, flows and round-trip time that the proof took."""


class PaperLoop(Record, frozen=True):
    """What the paper says: a continuous loop with Hollot's undelayed window. It has no part in the verdict."""

    plant: Plant
    """`paper` is eq. (7); of a box, at its worst corner."""
    loop: DelayLoop
    """Open loop at the chosen alpha."""
    stable: bool
    alpha_over_epoch: AlphaBand
    gain_margin_db: float | None
    phase_margin_deg: float | None
    delay_margin_s: float | None
    crossover_rad_s: float | None
    phase_crossover_rad_s: float | None
    alpha_limits: PlantLimits
    minimum_stability: MinimumStability


class ArcCertificate(Record, frozen=True):
    """Why the gain can be trusted: the sampled loop and the nonlinear fluid. Unlimited margins are null."""

    status: Status
    stable: bool
    """The sampled loop is stable, over the whole box."""
    operating_point: TcpOperatingPoint
    sampled: ArcSampled
    simulated: ArcSimulated | None
    """Null where the check was left out, or there is no equilibrium."""
    reach: ArcReach | None
    """Null for a box, and where the margins aren't kept."""
    paper: PaperLoop
    box: ArcBox | None
    warnings: tuple[str, ...]
