"""Figures of loops and their margins: Bode plots and stability maps."""

from __future__ import annotations

from itertools import cycle
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from netctrl.frequency.loop import phase_lag, response
from netctrl.frequency.margins import margins
from netctrl.frequency.records import Margins
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.design.design import ArcDesign
from netctrl.model.loop import DelayLoop
from netctrl.plants.tcp_response import arc_response
from netctrl.plotting.style import ACCENT, INK, SECOND, canvas, decades, finish

# In the order of StabilityMap.classes; red and blue, which all eyes tell apart.
_CLASSES = (
    ("no equilibrium: p0 > 1", "#8c8c8c"),
    ("unstable", "#c0504d"),
    ("stable, GM < 6 dB or PM < 30°", "#f6b26b"),
    ("margins kept: needs a simulation", "#cfe2f3"),
    ("admissible", "#6fa8dc"),
)
CLASS_NAMES = tuple(name for name, _ in _CLASSES)
"""Descriptions of `StabilityMap.classes`."""

_Shapes = dict[str, dict[str, Any]]  # marker -> its style
# Points of the ARC paper's design (section IV) and of its check of eq. (9): flows, RTT [s].
_PAPER_POINTS = {"paper's design point": (50.0, 0.5), "paper's fragile point": (10.0, 2.0)}


def bode(loop: DelayLoop, *, title: str = "") -> Figure:
    """Magnitude [dB] and unwrapped phase [degrees] of an open loop, with both margins drawn and labelled."""
    figure = canvas(6.4, 5.4, title)
    above, below = figure.subplots(2, 1, sharex=True)
    _draw_bode(above, below, loop)
    return figure


def stability_map(map_: StabilityMap, *, marks: dict[str, tuple[float, float]] | None = None) -> Figure:
    """Map of the classes of a StabilityMap; `marks` names further points (flows, RTT in seconds)."""
    figure = canvas(6.4, 5.4)
    axes = figure.subplots()
    _legend(axes, _draw_map(axes, map_, marks or {}))
    return figure


def arc_figure(design: ArcDesign, map_: StabilityMap) -> Figure:
    """Bode plot and stability map of an ARC design side by side, as written by `--plot`."""
    figure = canvas(12.0, 5.6)
    figure.suptitle(_title(design), fontsize=12)
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.0, 1.05)))
    above, below = left.subplots(2, 1, sharex=True)
    _draw_sampled(above, below, design)
    axes = right.subplots()
    point = design.certificate.operating_point
    entries = _draw_map(axes, map_, {"this design": (point.flows, point.rtt_s)})
    box = design.certificate.box
    if box is not None:
        (few, many), (short, long) = design.inputs.flows, design.inputs.rtt_s
        axes.plot([few, many, many, few, few], [short, short, long, long, short], color=INK, lw=1.6)
        entries["the requested box"] = Line2D([], [], color=INK, lw=1.6)
    _legend(axes, entries)
    return figure


def arc_bode(design: ArcDesign) -> Figure:
    """Bode plot of the sampled loop that decides an ARC design."""
    figure = canvas(6.4, 5.4, _title(design))
    above, below = figure.subplots(2, 1, sharex=True)
    _draw_sampled(above, below, design)
    return figure


def _title(design: ArcDesign) -> str:
    inputs, law = design.inputs, design.law
    capacity = f"{inputs.capacity_bit_per_s / 1e6:g} Mbit/s"
    plant = design.certificate.sampled.plant
    gain = f"alpha = {law.alpha_per_packet:.4g} per packet, epoch {law.epoch_s:g} s, plant {plant}"
    return f"ARC on {capacity}: {gain}: {design.certificate.status}"


def _draw_sampled(above: Axes, below: Axes, design: ArcDesign) -> None:
    """The sampled loop up to half its sampling rate, with its own margins."""
    proof, at = design.certificate, design.certificate.operating_point
    response = arc_response(design.inputs.setting)
    theta = np.geomspace(response.min_angle((at.flows, at.flows), (at.rtt_s, at.rtt_s)), np.pi, 900)
    values = design.law.alpha_per_packet * response.at(theta, at.flows, at.rtt_s)
    w = theta / design.law.epoch_s
    phase = np.degrees(np.unwrap(np.angle(values)))
    _draw_response(above, below, w, np.abs(values), phase - 360.0 * np.round((phase[0] + 90.0) / 360.0))
    sampled = proof.sampled
    if sampled.phase_crossover_rad_s is not None and sampled.gain_margin_db is not None:
        _mark_gain(above, below, sampled.phase_crossover_rad_s, sampled.gain_margin_db)
    if sampled.crossover_rad_s is not None and sampled.phase_margin_deg is not None:
        _mark_phase(above, below, sampled.crossover_rad_s, sampled.phase_margin_deg, sampled.phase_margin_deg - 180.0)


def _draw_bode(above: Axes, below: Axes, loop: DelayLoop) -> None:
    found = margins(loop)
    marked = [w for w in (found.crossover_rad_s, found.phase_crossover_rad_s) if np.isfinite(w)] or [1.0]
    w = np.geomspace(min(marked) / 15.0, max(marked) * 8.0, 600)
    phase = -np.degrees([phase_lag(loop, x) for x in w])
    _draw_response(above, below, w, np.abs(response(loop, w)), phase)
    _draw_margins(above, below, loop, found)


