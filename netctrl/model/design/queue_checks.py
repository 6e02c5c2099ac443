"""Nonlinear checks of a queue's certificate, and figures of a queue with the gains of a PI law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from netctrl.core.units import format_quantity
from netctrl.model.io.record_file import Record

_ALIKE, _ALIKE_USE = 0.1, 0.005
"""Relative difference, and that of utilization, up to which figures are alike."""

_ENDLESS = 1e9


class CheckRun(Record, frozen=True):
    """One run of a nonlinear check."""

    start: str | None
    """Fluid: near the equilibrium, empty or full; null with packets, where flows start by slow start."""
    seed: int | None
    """Seed of a run with packets; null in the fluid."""
    settles: bool
    """Whether the queue comes to rest, apart from noise."""
    swing_s: float
    """Greatest less least queueing delay in the steady state; with packets from its 5 % to its 95 % quantile [s]."""
    mean_delay_s: float
    """Mean queueing delay in the steady state [s]."""
    utilization: float
    """Of the link in the steady state."""
    deviation_s: float | None = None
    """Standard deviation of the queueing delay in the steady state [s]; null in the fluid, which has no chance."""
    delay_99_s: float | None = None
    """Its 99th percentile [s]; null in the fluid."""


class QueueCheck(Record, frozen=True):
    """Nonlinear check of a certificate at its worst point."""

    engine: str
    """fluid, packet or kernel."""
    settles: bool
    """Whether the queue comes to rest: from all starts in the fluid, by the mean of `envelope_ratio` with packets."""
    flows: float
    """Number of flows that ran."""
    period_s: float
    """Of the oscillation that the linear loop predicts at its limit [s]."""
    envelope_ratio: float | None
    """E[A⁴]/E[A²]² of the delay's amplitude A around that period, mean of the runs: 2 of noise through a damped loop,
    pi/2 at the limit, 1 of a steady oscillation; null in the fluid."""
    runs: tuple[CheckRun, ...]
    """The runs."""
    notes: tuple[str, ...]
    """What the model leaves out."""
    senders: str = ""
    """What ran in place of the worst point's sender; empty: that sender."""


class FailedCheck(Record, frozen=True):
    """Nonlinear check that was asked for and couldn't run."""

    engine: str
    """fluid, packet or kernel."""
    got: str
    """What it was asked to run."""
    takes: str
    """What it runs."""

    @property
    def text(self) -> str:
        """What is missing, in words."""
        return f"not run: it takes {self.takes}"


class GainsFigures(Record, frozen=True):
    """Queue of a PI law at one point, in the fluid or on packets."""

    engine: str
    """fluid, packet or kernel."""
    senders: str
    """What sent."""
    flows: float
    """Their number."""
    rtt_s: float
    """Round-trip time without the queue [s]."""
    parameters: dict[str, float | int | str | bool]
    """The law's, in SI units."""
    mean_delay_s: float
    """Mean queueing delay in the steady state [s]."""
    deviation_s: float | None
    """Its standard deviation [s]; null in the fluid, which has no chance in it."""
    delay_99_s: float | None
    """Its 99th percentile [s]; null in the fluid."""
    above_s: float
    """Time for which the delay is above two targets, of a line four lower thresholds, after a step of the load [s]: on
    packets all flows begin or double, whichever takes longer; in the fluid from a full queue with twice the windows."""
    utilization: float
    """Of the link in the steady state."""


class Felt(NamedTuple):
    """What users feel of a queue: the worst of the points with figures."""

    delay_99_s: float | None
    """99th percentile of the delay [s]; None in the fluid."""
    utilization: float
    above_s: float
    """Time above two targets after a step of the load [s]."""

    @classmethod
    def worst(cls, figures: Sequence[GainsFigures]) -> Felt:
        """Of figures by one engine; without any, as bad as can be."""
        if not figures:
            return cls(_ENDLESS, 0.0, _ENDLESS)
        most = [each.delay_99_s for each in figures if each.delay_99_s is not None]
        return cls(
            max(most, default=None), min(each.utilization for each in figures), max(each.above_s for each in figures)
        )

    def worse_than(self, other: Felt) -> tuple[float, float, float]:
        """By how much each figure is worse than another's, in differences that count: a tenth, of the time at least .1
        s, of utilization .005."""
        mine, theirs = self.delay_99_s or 0.0, other.delay_99_s or 0.0
        return (
            (mine - theirs) / (_ALIKE * max(mine, theirs, 1e-9)),
            (other.utilization - self.utilization) / _ALIKE_USE,
            (self.above_s - other.above_s) / max(_ALIKE * max(self.above_s, other.above_s), _ALIKE),
        )

    @property
    def text(self) -> str:
        """The figures in words."""
        delay = [] if self.delay_99_s is None else [f"99 % below {format_quantity(self.delay_99_s, 's', 3)}"]
        after = f"above two targets for {self.above_s:.2f} s after a step"
        return ", ".join([*delay, f"{100.0 * self.utilization:.1f} % used", after])


def check_text(check: QueueCheck) -> str:
    """Verdict of a check in words, with its worst run."""
    worst = max(check.runs, key=lambda run: (not run.settles, run.swing_s))
    verdict = "settles" if check.settles else "oscillates"
    if check.envelope_ratio is None:
        from_ = sorted(run.start or "" for run in check.runs if not run.settles)
        verdict += "" if check.settles or len(from_) == len(check.runs) else f" from {' and '.join(from_)}"
    else:
        verdict += f" (envelope ratio {check.envelope_ratio:.2f}, at the limit 1.57)"
    verdict += f", with {check.senders}" if check.senders else ""
    swing, mean = (format_quantity(value, "s", 3) for value in (worst.swing_s, worst.mean_delay_s))
    return f"{verdict}: queueing delay {mean}, swing {swing}, utilization {worst.utilization:.3f}"
