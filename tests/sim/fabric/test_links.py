"""Topologies as links: every pair's path joins and is as long as the shortest, and TCP flows run over them."""

from __future__ import annotations

import doctest
from collections import Counter
from itertools import pairwise, permutations

import networkx as nx
import pytest
from fabric_support import data_centre

import netctrl
from netctrl.errors import InvalidValue
from netctrl.laws.window.records import FixedWindow
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import Dumbbell, FatTree
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Sizes
from netctrl.sim.fabric import links
from netctrl.sim.fabric.links import topology_links, topology_paths
from netctrl.sim.fabric.plan import fabric_plan

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
    for (source, target), (path, ack_path) in zip(pairs, topology_paths(topology, pairs, seed=3), strict=True):
        for (a, b), way in (((source, target), path), ((target, source), ack_path)):
            crossed = [made[name] for name in way]
            assert (crossed[0].source, crossed[-1].target) == (f"h{a}", f"h{b}")
            assert all(one.target == other.source for one, other in pairwise(crossed))
            assert len(crossed) == nx.shortest_path_length(net, f"h{a}", f"h{b}")


def test_links_have_the_ports_rates_delays_and_buffers() -> None:
    tree = FatTree(hosts_per_rack=2, buffer=3e5, delay=2e-6, host_rate=1e9, fabric_rate=4e9)
    for link in topology_links(tree, host_buffer="20kB"):
        at_host = link.source.startswith("h")
        assert link.buffer == (2e4 if at_host else 3e5)
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
    ends = list(zip(plan.flows.source.tolist(), plan.flows.target.tolist(), strict=True))
    found = topology_paths(tree, ends, seed=7)
    assert len(ends) > 50
    for flow, ways in enumerate(found):
        for way, ports in zip(ways, (plan.flows.there[flow], plan.flows.back[flow]), strict=True):
            assert [name.replace("-", ">") for name in way] == [plan.ports.names[port] for port in ports if port >= 0]
    assert len(set(topology_paths(tree, [(0, 15)] * 64))) > 4  # of its 4 ways there and 4 back


@pytest.mark.parametrize("ends", [[(0, 0)], [(0, 5)], [(-1, 2)]], ids=str)
def test_hosts_that_are_not_there_are_refused(ends) -> None:
    with pytest.raises(InvalidValue, match="two different hosts"):
        topology_paths(Dumbbell(), ends)


def test_tcp_flows_share_the_uplink_that_their_hash_chooses() -> None:
    """Six hosts of a leaf to six of another over three spines: used uplinks are full, and evenly shared."""
    tree = FatTree.leaf_spine(2, 3, 6, host_rate=4e7, fabric_rate=1e7, delay=1e-3, buffer=30e3)
    ways = topology_paths(tree, [(host, 6 + host) for host in range(6)])
    flows = tuple(
        Flow(id=f"from{host}", path=path, ack_path=back, rtt=8e-3, count=1) for host, (path, back) in enumerate(ways)
    )
    scenario = netctrl.Scenario(
        name="leaf to leaf", links=topology_links(tree), flows=flows, duration=60.0, warmup=10.0
    )
    result = netctrl.simulate(scenario, "packet")
    used = Counter(path[1] for path, _ in ways)
    busy = {link: result["utilization", link] for link in result.links}
    assert len(used) > 1
    assert {name for name in busy if name.startswith("s0-s") and busy[name] > 0.05} == set(used)
    for (path, _), flow in zip(ways, result.flows, strict=True):
        assert busy[path[1]] > 0.97
        assert result["goodput", flow] == pytest.approx(0.96e7 / used[path[1]], rel=0.2)


def test_the_examples_run() -> None:
    ran = doctest.testmod(links)
    assert ran.attempted > 0
    assert ran.failed == 0
