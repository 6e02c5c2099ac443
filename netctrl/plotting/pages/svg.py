"""matplotlib figures as inline SVG, a drawing for each column of panels, and values shown at their points."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

_STYLE: Any = {"svg.hashsalt": "netctrl", "svg.fonttype": "none"}
_DPI = 72.0  # one pixel of a figure is one unit of its SVG
_WIDTH = 6.2  # maximum width of a drawing [in], for legible text on a phone
_PAD = 4.0
_SCALE = 1.2  # pixels of a wide page per pixel of the drawing, so that two drawings fit side by side
_RASTER_DPI = 150
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DECIMALS = re.compile(r"(\.\d\d)\d+")
_FONT_PARTS = ("font-style", "font-weight", "font-size")
_FONT = re.compile(r"(?:(italic|oblique) )?(?:(bold|\d+) )?([\d.]+)px")
_OUTLINES = {"stroke-linejoin": "round", "stroke-linecap": "butt"}  # as in matplotlib's own style sheet
_LEFT_OUT = ("font-family", "white-space", "mix-blend-mode")  # the page has one font; the others aren't SVG attributes


class Drawing(NamedTuple):
    """Panels of a figure as one SVG element."""

    svg: str
    label: str
    """Description of the drawing for screen readers."""
    axes: tuple[Axes, ...]
    box: Bbox
    """Its part of the figure [pixel]."""

    def place(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """Position in the SVG of a point of `axes`."""
        across, up = axes.transData.transform((x, y))
        return round(across - self.box.x0, 1), round(self.box.y1 - up, 1)


def drawings(figure: Figure, name: str) -> list[Drawing]:
    """A figure as columns, which the page shows side by side, or on a phone one below the other.

    The figure's title is left out. Equal figures give equal text.

    Parameters
    ----------
    figure : Figure
        The figure is laid out anew and can't be used for other pictures afterwards.
    name : str
        Prefix of all ids, so that a page may hold several figures.
    """
    with rc_context(_STYLE):
        figure.set_dpi(_DPI)
        figure.suptitle("")
        figure.draw_without_rendering()
        columns = _columns(figure)
        widest = max(box.width for _, box in columns) / _DPI
        if widest > _WIDTH:
            width, height = figure.get_size_inches()
            figure.set_size_inches(width * _WIDTH / widest, height)
            figure.draw_without_rendering()
            columns = _columns(figure)
        figure.set_layout_engine("none")
        return [_drawing(figure, axes, box, f"{name}-{n}") for n, (axes, box) in enumerate(columns)]


def _columns(figure: Figure) -> list[tuple[list[Axes], Bbox]]:
    """Panels that are stacked in a column, with their colour bars, and the column's part of the figure."""
    found: list[tuple[list[Axes], float]] = []
    for axes in sorted(figure.axes, key=lambda axes: axes.bbox.x0):
        if found and (axes.bbox.x0 < found[-1][1] or axes.get_label() == "<colorbar>"):
            together, right = found.pop()
            found.append(([*together, axes], max(right, axes.bbox.x1)))
        else:
            found.append(([axes], axes.bbox.x1))
    return [(together, _box(together)) for together, _ in found]


def _box(together: list[Axes]) -> Bbox:
    taken = (axes.get_tightbbox() for axes in together)
    return Bbox.union([box for box in taken if box is not None]).padded(_PAD)


def _drawing(figure: Figure, axes: list[Axes], box: Bbox, name: str) -> Drawing:
    for each in figure.axes:
        each.set_visible(each in axes)
    content = io.BytesIO()
    part = Bbox(box.get_points() / _DPI)
    figure.savefig(content, format="svg", bbox_inches=part, dpi=_RASTER_DPI, facecolor="none")
    label = "; ".join(filter(None, map(_described, axes)))
    return Drawing(_inline(content.getvalue(), name, label, box.width), label, tuple(axes), box)


def _described(axes: Axes) -> str:
    title = " ".join(axes.get_title(where) for where in ("left", "center", "right")).strip()
    against = f" against {axes.get_xlabel()}" if axes.get_xlabel() else ""
    drawn = f"{axes.get_ylabel()}{against}" if axes.get_ylabel() else axes.get_xlabel()
    return ": ".join(filter(None, (title, drawn)))


def _inline(text: bytes, name: str, label: str, width: float) -> str:
    """The SVG without style sheet, style attributes and namespaces.

    The page's policy forbids these, and the page's own style sets dark colours."""
    root = ElementTree.fromstring(text)
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    attributes = {id(element): dict(_attributes(element)) for element in root.iter()}
    used = {reference for each in attributes.values() for value in each.values() for reference in _references(value)}
    for element in root.iter():
        element.tag = _local(element.tag)
        kept = {key: value for key, value in attributes[id(element)].items() if key != "id" or value in used}
        element.attrib.clear()
        element.attrib.update({key: _renamed(key, value, name) for key, value in kept.items()})
        element.tail = None if element.tag != "tspan" else element.tail
        if element.text is not None and not element.text.strip():
            element.text = None
    size = {"viewBox": attributes[id(root)]["viewBox"], "width": f"{_SCALE * width:.0f}"}
    root.attrib = size | {"role": "img", "aria-label": label} | _OUTLINES
    return ElementTree.tostring(root, encoding="unicode")


def _attributes(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for key, value in element.attrib.items():
        if key == "style":
            yield from _presentation(value)
        else:
            yield _local(key), value


def _presentation(style: str) -> Iterator[tuple[str, str]]:
    """SVG attributes equivalent to a style."""
    for part in filter(str.strip, style.split(";")):
        key, _, value = (each.strip() for each in part.partition(":"))
        if key == "font":
            found = _FONT.match(value)
            said = () if found is None else found.groups()
            yield from ((name, each) for name, each in zip(_FONT_PARTS, said, strict=False) if each)
        elif key not in _LEFT_OUT:
            yield key, value


def _references(value: str) -> list[str]:
    return [value[1:]] if value.startswith("#") else _REFERENCE.findall(value)


def _renamed(key: str, value: str, name: str) -> str:
    """An attribute's value with the ids of this drawing, and numbers rounded to visible precision."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value[1:]}" if value.startswith("#") else "".join(value.split())
    if key in ("d", "x", "y", "transform", "points"):
        return _DECIMALS.sub(r"\1", " ".join(value.split()))
    return _REFERENCE.sub(rf"url(#{name}-\1)", value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


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
