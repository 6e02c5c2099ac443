"""Figures of simulations: links and flows against time, one run or several side by side; else totals by link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from netctrl.errors import InvalidValue
from netctrl.plotting.style import ShownFigure
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.result import Result
from netctrl.units import BITS_PER_BYTE

__all__ = ["result_figure", "time_series"]

_BLOCKS, _LINES, _BARS = 400, 12, 40


class _Panel(NamedTuple):
    """A quantity against time."""

    label: str
    dim: str
    needs: tuple[str, ...]
    """Quantities that it is computed from; drawn only where all were measured."""
    values: Callable[..., np.ndarray]
    """Function of blocks of these, each (blocks, samples in a block), and of a block's seconds: (blocks,)."""
    band: bool = False
    """Whether to draw the range of the samples of each block."""


def _mean(scale: float) -> Callable[..., np.ndarray]:
    return lambda values, _: (
        scale * np.array([row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan for row in values])
    )


def _rate(values: np.ndarray, seconds: float) -> np.ndarray:
    return values.sum(axis=1) * BITS_PER_BYTE / seconds / 1e6


def _percent(part: np.ndarray, whole: np.ndarray, _: float) -> np.ndarray:
    lost, arrived = part.sum(axis=1), whole.sum(axis=1)
    return 100.0 * np.divide(lost, arrived, out=np.zeros_like(lost), where=arrived > 0.0)


_PANELS = (
    _Panel("backlog [kB]", "link", ("backlog",), _mean(1e-3), band=True),
    _Panel("longest queue [kB]", "link", ("backlog_most",), _mean(1e-3), band=True),
    _Panel("throughput of links [Mbit/s]", "link", ("departed",), _rate),
    _Panel("throughput of flows [Mbit/s]", "flow", ("delivered",), _rate),
    _Panel("goodput of flows [Mbit/s]", "flow", ("payload",), _rate),
    _Panel("probability", "link", ("probability",), _mean(1.0)),
    _Panel("loss [%]", "link", ("lost", "arrived"), _percent),
    _Panel("loss [kB a sample]", "link", ("lost",), lambda values, _: values.mean(axis=1) / 1e3),
)
_INSTEAD = {
    "longest queue [kB]": "backlog [kB]",
    "throughput of flows [Mbit/s]": "goodput of flows [Mbit/s]",
    "loss [kB a sample]": "loss [%]",
}
"""Panel -> the one that is drawn in its place where both can be."""


def result_figure(result: Result, *, title: str = "") -> Figure:
    """`time_series` of one result."""
    return time_series({result.simulator: result}, title=title)


def time_series(results: Mapping[str, Result], *, title: str = "") -> Figure:
    """Queues, throughput of links and flows, probability and loss against time, with results by name side by side.

    Lines are means over a few hundredths of the whole; the queues' bands are from the smallest to the largest sample.
    Of many links and flows those with the largest queues and throughputs are drawn. Results without time series are
    drawn as bars of the links' loss and backlog.
    """
    if not results:
        raise InvalidValue("results", dict(results), "at least one result, by name")
    if not all(len(result.time_s) for result in results.values()):
        return _totals(results, title)
    shown = [panel for panel in _PANELS if any(_has(each.series, panel) for each in results.values())]
    names = {panel.label for panel in shown}
    shown = [panel for panel in shown if _INSTEAD.get(panel.label) not in names]
    figure = ShownFigure(figsize=(9.0, 2.1 * max(len(shown), 2)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    several = len(results) > 1
    for axes, panel in zip(panels, shown, strict=True):
        lines = 0
        for name, result in results.items():
            if _has(result.series, panel):
                lines += _draw(axes, panel, result, name if several else "")
        axes.set_ylabel(panel.label, fontsize=9)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
        if 1 < lines <= 2 * _LINES:
            for text in axes.legend(fontsize=8, ncols=4, loc="upper left").get_texts():
                text.set_parse_math(False)
    panels[-1].set_xlabel("time [s]")
    first = next(iter(results.values()))
    head = figure.suptitle(title or f"{first.scenario.name} ({', '.join(results)})", fontsize=11)
    head.set_parse_math(False)  # a scenario's name isn't a formula
    return figure


def _has(series: Labelled, panel: _Panel) -> bool:
    arrays = [
        series.values[name][1] for name in panel.needs if name in series and series.values[name][0][0] == panel.dim
    ]
    return len(arrays) == len(panel.needs) and all(np.isfinite(array).any() for array in arrays)


def _draw(axes: Any, panel: _Panel, result: Result, name: str) -> int:
    """Draw one panel's lines of a result; returns their number."""
    series, T = result.series, len(result.time_s)
    width = max(1, -(-T // _BLOCKS))
    count, seconds = T // width, width * float(result.time_s[0])
    t = seconds * (np.arange(count) + 0.5)
    arrays = [series[each] for each in panel.needs]
    ids = series.coords[panel.dim]
    rows = np.flatnonzero(np.isfinite(arrays[0]).any(axis=1))
    if len(rows) > _LINES:
        rows = np.sort(rows[np.argsort(-np.nanmean(arrays[0][rows], axis=1), kind="stable")[:_LINES]])
    for row in rows.tolist():
        blocks = [array[row, : count * width].reshape(count, width) for array in arrays]
        label = ids[row] if not name else name if len(ids) == 1 else f"{name}: {ids[row]}"
        (line,) = axes.plot(t, panel.values(*blocks, seconds), lw=1.2, label=label)
        if panel.band:
            low, high = (1e-3 * blocks[0].min(axis=1), 1e-3 * blocks[0].max(axis=1))
            axes.fill_between(t, low, high, color=line.get_color(), alpha=0.2, lw=0.0)
    return len(rows)


def _totals(results: Mapping[str, Result], title: str) -> Figure:
    """Bars of the links' loss and backlog; of many links those with the largest."""
    first = next(iter(results.values()))
    backlog = first.totals["backlog"].mean(axis=0)
    chosen = np.sort(np.argsort(-backlog, kind="stable")[:_BARS])
    figure = ShownFigure(figsize=(9.0, 1.4 + 0.22 * max(len(chosen), 4)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    place = np.arange(len(chosen))
    for number, (name, result) in enumerate(results.items()):
        figures = {"backlog [kB]": 1e-3 * result.totals["backlog"].mean(axis=0)}
        loss = [result["loss", of] if ("loss", of) in result.figures() else 0.0 for of in result.links]
        figures["loss [%]"] = 100.0 * np.array(loss)
        height = 0.8 / len(results)
        for axes, (what, values) in zip(panels, figures.items(), strict=True):
            axes.barh(place + height * number, values[chosen], height, label=name)
            axes.set_xlabel(what)
    for label in panels[0].set_yticks(place, [first.links[row] for row in chosen], fontsize=8):
        label.label1.set_parse_math(False)
    panels[0].invert_yaxis()
    panels[0].legend(fontsize=8)
    figure.suptitle(title or first.scenario.name, fontsize=11).set_parse_math(False)
    return figure
