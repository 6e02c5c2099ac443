"""Figures of identified models, and of the laws that track a reference with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from netctrl.laws.tracking.tracking import linearised, start_tracking, step_tracking, tracking_gains
from netctrl.model.design.design import ConnetDesign
from netctrl.model.fit import IdentificationResult
from netctrl.model.identified import IdentifiedModel
from netctrl.plotting.style import ACCENT, INK, PALE, SECOND, canvas, finish


def identification_figure(result: IdentificationResult, *, samples: int = 400, title: str = "") -> Figure:
    """Measured and simulated outputs (the last samples, held-out ones if there are any), singular values, poles."""
    figure = canvas(11.0, 6.4, title or result.table()[0])
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
        axes.set_title(f"VAF {vaf[k]:.2f} %{' (held out)' if tried else ''}", fontsize=9, loc="right")
        finish(axes, y=name)
    panels[0].legend(fontsize=9, ncols=2, loc="upper left")
    panels[-1].set_xlabel("time [s]")
    above, below = right.subplots(2, 1, height_ratios=(1.0, 1.6))
    _draw_singular_values(above, result)
    _draw_cloud(below, result.poles, None if result.draws is None else result.draws.poles(result.poles))
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
    finish(axes, title=f"singular values, {how.order} taken", size=9)


def _draw_cloud(axes: Axes, poles: np.ndarray, draws: np.ndarray | None) -> None:
    """Poles as crosses in the unit circle, each with the cloud of those that the trace allows."""
    angle = np.linspace(0.0, 2.0 * np.pi, 361)
    axes.plot(np.cos(angle), np.sin(angle), color=INK, lw=0.8)
    if draws is not None:
        axes.plot(draws.real.ravel(), draws.imag.ravel(), ".", color="#f6b26b", ms=3, alpha=0.6)
    axes.plot(poles.real, poles.imag, "x", color=ACCENT, ms=8, mew=1.8)
    axes.set_aspect("equal")
    finish(axes, title="poles" if draws is None else f"poles, {len(draws)} draws that the trace allows", size=9)


def model_figure(model: IdentifiedModel, *, title: str = "") -> Figure:
    """Responses of a model's outputs to a unit step of each input, and its poles."""
    figure = canvas(10.0, 4.8, title or f"{len(model.A)} states, every {model.dt:g} s")
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
        finish(axes, y=name, legend=9 if axes is panels[0] else 0)
    panels[-1].set_xlabel("time [s]")
    _draw_cloud(right.subplots(), poles, None)
    return figure


def tracking_figure(design: ConnetDesign, *, samples: int = 0) -> Figure:
    """Step response of the loop to a reference from the middle of the attainable range, and poles.

    `samples` is the length of the drawn step; by default ten times the slowest pole's time.
    """
    law, proof = design.law, design.certificate
    slow = min(max(abs(complex(*pole)) for pole in proof.closed_loop_poles), 0.999)
    count = samples or int(min(max(10.0 / -np.log(max(slow, 0.05)), 20.0), 2000.0))
    figure = canvas(12.0, 5.6, design.summary()[0])
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.4, 1.0)))
    panels = left.subplots(len(law.outputs) + 1, 1, sharex=True)
    gain = np.array(proof.plant_dc_gain)
    low, high = linearised(law, law.low), linearised(law, law.high)
    start, stop = (low + share * (high - low) for share in (0.4, 0.6))
    references = [law.output_offset + gain @ (each - law.input_offset) for each in (start, stop)]
    outputs, inputs = _step(design, references, count)
    time = law.interval_s * (np.arange(len(outputs)) - count)
    for row, (axes, name, unit) in enumerate(zip(panels, law.outputs, law.output_units, strict=False)):
        requested = np.where(time < 0.0, references[0][row], references[1][row])
        axes.step(time, requested, where="post", color=INK, lw=1.0, ls="--", label="reference")
        axes.step(time, outputs[:, row], where="post", color=ACCENT, lw=1.4, label="model")
        axes.set_ylabel(f"{name} [{unit}]" if unit else name)
    panels[0].legend(fontsize=8, loc="lower right")
    for name, unit, values in zip(law.inputs, law.input_units, inputs.T, strict=True):
        panels[-1].step(time, values, where="post", lw=1.4, label=f"{name} [{unit}]" if unit else name)
    panels[-1].set_ylabel(", ".join(law.inputs) + (f" [{law.input_units[0]}]" if law.input_units[0] else ""))
    panels[-1].set_xlabel("time [s]")
    for axes in panels:
        finish(axes)
        axes.set_xlim(-0.1 * count * law.interval_s, count * law.interval_s)
    axes = right.subplots()
    _draw_poles(axes, {"closed loop": (proof.closed_loop_poles, "x"), "controller": (proof.controller_poles, "+")})
    return figure


def _step(design: ConnetDesign, references: list[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and inputs of the model under its law, `count` samples at one reference and as many at the other."""
    law, model = design.law, design.inputs.model
    gains = tracking_gains(law)
    x, state = np.zeros(len(model.A)), start_tracking(gains)
    outputs, inputs = [], []
    settle = 3 * count
    for n in range(settle + 2 * count):
        v = linearised(law, state.applied) - law.input_offset
        outputs.append(model.C @ x + model.D @ v + law.output_offset)
        inputs.append(state.applied)
        x = model.A @ x + model.B @ v
        state = step_tracking(gains, state, outputs[-1], references[n >= settle + count])
    return np.array(outputs[settle:]), np.array(inputs[settle:])


def _draw_poles(axes: Axes, poles: Mapping[str, tuple[Any, str]]) -> None:
    """Poles by name, each with its marker, in the unit circle."""
    around = np.linspace(0.0, 2.0 * np.pi, 400)
    axes.plot(np.cos(around), np.sin(around), color=INK, lw=0.8)
    for (name, (values, marker)), colour in zip(poles.items(), (ACCENT, SECOND, "#6aa84f"), strict=False):
        real, imaginary = np.transpose(values)
        axes.plot(real, imaginary, marker, color=colour, ms=8, mew=1.6, label=name)
    axes.axhline(0.0, color=PALE, lw=0.6)
    axes.axvline(0.0, color=PALE, lw=0.6)
    axes.set_aspect("equal")
    finish(axes, title="poles", legend=8, grid=False, loc="upper left")
