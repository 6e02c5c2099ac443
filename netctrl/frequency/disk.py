"""Disk margin: how much gain and phase may change together at a plant's input before its loop is unstable."""

from __future__ import annotations

from math import atan, degrees, pi

import msgspec
import numpy as np

from netctrl.frequency.hinf_norm import peak_gain
from netctrl.model.statespace import StateSpace

__all__ = ["DiskMargin", "discrete_disk_margin"]


class DiskMargin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Disk margin at the plant's input: any factor f = (1 + δ/2)/(1 − δ/2), |δ| < α, leaves the loop stable.

    f is complex and, with several inputs, may differ between them.
    """

    alpha: float
    """α = 2/‖S − T‖∞, S and T the sensitivities at the plant's input."""
    lowest_gain: float
    """(2 − α)/(2 + α): factor to which the gain may fall; 0 or less: it may vanish."""
    highest_gain: float | None
    """(2 + α)/(2 − α): factor to which the gain may rise; null: without limit."""
    phase_deg: float
    """2 atan(α/2): phase that may be lost or gained."""
    frequency_hz: float
    """Frequency at which the loop is nearest to its limit."""


def discrete_disk_margin(difference: StateSpace) -> DiskMargin:
    """Disk margin from S − T, the response of u + w − (−u) = 2u + w to a disturbance w at the plant's input.

    Raises
    ------
    InvalidValue
        The closed loop isn't stable.

    Source: Seiler, Packard, Gahinet, IEEE Control Systems Magazine 40 (2020) 78-95, with skew 0.
    """
    peak, angle = peak_gain(difference)
    alpha = 2.0 / peak if peak > 0.0 else np.inf
    return DiskMargin(
        alpha=alpha,
        lowest_gain=(2.0 - alpha) / (2.0 + alpha),
        highest_gain=(2.0 + alpha) / (2.0 - alpha) if alpha < 2.0 else None,
        phase_deg=degrees(2.0 * atan(0.5 * alpha)),
        frequency_hz=angle / (2.0 * pi * difference.dt),
    )
