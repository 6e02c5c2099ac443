"""Warnings about an ARC design: missed rule, limits of the model, and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from netctrl.design.arc.loop import MIN_GAIN_MARGIN_DB, MIN_PHASE_MARGIN_DEG, ROUNDING, Deciding
from netctrl.errors import Status
from netctrl.frequency.sampled_margins import SampledMargins
from netctrl.model.design.arc import ArcCertificate, ArcInputs, ArcSimulated
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import applicable_plant, arc_arrival_rate
from netctrl.units import long_rtt

__all__ = ["no_rest", "warnings_about"]

_SMALL_WINDOW = 2.0  # packets; below it TCP's minimum window and time-outs matter
_SLOW_DEG = 75.1  # above the margins that a design aims at


def warnings_about(
    alpha: float,
    deciding: Deciding,
    status: Status,
    found: SampledMargins,
    fluid: ArcSimulated | None,
    without: str | None,
    inputs: ArcInputs,
) -> Iterator[str]:
    """Warnings where the gain misses the rule, or where the model is outside its domain."""
    plant = "phys" if deciding.response.queue else "noq"
    where = "" if inputs.is_point else f" at {deciding.worst.flows:g} flows and {deciding.worst.rtt_s:.4g} s"
    yield from long_rtt(inputs.rtt_s[1])
    if without is not None:
        yield without
        return
    if status is Status.UNSTABLE:
        yield (
            f"unstable{where}: the sampled loop (plant {plant}) needs alpha < {deciding.stable_below:.6g},"
            f" got {alpha:.6g}"
        )
    elif alpha > deciding.kept_below * (1.0 + ROUNDING):
        yield (
            f"too little margin{where}: GM {found.gain_margin_db:.2f} dB, PM {found.phase_margin_deg:.2f}°; alpha <="
            f" {deciding.kept_below:.6g} keeps {MIN_GAIN_MARGIN_DB:g} dB and {MIN_PHASE_MARGIN_DEG:g}°"
        )
    if fluid is not None and not fluid.settles and status is not Status.UNSTABLE:
        yield (
            f"limit cycle: the nonlinear fluid keeps oscillating, p varies by {fluid.probability_cv:.0%} of its mean"
            f" at {fluid.utilization:.1%} utilization"
        )
    if fluid is None:
        yield "the nonlinear fluid was not simulated (--no-simulation, or windows too large): no limit cycle is found"
    if found.phase_margin_deg > _SLOW_DEG and found.stable:
        yield f"slow: phase margin {found.phase_margin_deg:.1f}°, crossover at {found.crossover_rad_s:.3g} rad/s"
    many, short = inputs.flows[1], inputs.rtt_s[0]
    rate = float(arc_arrival_rate(inputs.setting, applicable_plant(inputs.setting)))
    window = tcp_equilibrium(many, short, rate).window
    if window < _SMALL_WINDOW:
        yield (
            f"small windows: {window:.3g} packets at {many:g} flows and {short:g} s; TCPs that keep two packets in"
            f" flight send more than this model"
        )
    if inputs.plant in ("noq", "phys") and inputs.plant != plant:
        queue = "there is no standing queue" if plant == "noq" else "there is a standing queue"
        yield f"plant {inputs.plant} was requested, but {queue} in this equilibrium: the verdict uses plant {plant}"


def no_rest(certificate: ArcCertificate) -> str:
    """Message for a design that is not admissible although its loop is stable."""
    fluid = certificate.simulated
    moves = f"p still varies by {fluid.probability_cv:.0%} of its mean" if fluid is not None else "it is not stable"
    return (
        f"no gain is admissible: the nonlinear fluid does not come to rest at any phase margin tried, {moves};"
        " shorten the epoch, serve more flows, or --accept stable (accept='stable') accepts the slowest gain"
    )
