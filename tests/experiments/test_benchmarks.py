"""Benchmarks: peers give the same answers, and a row whose answers differ has no ratio and fails the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest
from places import ROOT

BENCHMARKS = ROOT / "experiments" / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[SimpleNamespace]:
    """Modules of the benchmarks by name; their short names are theirs only here."""
    names = ("rows", "arc", "fifo", "fluid", "links", "run")
    before, path = {name: sys.modules.pop(name) for name in names if name in sys.modules}, list(sys.path)
    sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent)]
    try:
        yield SimpleNamespace(**{name: __import__(name) for name in names})
    finally:
        sys.path[:] = path
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)


def turns(bench, ours, theirs):
    return bench.rows.Turns([1.0, 1.1], [20.0, 22.0], (ours, theirs))


def test_a_ratio_counts_only_where_the_answers_agree(bench):
    both = turns(bench, [1.0, 2.0], [1.0, 2.0 + 1e-12])
    rows = [
        bench.rows.against("same", "peer", both, ">= 8x", bench.rows.relative(*both.answers, 1e-9)),
        bench.rows.against("other", "peer", both, ">= 8x", bench.rows.Agreement("by", 1.0, 1e-9)),
        bench.rows.against("nothing", "peer", both, "", "another thing"),
    ]
    assert [row.counts for row in rows] == [True, False, True]
    same, other, nothing = bench.rows.table(rows).splitlines()[1:]
    assert "  20  " in same
    assert same.endswith("met")
    assert "  20  " not in other
    assert other.endswith("DIFFERS")
    assert "by: 1e+00, at most 1e-09" in other
    assert "another thing" in nothing


@pytest.mark.parametrize(
    ("target", "seconds", "ratio", "met"),
    [
        (">= 8x", 9.0, 8.0, True),
        (">= 8x", 9.0, 7.9, False),
        ("<= 3x the time", 9.0, 0.34, True),
        ("<= 3x the time", 9.0, 0.33, False),
        ("< 20 ns", 2e-8, 1.0, False),
        ("<= 12.5 ms (8e7/s) and >= 20x", 0.0125, 20.0, True),
        ("<= 12.5 ms (8e7/s) and >= 20x", 0.0126, 20.0, False),
        ("<= 12.5 ms (8e7/s) and >= 20x", 0.0125, 19.0, False),
        ("<= 0.1 ms", 1.1e-4, 1.0, False),
        ("<= 3 s", 2.9, 0.1, True),
        ("none", 1.0, 1.0, None),
    ],
)
def test_a_target_s_text_is_what_is_asked(bench, target, seconds, ratio, met):
    assert bench.rows.is_met(target, seconds, ratio) is met


@pytest.mark.parametrize(
    ("ours", "theirs"), [([nan], [1.0]), ([1.0], [nan]), ([inf], [1.0]), ([1.0, 2.0], [1.0]), ([], [])]
)
def test_what_has_no_finite_difference_does_not_agree(bench, ours, theirs):
    with np.errstate(invalid="ignore"):
        assert not bench.rows.relative(ours, theirs, 1e-3).holds


def test_a_run_with_a_row_that_differs_fails(bench, monkeypatch, capsys):
    for difference, status in ((0.0, 0), (1.0, 1)):
        row = bench.rows.against("it", "peer", turns(bench, 0, 0), "", bench.rows.Agreement("by", difference, 0.5))
        monkeypatch.setattr(bench.arc, "rows", lambda row=row: [row])
        monkeypatch.setattr(sys, "argv", ["run.py", "arc"])
        assert bench.run.main() == status
    assert "DIFFERS" in capsys.readouterr().out


def test_the_fluid_s_peer_computes_the_same(bench):
    """Explicit midpoint, the delays' interpolation and ARC's epochs in NumPy: a second way to the same backlogs."""
    assert bench.fluid.agree(classes=20, steps=2000).holds


def test_the_margins_and_limits_of_arc_s_peers_are_ours(bench, monkeypatch):
    monkeypatch.setattr(bench.arc, "alternate", once(bench))
    rows = [bench.arc.exact_margins(), bench.arc.margins_by_isolation(), bench.arc.sampled_limit()]
    assert [(row.what, row.counts) for row in rows] == [(row.what, True) for row in rows]


def test_an_access_link_s_peers_count_and_wait_the_same(bench):
    scenario = bench.fifo.access_link(limit=1000, duration=3, control=bench.fifo.Track())
    (packets, delay), (count, other) = bench.fifo.ours(scenario, 10, 3), bench.fifo.by_numpy(scenario, 10, 3)
    assert bench.rows.relative([packets, delay / other], [count, 1.0], 1e-9).holds


def test_a_network_s_peer_adds_up_the_same(bench):
    testbed = bench.links.read_network(bench.links.network_path("testbed"))
    policy = bench.links.HftracPolicy(architecture="god", mu=0.1)
    ready, demand = bench.links.prepared(testbed, policy, 50)
    assert bench.rows.relative(bench.links.by_kernel(ready, demand), bench.links.by_numpy(ready, demand), 1e-9).holds


def once(bench):
    """The answers of two ways, without timing them."""
    return lambda ours, peer, rounds, *_, **__: bench.rows.Turns([1.0], [1.0], (ours(), peer()))
