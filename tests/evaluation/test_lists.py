"""Scenario lists: every section of both RFCs has cases, metrics or a reason; cases are scenarios of bounded work."""

from __future__ import annotations

from math import sqrt

import pytest

from netctrl.evaluation import rfc7928, rfc9743
from netctrl.evaluation.case import BOTTLENECK, LAW, Entry, plan_case
from netctrl.evaluation.metrics import EXTRA, METRICS
from netctrl.evaluation.rfc7928 import LEVELS, flows_for
from netctrl.evaluation.run import evaluate, sections_of
from netctrl.evaluation.subject import known_laws, subject_of
from netctrl.scenario.links import Links

RFC_7928 = """2.1 2.2 2.3 2.4 2.5 2.6 2.7 3.2 3.3 4.4 4.5 4.6 5.1.1 5.1.2 5.2 5.3 5.4 6.2 7.2 8.2.2 8.2.3 8.2.4 8.2.5
8.2.6 8.3 9.1 9.2 10.2 11 12"""
"""Sections of RFC 7928 with a metric, a test or a demand on an AQM."""
RFC_9743 = """5.1.1 5.1.2 5.1.3 5.1.4 5.1.5 5.2.1 5.2.2 5.2.3 5.3.1 5.3.2 6.1 6.2 6.3 6.4 7.1 7.2 7.3 7.4 7.5 7.6 7.7
7.8 7.9 7.10 7.11"""
"""Sections of RFC 9743 with a criterion or a scenario."""
LISTS = {"7928": rfc7928.ENTRIES, "9743": rfc9743.ENTRIES}
PARAMETERS = {"cap": {"rate": "1Mbit"}}
CASES = [(number, entry, case) for number, entries in LISTS.items() for entry in entries for case in entry.cases]


def test_every_section_of_the_rfcs_is_listed_in_their_order() -> None:
    ours = [entry.section for entry in rfc7928.ENTRIES]
    assert [section for section in ours if section != "4.5 (RFC 9332)"] == RFC_7928.split()
    assert [entry.section for entry in rfc9743.ENTRIES] == RFC_9743.split()


@pytest.mark.parametrize("entry", [entry for entries in LISTS.values() for entry in entries], ids=lambda e: e.section)
def test_a_section_has_cases_or_metrics_or_a_reason(entry: Entry) -> None:
    assert bool(entry.cases) + bool(entry.metrics) + bool(entry.reason and entry.only is None) == 1
    assert (entry.only is not None) <= bool(entry.cases and entry.reason)
    assert set(entry.metrics) <= set(METRICS)
    assert len({case.name for case in entry.cases}) == len(entry.cases)


@pytest.mark.parametrize("name", known_laws())
def test_every_case_is_a_scenario_with_the_law_in_its_place(name: str) -> None:
    subject = subject_of(name, PARAMETERS.get(name))
    for entry in sections_of(subject):
        for case in entry.cases:
            plan = plan_case(case, subject.law)
            assert plan.scenario.kind is Links
            assert plan.scenario.links[0].id == BOTTLENECK
            assert sorted(row for rows in plan.rows.values() for row in rows) == list(range(len(plan.scenario.flows)))
            queues = {repr(link.queue) for link in plan.scenario.links}
            senders = [group.sender for group in plan.scenario.flows]
            if subject.kind == "aqm":
                assert queues == {repr(subject.law)}
            else:
                assert subject.law in senders


