"""Values that `page.js` shows at points of a figure, under the pointer, a finger or the keyboard's marker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from netctrl.report.svg import Drawing

__all__ = ["Hover", "grid_of", "points_of"]


class Hover(NamedTuple):
    """Values of one panel: positions in the panel's units, and texts."""

    axes: Axes
    content: dict[str, Any]
    """Content for `page.js`, with positions in the panel's units."""

    def json(self, drawing: Drawing) -> str:
        """JSON for the page, with positions in the drawing; its texts can't end the element that contains them."""
        found = dict(self.content)
        if "points" in found:
            found["points"] = [(*drawing.place(self.axes, x, y), text) for x, y, text in found["points"]]
        else:
            (x, _), (y, _) = found["x"][0], found["y"][0]
            found["x"] = [(drawing.place(self.axes, each, y)[0], text) for each, text in found["x"]]
            found["y"] = [(drawing.place(self.axes, x, each)[1], text) for each, text in found["y"]]
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False).replace("<", r"\u003c")


def points_of(axes: Axes, points: Sequence[tuple[float, float, str]]) -> Hover:
    """Values of single points (x, y, text), which the arrow keys visit in this order."""
    return Hover(axes, {"points": list(points), "start": 0})


def grid_of(
    axes: Axes,
    x: Sequence[tuple[float, str]],
    y: Sequence[tuple[float, str]],
    kinds: Sequence[str],
    cells: Sequence[tuple[int, str]],
    start: int,
) -> Hover:
    """Values of a map: columns and rows by position and text, rows upwards; cells by index in `kinds` and text.

    The arrow keys begin at cell `start`."""
    return Hover(axes, {"x": list(x), "y": list(y), "kinds": list(kinds), "cells": list(cells), "start": start})
