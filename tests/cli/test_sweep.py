"""`python -m netctrl sweep`, and `python -m netctrl simulate` of a network's scenario, as a person and a script see
them: status, one line of error, tables, JSON, files."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_lines import Run, files, good, the_error

import netctrl
from netctrl.cli.design import main as design_main
from netctrl.cli.simulate import main as simulate_main
from netctrl.cli.sweep import main
from netctrl.design.hftrac.scenario_law import scenario_law
from netctrl.engines.sweep import summarized, sweep
from netctrl.model.datasets import network_path, scenario_path
from netctrl.scenario.figures import quantity_text
from netctrl.scenario.network.sweep import read_sweep
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.result import Result
from netctrl.sim.network.run import simulate_network
from netctrl.sim.network.tune import tune

SPEC = """
name = "small"
runs = 3

[scenario]
network = { kind = "routed", graph = "tandem" }
interval = "10ms"
duration = "500ms"

[[grid]]
label = "FIFO"
set = { "control.kind" = "fifo" }
over = { "network.graph.links.*.buffer" = ["2kB", "20000B"] }

[[grid]]
label = "static"
set = { "control.kind" = "static" }
over = { "control.factor" = [1.05, 1.2] }

[[grid]]
label = "GOD"
set = { control = { kind = "hftrac", architecture = "god" } }
over = { "control.mu" = [0.1, 1] }
"""


RUNS = main
FILES = {"s.toml": SPEC}


def requested() -> pd.DataFrame:
    return sweep(read_sweep("s.toml", network_path), scenario_law)


# --- sweep: what it prints and writes ---------------------------------------------------------------------------------


def test_the_table_has_a_row_a_cell_with_intervals(run) -> None:
    verdict, title, empty, *rows = good(run("s.toml --n-jobs 1")).splitlines()
    losses = [float(row.partition("loss ")[2].partition(" ")[0]) for row in rows]
    assert verdict.startswith(f"loss from {min(losses):.4g} % (")
    assert f" to {max(losses):.4g} % (" in verdict
    assert (title, empty) == ("small: 3 runs a cell, 95 % intervals", "")
    names = ["FIFO, buffer 2kB", "FIFO, buffer 20000B"]
    names += ["static, factor 1.05", "static, factor 1.2", "GOD, mu 0.1", "GOD, mu 1"]
    table = summarized(requested())
    for name, row, (_, cell) in zip(names, rows, table.iterrows(), strict=True):
        loss, loss_half = 100 * cell["loss_ratio"], 100 * cell["loss_ratio_half_width"]
        backlog, backlog_half = cell["backlog_bytes"] / 1e3, cell["backlog_bytes_half_width"] / 1e3
        text = f"loss {loss:.4g} ± {loss_half:.2g} %, backlog {backlog:.4g} ± {backlog_half:.2g} kB"
        assert re.fullmatch(rf"  {re.escape(name)}  +{re.escape(text)}", row), row


def test_of_one_run_there_is_no_interval(run, tmp_path) -> None:
    (tmp_path / "s.toml").write_text(SPEC.replace("runs = 3", "runs = 1"))
    row = good(run("s.toml --n-jobs 1")).splitlines()[3]
    assert re.fullmatch(r"  FIFO, buffer 2kB  +loss [0-9.]+ %, backlog [0-9.]+ kB", row), row
    cell = json.loads(good(run("s.toml --n-jobs 1 --json")))["cells"][0]
    assert cell["loss_ratio_half_width"] is None


def test_json_is_one_object(run, tmp_path) -> None:
    found = json.loads(good(run("s.toml --n-jobs 1 --json")))
    assert sorted(found) == ["cells", "digest", "sweep"]
    assert (found["sweep"], found["digest"]) == ("small", read_sweep("s.toml", network_path).digest())
    table = summarized(requested())
    assert [cell["cell"] for cell in found["cells"]] == list(range(6))
    for cell, (_, row) in zip(found["cells"], table.iterrows(), strict=True):
        assert list(cell) == list(table.columns)
        for name, value in cell.items():
            assert (value == row[name]) if value is not None else pd.isna(row[name])
    assert found["cells"][0]["cost"] is None
    assert found["cells"][4]["cost"] > 0.0
    assert found["cells"][2]["control.factor"] == 1.05
    assert files(tmp_path) == ["s.toml"]


def test_output_holds_all_runs(run, tmp_path) -> None:
    printed = good(run("s.toml --n-jobs 1 -o x.parquet"))
    assert printed == good(run("s.toml --n-jobs 1"))
    assert files(tmp_path) == ["s.toml", "x.parquet"]
    pd.testing.assert_frame_equal(pd.read_parquet("x.parquet"), requested(), check_exact=True)
    content = Path("x.parquet").read_bytes()
    assert good(run("s.toml --n-jobs 1 -o y.PARQUET --resume")) == printed
    assert Path("y.PARQUET").read_bytes() == content


@pytest.mark.slow
def test_tune_finds_the_best_of_each_grid(run, tmp_path) -> None:
    def cells(line: str) -> dict[str, Any]:
        return {cell["grid"]: cell for cell in json.loads(good(run(f"s.toml --n-jobs 1 --json {line}")))["cells"]}

    printed = good(run("s.toml --n-jobs 1 --tune loss")).splitlines()
    assert printed[0] == "small: least loss, 3 runs a cell, 95 % intervals"
    found = cells("--tune loss")
    assert list(found) == ["static", "GOD"]  # what is tuned makes no cells, and FIFO has nothing to tune
    for row, (label, cell) in zip(printed[2:], found.items(), strict=True):
        keys = ["allowed", "at_bound", "backlog", "cell", "field", "grid", "loss", "tried", "value", "values"]
        assert sorted(cell) == keys
        assert (cell["values"], cell["allowed"]) == ({}, True)
        assert f"  {label} " in row
        assert f"{cell['field']} = {cell['value']:.4g}" in row
        assert f"loss {100 * cell['loss']['mean']:.4g} ± " in row
        assert f"backlog {cell['backlog']['mean'] / 1e3:.4g} ± " in row
        assert ("(end of the range)" in row) == cell["at_bound"]
        assert [cell["value"], cell["loss"]["mean"], cell["backlog"]["mean"]] in cell["tried"]
    (static,) = (
        cell for cell in read_sweep("s.toml", network_path).cells() if cell.values.get("control.factor") == 1.2
    )
    assert found["static"]["value"] == tune(static.scenario, scenario_law, runs=3).value
    backlog = cells("--tune backlog --max-loss 0.02")
    assert all(cell["loss"]["mean"] <= 0.02 for cell in backlog.values())
    assert [cell["field"] for cell in backlog.values()] == ["factor", "mu"]
    assert files(tmp_path) == ["s.toml"]


def test_tune_says_where_nothing_loses_as_little(run, tmp_path) -> None:
    text = SPEC.replace('"tandem"', '"x.json"').partition("[[grid]]")[0]
    (tmp_path / "s.toml").write_text(text + '[scenario.control]\nkind = "static"\n')
    small = network_path("tandem").read_text().replace('"buffer": 25000.0', '"buffer": 100')
    (tmp_path / "x.json").write_text(small)
    row = good(run("s.toml --n-jobs 1 --tune backlog --max-loss 0")).splitlines()[2]
    assert row.startswith("  grid[0]  factor = ")
    assert row.endswith(" kB (no value loses less)")


# --- sweep: wrong use -------------------------------------------------------------------------------------------------

JOBS = "a number of processes of at least 1, or -1: one for each core"
WRONG_USE = {
    "an unknown sweep": ("nope", "SPEC: got 'nope', takes a TOML file, or one of hftrac-testbed"),
    "another kind of output": ("s.toml -o x.json", "-o: got 'x.json', takes a file name that ends in .csv or .parquet"),
    "output into no folder": (
        "s.toml -o missing/x.parquet",
        "-o: got 'missing/x.parquet', takes a file that can be written (here: there is no folder",
    ),
    "nothing to resume": ("s.toml --resume", "--resume: got 'no -o', takes the interrupted sweep's file in -o"),
    "a file of what is tuned": (
        "s.toml --tune loss -o x.parquet",
        "-o: got 'x.parquet', takes no file with --tune; --json prints the values found",
    ),
    "an unknown objective": ("s.toml --tune delay", "--tune: got 'delay', takes loss or backlog"),
    "backlog at any loss": ("s.toml --tune backlog", "--max-loss is missing: a share from 0 to 1, as in --max-loss 0."),
    "a loss for the least loss": (
        "s.toml --tune loss --max-loss 0.1",
        "--max-loss: got 0.1, takes no value without --tune backlog",
    ),
    "a loss for nothing": ("s.toml --max-loss 0.1", "--max-loss: got 0.1, takes no value without --tune backlog"),
}


@pytest.fixture
def nothing_runs(monkeypatch) -> None:
    def simulated(*args: Any, **kwargs: Any) -> None:
        pytest.fail("simulated")

    for module in ("netctrl.sim.network.tune", "netctrl.sim.network.run"):
        monkeypatch.setattr(importlib.import_module(module), "simulate_network", simulated)


@pytest.mark.parametrize("name", WRONG_USE)
def test_wrong_use_is_one_line_before_anything_is_run(name, run, tmp_path, nothing_runs) -> None:
    line, begins = WRONG_USE[name]
    error = the_error(run(line), 2)
    assert error.startswith(f"error: {begins}"), error
    assert files(tmp_path) == ["s.toml"]


BAD = {
    "a network": (
        '"tandem"',
        '"tandm"',
        "network.graph: got 'tandm', takes a network's file, or one of abilene, abilene-bursts, merge, tandem, "
        "testbed, three-in-a-row, wan; did you mean 'tandem'?\n",
    ),
    "a value": (
        "[0.1, 1]",
        "[0.1, -1]",
        "grid[2] (control.mu = -1): control.mu: got -1.0, takes a weight above 0 (lambda·interval²)\n",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("options", ["", "-o x.parquet", "--tune loss --json"])
def test_a_bad_sweep_is_named_with_file_and_key(name, options, run, tmp_path, nothing_runs) -> None:
    old, new, begins = BAD[name]
    assert SPEC.count(old) >= 1
    (tmp_path / "s.toml").write_text(SPEC.replace(old, new, 1), encoding="utf-8")
    error = the_error(run(f"s.toml {options}"), 2)
    assert error.startswith(f"error: s.toml: {begins}"), error
    assert files(tmp_path) == ["s.toml"]


def test_what_only_a_run_shows_is_of_the_file_and_the_cell(run, tmp_path) -> None:
    (tmp_path / "s.toml").write_text(SPEC.replace('"control.mu" = [0.1, 1]', '"seed" = [1]'))
    error = the_error(run("s.toml --n-jobs 1"), 2)
    assert error.startswith("error: s.toml: GOD (seed = 1): mu: got None, takes a number above 0, or a `weight`"), error
    assert the_error(run("s.toml --n-jobs 1 --tune loss --max-loss 1"), 2).startswith("error: --max-loss: ")


FLOWS = """name = "flows"
runs = 2
over = { "flows.tcp.count" = [1, 2] }

