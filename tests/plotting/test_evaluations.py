"""Figure of an evaluation: a point for each case with its intervals, and a line from its reference's."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.plotting.tradeoffs import TradeOff, tradeoffs_figure


def test_cases_and_references_stand_at_their_values() -> None:
    cases = [TradeOff(0.01, 0.002, 0.95, 0.01, (0.08, 0.99)), TradeOff(0.02, 0.0, 0.5, 0.0, None)]
    axes = tradeoffs_figure(cases, law="pie", reference="droptail").axes[0]
    assert axes.get_xscale() == "log"
    drawn = [np.column_stack(line.get_data()).tolist() for line in axes.lines]
    assert [[0.08, 99.0], [0.01, 95.0]] in drawn
    assert [[0.08, 99.0]] in drawn
    assert [[0.01, 95.0]] in drawn
    assert [[0.02, 50.0]] in drawn
    bars = [np.array(each) for part in axes.collections for each in part.get_segments()]
    assert any(each == pytest.approx(np.array([[0.008, 95.0], [0.012, 95.0]])) for each in bars)
    assert any(each == pytest.approx(np.array([[0.01, 94.0], [0.01, 96.0]])) for each in bars)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["pie", "droptail"]


def test_an_interval_beyond_0_is_cut_on_the_logarithmic_axis() -> None:
    axes = tradeoffs_figure([TradeOff(0.01, 0.05, 0.9, 0.0, None)], law="x", reference="").axes[0]
    low = min(each[0][0] for part in axes.collections for each in part.get_segments())
    assert 0.0 < low < 0.001
    assert len(axes.get_legend().get_texts()) == 1
