"""Report of a sweep: best cells, front of loss and backlog, one row per cell."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from netctrl.engines.sweep import summarized
from netctrl.engines.sweep_table import cell_names, figures_of, is_routed, kilobytes, percent
from netctrl.model.io.provenance import provenance
from netctrl.plotting.pages.html import Html, figure, grid, section
from netctrl.plotting.pages.origin import given, origin, read_lines
from netctrl.plotting.pages.page import Page
from netctrl.plotting.pages.svg import points_of
from netctrl.plotting.tradeoffs import tradeoff_figure
from netctrl.scenario.figures import estimate_text, quantity_text
from netctrl.scenario.network.sweep import SweepSpec
from netctrl.sim.network.tune import pareto_front

if TYPE_CHECKING:
    import pandas as pd

# Measures of backlog and of loss; the first that exists is used. More throughput counts as less loss.
_WAITING = ("backlog_bytes", "backlog of ", "queue mean of ", "one-way delay of ", "delay of ", "rtt of ")
_LOSING = ("loss_ratio", "loss of ", "throughput of ")
_ROUTED = {"backlog_bytes": "backlog", "loss_ratio": "loss"}


class _Cost(NamedTuple):
    """A column whose smallest (or largest) value is the best."""

    column: str
    name: str
    """Display name."""
    quantity: str
    sign: float
    """−1: more is better."""


def sweep_page(spec: SweepSpec, frame: pd.DataFrame, *, argv: Iterable[str] = (), inputs: Iterable[Path] = ()) -> Page:
    """Report of the table of `netctrl.sweep(spec)`; `.save(path)` writes it.

    Parameters
    ----------
    spec : SweepSpec
    frame : DataFrame
        Table of all runs.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.
    """
    summary = summarized(frame)
    names = cell_names(summary)
    made = provenance(argv=argv, inputs=inputs, libraries=("numpy", "numba", "pandas"))
    costs = _cost(summary, _WAITING), _cost(summary, _LOSING)
    verdict, drawn = f"{len(names)} cells of {spec.runs} runs each.", []
    if costs[0] is not None and costs[1] is not None:
        verdict, front = _front(spec, summary, names, costs[0], costs[1])
        drawn = [front]
    engine = given(made, "--engine")
    call = f"netctrl.sweep(spec, n_jobs=-1{'' if engine is None else f', engine={engine!r}'})"
    lines = [f"spec = {read_lines(made).get('.toml')}", f"frame = {call}"]
    lines.append('sweep_page(spec, frame).save("report.html")')
    return Page(
        kind="Sweep",
        title=f"{spec.name}: {len(names)} cells, {spec.runs} runs each",
        verdict=verdict,
        mood="",
        sections=[
            section("Trade-off", *drawn),
            section("Table", _table(summary, names)),
            *origin(
                made,
                lines if made.input_hashes else [],
                imports=["from netctrl.plotting.pages.sweeps import sweep_page"],
                more={"SHA-256 of all that results depend on": spec.digest()},
            ),
        ],
    )


def _cost(summary: pd.DataFrame, known: tuple[str, ...]) -> _Cost | None:
    """The first known column with a number in each cell; None without one."""
    for start in known:
        for column in summary.columns:
            whole = column == start or (start.endswith(" ") and column.startswith(start))
            if whole and not column.endswith("_half_width") and summary[column].notna().all():
                name = _ROUTED.get(column, column)
                return _Cost(column, name, name.partition(" of ")[0], -1.0 if start.startswith("throughput") else 1.0)
    return None


def _front(spec: SweepSpec, summary: pd.DataFrame, names: list[str], x: _Cost, y: _Cost) -> tuple[str, Html]:
    """The verdict, and the figure with its values."""
    values = {cost: summary[cost.column].to_numpy(dtype=float) for cost in (x, y)}
    front = pareto_front(y.sign * values[y], x.sign * values[x])
    scales = {cost: _scale(cost, values[cost]) for cost in (x, y)}
    points = np.column_stack([_scaled(summary, cost, scales[cost][0]) for cost in (x, y)])[:, [0, 2, 1, 3]]
    groups = {label: points[(summary["grid"] == label).to_numpy()] for label in dict.fromkeys(summary["grid"])}
    labels = f"{x.name} [{scales[x][1]}]", f"{y.name} [{scales[y][1]}]"
    line = points[front][np.argsort(points[front][:, 0])][:, :2]
    chart = tradeoff_figure(groups, line, labels=labels, title=spec.name)
    texts = [
        f"{name}\n{x.name} {_text(row, x)}\n{y.name} {_text(row, y)}" + ("\non the front" if number in front else "")
        for number, (name, (_, row)) in enumerate(zip(names, summary.iterrows(), strict=True))
    ]
    order = np.lexsort((points[:, 1], points[:, 0]))
    hover = points_of(chart.axes[0], [(float(points[i, 0]), float(points[i, 1]), texts[i]) for i in order])
    best, least = int(front[0]), int(front[-1])
    word = "most" if y.sign < 0.0 else "least"
    verdict = (
        f"{word.capitalize()} {y.name}: {names[best]} ({_text(summary.iloc[best], y)});"
        f" least {x.name}: {names[least]} ({_text(summary.iloc[least], x)})."
        f" {len(front)} of {len(names)} cells are on the front: no other is as good in both and better in one."
    )
    return verdict, figure(chart, "f", "Point at a cell for its values; the arrow keys go through them.", hover)


def _scale(cost: _Cost, values: np.ndarray) -> tuple[float, str]:
    """SI prefix and unit of the axis."""
    number, _, unit = quantity_text(cost.quantity, float(np.abs(values).max()), 6).partition(" ")
    return (float(np.abs(values).max()) / float(number) if float(number) else 1.0), unit or "1"


def _scaled(summary: pd.DataFrame, cost: _Cost, scale: float) -> np.ndarray:
    """(n, 2): values and half widths."""
    half = summary[f"{cost.column}_half_width"].to_numpy(dtype=float)
    return np.column_stack([summary[cost.column].to_numpy(dtype=float), np.nan_to_num(half)]) / scale


def _text(row: pd.Series, cost: _Cost) -> str:
    return estimate_text(cost.quantity, row[cost.column], row[f"{cost.column}_half_width"])


def _table(summary: pd.DataFrame, names: list[str]) -> Html:
    """A table with one row per cell."""
    caption = "Means over the runs of a cell, with 95 % intervals"
    cells = [_cells(row) for _, row in summary.iterrows()]
    head = list(dict.fromkeys(name for each in cells for name in each))
    rows = [(name, *(each.get(column, "") for column in head)) for name, each in zip(names, cells, strict=True)]
    return grid(caption, ("Cell", *head), rows)


def _cells(row: pd.Series) -> dict[str, str]:
    if not is_routed(row):
        return figures_of(row)
    return {
        "loss": percent(row["loss_ratio"], row["loss_ratio_half_width"]),
        "backlog": kilobytes(row["backlog_bytes"], row["backlog_bytes_half_width"]),
        "throughput": quantity_text("throughput", row["throughput_bit_per_s"], 4),
        "busiest link": quantity_text("utilization", row["max_link_utilization"], 4),
    }
