"""`python -m netctrl simulate` as a person, a script and CI see it: status, one line of error, JSON, files."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from command_lines import Terminal, files, good, the_error

import netctrl
from netctrl.cli.cases import read_case
from netctrl.cli.simulate import main
from netctrl.laws.aqm.arc import ArcQueue, arc_queue
from netctrl.scenario.figures import Figure
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario

SMALL = """schema = "netctrl.scenario/3"
name = "small"
duration = "6s"
warmup = "2s"
seed = 3

[[links]]
id = "line"
source = "left"
target = "right"
capacity = "10Mbit"
buffer = "100kB"
queue = { kind = "arc", epoch = "100ms" }

[[flows]]
id = "ftp"
count = 10
rtt = "60ms:100ms"
path = ["line"]

[[flows]]
id = "web"
count = 20
rtt = "60ms:100ms"
path = ["line"]
offers = { kind = "web", think_time = "500ms" }
"""


@pytest.fixture(scope="module")
def design(tmp_path_factory) -> Path:
    """A Design file for 50 flows over 10 Mbit/s."""
    path = tmp_path_factory.mktemp("designs") / "design.json"
    netctrl.arc(50).save(path)
    return path


RUNS = main
FILES = {"s.toml": SMALL}


def change(folder: Path, old: str, new: str) -> None:
    assert SMALL.count(old) >= 1
    (folder / "s.toml").write_text(SMALL.replace(old, new, 1), encoding="utf-8")


# Each: the command line, and what the line of error has to hold beside "error: ".
WRONG_USE = {
    "nothing to run": ("--json", ["SCENARIO is missing", "TOML", "--design"]),
    "an unknown scenario": ("nope", ["SCENARIO", "'nope'", "TOML", "arc-staircase"]),
    "a missing file": ("missing.toml", ["missing.toml", "No such file"]),
    "a missing design": ("s.toml --design missing.json", ["missing.json", "No such file"]),
    "a scenario as a design": ("s.toml --design s.toml", ["s.toml", "JSON"]),
    "a negative seed": ("s.toml --seed -1", ["--seed", "'-1'", "4294967295"]),
    "output of a strange kind": ("s.toml -o x.txt", ["-o", "'x.txt'", ".npz", ".csv"]),
    "output into no folder": ("s.toml -o missing/x.npz", ["-o", "'missing/x.npz'", "no folder"]),
    "output over the design": ("s.toml --design d.json -o ./d.json", ["-o", "'./d.json'", "takes"]),
    "a picture of a strange kind": ("s.toml --plot x.gif", ["--plot", "'x.gif'", ".png", ".svg", ".pdf"]),
    "a picture into no folder": ("s.toml --plot missing/x.png", ["--plot", "'missing/x.png'", "no folder"]),
    "an option twice": ("s.toml --seed 1 --seed 2", ["--seed"]),
}


@pytest.mark.parametrize("name", WRONG_USE)
def test_wrong_use_is_one_line_before_anything_is_simulated(name, run, tmp_path, monkeypatch) -> None:
    def simulated(*args: Any, **kwargs: Any) -> None:
        pytest.fail("simulated")

    monkeypatch.setattr(importlib.import_module("netctrl.sim.fluid.run"), "simulate", simulated)
    line, pieces = WRONG_USE[name]
    error = the_error(run(line), 2)
    assert [piece for piece in pieces if piece not in error] == [], error
    assert files(tmp_path) == ["s.toml"]


# The issue's: a scenario with an unknown key, negative capacity, a flow over a missing link, NaN; and some more.
AVQ = 'queue = { kind = "avq" }'
BAD = {
    "unknown key": ('capacity = "10', 'capasity = "10', "s.toml: links[0]: unknown key `capasity`, did you mean"),
    "what only the fluid refuses": ("seed = 3", 'step = "90ms"', "s.toml: step: got 0.09, takes at most"),
    "AVQ without a bound": ('buffer = "100kB"\nqueue = { kind = "arc", epoch = "100ms" }', AVQ, "s.toml: "),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("options", ["", "--json", "-o x.npz --plot x.png"])
def test_a_bad_scenario_is_named_with_file_and_key(name, options, run, tmp_path) -> None:
    old, new, begins = BAD[name]
    change(tmp_path, old, new)
    error = the_error(run(f"s.toml {options}"), 2)
    assert error.startswith(f"error: {begins}")
    assert files(tmp_path) == ["s.toml"]


def test_json_is_one_object_that_holds_everything(run, tmp_path) -> None:
    found = json.loads(good(run("s.toml --json")))
    assert sorted(found) == ["provenance", "scenario", "simulator", "span", "summary"]
    assert msgspec.convert(found["scenario"], Scenario) == read_scenario("s.toml")
    summary = {(each.quantity, each.of): each for each in msgspec.convert(found["summary"], tuple[Figure, ...])}
    assert (found["scenario"]["name"], found["simulator"], found["span"]) == ("small", "fluid", [2.0, 6.0])
    assert {of for _, of in summary} == {"line", "ftp", "web", "short objects"}
    assert 0.5 < summary["utilization", "line"].mean <= 1.0
    assert summary["throughput", "line"].unit == "bit/s"
    assert found["provenance"]["argv"] == ["netctrl", "simulate", "s.toml", "--json"]
    assert found["provenance"]["seed"] == 3
    assert files(tmp_path) == ["s.toml"]


def test_the_report_has_the_numbers_of_the_summary(run) -> None:
    out = good(run("s.toml"))
    link = {
        each["quantity"]: each["mean"]
        for each in json.loads(good(run("s.toml --json")))["summary"]
        if each["of"] == "line"
    }
    assert out.splitlines()[0].endswith(" waiting on average")
    assert out.splitlines()[1] == "small (fluid), 2 to 6 s"
    assert f"utilization {100.0 * link['utilization']:.4g} %" in out
    for piece in ("line ", "backlog", "median", "loss", "marks", "probability", "short objects", "Mbit/s", "kB"):
        assert piece in out
    assert max(map(len, out.splitlines())) <= 160


def test_the_saved_result_is_what_was_printed(run, tmp_path) -> None:
    printed = json.loads(good(run("s.toml --json -o r.npz")))
    saved = read_result("r.npz")
    assert saved.scenario == read_scenario("s.toml")
    assert msgspec.to_builtins(saved.summary()) == msgspec.to_builtins(
        msgspec.convert(printed["summary"], tuple[Figure, ...])
    )
    assert msgspec.to_builtins(saved.provenance)["argv"] == tuple(printed["provenance"]["argv"])
    assert saved.time_s == pytest.approx(0.1 * np.arange(1, 61))
    assert files(tmp_path) == ["r.npz", "s.toml"]


def test_time_series_are_read_by_pandas(run) -> None:
    good(run("s.toml -o r.CSV --plot x.SVG"))
    assert Path("x.SVG").read_bytes().startswith(b"<?xml")
    good(run("s.toml -o r.npz"))
    table, saved = pd.read_csv("r.CSV"), read_result("r.npz")
    assert list(table.columns) == list(saved.to_pandas().columns)
    assert table["link"].dropna().unique().tolist() == ["line"]
    line = table[table["link"] == "line"]
    assert line["backlog"].to_numpy() == pytest.approx(saved.series["backlog"][0], rel=1e-12)
    assert line["time"].to_numpy() == pytest.approx(saved.time_s, rel=1e-12)


def test_the_seed_is_the_scenarios_or_the_options(run) -> None:
    def found(line: str) -> Any:
        answer = json.loads(good(run(f"{line} --json")))
        return answer["scenario"]["seed"], answer["provenance"]["seed"], answer["summary"]

    first, again, same, other = (found(line) for line in ("s.toml", "s.toml", "s.toml --seed 3", "s.toml --seed 4"))
    assert first == again == same
    assert first[:2] == (3, 3)
    assert other[:2] == (4, 4)
    assert other[2] != first[2]
    assert found("s.toml --seed 4294967295")[0] == 4294967295


def test_a_design_replaces_the_law_of_arc_links(run, tmp_path, design) -> None:
    change(tmp_path, "100ms", "50ms")
    found = json.loads(good(run(f"s.toml --json --design {design}")))
    queue = msgspec.convert(found["scenario"]["links"][0]["queue"], ArcQueue)
    law = netctrl.arc(50).law
    assert queue == arc_queue(law, 1000.0)
    (tmp_path / "s.toml").write_text(SMALL.replace('"arc", epoch = "100ms"', '"design"'))
    assert json.loads(good(run(f"s.toml --json --design {design}")))["summary"] == found["summary"]


def test_a_place_for_a_design_must_be_filled(run, tmp_path) -> None:
    change(tmp_path, '"arc", epoch = "100ms"', '"design"')
    error = the_error(run("s.toml"), 2)
    assert error.startswith("error: s.toml: ")
    assert "'design'" in error
    assert "--design FILE" in error


def test_a_design_for_another_capacity_is_refused_with_both(run, tmp_path, design) -> None:
    change(tmp_path, "10Mbit", "20Mbit")
    error = the_error(run(f"s.toml --design {design}"), 2)
    for piece in ("--design", "'10 Mbit/s'", "20 Mbit/s", "line"):
        assert piece in error


def test_a_design_without_a_place_is_refused(run, tmp_path, design) -> None:
    change(tmp_path, 'kind = "arc", epoch = "100ms"', 'kind = "droptail"')
    error = the_error(run(f"s.toml --design {design}"), 2)
    for piece in ("SCENARIO", "'small'", "design", "arc"):
        assert piece in error


def test_a_design_alone_runs_its_plant_near_its_target(run, design) -> None:
    found = json.loads(good(run(f"--design {design} --json")))
    link = {each["quantity"]: each["mean"] for each in found["summary"] if each["of"] == "bottleneck"}
    assert abs(link["utilization"] - 0.98) < 0.005
    assert link["loss"] < 1e-3
    assert found["span"] == pytest.approx([100.0, 300.0])
    assert json.loads(good(run(f"--design {design} --seed 9 --json")))["scenario"]["seed"] == 9


def test_a_plant_that_is_none_is_named(run, tmp_path) -> None:
    netctrl.arc(1e6, capacity_bit_per_s=1e11, accept="stable").save(tmp_path / "wide.json")
    error = the_error(run("--design wide.json"), 2)
    assert error.startswith("error: wide.json: ")
    assert "count: got 1000000" in error


def test_a_scenario_that_comes_with_netctrl_runs_by_its_name(run, tmp_path) -> None:
    assert read_case("arc-staircase", None, 5).scenario.seed == 5
    found = json.loads(good(run("arc-round-trip --json")))
    assert found["scenario"]["name"] == "ARC Fig. 6: round trips of 0.3 to 2.4 s"
    assert list(dict.fromkeys(each["of"] for each in found["summary"]))[:2] == ["forward", "backward"]
    assert files(tmp_path) == ["s.toml"]


def test_progress_is_shown_on_a_terminal_only(run, monkeypatch, capsys) -> None:
    assert run("s.toml").err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["s.toml", "--json"]) == 0
    assert "simulating" in terminal.getvalue()
    json.loads(capsys.readouterr().out)
    assert terminal.left == ""
