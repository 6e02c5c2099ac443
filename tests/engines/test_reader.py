"""netctrl.read: whatever netctrl's files are, by their names and keys; and in words what is none."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.model.datasets import data_path, network_path, scenario_path
from netctrl.model.network import read_network
from netctrl.scenario.links import Link
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.tcp_aqm.flows import Flow


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("arc-staircase", "Scenario"),
        ("hftrac-testbed", "Scenario"),
        ("mpcc-fat-tree", "Scenario"),
        ("merge", "Network"),
        ("connet-paper", "IdentifiedModel"),
        ("connet-link", "RateTrace"),
        ("mobile", "LinkTrace"),
    ],
)
def test_a_name_is_what_comes_with_netctrl(name, kind) -> None:
    suffix = {"mobile": "traces/mobile.trace"}
    found = netctrl.read(data_path(suffix[name]) if name in suffix else name)
    assert type(found).__name__ == kind


def test_it_reads_what_the_readers_of_one_kind_read() -> None:
    assert netctrl.read(str(scenario_path("arc-staircase"))) == read_scenario(scenario_path("arc-staircase"))
    assert netctrl.read("hftrac-testbed") == read_scenario(scenario_path("hftrac-testbed"), network_path)
    assert netctrl.read(network_path("merge")) == read_network(network_path("merge"))


def test_what_is_saved_is_read_back(tmp_path) -> None:
    design = netctrl.arc(50)
    design.save(tmp_path / "d.json")
    assert netctrl.read(tmp_path / "d.json") == design
    line = Link(id="l", source="a", target="b", capacity=1e6)
    flows = Flow(id="f", path=("l",), rtt=0.1, count=2)
    result = netctrl.simulate(netctrl.Scenario(name="s", duration=5.0, links=(line,), flows=(flows,)))
    result.save(tmp_path / "r.npz")
    assert np.array_equal(netctrl.read(tmp_path / "r.npz").series["backlog"], result.series["backlog"])


def test_tables_are_rates_signals_or_round_trips(tmp_path) -> None:
    assert netctrl.read(data_path("traces/connet-link.csv"), inputs=["R"], outputs=["delay"]).outputs == ("delay",)
    (tmp_path / "rtts.csv").write_text("time_s,rtt_s\n0,0.1\n0.1,0.12\n")
    assert netctrl.read(tmp_path / "rtts.csv").rtt_s.tolist() == [0.1, 0.12]
    with pytest.raises(InvalidValue, match="outputs: got None"):
        netctrl.read(tmp_path / "rtts.csv", inputs=["R"])
    with pytest.raises(InvalidValue, match="interval_s"):
        netctrl.read("merge", interval_s=1.0)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.toml", "name = 'x'\n", "not a scenario: it has neither links, flows nor a network"),
        ("x.toml", "network = { kind = 'bottleneck', queue = 'lifo' }\n", "network.queue: got 'lifo', takes one of"),
        ("x.json", '{"schema": "netctrl.linux/1"}', "unknown schema 'netctrl.linux/1'; netctrl.read takes netctrl"),
        ("x.json", '{"schema": "netctrl.evaluation/1"}', "evaluations are read by netctrl.evaluation.record.read_ev"),
        ("x.json", "[]", "not a network"),
        ("x.json", "{", "JSON"),
        ("x.txt", "x", "unknown suffix; netctrl reads"),
    ],
)
def test_what_is_none_of_these_is_named(tmp_path, name, content, said) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError) as refused:
        netctrl.read(tmp_path / name)
    assert said in str(refused.value)


def test_a_name_that_nothing_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidValue, match="path: got 'nowhere', takes a file, or one of arc-bottlenecks"):
        netctrl.read("nowhere")


def test_a_kind_that_is_asked_for_is_what_comes_or_a_refusal(tmp_path) -> None:
    assert netctrl.read("merge", kind=netctrl.Network) == netctrl.read("merge")
    with pytest.raises(FileError, match="merge: contains a Network, expected a Scenario"):
        netctrl.read("merge", kind=netctrl.Scenario)
