"""Each design in words: its verdict in one sentence (whether it holds for its inputs, and how far beyond them), and its
main results as (name, text) rows, which the command line and Jupyter show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.design.arc import ArcCertificate, ArcInputs
from netctrl.model.design.base import ANSWERS
from netctrl.model.design.connet import ConnetCertificate, ConnetInputs
from netctrl.model.design.hftrac import HftracCertificate, HftracInputs
from netctrl.model.design.mpcc import MpccCertificate, MpccInputs
from netctrl.model.design.pacing import OwnRateEquilibrium, PacingCertificate, PacingInputs
from netctrl.model.law import ArcLaw, ArxPacer, LinkRateLaw, LqiLaw, MpccLaw, PacingLaw, TrackingLaw


def arc_verdict(inputs: ArcInputs, proof: ArcCertificate) -> str:
    """Whether the gain is safe for the requested flows and RTT, and how far beyond them."""
    requested = f"{span(inputs.flows, '{:g}'.format)} flows at {span(inputs.rtt_s, lambda s: format_quantity(s, 's'))}"
    if proof.status is Status.ADMISSIBLE and proof.reach is not None:
        reach = proof.reach
        ends = (
            f"; keeps its margins down to {reach.fewest_flows:.3g} flows or up to"
            f" {format_quantity(reach.longest_rtt_s, 's', 3)}"
        )
        return f"Safe for {requested}: yes{ends}"
    why = {
        Status.ADMISSIBLE: "yes, at every point of the box",
        Status.STABLE: "no, stable but not with enough margin",
        Status.UNSTABLE: "no, unstable",
        Status.INFEASIBLE: "no, TCP has no equilibrium there",
    }
    return f"Safe for {requested}: {why[proof.status]}"


def hftrac_verdict(inputs: HftracInputs, proof: HftracCertificate) -> str:
    """Whether the rates are stable, and how far their cost is above the architecture's bound."""
    where = f"the {proof.links} links of {inputs.network.name or 'the network'}"
    if proof.unmet:
        demands = len(inputs.network.demands)
        return f"Safe for {where}: no, they carry {demands - len(proof.unmet)} of {demands} demands in full"
    more = f"costs at most {100.0 * proof.gap_to_bound:.2g} % more than the best {inputs.architecture} control"
    return _safe(where, proof.status, more)


def connet_verdict(inputs: ConnetInputs, proof: ConnetCertificate) -> str:
    """Whether the loop meets the design rule, and the range of plant gains for which it is stable."""
    most = "any" if proof.highest_gain is None else f"{proof.highest_gain:.3g}"
    more = f"stable from {max(proof.lowest_gain, 0.0):.3g} to {most} times the model's gain"
    return _safe("this model", proof.status, more)


def mpcc_verdict(inputs: MpccInputs, proof: MpccCertificate) -> str:
    """Whether a standing queue stays stable, and for how many times the counted flows."""
    more = f"a standing queue swings only from {proof.gain_margin:.3g} times as many flows on"
    return _safe(f"{inputs.flows} flows at {format_quantity(inputs.rtt_s, 's')}", proof.status, more)


def pacing_verdict(inputs: PacingInputs, proof: PacingCertificate) -> str:
    """Whether the rate settles, and for which buffer or number of flows."""
    flows = f"{inputs.flows} flow{'s' * (inputs.flows != 1)}"
    rtt, rate = format_quantity(inputs.rtt_s, "s"), format_quantity(inputs.bottleneck_bit_per_s, "bit/s")
    more = "" if proof.most_flows is None else f"this buffer holds the queue of up to {proof.most_flows} flows"
    return _safe(f"{flows} at {rtt} and {rate}", proof.status, more)


def _safe(where: str, status: Status, more: str) -> str:
    """The answer for a place, and how far beyond it the design holds, where it does."""
    answer = f"Safe for {where}: {ANSWERS[status]}"
    return f"{answer}; {more}" if more and status is Status.ADMISSIBLE else answer


def span(ends: tuple[float, float], show: Callable[[float], str]) -> str:
    """A range as text; a single value where both ends are equal."""
    low, high = ends
    return show(low) if low == high else f"{show(low)} to {show(high)}"


