"""A model predictive controller in words: its verdict, and its main results as (name, text) rows."""

from __future__ import annotations

from collections.abc import Sequence

from netctrl.core.units import format_quantity
from netctrl.model.design.base import ANSWERS
from netctrl.model.design.mpc import MpcCertificate, MpcInputs, MpcLaw
from netctrl.model.design.summary import pairs, span


def mpc_verdict(inputs: MpcInputs, proof: MpcCertificate) -> str:
    """Whether the loop holds, and for which references, disturbances and starts."""
    held = "proved" if proof.proved else "not proved"
    return f"Safe: {ANSWERS[proof.status]}; {held} within its bounds"


def mpc_summary(inputs: MpcInputs, law: MpcLaw, proof: MpcCertificate) -> tuple[str, list[tuple[str, str]]]:
    """Title and (name, text) rows: what is proved, margins, the program's size and a course's extremes."""
    other = law.problem.get("measured", ())
    moved = [name for place, name in enumerate(law.inputs) if place not in other]
    units = dict(zip((*law.inputs, *law.outputs), (*law.input_units, *law.output_units), strict=True))
    where = "" if law.link is None else f" of link {law.link}"
    title = (
        f"MPC: {', '.join(moved)}{where} for {', '.join(law.outputs)}, every {format_quantity(law.interval_s, 's')},"
        f" {law.problem['horizon']} samples ahead"
    )

    def unit(name: str) -> str:
        return units.get(name.removeprefix("change of "), "")

    def ranges(names: Sequence[str], values: Sequence[tuple[float, float]]) -> str:
        shown = zip(names, values, strict=True)
        return ", ".join(f"{name} {span(ends, '{:.4g}'.format)} {units.get(name, '')}".rstrip() for name, ends in shown)

    what = [ranges(law.outputs, inputs.reference)]
    if other:
        what.append(ranges([law.inputs[place] for place in other], inputs.disturbances))
    if any(high > low for low, high in inputs.unmeasured):
        what.append(f"{ranges([f'd{i + 1}' for i in range(len(inputs.unmeasured))], inputs.unmeasured)} not measured")
    rows = [("constant", "; ".join(what))]
    if proof.proved:
        rows.append(("proved", "all plans feasible, hard bounds met, settles: with model and state exact"))
        for each in proof.region:
            low, high = ("any" if end is None else f"{end:+.4g}" for end in (each.lowest, each.highest))
            rows.append(("  from", f"{each.name} off by {low} to {high} {unit(each.name.partition(' ')[0])}".rstrip()))
        for tube in proof.tubes:
            off = ", ".join(f"{name} {far:.3g} {unit(name)}".rstrip() for name, far in tube.off)
            most = f"{tube.most:.3g} {unit(tube.input)}".rstrip()
            rows.append(("  untold", f"to {most} on {tube.input} in each sample: off by at most {off}"))
        last = f"{proof.terminal_rows} rows, implied after {proof.terminal_steps} samples"
        rows.append(("  terminal set", last))
    steady = pairs(tuple(moved), proof.steady_input)
    most = "any" if proof.highest_gain is None else f"{proof.highest_gain:.3g}"
    later = "more than 100 samples" if proof.delay_margin_s is None else format_quantity(proof.delay_margin_s, "s")
    rows += [
        ("steady", f"{steady} in the middle"),
        ("spectral radius", f"{proof.spectral_radius:.6f} while no bound is active"),
        (
            "disk margin",
            f"{proof.disc_alpha:.3g}: gain {max(proof.lowest_gain, 0.0):.3g} to {most} times,"
            f" phase {proof.phase_deg:.1f}°   (rule: 0.667 or more)",
        ),
        ("delay margin", f"{later} later than the plant says"),
        ("offset", proof.offset or "none under constant disturbances"),
        ("program", f"{proof.variables} variables, {proof.rows} rows"),
    ]
    for each in proof.course:
        ends = f"{each.lowest:.4g} to {each.highest:.4g} {unit(each.name)}".rstrip()
        rows.append(("course", f"{each.name} {ends}; {each.last:.4g} at the end"))
    return title, rows
