"""Exported network programs are compiled and run: bytes, a closed form, and what the fluid says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import netctrl
from netctrl.cli.design import main as design_main
from netctrl.cli.export import main
from netctrl.core.errors import NetctrlError
from netctrl.model.datasets import network_path
from netctrl.model.design.design import provenance
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.ns3.network import read as ns3_links_run
from netctrl.ns3.network.read import run_links
from netctrl.ns3.network.render import render
from netctrl.ns3.program import Ns3, compile_program, find_ns3, table_name
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import Fifo, StaticPacing
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.plan import link_plan, run_tables
from netctrl.sim.network.run import simulate_network

PACKET_SIZE = 1500

SENT, PACED, BUFFER = 5e6, 4e6, 50e3
TOLERANCE = {"loss": 0.25, "backlog": 0.15, "packet": PACKET_SIZE}
"""Of loss and backlog against the fluid, relative; a packet [byte]."""


def together() -> Scenario:
    """The testbed under FIFO, and beside it a demand that never changes over two paced links, of which the first loses.

    It sends 5 Mbit/s, a quarter more than the paced links' rate of 4 Mbit/s.
    """
    network = read_network(network_path("testbed"))
    steady = (
        Link(id="first", source="a", target="b", capacity=10e6, delay=0.01, buffer=BUFFER),
        Link(id="second", source="b", target="c", capacity=10e6, delay=0.02),
    )
    demand = Demand(id="steady", source="a", target="c", mean=SENT)
    demands = (*network.demands, demand)
    return routed(
        Network(links=(*network.links, *steady), demands=demands),
        name="together",
        duration=20.0,
        warmup=2.0,
        control=StaticPacing(links=("first", "second"), factor=PACED / SENT),
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder, requested = tmp_path_factory.mktemp("together"), together()
    plan = link_plan(requested)
    for name, text in render(requested, plan, provenance=provenance()).items():
        (folder / name).write_text(text, encoding="utf-8")
    for run, table in enumerate(run_tables(requested, plan, range(2))):
        (folder / table_name(run)).write_bytes(table)
    compile_program(folder, find_ns3())
    return folder


@pytest.fixture(scope="module")
def seen() -> list[float]:
    """What the progress callback was told."""
    return []


@pytest.fixture(scope="module")
def result(program, seen) -> Result:
    requested = together()
    return run_links(
        program,
        requested,
        link_plan(requested),
        range(2),
        ns3=find_ns3(),
        provenance=provenance(),
        n_jobs=2,
        progress=seen.append,
    )


@pytest.fixture(scope="module")
def fluid() -> Result:
    return simulate_network(together(), runs=2)


def column(result: Result, name: str) -> int:
    return result.links.index(name)


@pytest.mark.needs("ns3")
def test_nothing_is_lost_sight_of(result):
    gone = result.totals["departed"] + result.totals["lost"] + result.totals["growth"]
    assert np.array_equal(result.totals["arrived"], gone)
    # What is neither delivered nor lost waits or is on its way: 10 ms and 20 ms of some Mbit/s.
    flying = result.totals["entered"] - result.totals["left"] - result.totals["lost"].sum(axis=1)
    flying -= result.totals["growth"].sum(axis=1)
    assert np.all(np.abs(flying) < 100e3)
    assert all(np.all(array[:, -1] >= 0.0) for array in result.series.over("link", "time").values())


@pytest.mark.needs("ns3")
def test_the_record_is_whole(result, seen):
    assert result.simulator == f"ns-{find_ns3().version}"
    assert result.links == ("e1", "e2", "s13", "s23", "s21", "first", "second")
    backlog, departed, lost = (result.series[name] for name in ("backlog", "departed", "lost"))
    assert backlog.shape == departed.shape == lost.shape == (7, 2000)
    np.testing.assert_allclose(backlog[:, 200:].mean(axis=1), result.totals["backlog"][0])
    np.testing.assert_allclose(departed[:, 200:].sum(axis=1), result.totals["departed"][0])
    np.testing.assert_allclose(lost[:, 200:].sum(axis=1), result.totals["lost"][0])
    nominal = np.array([19e6, 38e6, 28.5e6, 28.5e6, 9.5e6, SENT, SENT])
    np.testing.assert_allclose(
        ((departed[:, 200:].T * 8.0 / 0.01 - nominal) ** 2).mean(axis=0), result.totals["rate_square"][0]
    )
    assert seen == sorted(seen)
    assert 0.97 < seen[-1] <= 1.0
    assert len(result.to_pandas("runs")) == 14
    assert result.plot().axes


@pytest.mark.needs("ns3")
def test_a_paced_link_sends_at_its_rate_and_loses_the_rest(result):
    """By hand: the buffer is full after 50 kB / (1 Mbit/s) = 0.4 s; from then on a fifth of the packets is lost."""
    first, second, seconds = column(result, "first"), column(result, "second"), 18.0
    for name, rate in (("arrived", SENT), ("departed", PACED), ("lost", SENT - PACED)):
        expected = rate * seconds / 8.0
        assert np.all(np.abs(result.totals[name][:, first] - expected) <= 2.0 * TOLERANCE["packet"]), name
    assert np.all(np.abs(result.totals["departed"][:, second] - PACED * seconds / 8.0) <= 2.0 * TOLERANCE["packet"])
    # Packets come evenly to the second, as it sends them: none waits.
    assert np.all(result.totals["backlog"][:, second] <= TOLERANCE["packet"])
    full = BUFFER // PACKET_SIZE * PACKET_SIZE
    assert np.all(np.abs(result.totals["backlog"][:, first] - full) <= TOLERANCE["packet"])
    backlog = result.series["backlog"][first]
    growing = (SENT - PACED) / 8.0 * result.time_s[:35]
    assert np.abs(backlog[:35] - growing).max() <= 2.0 * TOLERANCE["packet"]


@pytest.mark.needs("ns3")
def test_demands_send_and_split_what_the_fluid_does(result, fluid):
    np.testing.assert_allclose(result.totals["entered"], fluid.totals["entered"], atol=4 * PACKET_SIZE)
    # s23 and s21 carry three quarters and one of what e2 lets through, to a packet and what waits or is lost.
    e2, s23, s21 = (column(result, name) for name in ("e2", "s23", "s21"))
    through = result.totals["departed"][:, e2]
    np.testing.assert_allclose(result.totals["arrived"][:, s23], 0.75 * through, atol=2 * PACKET_SIZE)
    np.testing.assert_allclose(result.totals["arrived"][:, s21], 0.25 * through, atol=2 * PACKET_SIZE)


@pytest.mark.needs("ns3")
def test_under_fifo_loss_and_backlogs_are_near_the_fluids(result, fluid):
    testbed = slice(0, 5)
    loss, expected = (r.totals["lost"][:, testbed].sum() / r.totals["entered"].sum() for r in (result, fluid))
    assert expected > 0.003
    assert loss == pytest.approx(expected, rel=TOLERANCE["loss"])
    backlog, desired = (r.totals["backlog"][:, testbed].sum(axis=1).mean() for r in (result, fluid))
    assert backlog == pytest.approx(desired, rel=TOLERANCE["backlog"])


@pytest.mark.needs("ns3")
def test_the_same_table_gives_the_same_run(program, result, tmp_path):
    for name in ("scenario.txt", table_name(0)):
        (tmp_path / name).write_bytes((program / name).read_bytes())
    subprocess.run([program / "scenario", str(tmp_path), "0"], check=True, capture_output=True, timeout=300)
    assert (tmp_path / "result-0.csv").read_bytes() == (program / "result-0.csv").read_bytes()
    assert (program / "result-1.csv").read_bytes() != (program / "result-0.csv").read_bytes()
    assert not (tmp_path / "series-0.csv").exists()


@pytest.mark.needs("ns3")
def test_a_table_of_another_scenario_is_refused(program, tmp_path):
    (tmp_path / "scenario.txt").write_bytes((program / "scenario.txt").read_bytes())
    (tmp_path / table_name(0)).write_bytes(b"\0" * 80)
    ran = subprocess.run([program / "scenario", str(tmp_path), "0"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "not the table of a run" in ran.stderr


# --- the command line ------------------------------------------------------------------------------------------------

SHORT = """schema = "netctrl.scenario/3"
name = "short"
interval = "10ms"
duration = "3s"
warmup = "1s"
[network]
kind = "routed"
graph = "testbed"
utilization = 0.9

