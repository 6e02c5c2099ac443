"""Gain scheduling along a characteristic curve, so that a law for one slope has the same speed on the whole curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.record import Matrix, Vector
from netctrl.model.identified import IdentifiedModel
from netctrl.model.law import TrackingLaw
from netctrl.model.statespace import StateSpace

_MAX = 100.0


class GainSchedule(NamedTuple):
    """Steady gains at k operating points of one input, beside those that the law was made for; p outputs."""

    points: Vector
    """(k) inputs, rising [the law's units]"""
    factors: Matrix
    """(k, p) gain of the law's model over the gain here"""


def gain_schedule(law: TrackingLaw, models: Sequence[IdentifiedModel]) -> GainSchedule:
    """Schedule from models identified around several points of the curve.

    Parameters
    ----------
    law : TrackingLaw
        With one input.
    models : sequence of IdentifiedModel
        Of the law's signals, each around another mean input, its `input_offset`; two or more.

    Raises
    ------
    InvalidValue
        Other signals, two models around the same input, or a gain of another sign than the law's model has.
    """
    if len(law.inputs) != 1:
        raise InvalidValue("law", f"{len(law.inputs)} inputs", "one: a curve has one input")
    if len(models) < 2 or any((each.inputs, each.outputs) != (law.inputs, law.outputs) for each in models):
        takes = f"two models or more of {law.inputs[0]} -> {', '.join(law.outputs)}"
        raise InvalidValue("models", f"{len(models)} models", takes)
    around = np.array([each.input_offset for each in models], dtype=float)[:, 0]
    order = np.argsort(around)
    points = around[order]
    if not (np.diff(points) > 0.0).all():
        raise InvalidValue("models", points.tolist(), "models around different inputs")
    nominal = StateSpace(law.A, law.B, law.C, law.D, law.interval_s).steady_gain()[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = nominal / np.array([each.state_space.steady_gain()[:, 0] for each in (models[i] for i in order)])
    if not ((factors > 0.0) & np.isfinite(factors)).all():
        raise InvalidValue("models", "a gain of another sign", "gains of the sign that the law's model has")
    return GainSchedule(points, factors.clip(1.0 / _MAX, _MAX))


def scheduled(schedule: GainSchedule, measured: Vector, reference: Vector, applied: Vector) -> Vector:
    """The outputs that the law is to see: r + (g₀/g)(y − r), whose slope is that of its model.

    Where y = r nothing changes: what is tracked is the same, in the mean too. Between points the factor is interpolated
    by its logarithm; beyond them it is that of the end. `applied` is the input under which `measured` came about.
    """
    last = len(schedule.points) - 1
    right = min(1, last)
    while right < last and schedule.points[right] < applied[0]:
        right += 1
    left = max(right - 1, 0)
    logs = np.log(schedule.factors[left])
    if left < right:
        at = min(max(applied[0], schedule.points[left]), schedule.points[right])
        slope = (np.log(schedule.factors[right]) - logs) / (schedule.points[right] - schedule.points[left])
        logs = slope * (at - schedule.points[left]) + logs
    return reference + np.exp(logs) * (measured - reference)
