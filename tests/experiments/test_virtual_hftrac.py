"""HFTraC's testbed in the kernel: what is built, its agents, short runs, and what is made of kept ones."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from places import EXPERIMENTS

from netctrl.laws.link_rate.routing import routing
from netctrl.linux.export.agent import AgentConfig
from netctrl.scenario.network.graph import graph_of
from netctrl.sim.network.demands import DemandSource

MODULES = ("network", "agents", "bed", "points")


@pytest.fixture
def hftrac(monkeypatch):
    """The study's modules by name."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    made = SimpleNamespace(**{name: importlib.import_module(f"linux.hftrac_{name}") for name in MODULES})
    return made


def case(hftrac, figure: str, way: str, x: float = 0.95, value: float = 0.1):
    return hftrac.network.Case(figure, x, way, value)


# --- the network -----------------------------------------------------------------------------------------------------


def test_slower_keeps_loads_intervals_and_buffers(hftrac) -> None:
    network = hftrac.network
    fast = importlib.import_module("netctrl").read("testbed")
    slow = network.slowed(fast)
    for one, other in zip(fast.links, slow.links, strict=True):
        assert other.buffer == one.buffer
        assert other.capacity * network.SLOWER == pytest.approx(one.capacity)
        assert other.delay / network.INTERVAL == pytest.approx(one.delay / 0.01)
    load = [routing(each).load / [link.capacity for link in each.links] for each in (fast, slow)]
    np.testing.assert_allclose(load[0], load[1], rtol=1e-12)


@pytest.mark.parametrize("figure", ["6a", "7", "10", "10b", "13", "14"])
def test_packets_take_turns_as_the_demands_split(hftrac, figure) -> None:
    """Shares of four packets give the nominal rates of the links."""
    requested = hftrac.network.scenario(
        case(hftrac, figure, "fifo", {"10": 1.2, "10b": 1.0, "13": 25.0, "14": 34.0}.get(figure, 0.95)), 1.0, 0.0
    )
    network = graph_of(requested)
    load = dict.fromkeys((link.id for link in network.links), 0.0)
    ways = hftrac.network.paths(network)
    for demand in network.demands:
        assert sum(share for _, share in ways[demand.id]) == hftrac.bed.TURNS
        for links, share in ways[demand.id]:
            for link in links:
                load[link] += demand.mean * share / hftrac.bed.TURNS
    np.testing.assert_allclose(list(load.values()), routing(network).load, rtol=1e-9)


def test_only_the_link_between_switches_is_delayed_and_words_have_lines_of_their_own(hftrac) -> None:
    network = graph_of(hftrac.network.scenario(case(hftrac, "6a", "fifo"), 1.0, 0.0))
    built = {link.id: link for link in hftrac.network.built(network).links}
    assert [name for name, link in built.items() if link.delay] == ["s21"]
    assert built["s21"].delay == pytest.approx(hftrac.network.INTERVAL)
    for node in ("H1", "H2", "S1", "S2", "S3"):
        assert (built[f"{node}.to"].target, built[f"{node}.from"].source) == (hftrac.network.TELLER,) * 2
    hosts = [link.buffer for link in network.links if link.id in ("e1", "e2")]
    assert hosts == [None, None]


def test_the_video_has_the_rates_and_intervals_of_the_paper(hftrac) -> None:
    requested = hftrac.network.scenario(case(hftrac, "14", "fifo", 34.0), 1.0, 3.0)
    links = {link.id: link for link in graph_of(requested).links}
    assert requested.interval == 0.01
    assert requested.duration == pytest.approx(4.0)
    assert (links["e1"].capacity, links["s13"].capacity, links["s3d"].capacity) == (42e6, 30e6, 42e6)
    video, background = graph_of(requested).demands
    assert video.mean * 1448 / 1514 == pytest.approx(3.16e6)
    assert background.mean == 34e6
    built = hftrac.network.built(graph_of(requested), delayed=False).links
    assert not any(link.delay for link in built)


@pytest.mark.parametrize(
    ("x", "steady", "greatest"), [(1.0, 21e6 / 4.0, 15e6), (0.0, None, (38 + 8 * 6**0.5) * 1e6 / 4)]
)
def test_triangular_rates_end_where_they_should(hftrac, x, steady, greatest) -> None:
    requested = hftrac.network.scenario(case(hftrac, "10b", "fifo", x), 400.0, 0.0)
    one, other = DemandSource(requested, range(1)).draw(requested.steps)[:, :, 0].T
    assert steady is None or (one == steady).all()
    assert other.max() <= greatest * (1.0 + 1e-12)
    assert other.max() > 0.95 * greatest
    assert other.std() == pytest.approx((greatest - other.mean()) / 6**0.5, rel=0.05)


# --- agents ----------------------------------------------------------------------------------------------------------


