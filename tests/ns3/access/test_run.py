"""Exported access links are compiled and run: packet by packet against the FIFO simulator, and a closed form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from access_links import crossing, link_of, sources

from netctrl.cli.design import main as design_main
from netctrl.cli.export import main
from netctrl.datasets import model_path
from netctrl.engines.case import case_of, tracking_plan
from netctrl.errors import NetctrlError
from netctrl.laws.tracking.reference_governor import govern, reference_governor
from netctrl.laws.tracking.tracking import step_tracking, tracking_gains
from netctrl.model.design.design import provenance, read_design
from netctrl.model.identified import read_model
from netctrl.model.law import LqiLaw
from netctrl.ns3.access.read import run_access_link
from netctrl.ns3.access.render import render
from netctrl.ns3.program import Ns3, compile_program, find_ns3, table_name
from netctrl.scenario.access.flows import PremiumFlow, RegulatorFailure
from netctrl.scenario.access.plan import AccessLinkPlan, AccessLinkTracking, access_link_plan
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.draws import run_table
from netctrl.sim.access.run import simulate_access_link
from netctrl.sim.access.track import track_access_link

PRINTED = read_model(model_path("connet-paper"))
OPEN = 2
TOLERANCE = {"delay [ms]": 1e-4, "losses": 0.001, "law": 1e-11}
"""Times are whole ns; losses differ where packets come and go at the same time; the law's steps, relative."""


def busy() -> Scenario:
    """All that a link may have: two hops, losses, open regulators, a failure, cross traffic, two sizes.

    Losses are at the first hop only. What two hops in tandem send comes and goes at the same times, which floats tell
    apart by their last bits, and ns-3 doesn't.
    """
    regulated = sources(
        {"share": 0.5, "failures": (RegulatorFailure(start=5.3, stop=7.7, rate=50e6),)},
        {"count": 1, "burst": 3, "share": 0.2, "offered": 30e6},
        {"count": 3, "burst": 20, "share": 0.3},
    )
    cross = crossing({"hop": 0, "rate": 20e6}, {"hop": 0, "rate": 5e6, "burst": 4})
    traffic = {"regulated": regulated, "cross": cross, "premium": PremiumFlow(size=200)}
    return link_of(name="busy", hops=2, limit=40, duration=12.0, seed=7, **traffic)


def plan_of(scenario: Scenario) -> AccessLinkPlan:
    """Rate and burst for delay and throughput, by integral action with a governor; gains by hand."""
    law = LqiLaw(
        interval_s=1.0,
        inputs=("R", "burst"),
        outputs=("delay", "throughput"),
        input_units=("Mbit/s", ""),
        output_units=("ms", "Mbit/s"),
        input_offset=np.array([55.0, 6.0]),
        output_offset=np.array([0.7, 55.0]),
        low=np.array([0.0, 1.0]),
        high=np.array([95.0, 20.0]),
        A=np.array([[0.5]]),
        B=np.array([[0.01, 0.02]]),
        C=np.array([[0.5], [0.0]]),
        D=np.array([[0.01, 0.03], [1.0, 0.0]]),
        L=np.array([[0.25, 0.0]]),
        K=np.array([[0.0], [5.0]]),
        W=np.eye(2),
        integral_gain=np.array([[0.0, -0.5], [-4.0, 0.05]]),
    )
    reference = np.repeat([[0.7, 55.0], [0.6, 40.0], [3.0, 99.0]], 4, axis=0)
    governor = reference_governor(law, margin=0.05)
    return access_link_plan(scenario, law, reference, measured="period", start=OPEN, first_rate=40.0, governor=governor)


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("busy")
    for name, text in render(busy(), plan_of(busy()), provenance=provenance()).items():
        (folder / name).write_text(text, encoding="utf-8")
    compile_program(folder, find_ns3())
    return folder


@pytest.fixture(scope="module")
def seen() -> list[float]:
    """What the progress callback was told."""
    return []


def run_in(folder: Path, scenario: Scenario, **options) -> AccessLinkTracking:
    plan = plan_of(scenario)
    (folder / table_name(scenario.seed)).write_bytes(run_table(scenario, plan))
    return run_access_link(folder, scenario, plan, ns3=find_ns3(), provenance=provenance(), **options)