def arc_summary(inputs: ArcInputs, law: ArcLaw, proof: ArcCertificate) -> tuple[str, list[tuple[str, str]]]:
    """Title and (name, text) rows: gain, deciding loop, fluid, box, and the paper's analysis."""
    sampled, paper = proof.sampled, proof.paper
    title = (
        f"ARC on {format_quantity(inputs.capacity_bit_per_s, 'bit/s')}, {span(inputs.flows, '{:g}'.format)} flows,"
        f" RTT {span(inputs.rtt_s, lambda s: format_quantity(s, 's'))}, utilization {inputs.utilization:g},"
        f" epoch {format_quantity(inputs.epoch_s, 's')}"
    )
    at = "" if proof.box is None else f" at {proof.box.worst_corner.flows:g} flows, {proof.box.worst_corner.rtt_s:g} s"
    rows = [("alpha", f"{law.alpha_per_packet:.6g} per packet, {law.alpha_per_byte:.6g} per byte")]
    if proof.status is not Status.INFEASIBLE:
        rows += [
            (
                "sampled loop",
                f"plant {sampled.plant}{at}, spectral radius {_value(sampled.spectral_radius, '', '.6f')}",
            ),
            ("  gain margin", f"{_value(sampled.gain_margin_db, ' dB')}, stable below alpha {sampled.alpha_limit:.6g}"),
            (
                "  phase margin",
                f"{_value(sampled.phase_margin_deg, '°')} at {_value(sampled.crossover_rad_s, ' rad/s', '.4g')}",
            ),
            ("  delay margin", _value(sampled.delay_margin_s, " s", ".4g")),
            ("  disk margin", _value(sampled.disk_margin, "", ".3f")),
        ]
    fluid = proof.simulated
    if fluid is not None:
        rests = "comes to rest from every start" if fluid.settles else "keeps swinging"
        rows.append(
            ("nonlinear fluid", f"{rests}: p varies by {fluid.probability_cv:.1%}, utilization {fluid.utilization:.1%}")
        )
    if proof.box is not None:
        box = proof.box
        rows.append(
            (
                "over the box",
                f"proved everywhere: margins kept up to alpha {box.margins_kept_below:.6g}, stable below"
                f" {box.stable_below:.6g}",
            )
        )
    name = "eq. (7)" if paper.plant == "paper" else f"continuous {paper.plant}"
    rows.append(
        (
            "the paper says",
            f"{name}: GM {_value(paper.gain_margin_db, ' dB')}, PM {_value(paper.phase_margin_deg, '°')}"
            "; no part of the verdict",
        )
    )
    return title, rows


def arc_paper_rows(law: ArcLaw, proof: ArcCertificate) -> list[tuple[str, str]]:
    """Rows with the paper's own design rule and eq. (9), for comparison."""
    paper, fragile = proof.paper, proof.paper.minimum_stability
    band = paper.alpha_over_epoch
    admissible = f"{band.low:.6g} to {band.high:.6g} /s, upper end set by the {band.binding}"
    if not band.intervals:
        admissible = f"none: PM <= 60° asks for {band.low:.6g} /s, GM >= 6 dB allows {band.high:.6g} /s"
    return [
        ("  alpha/epoch", f"{law.alpha_per_packet / law.epoch_s:.6g} /s; the paper's rule admits {admissible}"),
        ("  stable below", f"{band.limit:.6g} /s (continuous loop)"),
        ("  delay margin", f"{_value(paper.delay_margin_s, ' s', '.4g')} (continuous loop)"),
        (
            "  fragile system",
            f"alpha is {fragile.alpha_ratio:.2g} of what {fragile.flows:g} flows at"
            f" {format_quantity(fragile.rtt_s, 's')} sustain (eq. 9 {'holds' if fragile.satisfied else 'fails'});"
            f" that loop is {'stable' if fragile.stable else 'unstable'} (GM {fragile.gain_margin_db:.1f} dB)",
        ),
    ]


