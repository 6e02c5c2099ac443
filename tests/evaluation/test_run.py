"""Evaluations: seeds, intervals, paired differences, workers, references, refusals, files, known behaviour of laws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.evaluation import run as running
from netctrl.evaluation.case import plan_case
from netctrl.evaluation.metrics import METRICS, Value, measured
from netctrl.evaluation.record import Evaluation, difference_text, measured_text, read_evaluation
from netctrl.evaluation.rfc7928 import ENTRIES
from netctrl.evaluation.run import QUICK, evaluate
from netctrl.evaluation.subject import subject_of


@pytest.fixture(scope="module")
def pie() -> Evaluation:
    return evaluate("pie", only=["5.1.1", "8.2.3"], seeds=4, quick=True)


def test_the_number_of_workers_changes_nothing(pie: Evaluation) -> None:
    other = evaluate("pie", only=["5.1.1", "8.2.3"], seeds=4, quick=True, n_jobs=2)
    assert other.sections == pie.sections


def test_more_seeds_add_runs_and_change_none(pie: Evaluation) -> None:
    fewer = evaluate("pie", only=["8.2.3"], seeds=2, quick=True)
    more = pie.sections[1].cases[0].measures
    for few, many in zip(fewer.sections[0].cases[0].measures, more, strict=True):
        assert few.values == many.values[:2]


def test_a_value_is_that_of_a_simulation_with_its_seed(pie: Evaluation) -> None:
    case = next(entry for entry in ENTRIES if entry.section == "8.2.3").cases[0].faster(QUICK)
    plan = plan_case(case, subject_of("pie").law)
    scenario = plan.scenario.replace(seed=3)
    found = measured(plan._replace(scenario=scenario), netctrl.simulate(scenario, "packet"))
    assert [each.value for each in found] == [each.values[2] for each in pie.sections[1].cases[0].measures]


def test_intervals_are_students(pie: Evaluation) -> None:
    for measure in pie.sections[1].cases[0].measures:
        values = np.array(measure.values, dtype=float)
        assert measure.mean == pytest.approx(values.mean())
        low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        assert measure.half_width == pytest.approx((high - low) / 2.0)


def test_differences_are_paired_by_seed(pie: Evaluation) -> None:
    """Beside an evaluation of drop-tail by itself and SciPy's interval of a paired test."""
    alone = evaluate("droptail", only=["8.2.3"], seeds=4, quick=True).sections[0].cases[0]
    for ours, theirs in zip(pie.sections[1].cases[0].measures, alone.measures, strict=True):
        found = stats.ttest_rel(ours.values, theirs.values).confidence_interval(0.95)
        assert ours.difference == pytest.approx((found.low + found.high) / 2.0)
        assert ours.difference_half_width == pytest.approx((found.high - found.low) / 2.0)
        assert ours.reference_mean == theirs.mean
        assert ours.differs == (found.low > 0.0 or found.high < 0.0)


def test_seeds_without_a_value_are_left_out() -> None:
    runs = [[Value("loss", "bottleneck", value)] for value in (0.1, float("nan"), 0.3)]
    other = [[Value("loss", "bottleneck", value)] for value in (0.2, 0.2, float("nan"))]
    found = running._measured(runs, other, 0)
    assert found.values == (0.1, None, 0.3)
    assert found.mean == pytest.approx(0.2)
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, 1) * np.std([0.1, 0.3], ddof=1) / np.sqrt(2.0))
    assert (found.difference, found.difference_half_width) == (pytest.approx(-0.1), None)
    nothing = running._measured([[Value("loss", "bottleneck", float("nan"))]], None, 0)
    assert (nothing.mean, nothing.half_width, nothing.reference_mean, nothing.difference) == (None, None, None, None)


def test_the_reference_is_drop_tail_or_cubic_or_reno() -> None:
    names = {"codel": "droptail", "droptail": None, "bbr": "cubic", "cubic": "reno", "reno": "cubic"}
    for law, reference in names.items():
        only = ["8.2.2"] if law in ("codel", "droptail") else ["6.3"]
        assert evaluate(law, only=only, seeds=1, quick=True).sections[0].cases[0].reference == reference


def test_queues_of_their_own_let_few_packets_pass_bulk() -> None:
    """Under FQ-PIE and CAKE as under FQ-CoDel; CoDel's one queue makes them wait for 10 ms."""
    waits = {}
    for law in ("fq_codel", "fq_pie", "cake", "codel"):
        (case,) = evaluate(law, only=["4.6"], seeds=1, quick=True).sections[0].cases
        (waits[law],) = (each.mean for each in case.measures if each.metric == "one-way delay")
    assert max(waits["fq_pie"], waits["cake"]) < waits["fq_codel"] + 1e-3 < waits["codel"] - 9e-3


