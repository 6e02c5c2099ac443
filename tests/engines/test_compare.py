"""Differences between engines as text: relative, or in the quantity's unit where the first engine's is near zero."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines.compare import Comparison, _rows
from netctrl.model.io.provenance import provenance
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.tcp_aqm.flows import Flow

CASES = {
    ("throughput", "line"): (1e7, 1.01e7, 0.01, "+1 %"),
    ("backlog", "line"): (2e4, 1.5e4, -0.25, "-25 %"),
    ("backlog std", "line"): (17.3, 12.5e3, None, "+12 kB"),  # "+7.2e+04 %" says nothing
    ("delay", "line"): (0.0, 2e-3, None, "+2 ms"),
    ("loss", "line"): (1e-5, 9.5e-3, None, "+0.95 percentage points"),
    ("rtt", "flows"): (0.05, 0.0005, -0.99, "-99 %"),
    ("marks", "line"): (0.0, 0.0, None, ""),
}


def comparison(names=tuple(CASES)) -> Comparison:
    runs = {
        engine: [{name: CASES[name][place] for name in names}] * 2 for place, engine in enumerate(("fluid", "packet"))
    }
    scenario = bottleneck(flows=(Flow(sender="reno"),))
    rows = tuple(_rows(runs, tuple(runs)))
    return Comparison(scenario=scenario, engines=tuple(runs), seeds=(1, 2), rows=rows, provenance=provenance())


@pytest.mark.parametrize("name", CASES)
def test_a_difference_is_relative_only_where_that_says_something(name):
    ours, theirs, relative, text = CASES[name]
    first, second = comparison((name,)).rows
    assert (first.difference, first.absolute_difference, first.apart) == (None, None, "")
    assert second.difference == (None if relative is None else pytest.approx(relative))
    assert second.absolute_difference == pytest.approx(theirs - ours)
    assert second.apart == text


def test_the_table_and_the_verdict_have_no_percentage_of_nothing():
    found = comparison()
    lines = dict(found.table()[1])
    assert lines["line backlog std"] == "fluid 17.3 B, packet 12.5 kB (+12 kB)"
    assert lines["line marks"] == "fluid 0 %, packet 0 %"
    largest = "the largest difference is +12 kB, of line's backlog std."
    assert found.verdict == f"packet is within 5 % of fluid in 1 of 6 quantities; {largest}"


def test_means_that_are_equal_have_no_difference():
    runs = {engine: [{("backlog", "line"): 2e4}] for engine in ("packet", "ns3")}
    assert [row.apart for row in _rows(runs, ("packet", "ns3"))] == ["", ""]


@pytest.mark.parametrize("engine", [np.zeros((2, 2)), np.array([1j]), None, 1, ["fluid"], "fluids"], ids=repr)
def test_an_engine_is_named_by_a_word(engine) -> None:
    with pytest.raises(InvalidValue, match=r"(?s)engine: got .* takes one of auto, fluid"):
        netctrl.simulate("arc-staircase-bulk", engine)
