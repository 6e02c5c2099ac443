"""Figures of simulations: time series and totals, data centres, engines side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.plotting.style import INK, canvas, finish
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.result import Result
from netctrl.scenario.transfers import SIZE_BINS, queue_shares, slow_downs

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
    """`slow_down_figure` of one result whose transfers have ideal times, `time_series` of others."""
    draw = slow_down_figure if "ideal" in result.transfers else time_series
    return draw({result.simulator: result}, title=title)


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
    first = next(iter(results.values()))
    figure = canvas(9.0, 2.1 * max(len(shown), 2), title or f"{first.scenario.name} ({', '.join(results)})")
    panels = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    several = len(results) > 1
    for axes, panel in zip(panels, shown, strict=True):
        lines = 0
        for name, result in results.items():
            if _has(result.series, panel):
                lines += _draw(axes, panel, result, name if several else "")
        axes.set_ylabel(panel.label, fontsize=9)
        axes.set_ylim(bottom=0.0)
        finish(axes, legend=8 if 1 < lines <= 2 * _LINES else 0, ncols=4, loc="upper left")
    panels[-1].set_xlabel("time [s]")
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
    figure = canvas(9.0, 1.4 + 0.22 * max(len(chosen), 4), title or first.scenario.name)
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
    return figure


def slow_down_figure(results: Mapping[str, Result], *, title: str = "") -> Figure:
    """Data centres side by side: slow-down against flow size (median and 95 %), and lengths of switch queues.

    If a result has watched ports, their queues against time are drawn too.
    """
    watched = [name for name, result in results.items() if "backlog" in result.series]
    name = next(iter(results.values())).scenario.name
    figure = canvas(5.0 * (2 + bool(watched)), 4.4, title or name)
    panels = figure.subplots(1, 2 + bool(watched))
    for place, (name, result) in enumerate(results.items()):
        colour = f"C{place % 10}"
        found = {
            min(edges[1], SIZE_BINS[-2] * 3.0): slow_downs(result.transfers, *edges) for edges in pairwise(SIZE_BINS)
        }
        size = [high / 1e3 for high, rows in found.items() if rows]
        for quantity, style, width, label in (("median", "o-", 1.2, name), ("95 %", "o--", 1.0, None)):
            values = [rows[f"slow-down {quantity}"] for rows in found.values() if rows]
            panels[0].plot(size, values, style, ms=3, lw=width, color=colour, label=label)
        queue, share = queue_shares(result.tables["queues"])
        panels[1].step(queue / 1e3, share, where="post", lw=1.2, color=colour, label=name)
        if name in watched:
            for port, values in zip(result.series.coords["link"], result.series["backlog"], strict=True):
                panels[2].plot(1e3 * result.time_s, values / 1e3, lw=1.0, label=f"{name}, {port}")
    panels[0].set(xlabel="flows up to [kB]", ylabel="slow-down: median, 95 % dashed")
    if any(np.isfinite(result.transfers["duration"]).any() for result in results.values()):
        panels[0].set(xscale="log", yscale="log")
    panels[1].set(xlabel="queue of a switch port [kB]", ylabel="share of samples")
    if watched:
        panels[2].set(xlabel="time [ms]", ylabel="queue [kB]")
    for axes in panels:
        finish(axes, legend=8 if axes.get_legend_handles_labels()[0] else 0)
    return figure


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
    figure = canvas(6.4, 1.2 + 0.24 * max(len(names), 2), comparison.table()[0])
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
    finish(axes, f"difference from {comparison.engines[0]} [%]", legend=8 if names else 0)
    return figure


def _relative_width(row: Any) -> float:
    """Relative width of a row's interval, over the first engine's mean."""
    return abs((row.half_width or 0.0) * (1.0 + row.difference) / row.mean) if row.mean else 0.0