def files(hftrac, way: str, tmp_path: Path) -> dict[str, AgentConfig]:
    desired = case(hftrac, "7", way)
    requested = hftrac.network.scenario(desired, 1.0, 0.0)
    network = graph_of(requested)
    wires = {link.id: SimpleNamespace(limit_bytes=int(link.buffer)) for link in network.links}
    bed = SimpleNamespace(interface=lambda name: name, wires=wires)
    nominal = dict(zip(wires, routing(network).load, strict=True))
    links = hftrac.agents.controlled(bed, network, nominal)
    addresses = {node: f"10.9.0.{k}" for k, node in enumerate(("H1", "H2", "S1", "S2", "S3", "M"), 1)}
    return hftrac.agents.configs(desired, network, links, hftrac.bed.prepared(desired), addresses, tmp_path / "key")


def test_each_architecture_has_its_agents(hftrac, tmp_path) -> None:
    myopic, together = files(hftrac, "myopic", tmp_path), files(hftrac, "coordinated", tmp_path)
    central, god = files(hftrac, "centralized", tmp_path), files(hftrac, "god", tmp_path)
    at_nodes = {"H1": ["e1"], "S1": ["s13"], "H2": ["e2"], "S2": ["s23", "s21"]}
    for found in (myopic, together):
        assert {name: [link.id for link in each.links] for name, each in found.items()} == at_nodes
    assert all(not each.peers for each in myopic.values())
    assert {peer.name for peer in together["S1"].peers} == {"H1", "H2", "S2"}
    assert central["M"].role == "controller"
    assert all([peer.name for peer in central[node].peers] == ["M"] for node in at_nodes)
    assert list(god) == ["god"]
    assert not god["god"].peers
    assert {link.id for link in god["god"].links} == {"e1", "e2", "s13", "s23", "s21"}
    assert all(link.kind == "htb" for each in together.values() for link in each.links)


# --- in the kernel ---------------------------------------------------------------------------------------------------


@pytest.mark.needs("lab")
@pytest.mark.parametrize(
    ("figure", "way", "x"), [("7", "coordinated", 0.95), ("6a", "god", 0.95), ("13", "centralized", 25.0)]
)
def test_agents_set_rates_and_lose_no_link(hftrac, figure, way, x) -> None:
    """One agent for all namespaces, one at each node, and a central one beside TCP."""
    called = importlib.import_module("linux.virtual").called
    found = called("linux.virtual_hftrac:inside", [figure, x, way, 0.1], 0, 2.0, "aligned", seed=1)
    assert 5.0 < found["offered_mbit"] < 30.0
    assert 0.0 < found["arrived_mbit"] < 25.0
    assert 0.0 <= found["loss"] < 60.0
    assert found["queue_kbit"] > 0.0
    assert found["loss"] == pytest.approx(sum(value for name, value in found.items() if name.startswith("lost_")))
    assert (found["refused"], found["agent_missed"], found["agent_lost_links"]) == (0.0, 0.0, 0.0)
    assert found["sender_late_ms"] < 0.1
    assert found["agent_steps"] > 100
    assert found["agent_changes"] > 50
    assert (found["agent_received"] > 50) is (way != "god")
    if figure == "13":
        assert 0.1 < found["goodput"] < 8.0
        assert found["round_trip_ms"] > 0.0


# --- what is made of runs --------------------------------------------------------------------------------------------


def row(point, run: int, loss: float) -> dict[str, object]:
    return point._asdict() | {"run": run, "loss": loss, "queue_kbit": 30.0}


def test_ratios_are_by_run_of_those_that_both_have(hftrac) -> None:
    fifo, ours = case(hftrac, "7", "fifo", value=0.0), case(hftrac, "7", "coordinated")
    rows = [
        row(point, run, factor * base)
        for run, base in enumerate((1.0, 2.0, 4.0))
        for point, factor in ((fifo, 1.0), (ours, 0.5))
    ]
    data = pd.DataFrame([*rows, row(ours, 3, 9.0)])
    assert tuple(hftrac.points.ratio(data, ours, fifo)) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-12), 3)
    table = hftrac.points.points_of(data)
    assert table.set_index("way").loss.to_dict() == pytest.approx({"fifo": 7.0 / 3.0, "coordinated": 12.5 / 4.0})
    assert hftrac.points.at(table, "fifo", 0.95) == fifo
    assert hftrac.points.order(pd.DataFrame({"way": ["god", "myopic"], "loss": [2.0, 1.0]}), "loss") == "myopic < god"


def test_the_fluid_has_the_demands_of_each_run(hftrac) -> None:
    """Two seconds of it lose and queue something, and a run is the same whatever the number of runs."""
    cases = importlib.import_module("linux.hftrac_cases")
    one, two = (cases.foreseen_rows(case(hftrac, "7", "fifo", value=0.0), 2.0, 3.0, runs) for runs in (1, 2))
    assert (two.fluid_queue_kbit > 0.0).all()
    assert two.fluid_queue_kbit.nunique() == 2
    assert one.iloc[0].to_dict() == two.iloc[0].to_dict()
