"""Studies in packets: what is kept of full runs, what is missing, means with intervals, and what "tuned" takes."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest
from places import EXPERIMENTS

from netctrl.model.design.design import provenance


@pytest.fixture
def studies(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    monkeypatch.setattr(importlib.import_module("study"), "RESULTS", tmp_path)
    return importlib.import_module("hftrac.packet_study")


@pytest.fixture
def fig13(studies):
    return importlib.import_module("hftrac.fig13")


def result(value: float) -> SimpleNamespace:
    return SimpleNamespace(simulator="ns-3.37", provenance=provenance(seed=1), value=value)


def two_points(fig13):
    cases = [("fifo", 0.0, 5.0), ("static", 1.1, 5.0)]
    return replace(fig13.STUDY, name="some", cases=cases, measure=lambda one: {"x": one.value}, runs=2)


def test_what_is_kept_is_not_missing_any_more(studies, fig13, tmp_path) -> None:
    some = two_points(fig13)
    first, second = some.cases

    def keep(case: tuple, run: int, value: float) -> None:
        found = result(value)
        some.full.keep((*case, run), importlib.import_module("study").Made([some.row(case, run, found)], found))

    assert some.full.kept() is None
    assert some.full.missing(range(2)) == [(*first, 0), (*second, 0), (*first, 1), (*second, 1)]
    with pytest.raises(FileNotFoundError, match=r"4 runs are missing: python experiments/full.py some"):
        some.kept_runs()
    keep(second, 1, 3.0)
    keep(first, 0, 1.0)
    assert some.full.missing(range(2)) == [(*second, 0), (*first, 1)]
    keep(first, 1, 2.0)
    keep(second, 0, 5.0)
    assert some.full.missing(range(2)) == []
    kept = some.kept_runs()
    assert kept[["way", "value", "level", "run", "x"]].values.tolist() == [
        ["fifo", 0.0, 5.0, 0, 1.0],
        ["fifo", 0.0, 5.0, 1, 2.0],
        ["static", 1.1, 5.0, 0, 5.0],
        ["static", 1.1, 5.0, 1, 3.0],
    ]
    record = json.loads((tmp_path / "some-ns3.json").read_text())
    (batch,) = record["made"]  # of one provenance
    assert sorted(batch["runs"]) == [
        ["fifo", 0.0, 5.0, 0],
        ["fifo", 0.0, 5.0, 1],
        ["static", 1.1, 5.0, 0],
        ["static", 1.1, 5.0, 1],
    ]
    first = msgspec.json.encode(some.scenario(some.cases[0], some.seconds))
    assert record["first_scenario"] == json.loads(first)


def test_means_have_intervals_over_the_runs(studies) -> None:
    """Two runs at 1 and 2: the 97.5 % point of Student's t with one degree of freedom, 12.706, times 0.5."""
    data = pd.DataFrame({"way": ["a", "a", "b", "b"], "run": [0, 1, 0, 1], "x": [1.0, 2.0, 4.0, 4.0]})
    found = studies.means(data, ["way"])
    assert found.way.tolist() == ["a", "b"]
    assert found.x.tolist() == [1.5, 4.0]
    np.testing.assert_allclose(found.x_half, [12.7062047 * 0.5, 0.0], rtol=1e-8)


def test_pairs_take_out_what_the_runs_share(fig13) -> None:
    values = {"a": [1.0, 5.0, 9.0], "b": [0.0, 4.0, 8.0], "fifo": [1.0, 2.0, 3.0]}
    for order in ([0, 1, 2], [2, 0, 1]):  # by run, not by place
        places = [(look, run) for look in values for run in (order if look == "b" else [0, 1, 2])]
        index = pd.MultiIndex.from_tuples([(look, 5.0, run) for look, run in places], names=["look", "level", "run"])
        by_run = pd.DataFrame({"loss": [values[look][run] for look, run in places]}, index)
        assert fig13.change(by_run, "a", "b", "loss", 5.0) == (0.5, 0.0, 3)


def test_tuning_sees_only_the_other_runs(fig13) -> None:
    """In each run another mu is lucky: what the others say is taken."""
    loss = {0.1: [1.0, 1.0, 9.0], 0.3: [0.0, 6.0, 6.0]}
    rows = [
        {"level": 5.0, "run": run, "value": value, "loss": lost}
        for value, losses in loss.items()
        for run, lost in enumerate(losses)
    ]
    found = fig13.tuned(pd.DataFrame(rows)).set_index("run")
    # Without run 0: 0.1 loses 10, 0.3 12; without 1: 10 and 6; without 2: 2 and 6.
    assert found.value.to_dict() == {0: 0.1, 1: 0.3, 2: 0.1}
    assert found.loss.to_dict() == {0: 1.0, 1: 6.0, 2: 9.0}


@pytest.mark.parametrize("name", ["fig13", "fig15", "fig16"])
def test_the_points_that_run_each_time_are_among_those_that_are_kept(studies, name) -> None:
    figure = importlib.import_module(f"hftrac.{name}")
    assert set(figure.SHORT) <= set(figure.STUDY.cases)
    assert len(set(figure.STUDY.cases)) == len(figure.STUDY.cases)
    requested = figure.STUDY.scenario(figure.STUDY.cases[-1], 7.0)
    assert requested.duration - requested.warmup == 7.0
