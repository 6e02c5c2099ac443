"""Figure of a model predictive controller: the course that its loop takes."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from netctrl.design.mpc.course import mpc_course, usual_course
from netctrl.model.design.design import MpcDesign
from netctrl.plotting.style import ACCENT, INK, SECOND, canvas, finish


def mpc_figure(design: MpcDesign) -> Figure:
    """Outputs with their references, and inputs with measured disturbances, over the course, within their bounds.

    Without a course in the design references and disturbances step from their lowest to their highest values; where
    they are constant the inputs are disturbed by 1.
    """
    law, asked = design.law, design.inputs
    middle = (np.array([np.mean(ends) for ends in ranges]) for ranges in (asked.reference, asked.disturbances))
    course = mpc_course(law, usual_course(design), *middle)
    p, other = len(law.outputs), law.problem.get("measured", ())
    moved = [place for place in range(len(law.inputs)) if place not in other]
    figure = canvas(9.0, 2.0 + 2.1 * (p + len(moved)), design.summary()[0])
    panels = np.atleast_1d(figure.subplots(p + len(moved), 1, sharex=True))
    for i, name in enumerate(law.outputs):
        panel = panels[i]
        panel.plot(course.time, course.outputs[:, i], color=ACCENT, lw=1.6, label=name)
        panel.step(course.time, course.references[:, i], where="post", color=INK, lw=0.9, ls="--", label="reference")
        _bounds(panel, course.bounds["outputs"][:, i])
        finish(panel, "", _named(name, law.output_units[i]), "", legend=8)
    for j, place in enumerate(moved):
        panel = panels[p + j]
        name, unit = law.inputs[place], law.input_units[place]
        panel.step(course.time, course.inputs[:, j], where="post", color=ACCENT, lw=1.6, label=name)
        for k, each in enumerate(other):
            if law.input_units[each] == unit:
                drawn = course.disturbances[:, k]
                panel.step(course.time, drawn, where="post", color=SECOND, lw=1.1, label=law.inputs[each])
        _bounds(panel, course.bounds["inputs"][:, j])
        finish(panel, "time [s]" if j + 1 == len(moved) else "", _named(name, unit), "", legend=8)
    return figure


def _bounds(panel, bounds: np.ndarray) -> None:
    for bound in bounds.tolist():
        if np.isfinite(bound):
            panel.axhline(bound, color=INK, lw=0.7, ls=":")


def _named(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
