"""MPC pacing's inputs, certificate and map of outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from netctrl.core.errors import Status
from netctrl.model.io.record_file import Record

FREEZES, PINNED, INACTIVE = 0, 1, 2
"""Outcomes of the paper's law: it freezes at whatever rate it holds; it runs to R, which is at most the bottleneck's
rate; or it runs to an R above the bottleneck's rate, where it has no effect."""


class PacingInputs(Record, frozen=True):
    """Inputs of a pacing design."""

    mode: Literal["paper", "target-rtt", "own-rate"]
    """The published law (paper), the law with a target RTT (target-rtt), or the one whose queue depends on the own rate
    alone (own-rate)."""
    psi: float
    """ψ, weight of the squared deviation of the RTT."""
    xi: float
    """ξ, weight of the rate."""
    past_rtts: int
    """p, number of past RTTs in the prediction."""
    past_rates: int
    """q, number of past rates in the prediction."""
    period_s: float
    """T, shortest time between two rates [s]."""
    max_rate_bit_per_s: float
    """R, highest rate [bit/s]."""
    step: float
    """α, step of the estimator."""
    estimator: Literal["nlms", "sgd"]
    """Normalised (nlms), or as printed in the paper (sgd)."""
    smoothing: float
    """γ, smoothing of the averages."""
    guarded: bool
    """Whether the paper's law has guards."""
    competitive: bool
    """Whether a target-RTT law follows CUBIC's window while other flows keep a queue."""
    packet_size_bytes: float
    """Size of a packet [byte]."""
    rtt_s: float
    """RTT at which the certificate is computed [s]; the law doesn't know it."""
    bottleneck_bit_per_s: float
    """Rate of the bottleneck for the certificate [bit/s]; the law doesn't know it."""
    buffer_bytes: float | None = None
    """Buffer of the bottleneck for the certificate [byte]; None in files of older versions."""
    flows: int = 1
    """Number of equal flows that share the bottleneck, for the certificate."""


class OwnRatePacer(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="own-rate-pacer"
):
    """Pacing to a queue of a + c √x packets, x the own rate [packet/s]: the equilibrium doesn't depend on round trips.

    All flows of a link see the same queueing delay q = a/x + c/√x, so all have the same rate. Each loss cuts the share
    of this queue that is kept, which time raises; a share of losses that is significantly above `tolerated_loss` cuts
    the window. All flows drain the queue together to see the least RTT; a queue that this leaves is kept by others,
    beside which the window is Cubic's.

    Source: docs/explanation/pacing.md; FAST TCP (Wei, Jin, Low, Hegde, IEEE/ACM ToN 14(6), 2006), where c = 0.
    """

    queue_packets: float = 2.0
    """a [packet]."""
    queue_packets_per_root_rate: float = 0.2
    """c [packet √s]."""
    gain: float = 0.5
    """γ, share of its error by which the window changes in a round trip."""
    tolerated_loss: float = 0.03
    """Share of losses that isn't answered."""
    cut: float = 0.15
    """Share by which significant losses cut the window, beyond the share that was lost."""
    growth: float = 1.15
    """Window over that of the round trip before, where no queue is seen."""
    noise_share: float = 0.15
    """Share of the RTTs' mean above their least, in a round trip, that is added to the queue aimed at."""
    drain_share: float = 0.95
    """Data in flight in a drain, over delivered rate times least RTT."""
    probe_s: float = 4.0
    """Drains begin at multiples of this on a clock that senders share to some 0.1 s [s]."""
    patience_drains: float = 2.0
    """Drains in a row that leave more than half of the queue, after which it is others' and the law has Cubic's window
    (RFC 9438) until a drain empties the queue; 0: never."""
    packet_size_bytes: float = 1500.0
    """Size of a packet with its headers [byte]."""
    least_rate_bit_per_s: float = 1e4
    """Lowest rate, above 0 [bit/s]."""
    max_rate_bit_per_s: float = 1e11
    """Highest rate [bit/s]."""
    start_rate_bit_per_s: float = 1e6
    """Rate before the first sample [bit/s]."""


