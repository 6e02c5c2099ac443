"""Networks: what a file or a graph may hold, one line with place and remedy for what it may not, and the way back."""

from __future__ import annotations

import copy
import json
import math
import runpy
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import pytest
from edits import Edit, drop, put
from hypothesis import given, settings
from hypothesis import strategies as st
from places import EXPERIMENTS

from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.link_rate.routing import routing
from netctrl.model import datasets
from netctrl.model.datasets import network_path, networks
from netctrl.model.io.topohub import SIGNAL_SPEED
from netctrl.model.network import Demand, Link, Network, Node, read_network

CONTENT: dict[str, Any] = {
    "directed": True,
    "multigraph": False,
    "graph": {"name": "small", "source": "made up", "year": 2024},
    "nodes": [{"id": "a", "name": "Ålesund", "pos": [6.15, 62.47]}, {"id": "b"}, {"id": "c"}],
    "edges": [
        {"id": "up", "source": "a", "target": "b"}
        | {"capacity": "10Mbit", "delay": "10ms", "buffer": "25kB", "weight": 100},
        {"source": "b", "target": "c", "capacity": 5e6, "delay": 0.02, "buffer": None},
        {"source": "a", "target": "c", "capacity": 5e6},
    ],
    "demands": [
        {"source": "a", "target": "b", "mean": "2Mbit", "std": 0},
        {"id": "split", "source": "a", "target": "c", "mean": 4e6, "std": "400kbit"}
        | {"split": {"up": 0.25, "b->c": 1, "a->c": 0.75}},
    ],
}

SAME = Network(
    name="small",
    nodes=(Node(id="a", name="Ålesund", pos=(6.15, 62.47)), Node(id="b"), Node(id="c")),
    links=(
        Link(id="up", source="a", target="b", capacity=10e6, delay=0.01, buffer=25e3, weight=100.0),
        Link(id="b->c", source="b", target="c", capacity=5e6, delay=0.02),
        Link(id="a->c", source="a", target="c", capacity=5e6),
    ),
    demands=(
        Demand(id="a=>b", source="a", target="b", mean=2e6),
        Demand(id="split", source="a", target="c", mean=4e6, std=4e5, split={"up": 0.25, "b->c": 1.0, "a->c": 0.75}),
    ),
)


def read(folder: Path, content: Any, **options: Any) -> Network:
    path = folder / "n.json"
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(content)
    return read_network(path, **options)


def why(folder: Path, content: Any, **options: Any) -> str:
    """What the one short line says after the file's name."""
    with pytest.raises(FileError) as refusal:
        read(folder, content, **options)
    assert refusal.value.path == str(folder / "n.json")
    assert len(refusal.value.why.splitlines()) == 1
    assert len(refusal.value.why) < 400
    assert not any(word in refusal.value.why for word in ("`float", "`int", "`str", "`array", "`object", "dict"))
    return refusal.value.why


def test_text_with_units_and_numbers_in_si_give_equal_records(tmp_path) -> None:
    assert read(tmp_path, CONTENT) == SAME


def test_what_is_left_out_has_its_default() -> None:
    link = Link(source="a", target="b", capacity="1Mbit")  # ty: ignore[invalid-argument-type]
    demand = Demand(source="a", target="b", mean=1e6)
    assert (link.id, link.delay, link.buffer, link.weight) == ("a->b", 0.0, None, None)
    assert (demand.id, demand.std, demand.split) == ("a=>b", 0.0, None)
    network = Network(links=(link,))
    assert network.nodes == (Node(id="a"), Node(id="b"))
    assert (network.name, network.demands) == ("", ())


def test_whole_numbers_are_ids_too_and_0_is_one(tmp_path) -> None:
    """networkx numbers nodes from 0."""
    content = {
        "nodes": [{"id": 0}, {"id": 1}],
        "edges": [{"id": 0, "source": 0, "target": 1, "capacity": 1e6}],
        "demands": [{"id": 0, "source": 0, "target": 1, "mean": 1e5, "split": {"0": 1}}],
    }
    network = read(tmp_path, content)
    assert [node.id for node in network.nodes] == ["0", "1"]
    assert (network.links[0].id, network.links[0].source) == ("0", "0")
    assert network.demands[0].id == "0"
    assert Demand(source=0, target=1, mean=1e5, split={0: 1}).split == {"0": 1.0}  # ty: ignore[invalid-argument-type]


