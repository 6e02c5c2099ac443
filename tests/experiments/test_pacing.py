"""The study of pacing in ns-3: what is kept of it, what is missing, and what it shows."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from places import EXPERIMENTS

SHOWN = {"throughput_bit_per_s": 9e7, "throughput_std_bit_per_s": 1e5, "rtt_mean_s": 0.02, "rtt_99_s": 0.03}


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("pacing.bottleneck")


@pytest.fixture
def empty(study, monkeypatch, tmp_path):
    """The study, of which nothing is kept."""
    monkeypatch.setattr(importlib.import_module("study"), "RESULTS", tmp_path)
    return study


def keep(study, row: dict[str, object]) -> None:
    study.STUDY.keep(tuple(row[name] for name in study.COLUMNS), importlib.import_module("study").Made([row]))


def row(study, scheme: str, seed: int, **values: float) -> dict[str, object]:
    named = {"point": next(iter(study.POINTS)), "scheme": scheme, "seed": seed}
    return named | SHOWN | {"sent_again": 0.0, "delay_mean_s": 1e-3} | values


def test_what_is_kept_is_not_missing_any_more(empty, tmp_path):
    study, first, every = empty, next(iter(empty.POINTS)), 2 * len(empty.CASES)
    with pytest.raises(FileNotFoundError, match=r"python experiments/full\.py pacing-ns3"):
        study.table(first)
    assert len(study.STUDY.missing((1, 2))) == every
    for scheme, seed in (("Cubic", 2), ("H-TCP", 1), ("H-TCP", 2)):
        keep(study, row(study, scheme, seed))
    assert study.STUDY.kept().scheme.tolist() == ["H-TCP", "H-TCP", "Cubic"]
    lacking = study.STUDY.missing((1, 2))
    assert (first, "Cubic", 1) in lacking and (first, "Cubic", 2) not in lacking
    assert len(lacking) == every - 3
    assert (tmp_path / "pacing-ns3.json").exists()


def test_a_table_has_means_with_student_s_intervals(empty):
    for scheme in empty.SCHEMES:
        for seed in (1, 2, 3):
            keep(empty, row(empty, scheme, seed, rtt_mean_s=0.02 + 1e-3 * seed))
    found = empty.table(next(iter(empty.POINTS)))
    np.testing.assert_allclose(found.rtt_mean_s, 22.0)
    np.testing.assert_allclose(found.rtt_mean_s_half_width, 4.302652730 / np.sqrt(3.0), rtol=1e-9)  # t of 2, 97.5 %
    assert (found.throughput_bit_per_s == 90.0).all()
    assert (found.seeds == 3).all()


def test_a_scheme_s_flow_has_its_law(study):
    point = "10 Mbit/s, 50 ms, buffer 100 ms"
    assert study.SCHEMES["paper, R = 2 C"].law(1e7).max_rate_bit_per_s == 2e7
    assert study.SCHEMES["own rate"].law(1e7).max_rate_bit_per_s == 1e11
    assert study.SCHEMES["BBR"].law(1e7) is None
    assert study.SCHEMES["fixed cap, 0.95 C"].under(point, 3).flows[0].sender.rate == 9.5e6


def test_five_seeds_of_each_point_and_scheme_are_stored(study):
    assert len(study.STUDY.read(complete=True)) == 5 * len(study.CASES)


def test_the_own_rate_law_s_rtt_is_below_bbr_s_at_97_percent_of_its_throughput(study):
    """At all points with cross traffic, intervals apart; without, BBR's mean RTT is the lower one by 12 %."""
    for point, given in study.POINTS.items():
        rows = study.table(point).set_index("scheme")
        ours, bbr = rows.loc["own rate"], rows.loc["BBR"]
        assert ours.throughput_bit_per_s >= 0.97 * bbr.throughput_bit_per_s
        if given["cross"] > 0.0:
            assert ours.rtt_99_s < bbr.rtt_99_s
            assert ours.rtt_mean_s + ours.rtt_mean_s_half_width < bbr.rtt_mean_s - bbr.rtt_mean_s_half_width
        else:
            assert 0.0 < ours.rtt_mean_s - bbr.rtt_mean_s < 0.13 * bbr.rtt_mean_s


def test_the_fluid_has_the_same_throughput_and_delay(study):
    """But where nothing disturbs the law's queue in ns-3, which then swings."""
    for point, given in study.POINTS.items():
        both = study.beside_fluid(point)
        if given["cross"] > 0.0:
            assert both["ns-3 utilization"] == pytest.approx(both["fluid utilization"], abs=5e-3)
            assert both["ns-3 delay"] == pytest.approx(both["fluid delay"], rel=0.2)