def hftrac_summary(inputs: HftracInputs, _: LinkRateLaw, proof: HftracCertificate) -> tuple[str, list[tuple[str, str]]]:
    """Title and (name, text) rows: cost of the architecture, its bound and checks, and the other architectures."""
    network, interval = inputs.network, format_quantity(inputs.interval_s, "s")
    what = f"{inputs.architecture} control" if inputs.architecture != "god" else "GOD control"
    weight = "mu from each link's weight" if inputs.mu is None else f"mu {inputs.mu:g}"
    title = f"HFTraC, {what} of {network.name or 'a network'}: {proof.links} links, every {interval}, {weight}"
    rows = [
        ("cost", f"{proof.cost:.10g} (bit/s)²"),
        ("  of the rates", f"{proof.cost_rate:.6g} (bit/s)²: Σ E f²"),
        ("  of the queues", f"{proof.cost_queue:.6g} (bit/s)²: Σ mu E (b/interval)²"),
        ("over the bound", f"{proof.gap_to_bound:.3g} of what no {inputs.architecture} controller comes below"),
        ("spectral radius", f"{proof.spectral_radius:.6f}"),
    ]
    if proof.horizon is not None:
        over = "" if proof.excess_over_exact is None else f"; {proof.excess_over_exact:.2g} over the exact cost"
        rows.append(("horizon", f"{proof.horizon} samples{over}"))
    if proof.region is not None:
        rows.append(("locality", f"a disturbance concerns at most {proof.region} of {proof.links} links"))
    if proof.residual is not None:
        rows.append(("residual", f"{proof.residual:.2g}, relative, of the Riccati equation"))
    if proof.information_delay is not None and inputs.architecture != "god":
        at = "" if proof.controller is None else f" to the controller at {proof.controller}"
        rows.append(("round trip", f"{proof.information_delay} samples{at}"))
    for row in proof.comparison:
        rows.append((row.architecture, f"{row.cost:.10g} (bit/s)², {100.0 * row.over_god:+.3g} % to GOD; {row.note}"))
    if proof.break_even_delay_s is not None:
        even = format_quantity(proof.break_even_delay_s, "s")
        rows.append(("break-even", f"centralized costs as much as myopic at a round trip of {even}"))
    return title, rows


def connet_summary(
    inputs: ConnetInputs, law: TrackingLaw, proof: ConnetCertificate
) -> tuple[str, list[tuple[str, str]]]:
    """Title and (name, text) rows: tracked outputs and errors, gains, poles, margins, references."""
    what = " and ".join(_combination(row, law.outputs) for row in inputs.tracked)
    how = "LQI" if isinstance(law, LqiLaw) else "the paper's LQG"
    title = f"CONNET, {how}: {what} by {', '.join(law.inputs)}, every {format_quantity(law.interval_s, 's')}"
    rows = [("K (u = -K x)", _numbers(law.K))]
    if isinstance(law, LqiLaw):
        rows.append(("K_z", _numbers(law.integral_gain)))
    band = "up to half the sampling rate" if proof.bandwidth_hz is None else f"{proof.bandwidth_hz:.4g} Hz"
    most = "any" if proof.highest_gain is None else f"{proof.highest_gain:.3g}"
    gains = f"{max(proof.lowest_gain, 0.0):.3g} to {most} times"
    off = "no stable loop" if proof.dc_error_gain is None else f"{100.0 * proof.dc_error_gain:.3g} %"
    rows += [
        ("L", _numbers(law.L)),
        ("poles", ", ".join(_complex(pole) for pole in proof.closed_loop_poles)),
        ("steady error", f"{100.0 * (proof.dc_error or 0.0):.3g} %; plant gain 20 % off the model's: {off}"),
        ("bandwidth", f"{band} (-3 dB)"),
        ("disk margin", f"{proof.disc_alpha:.3g}: gain {gains}, phase {proof.phase_deg:.1f}°"),
        ("residual", f"{proof.residual_regulator:.2g} regulator, {proof.residual_estimator:.2g} estimator"),
    ]
    if (drawn := proof.drawn) is not None:
        kept = f"disk margin {drawn.alpha:.3g} in 19 of 20, {drawn.least_alpha:.3g} in all"
        rows.append(("drawn models", f"stable with {drawn.stable:.1%} of {drawn.models} that the trace allows, {kept}"))
    if (slopes := proof.slopes) is not None:
        most = "any" if slopes.stable[1] is None else f"{slopes.stable[1]:.3g}"
        rows.append(("slopes", f"stable from {slopes.stable[0]:.3g} to {most} times the curve's"))
    if slopes is not None and (held := slopes.held) is not None:
        (low, high), (least, greatest) = held.references, held.inputs
        ends = f"{law.inputs[0]} {least:.4g} to {greatest:.4g}"
        rows.append(("holds", f"{low:.4g} to {high:.4g} ({ends}), also with {held.load:.3g} of load that joins"))
        low, high = held.sector
        rows.append(
            ("load", f"as in the trace; x more moves the curve to f({law.inputs[0]} + x): x less for a reference")
        )
        rows.append(("there", f"slopes {low:.3g} to {high:.3g} times the curve's, disk margin {held.alpha:.3g}"))
    if slopes is None:
        how = inputs.model.identification
        bent = None if how is None else how.line_slopes
        shown = "nothing tells whether it is"
        if bent is not None:
            shown = f"the trace's errors show {bent.min():.3g} to {bent.max():.3g} times the model's"
        rows.append(("line", f"all this holds for a link whose slope is the same everywhere; {shown}"))
    seen = "" if inputs.model.output_range is None else ", where the model's trace was"
    for row, (low, high) in zip(inputs.tracked, proof.attainable, strict=True):
        rows.append(("attainable", f"{_combination(row, law.outputs)} from {low:.4g} to {high:.4g}{seen}"))
    for check in proof.references:
        requested = pairs(law.outputs, check.reference)
        rows.append(
            ("reference", f"{requested}: {pairs(law.inputs, check.needed)}; gives {pairs(law.outputs, check.attained)}")
        )
    return title, rows