@pytest.mark.parametrize("zero", [0, 0.0, np.float64(0), "0", "0bit", "0Mbit", "0.0 Mbit/s"])
def test_a_demand_may_be_steady(zero) -> None:
    assert Demand(source="a", target="b", mean=1e6, std=zero).std == 0.0


def test_a_record_keeps_nothing_that_its_caller_may_change() -> None:
    split = {"up": 1.0}
    demand = Demand(source="a", target="b", mean=1e6, split=split)
    split["up"] = 0.0
    assert demand.split == {"up": 1.0}
    network = Network(links=list(SAME.links), demands=list(SAME.demands), nodes=list(SAME.nodes), name="small")  # ty: ignore[invalid-argument-type]
    assert network == SAME
    assert type(network.links) is tuple


# --- there and back -------------------------------------------------------------------------------------------------


def networkx_text(graph: nx.Graph, **names: str) -> str:
    return json.dumps(nx.node_link_data(graph, **names))


def sorted_links(network: Network) -> Network:
    """networkx orders links by their source."""
    return msgspec.structs.replace(network, links=tuple(sorted(network.links, key=lambda link: str(link.id))))


def test_networkx_has_numbers_in_si() -> None:
    graph = SAME.to_networkx()
    assert graph.edges["a", "b", "up"]["capacity"] == 10e6
    assert graph.nodes["a"]["pos"] == (6.15, 62.47)


def test_networkx_reads_the_json_with_every_parallel_link() -> None:
    twice = Network(links=tuple(Link(id=name, source="a", target="b", capacity=1e6) for name in "xy"))
    for network in (SAME, twice):
        graph = nx.node_link_graph(json.loads(network.to_json()), edges="edges")
        assert {data["id"]: (u, v) for u, v, data in graph.edges(data=True)} == {
            link.id: (link.source, link.target) for link in network.links
        }


NAMES = st.text("abcdefghåß ->_.0", min_size=1, max_size=6)
RATES = st.floats(1.0, 1e15)


@st.composite
def any_network(draw) -> Network:
    nodes = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    pairs = st.permutations(nodes).map(lambda order: order[:2])
    ends = draw(st.lists(pairs, min_size=1, max_size=4))
    links = tuple(
        Link(
            id=f"l{row}",
            source=source,
            target=target,
            capacity=draw(RATES),
            delay=draw(st.floats(0, 1e9)),
            buffer=draw(st.none() | st.floats(1.0, 1e15)),
            weight=draw(st.none() | st.floats(0, 1e300)),
        )
        for row, (source, target) in enumerate(ends)
    )
    ratios = st.none() | st.dictionaries(st.sampled_from([link.id for link in links]), st.floats(0, 1))
    demands = tuple(
        Demand(id=f"d{row}", source=source, target=target, mean=draw(RATES), std=draw(RATES), split=draw(ratios))
        for row, (source, target) in enumerate(draw(st.lists(pairs, max_size=3)))
    )
    places = st.none() | st.tuples(st.floats(-180, 180), st.floats(-90, 90))
    listed = tuple(Node(id=name, name=draw(st.none() | NAMES), pos=draw(places)) for name in nodes)
    return Network(links=links, demands=demands, nodes=listed, name=draw(st.text(max_size=5)))


@settings(max_examples=60)
@given(any_network())
def test_any_network_comes_back_by_every_way(tmp_path_factory, network) -> None:
    folder = tmp_path_factory.getbasetemp()
    again = read(folder, network.to_json())
    assert again == network
    assert again.to_json() == network.to_json()
    graph = network.to_networkx()
    assert sorted_links(Network.from_networkx(graph)) == sorted_links(network)
    assert sorted_links(read(folder, networkx_text(graph, edges="edges"))) == sorted_links(network)


# --- graphs of others -----------------------------------------------------------------------------------------------


