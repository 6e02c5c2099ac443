"""Figures of simulations of one or more links under TCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from netctrl.errors import InvalidValue
from netctrl.plotting.style import ShownFigure
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.units import BITS_PER_BYTE

__all__ = ["result_series", "time_series"]


def result_series(result: SimulationResult, *, title: str = "") -> Figure:
    """`time_series` of one run."""
    return time_series({result.simulator: result}, title=title)


def time_series(results: Mapping[str, SimulationResult], *, title: str = "") -> Figure:
    """Backlog, throughput, probability and loss of each link against time, with results by name side by side.

    Lines are means over a few hundredths of the whole; the backlog's band is from its smallest to its largest sample.
    """
    if not results:
        raise InvalidValue("results", dict(results), "at least one result, by name")
    figure = ShownFigure(figsize=(9.0, 8.4), layout="constrained")
    panels = figure.subplots(4, 1, sharex=True)
    several = len(results) > 1
    for name, result in results.items():
        for row, link in enumerate(result.scenario.links):
            label = link.id if not several else name if len(result.scenario.links) == 1 else f"{name}: {link.id}"
            _draw_link(panels, result, row, label)
    for axes, what in zip(panels, ("backlog [kB]", "throughput [Mbit/s]", "probability", "loss [%]"), strict=True):
        axes.set_ylabel(what)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    panels[-1].set_xlabel("time [s]")
    if several or len(next(iter(results.values())).scenario.links) > 1:
        for text in panels[0].legend(fontsize=9, ncols=3, loc="upper left").get_texts():
            text.set_parse_math(False)
    first = next(iter(results.values()))
    shown = figure.suptitle(title or f"{first.scenario.name} ({', '.join(results)})", fontsize=11)
    shown.set_parse_math(False)  # a scenario's name isn't a formula
    return figure


def _draw_link(panels: Any, result: SimulationResult, row: int, label: str) -> None:
    width = max(1, -(-len(result.time_s) // 400))
    count = len(result.time_s) // width
    seconds = width * float(result.time_s[0])

    def blocks(series: np.ndarray) -> np.ndarray:
        return series[row, : count * width].reshape(count, width)

    t = seconds * (np.arange(count) + 0.5)
    q = blocks(result.backlog_bytes) / 1e3
    arrived, lost = (blocks(series).sum(axis=1) for series in (result.arrived_bytes, result.lost_bytes))
    (line,) = panels[0].plot(t, q.mean(axis=1), lw=1.2, label=label)
    panels[0].fill_between(t, q.min(axis=1), q.max(axis=1), color=line.get_color(), alpha=0.2, lw=0.0)
    panels[1].plot(t, blocks(result.departed_bytes).sum(axis=1) * BITS_PER_BYTE / seconds / 1e6, lw=1.2)
    panels[2].plot(t, blocks(result.probability).mean(axis=1), lw=1.2)
    panels[3].plot(t, 100.0 * np.divide(lost, arrived, out=np.zeros_like(lost), where=arrived > 0.0), lw=1.2)
