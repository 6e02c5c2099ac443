"""Experiments in the kernel in virtual time: a call inside, and what is run, kept and left out."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import EXPERIMENTS

from netctrl.errors import NetctrlError
from netctrl.kernel.build import Kernel

KERNEL = Kernel(version="6.1", sha256="0", source="linux", compiler="gcc", absent=(), build_s=1.0)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A study's module, which keeps its runs in a temporary folder."""
    monkeypatch.syspath_prepend(EXPERIMENTS)

    def imported(name: str) -> ModuleType:
        found = importlib.import_module(f"linux.{name}")
        monkeypatch.setattr(found, "RESULTS", tmp_path)
        monkeypatch.setattr(found, "chosen_kernel", lambda: KERNEL)
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


def test_runs_of_hftrac_that_are_kept_are_left_out(module: Any) -> None:
    study = module("virtual_hftrac")
    every = study.desired([0, 1])
    assert [case.figure for case, *_ in every[:1]] == [study.ORDER[0]]
    assert study.missing([0, 1]) == [0, 1]
    for case, run, seconds, phase in every:
        if run == 0:
            row = {"run": run, "phase": phase, "seconds": seconds, "loss": 1.0, "disturbed": False}
            study.keep(case._asdict() | row)
    assert study.missing([0, 1]) == [1]
    assert study.desired([0, 1]) == [each for each in every if each[1] == 1]


def test_runs_of_pacing_that_are_kept_are_left_out(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = module("virtual_pacing")
    asked = []

    def called(*args: Any, seed: int) -> dict[str, float]:
        asked.append((*args[1:], seed))
        return {"mbit": 95.0, "rtt_ms": 21.0}

    monkeypatch.setattr(study, "called", called)
    assert [each.number for each in study.make([1])] == [1]
    assert asked == [(*case, 1) for case in study.cases()]
    assert study.missing([1, 2]) == [2]
    assert study.desired([1]) == []
