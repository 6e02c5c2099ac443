"""Sweeps: which cells a file asks for, the same rows however they are run, and files that survive being killed."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import msgspec
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from joblib.externals.loky.process_executor import TerminatedWorkerError
from scipy import stats

import netctrl
from netctrl.cli.sweep import main
from netctrl.core.errors import FileError, InvalidValue, MissingLibrary, NetctrlError, NoAdmissibleDesign
from netctrl.design.hftrac.scenario_law import scenario_law
from netctrl.engines.sweep import summarized, sweep, sweep_to_file
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.model.datasets import network_path
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import HftracPolicy, StaticPacing
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.network.sweep import FIGURES, Grid, SweepSpec, read_sweep
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.run import LANES, simulate_network

LINE: dict[str, Any] = {
    "links": [
        {"id": "ab", "source": "A", "target": "B", "capacity": "10Mbit", "buffer": "5kB"},
        {"id": "bc", "source": "B", "target": "C", "capacity": "9Mbit", "buffer": "5kB", "delay": "10ms"},
    ],
    "demands": [{"id": "ac", "source": "A", "target": "C", "mean": "8Mbit", "std": "2Mbit"}],
}
SHARED: dict[str, Any] = {"network": {"kind": "routed", "graph": LINE}, "interval": "10ms", "duration": "1s"}
SEED, UTILIZATION = "seed", "network.utilization"
PLACES = ("seed", "control.factor", "control.mu")
SPREAD = "network.spread"
POLICIES = (
    Grid(label="FIFO", set={"control.kind": "fifo"}),
    Grid(label="static", set={"control.kind": "static"}, over={"control.factor": [1.05, 1.2]}),
    Grid(label="GOD", set={"control": {"kind": "hftrac", "architecture": "god"}}, over={"control.mu": [0.1, 1.0]}),
)


def spec(*grid: Grid, runs: int = 2, over: dict[str, Any] | None = None, **scenario: Any) -> SweepSpec:
    parts = (
        SHARED
        | {
            "network": {
                "kind": "routed",
                "graph": scenario.get("network", LINE),
                "spread": scenario.get("traffic", {"kind": "gaussian"}),
            },
            "control": scenario.get("control"),
        }
        | {name: scenario[name] for name in ("duration", "seed") if name in scenario}
    )
    return SweepSpec(name="test", scenario=parts, runs=runs, grid=grid, over=over or {})


def figures(result: Result) -> dict[str, np.ndarray]:
    """What a row says, from the result's own arrays."""
    sent = result.totals["departed"] * 8.0 / result.seconds
    cost = result.figures().get(("cost", "network"))
    return {
        "loss_ratio": result.totals["lost"].sum(axis=1) / result.totals["entered"],
        "backlog_bytes": result.totals["backlog"].sum(axis=1),
        "throughput_bit_per_s": result.totals["left"] * 8.0 / result.seconds,
        "max_link_utilization": (sent / result.totals["capacity"]).max(axis=1),
        "cost": np.full(result.runs, np.nan) if cost is None else cost,
    }


def refusal(make: Any) -> str:
    """What an InvalidValue or FileError says."""
    with pytest.raises((InvalidValue, FileError)) as caught:
        make()
    return str(caught.value)


# --- cells ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(["seed", "control.factor", "warmup"]), st.integers(1, 3), max_size=3),
    st.lists(
        st.dictionaries(st.sampled_from(["network.utilization", f"{SPREAD}.scale"]), st.integers(1, 3)), max_size=3
    ),
)
def test_cells_come_grid_by_grid_with_the_last_place_fastest(shared: dict[str, int], sizes: list[dict]) -> None:
    values = {
        "seed": [5, 6, 7],
        "control.factor": [1.5, 2.0, 3.0],
        "warmup": ["100ms", 0.2, 0],
        "network.utilization": [0.5, 0.6, 0.7],
        f"{SPREAD}.scale": [0.8, 0.9, 1.0],
    }

    def chosen(counts: dict[str, int]) -> dict[str, list[Any]]:
        return {place: values[place][:count] for place, count in counts.items()}

    grid = [Grid(label=f"g{i}", over=chosen(counts)) for i, counts in enumerate(sizes)]
    requested = spec(*grid, over=chosen(shared), control={"kind": "static"}, traffic={"kind": "gaussian"})
    found = list(requested.cells())
    expected = [
        (each.label or "grid[0]", dict(zip([*shared, *each.over], combination, strict=True)))
        for each in grid or [Grid()]
        for combination in product(*chosen(shared).values(), *each.over.values())
    ]
    assert [(cell.label, cell.values) for cell in found] == expected
    assert [cell.number for cell in found] == list(range(requested.n_cells))
    for cell in found:
        scenario = cell.scenario
        assert isinstance(scenario.control, StaticPacing)
        for place, got in {
            "seed": scenario.seed,
            "control.factor": scenario.control.factor,
            "network.utilization": scenario.flows[0].offers.mean / min(link.capacity for link in scenario.links),
            f"{SPREAD}.scale": scenario.flows[0].offers.spread.scale,
        }.items():
            if place in cell.values:
                assert got == pytest.approx(cell.values[place], rel=1e-12)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("network.graph.links.ab.buffer", [2000.0, 5000.0]),
        ("network.graph.links.bc.buffer", [5000.0, 2000.0]),
        ("network.graph.links.bc,ab.buffer", [2000.0, 2000.0]),
        ("network.graph.links.*.buffer", [2000.0, 2000.0]),
    ],
)
@pytest.mark.parametrize("network", [LINE, msgspec.convert(LINE, Network)], ids=["plain", "record"])
def test_records_go_by_their_ids(place: str, expected: list[float], network: Any) -> None:
    (cell,) = spec(network=network, over={place: ["2kB"]}).cells()
    assert [link.buffer for link in cell.scenario.links] == expected
    assert cell.values == {place: "2kB"}


