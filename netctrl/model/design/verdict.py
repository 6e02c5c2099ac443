"""Verdict of each method in one sentence: whether the design holds for its inputs, and how far beyond them."""

from __future__ import annotations

from collections.abc import Callable

from netctrl.errors import Status
from netctrl.model.design.arc import ArcCertificate, ArcInputs
from netctrl.model.design.base import ANSWERS
from netctrl.model.design.connet import ConnetCertificate, ConnetInputs
from netctrl.model.design.hftrac import HftracCertificate, HftracInputs
from netctrl.model.design.mpcc import MpccCertificate, MpccInputs
from netctrl.model.design.pacing import PacingCertificate, PacingInputs
from netctrl.units import format_quantity

__all__ = [
    "arc_verdict",
    "connet_verdict",
    "hftrac_verdict",
    "mpcc_verdict",
    "pacing_verdict",
    "span",
]


def arc_verdict(inputs: ArcInputs, proof: ArcCertificate) -> str:
    """Whether the gain is safe for the requested flows and RTT, and how far beyond them."""
    requested = f"{span(inputs.flows, '{:g}'.format)} flows at {span(inputs.rtt_s, lambda s: format_quantity(s, 's'))}"
    if proof.status is Status.ADMISSIBLE and proof.reach is not None:
        reach = proof.reach
        ends = (
            f"; keeps its margins down to {reach.fewest_flows:.3g} flows or up to"
            f" {format_quantity(float(f'{reach.longest_rtt_s:.3g}'), 's')}"
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
    where = f"Safe for the {proof.links} links of {inputs.network.name or 'the network'}"
    if proof.unmet:
        demands = len(inputs.network.demands)
        return f"{where}: no, they carry {demands - len(proof.unmet)} of {demands} demands in full"
    where += f": {ANSWERS[proof.status]}"
    if proof.status is not Status.ADMISSIBLE:
        return where
    return f"{where}; costs at most {100.0 * proof.gap_to_bound:.2g} % more than the best {inputs.architecture} control"


def connet_verdict(inputs: ConnetInputs, proof: ConnetCertificate) -> str:
    """Whether the loop meets the design rule, and the range of plant gains for which it is stable."""
    answer = f"Safe for this model: {ANSWERS[proof.status]}"
    if proof.status is not Status.ADMISSIBLE:
        return answer
    most = "any" if proof.highest_gain is None else f"{proof.highest_gain:.3g}"
    return f"{answer}; stable from {max(proof.lowest_gain, 0.0):.3g} to {most} times the model's gain"


def mpcc_verdict(inputs: MpccInputs, proof: MpccCertificate) -> str:
    """Whether a standing queue stays stable, and for how many times the counted flows."""
    answer = f"Safe for {inputs.flows} flows at {format_quantity(inputs.rtt_s, 's')}: {ANSWERS[proof.status]}"
    if proof.status is not Status.ADMISSIBLE:
        return answer
    return f"{answer}; a standing queue swings only from {proof.gain_margin:.3g} times as many flows on"


def pacing_verdict(inputs: PacingInputs, proof: PacingCertificate) -> str:
    """Whether the rate settles, and for which buffer or number of flows."""
    flows = f"{inputs.flows} flow{'s' * (inputs.flows != 1)}"
    rtt, rate = format_quantity(inputs.rtt_s, "s"), format_quantity(inputs.bottleneck_bit_per_s, "bit/s")
    answer = f"Safe for {flows} at {rtt} and {rate}: {ANSWERS[proof.status]}"
    if proof.status is not Status.ADMISSIBLE or proof.most_flows is None:
        return answer
    return f"{answer}; this buffer holds the queue of up to {proof.most_flows} flows"


def span(ends: tuple[float, float], show: Callable[[float], str]) -> str:
    """A range as text; a single value where both ends are equal."""
    low, high = ends
    return show(low) if low == high else f"{show(low)} to {show(high)}"
