"""Figures of data centres: slow-down by flow size, queues of switch ports."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from netctrl.plotting.style import ShownFigure
from netctrl.scenario.fabric.result import SIZE_BINS, FabricResult

__all__ = ["fabric_figure", "fabric_result"]


def fabric_result(result: FabricResult, *, title: str = "") -> Figure:
    """`fabric_figure` of one run."""
    return fabric_figure({result.summary().scheme: result}, title=title)


def fabric_figure(results: Mapping[str, FabricResult], *, title: str = "") -> Figure:
    """Data centres side by side: slow-down against flow size (median and 95 %), and lengths of switch queues.

    If a result has watched ports, their queues against time are drawn too.
    """
    watched = [name for name, result in results.items() if result.queue_bytes.size]
    figure = ShownFigure(figsize=(5.0 * (2 + bool(watched)), 4.4), layout="constrained")
    panels = figure.subplots(1, 2 + bool(watched))
    for place, (name, result) in enumerate(results.items()):
        colour = f"C{place % 10}"
        rows = result.slow_down_by_size()
        size = [min(each.high, SIZE_BINS[-2] * 3.0) / 1e3 for each in rows]
        panels[0].plot(size, [each.median for each in rows], "o-", ms=3, lw=1.2, color=colour, label=name)
        panels[0].plot(size, [each.percentile_95 for each in rows], "o--", ms=3, lw=1.0, color=colour)
        queue, share = result.queue_cdf()
        panels[1].step(queue / 1e3, share, where="post", lw=1.2, color=colour, label=name)
        if name in watched:
            t = 1e3 * result.scenario.interval * np.arange(result.queue_bytes.shape[1])
            for port, values in zip(result.scenario.watch.ports, result.queue_bytes, strict=True):
                panels[2].plot(t, values / 1e3, lw=1.0, label=f"{name}, {port}")
    panels[0].set(xlabel="flows up to [kB]", ylabel="slow-down: median, 95 % dashed")
    if any(result.done.any() for result in results.values()):
        panels[0].set(xscale="log", yscale="log")
    panels[1].set(xlabel="queue of a switch port [kB]", ylabel="share of samples")
    if watched:
        panels[2].set(xlabel="time [ms]", ylabel="queue [kB]")
    for axes in panels:
        axes.grid(color="#dddddd", lw=0.6)
        if axes.get_legend_handles_labels()[0]:
            for text in axes.legend(fontsize=8).get_texts():
                text.set_parse_math(False)
    figure.suptitle(title or next(iter(results.values())).scenario.name, fontsize=11).set_parse_math(False)
    return figure
