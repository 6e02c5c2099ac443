"""Claims: verdicts follow from what is stated and what is measured, by one rule, whoever states it."""

from __future__ import annotations

import csv
import importlib
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import EXPERIMENTS

from netctrl.core.errors import InvalidValue
from netctrl.model.claim import RELATIONS, RULE, SOURCES, Claim
from netctrl.model.datasets import PAPERS, claims, data_path

ALL = [(paper, claim) for paper in PAPERS for claim in claims(paper)]
OF_A_PAPER = {"reproduced", "partly reproduced", "not reproduced"}
GRADES = ("not reproduced", "partly reproduced", "reproduced")


def claim(relation: str, stated: float, value: float, half: float | None = None, source: str = "paper") -> Claim:
    runs = None if half is None else 5
    return Claim("a", "Fig. 1", "it is so", source, relation, stated, "ms", value, half, runs, 0.0, "")


@pytest.mark.parametrize(
    ("relation", "stated", "value", "half", "verdict"),
    [
        ("about", 0.145, 0.1619, None, "partly reproduced"),  # 12 % more was reproduced once, and 12 % less partly
        ("about", 1.1, 0.9694, None, "partly reproduced"),
        ("about", 0.54, 0.9557, None, "not reproduced"),
        ("about", 0.86, 0.8722, None, "reproduced"),
        ("about", 1.0, 1.05, 0.06, "partly reproduced"),
        ("about", 1.0, 1.3, 0.25, "partly reproduced"),
        ("=", 175530, 175530, None, "reproduced"),
        ("=", 585.49, 575.976, None, "not reproduced"),
        (">", 9.5, 9.26, None, "partly reproduced"),
        (">=", 30.0, 22.04, None, "not reproduced"),
        ("<", 1.0, 1.0, None, "partly reproduced"),
        ("<=", 1.0, 1.0, None, "reproduced"),
        (">=", 0.5, 0.263, 0.39, "partly reproduced"),
        (">", 0.0, 0.416, 0.138, "reproduced"),
        ("all", 1.0, 1.0, None, "reproduced"),
        ("all", 1.0, 0.69, None, "partly reproduced"),
        ("all", 1.0, 0.04, None, "not reproduced"),
    ],
)
def test_verdicts_by_hand(relation, stated, value, half, verdict) -> None:
    assert claim(relation, stated, value, half).verdict == verdict


def test_an_order_in_words_has_no_margin_and_ours_holds_or_fails() -> None:
    assert claim(">", 1.0, 0.968, 0.0016, "words").verdict == "not reproduced"
    assert claim(">", 1.0, 0.968, 0.04, "words").verdict == "partly reproduced"
    assert claim(">", 1.0, 0.968, 0.04, "ours").verdict == "fails"
    assert claim("about", 1.0, 1.05, source="ours").verdict == "holds"
    assert claim("", 0.0, 1.0, source="ours").verdict == "measured"
    assert claim("=", 1.0, 1.0)._replace(value=None).verdict == "open"


POSITIVE = st.floats(1e-6, 1e6)


@given(POSITIVE, st.floats(0.0, 0.5), st.floats(0.0, 1.0), st.sampled_from(("about", "=")))
def test_more_and_less_by_as_much_are_judged_alike(stated, miss, half, relation) -> None:
    if min(abs(miss - edge) for edge in (0.001, 0.1, 0.2)) < 1e-9:
        return
    more, less = (claim(relation, stated, stated * (1.0 + sign * miss), stated * half) for sign in (1.0, -1.0))
    if min(abs(abs(miss + sign * half) - edge) for sign in (1, -1) for edge in (0.001, 0.1)) > 1e-9:
        assert more.verdict == less.verdict


@given(POSITIVE, POSITIVE, st.floats(0.0, 1e3), st.sampled_from(("paper", "words")))
def test_bounds_are_mirror_images(stated, value, half, source) -> None:
    below, above = claim("<", stated, value, half, source), claim(">", -stated, -value, half, source)
    assert below.verdict == above.verdict


