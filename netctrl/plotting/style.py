"""Shared parts of figures: colours, and a Figure that Jupyter shows."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

INK, ACCENT = "#222222", "#1f4e9c"


class ShownFigure(Figure):
    """A Figure that Jupyter shows as a picture, also without pyplot's inline backend."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()