def ring(kind: type[nx.Graph]) -> nx.Graph:
    graph = nx.cycle_graph(3, create_using=kind)
    nx.set_edge_attributes(graph, "10Mbit", "capacity")
    return graph


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("edges", ["edges", "links"])
def test_what_networkx_writes_is_read(kind, edges, tmp_path) -> None:
    """ "links" is what networkx before 3.6 writes; multigraphs have a key an edge. Undirected lines are two links."""
    network = read(tmp_path, networkx_text(ring(kind), edges=edges))
    assert network == Network.from_networkx(ring(kind))
    there = {("0", "1"), ("1", "2"), ("2", "0")}
    back = {pair[::-1] for pair in there}
    found = {(link.source, link.target) for link in network.links}
    assert found == (there if ring(kind).is_directed() else there | back)
    assert len(network.links) == len(found)
    assert {link.id for link in network.links} == {f"{u}->{v}" for u, v in found}


def test_parallel_edges_need_ids(tmp_path) -> None:
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, capacity=1e6, delay=0.01)
    graph.add_edge(0, 1, capacity=2e6)
    found = why(tmp_path, networkx_text(graph, edges="edges"))
    assert found == "links.0->1: got 'an id that occurs 2 times', takes a unique id for each"
    with pytest.raises(InvalidValue, match="a unique id"):
        Network.from_networkx(graph)
    graph.edges[0, 1, 1]["id"] = "second"
    network = read(tmp_path, networkx_text(graph, edges="edges"))
    assert network == Network.from_networkx(graph)
    assert [link.id for link in network.links] == ["0->1", "1->0", "second", "second:reverse"]
    assert [link.capacity for link in network.links] == [1e6, 1e6, 2e6, 2e6]
    assert [link.delay for link in network.links] == [0.01, 0.01, 0.0, 0.0]


def test_attributes_may_be_numbers_of_numpy() -> None:
    graph = nx.DiGraph(name="numpy")
    graph.add_node(0, pos=np.array([1.0, 2.0]))  # as networkx's layouts give them
    graph.add_edge(0, 1, capacity=np.float64(1e6), delay=np.float32(0.5), buffer=np.int64(1000), weight=np.float32(2))
    network = Network.from_networkx(graph)
    assert network.nodes[0].pos == (1.0, 2.0)
    assert network.links == (Link(source="0", target="1", capacity=1e6, delay=0.5, buffer=1e3, weight=2.0),)
    assert msgspec.json.decode(network.to_json())["graph"] == {"name": "numpy"}


def test_demands_come_from_the_argument_or_the_graph(tmp_path) -> None:
    graph = ring(nx.DiGraph)
    demand = {"source": 0, "target": 2, "mean": "1Mbit"}
    expected = (Demand(source="0", target="2", mean=1e6),)
    assert Network.from_networkx(graph, [demand]).demands == expected
    assert Network.from_networkx(graph, expected).demands == expected
    graph.graph["demands"] = [demand]
    assert Network.from_networkx(graph).demands == expected
    assert Network.from_networkx(graph, []).demands == ()
    content = nx.node_link_data(graph, edges="edges")
    assert read(tmp_path, content).demands == expected
    assert read(tmp_path, content | {"demands": []}).demands == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda graph: graph.edges[0, 1].pop("capacity"), "edges with `capacity` [bit/s]"),
        (lambda graph: graph.edges[0, 1].update(latency=3), "edges[0]: unknown key `latency`"),
        (lambda graph: graph.edges[1, 2].update(capacity=math.nan), "edges[1].capacity: got nan"),
        (lambda graph: graph.nodes[2].update(colour="red"), "nodes[2]: unknown key `colour`"),
        (lambda graph: graph.add_node((1, 2)), "nodes[3].id: got (1, 2)"),
        (lambda graph: graph.add_edge(1, 1, capacity=1), "edges[2].target: got '1', takes a node other"),
        (lambda graph: graph.graph.update(demands=[5]), "demands[0]: got 5, takes a table"),
    ],
)
def test_what_is_wrong_with_a_graph_is_named(change, said) -> None:
    graph = ring(nx.DiGraph)
    change(graph)
    with pytest.raises(InvalidValue) as refusal:
        Network.from_networkx(graph)
    assert refusal.value.argument == "graph"
    assert said in str(refusal.value)


@pytest.mark.parametrize("graph", [None, "abilene", {"edges": []}], ids=["None", "text", "dict"])
def test_what_is_no_graph_is_refused(graph) -> None:
    with pytest.raises(InvalidValue, match="a networkx graph"):
        Network.from_networkx(graph)