[control]
kind = "hftrac"
architecture = "coordinated"
horizon = 24
mu = 0.1

[control.messages]
loss = 0.1
jitter = "0ms:5ms"
asynchronous = true
"""


@pytest.fixture
def short(tmp_path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    return path


@pytest.mark.needs("ns3")
def test_one_command_runs_a_law_whose_messages_are_late(short, tmp_path, capsys):
    stored, picture = tmp_path / "runs.csv", tmp_path / "run.png"
    requested = [str(short), "-o", str(tmp_path / "p"), "--run", "--runs", "2", "--json"]
    assert main(["ns3", *requested, "--result", str(stored), "--plot", str(picture)]) == 0
    said, told = capsys.readouterr()
    assert told == ""
    assert json.loads(said)["simulator"].startswith("ns-3.")
    answer = {(each["quantity"], each["of"]): each for each in json.loads(said)["summary"]}
    assert answer["loss", "network"]["half_width"] is not None  # of two runs
    assert 53e6 < answer["throughput", "network"]["mean"] < 55e6
    assert len(stored.read_text().splitlines()) == 11
    assert picture.stat().st_size > 1000
    # Under FIFO half as much waits, under static pacing at nominal rates half as much again.
    requested = read_scenario_file(short, network_path)
    expected = simulate_network(requested, netctrl.scenario_law(requested), runs=2)
    assert answer["backlog", "network"]["mean"] == pytest.approx(expected["backlog", "network"], rel=0.25)


def test_without_run_it_says_what_to_do_next(short, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["ns3", "--scenario", str(short), "-o", str(folder), "--runs", "3", "--packet-size", "300"]) == 0
    said = capsys.readouterr().out
    assert f"make -C {folder} && {folder}/scenario {folder} 0" in said
    names = sorted(path.name for path in folder.iterdir())
    assert sorted(said.split("files", 1)[1].split("\n")[0].replace(",", "").split()) == names
    assert {"run-0.bin", "run-1.bin", "run-2.bin", "scenario.txt"} < set(names)
    assert " packet_size=300 " in (folder / "scenario.txt").read_text()
    assert main(["ns3", "--scenario", str(short), "-o", str(folder), "--json", "--sampled-delays"]) == 0
    assert "run-3.bin" in json.loads(capsys.readouterr().out)["files"]
    assert " delay=10000000 buffer=37500 " in (folder / "scenario.txt").read_text()


def test_a_design_sets_the_rates(short, tmp_path):
    short.write_text(SHORT.replace("utilization = 0.9\n", ""))
    design = tmp_path / "design.json"
    made = ["hftrac", "--network", "testbed", "--mu", "0.1", "--horizon", "24", "-o", str(design)]
    assert design_main(made) == 0
    for name, requested in (("policy", [str(short)]), ("design", [str(design), "--scenario", str(short)])):
        assert main(["ns3", *requested, "-o", str(tmp_path / name)]) == 0
    texts = [(tmp_path / name / "scenario.txt").read_text().splitlines() for name in ("policy", "design")]
    lines = [[line for line in text if not line.startswith("#")] for text in texts]
    assert lines[0] == lines[1]
    numbers = next(line for line in lines[0] if line.startswith("  control.coefficient="))
    assert len(numbers.split(",")) > 100


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["--packet-size", "99"], "--packet-size: got '99'"),
        (["--packet-size", "1e3"], "--packet-size: got '1e3'"),
        (["--runs", "0"], "--runs: got '0'"),
        (["--n-jobs", "0"], "--n-jobs: got '0'"),
        (["--result", "x.csv"], "--result: got 'x.csv'"),
        (["--run", "--result", "x.json"], "--result: got 'x.json'"),
    ],
)
def test_wrong_use_writes_nothing(short, tmp_path, capsys, extra, says):
    assert main(["ns3", str(short), "-o", str(tmp_path / "p"), *extra]) == 2
    assert capsys.readouterr().err.startswith(f"error: {says}")
    assert not (tmp_path / "p").exists()


def test_a_key_that_ns3_cannot_express_is_one_of_the_file(short, tmp_path, capsys):
    short.write_text(SHORT[: SHORT.index("[control]")] + '[control]\nkind = "backpressure"\n')
    assert main(["ns3", str(short), "-o", str(tmp_path / "p")]) == 2
    assert f"{short}: control.kind: got 'backpressure'" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("extra", [["--runs", "2"], ["--n-jobs", "2"], ["--packet-size", "300"], ["--sampled-delays"]])
def test_what_is_for_networks_only_is_refused_elsewhere(tmp_path, capsys, extra):
    assert main(["ns3", "--scenario", "arc-capacity", "-o", str(tmp_path / "p"), *extra]) == 2
    assert "network's scenario" in capsys.readouterr().err


# --- what stands in the way ------------------------------------------------------------------------------------------


def fake(folder: Path, body: str) -> None:
    path = folder / "scenario"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def ran(folder: Path, **options) -> Result:
    requested = together().replace(control=Fifo())
    at = Ns3("3.0", "g++", "make", None)
    return run_links(folder, requested, link_plan(requested), range(2), ns3=at, provenance=provenance(), **options)


@pytest.mark.parametrize("rows", ["", "1,2,0,0,0,0,0", "x"])
def test_output_that_is_not_whole_is_refused(tmp_path, rows):
    fake(tmp_path, f"printf '{rows}' > result-$2.csv; printf 't\n' > series-$2.csv")
    with pytest.raises(NetctrlError, match="an incomplete result"):
        ran(tmp_path)


@pytest.fixture
def started(monkeypatch) -> list[subprocess.Popen]:
    """The processes that `run_links` starts, in order."""
    processes: list[subprocess.Popen] = []
    execute = ns3_links_run.execute

    def noted(*args, started, **options) -> None:
        def note(process: subprocess.Popen) -> None:
            processes.append(process)
            started(process)

        execute(*args, started=note, **options)

    monkeypatch.setattr(ns3_links_run, "execute", noted)
    return processes


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_where_one_run_fails_none_is_left(started, tmp_path, n_jobs):
    fake(tmp_path, f"test $2 = 1 && echo boom >&2 && exit 3; exec sleep $((60 * ({n_jobs} - 1)))")
    with pytest.raises(NetctrlError, match=r"status 3 \(the folder is kept\):\n  boom"):
        ran(tmp_path, n_jobs=n_jobs)
    assert started
    assert all(process.poll() is not None for process in started)


def test_ctrl_c_ends_all_runs(started, tmp_path):
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    fake(tmp_path, "echo progress 1; exec sleep 60")
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, n_jobs=2, progress=stop)
    assert all(process.wait(timeout=10) != 0 for process in started)
