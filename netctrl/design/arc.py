"""ARC (Aggregate Rate Control): AQM gains for TCP with a certificate that is exact for the delay and for the epoch.

Source: Chung and Claypool, "Aggregate Rate Control for Efficient and Practical Congestion Management". docs/arc.md
derives what is here and lists the paper's misprints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from netctrl.design._arc_advice import warnings_about, what_would_have_to_change
from netctrl.design._arc_box import (
    ROUNDING,
    Rule,
    Sampled,
    arc_gain_bands,
    arc_margins,
    arc_sampled_limits,
    rule_over_box,
    sampled_over_box,
)
from netctrl.errors import InvalidValue, NoAdmissibleDesign, Status, checked_number
from netctrl.fluid.equilibrium import tcp_equilibrium
from netctrl.fluid.linearize import arc_arrival_rate, arc_loop, arc_sampled_loop
from netctrl.frequency.margins import decibel, gain_at_phase_margin, margins
from netctrl.frequency.sampled import gain_limit, spectral_radius
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.arc import (
    PLANTS,
    AlphaBand,
    ArcBox,
    ArcCertificate,
    ArcInputs,
    ArcSampled,
    MinimumStability,
    Plant,
    PlantLimits,
    TcpOperatingPoint,
)
from netctrl.model.artifact import ArcDesign, provenance
from netctrl.model.gain import ArcLaw

__all__ = ["arc", "arc_gain_bands", "arc_margins", "arc_sampled_limits", "arc_stability_map"]

TARGET_PHASE_MARGIN_DEG = 45.0  # where the design aims: the middle of the rule's range
LEAST_WINDOW, MOST_WINDOW = 1e-3, 1e10  # packets
MOST_EPOCHS_PER_RTT = 1e4
MUCH_SMALLER = 0.1  # what eq. (9)'s "much smaller" is taken to mean

Range = float | Sequence[float]


def arc(
    flows: Range,
    rtt_s: Range = 0.5,
    capacity_bit_per_s: float = 10e6,
    *,
    packet_size_bytes: float = 1000.0,
    utilization: float = 0.98,
    epoch_s: float = 1.0,
    target_queue_packets: float = 0.0,
    plant: Plant = "paper",
    alpha_per_packet: float | None = None,
    fragile_flows: float = 10.0,
    fragile_rtt_s: float = 2.0,
    accept: Literal["admissible", "stable"] = "admissible",
    argv: Sequence[str] = (),
) -> ArcDesign:
    """Design ARC's gain for N TCP flows on a link, or analyse a given one, and certify it.

    The gain is set where the loop of `plant` has 45° phase margin, if the exact sampled loop of the plant that applies
    keeps 6 dB of gain margin there; otherwise to the greatest alpha that keeps them. Over a box (ranges of flows or
    round-trip time) the same is done at the box's worst corner.

    Parameters
    ----------
    flows : float or (float, float)
        N, expected number of long-lived flows; a pair is a range.
    rtt_s : float or (float, float)
        tau, round-trip time [s]; a pair is a range.
    capacity_bit_per_s, packet_size_bytes : float
        Link rate C [bit/s] and size of a packet [bytes].
    utilization : float
        gamma, in (0, 1].
    epoch_s : float
        d, how often the law acts [s].
    target_queue_packets : float
        q0.
    plant : {"paper", "noq", "phys"}
        Model of the loop for the continuous margins.
    alpha_per_packet : float, optional
        Analyse this gain instead of designing one.
    fragile_flows, fragile_rtt_s : float
        N_min and tau_max [s] of the paper's minimum-stability condition, eq. (9).
    accept : {"admissible", "stable"}
        Whether a gain that keeps GM >= 6 dB and PM >= 30° but is slower than the rule asks (PM > 60°) will do.
    argv : sequence of str
        Command line for the provenance.

    Returns
    -------
    ArcDesign

    Raises
    ------
    InvalidValue
        An argument outside its bounds, or an empty range.
    NoAdmissibleDesign
        No gain is admissible (and `accept` asks for one); says what would have to change and holds the best stable
        design. Never raised for a given `alpha_per_packet`.

    Notes
    -----
    ARC paper, eqs. (7)-(9).
    """
    if accept not in ("admissible", "stable"):
        raise InvalidValue("accept", accept, "admissible or stable")
    if plant not in PLANTS:
        raise InvalidValue("plant", plant, "paper, noq or phys")
    inputs = ArcInputs(
        flows=_range("flows", flows, "a number of flows above 0, or a range low:high of them"),
        rtt_s=_range("rtt", rtt_s, "a round-trip time from 1 us to 1000 s, or a range low:high", 1e-6, 1e3),
        capacity_bit_per_s=_number("capacity", capacity_bit_per_s, "a rate from 1 kbit/s to 100 Tbit/s", 1e3, 1e14),
        packet_size_bytes=_number("packet_size", packet_size_bytes, "a size from 1 byte to 1 GB", 1.0, 1e9),
        utilization=_number("utilization", utilization, "a number in (0, 1], and at least 0.001", 1e-3, 1.0),
        epoch_s=_number("epoch", epoch_s, "an epoch from 1 us to 1e6 s", 1e-6, 1e6),
        target_queue_packets=_number("target_queue", target_queue_packets, "0 to 1e12 packets", 0.0, 1e12),
        plant=plant,
        alpha_per_packet=None
        if alpha_per_packet is None
        else _number("alpha", alpha_per_packet, "a gain above 0 per packet, as in 1.42e-5", 1e-100, 1e12),
        fragile_flows=_number("fragile_flows", fragile_flows, "a number of flows above 0", 1e-9, 1e12),
        fragile_rtt_s=_number("fragile_rtt", fragile_rtt_s, "a time from 1 us to 1000 s", 1e-6, 1e3),
    )
    _refuse_absurd_windows(inputs)
    rule = rule_over_box(inputs)
    sampled = sampled_over_box(inputs)
    alpha = alpha_per_packet if alpha_per_packet is not None else _choose_alpha(rule, sampled, inputs)
    certificate = _certify(alpha, rule, sampled, inputs)
    law = ArcLaw(
        alpha_per_packet=alpha,
        alpha_per_byte=alpha / inputs.packet_size_bytes,
        epoch_s=inputs.epoch_s,
        target_utilization=inputs.utilization,
        target_queue_packets=inputs.target_queue_packets,
        capacity_bit_per_s=inputs.capacity_bit_per_s,
        packet_size_bytes=inputs.packet_size_bytes,
    )
    made = ArcDesign(
        schema="netctrl.design/1",
        inputs=inputs,
        law=law,
        certificate=certificate,
        provenance=provenance(argv=argv, libraries=("numpy",)),
    )
    enough = (Status.ADMISSIBLE,) if accept == "admissible" else (Status.ADMISSIBLE, Status.STABLE)
    if alpha_per_packet is None and certificate.status not in enough:
        raise NoAdmissibleDesign(what_would_have_to_change(rule, sampled, inputs), made)
    return made


def arc_stability_map(design: ArcDesign, *, points: int = 240) -> StabilityMap:
    """Where the design's gain is admissible, over flows and round-trip times around its operating point and box."""
    inputs = design.inputs
    flows = np.geomspace(min(inputs.flows[0] / 10.0, 5.0), max(inputs.flows[1] * 10.0, 500.0), points)
    rtt = np.geomspace(inputs.rtt_s[0] / 8.0, max(inputs.rtt_s[1] * 5.0, 1.2 * inputs.fragile_rtt_s), points)
    bands = arc_gain_bands(flows, rtt[:, None], inputs.setting, inputs.plant)
    return StabilityMap(flows, rtt, bands, design.law.alpha_per_packet / inputs.epoch_s, f"plant {inputs.plant}")