TOPOHUB: dict[str, Any] = {
    "directed": False,
    "multigraph": False,
    "graph": {"name": "made-up", "demands": {"A": {"B": 3580.0}}, "stats": {"nodes": 3, "links": 2}},
    "nodes": [{"pos": [1.5, 2.5], "id": "A"}, {"pos": [3.5, 4.5], "id": "B", "type": "City"}, {"id": "C"}],
    "links": [
        {"dist": 200, "ecmp_fwd": {"uni": 39.39}, "ecmp_bwd": {"uni": 39.39}, "source": "A", "target": "B"},
        {"dist": 328.5, "type": "Land", "source": "B", "target": "C"},
    ],
}


def test_a_file_of_topohub_is_read_with_a_capacity_and_the_unit_of_its_demands(tmp_path) -> None:
    """Lengths are in km; link loads and statistics are left out."""
    network = read(tmp_path, TOPOHUB, capacity="10Gbit", demand_unit="1Mbit")
    assert network.name == "made-up"
    assert network.demands == (Demand(source="A", target="B", mean=3580e6), Demand(source="B", target="A", mean=3580e6))
    assert network.nodes == (Node(id="A", pos=(1.5, 2.5)), Node(id="B", pos=(3.5, 4.5)), Node(id="C"))
    assert [link.id for link in network.links] == ["A->B", "B->A", "B->C", "C->B"]
    assert {link.capacity for link in network.links} == {10e9}
    assert [link.delay for link in network.links] == [0.001, 0.001, 328.5e3 / SIGNAL_SPEED, 328.5e3 / SIGNAL_SPEED]


def test_topohub_through_networkx(tmp_path) -> None:
    graph = nx.node_link_graph(TOPOHUB, edges="links")
    nx.set_edge_attributes(graph, 10e9, "capacity")
    desired = read(tmp_path, TOPOHUB, capacity=10e9, demand_unit=1e6)
    assert Network.from_networkx(graph, demand_unit="1Mbit") == desired
    with pytest.raises(InvalidValue, match=r"^graph\.demands: got '2 demands without a unit', takes the argument"):
        Network.from_networkx(graph)
    assert Network.from_networkx(graph, []) == read(tmp_path, TOPOHUB, capacity=10e9, demand_unit=0)


def test_a_demand_that_stands_one_way_only_counts_both_ways(tmp_path) -> None:
    """As TopoHub counts demands and loads links; not where the graph is directed."""

    def means(table: Any, **changes: Any) -> dict[tuple[str, str], float]:
        graph = {"demands": table}
        network = read(tmp_path, TOPOHUB | {"graph": graph} | changes, capacity=1e9, demand_unit="1kbit")
        assert all(demand.std == 0.0 and demand.split is None for demand in network.demands)
        return {(demand.source, demand.target): demand.mean for demand in network.demands}

    one_way = {"A": {"B": 2.0, "C": 0.5}, "C": {"B": 4}}
    both = {("A", "B"): 2e3, ("A", "C"): 500.0, ("C", "B"): 4e3, ("B", "A"): 2e3, ("C", "A"): 500.0, ("B", "C"): 4e3}
    assert means(one_way) == both
    assert means({"A": {"B": 2.0}, "B": {"A": 3.0}}) == {("A", "B"): 2e3, ("B", "A"): 3e3}
    assert means({"A": {"B": 2.0}, "B": {"A": 0.0}}) == {("A", "B"): 2e3}  # a demand of 0 stands there, and is none
    assert means({"A": {"B": 2.0}}, directed=True) == {("A", "B"): 2e3}
    assert means({}) == {}
    listed = [{"source": "A", "target": "B", "mean": "1Mbit"}]
    assert means(one_way, demands=listed) == {("A", "B"): 1e6}  # what stands beside nodes and edges comes first


