"""Loop that decides an ARC design: the rule over a point or a box, margins, reach, and the nonlinear check.

The paper's continuous-time loops, with Hollot's undelayed window, stand beside it for comparison, not for the verdict.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from netctrl.design.arc.settling import Settling, settle
from netctrl.frequency.batch import GainBands, gain_bands
from netctrl.frequency.branch_bound import Minimum, Sector
from netctrl.frequency.margins import gain_band, margins
from netctrl.frequency.records import factor
from netctrl.frequency.sampled import gain_limit
from netctrl.frequency.sampled_gain import gains_at, greatest_gain, keeps
from netctrl.frequency.sampled_margins import SampledMargins, sampled_margins, spectral_radius
from netctrl.model.design.arc import (
    PLANTS,
    AlphaBand,
    ArcInputs,
    ArcReach,
    ArcSampled,
    ArcSetting,
    ArcSimulated,
    Corner,
    MinimumStability,
    PaperLoop,
    Plant,
    PlantLimits,
)
from netctrl.model.io.record_file import taken
from netctrl.plants.equilibrium import MIN_WINDOW, tcp_equilibrium
from netctrl.plants.linearize import (
    applicable_plant,
    arc_arrival_rate,
    arc_corners,
    arc_loop,
    arc_sampled_loop,
    standing_queue,
)
from netctrl.plants.tcp_response import TcpResponse, arc_response

MIN_GAIN_MARGIN_DB, MIN_PHASE_MARGIN_DEG = 6.0, 30.0
RULE = Sector(1.0 / factor(MIN_GAIN_MARGIN_DB), math.radians(MIN_PHASE_MARGIN_DEG))
AIMS_DEG = (45.0, 60.0, 75.0)
"""Phase margins that a design tries in turn until the fluid comes to rest."""
ROUNDING = 1e-9  # relative; a gain set exactly to a bound counts as inside it
_REACH_STEPS = 14


class Deciding(NamedTuple):
    """The sampled loop over the requested point or box, in alpha per packet."""

    response: TcpResponse
    limit: Minimum
    """Limit below which the loop is stable at every point."""
    kept: Minimum
    """Limit up to which the rule holds at every point."""
    worst: Corner
    """Operating point at which the rule fails first."""
    is_point: bool
    """Whether there is one operating point, not a box."""

    @property
    def stable_below(self) -> float:
        """Limit of stability: proved for a box, computed at a point (proved to a part in a million)."""
        return self.limit.found if self.is_point else self.limit.proved

    @property
    def kept_below(self) -> float:
        """Limit of the rule, like `stable_below`."""
        return self.kept.found if self.is_point else self.kept.proved


def decide(inputs: ArcInputs) -> Deciding:
    """Limits on alpha over the requested point or box."""
    response = arc_response(inputs.setting)
    limit = greatest_gain(response, inputs.flows, inputs.rtt_s, Sector())
    kept = greatest_gain(response, inputs.flows, inputs.rtt_s, RULE)
    worst = Corner(flows=float(np.exp(kept.where[1])), rtt_s=float(np.exp(kept.where[2])))
    if inputs.is_point:
        worst = Corner(flows=inputs.flows[0], rtt_s=inputs.rtt_s[0])
    return Deciding(response, limit, kept, worst, inputs.is_point)


def aimed(phase_margin_deg: float, deciding: Deciding, inputs: ArcInputs) -> float:
    """alpha at which the worst point has this phase margin and at least 6 dB, within the proved limits."""
    sector = Sector(RULE.gain, math.radians(phase_margin_deg))
    found = greatest_gain(deciding.response, inputs.flows, inputs.rtt_s, sector)
    alpha = min(found.found if inputs.is_point else found.proved, deciding.kept_below)
    return float(f"{alpha:.12g}")  # further digits are rounding errors, which differ between processors


def sampled(alpha: float, deciding: Deciding, inputs: ArcInputs) -> tuple[ArcSampled, SampledMargins]:
    """Margins of the deciding loop at its worst point."""
    at = deciding.worst
    limit = deciding.limit if deciding.is_point else None  # a box may have its smallest limit at another point
    found = sampled_margins(deciding.response, at.flows, at.rtt_s, alpha, limit)
    record = ArcSampled(
        **taken(found, "gain_margin_db", "phase_margin_deg", "disk_margin"),
        **_finite(found, "delay_margin_s", "crossover_rad_s", "phase_crossover_rad_s"),
        plant="phys" if deciding.response.queue else "noq",
        epoch_s=inputs.epoch_s,
        alpha_limit=found.limit,
        spectral_radius=spectral_radius(deciding.response, at.flows, at.rtt_s, alpha),
    )
    return record, found


def _finite(found: Any, *names: str) -> dict[str, float | None]:
    """Margins by name; None where they are unlimited."""
    return {name: finite(value) for name, value in taken(found, *names).items()}


def simulated(alpha: float, crossover: float, deciding: Deciding, inputs: ArcInputs) -> ArcSimulated | None:
    """Nonlinear fluid at the worst point and at the corners of a box; None where windows are too large for it."""
    corners = {(deciding.worst.flows, deciding.worst.rtt_s), *product(inputs.flows, inputs.rtt_s)}
    runs: list[Settling | None] = []
    for flows, rtt in sorted(corners):
        slowest = crossover
        if not inputs.is_point:
            own = sampled_crossover(deciding.response, flows, rtt, alpha)
            slowest = own if math.isfinite(own) else crossover
        runs.append(settle(flows, rtt, inputs.setting, alpha, slowest if math.isfinite(slowest) else 1.0 / rtt))
    ran = [run for run in runs if run is not None]
    if len(ran) < len(runs):
        return None
    return ArcSimulated(
        probability_cv=max(run.probability_cv for run in ran),
        utilization=min(run.utilization for run in ran),
        queue_packets=max(run.queue_packets for run in ran),
        duration_s=max(run.duration_s for run in ran),
        settles=not any(run.oscillates for run in ran),
    )


def sampled_crossover(response: TcpResponse, flows: float, rtt: float, alpha: float) -> float:
    """A gain crossover of the loop [rad/s], accurate to a few per cent; nan where |L| is never 1."""
    angles = np.geomspace(response.min_angle((flows, flows), (rtt, rtt)) * 1e-3, math.pi, 300)
    above = np.flatnonzero(alpha * np.abs(response.at(angles, flows, rtt, coarse=True)) >= 1.0)
    return float(angles[above[-1]]) / response.epoch if above.size else math.nan


def reach(alpha: float, deciding: Deciding, inputs: ArcInputs) -> ArcReach | None:
    """Reach of the rule in flows and in round-trip time, one at a time; None where the rule isn't met."""
    if not inputs.is_point or alpha > deciding.kept_below * (1.0 + ROUNDING):
        return None
    flows, rtt = inputs.flows[0], inputs.rtt_s[0]
    fewest = _furthest(alpha, deciding.response, lambda f: (flows / f, rtt))
    longest = _furthest(alpha, deciding.response, lambda f: (flows, rtt * f))
    return ArcReach(
        fewest_flows=flows / fewest, longest_rtt_s=rtt * longest, most_flows=most_flows(rtt, inputs.setting)
    )


