"""The paper's design rule and the exact sampled limit, over arrays and over a box of flows and round-trip times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.fluid.linearize import applicable_plant, arc_corners, arc_loop, arc_sampled_loop
from netctrl.frequency.batch import GainBands, MarginArrays, gain_bands, margin_arrays
from netctrl.frequency.margins import GainBand, factor, gain_band
from netctrl.frequency.sampled import gain_limits
from netctrl.model.arc import ArcInputs, ArcSetting, Corner, Plant

__all__ = [
    "GAIN_MARGIN_DB",
    "PHASE_MARGIN_DEG",
    "ROUNDING",
    "Rule",
    "Sampled",
    "arc_gain_bands",
    "arc_margins",
    "arc_sampled_limits",
    "rule_over_box",
    "sampled_over_box",
]

# The paper's rule (sections II and III).
GAIN_MARGIN_DB = 6.0
PHASE_MARGIN_DEG = (30.0, 60.0)

BOX_GRID = (9, 33)  # flows, round-trip times: points over a box where its corners alone don't decide
ROUNDING = 1e-9  # relative; a gain set exactly to a bound counts as inside it


def arc_gain_bands(flows: ArrayLike, rtt_s: ArrayLike, setting: ArcSetting, plant: Plant = "paper") -> GainBands:
    """Admissible alpha/epoch and its stability limit for arrays of flows, round-trip time [s] and capacity.

    All broadcast (the capacity is in `setting`); each entry is exact for its delay. A million points of the paper's
    plant take about a second.
    """
    corners = arc_corners(np.asarray(flows, dtype=float), np.asarray(rtt_s, dtype=float), setting, plant)
    return gain_bands(**corners, gain_margin_db=GAIN_MARGIN_DB, phase_margin_deg=PHASE_MARGIN_DEG)


def arc_margins(
    flows: ArrayLike, rtt_s: ArrayLike, setting: ArcSetting, alpha_per_packet: ArrayLike, plant: Plant = "paper"
) -> MarginArrays:
    """Gain, phase and delay margins with this alpha for arrays of flows, round-trip time [s], capacity and alpha."""
    corners = arc_corners(np.asarray(flows, dtype=float), np.asarray(rtt_s, dtype=float), setting, plant)
    corners["gain"] = corners["gain"] * np.asarray(alpha_per_packet, dtype=float) / setting.epoch_s
    return margin_arrays(**corners)


def arc_sampled_limits(flows: ArrayLike, rtt_s: ArrayLike, setting: ArcSetting, plant: Plant) -> np.ndarray:
    """The exact sampled loop's limit on alpha per packet, for arrays of flows, round-trip time [s] and capacity."""
    return gain_limits(arc_sampled_loop(flows, rtt_s, setting, plant))


class Rule(NamedTuple):
    """The design rule over all that was asked for; gains are alpha/epoch."""

    worst: Corner
    slow: Corner
    band: GainBand  # at the worst corner
    low: float  # admissible everywhere: low <= k <= high, none if low > high
    high: float
    limit: float  # stable everywhere below
    points: int


class Sampled(NamedTuple):
    """The exact sampled loop over all that was asked for, under the plant that applies."""

    plant: Plant
    limit: float  # on alpha, the least over the box
    at: Corner
    admissible: float  # alpha that still keeps the gain margin


def _grid(inputs: ArcInputs) -> tuple[np.ndarray, np.ndarray]:
    """Points over the box, its corners included exactly; one for a range without width."""
    axes = []
    for (low, high), points in zip((inputs.flows, inputs.rtt_s), BOX_GRID, strict=True):
        axis = np.geomspace(low, high, points) if low < high else np.array([low])
        axis[0], axis[-1] = low, high
        axes.append(axis)
    flows, rtt = np.meshgrid(*axes)
    return flows.ravel(), rtt.ravel()


def rule_over_box(inputs: ArcInputs) -> Rule:
    """Paper and noq: every bound rises with N and falls with tau (docs/arc.md proves it), so two corners decide.
    Phys is not known to do so: a grid is searched."""
    (few, many), (short, long) = inputs.flows, inputs.rtt_s
    if inputs.plant == "phys" and not inputs.is_point:
        flows, rtt = _grid(inputs)
        bands = arc_gain_bands(flows, rtt, inputs.setting, inputs.plant)
        at_high, at_low = int(np.argmin(bands.high)), int(np.argmax(bands.low))
        worst, slow = (Corner(flows=float(flows[i]), rtt_s=float(rtt[i])) for i in (at_high, at_low))
        low, high, limit, points = bands.low[at_low], bands.high[at_high], bands.limit.min(), flows.size
        return Rule(worst, slow, band_at(worst, inputs), float(low), float(high), float(limit), points)
    worst, slow = Corner(flows=few, rtt_s=long), Corner(flows=many, rtt_s=short)
    band = band_at(worst, inputs)
    low = band.low if worst == slow else band_at(slow, inputs).low
    return Rule(worst, slow, band, low, band.high, band.limit, 1 if worst == slow else 4)


def band_at(corner: Corner, inputs: ArcInputs) -> GainBand:
    """The rule at one operating point."""
    loop = arc_loop(corner.flows, corner.rtt_s, inputs.setting, inputs.plant)
    return gain_band(loop, GAIN_MARGIN_DB, PHASE_MARGIN_DEG)


def sampled_over_box(inputs: ArcInputs) -> Sampled:
    """The least limit on alpha over a grid of the box; its monotony in flows and round-trip time isn't proved."""
    plant = applicable_plant(inputs.setting)
    flows, rtt = _grid(inputs)
    limits = arc_sampled_limits(flows, rtt, inputs.setting, plant)
    least = int(np.argmin(limits))
    at = Corner(flows=float(flows[least]), rtt_s=float(rtt[least]))
    return Sampled(plant, float(limits[least]), at, float(limits[least]) / factor(GAIN_MARGIN_DB))