def test_parameters_are_varied_beside_the_law_itself() -> None:
    found = evaluate("arc", only=["8.3"], seeds=2).sections[0]
    told = {case.name: case for case in found.cases}
    names = [f"{name} × {factor}" for name in ("alpha", "epoch", "target_utilization") for factor in ("0.5", "2")]
    assert list(told) == names
    assert (
        told["target_utilization × 2"].reason == "the law takes a number in (0, 1], as in 0.98 for target_utilization"
    )
    assert {case.reference for case in found.cases} == {"arc unchanged"}
    half = told["target_utilization × 0.5"].measure("utilization")
    assert half is not None
    assert half.mean == pytest.approx(0.49, abs=0.03)
    assert half.reference_mean == pytest.approx(0.97, abs=0.03)


def test_a_law_without_numbers_has_nothing_to_vary() -> None:
    assert evaluate("droptail", only=["8.3"], seeds=1).sections[0].reason == "droptail has no numeric parameter"


def test_what_an_engine_lacks_is_a_reason() -> None:
    found = evaluate("reno", engine="ns3", only=["6.4"], seeds=1).sections[0]
    assert [case.reason for case in found.cases] == ["ns3 has no random loss (links.bottleneck.loss)"] * 2
    assert all(case.measures == () for case in found.cases)


def test_pie_holds_its_target_and_drop_tail_fills_its_buffer(pie: Evaluation) -> None:
    delay = pie.sections[1].cases[0].measure("queueing delay")
    assert delay is not None
    assert delay.mean == pytest.approx(0.015, abs=0.002)
    assert 0.06 < (delay.reference_mean or 0.0) < 0.1
    assert delay.differs


def test_it_draws_delay_and_utilization_of_each_case_and_of_its_reference(pie: Evaluation) -> None:
    axes = pie.plot().axes[0]
    delay, used = (pie.sections[1].cases[0].measure(name) for name in ("queueing delay", "utilization"))
    assert delay is not None and used is not None and delay.mean is not None and used.mean is not None
    points = [tuple(map(float, each)) for line in axes.lines for each in line.get_xydata()]
    assert any(each == pytest.approx((delay.mean, 100.0 * used.mean)) for each in points)
    legend = axes.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["pie", "droptail"]
    with pytest.raises(InvalidValue, match="measure a delay"):
        evaluate("droptail", only=["8.3"], seeds=1).plot()


def test_drop_tail_loses_more_than_the_rfcs_projection() -> None:
    """0.1, 0.5 and 1 % by Section 8.2.1's formula, whose receivers acknowledge every second packet."""
    found = evaluate("droptail", only=["8.2.2", "8.2.3", "8.2.4"], seeds=3)
    losses = [section.cases[0].measure("loss") for section in found.sections]
    assert [each.mean for each in losses if each is not None] == pytest.approx([0.0044, 0.0158, 0.0233], rel=0.15)


def test_a_larger_initial_window_completes_transfers_sooner() -> None:
    cases = evaluate("pie", only=["5.1.2"], seeds=4, quick=True).sections[0].cases
    small, large = (case.measure("completion time") for case in cases)
    assert small is not None
    assert large is not None
    assert all(few > many for few, many in zip(small.values, large.values, strict=True))


def test_reno_takes_less_of_a_link_with_a_longer_round_trip() -> None:
    found = evaluate("codel", only=["6.2"], seeds=2, quick=True).sections[0]
    shares = [case.measure("goodput share") for case in found.cases]
    means = [share.mean for share in shares if share is not None and share.mean is not None]
    assert len(means) == 5
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.6
    assert means[-1] < 0.4


def test_parameters_that_are_given_are_evaluated() -> None:
    found = evaluate("pie", parameters={"target": "40ms"}, only=["8.2.4"], seeds=2, quick=True)
    assert found.law.parameters["target"] == 0.04
    delay = found.sections[0].cases[0].measure("queueing delay")
    assert delay is not None
    assert delay.mean == pytest.approx(0.04, abs=0.005)


def test_a_law_without_a_default_is_evaluated_with_what_it_needs() -> None:
    """A rate of 4 Mbit/s in a link of 20 Mbit/s."""
    found = evaluate("cap", parameters={"rate": "4Mbit"}, only=["6.3"], seeds=1, quick=True)
    used = found.sections[0].cases[0].measure("utilization")
    assert used is not None
    assert used.mean == pytest.approx(0.2, abs=0.01)


def test_a_design_file_is_evaluated(tmp_path: Path) -> None:
    design = netctrl.arc(10, 0.1, 10e6, packet_size_bytes=1000.0, simulation=False)
    design.save(tmp_path / "mine.json")
    found = evaluate(tmp_path / "mine.json", only=["8.2.2"], seeds=1, quick=True)
    assert (found.law.name, found.law.kind, found.law.origin) == ("arc", "aqm", "Design file mine.json")
    assert found.law.parameters["alpha"] == pytest.approx(1.5 * design.law.alpha_per_packet)
    paced = netctrl.pacing(mode="own-rate", max_rate_bit_per_s=5e7)
    paced.save(tmp_path / "paced.json")
    assert subject_of(tmp_path / "paced.json").parameters["max_rate_bit_per_s"] == 5e7