@pytest.mark.parametrize(("number", "entry", "case"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_a_case_keeps_to_the_rules_of_metrics(number: str, entry: Entry, case) -> None:
    assert sum(group.completes for group in case.groups) <= 1, "objects of all groups are measured together"
    assert set(case.extra) <= set(EXTRA)
    if "packets per round trip" in case.extra:
        assert all(group.endless for group in case.groups)
    assert all(name in {group.id for group in case.groups if group.endless} for name in case.ratio or ())
    assert (case.queue is LAW) == (number == "7928")
    assert any(group.sender is LAW for group in case.groups) == (number == "9743")


def test_the_work_of_an_evaluation_is_bounded() -> None:
    """A run is at most 1.2 million packets, a seed of all cases at most ten million."""
    assert max(case.packets for _, _, case in CASES) <= 1.2e6
    for entries in LISTS.values():
        assert sum(case.packets for entry in entries for case in entry.cases) <= 1e7


def test_the_levels_of_congestion_are_those_of_the_rfcs_formula() -> None:
    """Section 8.2.1: N = S sqrt(1/0.76) sqrt(l), S of 125 kB on the way and 125 kB of buffer in packets of 1500 B."""
    space = 250e3 / 1500.0
    for level, loss in (("mild", 1e-3), ("medium", 5e-3), ("heavy", 1e-2)):
        assert LEVELS[level] == round(space * sqrt(1.0 / 0.76) * sqrt(loss))
        assert 0.76 * (LEVELS[level] - 0.5) ** 2 < loss * space**2 < 0.76 * (LEVELS[level] + 0.5) ** 2
    assert (flows_for(0.76, 10.0), flows_for(0.19, 10.0)) == (10, 5)


def test_the_varying_load_has_the_levels_flows_in_turn() -> None:
    (case,) = next(entry for entry in rfc7928.ENTRIES if entry.section == "8.2.5").cases
    for phase in range(12):
        now = 20.0 * phase + 10.0
        on = sum(g.count for g in case.groups if g.start[0] <= now and (g.stop is None or now < g.stop))
        assert on == (6, 14, 19)[phase % 3]


def test_a_quick_case_keeps_its_delays_and_shortens_its_times() -> None:
    (case,) = next(entry for entry in rfc9743.ENTRIES if entry.section == "7.9").cases
    quick = case.faster(0.5)
    assert (quick.duration, quick.warmup, quick.rtt, quick.interval) == (60.0, 10.0, 0.04, 0.02)
    assert [(turn.at, turn.capacity, turn.delay) for turn in quick.turns] == [(30.0, 4e6, 0.068), (45.0, 20e6, 0.008)]
    assert quick.groups[0].start == (0.0, 0.5)


def test_the_path_of_a_case_has_its_round_trip_rate_and_buffer() -> None:
    (case,) = next(entry for entry in rfc9743.ENTRIES if entry.section == "7.5").cases
    plan = plan_case(case, "reno", noise=False)
    (link,) = plan.scenario.links
    assert link.buffer == 20e6 * 0.6 / 8.0
    assert (link.capacity, link.jitter) == (20e6, 0.0)
    assert all(group.rtt == pytest.approx((0.588, 0.612)) for group in plan.scenario.flows)
    assert plan_case(case, "reno").scenario.links[0].jitter == pytest.approx(1500 * 8.0 / 20e6)


def test_sections_are_found_by_their_numbers() -> None:
    subject = subject_of("pie")
    assert [entry.section for entry in sections_of(subject, ["8.2", "4.5"])] == [
        *("4.5", "4.5 (RFC 9332)", "8.2.2", "8.2.3", "8.2.4", "8.2.5", "8.2.6")
    ]
    assert [entry.section for entry in sections_of(subject_of("reno"), ["7.1"])] == ["7.1"]


def test_a_law_that_a_section_is_not_for_gets_its_reason() -> None:
    found = evaluate("codel", only=["4.5 (RFC 9332)"], seeds=1)
    assert found.sections[0].reason == "the law doesn't tell scalable senders from classic ones"
    assert found.sections[0].cases == ()


def section(number: str) -> Entry:
    return next(entry for entry in rfc7928.ENTRIES if entry.section == number)


def test_the_senders_are_those_of_rfc_7928s_section_5() -> None:
    (same,) = section("5.1.1").cases
    assert [(g.count, g.sender, g.endless) for g in same.groups] == [(1, "reno", True)]
    assert same.initial_window == 3
    assert [case.initial_window for case in section("5.1.2").cases] == [3, 10]
    for case in section("5.1.2").cases:
        long, short = case.groups
        assert long.endless
        assert (long.count, short.count) == (1, 1)
        assert 10 * 1500 < short.offers < 100 * 1460
        assert short.start[0] > long.start[1] + 20.0
    alone, beside = section("5.3").cases
    assert alone.groups[0].offers.rate > alone.capacity
    assert 0.5 < beside.groups[1].offers.rate / beside.capacity < 1.0
    assert beside.groups[1].stop is None


def test_round_trips_are_those_of_section_6_2_and_with_ecn_of_4_5() -> None:
    for number, ecn in (("6.2", False), ("4.5", True)):
        cases = [case for case in section(number).cases if case.ratio == ("other", "usual")]
        assert [case.groups[1].rtt for case in cases] == [0.005, 0.02, 0.05, 0.2, 0.56]
        assert all(g.rtt == 0.1 for case in cases for g in case.groups if g.id == "usual")
        assert all(g.ecn == ecn for case in cases for g in case.groups)


def test_the_traffic_is_that_of_sections_7_2_and_9_1() -> None:
    """Rows of the table of Section 7.2: video, Web with a window of 10, CBR, bulk."""
    table = [[sum(g.id == name for g in case.groups) for name in ("video", "web", "cbr", "bulk")]
             for case in section("7.2").cases]  # fmt: skip
    assert table == [[0, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]]
    for case in section("7.2").cases:
        assert case.initial_window == 10
        assert all(g.count == 1 for g in case.groups)
        web = next(g for g in case.groups if g.id == "web").offers
        assert web.objects_per_page == 6
        least = web.mean_object * (1.0 - 1.0 / web.pareto_shape)  # Pareto's smallest value
        assert least >= 9 * 1e3
    (mix,) = section("9.1").cases
    assert {g.id: g.count for g in mix.groups} == {
        **{"bulk": 5, "web": 6, "voice": 1, "voice-back": 1, "cbr": 1, "video": 1}
    }
    assert next(g for g in mix.groups if g.id == "voice-back").path == ("back",)


def test_both_directions_and_both_queues_have_mild_congestion() -> None:
    (ways,) = section("9.2").cases
    assert [(g.count, g.path) for g in ways.groups] == [(6, (BOTTLENECK,)), (6, ("back",))]
    (multi,) = section("10.2").cases
    assert {g.id: (g.count, g.path) for g in multi.groups} == {"A": (3, (BOTTLENECK, "second")), "B": (3, ("second",))}
