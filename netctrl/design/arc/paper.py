"""Continuous-time loops of the ARC paper, with Hollot's undelayed window; for comparison, not for the verdict."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from netctrl.design.arc.loop import finite
from netctrl.frequency.batch import GainBands, MarginArrays, gain_bands, margin_arrays
from netctrl.frequency.margins import gain_band, margins
from netctrl.frequency.sampled import gain_limit
from netctrl.model.design.arc import (
    PLANTS,
    AlphaBand,
    ArcInputs,
    ArcSetting,
    Corner,
    MinimumStability,
    PaperLoop,
    Plant,
    PlantLimits,
)
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import arc_arrival_rate, arc_corners, arc_loop, arc_sampled_loop

__all__ = ["GAIN_MARGIN_DB", "PHASE_MARGIN_DEG", "arc_gain_bands", "arc_margins", "paper_loop"]

# The paper's rule (sections II and III).
GAIN_MARGIN_DB = 6.0
PHASE_MARGIN_DEG = (30.0, 60.0)

MUCH_SMALLER = 0.1  # meaning of eq. (9)'s "much smaller"


def arc_gain_bands(flows: ArrayLike, rtt_s: ArrayLike, setting: ArcSetting, plant: Plant = "paper") -> GainBands:
    """The paper's admissible alpha/epoch and its limit, for arrays of flows, round-trip time [s] and capacity.

    For the continuous-time loop: the paper's analysis, not what a router runs. All arguments broadcast (the capacity is
    in `setting`); each entry is exact for its delay. A million points of the paper's plant take about a second.
    """
    corners = arc_corners(np.asarray(flows, dtype=float), np.asarray(rtt_s, dtype=float), setting, plant)
    return gain_bands(**corners, gain_margin_db=GAIN_MARGIN_DB, phase_margin_deg=PHASE_MARGIN_DEG)


def arc_margins(
    flows: ArrayLike, rtt_s: ArrayLike, setting: ArcSetting, alpha_per_packet: ArrayLike, plant: Plant = "paper"
) -> MarginArrays:
    """Margins of the continuous-time loop for arrays of flows, round-trip time [s], capacity and alpha."""
    corners = arc_corners(np.asarray(flows, dtype=float), np.asarray(rtt_s, dtype=float), setting, plant)
    corners["gain"] = corners["gain"] * np.asarray(alpha_per_packet, dtype=float) / setting.epoch_s
    return margin_arrays(**corners)


def paper_loop(alpha: float, at: Corner, inputs: ArcInputs) -> PaperLoop:
    """Eq. (7) at one operating point, or the continuous-time loop of the requested plant."""
    plant: Plant = "paper" if inputs.plant == "auto" else inputs.plant
    unit = arc_loop(at.flows, at.rtt_s, inputs.setting, plant)
    loop = unit.scaled(alpha / inputs.epoch_s)
    band, found = gain_band(unit, GAIN_MARGIN_DB, PHASE_MARGIN_DEG), margins(loop)
    limits = {name: gain_limit(arc_sampled_loop(at.flows, at.rtt_s, inputs.setting, name)) for name in PLANTS}
    return PaperLoop(
        plant=plant,
        loop=loop,
        stable=found.stable,
        alpha_over_epoch=AlphaBand(
            low=band.low, high=band.high, limit=band.limit, binding=band.binding, intervals=band.intervals
        ),
        gain_margin_db=finite(found.gain_margin_db),
        phase_margin_deg=finite(found.phase_margin_deg),
        delay_margin_s=finite(found.delay_margin_s),
        crossover_rad_s=finite(found.crossover_rad_s),
        phase_crossover_rad_s=finite(found.phase_crossover_rad_s),
        alpha_limits=PlantLimits(**limits),
        minimum_stability=_minimum_stability(alpha, plant, inputs),
    )


def _minimum_stability(alpha: float, plant: Plant, inputs: ArcInputs) -> MinimumStability:
    """ARC paper, section III and eq. (9): alpha much smaller than the marking error that a fragile system sustains."""
    flows, rtt = inputs.fragile_flows, inputs.fragile_rtt_s
    sustainable = 2.0 * float(tcp_equilibrium(flows, rtt, arc_arrival_rate(inputs.setting, "paper")).marking)
    ratio = alpha / sustainable
    there = margins(arc_loop(flows, rtt, inputs.setting, plant).scaled(alpha / inputs.epoch_s))
    return MinimumStability(
        flows=flows,
        rtt_s=rtt,
        sustainable_error=sustainable,
        sustainable_error_as_printed=sustainable / rtt,
        alpha_ratio=ratio,
        satisfied=ratio <= MUCH_SMALLER,
        gain_margin_db=there.gain_margin_db,
        stable=there.stable,
    )
