"""CONNET's inputs and certificate."""

from __future__ import annotations

from typing import Literal

from netctrl.core.errors import Status
from netctrl.model.identified import IdentifiedModel
from netctrl.model.io.record_file import Record

ConnetMethod = Literal["lqi", "paper"]
CONNET_METHODS: tuple[ConnetMethod, ...] = ("lqi", "paper")

Pole = tuple[float, float]
"""Real and imaginary part."""
Rows = tuple[tuple[float, ...], ...]


class ConnetInputs(Record, frozen=True, eq=False):
    """Inputs of a CONNET design."""

    model: IdentifiedModel
    """Identified model of the access link."""
    law: ConnetMethod
    """Method: integral action (lqi), or the published regulator (paper)."""
    tracked: Rows
    """(q, p) combinations of outputs that follow their references."""
    limits: Rows
    """(m, 2) lowest and highest input [the model's units]."""
    input_weight: float
    """Cost of squared inputs [1/(Mbit/s)²] relative to squared outputs or their sums [1/ms²]."""
    references: Rows
    """References to check, each (p,) [the model's units]."""


class HeldReferences(Record, frozen=True):
    """References for which it is proved that the loop holds them, along a model's curve."""

    references: tuple[float, float]
    """Lowest and highest of the tracked output [the model's unit]."""
    inputs: tuple[float, float]
    """Steady inputs there."""
    sector: tuple[float, float]
    """Lowest and highest ratio of slopes that the trace allows there; the circle criterion holds for each range."""
    alpha: float
    """Least disk margin over these ratios."""
    load: float
    """Other traffic that may join, such that it stays proved at all of them [the input's unit]."""


class SlopeProof(Record, frozen=True):
    """What is proved of the loop around a plant with a curve, by the ratio of its slope to that of the law's curve."""

    stable: tuple[float, float | None]
    """Ends of the constant ratios with which the loop is stable, exactly; null: without limit."""
    held: HeldReferences | None
    """Null: there is no such reference."""
    input_deviation: float
    """Standard deviation of the linearised input over that of the output's noise, which is to stay within limits four
    times to both sides."""


class DrawnLoops(Record, frozen=True):
    """The loop around the models that the trace allows, drawn with their probability."""

    models: int
    """Number of draws."""
    stable: float
    """Share of them with which the loop is stable."""
    alpha: float
    """Disk margin that 19 in 20 of them keep."""
    least_alpha: float
    """Least disk margin; 0: one is unstable."""


class ReferenceCheck(Record, frozen=True):
    """Steady state of the model at one reference."""

    reference: tuple[float, ...]
    """(p,) references of the outputs."""
    attained: tuple[float, ...]
    """(p,) steady-state outputs."""
    needed: tuple[float, ...]
    """(m,) steady-state inputs needed."""
    within_limits: bool
    """Whether the inputs stay within the limits; if not, `attained` is reached at the limits."""
    off_curve: float
    """Largest distance of an untracked output from its reference, relative to that reference."""
    held: bool = True
    """Whether it is proved that the loop holds it, where the model has a curve."""
    load: float | None = None
    """Other traffic that may join, such that it stays proved [the input's unit]; null: no curve, or not proved."""
    seen: bool = True
    """Whether the model was seen there: input and tracked outputs within the limits and what its trace visited."""


class ConnetCertificate(Record, frozen=True):
    """Certificate of a CONNET law: of the linear loop around the model, unless stated otherwise."""

    status: Status
    """Verdict: admissible, stable, unstable or infeasible."""
    closed_loop_poles: tuple[Pole, ...]
    """Real and imaginary parts, in decreasing order of modulus."""
    spectral_radius: float
    """Largest modulus of these poles."""
    controller_poles: tuple[Pole, ...]
    """Poles of the controller alone; an integrator has 1."""
    dc_tracking: Rows
    """(p, p) T(1), steady-state response of outputs (rows) to references (columns)."""
    dc_error: float | None
    """Largest steady-state error of a tracked output per unit of its reference; null: the loop isn't stable."""
    dc_error_gain: float | None
    """The same error where the plant's gain differs by 20 % from the model's."""
    bandwidth_hz: float | None
    """−3 dB bandwidth of the tracked outputs [Hz]; null: at least half the sampling rate."""
    disc_alpha: float
    """Disk margin at the plant's input (`netctrl.frequency.hinf_norm.DiskMargin`)."""
    lowest_gain: float
    """Factor to which the plant's gain may fall."""
    highest_gain: float | None
    """Factor to which the plant's gain may rise; null: unlimited."""
    phase_deg: float
    """Phase that may be lost or gained [degree]."""
    plant_dc_gain: Rows
    """(p, m) steady-state gain of the model."""
    attainable: Rows
    """(q, 2) lowest and highest steady-state value of the tracked outputs within the input limits and what the model's
    trace visited; never below 0 for a delay, jitter or throughput."""
    untracked: Rows
    """(p − r, p) combinations of outputs on which no input has a steady effect, so they can't follow a reference."""
    residual_regulator: float
    """Relative residual of the regulator's Riccati equation."""
    residual_estimator: float
    """Relative residual of the estimator's Riccati equation."""
    references: tuple[ReferenceCheck, ...]
    """Checks of the requested references."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
    slopes: SlopeProof | None = None
    """Proof over the slopes of the model's curve; null: the model has none."""
    drawn: DrawnLoops | None = None
    """The loop around models that the trace allows; null: designed from a model alone."""