def mpcc_summary(inputs: MpccInputs, law: MpccLaw, proof: MpccCertificate) -> tuple[str, list[tuple[str, str]]]:
    """Title and (name, text) rows: the law, the program that it solves, its loop with the round-trip delay."""
    what = "on the predicted queue" if law.delayed else "on the queue as told"
    title = (
        f"MPCC {what}: {inputs.flows} flows, {format_quantity(inputs.rate_bit_per_s, 'bit/s')},"
        f" RTT {format_quantity(inputs.rtt_s, 's')}, P_BD {inputs.bdp_bytes:g} bytes, P {inputs.horizon},"
        f" weights {inputs.queue_weight:g}:{inputs.window_weight:g}"
    )
    queue = "Qp" if law.delayed else "Q"
    rows = [
        ("law", f"W = clip({law.fair_window:.6g} - {law.gain:.10g} {queue}, 0, {law.bdp_bytes:g}) bytes"),
        ("B", f"{law.B:.7g}; an acknowledgement every {format_quantity(law.interval_s, 's')}"),
        (
            "QP",
            f"{proof.qp_states} random queues: {proof.qp_difference:.1e} of P_BD off, residual {proof.qp_residual:.1e}",
        ),
        ("feasible", f"queues up to {proof.feasible_queue_bytes:.6g} bytes"),
        (
            "pole",
            f"{proof.closed_loop_pole:.6f}; with {proof.delay_steps} samples of round trip {proof.spectral_radius:.6f}",
        ),
        ("gain margin", f"{proof.gain_margin:.3g} times the flows' gain, where a queue stands"),
        ("disk margin", f"{proof.disc_alpha:.3g}, phase {proof.phase_deg:.1f}°   (rule: 0.667 or more)"),
        ("delay margin", f"{proof.delay_margin_steps} acknowledgements"),
        (
            "settling",
            f"{proof.settling_rtts:.3g} round trips from a burst of one P_BD to a packet;"
            f" then {100.0 * proof.idle_share:.3g} % of P_BD lost to idling",
        ),
        ("utilization", f"{100.0 * proof.utilization:.4g} % at the fair window"),
    ]
    if law.table is not None:
        first, last = (int(law.table.flows[i]) for i in (0, -1))
        rows.append(("table", f"{first} to {last} flows"))
    return title, rows


