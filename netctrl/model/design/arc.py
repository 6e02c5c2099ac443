"""ARC's inputs and certificate, as stored in a Design file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from netctrl.core.errors import InvalidValue, Status, checked_number
from netctrl.core.units import packets_per_second
from netctrl.model.io.record_file import Record
from netctrl.model.loop import DelayLoop

Plant = Literal["paper", "noq", "phys"]
"""Model of ARC's loop: `paper`, eq. (7); `noq`, no standing queue; `phys`, a standing queue that slows the senders."""

PLANTS: tuple[Plant, ...] = ("paper", "noq", "phys")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcSetting:
    """The link, and ARC's parameters other than its gain.

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
    """Inputs of an ARC design. A single operating point has both ends of its ranges equal."""

    flows: tuple[float, float]
    """N, lowest and highest number of flows."""
    rtt_s: tuple[float, float]
    """tau, shortest and longest round-trip time in equilibrium [s]."""
    capacity_bit_per_s: float
    """C, rate of the link [bit/s]."""
    packet_size_bytes: float
    """Size of a packet [byte]."""
    utilization: float
    """gamma, target utilization."""
    epoch_s: float
    """d, time between two updates of the probability [s]."""
    target_queue_packets: float
    """q0, target queue [packet]."""
    plant: Plant | Literal["auto"]
    """Continuous-time loop of `PaperLoop`; auto is eq. (7). The verdict always uses the plant that applies."""
    alpha_per_packet: float | None
    """A given gain to analyse; None where a gain is designed."""
    fragile_flows: float
    """N_min of the paper's minimum-stability condition."""
    fragile_rtt_s: float
    """tau_max of the paper's minimum-stability condition [s]."""

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
        """Whether the inputs are one operating point, not a box."""
        return self.flows[0] == self.flows[1] and self.rtt_s[0] == self.rtt_s[1]


class TcpOperatingPoint(Record, frozen=True):
    """Equilibrium at which the certificate's loop is linearised; for a box, its worst corner."""

    flows: float
    """Number of flows."""
    rtt_s: float
    """Round-trip time [s]."""
    rate_packet_per_s: float
    """Arrival rate in equilibrium [packet/s]."""
    window_packets: float
    """w0, window of one flow [packet]; TCP's model needs at least 2."""
    marking_probability: float
    """p0 = 2/w0²; the model holds while it is at most 1."""


class AlphaBand(Record, frozen=True):
    """alpha/epoch [1/s per packet] that meets GM >= 6 dB and 30° <= PM <= 60°, exact for the delay."""

    low: float
    """Least admissible alpha/epoch."""
    high: float
    """Greatest admissible alpha/epoch."""
    limit: float
    """alpha/epoch at which the loop becomes unstable."""
    binding: Literal["phase margin", "gain margin"]
    """Margin that sets `high`."""
    intervals: tuple[tuple[float, float], ...]
    """All admissible intervals: several only where the phase isn't monotone, none where low > high."""


class PlantLimits(Record, frozen=True):
    """alpha per packet at which the sampled loop with Hollot's undelayed window becomes unstable, for each plant."""

    paper: float
    """Under the paper's plant, eq. (7)."""
    noq: float
    """Under the plant without a queue."""
    phys: float
    """Under the plant with a queue."""


class ArcSampled(Record, frozen=True):
    """The loop of the verdict: TCP's window delayed on itself, p held over each epoch, arrivals counted over it.

    All margins are those of this loop on the unit circle. They are null where there is no equilibrium, and in
    Designs of older versions of netctrl that didn't compute them.
    """

    plant: Plant
    """The plant that applies: noq where the equilibrium has no queue, else phys."""
    epoch_s: float
    """Sampling interval, the law's epoch [s]."""
    alpha_limit: float | None
    """alpha per packet at which the loop becomes unstable; for a box, at its worst point."""
    spectral_radius: float | None
    """Spectral radius over one epoch at the chosen alpha; stable iff below 1."""
    gain_margin_db: float | None
    """alpha_limit over alpha."""
    phase_margin_deg: float | None = None
    """At the worst gain crossover; in (-180, 180]."""
    delay_margin_s: float | None = None
    """Extra delay that the loop tolerates [s]; 0 where it is unstable, null where it is unlimited."""
    disk_margin: float | None = None
    """2/||S - T||: gain and phase may change together by any f = (1 + x/2)/(1 - x/2), |x| below it."""
    crossover_rad_s: float | None = None
    """Gain crossover that the phase margin belongs to [rad/s]."""
    phase_crossover_rad_s: float | None = None
    """Phase crossover that the gain margin belongs to [rad/s]."""


