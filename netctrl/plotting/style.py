"""Shared parts of figures: colours, a Figure that Jupyter shows, poles in the unit circle."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["ACCENT", "INK", "ShownFigure", "draw_poles"]

INK, ACCENT = "#222222", "#1f4e9c"


class ShownFigure(Figure):
    """A Figure that Jupyter shows as a picture, also without pyplot's inline backend."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def draw_poles(axes: Axes, poles: Mapping[str, tuple[Any, str]]) -> None:
    """Poles by name, each with its marker, in the unit circle."""
    around = np.linspace(0.0, 2.0 * np.pi, 400)
    axes.plot(np.cos(around), np.sin(around), color=INK, lw=0.8)
    for (name, (values, marker)), colour in zip(poles.items(), (ACCENT, "#b45f06", "#6aa84f"), strict=False):
        real, imaginary = np.transpose(values)
        axes.plot(real, imaginary, marker, color=colour, ms=8, mew=1.6, label=name)
    axes.axhline(0.0, color="#dddddd", lw=0.6)
    axes.axvline(0.0, color="#dddddd", lw=0.6)
    axes.set_aspect("equal")
    axes.set_title("poles", fontsize=10)
    axes.legend(fontsize=8, loc="upper left")