@pytest.fixture(scope="module")
def tracking(program, seen) -> AccessLinkTracking:
    return run_in(program, busy(), progress=seen.append)


def replayed(run: AccessLinkTracking) -> pd.DataFrame:
    """The FIFO simulator, driven by the rates and bursts that ns-3's loop chose."""
    result = run.result
    return simulate_access_link(result.scenario, result.rate_bit_per_s, result.burst).to_pandas()


@pytest.mark.needs("ns3")
def test_packets_are_those_of_the_fifo_simulator(tracking):
    found, expected = tracking.result.to_pandas(), replayed(tracking)
    assert list(found) == list(expected)
    losses = ["premium_lost", "other_lost"]
    lost, desired = found[losses].to_numpy(), expected[losses].to_numpy()
    assert desired.sum(axis=0).min() > 500
    assert np.abs(lost - desired).sum() <= TOLERANCE["losses"] * desired.sum()
    alike = (lost == desired).all(axis=1)
    assert alike.sum() >= 10
    tolerance = {"rtol": 0.0, "atol": TOLERANCE["delay [ms]"], "check_dtype": False}
    # Moving averages and backlogs of a period begin with what is left of the one before.
    after = [name for name in expected if not name.startswith(("delay", "jitter", "backlog"))]
    pd.testing.assert_frame_equal(found.loc[alike, after], expected.loc[alike, after], **tolerance)
    both = alike & np.append(True, alike[:-1])
    pd.testing.assert_frame_equal(found[both], expected[both], **tolerance)


@pytest.mark.needs("ns3")
def test_the_loop_is_that_of_the_runtime(tracking):
    """From what ns-3 measured, the law in Python commands what ns-3 commanded."""
    plan, result = plan_of(busy()), tracking.result
    state, cut = plan.state, plan.law.output_offset
    assert np.isinf(result.rate_bit_per_s[:OPEN]).all()
    assert np.isnan(tracking.commanded[:OPEN]).all()
    assert not result.burst[:OPEN].any()
    fields = np.column_stack([getattr(result, name) for name in plan.signals])
    np.testing.assert_allclose(tracking.measured, fields * plan.scale, rtol=1e-14)
    for k in range(OPEN, 12):
        np.testing.assert_allclose(tracking.commanded[k], state.commanded, rtol=TOLERANCE["law"])
        assert result.rate_bit_per_s[k] == pytest.approx(1e6 * max(state.applied[0], 0.0), rel=TOLERANCE["law"])
        assert result.burst[k] == max(1, round(state.applied[1]))
        cut = govern(plan.governor, state, cut, plan.reference[k])
        np.testing.assert_allclose(tracking.given[k], cut, rtol=TOLERANCE["law"])
        state = step_tracking(tracking_gains(plan.law), state, tracking.measured[k], cut)
    assert len(set(result.burst.tolist())) > 2
    assert not np.array_equal(tracking.given, tracking.reference)


@pytest.mark.needs("ns3")
def test_the_record_is_whole(tracking, seen):
    result = tracking.result
    assert result.simulator == f"ns-{find_ns3().version}"
    assert f"ns-{find_ns3().version}" in result.table()[0]
    np.testing.assert_allclose(result.source_bit_per_s.sum(axis=1), result.other_bit_per_s)
    assert (result.backlog <= busy().network.limit).all()
    assert (result.backlog >= 0).all()
    assert seen == sorted(seen)
    assert 0.97 < seen[-1] <= 1.0
    names = [name for name, _ in tracking.table()[1]]
    assert {"delay, second half", "throughput, second half"} <= set(names)


@pytest.mark.needs("ns3")
def test_the_seed_is_in_the_table_alone(program, tracking):
    """The same program, the same table: the same bytes. Another seed: other packets, the FIFO simulator's again."""
    before = (program / "result-7.csv").read_bytes()
    run_in(program, busy())
    assert (program / "result-7.csv").read_bytes() == before
    other = run_in(program, busy().replace(seed=6))
    assert not np.array_equal(other.measured, tracking.measured)
    found, expected = other.result.to_pandas(), replayed(other)
    np.testing.assert_allclose(found["other_bit_per_s"], expected["other_bit_per_s"], rtol=0.005)


