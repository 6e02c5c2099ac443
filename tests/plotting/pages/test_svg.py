"""Figures as inline SVG: columns of panels, places, ids, no style attributes."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from netctrl.plotting.pages.svg import drawings, points_of


def two_columns() -> Figure:
    """Two panels above each other, and one beside them with its scale of colours."""
    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    left, right = figure.subfigures(1, 2)
    above, below = left.subplots(2, 1, sharex=True)
    above.plot([1.0, 10.0], [0.0, 1.0])
    above.set_ylabel("above")
    below.semilogx([2.0], [3.0], "o", ms=7, color="#123456")
    below.set(xlabel="time", ylabel="below", xlim=(1.0, 10.0), ylim=(0.0, 9.0))
    axes = right.subplots()
    right.colorbar(axes.imshow(np.eye(3)), ax=axes)
    axes.set_title("matrix")
    figure.suptitle("a title that is left out")
    return figure


def test_a_figure_falls_into_its_columns() -> None:
    found = drawings(two_columns(), "f")
    assert [len(each.axes) for each in found] == [2, 2]
    assert [each.label for each in found] == ["above; below against time", "matrix"]
    for each in found:
        root = ElementTree.fromstring(each.svg)
        assert (root.tag, root.attrib["role"], root.attrib["aria-label"]) == ("svg", "img", each.label)
        x, y, width, height = map(float, root.attrib["viewBox"].split())
        assert (x, y) == (0.0, 0.0)
        assert (width, height) == pytest.approx((each.box.width, each.box.height), abs=1e-3)
        assert width <= 6.3 * 72.0
        assert "left out" not in each.svg


@pytest.mark.slow
def test_a_place_is_where_matplotlib_draws_it() -> None:
    """A single marker of a semi-logarithmic panel, by the coordinates that stand in the SVG."""
    figure = two_columns()
    below = figure.axes[1]
    drawing = drawings(figure, "f")[0]
    (drawn,) = re.findall(r'<use href="#f-0-\w+" x="([\d.]+)" y="([\d.]+)" fill="#123456"', drawing.svg)
    assert drawing.place(below, 2.0, 3.0) == pytest.approx(tuple(map(float, drawn)), abs=0.06)


@pytest.mark.slow
def test_ids_are_a_figures_own_and_styles_are_attributes() -> None:
    one, other = (drawings(two_columns(), name)[0].svg for name in ("f", "g"))
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (one, other)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    assert one.replace("f-0-", "g-0-") == other
    assert "style" not in one
    assert "xmlns" not in one


def test_text_of_values_ends_no_element() -> None:
    figure = two_columns()
    hover = points_of(figure.axes[1], [(2.0, 3.0, "</script><b>")])
    assert "<" not in hover.json(drawings(figure, "f")[0])