def _number(argument: str, value: object, takes: str, least: float, most: float) -> float:
    return checked_number(argument, value, takes, at_least=least, at_most=most)


def _range(argument: str, value: Range, takes: str, least: float = 1e-9, most: float = 1e12) -> tuple[float, float]:
    pair = value if isinstance(value, Sequence) and not isinstance(value, str) else (value, value)
    if len(pair) != 2:
        raise InvalidValue(argument, value, takes)
    low, high = (_number(argument, end, takes, least, most) for end in pair)
    if low > high:
        raise InvalidValue(argument, f"{low:g}:{high:g}", f"{takes}; this range is empty")
    return low, high


def _refuse_absurd_windows(inputs: ArcInputs) -> None:
    """Beyond these bounds no number below means anything, long after the model has left its domain (a warning)."""
    rate = float(arc_arrival_rate(inputs.setting, inputs.plant))
    (few, many), (short, long) = inputs.flows, inputs.rtt_s
    fragile = ("fragile_flows", inputs.fragile_flows, inputs.fragile_rtt_s)
    for argument, flows, rtt in (("flows", few, long), ("flows", many, short), fragile):
        least, most = (tcp_equilibrium(1.0, rtt, rate).window / window for window in (MOST_WINDOW, LEAST_WINDOW))
        if not least <= flows <= most:
            takes = f"{least:.3g} to {most:.3g} at this rate and RTT {rtt:g} s (a window of 0.001 to 1e10 packets)"
            raise InvalidValue(argument, flows, takes)
    if inputs.epoch_s > MOST_EPOCHS_PER_RTT * short:
        raise InvalidValue("epoch", inputs.epoch_s, f"at most {MOST_EPOCHS_PER_RTT * short:g} s, 10000 times the RTT")