def pacing_summary(inputs: PacingInputs, law: PacingLaw, proof: PacingCertificate) -> tuple[str, list[tuple[str, str]]]:
    """Title and (name, text) rows: bounds, where the law freezes or its target, stable step sizes."""
    rtt, bottleneck = format_quantity(inputs.rtt_s, "s"), format_quantity(inputs.bottleneck_bit_per_s, "bit/s")
    rows = [
        (
            "rate",
            f"{format_quantity(law.least_rate_bit_per_s, 'bit/s')} to"
            f" {format_quantity(law.max_rate_bit_per_s, 'bit/s')}, every {format_quantity(proof.sampling_s, 's')}"
            f" at an RTT of {rtt}",
        )
    ]
    if isinstance(law, ArxPacer):
        model = f"p {inputs.past_rtts}, q {inputs.past_rates}"
        title = f"MPC pacing as published: psi {inputs.psi:g}, xi {inputs.xi:g}, {model}"
        d = proof.freeze_below_s
        freezes = "always" if d is None else f"at deviations below d* = {format_quantity(d, 's')}; above, it runs to R"
        how = "NLMS" if law.normalised else "SGD as printed"
        rows += [
            ("freezes", f"{freezes} (RTT {rtt}, bottleneck {bottleneck})"),
            ("step", f"{law.step:g}, stable below {proof.step_limit:.4g} ({how})"),
        ]
        rows += [("  of SGD", f"stable below {each.limit:.4g} in {each.units}") for each in proof.sgd_limits]
    elif proof.equilibrium is not None:
        title = f"pacing to a queue of the own rate: {inputs.flows} flow{'s' * (inputs.flows != 1)} at {bottleneck}"
        rows += _equilibrium(inputs, proof, proof.equilibrium)
    return title, rows


def _equilibrium(inputs: PacingInputs, proof: PacingCertificate, found: OwnRateEquilibrium) -> list[tuple[str, str]]:
    rate, queue, worst, time = (
        format_quantity(value, unit)
        for value, unit in (
            (found.rate_bit_per_s, "bit/s"),
            (found.queue_s, "s"),
            (found.worst_queue_s, "s"),
            (found.time_constant_s, "s"),
        )
    )
    later = "any time" if found.delay_margin_rtts is None else f"{found.delay_margin_rtts:.3g} round trips"
    return [
        ("rests at", f"{rate} for each flow, whatever their round trips; a queue of {queue}, at most {worst}"),
        ("window", f"{found.window_packets:.4g} packets at an RTT of {format_quantity(inputs.rtt_s, 's')}"),
        ("shares", f"a difference of rates falls to 1/e in {time}"),
        ("stable", f"for gains up to {found.gain_margin:.3g} times greater, or answers up to {later} later"),
        *_held(inputs, proof),
    ]


def _held(inputs: PacingInputs, proof: PacingCertificate) -> list[tuple[str, str]]:
    """Buffers and numbers of flows for which the queue holds; empty for older files."""
    if proof.least_buffer_bytes is None or inputs.buffer_bytes is None:
        return []
    flows = f"{inputs.flows} flow{'s' * (inputs.flows != 1)}"
    buffer, least = (format_quantity(size, "B") for size in (inputs.buffer_bytes, proof.least_buffer_bytes))
    return [
        (
            "holds for",
            f"{flows} with a buffer of at least {least}; a buffer of {buffer} with up to {proof.most_flows} flows",
        )
    ]


def _combination(row: tuple[float, ...], names: tuple[str, ...]) -> str:
    parts = [name if weight == 1.0 else f"{weight:g} {name}" for weight, name in zip(row, names, strict=True) if weight]
    return " + ".join(parts)


def pairs(names: tuple[str, ...], values: tuple[float, ...]) -> str:
    """Names with their values, as text."""
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, values, strict=True))


def _numbers(matrix: Any) -> str:
    return "; ".join(", ".join(f"{value:.6g}" for value in row) for row in matrix)


def _complex(pole: tuple[float, float]) -> str:
    real, imaginary = pole
    return f"{real:.5g}" if imaginary == 0.0 else f"{real:.5g}{imaginary:+.5g}i"


def _value(number: float | None, unit: str, spec: str = ".2f") -> str:
    return "unlimited" if number is None else f"{number:{spec}}{unit}"
