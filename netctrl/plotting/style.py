"""Shared parts of figures: colours, a Figure that Jupyter shows, and the labels, grid and legend of a panel."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from netctrl.core.units import format_quantity

INK, ACCENT, SECOND, PALE = "#222222", "#1f4e9c", "#b45f06", "#dddddd"


class ShownFigure(Figure):
    """A Figure that Jupyter shows as a picture, also without pyplot's inline backend."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def canvas(width: float, height: float, title: str = "") -> ShownFigure:
    """An empty figure [inch] whose parts keep out of each other's way."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    if title:
        figure.suptitle(title, fontsize=11).set_parse_math(False)
    return figure


def finish(
    axes: Any,
    x: str = "",
    y: str = "",
    title: str = "",
    *,
    legend: int = 0,
    size: int = 10,
    grid: bool = True,
    **options: Any,
) -> None:
    """Labels, title, grid and legend of a panel, whose texts hold names that aren't formulas.

    Parameters
    ----------
    legend : int
        Size of the legend's font; 0: no legend.
    size : int
        Size of the title's font.
    **options
        Further options of the legend.
    """
    if x:
        axes.set_xlabel(x, parse_math=False)
    if y:
        axes.set_ylabel(y, parse_math=False)
    if title:
        axes.set_title(title, fontsize=size, parse_math=False)
    if grid:
        axes.grid(color=PALE, lw=0.6)
    if legend:
        for text in axes.legend(fontsize=legend, **options).get_texts():
            text.set_parse_math(False)


def decades(axis: Any, unit: str = "", steps: tuple[float, ...] = (1.0, 2.0, 5.0)) -> None:
    """Ticks of a logarithmic axis at these steps in each decade, in a unit with prefixes, or as plain numbers."""
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: format_quantity(float(f"{value:.3g}"), unit) if unit else f"{value:g}")
    )
    axis.set_minor_formatter(NullFormatter())
