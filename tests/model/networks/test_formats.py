"""Networks in the formats of others: small samples in the form of public files, read, and refused where needed."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.engines.what_if.run import what_if
from netctrl.model.io.topohub import SIGNAL_SPEED
from netctrl.model.network import Network, noted_network, read_network
from netctrl.model.networks.demands import fit_demands, gravity
from netctrl.model.networks.draft import Added, added_of, great_circle, rate_of

# Three nodes of the Internet Topology Zoo's Abilene (topology-zoo.org), in the form of its GraphML files.
GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d37" />
  <key attr.name="LinkLabel" attr.type="string" for="edge" id="d36" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Network" attr.type="string" for="graph" id="d6" />
  <graph edgedefault="undirected">
    <data key="d6">Abilene</data>
    <node id="0"><data key="d29">40.71427</data><data key="d32">-74.00597</data><data key="d33">New York</data></node>
    <node id="1"><data key="d29">41.85003</data><data key="d32">-87.65005</data><data key="d33">Chicago</data></node>
    <node id="2"><data key="d29">38.89511</data><data key="d32">-77.03637</data>
      <data key="d33">Washington, DC</data></node>
    <edge source="0" target="1"><data key="d36">OC-192</data><data key="d37">10000000000.0</data></edge>
    <edge source="0" target="2"><data key="d36">2.5 Gbps</data></edge>
  </graph>
</graphml>
"""
GML = """graph [
  DateObtained "3/02/11"  # a comment
  Network "Abilene"
  node [ id 0 label "New York" Longitude -74.00597 Latitude 40.71427 ]
  node [ id 1 label "Chicago" Longitude -87.65005 Latitude 41.85003 ]
  node [ id 2 label "Washington, DC" Longitude -77.03637 Latitude 38.89511 ]
  edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" LinkSpeedRaw 10000000000.0 ]
  edge [ source 0 target 2 LinkLabel "2.5 Gbps" ]
]
"""
# Of REPETITA's Abilene.graph and Abilene.0000.demands (github.com/svissicchio/Repetita): kbit/s and microseconds.
GRAPH = """NODES 3
label x y
0_New_York -74.00597 40.71427
1_Chicago -87.65005 41.85003
2_Washington_DC -77.03637 38.89511

EDGES 4
label src dest weight bw delay
edge_0 0 1 10 9953280 1913
edge_1 1 0 10 9953280 1913
edge_2 0 2 10 9953280 552
edge_3 2 0 10 9953280 552
"""
DEMANDS = "DEMANDS 2\nlabel src dest bw\ndemand_0 0 1 300632\ndemand_1 1 2 158179\n"
# In the form of SNDlib's germany50 (sndlib.put.poznan.pl).
XML = """<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <networkStructure>
  <nodes coordinatesType="geographical">
   <node id="Aachen"><coordinates><x>6.04</x><y>50.76</y></coordinates></node>
   <node id="Koeln"><coordinates><x>6.96</x><y>50.94</y></coordinates></node>
   <node id="Trier"><coordinates><x>6.68</x><y>49.75</y></coordinates></node>
  </nodes>
  <links>
   <link id="L1"><source>Aachen</source><target>Koeln</target>
    <preInstalledModule><capacity>0.00</capacity><cost>0.00</cost></preInstalledModule>
    <additionalModules><addModule><capacity>40.0</capacity><cost>21.0</cost></addModule>
     <addModule><capacity>10.0</capacity><cost>9.0</cost></addModule></additionalModules></link>
   <link id="L2"><source>Koeln</source><target>Trier</target>
    <preInstalledModule><capacity>20.0</capacity><cost>0.00</cost></preInstalledModule></link>
  </links>
 </networkStructure>
 <demands>
  <demand id="D1"><source>Aachen</source><target>Trier</target><routingUnit>1</routingUnit>
   <demandValue>5.0</demandValue></demand>
 </demands>
</network>
"""
MATRIX = XML.replace(" <networkStructure>", " <meta><unit>MBITPERSEC</unit></meta>\n <networkStructure>")
SNDLIB_JSON = json.dumps(
    {
        "networkStructure": {
            "nodes": {"node": [{"@id": name, "coordinates": {"x": x, "y": 50.0}} for name, x in (("A", 6), ("B", 7))]},
            "links": {"link": {"@id": "L", "source": "A", "target": "B", "preInstalledModule": {"capacity": "40.0"}}},
        },
        "demands": {"demand": [{"@id": "D", "source": "B", "target": "A", "demandValue": 3}]},
    }
)
# The network of `XML` in the form of germany50's native file.
NATIVE = """?SNDlib native format; type: network; version: 1.0
# network germany

META (
)

NODES (
  Aachen ( 6.04 50.76 )
  Koeln ( 6.96 50.94 )
  Trier ( 6.68 49.75 )
)

LINKS (
  # <link_id> ( <source> <target> ) <capacity> <its cost> <routing_cost> <setup_cost> ( {<module> <its cost>}* )
  L1 ( Aachen Koeln ) 0.00 0.00 0.00 0.00 ( 40.0 21.0 10.0 9.0 )
  L2 ( Koeln Trier ) 20.0 0.00 0.00 0.00 ( )
)

DEMANDS (
  D1 ( Aachen Trier ) 1 5.0 UNLIMITED
)
"""
# In both forms of containerlab.dev/manual/topo-def-file.
CLAB = """name: lab
topology:
  defaults: &linux {kind: linux}
  nodes:
    srl: {kind: nokia_srlinux}
    ceos: {<<: *linux}
    frr: {}
  links:
    - endpoints: ["srl:e1-1", "ceos:eth1"]
      vars: {capacity: 10Mbit, delay: 5ms}
    - type: veth
      endpoints: [{node: ceos, interface: eth2}, {node: frr, interface: eth1}]
    - endpoints: ["srl:e1-2", "host:eth7"]
"""
LINKS = "src,dst,capacity_gbps,latency [ms]\nA,B,10,5\nB,C,2.5,7\n"
SAMPLES = {
    "zoo.graphml": GRAPHML,
    "zoo.gml": GML,
    "abilene.graph": GRAPH,
    "matrix.demands": DEMANDS,
    "germany.xml": XML,
    "germany.txt": NATIVE,
    "matrix.xml": MATRIX,
    "two.json": SNDLIB_JSON,
    "lab.clab.yml": CLAB,
    "links.csv": LINKS,
    "long.csv": "time,source,target,mean_mbps,std\n0,A,B,100,10%\n300,A,B,200,1Mbit\n300,C,A,30,\n",
    "wide.csv": "time_s,A->B,B->C\n0,1e6,2e6\n300,3e6,4e6\n600,5e6,9e6\n",
    "square.csv": ",A,B,C\nA,0,1,2\nB,3,0,4\nC,5,6,0\n",
}