class StepLimit(Record, frozen=True):
    """Bound on α for a stable SGD as printed: 2/|φ|², at R and the certificate's RTT."""

    units: str
    """Units of rates and round-trip times in φ."""
    limit: float
    """Greatest α that is stable."""


class OwnRateEquilibrium(Record, frozen=True):
    """Where N flows of an own-rate law rest on a link, and how they come there."""

    rate_bit_per_s: float
    """Rate of each flow, C/N, whatever their round trips are [bit/s]."""
    window_packets: float
    """Window of a flow with the certificate's RTT [packet]."""
    queue_s: float
    """Queueing delay N α(C/N)/C that all flows see [s]."""
    worst_queue_s: float
    """Most queueing delay after the starts, without others' queue: what may be in flight, or the buffer [s]."""
    pole: float
    """By which a difference of rates is multiplied in each round trip."""
    time_constant_s: float
    """In which a difference of rates falls to 1/e [s]."""
    gain_margin: float
    """Factor by which all gains may be greater, whatever the flows' round trips, shares and number."""
    delay_margin_rtts: float | None
    """Round trips by which flows of one round trip may answer later; None: any."""


class PacingCertificate(Record, frozen=True):
    """Certificate of a pacing law at the given RTT and bottleneck.

    The paper's law has no target RTT. A deviation d of the predicted RTT from its mean obeys d ← d²/d*: below d* it
    decays and the rate stays where it is; above d* it grows until the rate is at R.
    """

    status: Status
    """Verdict: admissible, stable, unstable or infeasible."""
    sampling_s: float
    """max(T, RTT), time between two rates [s]."""
    slope_s: float
    """b_1 C = `sampling_s`: increase of the RTT by the next rate if the rate is twice the bottleneck's C [s]."""
    freeze_below_s: float | None
    """d* [s]; None: the law always freezes, or has a target RTT."""
    step_limit: float
    """α from which on the estimate diverges; 2 with NLMS, whatever the units."""
    sgd_limits: tuple[StepLimit, ...]
    """Bounds for SGD, by units."""
    target_rtt_s: float | None
    """RTT that a target-RTT or own-rate law settles at [s]; None for the paper's."""
    closed_loop_pole: float | None
    """Pole of the data in flight from one rate to the next, whatever Ĉ is; of an own-rate law, of the difference of two
    rates; None for the paper's."""
    interval_margin: float | None
    """Factor by which rates may come later until the loop of this pole is unstable; None for the paper's."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
    least_buffer_bytes: float | None = None
    """Buffer that holds the total target queue of the given flows [byte]: with this buffer or more nothing is lost
    after the rates have settled; below it, losses halve rates. None for the paper's law, whose queue is unbounded."""
    most_flows: int | None = None
    """Number of flows of equal RTT whose queue fits the given buffer; 0: not even one. None for the paper's law."""
    equilibrium: OwnRateEquilibrium | None = None
    """Rates, queue and stability of an own-rate law; None for the others."""


@dataclass(frozen=True, slots=True, eq=False)
class PacingMap:
    """d* over weights and R, for one RTT and period.

    Parameters
    ----------
    psi, xi, ratios : ndarray, shapes (n,), (m,), (k,)
        Values of ψ, of ξ, and of R over the bottleneck's rate.
    thresholds : ndarray, shape (k, m, n)
        d* over the RTT; inf where the law always freezes.
    """

    psi: np.ndarray
    xi: np.ndarray
    ratios: np.ndarray
    thresholds: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.psi, self.xi, self.ratios, self.thresholds):
            array.setflags(write=False)

    def outcomes(self, deviation: float) -> np.ndarray:
        """(k, m, n) FREEZES, PINNED or INACTIVE, for a relative error `deviation` of predicted RTTs."""
        ends = np.where(self.ratios > 1.0, INACTIVE, PINNED)[:, None, None]
        return np.where(self.thresholds > deviation, FREEZES, ends)