def _furthest(alpha: float, response: TcpResponse, moved) -> float:
    """Largest factor by which the point may move in one direction with the rule kept throughout: found, then proved."""
    factors = np.geomspace(1.0, 30.0, _REACH_STEPS)
    points = np.array([moved(f) for f in factors])
    kept = gains_at(response, points[:, 0], points[:, 1], [RULE])[0] / alpha
    beyond = np.flatnonzero(kept < 1.0)
    if not beyond.size or beyond[0] == 0:
        return 1.0 if beyond.size else float(factors[-1])
    low, high = math.log(factors[beyond[0] - 1]), math.log(factors[beyond[0]])
    at_low, at_high = math.log(kept[beyond[0] - 1]), math.log(kept[beyond[0]])
    for _ in range(3):  # the bound is close to a power of the factor
        middle = low + (high - low) * at_low / (at_low - at_high) if at_low > at_high else 0.5 * (low + high)
        n, tau = moved(math.exp(middle))
        value = math.log(float(gains_at(response, np.array([n]), np.array([tau]), [RULE])[0, 0]) / alpha)
        low, at_low, high, at_high = (middle, value, high, at_high) if value >= 0.0 else (low, at_low, middle, value)
    last = math.exp(low) / (1.0 + 1e-3)
    while last > 1.0:
        n, tau = zip(moved(1.0), moved(last), strict=True)
        if keeps(response, (min(n), max(n)), (min(tau), max(tau)), RULE, alpha * (1.0 - ROUNDING)):
            return last
        last = max(1.0, 1.0 + 0.7 * (last - 1.0)) if last > 1.01 else 1.0
    return 1.0