def test_a_table_that_is_not_there_is_made_and_one_that_is_there_is_kept() -> None:
    made = Grid(set={f"{SPREAD}.kind": "long-range"}, over={f"{SPREAD}.hurst": [0.6]})
    kept = Grid(over={"control.factor": [1.5]})
    first, second = spec(made, kept, control={"kind": "static", "links": ["bc"]}).cells()
    assert first.scenario.flows[0].offers.spread.hurst == 0.6  # ty: ignore[unresolved-attribute]
    assert second.scenario.control == StaticPacing(factor=1.5, links=("bc",))
    assert SHARED["network"] == {"kind": "routed", "graph": LINE}


def test_what_was_made_in_python_is_as_a_file_would_say_it() -> None:
    record = msgspec.convert(LINE, Network)
    requested = spec(network=record, control=StaticPacing(), over={"control.factor": np.linspace(1.0, 2.0, 3)})
    plain = spec(
        network=msgspec.to_builtins(record), control={"kind": "static"}, over={"control.factor": [1.0, 1.5, 2.0]}
    )
    assert [cell.scenario for cell in requested.cells()] == [cell.scenario for cell in plain.cells()]
    assert requested.cells().__next__().scenario.name == "test"


def test_networks_and_files_are_named_in_the_values(tmp_path: Path) -> None:
    network = msgspec.to_builtins(read_network(network_path("tandem")))
    over = {"network.graph": [network], f"{SPREAD}.file": [str(tmp_path / "t.csv")]}
    (cell,) = spec(over=over, traffic={"kind": "trace", "file": "x"}).cells()
    assert cell.values == {"network.graph": "tandem", f"{SPREAD}.file": "t.csv"}
    assert cell.scenario.flows[0].offers.spread.file == str(tmp_path / "t.csv")  # ty: ignore[unresolved-attribute]


BAD_CELLS = {
    "an unknown id": (
        {"network.graph.links.q.buffer": [1000]},
        "grid[0] (network.graph.links.q.buffer = 1000): network.graph.links.q: got 'q', "
        "takes an id, several separated by commas, or *; there are ab, bc",
    ),
    "inside a number": (
        {"interval.x": [1]},
        "grid[0] (interval.x = 1): interval.x: got \"'10ms'\", takes a path inside a table",
    ),
    "below a number": (
        {"interval.x.y": [1]},
        "grid[0] (interval.x.y = 1): interval.x: got \"'10ms'\", takes a path inside a table or a list of records",
    ),
    "no name": (
        {"control..mu": [1]},
        "grid[0] (control..mu = 1): control..mu: got 'control..mu', takes names separated by dots, as in control.mu",
    ),
    "a value out of bounds": (
        {"seed": [1, 2], "control.factor": [-1]},
        "grid[0] (seed = 1, control.factor = -1): control.factor: got -1.0, "
        "takes a factor above 0, to 1e6, on nominal rates",
    ),
    "a key": (
        {"control.faktor": [1]},
        "grid[0] (control.faktor = 1): keys of the scenario: "
        "got 'control: unknown key `faktor`, did you mean `factor`?', takes those of Scenario",
    ),
}


@pytest.mark.parametrize("name", BAD_CELLS)
def test_a_cell_that_can_not_be_made_is_named(name: str) -> None:
    over, expected = BAD_CELLS[name]
    assert refusal(lambda: list(spec(over=over, control={"kind": "static"}).cells())) == expected


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: spec(runs=0), "runs: got 0, takes a whole number from 1 to 1000000"),
        (lambda: spec(over={"seed": []}), "over.seed: got [], takes a list with at least one value"),
        (lambda: Grid(over={"seed": 3}), "over.seed: got 3, takes a list with at least one value"),
        (lambda: Grid(over={"seed": "12"}), "over.seed: got '12', takes a list with at least one value"),
        (
            lambda: spec(over={"seed": list(range(400)), "warmup": list(range(300))}),
            "grid: got '120000 cells', takes at most 100000",
        ),
        (lambda: SweepSpec(name="", scenario={}), "name: got '', takes printable text of 1 to 200 characters"),
        (
            lambda: SweepSpec(name="x", scenario={"network": object}),
            f"scenario: got {{'network': {object!r}}}, takes a table of plain data: text, numbers, lists, tables",
        ),
        (
            lambda: SweepSpec(name="x", scenario=[1]),  # ty: ignore[invalid-argument-type]
            "scenario: got [1], takes a table from paths to values",
        ),
    ],
)
def test_a_sweep_that_can_not_be_is_refused(make: Any, expected: str) -> None:
    assert refusal(make) == expected


