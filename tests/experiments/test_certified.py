"""Certificates of random boxes against the onset of oscillation in an independent nonlinear fluid."""

from __future__ import annotations

import importlib

import pandas as pd
import pytest
from places import EXPERIMENTS, ROOT


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.certified")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 200, 7))
def test_the_fluid_of_a_random_box_begins_to_oscillate_at_the_certified_limit(study, number: int) -> None:
    row = study.onset_row(number)
    assert row["onset"] == pytest.approx(1.0, abs=study.WITHIN)
    assert row["inside_stable"]
    kept = pd.read_csv(ROOT / "data" / "results" / "certified-onset.csv").set_index("number").loc[number]
    assert row["gain_margin_db"] == pytest.approx(kept.gain_margin_db, abs=0.02)


@pytest.mark.slow
def test_random_queues_have_the_share_of_the_limit_that_was_asked_for(study) -> None:
    for kind, engine in (("dualpi2", "kernel"), ("pie", "packet")):
        _, pair = next(study.queues(kind, engine))
        for share, box in zip(study.SHARES, pair, strict=True):
            loop = study.loops_at(box, box.flows[0], box.rtt[0])[0]
            assert study.stable_gains(loop, box.flows[0], box.rtt[0]).factor == pytest.approx(1.0 / share, abs=0.01)
