"""A graph under demands as a scenario: its parts, its file, what earlier versions wrote, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.link_rate.routing import at_utilization
from netctrl.model.datasets import network_path
from netctrl.model.network import read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.files import scenario_from
from netctrl.scenario.links import Link
from netctrl.scenario.network.graph import graph_of, with_utilization
from netctrl.scenario.network.policy import DesignPolicy, Fifo, HftracPolicy, Messages, messages_of
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.network.runs import spread_of, tcp_of
from netctrl.scenario.network.traffic import GaussianTraffic, LongRangeTraffic, TraceTraffic
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

GRAPH = read_network(network_path("testbed"))
LATE = Messages(loss=0.25, jitter=(0.0, 0.02))
PARTS: dict[str, Any] = {
    "name": "both",
    "graph": GRAPH,
    "utilization": 0.9,
    "queue": CodelQueue(target=0.01),
    "spread": LongRangeTraffic(hurst=0.7, scale=1.1),
    "flows": [{"id": "p1", "count": 3}],
    "control": HftracPolicy(architecture="god", mu=0.5, messages=LATE),
    "interval": 0.01,
    "duration": 3.0,
    "warmup": 0.5,
    "seed": 4,
}
SAME = routed(**PARTS)
TEXT = """schema = "netctrl.scenario/3"
name = "both"
interval = "10ms"
duration = "3s"
warmup = "500ms"
seed = 4

[network]
kind = "routed"
graph = "testbed"
utilization = 0.9
queue = { kind = "codel", target = "10ms" }
spread = { kind = "long-range", hurst = 0.7, scale = 1.1 }

[[flows]]
id = "p1"
count = 3

[control]
kind = "hftrac"
architecture = "god"
mu = 0.5
messages = { loss = 0.25, jitter = "0ms:20ms" }
"""


def read(folder: Path, text: str) -> Scenario:
    (folder / "s.toml").write_text(text)
    return netctrl.read(folder / "s.toml")


def test_a_file_says_it(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT) == SAME
    assert scenario_from(msgspec.to_builtins(SAME)) == SAME


def test_a_graph_is_a_file_beside_it_or_a_table(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_bytes(GRAPH.to_json())
    assert read(tmp_path, TEXT.replace('"testbed"', '"mine.json"')) == SAME
    with pytest.raises(FileError, match=r"network\.graph: got 'testbd', takes a network's file, or one of abilene"):
        read(tmp_path, TEXT.replace('"testbed"', '"testbd"'))
    table = 'links = [{ source = "a", target = "b", capacity = "1Mbit", id = "x" }], demands = [%s]'
    text = TEXT.replace('"testbed"', f"{{ {table} }}").replace('id = "p1"', 'id = "d"')
    found = read(tmp_path, text % '{ source = "a", target = "b", mean = "500kbit", id = "d" }')
    assert (found.links[0].capacity, found.flows[0].demand.mean) == (1e6, pytest.approx(9e5))


def test_files_that_a_scenario_names_are_beside_it(tmp_path: Path) -> None:
    text = TEXT.replace('"long-range", hurst = 0.7, scale = 1.1', '"trace", file = "t.csv"')
    text = text.replace('"hftrac"\narchitecture = "god"\nmu = 0.5', '"design"\nfile = "sub/d.json"')
    found = read(tmp_path, text)
    assert spread_of(found) == TraceTraffic(file=str(tmp_path / "t.csv"))
    assert found.control == DesignPolicy(file=str(tmp_path / "sub/d.json"), messages=LATE)


def test_what_is_not_said_is_fifo_and_gaussian() -> None:
    plain = Scenario(network=Routed(graph=GRAPH), duration=1.0)
    assert (plain.control, plain.steps, plain.warmup_steps, plain.packet_size) == (None, 100, 0, 1500.0)
    assert spread_of(plain) == GaussianTraffic()
    assert (tcp_of(plain), messages_of(plain.control)) == ((), Messages())


def test_a_graph_is_links_and_flows_over_their_ways() -> None:
    """And back: laws know the same links and demands."""
    plain = routed(GRAPH, utilization=0.9)
    assert (plain.network, plain.under_demands, graph_of(plain).links) == (None, True, GRAPH.links)
    assert [flow.path for flow in plain.flows] == [("e1", "s13"), ("e2", "s23")]
    assert [flow.split for flow in plain.flows] == [None, GRAPH.demands[1].split]
    again, wanted = graph_of(plain).demands, at_utilization(GRAPH, 0.9).demands
    assert [(each.mean, each.std) for each in again] == [(each.mean, each.std) for each in wanted]
    assert with_utilization(routed(GRAPH), 0.9) == plain
    tcp, other = SAME.flows
    assert (tcp.sender, tcp.count, tcp.expected.mean, tcp.ecn) == ("reno", 3, again[0].mean, False)
    assert (other.offers.spread, other.answered) == (LongRangeTraffic(hurst=0.7, scale=1.1), False)


LINE = Link(id="line", source="a", target="b", capacity=1e6)
BULK = Flow(id="tcp", path=("line",), rtt=(0.1, 0.1), count=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flows": [{"id": "p3"}]}, r"flows\[0\]\.id: got 'p3', takes the id of a demand, once, or .* there are p1"),
        ({"flows": [{"id": "p1"}, {"id": "p1"}]}, r"flows\[0\]\.id: got 'p1', takes the id of a demand, once"),
        ({"control": HftracPolicy(architecture="god", links=("e9",))}, r"control\.links: got 'e9', takes ids of links"),
        ({"duration": 3.005}, "duration: got 3.005, takes a whole number of intervals of 0.01 s"),
        ({"warmup": 2.999}, r"warmup: got 2.999, takes a time at least one interval shorter"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        routed(**PARTS | change)


def test_a_graph_has_a_demand() -> None:
    with pytest.raises(InvalidValue, match="graph: got 'no demands', takes at least one demand"):
        routed(msgspec.structs.replace(GRAPH, demands=()))


def test_other_links_take_no_late_messages() -> None:
    parts = {"name": "x", "links": (LINE,), "flows": (BULK,), "duration": 1.0}
    with pytest.raises(InvalidValue, match=r"control\.messages: got .*, takes ideal messages with a network of links"):
        Scenario(**parts, control=DesignPolicy(file="d.json", messages=LATE))
    with pytest.raises(InvalidValue, match=r"control: got .*, takes one of StaticPacing, DesignPolicy, Track"):
        Scenario(**parts, control=Fifo())