@pytest.mark.needs("ns3")
def test_a_table_of_another_scenario_is_refused(program, tmp_path):
    (program / table_name(8)).write_bytes(b"\0" * 80)
    scenario = busy().replace(seed=8)
    with pytest.raises(NetctrlError, match="not the table of a run"):
        run_access_link(program, scenario, plan_of(scenario), ns3=find_ns3(), provenance=provenance())


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def design(tmp_path) -> Path:
    path = tmp_path / "design.json"
    requested = ["--model", "connet-paper", "--track", "delay", "--limits", "0Mbit:95Mbit"]
    assert design_main(["connet", *requested, "--reference", "delay=0.676,jitter=0.361", "-o", str(path)]) == 0
    return path


@pytest.mark.needs("ns3")
def test_one_command_holds_the_delay(design, tmp_path, capsys):
    link, stored = tmp_path / "link.toml", tmp_path / "link.csv"
    link.write_text(
        'schema = "netctrl.scenario/3"\nname = "two hops"\nduration = "60s"\ninterval = "1s"\nseed = 3\n'
        '[network]\nkind = "access-link"\nhops = 2\nbase_delay = "0.28ms"\n[[flows]]\nkind = "premium"\n'
        '[[flows]]\nkind = "regulated"\nid = "hosts"\ncount = 6\nshare = 1.0\noffered = "300Mbit"\n'
        '[[flows]]\nkind = "cross"\nid = "far"\nhop = 1\nrate = "8Mbit"\nburst = 5\n'
        '[[flows]]\nkind = "cross"\nid = "near"\nhop = 0\nrate = "2Mbit"\n'
    )
    capsys.readouterr()
    requested = [
        str(design),
        "--scenario",
        str(link),
        "-o",
        str(tmp_path / "p"),
        "--run",
        "--json",
        "--result",
        str(stored),
    ]
    assert main(["ns3", *requested]) == 0
    said, told = capsys.readouterr()
    assert told == ""
    answer, frame = json.loads(said), pd.read_csv(stored)
    assert answer["simulator"].startswith("ns-3.")
    assert answer["infeasible_s"] == []
    assert answer["summary"]["premium_lost"] == 0
    scenario = read_scenario_file(link)
    same = simulate_access_link(scenario, frame["rate_bit_per_s"].to_numpy()).to_pandas()
    pd.testing.assert_frame_equal(frame, same, rtol=0.0, atol=TOLERANCE["delay [ms]"], check_dtype=False)
    law = read_design(design).law
    expected = track_access_link(scenario, law, [0.676, 0.361], measured="period").result.to_pandas()
    # The loops part, as it is of consequence which packet comes first; means do not.
    for name, near in (("mean_delay_ms", 0.05), ("mean_jitter_ms", 0.15), ("other_bit_per_s", 0.03)):
        assert frame[name][20:].mean() == pytest.approx(expected[name][20:].mean(), rel=near), name
    assert frame["mean_delay_ms"][20:].mean() == pytest.approx(0.676, rel=0.03)


def test_without_run_it_says_what_to_do_next(design, tmp_path, capsys):
    folder = tmp_path / "out"
    requested = ["ns3", str(design), "-o", str(folder), "--seed", "7"]
    assert main(requested) == 0
    said = capsys.readouterr().out
    assert f"make -C {folder} && {folder}/scenario {folder} 7" in said
    names = sorted(path.name for path in folder.iterdir())
    assert sorted(said.split("files", 1)[1].split("\n")[0].replace(",", "").split()) == names
    assert "run-7.bin" in names
    assert "{0, {0.676, 0.361}}" in (folder / "scenario.h").read_text()
    assert "kGovernor = {};" in (folder / "gains.h").read_text()
    reference = "delay=0.5,jitter=0.1;jitter=0.4,delay=1.0"
    assert main([*requested, "--json", "--governor", "--measured", "average", "--reference", reference]) == 0
    assert "run-7.bin" in json.loads(capsys.readouterr().out)["files"]
    text = (folder / "scenario.h").read_text()
    assert "{0, {0.5, 0.1}},\n    {50, {1.0, 0.4}}," in text
    assert "&Columns::delayMs" in text
    assert "0, // samples ahead" not in (folder / "gains.h").read_text()


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["--reference", "delay=0.5"], "--reference: got 'delay=0.5', takes values of all outputs"),
        (["--reference", "delay=0.5,jitter=x"], "--reference: got"),
        (["--reference", "delay=0.5,jitter=1,loss=0"], "--reference: got"),
        (["--measured", "median"], "--measured: got 'median', takes average or period"),
        (["--runs", "3"], "--runs: got 3, takes a value only for a network's scenario"),
        (["--run", "--plot", "x.png"], "--plot: got 'x.png', takes no value with an access link, which has no picture"),
        (["--run", "--result", "x.json"], "--result: got 'x.json'"),
        (["--seed", "-1"], "--seed: got '-1'"),
    ],
)
def test_wrong_use_writes_nothing(design, tmp_path, capsys, extra, says):
    capsys.readouterr()
    assert main(["ns3", str(design), "-o", str(tmp_path / "p"), *extra]) == 2
    assert capsys.readouterr().err.startswith(f"error: {says}")
    assert not (tmp_path / "p").exists()


