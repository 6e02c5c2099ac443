"""Reports of simulations: one result, or a comparison of engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from netctrl.engines.compare import Compared, Comparison
from netctrl.model.io.arrays import plain
from netctrl.model.io.display import has_figure
from netctrl.model.io.provenance import Provenance
from netctrl.plotting.pages.html import Html, code, figure, folded, grid, rows_table, section
from netctrl.plotting.pages.origin import given, origin, read_lines
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
