"""Tables of sweeps: figures of each run, and rows of text for the command line and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.scenario.figures import quantity_text
from netctrl.scenario.network.sweep import FIGURES, SweepSpec

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.scenario.result import Result


def sweep_table(requested: SweepSpec, summary: pd.DataFrame) -> tuple[str, list[tuple[str, str]]]:
    """Title, and one row per cell, from the table of `summarized`."""
    texts = [_text(row) for _, row in summary.iterrows()]
    rows = list(zip(cell_names(summary), texts, strict=True))
    return f"{requested.name}: {requested.runs} runs a cell, 95 % intervals", rows


def places(summary: pd.DataFrame) -> list[str]:
    """Paths in the scenario that vary."""
    columns = list(summary.columns)
    return columns[columns.index("grid") + 1 : columns.index("runs")]


def cell_names(summary: pd.DataFrame) -> list[str]:
    """Grid of each cell and its own values, as in "static, factor 1.05"."""
    names = places(summary)
    rows = [row for _, row in summary.iterrows()]
    given = [{name: row[name] for name in names if row[name] == row[name] and row[name] is not None} for row in rows]
    return [cell_name(row["grid"], values) for row, values in zip(rows, given, strict=True)]


def cell_name(label: str, values: dict[str, Any]) -> str:
    """A grid's label, and values with the last name of their path."""
    parts = [
        f"{place.rpartition('.')[2]} {value:g}" if isinstance(value, float) else f"{place.rpartition('.')[2]} {value}"
        for place, value in values.items()
    ]
    return ", ".join([label, *parts])


def is_routed(row: pd.Series) -> bool:
    """Whether a cell's scenario is under demands."""
    return "loss_ratio" in row and row["loss_ratio"] == row["loss_ratio"]


def figures_of(row: pd.Series) -> dict[str, str]:
    """Results of a cell that isn't under demands: "quantity of object" -> text."""
    names = [name for name in row.index if f"{name}_half_width" in row.index and row[name] == row[name]]
    found = {}
    for name in names:
        quantity, half = name.partition(" of ")[0], row[f"{name}_half_width"]
        width = f" ± {quantity_text(quantity, half, 2)}" if half == half and half is not None else ""
        found[name] = f"{quantity_text(quantity, row[name], 4)}{width}"
    return found


def percent(mean: float, half: float | None) -> str:
    """A share in percent with its interval."""
    return f"{100 * mean:.4g}" + (f" ± {100 * half:.2g}" if half == half and half is not None else "") + " %"


def kilobytes(mean: float, half: float | None) -> str:
    """A size in kB with its interval."""
    return f"{mean / 1e3:.4g}" + (f" ± {half / 1e3:.2g}" if half == half and half is not None else "") + " kB"


def _text(row: pd.Series) -> str:
    if is_routed(row):
        loss = percent(row["loss_ratio"], row["loss_ratio_half_width"])
        return f"loss {loss}, backlog {kilobytes(row['backlog_bytes'], row['backlog_bytes_half_width'])}"
    return ", ".join(f"{name} {text}" for name, text in figures_of(row).items())


def routed_figures(result: Result) -> dict[str, list[float | None]]:
    """Results of each run under demands, by the names in `netctrl.scenario.network.sweep.FIGURES`."""
    figures = result.figures()
    used = np.max([figures["utilization", link] for link in result.links], axis=0)
    columns = [figures.get((name, "network")) for name in ("loss", "backlog", "throughput")] + [
        used,
        figures.get(("cost", "network")),
    ]
    none = [None] * result.runs
    return {name: none if values is None else values.tolist() for name, values in zip(FIGURES, columns, strict=True)}