def test_arcs_default_is_designed_for_the_lists_bottleneck() -> None:
    subject = subject_of("arc")
    design = netctrl.arc((6.0, 19.0), 0.1, 10e6, packet_size_bytes=1500.0)
    assert subject.parameters["alpha"] == pytest.approx(design.law.alpha_per_packet)
    assert design.certificate.status == "admissible"


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("law", lambda: evaluate("piee")),
        ("law", lambda: evaluate("cap")),
        ("law", lambda: evaluate(3)),
        ("engine", lambda: evaluate("pie", engine="fluid")),
        ("seeds", lambda: evaluate("pie", seeds=0)),
        ("only", lambda: evaluate("pie", only=["99"])),
        ("only", lambda: evaluate("pie", only="8.2")),
        ("only", lambda: evaluate("pie", only=[])),
        ("only", lambda: evaluate("pie", only=[np.eye(2)])),
        ("engine", lambda: evaluate("pie", engine=np.eye(2))),
        ("quick", lambda: evaluate("pie", quick=1)),
        ("n_jobs", lambda: evaluate("pie", n_jobs=0)),
        ("parameters", lambda: evaluate("pie", parameters={"gain": 1.0})),
        ("parameters", lambda: evaluate("pie", parameters={"target": "soon"})),
        ("parameters", lambda: evaluate("reno", parameters={"beta": 0.7})),
        ("parameters", lambda: evaluate("cap", parameters={"rate": "much"})),
        ("parameters", lambda: evaluate("own-rate", parameters={"psi": 2.0})),
        ("parameters", lambda: evaluate("pie", parameters=["target"])),
    ],
)
def test_what_cannot_be_evaluated_is_refused_by_name(argument: str, call) -> None:
    with pytest.raises(InvalidValue) as refusal:
        call()
    assert refusal.value.argument == argument


def test_an_unknown_law_gets_the_closest_name() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'pie'"):
        evaluate("piee")


def test_a_design_of_another_method_is_refused(tmp_path: Path) -> None:
    netctrl.hftrac(netctrl.read("merge"), 0.01, mu=1.0).save(tmp_path / "h.json")
    with pytest.raises(InvalidValue, match="a Design of arc, pacing or mpcc"):
        evaluate(tmp_path / "h.json")


def test_the_file_is_read_back_and_others_are_refused(pie: Evaluation, tmp_path: Path) -> None:
    pie.save(tmp_path / "pie.json")
    assert read_evaluation(tmp_path / "pie.json") == pie
    content = json.loads((tmp_path / "pie.json").read_text())
    for change in ({"schema": "netctrl.evaluation/2"}, {"more": 1}, {"seeds": "ten"}):
        (tmp_path / "bad.json").write_text(json.dumps(content | change))
        with pytest.raises(FileError, match="evaluation"):
            read_evaluation(tmp_path / "bad.json")


def test_tables_say_what_was_measured(pie: Evaluation) -> None:
    title, rows = pie.table()
    assert title == pie.verdict
    assert title.startswith("pie by RFC 7928: 2 sections run in 2 cases, 0 not run; 4 seeds, 95 % intervals. Medium")
    delay = pie.sections[1].cases[0].measure("queueing delay")
    assert delay is not None
    text = dict(rows)["  14 flows"]
    assert f"queueing {measured_text('queueing delay', delay.mean, delay.half_width)}" in text
    assert text.endswith(" below droptail")
    assert difference_text(delay).startswith("-")
    frame = pie.to_pandas()
    assert len(frame) == sum(len(case.measures) for section in pie.sections for case in section.cases)
    assert set(frame["metric"]) <= set(METRICS)


def test_values_are_text_with_their_units() -> None:
    assert measured_text("loss", 0.0123456, 0.001) == "1.23 % ± 0.1 %"
    assert measured_text("queueing delay", 0.0153, None) == "15.3 ms"
    assert measured_text("fairness", 0.98765) == "0.988"
    assert measured_text("goodput", None) == ""


@pytest.mark.parametrize(
    "engine",
    [
        "packet",
        pytest.param("ns3", marks=[pytest.mark.needs("ns3"), pytest.mark.slow]),
        pytest.param("kernel", marks=pytest.mark.needs("lab")),
    ],
)
def test_every_engine_measures_pie_at_its_target(engine: str) -> None:
    found = evaluate("pie", engine=engine, only=["8.2.4"], seeds=2, quick=True)
    assert found.engine == engine
    case = found.sections[0].cases[0]
    used, delay = case.measure("utilization"), case.measure("queueing delay")
    assert used is not None
    assert delay is not None
    assert used.mean == pytest.approx(0.99, abs=0.02)
    assert delay.mean == pytest.approx(0.0155, abs=0.0025)
    assert 0.06 < (delay.reference_mean or 0.0) < 0.1
