"""Topologies as links: every pair's path joins and is as long as the shortest, and TCP flows run over them."""

from __future__ import annotations

import doctest
from collections import Counter
from itertools import pairwise, permutations

import networkx as nx
import pytest
from fabric_support import data_centre

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.window.records import FixedWindow
from netctrl.scenario.builders import fat_tree
from netctrl.scenario.fabric import links
from netctrl.scenario.fabric.links import topology_flows, topology_links
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Sizes, Stream
from netctrl.sim.packet.fabric import fabric_plan

TREES = (
    Dumbbell(senders=3, receivers=2, link_rate=1e8),
    FatTree(hosts_per_rack=2, buffer=3e5, delay=2e-6),
    FatTree.k_ary(4),
    FatTree.leaf_spine(leaves=3, spines=2, hosts_per_leaf=2),
)


@pytest.mark.parametrize("topology", TREES, ids=lambda each: f"{each.hosts} hosts")
def test_every_pairs_paths_join_and_are_shortest(topology) -> None:
    made = {link.id: link for link in topology_links(topology)}
    net = nx.DiGraph((link.source, link.target) for link in made.values())
    pairs = list(permutations(range(topology.hosts), 2))
    source, target = zip(*pairs, strict=True)
    flows = topology_flows(topology, [Flow(source=source, target=target)], seed=3)
    for (source, target), flow in zip(pairs, flows, strict=True):
        for (a, b), way in (((source, target), flow.path), ((target, source), flow.ack_path)):
            crossed = [made[name] for name in way]
            assert (crossed[0].source, crossed[-1].target) == (f"h{a}", f"h{b}")
            assert all(one.target == other.source for one, other in pairwise(crossed))
            assert len(crossed) == nx.shortest_path_length(net, f"h{a}", f"h{b}")


def test_links_have_the_ports_rates_delays_and_buffers() -> None:
    tree = FatTree(hosts_per_rack=2, buffer=3e5, delay=2e-6, host_rate=1e9, fabric_rate=4e9)
    for link in topology_links(tree):
        at_host = link.source.startswith("h")
        assert link.buffer == (None if at_host else 3e5)
        assert link.capacity == (1e9 if at_host or link.target.startswith("h") else 4e9)
        assert link.delay == 2e-6
    assert len(topology_links(tree)) == tree.ports
    paused = {link.target[0] for link in topology_links(FatTree(pfc=Pfc())) if link.pfc is not None}
    assert paused == {"s"}
    open_ = {link.target[0] for link in topology_links(FatTree(pfc=Pfc())) if link.pfc is None}
    assert open_ == {"h"}


def test_flows_take_the_ports_that_the_data_centre_chooses() -> None:
    tree = FatTree.k_ary(4)
    web = Flow(id="web", offers=Sizes(distribution="FB_Hadoop"))
    plan = fabric_plan(data_centre(tree, FixedWindow(), web, duration=1e-4, seed=7))
    ends = Flow(source=plan.flows.source.tolist(), target=plan.flows.target.tolist())
    found = topology_flows(tree, [ends], seed=7)
    assert len(found) == len(plan.flows.source) > 50
    for flow, each in enumerate(found):
        for way, ports in ((each.path, plan.routes[flow, 0]), (each.ack_path, plan.routes[flow, 1])):
            assert [name.replace("-", ">") for name in way] == [plan.ports.names[port] for port in ports if port >= 0]
    ways = [(each.path, each.ack_path) for each in topology_flows(tree, [Flow(source=[0] * 64, target=15)])]
    assert len(set(ways)) > 4  # of its 4 ways there and 4 back


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"source": 0, "target": 0}, "flows.x.target"),
        ({"source": 0, "target": 5}, "flows.x.target"),
        ({"source": 5, "target": 0}, "flows.x.source"),
        ({"target": 0}, "flows.x.source"),
        ({"offers": Sizes()}, "flows.x.sender"),
    ],
    ids=str,
)
def test_flows_that_links_cannot_have_are_refused(fields, named) -> None:
    with pytest.raises(InvalidValue) as refusal:
        topology_flows(Dumbbell(), [Flow(id="x", **fields)])
    assert refusal.value.argument == named


@pytest.mark.parametrize(("name", "value"), [("packets", Packets(payload=500)), ("flow_timeout", 1.0)])
def test_what_only_senders_of_a_data_centre_have_is_refused(name, value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        topology_links(Dumbbell(**{name: value}))
    assert refusal.value.argument == f"network.{name}"


def test_other_flows_keep_their_places_and_paths() -> None:
    flows = [
        Flow(id="a", source=(0, 1), target=4),
        Flow(id="b", path=("s0-s1",), rtt=1e-3),
        Flow(id="c", source=2, target=4),
    ]
    found = topology_flows(Dumbbell(), flows)
    assert [flow.id for flow in found] == ["a0", "a1", "b", "c"]
    assert found[2] == flows[1]
    assert [flow.path[-1] for flow in found] == ["s1-h4", "s1-h4", "s0-s1", "s1-h4"]


def test_what_follows_from_k_is_not_given_twice() -> None:
    with pytest.raises(InvalidValue) as refusal:
        fat_tree(k=4, pods=3)
    assert refusal.value.argument == "pods"


def test_streams_have_no_way_back() -> None:
    scenario = fat_tree(
        k=4, rate="100Mbit", flows=[Flow(source=0, target=15, offers=Stream(rate="1Mbit"))], duration="2s"
    )
    assert len(scenario.flows[0].path) == 6
    assert scenario.flows[0].ack_path == ()
    result = netctrl.simulate(scenario, "packet")
    assert result["goodput", "stream"] == pytest.approx(1e6, rel=0.1)


def test_tcp_flows_share_the_uplink_that_their_hash_chooses() -> None:
    """Six hosts of a leaf to six of another over three spines: used uplinks are full, and evenly shared."""
    tree = FatTree.leaf_spine(2, 3, 6, host_rate=4e7, fabric_rate=1e7, delay=1e-3, buffer=30e3)
    flows = (Flow(source=range(6), target=range(6, 12), rtt=8e-3),)
    scenario = netctrl.Scenario(name="leaf to leaf", network=tree, flows=flows, duration=60.0, warmup=10.0)
    result = netctrl.simulate(scenario, "packet")
    used = Counter(flow.path[1] for flow in scenario.flows)
    busy = {link: result["utilization", link] for link in result.links}
    assert len(used) > 1
    assert {name for name in busy if name.startswith("s0-s") and busy[name] > 0.05} == set(used)
    for flow in scenario.flows:
        assert busy[flow.path[1]] > 0.97
        assert result["goodput", flow.id] == pytest.approx(0.96e7 / used[flow.path[1]], rel=0.2)


def test_the_examples_run() -> None:
    ran = doctest.testmod(links)
    assert ran.attempted > 0
    assert ran.failed == 0