def test_the_digest_changes_with_all_that_matters(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_s,ac\n0,1\n1,2\n")
    elsewhere = tmp_path / "elsewhere" / "t.csv"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(trace.read_bytes())

    def traced(path: Path) -> SweepSpec:
        return spec(traffic={"kind": "trace", "file": str(path)})

    grid = Grid(label="a", set={"control.kind": "static"}, over={"control.factor": [1.0], "seed": [1]})
    different = [
        spec(),
        spec(runs=3),
        spec(seed=2),
        spec(network=LINE | {"name": "line"}),
        spec(grid),
        spec(msgspec.structs.replace(grid, label="b")),
        spec(msgspec.structs.replace(grid, over={"seed": [1], "control.factor": [1.0]})),
        spec(msgspec.structs.replace(grid, over={"control.factor": [1.1], "seed": [1]})),
        spec(msgspec.structs.replace(grid, set={})),
        spec(grid, over={"seed": [1]}),
        spec(Grid(set={"control": {"kind": "static"}, "control.factor": 2.0})),
        spec(Grid(set={"control.factor": 2.0, "control": {"kind": "static"}})),
        msgspec.structs.replace(spec(), name="another"),
    ]
    digests = [each.digest() for each in different] + [traced(trace).digest()]
    assert traced(elsewhere).digest() == digests[-1]
    trace.write_text("time_s,ac\n0,1\n1,3\n")
    digests.append(traced(trace).digest())
    assert len(set(digests)) == len(digests)
    assert spec().digest() == SweepSpec(scenario=dict(reversed(spec().scenario.items())), name="test", runs=2).digest()
    assert (
        refusal(traced(tmp_path / "x.csv").digest) == f"{tmp_path / 'x.csv'}: can't be read: No such file or directory"
    )


# --- files ------------------------------------------------------------------------------------------------------------

FILE = """
name = "file"
runs = 2
over = { "seed" = [1, 2] }

[scenario]
network = { kind = "routed", graph = "line.json" }
interval = "10ms"
duration = "1s"

[[grid]]
label = "by name"
set = { "network.graph" = "tandem" }

[[grid]]
label = "inline"

[grid.set."network.graph"]
links = [{ source = "A", target = "B", capacity = "1Mbit" }]
demands = [{ source = "A", target = "B", mean = "500kbit" }]

[[grid]]
label = "design"
set = { "control.kind" = "design" }
over = { "control.file" = ["one.json", "sub/two.json"] }

[[grid]]
label = "trace"
set = { "network.spread" = { kind = "trace", file = "t.csv" } }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "line.json").write_bytes(msgspec.convert(LINE, Network).to_json())
    (tmp_path / "s.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def test_networks_and_files_are_found_beside_the_file(folder: Path) -> None:
    cells = list(read_sweep(folder / "s.toml", network_path).cells())
    assert [(cell.label, cell.values["seed"]) for cell in cells] == [
        *product(["by name", "inline"], [1, 2]),
        ("design", 1),
        ("design", 1),
        ("design", 2),
        ("design", 2),
        *product(["trace"], [1, 2]),
    ]
    assert graph_of(cells[0].scenario).links == read_network(network_path("tandem")).links
    assert cells[2].scenario.links[0].id == "A->B"
    assert [cell.values["control.file"] for cell in cells[4:8]] == ["one.json", "two.json"] * 2
    assert [cell.scenario.control.file for cell in cells[4:6]] == [  # ty: ignore[unresolved-attribute]
        str(folder / "one.json"),
        str(folder / "sub/two.json"),
    ]
    assert cells[8].scenario.flows[0].offers.spread.file == str(folder / "t.csv")  # ty: ignore[unresolved-attribute]
    assert all(graph_of(cell.scenario).links == read_network(folder / "line.json").links for cell in cells[4:])


def test_the_sweep_that_comes_with_netctrl_can_be_made() -> None:
    spec = read_sweep(netctrl.model.datasets.sweep_path("hftrac-testbed"), network_path)
    cells = list(spec.cells())
    assert (len(cells), spec.n_cells) == (18, 18)
    assert {graph_of(cell.scenario).links for cell in cells} == {read_network(network_path("testbed")).links}
    assert list(dict.fromkeys(cell.scenario.control.__struct_config__.tag for cell in cells)) == [
        "fifo",
        "backpressure",
        "static",
        "hftrac",
    ]


BAD_FILES = {
    "unknown key of a grid": ('over = { "control.file"', 'ovr = { "control.file"', "grid[2]: unknown key `ovr`"),
    "an empty list": (
        '["one.json", "sub/two.json"]',
        "[]",
        "grid[2].over.control.file: got an empty list, takes a list",
    ),
    "unknown network": (
        '"tandem"',
        '"tandm"',
        "network.graph: got 'tandm', takes a network's file, or one of abilene, abilene-bursts, merge",
    ),
    "unknown key of the scenario": (
        "interval",
        "intervall",
        "grid[0] (seed = 1): unknown key `intervall`, did you mean `interval`?",
    ),
    "a later cell": (
        "[1, 2]",
        "[1, -2]",
        "grid[0] (seed = -2): seed: got -2, takes a whole number from 0 to 4294967295",
    ),
    "a kind": (
        '"design"\nset = { "control.kind" = "design" }',
        '"design"',
        "grid[2] (seed = 1, control.file = 'one.json'",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_is_wrong_with_a_file_is_named(name: str, folder: Path) -> None:
    old, new, begins = BAD_FILES[name]
    path = folder / "s.toml"
    assert FILE.count(old) >= 1
    path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
    error = refusal(lambda: read_sweep(path, network_path))
    assert error.startswith(f"{path}: {begins}"), error
    assert "\n" not in error


# --- runs -------------------------------------------------------------------------------------------------------------


def test_a_sweep_is_its_cells_by_hand() -> None:
    requested = spec(*POLICIES, runs=3, over={"seed": [3, 4]})
    frame = sweep(requested, scenario_law)
    assert list(frame.columns) == ["cell", "grid", "seed", "control.factor", "control.mu", "run", "sample", *FIGURES]
    assert len(frame) == 10 * 3
    networks = msgspec.convert(LINE, Network)
    by_hand = [
        ("FIFO", np.nan, np.nan, netctrl.scenario.network.policy.Fifo()),
        *(("static", factor, np.nan, StaticPacing(factor=factor)) for factor in (1.05, 1.2)),
        *(("GOD", np.nan, mu, HftracPolicy(architecture="god", mu=mu)) for mu in (0.1, 1.0)),
    ]
    for label, factor, mu, policy in by_hand:
        for seed in (3, 4):
            scenario = Scenario(
                name="x", network=Routed(graph=networks), interval=0.01, duration=1.0, control=policy, seed=seed
            )
            rows = frame[(frame["grid"] == label) & (frame["seed"] == seed)]
            for place, value in (("control.factor", factor), ("control.mu", mu)):
                rows = rows[rows[place].isna() if np.isnan(value) else rows[place] == value]
            assert rows["run"].tolist() == [0, 1, 2]
            assert rows["cell"].nunique() == 1
            for name, values in figures(simulate_network(scenario, scenario_law(scenario), runs=3)).items():
                np.testing.assert_array_equal(rows[name].to_numpy(), values)


def test_all_policies_meet_the_same_traffic() -> None:
    results = [simulate_network(cell.scenario, scenario_law(cell.scenario), runs=3) for cell in spec(*POLICIES).cells()]
    for result in results:
        np.testing.assert_array_equal(result.totals["entered"], results[0].totals["entered"])
        gone = result.totals["left"] + result.totals["lost"].sum(axis=1)
        on_the_way = result.totals["departed"][:, 0] - result.totals["arrived"][:, 1]
        kept = result.totals["growth"].sum(axis=1) + on_the_way
        np.testing.assert_allclose(gone + kept, result.totals["entered"], rtol=1e-12)
    assert len({float(result.totals["lost"].sum()) for result in results}) == len(results)
    runs = [sweep(spec(POLICIES[0], runs=count, seed=seed), scenario_law) for count, seed in ((2, 1), (3, 1), (2, 2))]
    pd.testing.assert_frame_equal(runs[0], runs[1][:2])
    assert not (runs[0]["throughput_bit_per_s"] == runs[2]["throughput_bit_per_s"]).any()


def test_many_runs_are_the_same_in_blocks() -> None:
    runs = 2 * LANES + 3
    shares: list[float] = []
    frame = sweep(spec(POLICIES[0], runs=runs, duration="200ms"), scenario_law, progress=shares.append)
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert frame["run"].tolist() == list(range(runs))
    (cell,) = spec(POLICIES[0], duration="200ms").cells()
    for name, values in figures(simulate_network(cell.scenario, runs=runs)).items():
        np.testing.assert_allclose(frame[name].to_numpy(), values, rtol=1e-14)


def test_the_summary_is_the_mean_and_students_interval() -> None:
    requested = spec(*POLICIES, runs=5)
    frame = sweep(requested, scenario_law)
    table = summarized(frame)
    assert table["cell"].tolist() == list(range(5))
    assert table["grid"].tolist() == ["FIFO", "static", "static", "GOD", "GOD"]
    assert table["control.factor"].dropna().tolist() == [1.05, 1.2]
    assert table["runs"].tolist() == [5] * 5
    for _, row in table.iterrows():
        for name in FIGURES:
            values = frame[name][frame["cell"] == row["cell"]]
            if values.isna().all():
                assert np.isnan(row[name])
                continue
            half = stats.t.ppf(0.975, 4) * stats.sem(values)
            assert (row[name], row[f"{name}_half_width"]) == pytest.approx((values.mean(), half), rel=1e-12)
    single = summarized(sweep(spec(POLICIES[0], runs=1), scenario_law))
    assert single["loss_ratio_half_width"].isna().all()


def test_a_column_of_mixed_values_is_text(tmp_path: Path) -> None:
    frame = sweep(spec(over={"warmup": ["100ms", 0.2], "control.kind": ["fifo"]}), scenario_law)
    assert frame["warmup"].tolist() == ["100ms"] * 2 + ["0.2"] * 2
    frame = sweep(spec(over={"control.links": [["ab"], ["ab", "bc"]]}, control={"kind": "static"}), scenario_law)
    assert frame["control.links"].unique().tolist() == ['["ab"]', '["ab","bc"]']


def test_what_goes_wrong_in_a_cell_names_it() -> None:
    def hopeless(scenario: Scenario) -> None:
        raise NoAdmissibleDesign("too late")

    with pytest.raises(NoAdmissibleDesign, match=r"^GOD \(control\.mu = 0\.1\): too late$"):
        sweep(spec(POLICIES[2]), hopeless)
    assert refusal(lambda: sweep(spec(POLICIES[2]), no_law)) == (
        "GOD (control.mu = 0.1): law: got None, takes the law of a Design, such as that of netctrl.hftrac, "
        "for a control of kind hftrac"
    )


def test_what_is_swept_stands_in_the_table_as_it_was_asked_for() -> None:
    frame = sweep(spec(over={"network.utilization": [0.6, 0.9]}), scenario_law)
    assert frame["network.utilization"].tolist() == [0.6, 0.6, 0.9, 0.9]
    assert (frame["max_link_utilization"] != frame["network.utilization"]).all()  # two runs of 1 s are no mean of many
    table = summarized(frame)
    assert table["network.utilization"].tolist() == [0.6, 0.9]
    assert table["max_link_utilization"].to_numpy() == pytest.approx([0.6, 0.9], rel=0.1)
    assert frame.columns.is_unique
    assert table.columns.is_unique


def test_every_key_of_a_scenario_can_be_swept_and_no_column_of_the_table() -> None:
    columns = summarized(sweep(spec(runs=1), scenario_law)).columns
    assert set(columns) & set(Scenario.__struct_fields__) == set()
    for name in [*columns, "run", "sample"]:
        for make in (lambda: spec(over={name: [1]}), lambda: spec(Grid(over={name: [1]}))):  # noqa: B023
            assert refusal(make).startswith(f"over: got {name!r}, takes places in the scenario; the table has columns")


def test_runs_of_one_window_of_a_trace_are_one_sample(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_s,ac\n" + "".join(f"{k / 100:g},{7e6 + (k * k) % 31 * 1e5}\n" for k in range(60)))
    traced = {"kind": "trace", "file": str(trace), "fit": False}
    requested = spec(Grid(over={"duration": ["200ms", "600ms"]}), traffic=traced, runs=5)
    frame = sweep(requested, scenario_law)
    assert frame["sample"].tolist() == [0, 1, 2, 0, 1, *([0] * 5)]
    table = summarized(frame)
    assert table["samples"].tolist() == [3, 1]
    rates = frame["throughput_bit_per_s"]
    assert rates[:3].tolist() == [*rates[3:5], rates[2]]
    row = table.iloc[0]
    assert row["throughput_bit_per_s"] == pytest.approx(rates[:3].mean(), rel=1e-12)
    half = stats.t.ppf(0.975, 2) * stats.sem(rates[:3])
    assert row["throughput_bit_per_s_half_width"] == pytest.approx(half, rel=1e-12)
    assert np.isnan(table["throughput_bit_per_s_half_width"][1])
    assert table["throughput_bit_per_s"][1] == pytest.approx(rates[5], rel=1e-15)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_holds_the_rows_on_any_number_of_workers(tmp_path: Path) -> None:
    requested = spec(*POLICIES, runs=LANES + 1, duration="200ms")
    frame = sweep(requested, scenario_law, n_jobs=2)
    pd.testing.assert_frame_equal(frame, sweep(requested, scenario_law, n_jobs=1), check_exact=True)
    shares: list[float] = []
    written = sweep_to_file(requested, scenario_law, tmp_path / "1.parquet", progress=shares.append)
    sweep_to_file(requested, scenario_law, tmp_path / "2.parquet", n_jobs=2)
    sweep_to_file(requested, scenario_law, tmp_path / "3.csv", n_jobs=2)
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
    for each in (written, pd.read_parquet(tmp_path / "1.parquet")):
        pd.testing.assert_frame_equal(each, frame, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "3.csv"), frame, rtol=1e-15)
    assert shares == pytest.approx(np.arange(1, 11) / 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.parquet", "2.parquet", "3.csv"]


def test_a_table_without_its_library_is_refused_before_the_work(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibrary, match="pip install pyarrow"):
        sweep_to_file(seeds(1), no_law, tmp_path / "x.parquet")
    sweep_to_file(seeds(1), scenario_law, tmp_path / "x.csv")
    assert refusal(lambda: sweep_to_file(seeds(1), no_law, tmp_path / "x.json")).endswith("ends with .csv or .parquet")


def test_a_cluster_gives_the_same(tmp_path: Path) -> None:
    requested = spec(*POLICIES, duration="200ms")
    sweep_to_file(requested, scenario_law, tmp_path / "here.parquet")
    local = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with LocalCluster(**local) as cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        sweep_to_file(requested, scenario_law, tmp_path / "there.parquet", n_jobs=2)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_the_file_says_where_it_is_from_but_not_when_or_where(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_s,ac\n0,7e6\n0.01,9e6\n0.02,8e6\n")
    over = {f"{SPREAD}.file": [str(trace)], "seed": [1]}
    requested = spec(over=over, traffic={"kind": "trace", "file": str(trace)}, runs=1)
    content = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        sweep_to_file(requested, scenario_law, tmp_path / name / "x.parquet")
        content.append((tmp_path / name / "x.parquet").read_bytes())
    assert content[0] == content[1]
    file = tmp_path / "a" / "x.parquet"
    metadata = pq.read_schema(file).metadata
    about = pd.read_parquet(file).attrs
    assert sorted(about) == ["digest", "netctrl", "sweep"]
    assert (about["netctrl"], about["digest"]) == (netctrl.__version__, requested.digest())
    named = f"t.csv (SHA-256 {hashlib.sha256(trace.read_bytes()).hexdigest()})"
    saved = about["sweep"]
    assert (saved["name"], saved["runs"], saved["over"]) == ("test", 1, {f"{SPREAD}.file": [named], "seed": [1]})
    assert saved["scenario"]["network"]["spread"]["file"] == named
    table = pq.ParquetFile(file).read()
    assert table.column(f"{SPREAD}.file").to_pylist() == ["t.csv"]
    assert str(tmp_path).encode() not in b"".join([*metadata.values(), *(str(table).encode(),)])


def seeds(count: int) -> SweepSpec:
    """A cell a seed."""
    return spec(runs=1, duration="200ms", over={"seed": list(range(count))})


STUCK = """
import sys, threading
import netctrl.design.hftrac.scenario_law as design

def stuck(scenario):
    if scenario.seed == 7:
        threading.Event().wait()  # until it is killed
    return None

design.scenario_law = stuck
from netctrl.cli.sweep import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    text = f"name = 'seeds'\nruns = 1\nover = {{ 'seed' = {list(range(20))} }}\n"
    text += "[scenario]\nnetwork = {kind = 'routed', graph = 'line.json'}\n"
    text += "interval = '10ms'\nduration = '200ms'\n"
    (tmp_path / "s.toml").write_text(text)
    (tmp_path / "line.json").write_bytes(msgspec.convert(LINE, Network).to_json())
    monkeypatch.chdir(tmp_path)
    parts = Path("x.parquet.parts")
    command = ["s.toml", "-o", "x.parquet", "--n-jobs", "1"]
    killed = subprocess.Popen([sys.executable, "-c", STUCK, *command], stdout=subprocess.DEVNULL)
    try:
        while not (parts / "6.json").exists():  # the seventh of 20; the next one never ends
            assert killed.poll() is None
            time.sleep(0.02)
    finally:
        killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert sorted(path.name for path in parts.iterdir()) == sorted([*(f"{i}.json" for i in range(7)), "sweep.json"])
    assert not Path("x.parquet").exists()

    assert main(command) == 2
    assert capsys.readouterr().err == (
        "error: x.parquet: a sweep into this file was interrupted: resume it, or delete x.parquet.parts\n"
    )
    ran: list[int] = []
    module = importlib.import_module("netctrl.sim.network.run")

    def counted(scenario: Scenario, *args: Any, **kwargs: Any) -> Result:
        ran.append(scenario.seed)
        return simulate_network(scenario, *args, **kwargs)

    monkeypatch.setattr(module, "simulate_network", counted)
    assert main([*command, "--resume"]) == 0
    assert ran == list(range(7, 20))
    assert main(["s.toml", "-o", "whole.parquet", "--n-jobs", "1"]) == 0
    assert Path("x.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    assert not parts.exists()


def test_a_killed_worker_is_an_error_and_the_sweep_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """joblib's own error for a worker that the system ended, after three blocks came."""

    parallel = joblib.Parallel

    def killed(*args: Any, return_as: str, **options: Any) -> Any:
        def blocks(tasks: Any) -> Any:
            yield from parallel(*args, return_as=return_as, **options)(list(tasks)[:3])
            raise TerminatedWorkerError("A worker process managed by the executor was unexpectedly terminated. ...")

        of_a_block = return_as != "generator_unordered"  # its runs
        return parallel(*args, return_as=return_as, **options) if of_a_block else blocks

    path = tmp_path / "x.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(joblib, "Parallel", killed)
        with pytest.raises(NetctrlError, match="a worker process was ended") as refused:
            sweep_to_file(seeds(5), no_law, path)
    assert f"blocks are in {path}.parts, and the same sweep with resume (--resume) goes on" in str(refused.value)
    assert len(list(Path(f"{path}.parts").iterdir())) == 1 + 3
    sweep_to_file(seeds(5), no_law, path, resume=True)
    sweep_to_file(seeds(5), no_law, tmp_path / "whole.parquet")
    assert path.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def end_worker(scenario: Scenario) -> None:
    """A law whose worker is ended by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_an_error() -> None:
    with pytest.raises(NetctrlError, match="a worker process was ended, by a signal or by the system"):
        sweep(seeds(3), end_worker, n_jobs=2)


class Stopped(Exception):
    pass


def stop_after(cells: int) -> Any:
    def law(scenario: Scenario) -> None:
        if scenario.seed >= cells:
            raise Stopped

    return law


def no_law(scenario: Scenario) -> None:
    return None


def stopped(path: Path, cells: int = 3) -> Path:
    """The folder of a sweep of 5 cells into `path` that was stopped."""
    with pytest.raises(Stopped):
        sweep_to_file(seeds(5), stop_after(cells), path)
    return Path(f"{path}.parts")


def test_finished_blocks_are_left_alone_and_all_stops_give_one_file(tmp_path: Path) -> None:
    path, whole = tmp_path / "x.parquet", tmp_path / "whole.parquet"
    parts = stopped(path, 1)
    first = {each.name: (each.stat().st_ino, each.stat().st_mtime_ns) for each in parts.iterdir()}
    for cells in (2, 4):
        with pytest.raises(Stopped):
            sweep_to_file(seeds(5), stop_after(cells), path, resume=True)
        now = {each.name: (each.stat().st_ino, each.stat().st_mtime_ns) for each in parts.iterdir()}
        assert len(now) == cells + 1
        assert now.items() >= first.items()
    shares: list[float] = []
    sweep_to_file(seeds(5), no_law, path, resume=True, progress=shares.append)
    assert shares == [1.0]
    sweep_to_file(seeds(5), no_law, whole, resume=True)  # nothing to resume is no error
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["whole.parquet", "x.parquet"]


def test_what_was_stopped_is_never_overwritten_or_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    parts = stopped(path)
    before = {each.name: each.read_bytes() for each in parts.iterdir()}
    assert refusal(lambda: sweep_to_file(seeds(5), no_law, path)) == (
        f"{path}: a sweep into this file was interrupted: resume it, or delete {parts}"
    )
    for other in (seeds(6), msgspec.structs.replace(seeds(5), runs=2), spec(runs=1, over={"seed": [4, 3, 2, 1, 0]})):
        assert refusal(lambda other=other: sweep_to_file(other, no_law, path, resume=True)) == (
            f"{path}: another sweep, or one of another netctrl version, was interrupted: delete {parts}"
        )
    monkeypatch.setattr(netctrl, "__version__", "0.0.0")
    assert "one of another netctrl version" in refusal(lambda: sweep_to_file(seeds(5), no_law, path, resume=True))
    assert {each.name: each.read_bytes() for each in parts.iterdir()} == before
    assert not path.exists()


@pytest.mark.parametrize("damage", ["cut", "another block", "another record", "a column less", "a run more"])
def test_a_damaged_part_is_named_and_made_anew(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    part = stopped(path) / "1.json"
    content = json.loads(part.read_bytes())
    if damage == "a column less":
        del content["figures"]["cost"]
    if damage == "a run more":
        content["figures"]["cost"].append(None)
    texts = {
        "cut": part.read_text()[:-3],
        "another block": (part.parent / "2.json").read_text(),
        "another record": '{"cell": 1}',
    }
    part.write_text(texts.get(damage, json.dumps(content)))
    error = refusal(lambda: sweep_to_file(seeds(5), no_law, path, resume=True))
    whys = {"cut": "not a valid part of a sweep (not JSON: Input data was truncated)"}
    whys["another record"] = "not a valid part of a sweep (Object missing required field `first`)"
    why = whys.get(damage, "belongs to another sweep")
    assert error == f"{part}: {why}: delete it and resume"
    assert not path.exists()
    part.unlink()
    sweep_to_file(seeds(5), no_law, path, resume=True)
    sweep_to_file(seeds(5), no_law, tmp_path / "whole.parquet")
    assert path.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    record = stopped(path) / "sweep.json"
    record.write_text("{")
    assert refusal(lambda: sweep_to_file(seeds(5), no_law, path, resume=True)) == f"{record}: not a record of a sweep"


def test_a_folder_of_another_kind_is_in_the_way(tmp_path: Path) -> None:
    path, parts = tmp_path / "x.parquet", tmp_path / "x.parquet.parts"
    parts.mkdir()
    (parts / "thesis.tex").write_text("years of work")
    for resume in (False, True):
        error = refusal(lambda resume=resume: sweep_to_file(seeds(2), no_law, path, resume=resume))
        assert error == f"{parts}: the folder isn't empty and doesn't belong to a sweep"
    assert [each.name for each in parts.iterdir()] == ["thesis.tex"]
    (parts / "thesis.tex").rename(parts / ".sweep.json.k3x_qq")  # what is left where it was killed at the very start
    sweep_to_file(seeds(2), no_law, path)
    assert not parts.exists()


@pytest.mark.parametrize("there", ["a folder", "no folder"])
def test_a_place_that_can_not_be_written_is_told_before_anything_is_run(there: str, tmp_path: Path) -> None:
    path = tmp_path if there == "a folder" else tmp_path / "missing" / "x.parquet"
    why = "it is a folder" if there == "a folder" else f"there is no folder {tmp_path / 'missing'}"
    assert refusal(lambda: sweep_to_file(seeds(2), stop_after(0), path)) == f"{path}: {why}"


def test_a_bad_cell_leaves_nothing(tmp_path: Path) -> None:
    bad = spec(over={"seed": [1, -1]})
    assert refusal(lambda: sweep_to_file(bad, stop_after(0), tmp_path / "x.parquet")).startswith(
        "grid[0] (seed = -1): "
    )
    assert list(tmp_path.iterdir()) == []


# --- other kinds of scenario, other engines ---------------------------------------------------------------------------

FLOWS = """schema = "netctrl.scenario/3"
name = "flows"
duration = "4s"
warmup = "1s"
seed = 3
links = [{ id = "line", source = "a", target = "b", capacity = "5Mbit", buffer = "40kB", queue = { kind = "codel" } }]

[[flows]]
id = "tcp"
path = ["line"]
rtt = "20ms:40ms"
count = 2
sender = "cubic"
"""
OF_FLOWS = """
name = "targets"
runs = 2
scenario = "flows.toml"
over = { "links.line.queue.target" = ["5ms", "20ms"], "flows.tcp.count" = [2] }
"""


@pytest.fixture
def of_flows(tmp_path: Path) -> SweepSpec:
    (tmp_path / "flows.toml").write_text(FLOWS)
    (tmp_path / "s.toml").write_text(OF_FLOWS)
    return netctrl.read(tmp_path / "s.toml")


def test_a_sweep_of_flows_is_its_cells_by_hand(of_flows: SweepSpec, tmp_path: Path) -> None:
    frame = sweep(of_flows, n_jobs=2)
    pd.testing.assert_frame_equal(frame, sweep(of_flows, engine="packet"), check_exact=True)
    scenario = netctrl.read(tmp_path / "flows.toml")
    rows = iter(frame.to_dict("records"))
    for target in ("5ms", "20ms"):
        link = msgspec.structs.replace(scenario.links[0], queue=CodelQueue(target=target))
        for run in range(2):
            row = next(rows)
            measures = netctrl.simulate(scenario.replace(links=(link,), seed=3 + run), "packet").measures()
            expected = {f"{what} of {of}": value for (what, of), value in measures.items()}
            assert (row["links.line.queue.target"], row["run"], row["sample"]) == (target, run, run)
            assert {name: row[name] for name in list(frame.columns)[6:]} == expected
    table = summarized(frame)
    values = frame["throughput of tcp"][:2]
    half = stats.t.ppf(0.975, 1) * stats.sem(values)
    assert table["throughput of tcp_half_width"][0] == pytest.approx(half, rel=1e-12)
    sweep_to_file(of_flows, scenario_law, tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "x.parquet"), frame, check_exact=True)


def test_engines_that_lack_something_are_refused_before_anything_runs(tmp_path: Path, of_flows: SweepSpec) -> None:
    (tmp_path / "flows.toml").write_text(FLOWS.replace("cubic", "vegas"))
    with pytest.raises(
        InvalidValue, match=r"grid\[0\] \(.*target = '5ms'.*engine: got .*fluid, which has no senders but"
    ):
        sweep(netctrl.read(tmp_path / "s.toml"), engine="fluid")
    with pytest.raises(InvalidValue, match="engine: got 'kernels', takes one of auto"):
        sweep(of_flows, engine="kernels")


@pytest.mark.slow
def test_demands_on_packets_are_the_packet_engines(tmp_path: Path) -> None:
    requested = msgspec.structs.replace(spec(POLICIES[1], runs=3, duration="500ms"), engine="packet")
    frame = sweep(requested, n_jobs=2)
    assert list(frame.columns)[-len(FIGURES) :] == list(FIGURES)
    for number, cell in enumerate(requested.cells()):
        result = netctrl.simulate(cell.scenario, "packet", runs=3)
        for name, values in figures(result).items():
            np.testing.assert_array_equal(frame[name][frame["cell"] == number].to_numpy(), values)
    assert requested.digest() != spec(POLICIES[1], runs=3, duration="500ms").digest()


def test_cells_of_several_kinds_have_columns_of_their_own(of_flows: SweepSpec) -> None:
    demands = msgspec.to_builtins(next(spec(POLICIES[0], duration="500ms").cells()).scenario)
    grids = (Grid(label="flows"), Grid(label="demands", set=demands))
    frame = sweep(msgspec.structs.replace(of_flows, grid=grids, over={}, runs=1))
    assert frame["loss_ratio"].isna().tolist() == [True, False]
    assert frame["throughput of tcp"].isna().tolist() == [False, True]


@pytest.mark.parametrize("name", ["hftrac-testbed", "arc-capacity"])
def test_a_sweep_of_a_bundled_scenario_has_it_as_it_is(tmp_path: Path, name: str) -> None:
    """The graph of a network's scenario is JSON, whose rates are bare numbers: its units are not asked for."""
    (tmp_path / "s.toml").write_text(f'name = "seeds"\nscenario = "{name}"\nover = {{ "seed" = [7] }}\n')
    (cell,) = netctrl.read(tmp_path / "s.toml").cells()
    whole = netctrl.read(name)
    assert msgspec.json.encode(cell.scenario) == msgspec.json.encode(whole.replace(seed=7))
