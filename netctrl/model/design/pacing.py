"""MPC pacing's records: what was asked for, why the law can be trusted, and the map of where it freezes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from netctrl.errors import Status
from netctrl.model.io.record_file import Record

__all__ = ["FREEZES", "INACTIVE", "PINNED", "PacingCertificate", "PacingInputs", "PacingMap", "StepLimit"]

FREEZES, PINNED, INACTIVE = 0, 1, 2
"""What becomes of the paper's law: it stays at whatever rate it holds; it runs to R, which is no more than the
bottleneck; it runs to R above the bottleneck, where it does nothing."""


class PacingInputs(Record, frozen=True):
    """What was asked for."""

    mode: Literal["paper", "target-rtt"]
    psi: float
    """ψ"""
    xi: float
    """ξ"""
    past_rtts: int
    """p"""
    past_rates: int
    """q"""
    period_s: float
    """T"""
    max_rate_bit_per_s: float
    """R"""
    step: float
    """α"""
    estimator: Literal["nlms", "sgd"]
    smoothing: float
    """γ"""
    guarded: bool
    competitive: bool
    packet_size_bytes: float
    rtt_s: float
    """At which the certificate is computed; the law doesn't know it."""
    bottleneck_bit_per_s: float
    """The same."""
    buffer_bytes: float | None = None
    """Of the bottleneck; the same. None in files that were written before it was asked for."""
    flows: int = 1
    """That share it, alike; the same."""


class StepLimit(Record, frozen=True):
    """Up to where α is stable with SGD as printed: 2/|φ|², at R and the certificate's RTT."""

    units: str
    limit: float


class PacingCertificate(Record, frozen=True):
    """What is known of the law at the given RTT and bottleneck.

    The paper's law has no RTT that it aims at. A deviation d of the predicted RTT from its mean obeys d ← d²/d*: below
    d* it dies, and the rate stays where it is; above, it grows until the rate is at R.
    """

    status: Status
    sampling_s: float
    """max(T, RTT): between two rates."""
    slope_s: float
    """b_1 C = `sampling_s`: what a rate above the bottleneck by the whole of it adds to the RTT until the next."""
    freeze_below_s: float | None
    """d* [s]; None: it always freezes, or the law aims at an RTT."""
    step_limit: float
    """α at and beyond which the estimate diverges; 2 with NLMS, whatever the units."""
    sgd_limits: tuple[StepLimit, ...]
    """Of SGD, by units."""
    target_rtt_s: float | None
    """What a target-RTT law aims at; None of the paper's."""
    closed_loop_pole: float | None
    """Of what is in flight, from one rate to the next, whatever Ĉ is; None of the paper's."""
    interval_margin: float | None
    """Factor by which rates may come later until that loop is unstable; None of the paper's."""
    warnings: tuple[str, ...]
    least_buffer_bytes: float | None = None
    """Buffer that holds the queue which the asked flows aim at together [byte]: from there on nothing is lost once the
    rates have settled. Below, losses halve rates. None of the paper's law, whose queue has no bound."""
    most_flows: int | None = None
    """Flows of the same RTT whose queue the asked buffer holds; 0: not even that of one. None of the paper's."""


@dataclass(frozen=True, slots=True, eq=False)
class PacingMap:
    """d* over weights and R, for one RTT and period.

    Parameters
    ----------
    psi, xi, ratios : ndarray, shapes (n,), (m,), (k,)
        ψ, ξ, and R over the bottleneck.
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
        """(k, m, n) FREEZES, PINNED or INACTIVE, where predictions are off by `deviation`, a share of the RTT."""
        ends = np.where(self.ratios > 1.0, INACTIVE, PINNED)[:, None, None]
        return np.where(self.thresholds > deviation, FREEZES, ends)