def test_demands_without_a_unit_are_refused_or_left_out(tmp_path) -> None:
    assert why(tmp_path, TOPOHUB, capacity=1e9) == (
        "graph.demands: got '2 demands without a unit', takes the argument `demand_unit` (--demand-unit) too: "
        'the rate of a demand of 1, as in "1Mbit"; "0bit" leaves the demands out'
    )
    for nothing in (0, "0bit", 0.0):
        assert read(tmp_path, TOPOHUB, capacity=1e9, demand_unit=nothing).demands == ()
    empty = TOPOHUB | {"graph": {"name": "none", "demands": {}}}
    assert read(tmp_path, empty, capacity=1e9).demands == ()


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"A": 3.0}, "graph.demands.A"),
        ({"A": {"B": "3"}}, "graph.demands.A.B"),
        ({"A": {"B": -1}}, "graph.demands.A.B"),
        ({"A": {"B": True}}, "graph.demands.A.B"),
        ({"A": {"X": 1}}, "demands.A=>X.target"),
        ({"A": {"A": 1}}, "demands"),
    ],
)
def test_a_table_that_is_none_is_refused(table, place, tmp_path) -> None:
    content = TOPOHUB | {"graph": {"demands": table}}
    assert why(tmp_path, content, capacity=1e9, demand_unit="1Mbit").startswith(place)


@pytest.mark.parametrize("unit", [-1.0, math.nan, "10", "10Mbps", True])
def test_a_unit_that_is_no_rate_is_the_callers_fault(unit, tmp_path) -> None:
    with pytest.raises(InvalidValue) as refusal:
        read(tmp_path, TOPOHUB, capacity=1e9, demand_unit=unit)
    assert refusal.value.argument == "demand_unit"


def test_what_a_file_gives_comes_before_length_and_argument(tmp_path) -> None:
    content = copy.deepcopy(TOPOHUB)
    content["links"][0] |= {"capacity": "1Mbit", "delay": "7ms"}
    first, *_, last = read(tmp_path, content, capacity=10e9, demand_unit=0).links
    assert (first.capacity, first.delay) == (1e6, 0.007)
    assert last.capacity == 10e9


def test_a_missing_capacity_has_its_remedy(tmp_path) -> None:
    assert why(tmp_path, TOPOHUB, demand_unit=0) == (
        "edges[0]: key `capacity` is missing; read_network's argument `capacity` is for files without"
    )


@pytest.mark.parametrize("capacity", [0, -1.0, math.nan, "10", "10Mbps", True])
def test_a_capacity_that_is_none_is_the_callers_fault(capacity, tmp_path) -> None:
    with pytest.raises(InvalidValue) as refusal:
        read(tmp_path, TOPOHUB, capacity=capacity)
    assert refusal.value.argument == "capacity"


@pytest.mark.parametrize("length", [-1, "12 km", None, True, [5], 1e10])
def test_a_length_that_is_none_is_refused(length, tmp_path) -> None:
    content = copy.deepcopy(TOPOHUB)
    content["links"][1]["dist"] = length
    assert why(tmp_path, content, capacity=1e9, demand_unit=1e6).startswith("edges[1].dist: got ")


def test_lengths_are_of_topohub_only(tmp_path) -> None:
    assert why(tmp_path, edited(put("nodes", 0, "type", value="City"))).startswith("nodes[0]: unknown key `type`")


def test_of_graph_only_the_name_is_kept(tmp_path) -> None:
    network = read(tmp_path, CONTENT)
    assert network.name == "small"
    assert json.loads(network.to_json())["graph"] == {"name": "small"}
    for graph in ({}, {"name": 5}, {"name": None, "x": [[{}]]}):
        assert read(tmp_path, CONTENT | {"graph": graph}).name == ""


# --- refusals -------------------------------------------------------------------------------------------------------


def edited(*edits: Edit) -> dict[str, Any]:
    content = copy.deepcopy(CONTENT)
    for edit in edits:
        edit(content)
    return content


UP, DEMAND, SPLIT = ("edges", 0), ("demands", 1), ("demands", 1, "split")

NODES, LINKS = "takes ids of nodes; there are a, b, c", "takes ids of links; there are a->c, b->c, up"