def test_a_link_that_ns3_cannot_express_is_one_of_the_file(design, tmp_path, capsys):
    link = tmp_path / "link.toml"
    rest = 'flows = [{ kind = "premium" }, { kind = "regulated", id = "hosts", share = 1.0 }]\n'
    rest += 'duration = "10s"\n[network]\nkind = "access-link"\n'
    link.write_text(f'interval = "1s"\n{rest}discipline = "wfq"\n')
    assert main(["ns3", str(design), "--scenario", str(link), "-o", str(tmp_path / "p")]) == 2
    assert f"{link}: discipline: got 'wfq'" in capsys.readouterr().err
    link.write_text(f'interval = "2s"\n{rest}')
    assert main(["ns3", str(design), "--scenario", str(link), "-o", str(tmp_path / "p")]) == 2
    assert "interval 1 s" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


def test_a_governor_takes_integral_action(tmp_path, capsys):
    path = tmp_path / "paper.json"
    requested = [
        "--model",
        "connet-paper",
        "--method",
        "paper",
        "--reference",
        "delay=0.676,jitter=0.361",
        "--accept",
        "stable",
        "-o",
        str(path),
    ]
    assert design_main(["connet", *requested]) == 0
    capsys.readouterr()
    assert main(["ns3", str(path), "-o", str(tmp_path / "p")]) == 0
    assert "&Columns::delayMs, 1.0" in (tmp_path / "p" / "scenario.h").read_text()  # as the paper measures
    assert main(["ns3", str(path), "-o", str(tmp_path / "q"), "--governor"]) == 2
    assert "DESIGN: got 'LqgLaw', takes an LqiLaw" in capsys.readouterr().err


def test_options_of_connet_are_refused_elsewhere(tmp_path, capsys):
    assert main(["ns3", "--scenario", "arc-capacity", "-o", str(tmp_path / "p"), "--governor"]) == 2
    assert "a value only with a Design of connet" in capsys.readouterr().err


def test_a_design_without_references_aims_at_the_middle_of_its_limits(design, tmp_path, capsys):
    content = json.loads(design.read_text())
    content["inputs"]["references"] = []
    design.write_text(json.dumps(content))
    assert main(["ns3", str(design), "-o", str(tmp_path / "p")]) == 0
    gain, limits = content["certificate"]["plant_dc_gain"], content["inputs"]["limits"][0]
    middle = [row[0] * sum(limits) / 2 for row in gain]  # the printed model is one of deviations from 0
    assert tracking_plan(case_of(read_design(design))).reference[0] == pytest.approx(middle)


# --- what stands in the way ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["", "1,2", "x"])
def test_output_that_is_not_whole_is_refused(tmp_path, rows):
    program = tmp_path / "scenario"
    program.write_text(f"#!/bin/sh\nprintf 'time_s\n{rows}' > result-$2.csv\n")
    program.chmod(0o755)
    at = Ns3("3.0", "g++", "make", None)
    with pytest.raises(NetctrlError, match="an incomplete result"):
        run_access_link(tmp_path, busy(), plan_of(busy()), ns3=at, provenance=provenance())