def most_flows(rtt: float, setting: ArcSetting) -> float:
    """Largest number of flows for which TCP has an equilibrium: p0 <= 1 and a window of at least one packet."""
    rate = float(arc_arrival_rate(setting, applicable_plant(setting)))
    return rtt * rate / max(math.sqrt(2.0), MIN_WINDOW)


def infeasible(inputs: ArcInputs) -> str | None:
    """Why there is no equilibrium in part of the requested range, and what would have to change; else None."""
    setting = inputs.setting
    many, short = inputs.flows[1], inputs.rtt_s[0]
    capacity = float(setting.capacity_packet_per_s)
    waiting = standing_queue(setting) / capacity
    if waiting >= short:
        return (
            f"no equilibrium: the standing queue of {standing_queue(setting):.4g} packets alone takes {waiting:.4g} s,"
            f" the round-trip time with queueing is {short:g} s; lower the target queue or give a longer --rtt"
        )
    rate = float(arc_arrival_rate(setting, applicable_plant(setting)))
    _, window, marking = tcp_equilibrium(many, short, rate)
    if marking <= 1.0 and window >= MIN_WINDOW:
        return None
    most = most_flows(short, setting)
    return (
        f"no equilibrium: {many:g} flows at {short:g} s would need p0 = {marking:.4g}, a probability above 1 (windows"
        f" of {window:.3g} packets): the queue fills and ARC marks every packet; serve at most {most:.6g} flows, or"
        f" {many / most:.3g} times the capacity or the round-trip time, or smaller packets"
    )


def nearest_equilibrium(inputs: ArcInputs) -> ArcInputs:
    """The inputs at the shortest requested round trip, with no more flows than TCP has an equilibrium for."""
    short = inputs.rtt_s[0]
    flows = min(inputs.flows[1], most_flows(short, inputs.setting))
    return msgspec.structs.replace(inputs, flows=(flows, flows), rtt_s=(short, short))


def finite(value: float) -> float | None:
    """A number for a certificate; null where it is unlimited."""
    return value if math.isfinite(value) else None


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


def paper_loop(alpha: float, at: Corner, inputs: ArcInputs) -> PaperLoop:
    """Eq. (7) at one operating point, or the continuous-time loop of the requested plant."""
    plant: Plant = "paper" if inputs.plant == "auto" else inputs.plant
    unit = arc_loop(at.flows, at.rtt_s, inputs.setting, plant)
    loop = unit.scaled(alpha / inputs.epoch_s)
    band, found = gain_band(unit, GAIN_MARGIN_DB, PHASE_MARGIN_DEG), margins(loop)
    limits = {name: gain_limit(arc_sampled_loop(at.flows, at.rtt_s, inputs.setting, name)) for name in PLANTS}
    return PaperLoop(
        **_finite(found, "gain_margin_db", "phase_margin_deg", "delay_margin_s"),
        **_finite(found, "crossover_rad_s", "phase_crossover_rad_s"),
        plant=plant,
        loop=loop,
        stable=found.stable,
        alpha_over_epoch=AlphaBand(**taken(band, "low", "high", "limit", "binding", "intervals")),
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
