"""Figure of a comparison of engines: difference of each engine from the first."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from netctrl.plotting.style import INK, ShownFigure

__all__ = ["comparison_figure", "shown_rows"]

_MOST = 40


def shown_rows(comparison: Any) -> list[Any]:
    """Rows of the quantities to draw: those with a difference, and of many those with the largest."""
    quantities: dict[tuple[str, str], list[Any]] = {}
    for row in comparison.rows:
        if row.difference is not None:
            quantities.setdefault((row.quantity, row.of), []).append(row)
    size = {key: max(abs(row.difference) for row in rows) for key, rows in quantities.items()}
    kept = set(sorted(size, key=lambda key: -size[key])[:_MOST])
    return [row for key, rows in quantities.items() if key in kept for row in rows]


def comparison_figure(comparison: Any) -> Figure:
    """Difference of each quantity's mean from the first engine's, with 95 % intervals; at most 40 quantities.

    Parameters
    ----------
    comparison : netctrl.engines.compare.Comparison
    """
    rows = shown_rows(comparison)
    names = list(dict.fromkeys((row.of, row.quantity) for row in rows))
    figure = ShownFigure(figsize=(6.4, 1.2 + 0.24 * max(len(names), 2)), layout="constrained")
    axes = figure.subplots()
    for number, engine in enumerate(comparison.engines[1:]):
        of = [row for row in rows if row.engine == engine]
        place = [names.index((row.of, row.quantity)) for row in of]
        percent = np.array([100.0 * row.difference for row in of])
        width = [100.0 * _relative_width(row) for row in of]
        axes.errorbar(percent, place, xerr=width, fmt="o", ms=5, lw=1.4, color=f"C{number % 10}", label=engine)
    axes.axvline(0.0, color=INK, lw=0.9)
    if rows and max(abs(row.difference) for row in rows) > 1.0:
        axes.set_xscale("symlog", linthresh=10.0)
    for label in axes.set_yticks(range(len(names)), [f"{of} {quantity}" for of, quantity in names], fontsize=8):
        label.label1.set_parse_math(False)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_xlabel(f"difference from {comparison.engines[0]} [%]")
    axes.grid(color="#dddddd", lw=0.6)
    if names:
        axes.legend(fontsize=8)
    figure.suptitle(comparison.table()[0], fontsize=11).set_parse_math(False)
    return figure


def _relative_width(row: Any) -> float:
    """Relative width of a row's interval, over the first engine's mean."""
    return abs((row.half_width or 0.0) * (1.0 + row.difference) / row.mean) if row.mean else 0.0