# Each: what is done to the file above, and how the line begins.
REFUSED: dict[str, tuple[Edit, str]] = {
    "unknown key": (put(*UP, "capasity", value=1), "edges[0]: unknown key `capasity`, did you mean `capacity`?"),
    "unknown key of a demand": (put(*DEMAND, "sdt", value=1), "demands[1]: unknown key `sdt`, did you mean `std`?"),
    "unknown key at the top": (put("demand", value=[]), "unknown key `demand`, did you mean `demands`?"),
    "unknown key of great length": (put("k" * 10**6, value=1), "unknown key `kkkkkk"),
    "edges and links": (put("links", value=[]), "unknown key `links`"),
    "no capacity": (drop(*UP, "capacity"), "edges[0]: key `capacity` is missing"),
    "negative capacity": (put(*UP, "capacity", value=-10), "edges[0].capacity: got -10, takes a rate"),
    "capacity of 4000 digits": (put(*UP, "capacity", value=10**4000), "edges[0].capacity: got 1"),
    "negative deviation": (put(*DEMAND, "std", value=-1), "demands[1].std: got -1, takes 0, or a rate"),
    "self loop": (put(*UP, "target", value="a"), "edges[0].target: got 'a', takes a node other than source"),
    "a link twice": (put("edges", 1, "id", value="up"), "links.up: got 'an id that occurs 2 times', takes a unique id"),
    "a node twice": (put("nodes", 1, "id", value="a"), "nodes.a: got 'an id that occurs 2 times', takes a unique id"),
    "a demand twice": (put("demands", 0, "id", value="split"), "demands.split: got 'an id that occurs 2 times'"),
    "a link to nowhere": (put("edges", 2, "target", value="x"), f"links.a->x.target: got 'x', {NODES}"),
    "a demand from nowhere": (put("demands", 0, "source", value="x"), f"demands.x=>b.source: got 'x', {NODES}"),
    "a ratio of no link": (put(*SPLIT, "down", value=1), f"demands.split.split: got 'down', {LINKS}"),
    "a ratio of a long name": (put(*SPLIT, "x" * 10**6, value=1), "demands[1].split: got 'xxx"),
    "a multigraph's key": (put(*UP, "key", value=0), "edges[0]: unknown key `key`"),
    "a negative ratio": (put(*SPLIT, "b->c", value=-0.5), "demands[1].split.b->c: got -0.5, takes a ratio"),
    "a ratio above 1": (put(*SPLIT, "up", value=1.5), "demands[1].split.up: got 1.5, takes a ratio from 0 to 1"),
    "text for a ratio": (put(*SPLIT, "up", value="half"), "demands[1].split.up: got 'half', takes a ratio"),
    "a list of ratios": (put(*SPLIT, value=["up"]), "demands[1].split: got ['up'], takes a table from link id"),
    "a long id": (put(*UP, "id", value="x" * 65), "edges[0].id: got 'xxx"),
    "an id of two lines": (put(*UP, "id", value="a\nb"), r"edges[0].id: got 'a\nb', takes a name"),
    "a place of three": (put("nodes", 0, "pos", value=[1, 2, 3]), "nodes[0].pos: got [1, 2, 3], takes two finite"),
    "no links": (put("edges", value=[]), "links: got '0 links', takes 1 to 1000000 links"),
    "a number for a link": (put("edges", 1, value=5), "edges[1]: got 5, takes a table"),
    "a table for demands": (put("demands", value={"a": 1}), "demands: got a table, takes a list"),
    "text for nodes": (put("nodes", value="abc"), "nodes: got 'abc', takes a list"),
    "a list for graph": (put("graph", value=[1]), "graph: got [1], takes a table"),
    "text for directed": (put("directed", value="yes"), "directed: got 'yes', takes true or false"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_one_line_with_place_and_value(name, tmp_path) -> None:
    edit, begins = REFUSED[name]
    found = why(tmp_path, edited(edit))
    assert found.startswith(begins), found


EDGE = '{{"edges": [{{"source": "a", "target": "b", "capacity": {} }}]}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("edges: []", "not JSON"),
        ('{"edges": []} x', "not JSON"),
        (EDGE.format("NaN"), "not JSON"),
        (b"\0" * 10_000_000, "not JSON"),
        (b'"' + b"x" * 10_000_000 + b'"', "not a network"),
        (b'{"edges": [' + b"1," * 5_000_000 + b"1]}", "edges[0]: got 1, takes a table"),
        (b'{"edges": [], "' + b"x" * 10_000_000 + b'": 1}', "unknown key `xxx"),
        (EDGE.format('{"a": ' * 100_000 + "1" + "}" * 100_000), "nested too deeply"),
        ("{}", "not a network"),
        ('{"nodes": []}', "not a network"),
        ('{"edges": {"a": 1}}', "not a network"),
    ],
    ids=lambda part: ascii(part)[:20],
)
def test_what_is_no_network_says_so(text, said, tmp_path) -> None:
    assert said in why(tmp_path, text)