class ArcSimulated(Record, frozen=True):
    """Nonlinear fluid at the chosen gain: the worst of several starts, for a box also of its corners."""

    probability_cv: float
    """Standard deviation of p over its mean after a settling time; from 0.05 on p oscillates."""
    utilization: float
    """Mean utilization of the link."""
    queue_packets: float
    """Mean queue [packet]."""
    duration_s: float
    """Simulated time of the longest run [s]."""
    settles: bool
    """Whether the fluid comes to rest from each start."""


class ArcReach(Record, frozen=True):
    """Changes of the operating point, one at a time, over which the margins are kept; proved over each interval."""

    fewest_flows: float
    """Smallest number of flows at the design's round-trip time."""
    longest_rtt_s: float
    """Longest round-trip time with the design's flows [s]."""
    most_flows: float
    """Largest number of flows for which TCP has an equilibrium at the design's round-trip time (p0 = 1)."""


class MinimumStability(Record, frozen=True):
    """The paper's check (eq. 9) that alpha is much smaller than the marking error that a fragile system sustains."""

    flows: float
    """Number of flows at the fragile point."""
    rtt_s: float
    """Round-trip time at the fragile point [s]."""
    sustainable_error: float
    """4 N²/(tau gamma C)² = 2 p0: eq. 9 with corrected dimensions."""
    sustainable_error_as_printed: float
    """4 N²/(tau³ gamma² C²), eq. 9 as printed."""
    alpha_ratio: float
    """alpha/sustainable_error; "much smaller" is taken as at most 0.1."""
    satisfied: bool
    """Whether `alpha_ratio` is at most 0.1."""
    gain_margin_db: float
    """Gain margin of the loop at the fragile point itself, since eq. 9 is not a stability condition."""
    stable: bool
    """Whether the loop at the fragile point is stable."""


class Corner(Record, frozen=True):
    """A corner of a box, or a point of a grid over it."""

    flows: float
    """Number of flows."""
    rtt_s: float
    """Round-trip time [s]."""


class ArcBox(Record, frozen=True):
    """Bounds proved at every point of a box of flows and round-trip times, not only at samples; alpha per packet."""

    margins_kept_below: float
    """GM >= 6 dB and PM >= 30 degrees hold at every point up to this alpha."""
    stable_below: float
    """The loop is stable at every point below this alpha."""
    gap: float
    """Relative gap of the proof: somewhere in the box the bounds fail at most this much above the proved alpha."""
    worst_corner: Corner
    """Corner with the smallest margins; the certificate's margins are taken there."""
    cells: int
    """Number of boxes of angle, flows and round-trip time in the proof."""


class PaperLoop(Record, frozen=True):
    """The paper's analysis: a continuous-time loop with Hollot's undelayed window. The verdict does not use it."""

    plant: Plant
    """Plant of the loop; `paper` is eq. (7). For a box, at its worst corner."""
    loop: DelayLoop
    """Open loop at the chosen alpha."""
    stable: bool
    """Whether the continuous loop is stable."""
    alpha_over_epoch: AlphaBand
    """Admissible gains of the continuous loop."""
    gain_margin_db: float | None
    """Gain margin [dB]."""
    phase_margin_deg: float | None
    """Phase margin [°]."""
    delay_margin_s: float | None
    """Extra delay that the continuous loop stands [s]."""
    crossover_rad_s: float | None
    """Gain crossover [rad/s]."""
    phase_crossover_rad_s: float | None
    """Phase crossover [rad/s]."""
    alpha_limits: PlantLimits
    """Limits of alpha for the sampled loop."""
    minimum_stability: MinimumStability
    """The paper's eq. (9) at the fragile point."""


class ArcCertificate(Record, frozen=True):
    """Certificate of an ARC gain: margins of the sampled loop, and the nonlinear fluid. Unlimited margins are null."""

    status: Status
    """Verdict: admissible, stable, unstable or infeasible."""
    stable: bool
    """Whether the sampled loop is stable, over the whole box."""
    operating_point: TcpOperatingPoint
    """Equilibrium around which the loop is linearised."""
    sampled: ArcSampled
    """Margins of the implemented, sampled loop."""
    simulated: ArcSimulated | None
    """Nonlinear fluid at the chosen gain; null where this check was skipped or there is no equilibrium."""
    reach: ArcReach | None
    """How far the operating point may move; null for a box, and where the margins aren't kept."""
    paper: PaperLoop
    """The paper's continuous-time loop, for comparison."""
    box: ArcBox | None
    """Bounds over the box; null for a single operating point."""
    warnings: tuple[str, ...]
    """Cautions before using the gain."""
