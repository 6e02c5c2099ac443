"""Packets before what kernels gave, in points of the kept study where senders, links and receivers all matter."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from places import EXPERIMENTS


@pytest.fixture
def judges(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("engines.judges")


@pytest.mark.parametrize(
    ("judge", "cell", "sender", "near"),
    [
        ("jittertrap loss", "loss 25±0 ms 2 % 10 MB/s", "bbr", 0.1),  # what is out of order fills the receiver
        ("jittertrap loss", "loss 25±0 ms 0.5 % 10 MB/s", "cubic", 0.2),
        ("jittertrap jitter", "jitter 12±16 ms 0 % 10 MB/s", "bbr", 0.2),  # frozen in DRAIN without room for pieces
        ("jittertrap jitter", "jitter 25±20 ms 0 % 10 MB/s", "cubic", 0.15),  # what was overtaken is refused
        ("rebbr", "1 %", "cubic", 0.2),
    ],
)
def test_kernels_gave_the_same(judges, judge, cell, sender, near):
    """Means of five seeds; Cubic's and BBR's over jitter deviate by a tenth to a quarter from run to run."""
    row = judges.published().loc[judge, cell, sender]
    found = [judges.RUNS[judge.split()[0]](row, seed)[1] for seed in judges.SEEDS]
    assert np.mean(found) == pytest.approx(row.published, rel=near)