def _choose_alpha(rule: Rule, sampled: Sampled, inputs: ArcInputs) -> float:
    loop = arc_loop(rule.worst.flows, rule.worst.rtt_s, inputs.setting, inputs.plant)
    aimed = [k for k in gain_at_phase_margin(loop, TARGET_PHASE_MARGIN_DEG) if rule.band.low <= k <= rule.band.high]
    gain = aimed[-1] if aimed else rule.band.high
    if rule.low <= rule.high:
        gain = min(max(gain, rule.low), rule.high)
    return min(gain * inputs.epoch_s, sampled.admissible)


def _certify(alpha: float, rule: Rule, sampled: Sampled, inputs: ArcInputs) -> ArcCertificate:
    gain, worst = alpha / inputs.epoch_s, rule.worst
    loop = arc_loop(worst.flows, worst.rtt_s, inputs.setting, inputs.plant).scaled(gain)
    found = margins(loop)
    radius = spectral_radius(arc_sampled_loop(sampled.at.flows, sampled.at.rtt_s, inputs.setting, sampled.plant), alpha)
    box = None if inputs.is_point else _box(gain, rule, inputs)
    # Below the limit is stable also where the radius rounds to 1; a point above it may be stable again.
    sampled_stable = alpha < sampled.limit or (radius < 1.0 and box is None)
    stable = found.stable and sampled_stable and (box is None or gain < rule.limit)
    intervals = rule.band.intervals if box is None else ((rule.low, rule.high),)
    in_rule = any(low * (1.0 - ROUNDING) <= gain <= high * (1.0 + ROUNDING) for low, high in intervals)
    admissible = stable and in_rule and alpha <= sampled.admissible * (1.0 + ROUNDING)
    rate = float(arc_arrival_rate(inputs.setting, inputs.plant))
    _, window, marking = tcp_equilibrium(worst.flows, worst.rtt_s, rate)
    return ArcCertificate(
        status=Status.ADMISSIBLE if admissible else Status.STABLE if stable else Status.UNSTABLE,
        stable=stable,
        plant=inputs.plant,
        operating_point=TcpOperatingPoint(
            flows=worst.flows,
            rtt_s=worst.rtt_s,
            rate_packet_per_s=rate,
            window_packets=window,
            marking_probability=marking,
        ),
        loop=loop,
        alpha_over_epoch=AlphaBand(
            low=rule.band.low,
            high=rule.band.high,
            limit=rule.band.limit,
            binding=rule.band.binding,
            intervals=rule.band.intervals,
        ),
        gain_margin_db=_finite(found.gain_margin_db),
        phase_margin_deg=_finite(found.phase_margin_deg),
        delay_margin_s=_finite(found.delay_margin_s),
        crossover_rad_s=_finite(found.crossover_rad_s),
        phase_crossover_rad_s=_finite(found.phase_crossover_rad_s),
        sampled=ArcSampled(
            plant=sampled.plant,
            epoch_s=inputs.epoch_s,
            alpha_limit=sampled.limit,
            spectral_radius=radius,
            gain_margin_db=decibel(sampled.limit / alpha),
            alpha_limits=PlantLimits(
                **{
                    plant: gain_limit(arc_sampled_loop(worst.flows, worst.rtt_s, inputs.setting, plant))
                    for plant in PLANTS
                }
            ),
        ),
        minimum_stability=_minimum_stability(gain, inputs),
        box=box,
        warnings=tuple(warnings_about(alpha, rule, sampled, found, sampled_stable, inputs)),
    )


def _box(gain: float, rule: Rule, inputs: ArcInputs) -> ArcBox:
    slow = margins(arc_loop(rule.slow.flows, rule.slow.rtt_s, inputs.setting, inputs.plant).scaled(gain))
    return ArcBox(
        admissible=(rule.low, rule.high) if rule.low <= rule.high else None,
        margins_kept_below=rule.high,
        stable_below=rule.limit,
        worst_corner=rule.worst,
        slow_corner=rule.slow,
        slow_phase_margin_deg=slow.phase_margin_deg,
        points=rule.points,
    )


def _minimum_stability(gain: float, inputs: ArcInputs) -> MinimumStability:
    """ARC paper, section III and eq. (9): alpha much smaller than the marking error a fragile system sustains."""
    flows, rtt = inputs.fragile_flows, inputs.fragile_rtt_s
    sustainable = 2.0 * float(tcp_equilibrium(flows, rtt, arc_arrival_rate(inputs.setting, "paper")).marking)
    ratio = gain * inputs.epoch_s / sustainable
    there = margins(arc_loop(flows, rtt, inputs.setting, inputs.plant).scaled(gain))
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