NAN, INF = math.nan, math.inf
LINK = {"source": "a", "target": "b", "capacity": 1e6}
FLOW = {"source": "a", "target": "b", "mean": 1e6}


@pytest.mark.parametrize(
    ("record", "good", "field", "values"),
    [
        (Link, LINK, "capacity", [NAN, INF, None, True, "10", 10**400]),
        (Link, LINK, "delay", [NAN, INF, None, -1e-9]),
        (Link, LINK, "buffer", [NAN, INF, -1]),
        (Link, LINK, "weight", [NAN, INF, -1e-9, "1"]),
        (Link, LINK, "source", [None, 1.5, b"a", ""]),
        (Link, LINK, "id", [False, 1.5, b"a", "x" * 65]),
        (Demand, FLOW, "mean", [NAN, INF, 0, None]),
        (Demand, FLOW, "std", [NAN, INF, -1, None, False, np.zeros(2)]),
        (Demand, FLOW, "split", [["x"], "x", 5]),
        (Node, {"id": "a"}, "pos", [(NAN, 0), (0, INF), (1,), 5, ("1", "2")]),
        (Node, {"id": "a"}, "name", [5, b"a"]),
        (Network, {"links": (Link(**LINK),)}, "links", [None, [5], (), "a->b"]),
        (Network, {"links": (Link(**LINK),)}, "nodes", [None, ["a"]]),
        (Network, {"links": (Link(**LINK),)}, "demands", [None, [Link(**LINK)]]),
        (Network, {"links": (Link(**LINK),)}, "name", [None, 5]),
    ],
    ids=lambda part: getattr(part, "__name__", part if isinstance(part, str) else ""),
)
def test_python_is_held_to_the_same(record, good, field, values) -> None:
    """JSON has no NaN, but Python has; and msgspec checks types of files only."""
    record(**good)
    for value in values:
        with pytest.raises(InvalidValue) as refusal:
            record(**(good | {field: value}))
        assert refusal.value.argument == field


def places(content: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in nested tables and lists."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [*([path] if path else []), *(place for key, each in items for place in places(each, (*path, key)))]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES |= st.text(max_size=5) | st.sampled_from(["a", "b", "up", "1Mbit", "0bit", 0, 1, 1e308, 5e-324, 2**64])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from([CONTENT, TOPOHUB]), st.data(), st.sampled_from([None, 1e9]), st.sampled_from([None, 0.0, 1e6]))
def test_any_change_gives_a_network_or_one_line(tmp_path_factory, content, data, capacity, unit) -> None:
    content = copy.deepcopy(content)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(content) or [("edges",)]))
        (put(*place, value=data.draw(VALUES)) if data.draw(st.booleans()) else drop(*place))(content)
    folder = tmp_path_factory.getbasetemp()
    try:
        network = read(folder, content, capacity=capacity, demand_unit=unit)
    except FileError as error:
        assert len(str(error).splitlines()) == 1
        assert len(error.why) < 600
    else:
        assert read(folder, network.to_json()) == network


# --- networks that come with netctrl --------------------------------------------------------------------------------


def shipped(name: str) -> Network:
    return read_network(network_path(name))


def test_these_come_with_netctrl() -> None:
    assert networks() == ("abilene", "abilene-bursts", "merge", "tandem", "testbed", "three-in-a-row", "wan")


@pytest.mark.parametrize("name", networks())
def test_each_of_them_is_read_comes_back_and_can_be_routed(name, tmp_path) -> None:
    network = shipped(name)
    assert read(tmp_path, network.to_json()) == network
    assert routing(network).load.min() > 0.0
    assert json.loads(network_path(name).read_bytes())["graph"]["source"]


@pytest.mark.parametrize("name", networks())
def test_each_of_them_is_what_its_script_writes(name) -> None:
    script = runpy.run_path(str(EXPERIMENTS / "hftrac" / "networks.py"))
    assert script["NETWORKS"].keys() == set(networks())
    assert network_path(name).read_bytes() == script["file"](name)


