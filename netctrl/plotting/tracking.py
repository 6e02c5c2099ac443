"""Figure of a tracking law: a step of the reference, and the loop's poles."""

from __future__ import annotations

from typing import cast

import numpy as np
from matplotlib.figure import Figure, SubFigure

from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.design.design import ConnetDesign
from netctrl.plotting.style import ACCENT, INK, ShownFigure, draw_poles

__all__ = ["tracking_figure"]


def tracking_figure(design: ConnetDesign, *, samples: int = 0) -> Figure:
    """Step response of the loop to a reference from the middle of the attainable range, and poles.

    `samples` is the length of the drawn step; by default ten times the slowest pole's time.
    """
    law, proof = design.law, design.certificate
    slow = min(max(abs(complex(*pole)) for pole in proof.closed_loop_poles), 0.999)
    count = samples or int(min(max(10.0 / -np.log(max(slow, 0.05)), 20.0), 2000.0))
    figure = ShownFigure(figsize=(12.0, 5.6), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.4, 1.0)))
    panels = left.subplots(len(law.outputs) + 1, 1, sharex=True)
    gain = np.array(proof.plant_dc_gain)
    start, stop = (law.low + share * (law.high - law.low) for share in (0.4, 0.6))
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
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_xlim(-0.1 * count * law.interval_s, count * law.interval_s)
    axes = right.subplots()
    draw_poles(axes, {"closed loop": (proof.closed_loop_poles, "x"), "controller": (proof.controller_poles, "+")})
    figure.suptitle(design.summary()[0], fontsize=11).set_parse_math(False)
    return figure


def _step(design: ConnetDesign, references: list[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and inputs of the model under its law, `count` samples at one reference and as many at the other."""
    law, model = design.law, design.inputs.model
    gains = tracking_gains(law)
    x, state = np.zeros(len(model.A)), start_tracking(gains)
    outputs, inputs = [], []
    settle = 3 * count
    for n in range(settle + 2 * count):
        v = state.applied - law.input_offset
        outputs.append(model.C @ x + model.D @ v + law.output_offset)
        inputs.append(state.applied)
        x = model.A @ x + model.B @ v
        state = step_tracking(gains, state, outputs[-1], references[n >= settle + count])
    return np.array(outputs[settle:]), np.array(inputs[settle:])
