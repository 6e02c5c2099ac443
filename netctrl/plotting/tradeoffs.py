"""Trade-offs: delay against utilization in an evaluation, loss against backlog in a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from netctrl.plotting.style import ACCENT, INK, SECOND, canvas, decades, finish


class TradeOff(NamedTuple):
    """Queueing delay and utilization of a case."""

    delay_s: float
    """Mean queueing delay [s]."""
    delay_half_width_s: float
    """Half width of its interval, 0 for none [s]."""
    utilization: float
    """Share of the capacity."""
    utilization_half_width: float
    """Half width of its interval, 0 for none."""
    reference: tuple[float, float] | None
    """The reference's delay [s] and utilization; None: there is none."""


def tradeoffs_figure(cases: Sequence[TradeOff], *, law: str, reference: str) -> Figure:
    """Each case as a point with its intervals, and a line from the reference's point (RFC 7928, Section 2.7).

    Parameters
    ----------
    cases : sequence of TradeOff
        At least one, with delays above 0.
    law, reference : str
        Names in the legend; an empty reference for none.
    """
    figure = canvas(7.2, 4.8)
    axes = figure.subplots()
    for case in cases:
        if case.reference is not None:
            delay, used = case.reference
            axes.plot(
                [delay, case.delay_s], [100.0 * used, 100.0 * case.utilization], color="#cccccc", lw=0.9, zorder=1
            )
            axes.plot([delay], [100.0 * used], "s", color=SECOND, ms=4.5, zorder=2)
        axes.errorbar(
            case.delay_s,
            100.0 * case.utilization,
            xerr=min(case.delay_half_width_s, 0.99 * case.delay_s),
            yerr=100.0 * case.utilization_half_width,
            fmt="o",
            color=ACCENT,
            ms=5,
            lw=1.0,
            zorder=3,
        )
    entries = [Line2D([], [], color=ACCENT, marker="o", ls="", label=law)]
    if reference:
        entries.append(Line2D([], [], color=SECOND, marker="s", ls="", label=reference))
    axes.set_xscale("log")
    decades(axes.xaxis, "s")
    axes.tick_params(axis="x", labelrotation=30.0)
    labels = "mean queueing delay of the bottleneck", "utilization of the bottleneck [%]"
    finish(axes, *labels, legend=8, handles=entries, labelcolor=INK)
    return figure


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
    figure = canvas(7.2, 5.0, title)
    axes = figure.subplots()
    axes.step(front[:, 0], front[:, 1], where="post", color=INK, lw=0.9, ls="--", label="front")
    for number, (name, points) in enumerate(groups.items()):
        x, y, across, up = points.T
        fmt, color = _MARKERS[number % len(_MARKERS)], f"C{number % 10}"
        axes.errorbar(x, y, xerr=across, yerr=up, fmt=fmt, color=color, ms=5, lw=1.0, label=name)
    for scale, values in ((axes.set_xscale, 0), (axes.set_yscale, 1)):
        if _wide([points[:, values] for points in groups.values()]):
            scale("log")
    finish(axes, *labels, legend=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    return figure


def _wide(parts: Sequence[np.ndarray]) -> bool:
    """Whether all values are above 0 and the largest is many times the least."""
    values = np.concatenate(parts)
    return bool(values.min() > 0.0 and values.max() > 30.0 * values.min())
