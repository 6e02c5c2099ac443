"""Engines side by side and two costs against each other: what is drawn is what was found."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from netctrl.engines.compare import Compared
from netctrl.plotting.simulations import comparison_figure, shown_rows
from netctrl.plotting.tradeoffs import tradeoff_figure


def compared(quantity: str, mean: float, first: float, half: float) -> list[Compared]:
    apart = None if first == 0.0 else mean / first - 1.0
    return [Compared(quantity, "line", "a", first, 0.0, None), Compared(quantity, "line", "b", mean, half, apart)]


def test_differences_are_drawn_with_their_intervals_over_the_first_mean() -> None:
    rows = compared("loss", 1.2, 1.0, 0.1) + compared("marks", 1.0, 0.0, 0.1) + compared("backlog", 30.0, 40.0, 4.0)
    comparison = SimpleNamespace(engines=("a", "b"), rows=tuple(rows), table=lambda: ("title", []))
    axes = comparison_figure(comparison).axes[0]
    points, _, (bars,) = axes.containers[0].lines
    assert np.allclose(points.get_xdata(), [20.0, -25.0])
    assert list(points.get_ydata()) == [0, 1]
    widths = [segment[1, 0] - segment[0, 0] for segment in bars.get_segments()]
    assert widths == pytest.approx([2 * 10.0, 2 * 10.0])  # 0.1 of 1, 4 of 40
    assert [text.get_text() for text in axes.get_yticklabels()] == ["line loss", "line backlog"]
    assert axes.get_xlabel() == "difference from a [%]"


def test_of_many_quantities_the_largest_differences_are_drawn() -> None:
    rows = [row for k in range(50) for row in compared(f"q{k}", 1.0 + 0.01 * k, 1.0, 0.0)]
    shown = shown_rows(SimpleNamespace(rows=rows))
    assert [row.quantity for row in shown] == [f"q{k}" for k in range(10, 50)]


def test_a_trade_off_has_its_groups_and_its_front() -> None:
    groups = {"x$_": np.array([[1.0, 5.0, 0.1, 0.2]]), "y": np.array([[2.0, 3.0, 0.0, 0.0], [4.0, 1.0, 0.0, 0.0]])}
    front = np.array([[1.0, 5.0], [2.0, 3.0]])
    axes = tradeoff_figure(groups, front, labels=("backlog [kB]", "loss [%]")).axes[0]
    assert np.allclose(axes.lines[0].get_xydata(), front)
    assert [np.asarray(each.lines[0].get_xydata()).tolist() for each in axes.containers] == [
        [[1.0, 5.0]],
        [[2.0, 3.0], [4.0, 1.0]],
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["front", "x$_", "y"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("backlog [kB]", "loss [%]")
    assert axes.get_xscale() == "linear"
    wide = {"x": np.array([[1.0, 1.0, 0.0, 0.0], [100.0, 2.0, 0.0, 0.0]])}
    axes = tradeoff_figure(wide, front, labels=("x", "y")).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
