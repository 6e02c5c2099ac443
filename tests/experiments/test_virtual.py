"""Experiments in the kernel in virtual time: a call inside, and what is run, kept and left out."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from places import EXPERIMENTS

from netctrl.core.errors import NetctrlError
from netctrl.kernel.build import Kernel

KERNEL = Kernel(version="6.1", sha256="0", source="linux", compiler="gcc", absent=(), build_s=1.0)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A study's module, which keeps its runs in a temporary folder."""
    monkeypatch.syspath_prepend(EXPERIMENTS)

    def imported(name: str) -> ModuleType:
        found = importlib.import_module(f"linux.{name}")
        monkeypatch.setattr(importlib.import_module("study"), "RESULTS", tmp_path)
        monkeypatch.setattr(found, "chosen_kernel", lambda: KERNEL, raising=name != "virtual_arc")
        return found

    return imported


@pytest.mark.needs("lab")
def test_a_function_is_called_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    called = importlib.import_module("linux.virtual").called
    one, same, other = (called("uuid:uuid4", seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    with pytest.raises(NetctrlError, match="math domain error"):
        called("math:sqrt", -1.0, seed=1)


@pytest.mark.needs("lab")
def test_a_video_has_all_its_packets_and_no_round_trip_below_propagation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    called = importlib.import_module("linux.virtual").called
    found = called("linux.virtual_hftrac:inside", ["14", 30.0, "static", 1.5], 0, 1.0, "aligned", seed=1)
    frame = 3.16e6 / 8 / 25  # in packets of 1448 bytes, the last one smaller
    assert found["packets"] == found["wires"] == 25 * -(-frame // 1448)
    assert 1.2 <= found["wire_rtt_5_ms"] < 1.3, "six links of 0.2 ms"
    assert found["packet_rtt_5_ms"] == pytest.approx(found["wire_rtt_5_ms"], abs=0.01), "the first one never waits"
    # behind the first two, each waits for those in the queue, of which TCP hands over some of a frame's at a time
    one = 1e3 * 8 * 1448 / (1.5 * 3.16e6)
    waits = found["packet_rtt_99_ms"] - found["wire_rtt_5_ms"]
    assert one < waits < (frame / 1448 - 2.0) * one
    assert found["packet_again"] == found["loss"] == 0.0


@pytest.mark.slow
def test_runs_of_hftrac_that_are_kept_are_left_out(module: Any) -> None:
    study = module("virtual_hftrac")
    every = study.STUDY.missing([0, 1])
    assert every[0][0] == study.ORDER[0]
    for case in every:
        if case[4] == 0:
            study.STUDY.keep(case, importlib.import_module("study").Made([{"loss": 1.0}]))
    assert study.STUDY.missing([0, 1]) == [case for case in every if case[4] == 1] != []


def test_runs_of_pacing_that_are_kept_are_left_out(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = module("virtual_pacing")
    asked = []

    def called(*args: Any, seed: int) -> dict[str, float]:
        asked.append((*args[1:], seed))
        return {"mbit": 95.0, "rtt_ms": 21.0}

    monkeypatch.setattr(study, "called", called)
    every = [(*case, 1) for case in study.cases()]
    assert list(study.STUDY.make([1])) == asked == every
    assert study.STUDY.missing([1, 2]) == [(*case, 2) for case in study.cases()]


def test_runs_of_arc_that_are_kept_are_left_out(module: Any) -> None:
    study = module("virtual_arc")
    assert study.STUDY.missing([1]) == [(queue, 1) for queue in study.QUEUES]
    rows = [{"queue": queue, "seed": 1, "flows": flows} for queue in study.QUEUES for flows in study.FLOWS]
    pd.DataFrame(rows).to_csv(study.STUDY.path(".csv"), index=False)
    assert study.STUDY.missing([1, 2]) == [(queue, 2) for queue in study.QUEUES]


def test_a_step_settles_when_its_mean_delay_has_no_more_excess(module: Any) -> None:
    """100 ms for 20 s, then 40: the mean over 10 s is below 50 ms from 8 1/3 s later on. What falls short is none."""
    settling = module("virtual_arc").settling_s
    delay = np.where(np.arange(400) < 80, 100.0, 40.0)
    assert settling(delay, 0.25) == pytest.approx(28.25, abs=0.25)
    assert settling(np.full(400, 3.0), 0.25) == 0.0
    assert settling(np.where(np.arange(400) < 80, 0.0, 40.0), 0.25) == 0.0
    assert np.isnan(settling(np.where(np.arange(400) < 380, 40.0, 200.0), 0.25))


def test_arcs_staircase_has_one_queue_under_test(module: Any) -> None:
    study = module("virtual_arc")
    scenario = study.scenario(study.QUEUES["red"], 2)
    assert [link.queue.__struct_config__.tag for link in scenario.links] == ["qdisc", "droptail"]
    assert sum(group.count for group in scenario.flows) == study.FLOWS[-1]
    assert scenario.duration == study.STEP_S * len(study.FLOWS)
    assert scenario.seed == 2
