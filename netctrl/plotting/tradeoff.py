"""Figure of two costs against each other: points and their Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from netctrl.plotting.style import INK, ShownFigure

__all__ = ["tradeoff_figure"]

_MARKERS = "osD^v<>P*"


def tradeoff_figure(
    groups: Mapping[str, np.ndarray], front: np.ndarray, *, labels: tuple[str, str], title: str = ""
) -> Figure:
    """Points by group, and the front among them.

    Parameters
    ----------
    groups : mapping
        Name -> (n, 4): x, y, and the half widths of their intervals, 0 for none.
    front : ndarray, shape (k, 2)
        Points of the front, in order of x.
    labels : (str, str)
        Labels of the axes, with units.
    """
    figure = ShownFigure(figsize=(7.2, 5.0), layout="constrained")
    axes = figure.subplots()
    axes.step(front[:, 0], front[:, 1], where="post", color=INK, lw=0.9, ls="--", label="front")
    for number, (name, points) in enumerate(groups.items()):
        x, y, across, up = points.T
        fmt, color = _MARKERS[number % len(_MARKERS)], f"C{number % 10}"
        axes.errorbar(x, y, xerr=across, yerr=up, fmt=fmt, color=color, ms=5, lw=1.0, label=name)
    for scale, values in ((axes.set_xscale, 0), (axes.set_yscale, 1)):
        if _wide([points[:, values] for points in groups.values()]):
            scale("log")
    axes.set_xlabel(labels[0], parse_math=False)
    axes.set_ylabel(labels[1], parse_math=False)
    axes.grid(color="#dddddd", lw=0.6)
    legend = axes.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    figure.suptitle(title, fontsize=11).set_parse_math(False)
    return figure


def _wide(parts: Sequence[np.ndarray]) -> bool:
    """Whether all values are above 0 and the largest is many times the least."""
    values = np.concatenate(parts)
    return bool(values.min() > 0.0 and values.max() > 30.0 * values.min())
