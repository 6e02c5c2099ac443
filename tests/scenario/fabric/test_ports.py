"""Topologies of data centres: links as their definitions say, next hops against networkx, even multipath, and size."""

from __future__ import annotations

import tracemalloc

import networkx as nx
import numpy as np
import pytest
from fabric_support import data_centre, finish_ns, nanoseconds, poisson
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed
from scipy.stats import chisquare

from netctrl.core.errors import InvalidValue
from netctrl.laws.window.records import FixedWindow, Mpcc
from netctrl.scenario.fabric.ports import Fabric, fabric, fabric_paths, next_hops
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Topology
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.transfers import residual
from netctrl.sim.heap import PLACE_BITS
from netctrl.sim.packet.fabric import fabric_problem
from netctrl.sim.packet.run import simulate_packets


@st.composite
def topologies(draw) -> Topology:
    few = st.integers(1, 4)
    if draw(st.booleans()):
        return Dumbbell(senders=draw(few), receivers=draw(few), link_rate=draw(st.sampled_from([None, 1e8])))
    aggregations, wiring = draw(few), draw(st.sampled_from(["full", "al-fares"]))
    pods, cores = draw(few), draw(few) * (1 if wiring == "full" else aggregations)
    return FatTree(
        pods=pods,
        racks=draw(few),
        hosts_per_rack=draw(st.integers(2, 4)),
        aggregations=aggregations,
        cores=0 if pods == 1 and draw(st.booleans()) else cores,
        wiring=wiring,
    )


def graph(topology: Topology) -> nx.Graph:
    """Links by the names of switches, from the definition; nodes are numbered in this order."""
    found = nx.Graph()
    found.add_nodes_from(("host", i) for i in range(topology.hosts))
    if isinstance(topology, Dumbbell):
        found.add_edges_from((("host", i), ("switch", int(i >= topology.senders))) for i in range(topology.hosts))
        found.add_edge(("switch", 0), ("switch", 1))
        return found
    found.add_nodes_from(("rack", p, r) for p in range(topology.pods) for r in range(topology.racks))
    found.add_nodes_from(("aggregation", p, a) for p in range(topology.pods) for a in range(topology.aggregations))
    found.add_nodes_from(("core", c) for c in range(topology.cores))
    group = topology.cores // topology.aggregations
    for p in range(topology.pods):
        for r in range(topology.racks):
            first = (p * topology.racks + r) * topology.hosts_per_rack
            found.add_edges_from((("host", first + i), ("rack", p, r)) for i in range(topology.hosts_per_rack))
            found.add_edges_from((("rack", p, r), ("aggregation", p, a)) for a in range(topology.aggregations))
        for a in range(topology.aggregations):
            cores = range(topology.cores) if topology.wiring == "full" else range(a * group, (a + 1) * group)
            found.add_edges_from((("aggregation", p, a), ("core", c)) for c in cores)
    return found


def numbered(topology: Topology) -> nx.Graph:
    return nx.convert_node_labels_to_integers(graph(topology))


def test_a_dumbbells_and_a_fat_trees_links_are_those_of_their_figures() -> None:
    names = fabric(Dumbbell(senders=2)).names
    assert names == ("h0>s0", "h1>s0", "h2>s1", "s0>h0", "s0>h1", "s0>s1", "s1>h2", "s1>s0")
    assert len(fabric(FatTree()).names) == 2 * (16 + 8 + 8)  # hosts, racks to aggregation, aggregation to cores


@settings(max_examples=80, deadline=None)
@given(topologies())
def test_next_hops_are_those_of_all_shortest_paths(topology) -> None:
    """From every node to every host."""
    net, links = fabric(topology), numbered(topology)
    ends = {(a, b) for edge in links.edges for a, b in (edge, edge[::-1])}
    assert list(zip(net.source.tolist(), net.target.tolist(), strict=True)) == sorted(ends)
    for host in range(topology.hosts):
        distance = nx.single_source_shortest_path_length(links, host)
        nodes = np.array([node for node in links if node != host])
        for node, first, ways in zip(nodes, *next_hops(net.nodes, nodes, np.full_like(nodes, host)), strict=True):
            ports = slice(first, first + ways)
            assert set(net.source[ports]) == {node}
            nearer = {each for each in links[node] if distance[each] < distance[node]}
            assert set(net.target[ports].tolist()) == nearer
            assert ways == len(nearer)


def nodes_of(net: Fabric, ports: np.ndarray) -> list[int]:
    used = ports[ports >= 0]
    assert (ports[len(used) :] == -1).all()
    assert (net.target[used[:-1]] == net.source[used[1:]]).all()
    return [*net.source[used].tolist(), int(net.target[used[-1]])]