[scenario]
links = [{ id = "l", source = "a", target = "b", capacity = "2Mbit", buffer = "20kB" }]
flows = [{ id = "tcp", path = ["l"], rtt = "20ms:40ms", count = 1 }]
duration = "3s"
warmup = "1s"
"""


@pytest.mark.parametrize("engine", ["fluid", "packet"])
def test_flows_are_swept_in_any_engine(run, tmp_path, engine) -> None:
    (tmp_path / "s.toml").write_text(FLOWS)
    _, title, _, first, second = good(run(f"s.toml --n-jobs 1 --engine {engine}")).splitlines()
    assert title == "flows: 2 runs a cell, 95 % intervals"
    for line, count in ((first, 1), (second, 2)):
        assert re.match(rf"  grid\[0\], count {count} +throughput of l [\d.]+ Mbit/s ± ", line), line
        assert " throughput of tcp " in line
    assert "engine: got 'ns4', takes one of auto, fluid" in the_error(run("s.toml --n-jobs 1 --engine ns4"), 2)
    assert the_error(run(f"s.toml --engine {engine} --tune loss"), 2).startswith("error: ")


def test_nothing_to_tune_is_told(run, tmp_path) -> None:
    (tmp_path / "s.toml").write_text(SPEC.partition("[[grid]]")[0])
    assert the_error(run("s.toml --n-jobs 1 --tune loss"), 2) == (
        "error: s.toml: tune: got 'loss', takes a sweep with a control of kind hftrac or static\n"
    )


# --- simulate: a network's scenario -----------------------------------------------------------------------------------


@pytest.fixture
def simulate(run, tmp_path) -> Run:
    """Run `simulate` in a folder with a short testbed scenario and nothing else."""
    text = scenario_path("hftrac-testbed").read_text(encoding="utf-8")
    for old, new in (('"110s"', '"1s"'), ('"10s"', '"200ms"'), ('"coordinated"', '"god"')):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    return lambda line: run(line, simulate_main)


@pytest.fixture(scope="module")
def designs(tmp_path_factory) -> Path:
    """A folder of Designs, made as a person makes them."""
    folder = tmp_path_factory.mktemp("designs")
    testbed = network_path("testbed").read_text(encoding="utf-8")
    for name, old, new in (
        ("testbed", "", ""),
        ("delay", '"delay": 0.01', '"delay": 0.02'),
        ("demand", '"mean": 19000000.0', '"mean": 18000000.0'),
    ):
        (folder / f"{name}-network.json").write_text(testbed.replace(old, new, 1) if old else testbed)
        make_design(folder / f"{name}.json", f"--network {folder / f'{name}-network.json'}")
    make_design(folder / "interval.json", "--network testbed --interval 15ms")
    make_design(folder / "tandem.json", "--network tandem")
    netctrl.arc(50).save(folder / "arc.json")
    return folder


def make_design(path: Path, options: str) -> None:
    line = f"hftrac --mu 0.1 --architecture god {options} -o {path}"
    assert design_main(shlex.split(line)) == 0


def by_hand(runs: int = 20) -> Result:
    chosen = read_scenario_file("s.toml", network_path)
    return simulate_network(chosen, scenario_law(chosen), runs=runs)


def test_simulate_prints_a_table_of_its_runs(simulate, tmp_path) -> None:
    out = good(simulate("s.toml"))
    found = by_hand()
    assert " lost, " in out.splitlines()[0]
    assert re.match(r"HFTraC testbed \(fluid\), .* s, 20 runs, 95 % intervals\n\n", out.partition("\n")[2])
    loss = found.interval("loss", "network")
    assert loss.half_width is not None
    assert f"loss {100 * loss.mean:.4g} % ± {100 * loss.half_width:.2g} %" in out
    throughput = quantity_text("throughput", found["throughput", "network"], 4)
    assert re.search(rf"^  network +throughput {re.escape(throughput)} ± ", out, re.MULTILINE)
    for link in found.links:
        assert re.search(rf"^  {link} +.*utilization {100 * found['utilization', link]:.4g} %", out, re.MULTILINE)
    assert re.search(r"^  network .*cost .*\(bit/s\)²", out, re.MULTILINE)
    assert re.search(r"\nHFTraC testbed \(fluid\), .* s, 3 runs, ", good(simulate("s.toml --runs 3")))
    assert "±" not in good(simulate("s.toml --runs 1")).partition("\n")[2]
    assert files(tmp_path) == ["s.toml"]


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.CSV"])
def test_simulate_writes_its_runs(name, simulate, tmp_path) -> None:
    good(simulate(f"s.toml --runs 3 -o {name}"))
    table = pd.read_csv(name) if name.lower().endswith("csv") else pd.read_parquet(name)
    chosen = read_scenario_file("s.toml", network_path)
    expected = simulate_network(chosen, scenario_law(chosen), runs=3).to_pandas()
    pd.testing.assert_frame_equal(table, expected, check_exact=False, rtol=1e-12)
    assert table["run"].tolist() == list(np.repeat([0, 1, 2], 5))
    balance = table["arrived"] - table["departed"] - table["lost"] - table["growth"]
    assert balance.abs().max() <= 1e-9 * table["arrived"].max()
    assert files(tmp_path) == sorted([name, "s.toml"])


def test_simulate_takes_the_law_of_a_design(simulate, designs) -> None:
    own, designed = (
        json.loads(good(simulate(f"s.toml --runs 2 --json {option}")))
        for option in ("", f"--design {designs / 'testbed.json'}")
    )
    assert designed["scenario"]["control"]["file"] == str(designs / "testbed.json")
    ours, theirs = ([each for each in found["summary"] if each["quantity"] != "cost"] for found in (designed, own))
    assert ours == theirs  # the same law as the scenario's policy
    # of which weights, a Design for a network without any doesn't say
    assert ours == designed["summary"]
    assert len(theirs) == len(own["summary"]) - 1
    assert [Path(name).name for name in designed["provenance"]["input_hashes"]] == ["s.toml", "testbed.json"]


WRONG_DESIGNS = {
    "arc": "--design: got '{}', takes an HFTraC Design; this one is of method arc\n",
    "interval": "--design: got '{}', takes a Design for an interval of 0.01 s; this one is for 0.015 s\n",
    "delay": "--design: got '{}', takes a Design for this network; its links.s13.delay is 0.02, and here 0.01\n",
    "demand": "--design: got '{}', takes a Design for this network; "
    "its demands.p1.mean is 18000000.0, and here 19000000.0\n",
    "tandem": "--design: got '{}', takes a Design for this network; its links.L1.source is S1, and here not there\n",
}


@pytest.mark.parametrize("name", WRONG_DESIGNS)
def test_a_design_for_another_network_is_refused_with_the_difference(name, simulate, designs, tmp_path) -> None:
    path = designs / f"{name}.json"
    error = the_error(simulate(f"s.toml --runs 2 --design {path} -o x.csv"), 2)
    assert error.endswith(WRONG_DESIGNS[name].format(path)), error
    assert files(tmp_path) == ["s.toml"]


WRONG_SIMULATE = {
    "another kind of output": (
        "-o x.json",
        "-o: got 'x.json', takes a file name that ends in .npz or .csv or .parquet",
    ),
    "output over the design": ("--design x.csv -o ./x.csv", "-o: got './x.csv', takes a file that no other"),
}


@pytest.mark.parametrize("name", WRONG_SIMULATE)
def test_wrong_use_of_simulate_is_one_line(name, simulate, tmp_path, nothing_runs) -> None:
    options, begins = WRONG_SIMULATE[name]
    error = the_error(simulate(f"s.toml {options}"), 2)
    assert error.startswith(f"error: {begins}"), error
    assert files(tmp_path) == ["s.toml"]


def test_runs_are_for_networks(simulate) -> None:
    takes = "a value only for a network's scenario or with --compare\n"
    for option in ("runs", "n-jobs"):
        assert the_error(simulate(f"arc-round-trip --{option} 2"), 2) == f"error: --{option}: got 2, takes {takes}"