@pytest.mark.parametrize(
    ("name", "capacity", "buffer", "load"),
    [
        ("tandem", [23, 18], [0.2] * 2, [16, 16]),
        ("merge", [36] * 3, [0.8] * 3, [17.5, 17.5, 35]),
        ("testbed", [42, 42, 30, 30, 30], [0.3, 0.3, 0.2, 0.2, 0.2], [19, 38, 28.5, 28.5, 9.5]),
    ],
)
def test_numbers_of_the_hftrac_paper_stand_in_them(name, capacity, buffer, load) -> None:
    """HFTraC paper, Section II and Section V-A; its buffers are in Mbit."""
    network = shipped(name)
    assert [link.capacity / 1e6 for link in network.links] == capacity
    assert [8 * (link.buffer or 0.0) / 1e6 for link in network.links] == pytest.approx(buffer, rel=1e-15)
    assert routing(network).load / 1e6 == pytest.approx(load, rel=1e-15)


def test_the_wan_has_what_the_papers_text_gives() -> None:
    """Four sites on three continents, buffers of 0.8 Mbit, deviations of 5 Mbit/s; the rest is ours."""
    network = shipped("wan")
    assert len(network.nodes) == 4
    assert {link.buffer for link in network.links} == {0.8e6 / 8}
    assert {demand.std for demand in network.demands} == {5e6}
    east = {link.id: link.delay for link in network.links}
    assert east["FRA->IAD"] == east["IAD->FRA"] == pytest.approx(6.5e6 / 2e8, rel=0.01)
    assert east["SFO->TYO"] == pytest.approx(8.27e6 / 2e8, rel=0.01)


def test_abilene_is_the_backbone_of_the_hftrac_paper() -> None:
    """Fig. 12a: 11 nodes, 28 links of 100 Mbit/s; Section V-C: at most 85 % utilised."""
    network = shipped("abilene")
    assert (len(network.nodes), len(network.links), len(network.demands)) == (11, 28, 110)
    assert {link.capacity for link in network.links} == {100e6}
    ends = {(link.source, link.target) for link in network.links}
    assert ends == {(target, source) for source, target in ends}
    assert routing(network).load.max() == pytest.approx(85e6, rel=1e-4)
    assert all(demand.std == pytest.approx(0.1 * demand.mean) for demand in network.demands)


def test_its_delays_are_great_circles_at_two_thirds_of_light() -> None:
    """By the angle between two unit vectors, not by the script's haversine."""
    network = shipped("abilene")
    degrees = np.radians([node.pos for node in network.nodes])
    lon, lat = degrees.T
    points = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    place = {node.id: point for node, point in zip(network.nodes, points, strict=True)}
    for link in network.links:
        length = 6371e3 * math.acos(place[link.source] @ place[link.target])
        assert link.delay == pytest.approx(length / SIGNAL_SPEED, abs=5.1e-6)


def test_its_demands_are_a_gravity_model() -> None:
    """d_ij d_ji = d_ij², and d_ij d_kl = d_il d_kj for four cities."""
    mean = {(demand.source, demand.target): demand.mean for demand in shipped("abilene").demands}
    assert all(mean[j, i] == value for (i, j), value in mean.items())
    for i, j, k, h in (("NYCM", "LOSA", "CHIN", "HSTN"), ("WASH", "ATLA", "STTL", "DNVR")):
        assert mean[i, j] * mean[k, h] == pytest.approx(mean[i, h] * mean[k, j], rel=2e-3)  # whole kbit/s


def test_a_file_comes_before_a_network_of_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = network_path("abilene")
    assert there.is_file()
    assert there.is_absolute()
    Path("abilene").mkdir()
    assert network_path("abilene") == there
    Path("abilene").rmdir()
    Path("abilene").write_bytes(SAME.to_json())
    assert network_path("abilene") == Path("abilene")
    assert network_path("missing.json") == Path("missing.json")  # the reader says that it is missing


@pytest.mark.parametrize("name", ["", "geant", "ABILENE", "../abilene", "x" * 5000, "a\0b", "abilene/"])
def test_an_unknown_name_is_refused_with_the_known_ones(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue) as refusal:
        network_path(name)
    assert refusal.value.argument == "network"
    assert ", ".join(networks()) in refusal.value.takes


def test_an_installation_without_data_has_no_networks(tmp_path, monkeypatch) -> None:
    for folder in ("_INSTALLED", "_CHECKOUT"):
        monkeypatch.setattr(datasets, folder, tmp_path)
    assert networks() == ()
    with pytest.raises(InvalidValue):
        network_path("abilene")