def _draw_response(above: Axes, below: Axes, w: np.ndarray, modulus: np.ndarray, phase: np.ndarray) -> None:
    size = 20.0 * np.log10(modulus)
    above.semilogx(w, size, color=ACCENT, lw=1.8)
    below.semilogx(w, phase, color=ACCENT, lw=1.8)
    above.axhline(0.0, color=INK, lw=0.8)
    below.axhline(-180.0, color=INK, lw=0.8)
    finish(above, y="magnitude [dB]")
    finish(below, "frequency [rad/s]", "phase [degrees]")
    below.set_yticks(np.arange(-360, int(phase.max()) + 20, 45))
    below.set_ylim(max(phase.min(), -400.0), phase.max() + 20.0)
    below.xaxis.set_major_formatter("{x:g}")


def _draw_margins(above: Axes, below: Axes, loop: DelayLoop, found: Margins) -> None:
    if np.isfinite(found.phase_crossover_rad_s):
        _mark_gain(above, below, found.phase_crossover_rad_s, found.gain_margin_db)
    if np.isfinite(found.crossover_rad_s):
        lag = -np.degrees(phase_lag(loop, found.crossover_rad_s))
        _mark_phase(above, below, found.crossover_rad_s, found.phase_margin_deg, lag)


def _mark_gain(above: Axes, below: Axes, w: float, margin_db: float) -> None:
    _bracket(above, w, -margin_db, 0.0, f"GM {margin_db:.2f} dB\nat {w:.3g} rad/s", +1)
    below.axvline(w, color=SECOND, ls=":", lw=1.2)


def _mark_phase(above: Axes, below: Axes, w: float, margin_deg: float, phase: float) -> None:
    above.axvline(w, color=SECOND, ls=":", lw=1.2)
    _bracket(below, w, -180.0, phase, f"PM {margin_deg:.2f}°\nat {w:.3g} rad/s", -1)


def _bracket(axes: Axes, x: float, low: float, high: float, text: str, side: int) -> None:
    """A bar from low to high at x with its text to the left (side −1) or to the right (+1)."""
    axes.axvline(x, color=SECOND, ls=":", lw=1.2)
    axes.plot([x, x], [low, high], color=SECOND, lw=3.2, solid_capstyle="butt")
    axes.annotate(
        text,
        (x, 0.5 * (low + high)),
        xytext=(8 * side, 0),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="center",
        color=SECOND,
        fontsize=10,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5},
    )


def _draw_map(axes: Axes, map_: StabilityMap, marks: dict[str, tuple[float, float]]) -> dict[str, Artist]:
    """Draw the classes and the points; returns what the legend shows."""
    colours = ListedColormap([colour for _, colour in _CLASSES])
    axes.pcolormesh(
        map_.flows,
        map_.rtt_s,
        map_.classes,
        cmap=colours,
        norm=BoundaryNorm(np.arange(-0.5, 5.0), 5),
        shading="nearest",
        rasterized=True,
    )
    axes.set(xscale="log", yscale="log")
    finish(axes, "flows N", "round-trip time [s]", f"alpha = {map_.gain:.4g} per packet, {map_.title}", grid=False)
    entries: dict[str, Artist] = {name: Patch(color=colour) for name, colour in _CLASSES}
    styles: _Shapes = {"*": {"ms": 15, "mfc": INK, "mec": "white"}, "D": {"ms": 8, "mfc": INK, "mec": "white"}}
    rings: _Shapes = {
        "o": {"ms": 19, "mfc": "none", "mec": INK, "mew": 1.6},
        "s": {"ms": 15, "mfc": "none", "mec": INK, "mew": 1.6},
    }
    seen = {name: (flows, rtt) for name, (flows, rtt) in _PAPER_POINTS.items() if _inside(map_, flows, rtt)}
    for points, shapes in ((marks, styles), (seen, rings)):
        for (name, (flows, rtt)), (marker, style) in zip(points.items(), cycle(shapes.items()), strict=False):
            axes.plot([flows], [rtt], marker, ls="none", **style)
            shown = Line2D([], [], marker=marker, ls="none")
            shown.set(**(style | {"ms": min(style["ms"], 11)}))
            entries[f"{name}: {flows:g} flows, {rtt:g} s"] = shown
    axes.set_xlim(map_.flows[0], map_.flows[-1])
    axes.set_ylim(map_.rtt_s[0], map_.rtt_s[-1])
    decades(axes.xaxis)
    decades(axes.yaxis)
    return entries


def _inside(map_: StabilityMap, flows: float, rtt: float) -> bool:
    return bool(map_.flows[0] <= flows <= map_.flows[-1] and map_.rtt_s[0] <= rtt <= map_.rtt_s[-1])


def _legend(axes: Axes, entries: dict[str, Artist]) -> None:
    place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
    axes.legend(list(entries.values()), list(entries), fontsize=9, ncols=2, frameon=False, **place)
