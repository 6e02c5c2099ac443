"""Report of an evaluation: trade-off of delay and utilization, tables by section, what isn't run and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from netctrl.core.errors import InvalidValue
from netctrl.evaluation.metrics import METRICS
from netctrl.evaluation.record import EvaluatedCase, EvaluatedSection, Evaluation, difference_text, measured_text
from netctrl.evaluation.run import SECTIONS
from netctrl.plotting.pages.html import Html, figure, folded, grid, notes, rows_table, section
from netctrl.plotting.pages.origin import origin
from netctrl.plotting.pages.page import Page
from netctrl.plotting.pages.svg import points_of
from netctrl.plotting.tradeoffs import TradeOff, tradeoffs_figure

_MAIN = {
    "utilization": "Used",
    "queueing delay": "Queueing delay",
    "queueing delay 95 %": "95 %",
    "loss": "Loss",
    "fairness": "Fairness",
    "goodput share": "Goodput share",
    "completion time": "Completion time",
    "delivered": "Delivered",
    "packets per round trip": "Packets a round trip",
    "over TCP's rate": "Over TCP's rate",
}
"""Metric in a section's first table -> its heading; the other metrics are folded."""

_VARIED = "8.3"
"""Section whose cases have other parameters, and the law itself as reference."""
_KINDS = {"aqm": "active queue management", "congestion control": "congestion control"}


def evaluation_page(found: Evaluation) -> Page:
    """Verdict, trade-off, a table for each section that was run, reasons for the others, and definitions."""
    return Page(
        kind=f"Evaluation by RFC {found.rfc}",
        title=f"{found.law.name}, {_KINDS[found.law.kind]}",
        verdict=found.verdict,
        mood="",
        sections=[
            section("Trade-off of delay and utilization", *_tradeoff(found)),
            section("Not run", _not_run(found)),
            section("What was run", rows_table("Law and runs", _setting(found))),
            *(_section(each) for each in found.sections if each.cases),
            section("Metrics", _metrics(found)),
            *origin(found.provenance, _lines(found)),
        ],
    )


def _named(found: Evaluation) -> Iterator[tuple[EvaluatedSection, EvaluatedCase]]:
    return ((each, case) for each in found.sections for case in each.cases if case.reason is None)


def evaluation_figure(found: Evaluation) -> Figure:
    """Delay and utilization of each case, and of its reference.

    Raises
    ------
    InvalidValue
        No case measured a delay.
    """
    cases, _ = _measured(found)
    if not cases:
        raise InvalidValue("plot", found.law.name, "an evaluation whose cases measure a delay and a utilization")
    return _drawn(found, cases)


def _drawn(found: Evaluation, cases: list[TradeOff]) -> Figure:
    names = {case.reference for each, case in _named(found) if case.reference and each.section != _VARIED}
    return tradeoffs_figure(cases, law=found.law.name, reference=", ".join(sorted(names)))


def _measured(found: Evaluation) -> tuple[list[TradeOff], list[str]]:
    """Each case that measured a delay, with its values as text."""
    cases: list[TradeOff] = []
    texts: list[str] = []
    for each, case in _named(found):
        if each.section == _VARIED:
            continue
        used, delay = case.measure("utilization"), case.measure("queueing delay")
        if used is None or delay is None or used.mean is None or not delay.mean:
            continue
        there = None
        if used.reference_mean is not None and delay.reference_mean:
            there = delay.reference_mean, used.reference_mean
        cases.append(TradeOff(delay.mean, delay.half_width or 0.0, used.mean, used.half_width or 0.0, there))
        values = f"queueing {measured_text(delay.metric, delay.mean, delay.half_width)}"
        values += f"\nused {measured_text(used.metric, used.mean, used.half_width)}"
        texts.append(f"{each.section} {case.name}\n{values}")
    return cases, texts


def _tradeoff(found: Evaluation) -> list[Html]:
    """The figure, with the values of each case; nothing where no delay was measured."""
    cases, texts = _measured(found)
    if not cases:
        return []
    drawn = _drawn(found, cases)
    points = [(case.delay_s, 100.0 * case.utilization, text) for case, text in zip(cases, texts, strict=True)]
    caption = "Each case once; lines lead from the reference. Point at a case for its values, or use the arrow keys."
    return [figure(drawn, "e", caption, points_of(drawn.axes[0], points))]