@given(st.sampled_from([r for r in RELATIONS if r not in ("", "all")]), POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_a_wider_interval_never_makes_sure(relation, stated, value, half, wider) -> None:
    """Neither of a yes nor of a no."""
    narrow, wide = (claim(relation, stated, value, width) for width in (half, half + wider))
    if wide.verdict in ("reproduced", "not reproduced"):
        assert narrow.verdict == wide.verdict


@pytest.mark.parametrize("paper", PAPERS)
def test_no_verdict_is_typed(paper) -> None:
    with data_path(f"claims/{paper}.csv").open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        assert tuple(rows.fieldnames or ()) == Claim._fields
        names = [row["id"] for row in rows]
    assert len(set(names)) == len(names)


def test_claims_are_whole() -> None:
    for paper, each in ALL:
        assert each.source in SOURCES, (paper, each.id)
        assert each.relation in RELATIONS, (paper, each.id)
        assert (each.stated is None) == (each.relation == ""), (paper, each.id)
        assert each.relation or each.source == "ours", (paper, each.id, "a paper's row states something")
        assert each.half_width is None or (each.half_width >= 0.0 and (each.runs or 0) > 1), (paper, each.id)
        assert "ours, not the paper's" not in each.why, (paper, each.id)


def test_reproduced_is_said_of_a_paper_s_statement_alone() -> None:
    for paper, each in ALL:
        if each.where.startswith("ours") or ", ours" in each.where:
            assert each.source == "ours", (paper, each.id)
        assert (each.verdict in OF_A_PAPER) == (each.source != "ours"), (paper, each.id)


REASON = re.compile("one seed|2 seeds|two seeds|no interval|run each time")
IN_NS3 = {
    "hftrac": ("Fig. 13", "Fig. 14", "Fig. 15a", "Fig. 15b", "Fig. 16"),
    "connet": ("ns-3, LQI", "ns-3, printed gains"),
}


def test_full_runs_in_ns3_have_five_seeds_and_an_interval_or_say_why_not() -> None:
    found = 0
    for paper, each in ALL:
        of_arc = paper == "arc" and each.where.startswith("Fig. ") and each.where.endswith(", ns-3")
        if not (of_arc or each.where in IN_NS3.get(paper, ()) or (paper, each.where) == ("pacing", "ns-3")):
            continue
        found += 1
        enough = (each.runs or 0) >= 5 and each.half_width is not None
        assert enough or REASON.search(each.why), (paper, each.id, each.why)
    assert found > 80


def test_an_unknown_paper_is_refused() -> None:
    with pytest.raises(InvalidValue, match="paper"):
        claims("nature")


def test_the_rule_names_its_tolerances() -> None:
    for number in ("±10 %", "±20 %", "±0.1 %", "at most 10 %", "at least half", "95 %"):
        assert number in RULE


@pytest.fixture
def common(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("common")


def test_values_over_runs_have_student_s_interval(common) -> None:
    data = pd.DataFrame({"seed": [1, 1, 2, 2, 3, 3], "x": [1.0, 3.0, 2.0, 4.0, 3.0, 5.0]})
    found = common.over_runs(data, lambda one: one.x.mean())
    assert (found.value, found.runs) == (3.0, 3)
    np.testing.assert_allclose(found.half_width, 4.302652730 / np.sqrt(3.0), rtol=1e-9)  # t of 2, 97.5 %
    assert common.over_runs(data[data.seed == 1], lambda one: one.x.max()) == (3.0, None, 1)


def test_a_quotient_s_interval_is_that_of_its_residuals(common) -> None:
    one, other = pd.Series([2.0, 4.0, 6.0]), pd.Series([1.0, 2.0, 3.0])
    assert common.quotient(one, other) == (2.0, 0.0, 3)
    rng = np.random.default_rng(1)
    draws = [common.quotient(*(pd.Series(x + 0.1 * rng.standard_normal(5)) for x in (3.0, 2.0))) for _ in range(400)]
    inside = np.mean([abs(each.value - 1.5) < each.half_width for each in draws])
    assert 0.92 < inside < 0.98


def test_what_fell_is_stored_and_nothing_else(common, monkeypatch, tmp_path) -> None:
    text = data_path("claims/arc.csv").read_text(encoding="utf-8")
    (tmp_path / "arc.csv").write_text(text, encoding="utf-8")
    monkeypatch.setattr(common, "CLAIMS", tmp_path)
    first, second = claims("arc")[:2]
    same, other = (
        common.Compared(each, each.measured(value, None, None))
        for each, value in ((first, first.value), (second, -170.0))
    )
    assert same.holds
    assert not other.holds
    assert (second.verdict, other.now.verdict) == ("reproduced", "partly reproduced")
    common.store("arc", [same, other])
    before, after = (content.splitlines() for content in (text, (tmp_path / "arc.csv").read_text(encoding="utf-8")))
    changed = [line for line, old in zip(after, before, strict=True) if line != old]
    assert len(changed) == 1
    assert changed[0].startswith(f"{second.id},")
    assert ",-170," in changed[0]


def test_a_caption_counts_in_one_line(common) -> None:
    said = common.verdicts("hftrac", "Fig. 2", "Fig. 3", "Fig. 4")
    assert "\n" not in said
    assert said.startswith("Of the paper's statements: ")
    assert "; of ours: " in said
    assert common.verdicts("hftrac", "no such place") == ""
