"""Figures of identified models: fit, singular values, poles."""

from __future__ import annotations

from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from netctrl.model.fit import IdentificationResult
from netctrl.model.identified import IdentifiedModel
from netctrl.plotting.style import ACCENT, INK, ShownFigure

__all__ = ["identification_figure", "model_figure"]


def identification_figure(result: IdentificationResult, *, samples: int = 400, title: str = "") -> Figure:
    """Measured and simulated outputs (the last samples, held-out ones if there are any), singular values, poles."""
    figure = ShownFigure(figsize=(11.0, 6.4), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.5, 1.0)))
    tried = result.held_out is not None and result.held_out_simulated is not None
    trace = result.held_out if tried and result.held_out is not None else result.trace
    simulated = result.held_out_simulated if tried and result.held_out_simulated is not None else result.simulated
    vaf = result.how.held_out_vaf if tried and result.how.held_out_vaf is not None else result.how.vaf
    t = (np.arange(len(trace)) * trace.interval_s)[-samples:]
    panels = left.subplots(len(trace.outputs), 1, sharex=True, squeeze=False)[:, 0]
    for k, (axes, name) in enumerate(zip(panels, trace.outputs, strict=True)):
        axes.plot(t, trace.output_values[-samples:, k], color="#999999", lw=1.0, label="measured")
        axes.plot(t, simulated[-samples:, k], color=ACCENT, lw=1.3, label="simulated")
        axes.set_ylabel(name, parse_math=False)
        axes.set_title(f"VAF {vaf[k]:.2f} %{' (held out)' if tried else ''}", fontsize=9, loc="right")
        axes.grid(color="#dddddd", lw=0.6)
    panels[0].legend(fontsize=9, ncols=2, loc="upper left")
    panels[-1].set_xlabel("time [s]")
    above, below = right.subplots(2, 1, height_ratios=(1.0, 1.6))
    _draw_singular_values(above, result)
    _draw_cloud(below, result.poles, result.pole_draws)
    shown = figure.suptitle(title or result.table()[0], fontsize=11)
    shown.set_parse_math(False)  # a column's name isn't a formula
    return figure


def _draw_singular_values(axes: Axes, result: IdentificationResult) -> None:
    how = result.how
    values = how.singular_values[: max(2 * how.order + 4, 12)]
    places = np.arange(1, len(values) + 1)
    floor = max(float(values[0]) * 1e-16, np.finfo(float).tiny)
    axes.semilogy(places, np.maximum(values, floor), "o", color="#bbbbbb", ms=4)
    axes.semilogy(places[: how.order], np.maximum(values[: how.order], floor), "o", color=ACCENT, ms=5)
    if result.order is not None and how.method == "cva":
        axes.axhline(result.order.noise_edge, color=INK, ls="--", lw=0.9)
    axes.set_title(f"singular values, {how.order} taken", fontsize=9)
    axes.grid(color="#dddddd", lw=0.6)


def _draw_cloud(axes: Axes, poles: np.ndarray, draws: np.ndarray | None) -> None:
    """Poles as crosses in the unit circle, each with the cloud of its bootstrap draws."""
    angle = np.linspace(0.0, 2.0 * np.pi, 361)
    axes.plot(np.cos(angle), np.sin(angle), color=INK, lw=0.8)
    if draws is not None:
        axes.plot(draws.real.ravel(), draws.imag.ravel(), ".", color="#f6b26b", ms=3, alpha=0.6)
    axes.plot(poles.real, poles.imag, "x", color=ACCENT, ms=8, mew=1.8)
    axes.set_aspect("equal")
    axes.set_title("poles" if draws is None else f"poles, {len(draws)} bootstrap draws", fontsize=9)
    axes.grid(color="#dddddd", lw=0.6)


def model_figure(model: IdentifiedModel, *, title: str = "") -> Figure:
    """Responses of a model's outputs to a unit step of each input, and its poles."""
    figure = ShownFigure(figsize=(10.0, 4.8), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.4, 1.0)))
    poles = np.linalg.eigvals(model.A)
    slowest = float(np.clip(np.abs(poles).max(initial=0.0), 0.1, 0.999))
    steps = int(np.clip(5.0 / -np.log(slowest), 10, 2000))
    t = np.arange(steps) * model.dt
    panels = left.subplots(len(model.outputs), 1, sharex=True, squeeze=False)[:, 0]
    for j, name in enumerate(model.inputs):
        x, response = np.zeros(len(model.A)), np.empty((steps, len(model.C)))
        for k in range(steps):
            response[k] = model.C @ x + model.D[:, j]
            x = model.A @ x + model.B[:, j]
        for axes, values in zip(panels, response.T, strict=True):
            axes.step(t, values, where="post", lw=1.4, label=f"step of {name}")
    for axes, name in zip(panels, model.outputs, strict=True):
        axes.set_ylabel(name, parse_math=False)
        axes.grid(color="#dddddd", lw=0.6)
    for text in panels[0].legend(fontsize=9).get_texts():
        text.set_parse_math(False)
    panels[-1].set_xlabel("time [s]")
    _draw_cloud(right.subplots(), poles, None)
    figure.suptitle(title or f"{len(model.A)} states, every {model.dt:g} s", fontsize=11)
    return figure