def _setting(found: Evaluation) -> list[tuple[str, str]]:
    law = found.law
    given = ", ".join(f"{name} {_plain(value)}" for name, value in law.parameters.items() if value is not None)
    rows = [("law", law.name), ("parameters", f"{given} (SI units)" if given else "none"), ("from", law.origin)]
    rows.append(("engine", found.engine))
    rows.append(("seeds", f"{len(found.seeds)}: {found.seeds[0]} to {found.seeds[-1]}, the same for the reference"))
    if found.time_factor != 1.0:
        rows.append(("times", f"{found.time_factor:g} of the list's (a quick evaluation)"))
    return rows


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _section(found: EvaluatedSection) -> Html:
    """The main metrics of each case in one table, all metrics folded."""
    run = [case for case in found.cases if case.reason is None]
    head = [title for metric, title in _MAIN.items() if any(case.measure(metric) is not None for case in run)]
    shown = [metric for metric, title in _MAIN.items() if title in head]
    references = sorted({case.reference for case in run if case.reference})
    against = f"Queueing against {' or '.join(references)}" if references else ""
    rows = [
        (case.name, *(_cell(case, metric) for metric in shown), *([_apart(case)] if against else [])) for case in run
    ]
    left = [(case.name, case.reason) for case in found.cases if case.reason is not None]
    several = [f"{case.name}: {case.note}" for case in run if case.note]
    return section(
        f"{found.section} {found.title}",
        grid("Means over seeds with 95 % intervals", ("Case", *head, *([against] if against else [])), rows),
        notes(several),
        rows_table("Cases that aren't run", left, ("Case", "Reason")),
        folded("All metrics, with paired differences from the reference", _all(run)) if run else Html(""),
    )


def _cell(case: EvaluatedCase, metric: str) -> str:
    found = case.measure(metric)
    return "" if found is None else measured_text(metric, found.mean, found.half_width)


def _apart(case: EvaluatedCase) -> str:
    found = case.measure("queueing delay")
    return "" if found is None else difference_text(found)


def _all(cases: list[EvaluatedCase]) -> Html:
    head = ("Case", "Metric", "Of", "Mean", "Reference", "Difference", "Beyond chance")
    rows = [
        (
            case.name,
            each.metric,
            each.of,
            measured_text(each.metric, each.mean, each.half_width),
            measured_text(each.metric, each.reference_mean),
            difference_text(each),
            "yes" if each.differs else "",
        )
        for case in cases
        for each in case.measures
    ]
    return grid("Difference: mean of value less the reference's at the same seed, with its 95 % interval", head, rows)


def _not_run(found: Evaluation) -> Html:
    rows = [(f"{each.section} {each.title}", each.reason) for each in found.sections if each.reason is not None]
    return rows_table("Sections that aren't run", rows, ("Section", "Reason"))


def _metrics(found: Evaluation) -> Html:
    used = dict.fromkeys(each.metric for _, case in _named(found) for each in case.measures)
    defined = {each.section: each.metrics for each in found.sections}
    rows = []
    for name in used:
        where = [number for number, metrics in defined.items() if name in metrics]
        rows.append((name, METRICS[name].what + (f" (Section {', '.join(where)})" if where else "")))
    return folded("Definitions", rows_table("What is measured", rows, ("Metric", "Definition"))) if rows else Html("")


def _lines(found: Evaluation) -> list[str]:
    """The evaluation in Python; empty where the law came with parameters or from a file."""
    if found.provenance.input_hashes or "given:" in found.law.origin:
        return []
    call = f"found = netctrl.evaluate({found.law.name!r}, engine={found.engine!r}, seeds={len(found.seeds)}"
    call += ", quick=True" if found.time_factor != 1.0 else ""
    run = tuple(each.section for each in found.sections)
    call += "" if run == SECTIONS[found.rfc] else f", only={list(run)}"
    return [f"{call}, n_jobs=-1)", 'found.report("report.html")']