@settings(max_examples=60, deadline=None)
@given(topologies(), st.integers(0, 2**32 - 1))
def test_flows_take_shortest_paths_there_and_back(topology, seed) -> None:
    net, links = fabric(topology), numbered(topology)
    ends = [(a, b) for a in range(topology.hosts) for b in range(topology.hosts) if a != b][:200]
    source, target = np.array(ends).T
    for (a, b), (there, back) in zip(ends, fabric_paths(net, source, target, seed), strict=True):
        length = nx.shortest_path_length(links, a, b) + 1
        for ports, first, last in ((there, a, b), (back, b, a)):
            nodes = nodes_of(net, ports)
            assert (nodes[0], nodes[-1], len(nodes)) == (first, last, length)


@pytest.mark.parametrize(
    ("topology", "paths"),
    [(FatTree(), 2 * 2 * 2), (FatTree.k_ary(8), 16), (FatTree.leaf_spine(4, 6, 2), 6)],
    ids=["full", "al-fares", "leaf-spine"],
)
def test_equal_cost_paths_are_chosen_evenly(topology, paths) -> None:
    """Pearson's test of all paths between two hosts far apart, there and back."""
    net, last = fabric(topology), topology.hosts - 1
    assert len(list(nx.all_shortest_paths(numbered(topology), 0, last))) == paths
    count = 2000 * paths
    routes = fabric_paths(net, np.zeros(count, dtype=np.int64), np.full(count, last), 7)
    for way in (0, 1):
        _, chosen = np.unique(routes[:, way], axis=0, return_counts=True)
        assert len(chosen) == paths
        assert chisquare(chosen).pvalue > 1e-3
    # There and back are chosen independently.
    _, pairs = np.unique(routes.reshape(count, -1), axis=0, return_counts=True)
    assert len(pairs) == paths**2
    assert chisquare(pairs).pvalue > 1e-3


def test_a_fat_tree_of_switches_with_16_ports_has_1024_hosts_and_320_switches() -> None:
    tree, net = FatTree.k_ary(16), fabric(FatTree.k_ary(16))
    assert (tree.hosts, int(net.source.max()) + 1 - tree.hosts) == (1024, 320)
    assert set(np.bincount(net.source)[1024:]) == {16}  # ports of each switch
    assert tree.ports == len(net.names)
    assert set(net.rate.tolist()) == {100_000_000_000}


def test_no_more_ports_are_accepted_than_an_event_can_name() -> None:
    with pytest.raises(InvalidValue, match=str(1 << PLACE_BITS)):
        FatTree(pods=64, racks=1, aggregations=32, cores=256)
    assert FatTree(pods=64, racks=1, aggregations=32, cores=254).ports <= 1 << PLACE_BITS


# --- size ------------------------------------------------------------------------------------------------------------


def test_a_flow_alone_among_11664_hosts_takes_its_ideal_time() -> None:
    flow = Flow(id="flow", source=0, target=11_663, offers=50_000)
    scenario = data_centre(FatTree.k_ary(36), FixedWindow(), flow, duration=3e-5)
    result = simulate_packets(scenario)
    assert finish_ns(result)[0] == nanoseconds(result, "transfers", "ideal")[0]
    assert residual(result.tables["counts"]) == (0, 0)


def test_setting_up_10000_hosts_takes_memory_for_ports_and_flows_and_no_table_of_routes() -> None:
    """k = 36: at most 1,000 bytes a port and 300 a flow; the table of next hops took 4 · 1620 · 648 · 18 bytes."""
    scenario = data_centre(FatTree.k_ary(36), Mpcc(), poisson(distribution="FB_Hadoop"), duration=2e-4)
    tracemalloc.start()
    _ready, plan = fabric_problem(scenario)  # tables count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ports, flows = len(plan.ports.rate), len(plan.flows.size)
    assert ports == 6 * 11_664
    assert flows > 30_000
    assert peak < 1000 * ports + 300 * flows


@pytest.mark.slow
def test_one_seed_gives_the_same_bits_for_any_number_of_workers() -> None:
    scenarios = [
        data_centre(FatTree.k_ary(4), Mpcc(), poisson(distribution="FB_Hadoop", load=0.5), duration=2e-4, seed=seed)
        for seed in (1, 2, 3)
    ]
    alone = [simulate_packets(each) for each in scenarios]
    for workers in (1, 2):
        together = Parallel(n_jobs=workers)(delayed(simulate_packets)(each) for each in scenarios)
        for first, second in zip(alone, together, strict=True):
            assert first.tables.keys() == second.tables.keys()
            for table, columns in first.tables.items():
                for name, column in columns.items():
                    assert column.tobytes() == second.tables[table][name].tobytes()
            for name in ("departed", "backlog"):
                assert first.totals[name].tobytes() == second.totals[name].tobytes()