MASS = {"STTL": 1.0, "NYCM": 2.0, "CHIN": 3.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, text in SAMPLES.items():
        (folder / name).write_text(text)
    return folder


def read(path: Any, **options: Any) -> Network:
    """The network, whatever its notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return read_network(path, **options)


def noted(path: Any, demands: Any = None, **options: Any) -> tuple[Network, tuple[str, ...]]:
    return noted_network(path, demands, added_of(**dict.fromkeys(Added._fields) | options))


def by_ends(network: Network) -> dict[tuple[str, str], Any]:
    return {(link.source, link.target): link for link in network.links}


@pytest.mark.parametrize("name", ["zoo.graphml", "zoo.gml"])
def test_the_topology_zoo_has_capacities_and_places(name, files) -> None:
    with pytest.warns(
        UserWarning, match="2 links have the delay of the great circle between their ends at 200000 km/s"
    ):
        network = read_network(files / name)
    assert network.name == "Abilene"
    links = by_ends(network)
    assert {ends: link.capacity for ends, link in links.items()} == {
        ("New York", "Chicago"): 10e9,
        ("Chicago", "New York"): 10e9,
        ("New York", "Washington, DC"): 2.5e9,
        ("Washington, DC", "New York"): 2.5e9,
    }
    # 1145 km and 328 km, by other people's calculators of great circles
    assert links["New York", "Chicago"].delay == pytest.approx(1145e3 / SIGNAL_SPEED, rel=2e-3)
    assert links["Washington, DC", "New York"].delay == pytest.approx(328e3 / SIGNAL_SPEED, rel=2e-3)
    assert {link.delay for link in read(files / name, delay="1ms").links} == {1e-3}


def test_networkx_agrees_about_its_own_formats(tmp_path) -> None:
    graph = nx.gnm_random_graph(12, 20, seed=3)
    nx.set_edge_attributes(graph, {edge: (1 + sum(edge)) * 1e9 for edge in graph.edges}, "capacity")
    nx.set_edge_attributes(graph, {edge: 1e-3 * (1 + edge[0]) for edge in graph.edges}, "delay")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gml(graph, tmp_path / "g.gml")
    expected = {
        (str(u), str(v)): (data["capacity"], data["delay"]) for u, v, data in graph.to_directed().edges(data=True)
    }
    for name in ("g.graphml", "g.gml"):
        network = read(tmp_path / name, capacity_unit="1bit", delay_unit="1s")
        assert {ends: (each.capacity, each.delay) for ends, each in by_ends(network).items()} == expected
        with pytest.raises(FileError, match=r"capacity: got '20 numbers without a unit.*--capacity-unit"):
            read_network(tmp_path / name)
    assert by_ends(read(tmp_path / "g.gml", capacity_unit=1, delay_unit=1)) == by_ends(
        Network.from_networkx(graph, capacity_unit=1, delay_unit=1)
    )


def test_bare_capacities_of_a_graph_that_are_no_rates_are_asked_for() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", capacity=10, delay=5)
    with pytest.raises(InvalidValue, match="the argument `capacity_unit` too"):
        Network.from_networkx(graph)
    link = Network.from_networkx(graph, capacity_unit="1Gbit", delay_unit="1ms").links[0]
    assert (link.capacity, link.delay) == (10e9, 5e-3)
    assert Network.from_networkx(Network.from_networkx(graph, capacity_unit=1, delay_unit=1).to_networkx())


def test_repetita_is_in_kilobits_and_microseconds(files) -> None:
    network = read_network(files / "abilene.graph", demands=files / "matrix.demands")
    assert [(link.id, link.capacity, link.delay) for link in network.links[:3:2]] == [
        ("edge_0", 9953.28e6, pytest.approx(1.913e-3)),
        ("edge_2", 9953.28e6, pytest.approx(552e-6)),
    ]
    means = {(each.source, each.target): each.mean for each in network.demands}
    assert means == {("0_New_York", "1_Chicago"): 300.632e6, ("1_Chicago", "2_Washington_DC"): 158.179e6}


def test_sndlib_takes_installed_capacities_the_smallest_module_or_the_option(files) -> None:
    network = read(files / "germany.xml", demand_unit="1Gbit")
    assert [link.capacity for link in network.links] == [10e9, 10e9, 20e9, 20e9]
    assert [(each.source, each.target, each.mean) for each in network.demands] == [
        ("Aachen", "Trier", 5e9),
        ("Trier", "Aachen", 5e9),
    ]
    assert [link.capacity for link in read(files / "germany.xml", demand_unit=1e9, capacity="1Gbit").links][:2] == [
        1e9
    ] * 2
    with pytest.raises(FileError, match="--capacity-unit"):
        read_network(files / "germany.xml")
    assert read(files / "germany.txt", demand_unit="1Gbit") == network
    broken = NATIVE.replace("( Aachen Koeln )", "( Aachen )").replace("META (", "META (\nunit = MBITPERSEC")
    (files / "broken.txt").write_text(broken)
    partly, notes = noted(files / "broken.txt")
    assert notes[0] == "line 16 is left out: not a record of the section LINKS"
    assert [(each.id, each.capacity) for each in partly.links][:1] == [("L2", 20e6)]
    matrix = read(files / "matrix.xml")  # names its unit, and is directed
    assert [(each.source, each.mean) for each in matrix.demands] == [("Aachen", 5e6)]
    assert matrix.links[0].capacity == 10e6
    assert read(files / "two.json", demand_unit="1Mbit").links[0].capacity == 40e6


def test_containerlab_links_nodes_and_leaves_the_host_out(files) -> None:
    pytest.importorskip("yaml")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        network = read_network(files / "lab.clab.yml", capacity="1Gbit")
    said = [str(each.message).partition(": ")[2] for each in told]
    assert said[0].startswith("links[2] is left out: no link between two nodes")
    assert said[1] == "1 link has the capacity of the option, 1 Gbit/s"
    links = by_ends(network)
    assert {(*ends, link.capacity, link.delay) for ends, link in links.items()} == {
        ("srl", "ceos", 10e6, 5e-3),
        ("ceos", "srl", 10e6, 5e-3),
        ("ceos", "frr", 1e9, 0.0),
        ("frr", "ceos", 1e9, 0.0),
    }


def test_tables_of_links_and_demands(files) -> None:
    network = read(files / "links.csv", demands=files / "long.csv")
    assert [(link.id, link.capacity, link.delay) for link in network.links][::2] == [
        ("A->B", 10e9, 5e-3),
        ("B->C", 2.5e9, 7e-3),
    ]
    found = {each.id: (each.mean, each.std) for each in network.demands}  # two matrices: 0 and 30 Mbit/s of C=>A
    assert found == {
        "A=>B": (150e6, pytest.approx(np.std([100e6, 200e6], ddof=1))),
        "C=>A": (15e6, pytest.approx(np.std([0, 30e6], ddof=1))),
    }
    frame = pd.read_csv(files / "links.csv")
    again = read(frame, demands=pd.read_csv(files / "long.csv"))
    assert (again.links, again.demands) == (network.links, network.demands)
    wide = read(files / "links.csv", demands=files / "wide.csv", demand_unit="1bit")
    assert {each.id: each.mean for each in wide.demands} == {"A=>B": 3e6, "B=>C": 5e6}
    square = read(files / "links.csv", demands=files / "square.csv", demand_unit="1Mbit")
    assert {each.id: each.mean for each in square.demands}["C=>B"] == 6e6
    assert len(square.demands) == 6
    with pytest.raises(FileError, match="--demand-unit"):
        read_network(files / "links.csv", demands=files / "wide.csv")


def test_one_bad_line_hides_no_other(tmp_path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("source,target,capacity\nA,B,10Gbit\nB,,1G\nC,C,1G\nB,C,ten\nC,A,-5Gbit\nA,D,100 Mbps\n")
    network = read(path, capacity="1Mbit", delay="1ms")
    assert {ends: link.capacity for ends, link in by_ends(network).items() if ends[0] < ends[1]} == {
        ("A", "B"): 10e9,
        ("A", "C"): 1e6,
        ("A", "D"): 1e8,
        ("B", "C"): 1e6,
    }


def test_yed_has_labels_in_shapes(tmp_path) -> None:
    def node(key: str, label: str) -> str:
        shape = f'<y:ShapeNode><y:Geometry x="1"/><y:NodeLabel visible="true">{label}</y:NodeLabel></y:ShapeNode>'
        return f'<node id="{key}"><data key="d5">{shape}</data></node>'

    text = (
        f'<graph edgedefault="directed">{node("n0", "Kiel")}{node("n1", "Ulm")}<edge source="n1" target="n0"/></graph>'
    )
    keys = '<key id="d5" for="node" yfiles.type="nodegraphics"/>'
    (tmp_path / "y.graphml").write_text(f'<graphml xmlns:y="y">{keys}{text}</graphml>')
    assert [link.id for link in read(tmp_path / "y.graphml", capacity=1e9).links] == ["Ulm->Kiel"]


def test_long_names_and_demands_to_oneself_hide_nothing(tmp_path) -> None:
    a, b = "a" * 60, "b" * 60
    (tmp_path / "l.csv").write_text(f"source,target,capacity\n{a},{b},1G\n")
    (tmp_path / "d.csv").write_text(f"source,target,mean_mbps\n{a},{b},1\n{b},{a},2\n{a},{a},3\n")
    network = read(tmp_path / "l.csv", demands=tmp_path / "d.csv", delay=0)
    assert [each.mean for each in network.demands] == [1e6, 2e6]
    assert len({each.id for each in (*network.demands, *network.links)}) == 4
    assert len(gravity(network, 1e6).demands) == 2


def test_node_link_json_of_others_keeps_names_and_demands(tmp_path) -> None:
    content = {
        "graph": {"name": "x", "demands": {"0": {"1": 2.0}}},
        "nodes": [{"id": 0, "name": "Kiel"}, {"id": 1}],
        "edges": [{"source": 0, "target": 1, "bandwidth": 10, "latency": 5, "weight": 7}],
    }
    (tmp_path / "x.json").write_text(json.dumps(content))
    network = read(tmp_path / "x.json", capacity_unit="1Gbit", delay_unit="1ms", demand_unit="1Mbit")
    assert [(link.id, link.capacity, link.delay) for link in network.links] == [
        ("0->1", 10e9, 5e-3),
        ("1->0", 10e9, 5e-3),
    ]
    assert [(each.id, each.mean) for each in network.demands] == [("0=>1", 2e6), ("1=>0", 2e6)]
    assert network.nodes[0].name == "Kiel"
    content["demands"] = [{"source": 1, "target": 0, "mean": "3Mbit", "std": 1e5}]
    (tmp_path / "x.json").write_text(json.dumps(content))
    demand = read(tmp_path / "x.json", capacity_unit="1Gbit", delay_unit="1ms").demands[0]
    assert (demand.id, demand.mean, demand.std) == ("1=>0", 3e6, 1e5)


def test_gravity_is_in_proportion_to_both_ends() -> None:
    network = gravity(netctrl.read("abilene"), 1e9, MASS, std=0.1)
    products = {(a, b): x * y for a, x in MASS.items() for b, y in MASS.items() if a != b}
    expected = {ends: 1e9 * product / sum(products.values()) for ends, product in products.items()}
    assert {(each.source, each.target): each.mean for each in network.demands} == pytest.approx(expected)
    assert [each.std / each.mean for each in network.demands] == pytest.approx([0.1] * 6)
    with pytest.raises(InvalidValue, match="two of them above 0"):
        gravity(network, 1e9, {"STTL": 1.0})


def test_fitted_demands_have_the_correlations_that_were_drawn() -> None:
    """Two autoregressive demands with correlated shocks."""
    rng, memory, together = np.random.default_rng(4), 0.8, -0.6
    shocks = rng.multivariate_normal([0, 0], [[1, together], [together, 1]], size=20000)
    away = np.zeros((20000, 2))
    for t in range(1, 20000):
        away[t] = memory * away[t - 1] + shocks[t]
    table = pd.DataFrame(50e6 + 1e6 * away, columns=["S1->D", "S2=>D"]).assign(time_s=300.0 * np.arange(20000))
    fit = fit_demands(netctrl.read("merge"), table, demand_unit="1bit")
    assert fit.mean == pytest.approx([50e6, 50e6], rel=0.01)
    assert fit.std == pytest.approx([1e6 / math.sqrt(1 - memory**2)] * 2, rel=0.03)
    assert fit.innovation_std == pytest.approx([1e6, 1e6], rel=0.02)
    assert fit.correlation[0, 1] == pytest.approx(together, abs=0.03)
    assert fit.correlation_time(300.0) == pytest.approx([-300.0 / math.log(memory)] * 2, rel=0.06)
    assert {each.id: each.std for each in fit.network.demands} == {"S1=>D": fit.std[0], "S2=>D": fit.std[1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><network>&b;</network>', "document type"),
        ('<?xml version="1.0"?><!DOCTYPE graphml SYSTEM "file:///etc/passwd"><graphml/>', "document type"),
        ("<graphml>" + "<a>" * 5000 + "</a>" * 5000 + "</graphml>", "nested too deeply"),
        ("<svg/>", "XML of another kind"),
        ("graph [ node [ id 1 ]", "ends within a value"),
        ("graph [" * 500, "unexpected ["),
        ("graph [ node [ id 1 ] ]", "it has no links"),
        ("topology: " + "[" * 3000, "nested too deeply"),
        ("topology: {links: [" + "&a x, " + "*a, " * 500 + "]}", "aliases"),
        ("hello", "no table"),
        ("a,b\n1,2\n", "none for 1 of 1 links"),
        ("source,target,mean\na,b,1e6\n", "a table of demands"),
        ("x,y\n0,1e6\n", "columns `source` and `target`"),
    ],
)
def test_what_is_no_network_is_one_line_that_helps(text, said, tmp_path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(FileError) as refusal:
        read_network(path)
    assert said in refusal.value.why
    assert len(refusal.value.why) < 600


@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(-180, 180), st.floats(-90, 90))
def test_great_circles_are_the_angle_between_unit_vectors(x0, y0, x1, y1) -> None:
    def vector(x: float, y: float) -> np.ndarray:
        x, y = math.radians(x), math.radians(y)
        return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])

    a, b = vector(x0, y0), vector(x1, y1)
    angle = math.atan2(np.linalg.norm(np.cross(a, b)), a @ b)
    assert great_circle((x0, y0), (x1, y1)) == pytest.approx(6371008.8 * angle, rel=1e-6, abs=1.0)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10G", 10e9),
        ("10Gb", 10e9),
        ("2.5 Gbps", 2.5e9),
        ("155 Mbit/s", 155e6),
        ("1e3 kb/s", 1e6),
        ("64 kbits/s", 64e3),
    ],
)
def test_rates_as_people_write_them(text, rate) -> None:
    assert rate_of(text) == rate
    for wrong in (f"{text} x", f"-{text}", "10 GB/s", "10-20Gbps", ""):
        with pytest.raises(ValueError, match=r".*"):
            rate_of(wrong)


def mutants(text: bytes, rng: random.Random) -> Iterator[bytes]:
    """Random edits of a file: bytes cut, repeated, changed, and tokens that matter to parsers put in."""
    tokens = [
        b'"',
        b"<",
        b">",
        b"[",
        b"]",
        b"{",
        b"&a;",
        b"nan",
        b"1e999",
        b"-1",
        b"\0",
        b"\xff",
        b"9" * 50,
        b"\n",
        b",",
    ]
    while True:
        found = bytearray(text)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(found) + 1)
            end = min(len(found), at + rng.randint(0, 60))
            found[at:end] = rng.choice([b"", found[at:end] * 2, rng.randbytes(1), rng.choice(tokens)])
        yield bytes(found)


@pytest.mark.parametrize("name", SAMPLES)
def test_any_damage_is_read_or_refused_at_once(name, files, tmp_path) -> None:
    rng = random.Random(name)
    path = tmp_path / name
    options = dict.fromkeys(("capacity", "capacity_unit", "demand_unit"), 1e6) | {"delay": 1e-3, "delay_unit": 1e-3}
    for number, mutant in zip(range(60), mutants(SAMPLES[name].encode(), rng), strict=False):
        path.write_bytes(mutant)
        try:
            if number % 3:
                read(path, **(options if number % 2 else {}))
            else:
                read(files / "links.csv", demands=path, demand_unit=1e6)
        except (FileError, InvalidValue) as error:
            assert len(str(error)) < 1000
            assert "\n" not in str(error)


def test_lines_drawn_both_ways_leave_an_undirected_graph_undirected(tmp_path) -> None:
    """Two parallel lines, of which one is drawn from its other end, and a line besides."""
    edges = [("a", "b"), ("b", "a"), ("b", "c")]
    drawn = "".join(f'<edge source="{a}" target="{b}"/>' for a, b in edges)
    nodes = "".join(f'<node id="{name}"/>' for name in "abc")
    lab = "".join(f'    - endpoints: ["{a}:e{k}", "{b}:e{k}"]\n' for k, (a, b) in enumerate(edges))
    listed = [{"source": a, "target": b} for a, b in edges]
    files = {
        "x.graphml": f'<graphml><graph edgedefault="undirected">{nodes}{drawn}</graph></graphml>',
        "x.gml": "graph [ "
        + "".join(f'node [ id {k} label "{name}" ] ' for k, name in enumerate("abc"))
        + "".join(f"edge [ source {'abc'.index(a)} target {'abc'.index(b)} ] " for a, b in edges)
        + "]",
        "x.clab.yml": f"topology:\n  nodes: {{a: {{}}, b: {{}}, c: {{}}}}\n  links:\n{lab}",
        "x.json": json.dumps({"directed": False, "nodes": [{"id": name} for name in "abc"], "edges": listed}),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        network = read(tmp_path / name, capacity="1Gbit", delay="1ms")
        assert sorted((link.source, link.target) for link in network.links) == sorted(
            [(a, b) for a, b in edges] + [(b, a) for a, b in edges]
        ), name
    (tmp_path / "y.graphml").write_text(files["x.graphml"].replace("undirected", "directed"))
    assert len(read(tmp_path / "y.graphml", capacity="1Gbit").links) == 3
    (tmp_path / "y.graphml").write_text(
        '<graphml><graph edgedefault="directed"><edge source="a" target="b"/></graph></graphml>'
    )
    notes = noted(tmp_path / "y.graphml", capacity="1Gbit", delay=0)[1]
    assert "each counts in one direction only" in notes[0]


def test_repetita_names_nodes_by_their_place(tmp_path) -> None:
    """Also where labels are numbers or of several words, and where demands come after the network."""
    graph = "NODES 3\nlabel x y\n1 0 0\n2 1 1\nNew York 2 2\n\nEDGES 2\nlabel src dest weight bw delay\n"
    (tmp_path / "n.graph").write_text(f"{graph}e 0 2 1 9000 9\nf 2 1 1 9000 9\n")
    (tmp_path / "n.demands").write_bytes(b"DEMANDS 2\r\nlabel src dest bw\r\nd 0 1 10\r\ne 1 2 20\r\n")
    expected = {("1", "2"): 10e3, ("2", "New York"): 20e3}
    network = read(tmp_path / "n.graph")
    assert [(link.source, link.target) for link in network.links] == [("1", "New York"), ("New York", "2")]
    for found in (
        read(tmp_path / "n.graph", demands=tmp_path / "n.demands"),
        fit_demands(network, tmp_path / "n.demands").network,
        what_if(network, over=tmp_path / "n.demands", fail=None).network,
    ):
        ends = [(each.source, each.target) for each in found.demands]
        assert ends == list(expected)
        if found.demands[0].mean != 1.0:
            assert [each.mean for each in found.demands] == list(expected.values())


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("capacity_mbps", 5e6),
        ("Capacity [MBPS]", 5e6),
        ("capacity_MBps", 40e6),
        ("bandwidth (kB/s)", 40e3),
        ("bw [kb/s]", 5e3),
        ("capacity_kbit", 5e3),
    ],
)
def test_bits_and_bytes_in_names_of_columns(name, capacity) -> None:
    links = pd.DataFrame({"source": ["ä"], "target": ["京都"], name: [5], "delay [µs]": [7]})
    link = read(links).links[0]
    assert (link.source, link.target, link.capacity) == ("ä", "京都", capacity)
    assert link.delay == pytest.approx(7e-6)


def test_negative_rates_are_left_out_with_a_note_and_zeros_without(tmp_path) -> None:
    """-1 stands for a lost measurement in some files; the diagonal of a square matrix is 0."""
    (tmp_path / "l.csv").write_bytes("\ufeffsource,target,capacity\r\nA,B,1G\r\n".encode())
    (tmp_path / "d.csv").write_text("time,source,target,mean_mbps\n0,A,B,4\n1,A,B,-1\n2,A,B,6\n")
    network, notes = noted(tmp_path / "l.csv", delay=0, demands=tmp_path / "d.csv")
    assert any("left out: not two nodes of the network, or no rate: A, B, -1" in note for note in notes)
    (tmp_path / "s.csv").write_text(",A,B\nA,0,1\nB,2,0\n")
    network, notes = noted(tmp_path / "l.csv", delay=0, demands=tmp_path / "s.csv", demand_unit="1Mbit")
    assert [each.mean for each in network.demands] == [1e6, 2e6]
    assert not any("left out" in note for note in notes)


def test_demands_of_another_file_need_no_unit_for_those_they_replace(files, tmp_path) -> None:
    (tmp_path / "d.csv").write_text("source,target,mean\nAachen,Koeln,3Mbit\n")
    network = read(files / "germany.xml", capacity_unit="1Gbit", demands=tmp_path / "d.csv")
    assert [(each.id, each.mean) for each in network.demands] == [("Aachen=>Koeln", 3e6)]


def test_nodes_left_out_are_noted_once(tmp_path) -> None:
    nodes = '<node id="a"/><node id="a"/><node id="b"/><edge source="a" target="b"/>'
    (tmp_path / "x.graphml").write_text(f'<graphml><graph edgedefault="undirected">{nodes}</graph></graphml>')
    notes = noted(tmp_path / "x.graphml", capacity=1e9, delay=0)[1]
    assert sum("nodes[" in note for note in notes) == 1


def test_stray_text_in_a_graph_hides_nothing(tmp_path) -> None:
    """As between the elements of a file of the Topology Zoo's sources."""
    text = '<graphml><graph edgedefault="undirected"><node id="a"/>?<node id="b"/><edge source="a" target="b"/></graph>'
    (tmp_path / "x.graphml").write_text(f"{text}</graphml>")
    assert len(read(tmp_path / "x.graphml", capacity=1e9, delay=0).links) == 2
