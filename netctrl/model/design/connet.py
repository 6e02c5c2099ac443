"""CONNET's records: what was asked for, and why the law can be trusted."""

from __future__ import annotations

from typing import Literal

from netctrl.errors import Status
from netctrl.model.identified import IdentifiedModel
from netctrl.model.io.record_file import Record

__all__ = ["CONNET_METHODS", "ConnetCertificate", "ConnetInputs", "ConnetMethod", "ReferenceCheck"]

ConnetMethod = Literal["lqi", "paper"]
CONNET_METHODS: tuple[ConnetMethod, ...] = ("lqi", "paper")

Pole = tuple[float, float]
"""Real and imaginary part."""
Rows = tuple[tuple[float, ...], ...]


class ConnetInputs(Record, frozen=True, eq=False):
    """What was asked for."""

    model: IdentifiedModel
    law: ConnetMethod
    tracked: Rows
    """(q, p) combinations of outputs that are to follow their references."""
    limits: Rows
    """(m, 2) least and greatest input [the model's units]."""
    input_weight: float
    """On squared inputs [1/(Mbit/s)²] beside squared outputs or their sums [1/ms²]."""
    references: Rows
    """Each (p,) [the model's units]."""


class ReferenceCheck(Record, frozen=True):
    """What the model makes of one reference."""

    reference: tuple[float, ...]
    """(p,)"""
    attained: tuple[float, ...]
    """(p,) the outputs that it settles at."""
    needed: tuple[float, ...]
    """(m,) the inputs that this takes."""
    within_limits: bool
    """Where not, `attained` is what the limits leave."""
    off_curve: float
    """Largest distance of an output that isn't asked for from its reference, over that reference."""


class ConnetCertificate(Record, frozen=True):
    """Why the law can be trusted: of the linear loop around the model, unless it says otherwise."""

    status: Status
    closed_loop_poles: tuple[Pole, ...]
    """Falling by modulus."""
    spectral_radius: float
    controller_poles: tuple[Pole, ...]
    """Of the controller by itself; an integrator has 1."""
    dc_tracking: Rows
    """(p, p) T(1): what becomes of references in steady state; the output's row, the reference's column."""
    dc_error: float | None
    """Largest steady error of what is tracked, per unit of its reference; null: the loop isn't stable."""
    dc_error_gain: float | None
    """The same where the plant's gain is 20 % more or less than the model's."""
    bandwidth_hz: float | None
    """−3 dB of what is tracked; null: up to half the sampling rate."""
    disc_alpha: float
    """At the plant's input (`netctrl.frequency.disk.DiskMargin`)."""
    lowest_gain: float
    highest_gain: float | None
    phase_deg: float
    plant_dc_gain: Rows
    """(p, m)"""
    attainable: Rows
    """(q, 2) least and greatest of what is tracked, in steady state within the limits."""
    untracked: Rows
    """(p − r, p) combinations of outputs on which no input has a steady effect: they can't follow."""
    residual_regulator: float
    residual_estimator: float
    references: tuple[ReferenceCheck, ...]
    warnings: tuple[str, ...]
