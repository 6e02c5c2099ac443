"""Reports of runs: one result, a comparison of engines, or a network's cases of failures and growth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from netctrl.core.units import format_quantity
from netctrl.engines.compare import Compared, Comparison
from netctrl.engines.what_if.record import CASE_COLUMNS, WhatIf, WhatIfDetail, case_name, case_row, case_text
from netctrl.model.io.arrays import plain
from netctrl.model.io.display import has_figure
from netctrl.model.io.provenance import Provenance
from netctrl.plotting.maps import what_if_figure
from netctrl.plotting.pages.html import Html, code, figure, folded, grid, notes, paragraph, rows_table, section
from netctrl.plotting.pages.origin import changed, given, origin, read_lines
from netctrl.plotting.pages.page import Page
from netctrl.plotting.pages.svg import points_of
from netctrl.plotting.simulations import comparison_figure, shown_rows
from netctrl.scenario.figures import quantity_text

_Measures = Mapping[tuple[str, str], float]
_LONG = 30
_MAX_SCENARIO = 100_000
_MORE = ("--reference", "--measured", "--governor")
"""Options of the command line that take more than one line of Python."""


def comparison_page(comparison: Comparison) -> Page:
    """Report of a comparison of engines: differences, figure, table."""
    title, _ = comparison.table()
    rows = shown_rows(comparison)
    drawn = None
    if rows:
        chart = comparison_figure(comparison)
        names = list(dict.fromkeys((row.of, row.quantity) for row in rows))
        points = [(100.0 * row.difference, float(names.index((row.of, row.quantity))), _point(row)) for row in rows]
        caption = f"Difference from {comparison.engines[0]}, of many quantities the 40 largest; point at it for values."
        drawn = figure(chart, "f", caption, points_of(chart.axes[0], points))
    call = f"netctrl.compare({{}}, {list(comparison.engines)}, seeds={len(comparison.seeds)})"
    return Page(
        kind="Engines side by side",
        title=title,
        verdict=comparison.verdict,
        mood="",
        sections=[
            section("Figure", *([] if drawn is None else [drawn])),
            section("Table", _compared(comparison)),
            _scenario(comparison.scenario),
            *origin(comparison.provenance, _lines(comparison.provenance, comparison.scenario, "comparison", call)),
        ],
    )


def result_page(result: Any) -> Page:
    """Report of one result: summary, figure if its kind has one, links and flows."""
    title, rows = result.table()
    made, runs = result.provenance, getattr(result, "runs", 1)
    drawn = [figure(result.plot(), "f")] if has_figure(result) else []
    engine = given(made, "--engine")
    call = f"netctrl.simulate({{}}{f', {engine!r}' if engine else ''}{f', runs={runs}' if runs > 1 else ''})"
    links, flows = _by_links(result)
    return Page(
        kind="Simulation",
        title=title,
        verdict=result.verdict,
        mood="",
        sections=[
            section("Summary", rows_table("After the warm-up", rows)),
            section("Figure", *drawn),
            section("Links", _measured("Link", links)),
            section("Flows", _measured("Flow", flows)),
            _scenario(result.scenario),
            *origin(made, _lines(made, result.scenario, "result", call)),
        ],
    )


def what_if_page(answer: WhatIf) -> Page:
    """Report of what-if cases: a map of the worst one, a table of the worst ones, each of these by link and demand."""
    made, called = answer.provenance, []
    lines = read_lines(made)
    if len(lines) == 1 and given(made, "--over") is None and not changed(made):
        fail = given(made, "--fail") or "each-link"
        scales = list(dict.fromkeys(case.scale for case in answer.cases))
        call = f"fail={None if fail == 'none' else fail!r}, scale={scales}, reroute={answer.reroute!r}"
        call += f", metric={answer.metric!r}, top={len(answer.details)}"
        called = [f"answer = what_if({next(iter(lines.values()))}, {call})", 'answer.report("report.html")']
    imports = ["from netctrl.engines.what_if.run import what_if"] if called else []
    shown = f"The worst {len(answer.details)} of {len(answer.cases)} cases"
    return Page(
        kind="What if",
        title=answer.network.name,
        verdict=answer.headline,
        mood="",
        sections=[
            section("Map of the worst case", *([figure(what_if_figure(answer), "m")] if answer.details else [])),
            section("Cases", grid(shown, CASE_COLUMNS, [case_row(each.case) for each in answer.details])),
            section("By link and demand", *(_case(each) for each in answer.details)),
            section("Notes", notes(answer.notes)),
            *origin(made, called, imports=imports),
        ],
    )


def _case(detail: WhatIfDetail) -> Html:
    """The busiest links and the demands that lose most, folded."""
    links = [
        (each.link, _rate(each.rate_bit_per_s), f"{each.utilization:.1%}", _rate(each.lost_bit_per_s))
        for each in detail.links[:_LONG]
    ]
    demands = [
        (
            each.demand,
            _rate(each.mean_bit_per_s),
            _rate(each.delivered_bit_per_s),
            f"{each.loss:.2%}",
            "" if each.delay_s is None else format_quantity(each.delay_s, "s", 3),
        )
        for each in detail.demands[:_LONG]
    ]
    return folded(
        case_name(detail.case),
        paragraph(case_text(detail.case)),
        grid(f"Busiest of {len(detail.links)} links", ("Link", "Sends", "Utilization", "Loses"), links),
        grid(f"Worst of {len(detail.demands)} demands", ("Demand", "Offered", "Delivered", "Loss", "Delay"), demands),
    )


def _rate(rate: float) -> str:
    return format_quantity(rate, "bit/s", 4) if rate else ""


def _point(row: Compared) -> str:
    return f"{row.of} {row.quantity}\n{row.engine}: {row.estimate}\n{row.apart}"


def _compared(comparison: Comparison) -> Html:
    """A table with one row per quantity and one column per engine."""
    first, *others = comparison.engines
    count = len(comparison.engines)
    rows = []
    for place in range(0, len(comparison.rows), count):
        found = comparison.rows[place : place + count]
        cells = [row.estimate + _apart(row) for row in found]
        rows.append((f"{found[0].of} {found[0].quantity}", *cells))
    caption = f"Means after the warm-up, 95 % intervals, differences from {first}"
    return grid(caption, ("Quantity", first, *others), rows)


def _apart(row: Compared) -> str:
    return f" ({row.apart})" if row.apart else ""


def _by_links(result: Any) -> tuple[_Measures, _Measures]:
    """The measures of links, and all others."""
    ids, found = set(result.links), result.measures()
    links = {key: value for key, value in found.items() if key[1] in ids}
    return links, {key: value for key, value in found.items() if key not in links}


def _measured(what: str, measures: _Measures) -> Html:
    """A table with one row per link or flow and one column per quantity; long tables are folded."""
    quantities = list(dict.fromkeys(quantity for quantity, _ in measures))
    names = list(dict.fromkeys(of for _, of in measures))
    rows = [(of, *(_value(measures, quantity, of) for quantity in quantities)) for of in names]
    table = grid("Means after the warm-up", (what, *quantities), rows)
    return table if len(rows) <= _LONG else folded(f"All {len(rows)}", table)


def _value(measures: _Measures, quantity: str, of: str) -> str:
    value = measures.get((quantity, of), float("nan"))
    return "" if value != value else quantity_text(quantity, value, 4)


def _scenario(scenario: Any) -> Html:
    """The whole scenario as JSON, unless it is very long."""
    text = msgspec.json.format(msgspec.json.encode(scenario, enc_hook=plain), indent=2).decode()
    if len(text) > _MAX_SCENARIO:
        return Html("")
    return section("Scenario", folded("The whole scenario, with defaults", code(text, "The scenario as JSON")))


def _lines(made: Provenance, scenario: Any, name: str, call: str) -> list[str]:
    """The run in Python; empty where the files are unknown or options would need more lines."""
    files = read_lines(made)
    seed = given(made, "--seed")
    if not files or set(_MORE) & set(made.argv) or (seed is not None and ".toml" not in files):
        return []
    lines, first = [], "design"
    if ".toml" in files:
        lines.append(f"scenario = {files['.toml']}{'' if seed is None else f'.replace(seed={scenario.seed})'}")
        first = "scenario"
    if ".json" in files:
        lines.append(f"design = {files['.json']}")
        call = call if first == "design" else f"{call[:-1]}, design=design)"
    return [*lines, f"{name} = {call.format(first)}", f'{name}.report("report.html")']
