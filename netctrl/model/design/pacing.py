"""MPC pacing's inputs, certificate and map of outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from netctrl.core.errors import Status
from netctrl.model.io.record_file import Record

FREEZES, PINNED, INACTIVE = 0, 1, 2
"""Outcomes of the paper's law: it freezes at whatever rate it holds; it runs to R, which is at most the bottleneck's
rate; or it runs to an R above the bottleneck's rate, where it has no effect."""


class PacingInputs(Record, frozen=True):
    """Inputs of a pacing design."""

    mode: Literal["paper", "own-rate"]
    """The published law (paper), or the one whose queue depends on the own rate alone (own-rate)."""
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
    """Time between two rates [s]: max(T, RTT); of the own-rate law the round trip with its queue."""
    freeze_below_s: float | None
    """d* [s]; None: the law always freezes, or is the own-rate law, which never does."""
    step_limit: float
    """α from which on the estimate diverges; 2 with NLMS, whatever the units. Of the own-rate law γ's limit, 2/3."""
    sgd_limits: tuple[StepLimit, ...]
    """Bounds for SGD, by units."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
    least_buffer_bytes: float | None = None
    """Buffer that holds the queue of the given flows at rest [byte]. As windows come back at once after drains, some
    .1 % are lost after the rates have settled, with half more next to nothing; below it losses shorten the queue. None
    for the paper's law, whose queue is unbounded."""
    most_flows: int | None = None
    """Number of flows of equal RTT whose queue fits the given buffer; 0: not even one. None for the paper's law."""
    equilibrium: OwnRateEquilibrium | None = None
    """Rates, queue and stability of an own-rate law; None for the paper's."""


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
