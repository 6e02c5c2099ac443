"""What an operator should know of an ARC design: where it misses the rule, where the model fails, what to change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from netctrl.design._arc_box import (
    GAIN_MARGIN_DB,
    PHASE_MARGIN_DEG,
    ROUNDING,
    Rule,
    Sampled,
    rule_over_box,
    sampled_over_box,
)
from netctrl.fluid.equilibrium import tcp_equilibrium
from netctrl.fluid.linearize import arc_arrival_rate
from netctrl.frequency.margins import Margins, decibel
from netctrl.model.arc import ArcInputs

__all__ = ["warnings_about", "what_would_have_to_change"]

_SLACK = 1e-6  # dB and degrees; a gain set exactly to a bound isn't warned of


def warnings_about(
    alpha: float,
    rule: Rule,
    sampled: Sampled,
    found: Margins,
    sampled_stable: bool,
    inputs: ArcInputs,
) -> Iterator[str]:
    """Where the gain misses the rule, and where the model leaves its domain."""
    gain = alpha / inputs.epoch_s
    many, short = inputs.flows[1], inputs.rtt_s[0]
    where = f" at {rule.worst.flows:g} flows and {rule.worst.rtt_s:g} s" if not inputs.is_point else ""
    if not found.stable or (gain >= rule.limit and not inputs.is_point):
        yield f"unstable{where}: alpha/epoch {gain:.6g} is beyond the limit {rule.limit:.6g} of plant {inputs.plant}"
    if not sampled_stable:
        yield f"unstable: the sampled loop (plant {sampled.plant}) needs alpha < {sampled.limit:.6g}, got {alpha:.6g}"
    elif alpha > sampled.admissible * (1.0 + ROUNDING):
        yield (
            f"too little margin: the sampled loop (plant {sampled.plant}) keeps {decibel(sampled.limit / alpha):.3g} dB"
            f" only; alpha <= {sampled.admissible:.6g} keeps {GAIN_MARGIN_DB:g} dB"
        )
    tight = found.gain_margin_db < GAIN_MARGIN_DB - _SLACK or found.phase_margin_deg < PHASE_MARGIN_DEG[0] - _SLACK
    if found.stable and tight:
        yield (
            f"too little margin{where}: GM {found.gain_margin_db:.2f} dB, PM {found.phase_margin_deg:.2f}°;"
            f" alpha/epoch <= {rule.high:.6g} keeps 6 dB and 30°, here it is {gain:.6g}"
        )
    if gain < rule.low * (1.0 - ROUNDING):
        at = f" at {rule.slow.flows:g} flows and {rule.slow.rtt_s:g} s" if where else ""
        yield f"slow{at}: phase margin above 60°, admissible is alpha/epoch >= {rule.low:.6g}"
    rate = float(arc_arrival_rate(inputs.setting, inputs.plant))
    largest = tcp_equilibrium(many, short, rate)
    if largest.marking > 1.0:
        domain = short * rate / math.sqrt(2.0)
        yield (
            f"the model has left its domain: p0 = {largest.marking:.3g} > 1 at {many:g} flows and {short:g} s;"
            f" it holds up to {domain:.6g} flows there"
        )
    if largest.window < 2.0:
        yield (
            f"the model has left its domain: window w0 = {largest.window:.3g} < 2 packets"
            f" at {many:g} flows and {short:g} s"
        )
    if inputs.plant == "paper" and inputs.epoch_s > short:
        yield (
            f"epoch {inputs.epoch_s:g} s is longer than the RTT {short:g} s: the paper's plant (eq. 7) ignores the"
            f" sampling; trust the sampled loop"
        )
    if inputs.plant not in ("paper", sampled.plant):
        queue = "no queue stands" if sampled.plant == "noq" else "a queue stands"
        yield f"plant {inputs.plant} was asked for, but {queue} in this equilibrium: plant {sampled.plant} applies"


def what_would_have_to_change(rule: Rule, sampled: Sampled, inputs: ArcInputs) -> str:
    """One line for a design that is not admissible: what stands in the way, by number, and the nearest ways out."""
    remedy = "; --accept stable (accept='stable') takes the slower gain that keeps GM >= 6 dB and PM >= 30°"
    if rule.low > rule.high and not inputs.is_point:
        worst, slow = rule.worst, rule.slow
        return (
            f"no alpha is admissible over the whole box: {slow.flows:g} flows at {slow.rtt_s:g} s ask for alpha/epoch"
            f" >= {rule.low:.6g}, {worst.flows:g} flows at {worst.rtt_s:g} s allow <= {rule.high:.6g};"
            f" {_narrower_box(inputs)}{remedy}"
        )
    if rule.low > rule.high:
        return (
            f"no alpha is admissible: the phase margin asks for alpha/epoch >= {rule.low:.6g}, the {rule.band.binding}"
            f" for <= {rule.high:.6g}; shorten the epoch or serve more flows{remedy}"
        )
    return (
        f"no alpha is admissible: the sampled loop (plant {sampled.plant}, epoch {inputs.epoch_s:g} s) keeps"
        f" {GAIN_MARGIN_DB:g} dB only up to alpha {sampled.admissible:.6g}, the phase margin asks for at least"
        f" {rule.low * inputs.epoch_s:.6g}; {_shorter_epoch(inputs)}{remedy}"
    )


def _narrower_box(inputs: ArcInputs) -> str:
    """How far each side may reach from (fewest flows, longest RTT) with the other side shrunk to that corner."""
    (few, many), (short, long) = inputs.flows, inputs.rtt_s
    corner = replace(inputs, flows=(few, few), rtt_s=(long, long))
    # Fewer flows and longer RTTs are harder for the sampled loop too, so the corner's limit serves both.
    most_gain = sampled_over_box(corner).admissible / inputs.epoch_s

    def admits(flows: tuple[float, float], rtt_s: tuple[float, float]) -> bool:
        rule = rule_over_box(replace(inputs, flows=flows, rtt_s=rtt_s))
        return rule.low <= min(rule.high, most_gain)

    if not admits((few, few), (long, long)):
        return f"no box with {few:g} flows at {long:g} s does: {_shorter_epoch(corner)}"
    most = _last(few, many, lambda flows: admits((few, flows), (long, long)))
    least = _last(long, short, lambda rtt: admits((few, few), (rtt, long)))
    most, least = max(few, _round(most, math.floor)), min(long, _round(least, math.ceil))
    return f"narrow the box, as to --N {few:g}:{most:g} --rtt {long:g}s, or --N {few:g} --rtt {least:g}s:{long:g}s"


def _shorter_epoch(inputs: ArcInputs) -> str:
    def admits(epoch: float) -> bool:
        asked = replace(inputs, epoch_s=epoch)
        return rule_over_box(asked).low * epoch <= sampled_over_box(asked).admissible

    shortest = inputs.epoch_s
    while shortest > inputs.rtt_s[1] / 100.0:
        shortest /= 2.0
        if admits(shortest):
            longest = _round(_last(shortest, inputs.epoch_s, admits), math.floor)
            return f"shorten the epoch to at most {longest:g} s"
    return "serve more flows or a shorter round-trip time"


def _last(good: float, bad: float, holds: Callable[[float], bool]) -> float:
    """The last value from `good` towards `bad` at which `holds`, to four digits on the good side."""
    if holds(bad):
        return bad
    while abs(bad - good) > 1e-4 * good:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _round(value: float, whole: Callable[[float], int]) -> float:
    """Three significant digits, rounded by `whole` (down or up), so that what held still holds."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return whole(value / step * (1.0 - 1e-12 if whole is math.ceil else 1.0 + 1e-12)) * step
