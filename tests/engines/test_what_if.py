"""What-if: routes, losses and ranks against other ways to compute them, on random networks with overload."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.engines.what_if.failures import failures, lines_of
from netctrl.engines.what_if.flows import Flows, flows
from netctrl.engines.what_if.routes import Graph, Routes, routes, tunnels
from netctrl.engines.what_if.run import case_network, what_if
from netctrl.laws.link_rate.routing import at_utilization, routing
from netctrl.model.network import Demand, Link, Network, Node


@st.composite
def networks(draw, loads: tuple[float, float] = (0.3, 3.0), most: int = 8) -> Network:
    """A random connected network of lines with other capacities and delays, loaded to a random utilization."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(3, most))
    graph = nx.gnm_random_graph(n, n + draw(st.integers(0, n)), seed=int(rng.integers(2**31)))
    graph.add_edges_from((a, a + 1) for a in range(n - 1))
    links = []
    for a, b in graph.edges:
        rate, delay = rng.choice([1e8, 2.5e8, 1e9]), float(rng.uniform(1e-4, 2e-2))
        links += [Link(source=str(x), target=str(y), capacity=rate, delay=delay) for x, y in ((a, b), (b, a))]
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    chosen = rng.permutation(len(pairs))[: draw(st.integers(1, len(pairs)))]
    demands = tuple(
        Demand(source=str(pairs[i][0]), target=str(pairs[i][1]), mean=float(rng.uniform(1e6, 1e8))) for i in chosen
    )
    nodes = tuple(Node(id=str(name)) for name in range(n))
    return at_utilization(Network(links=tuple(links), demands=demands, nodes=nodes), draw(st.floats(*loads)))


def on(network: Network, scheme: str, metric: str = "delay", dead: Any = ()) -> tuple[Graph, Routes, Flows]:
    graph = Graph.of(network)
    alive = np.ones(len(network.links), dtype=bool)
    alive[list(dead)] = False
    paths = tunnels(graph, metric) if scheme == "k-paths" else None
    ways = routes(graph, alive, scheme, metric, paths)
    return graph, ways, flows(graph, ways, graph.mean, fair=scheme == "max-min")


@settings(max_examples=60, deadline=None)
@given(networks())
def test_shortest_paths_lose_what_routing_says(network) -> None:
    """`routing` walks each demand by itself, this all demands to a target at once."""
    expected = routing(network)
    _, _, found = on(network, "shortest")
    assert found.delivered == pytest.approx(expected.delivered, rel=1e-8)
    assert found.sent == pytest.approx(expected.load, rel=1e-8, abs=1e-3)
    assert found.arrives - found.sent == pytest.approx(expected.lost, rel=1e-6, abs=1.0)


@settings(max_examples=40, deadline=None)
@given(networks(), st.data())
def test_a_failure_is_the_network_without_its_links(network, data) -> None:
    name, dead = data.draw(st.sampled_from(sorted(lines_of(network).items())))
    left = msgspec.structs.replace(network, links=tuple(x for row, x in enumerate(network.links) if row not in dead))
    graph = nx.DiGraph([(link.source, link.target) for link in left.links])
    graph.add_nodes_from(node.id for node in left.nodes)
    kept = tuple(each for each in network.demands if nx.has_path(graph, each.source, each.target))
    answer = what_if(network, fail="each-link")
    case = next(each for each in answer.cases if name in each.failed)
    assert case.cut_bit_per_s == pytest.approx(
        sum(d.mean for d in network.demands) - sum(d.mean for d in kept), abs=1e-3
    )
    if kept:
        expected = routing(msgspec.structs.replace(left, demands=kept))
        lost = float(sum(d.mean for d in kept) - expected.delivered.sum())
        assert case.lost_bit_per_s == pytest.approx(lost, rel=1e-6, abs=10.0)
        used = expected.load + expected.lost
        assert case.utilization == pytest.approx(max(used / [link.capacity for link in left.links]), rel=1e-8)


@settings(max_examples=60, deadline=None)
@given(networks(), st.sampled_from(["shortest", "ecmp", "min-max", "max-min"]))
def test_a_case_is_a_network_on_its_own_ways(network, scheme) -> None:
    """Its splits, walked demand by demand, bring links what the case says, overload included."""
    answer = what_if(network, fail="each-link", reroute=scheme, top=3)
    for place, detail in enumerate(answer.details):
        left = case_network(answer, place)
        assert {link.id for link in network.links} == {link.id for link in left.links} | set(detail.case.failed)
        if not left.demands:
            continue
        found = routing(left)
        told = {each.link: each for each in detail.links}
        rates = [told[link.id].rate_bit_per_s for link in left.links]
        assert found.load == pytest.approx(rates, rel=1e-6, abs=10.0)
        assert found.lost == pytest.approx([told[link.id].lost_bit_per_s for link in left.links], rel=1e-5, abs=10.0)
        mean = {each.demand: each.mean_bit_per_s for each in detail.demands}
        sent = {each.id: each.mean for each in left.demands}
        assert all(sent[name] <= mean[name] * (1.0 + 1e-9) for name in sent)
        if scheme != "max-min":
            assert sum(sent.values()) == pytest.approx(sum(mean.values()) - detail.case.cut_bit_per_s)


def test_the_worst_case_loses_as_much_on_packets() -> None:
    """With buffers that hold bursts, and demands that do not vary."""
    found = at_utilization(netctrl.read("abilene"), 0.8)
    steady = tuple(msgspec.structs.replace(each, std=0.0) for each in found.demands)
    deep = tuple(msgspec.structs.replace(each, buffer=each.capacity * 0.1 / 8.0) for each in found.links)
    answer = what_if(msgspec.structs.replace(found, links=deep, demands=steady), top=1)
    left, case = case_network(answer), answer.cases[0]
    with pytest.warns(UserWarning, match="rounded"):  # of the sampled model, which packets don't need
        run = netctrl.simulate(netctrl.routed(left, duration="8s", warmup="2s", interval="10ms"), "packet")
    share = run.totals["lost"].sum() / run.totals["entered"].sum()
    assert share == pytest.approx(case.unmet, rel=0.05)
    assert case.unmet > 0.05


def test_a_case_without_details_is_refused() -> None:
    answer = what_if("abilene", top=1)
    with pytest.raises(InvalidValue, match="from 0 to 0"):
        case_network(answer, 1)


def test_equal_cost_paths_split_at_every_hop() -> None:
    """On a grid, by recursion over networkx's shortest paths by hops."""
    grid = nx.grid_2d_graph(4, 4).to_directed()
    names = {node: f"n{k}" for k, node in enumerate(grid)}
    links = tuple(Link(source=names[a], target=names[b], capacity=1e9, delay=1e-3) for a, b in grid.edges)
    demand = Demand(source=names[0, 0], target=names[3, 2], mean=6e8)
    network = Network(links=links, demands=(demand,))
    _, _, found = on(network, "ecmp", "hops")
    distance = nx.single_source_shortest_path_length(grid, (3, 2))  # the grid is symmetric
    rates: dict[Any, float] = dict.fromkeys(grid.edges, 0.0)
    front = {(0, 0): 6e8}
    while front:
        after: dict[Any, float] = {}
        for node, rate in front.items():
            nearer = [each for each in grid[node] if distance[each] < distance[node]]
            for each in nearer:
                rates[node, each] += rate / len(nearer)
                after[each] = after.get(each, 0.0) + rate / len(nearer)
        front = after
    assert found.arrives == pytest.approx(np.array(list(rates.values())), rel=1e-9, abs=1e-3)
    assert found.delay[0] == pytest.approx(5e-3)


def least_utilization(network: Network) -> float:
    """By one flow a demand, with HiGHS; the other program has one a target."""
    index = {node.id: row for row, node in enumerate(network.nodes)}
    L, D, N = len(network.links), len(network.demands), len(network.nodes)
    A_eq, b_eq = np.zeros((D * N, D * L + 1)), np.zeros(D * N)
    for d, demand in enumerate(network.demands):
        for row, link in enumerate(network.links):
            A_eq[d * N + index[link.source], d * L + row] += 1.0
            A_eq[d * N + index[link.target], d * L + row] -= 1.0
        b_eq[d * N + index[demand.source]], b_eq[d * N + index[demand.target]] = demand.mean / 1e8, -demand.mean / 1e8
    A_ub = np.hstack([np.tile(np.eye(L), D), -np.array([[link.capacity / 1e8] for link in network.links])])
    cost = np.append(np.zeros(D * L), 1.0)
    return float(linprog(cost, A_ub, np.zeros(L), A_eq, b_eq, method="highs").fun)


@settings(max_examples=25, deadline=None)
@given(networks(most=6))
def test_least_utilization_is_that_of_another_program(network) -> None:
    graph, _, found = on(network, "min-max")
    least = least_utilization(network)
    if least <= 1.0:
        assert (found.arrives / graph.capacity).max() == pytest.approx(least, rel=2e-5)
        assert found.delivered == pytest.approx(graph.mean, rel=1e-9)
    else:
        assert (found.arrives / graph.capacity).max() >= 1.0


@settings(max_examples=40, deadline=None)
@given(networks())
def test_max_min_fair_rates_have_a_bottleneck_each(network) -> None:
    """Bertsekas and Gallager: fair if each held back demand crosses a full link on which none has more."""
    graph, _, found = on(network, "max-min")
    route = routing(network)
    crosses = route.rate.toarray() > 0.0
    load = crosses @ found.admitted
    assert (load <= graph.capacity * (1 + 1e-6)).all()
    assert found.delivered == pytest.approx(found.admitted, rel=1e-6)
    full = load >= graph.capacity * (1 - 1e-6)
    for i in np.flatnonzero(found.admitted < graph.mean * (1 - 1e-6)):
        rivals = [found.admitted[crosses[row]].max() for row in np.flatnonzero(full & crosses[:, i])]
        assert any(found.admitted[i] >= most * (1 - 1e-6) for most in rivals)


def test_k_paths_share_what_is_left() -> None:
    links = [("a", "m", 1), ("m", "z", 1), ("a", "n", 2), ("n", "z", 2), ("a", "z", 9)]
    network = Network(
        links=tuple(Link(source=a, target=b, capacity=1e9, delay=1e-3 * d) for a, b, d in links),
        demands=(Demand(source="a", target="z", mean=3e8),),
    )
    assert on(network, "k-paths")[2].arrives == pytest.approx([1e8] * 5)
    assert on(network, "k-paths", dead=[0])[2].arrives == pytest.approx([0, 0, 1.5e8, 1.5e8, 1.5e8])
    dark = on(network, "k-paths", dead=[0, 2, 4])[2]
    assert dark.cut.tolist() == [True]
    detour = Link(source="a", target="q", capacity=1e9), Link(source="q", target="z", capacity=1e9, delay=0.05)
    detour = Network(links=(*network.links, *detour), demands=network.demands)
    graph = Graph.of(detour)
    ways = routes(graph, np.array([False] * 5 + [True] * 2), "k-paths", "delay", tunnels(graph, "delay", 3))
    assert flows(graph, ways, graph.mean).arrives[5:] == pytest.approx([3e8, 3e8])  # none of the three is left


def test_delays_are_of_ways_and_full_buffers() -> None:
    links = (
        Link(source="a", target="b", capacity="100Mbit", delay="5ms", buffer="125kB"),
        Link(source="b", target="c", capacity="1Gbit", delay="7ms"),
    )
    demands = (Demand(source="a", target="c", mean="150Mbit"), Demand(source="b", target="c", mean="50Mbit"))
    detail = what_if(Network(links=links, demands=demands), fail=None).details[0]
    assert [(each.demand, each.delay_s) for each in detail.demands] == [
        ("a=>c", pytest.approx(5e-3 + 10e-3 + 7e-3)),
        ("b=>c", pytest.approx(7e-3)),
    ]
    assert detail.demands[0].loss == pytest.approx(1 / 3)
    assert detail.case.delay_s == pytest.approx((100 * 22e-3 + 50 * 7e-3) / 150)
    assert (detail.case.unmet, detail.case.hurt, detail.case.overloaded) == (pytest.approx(0.25), 1, 1)


def test_failures_of_nodes_and_groups(tmp_path) -> None:
    network = netctrl.read("abilene")
    nodes = failures(network, "each-node")
    assert len(nodes) == 1 + len(network.nodes)
    case = next(each for each in what_if(network, fail="each-node").cases if each.name == "DNVR")
    gone = [each.mean for each in network.demands if "DNVR" in (each.source, each.target)]
    assert case.offered_bit_per_s == pytest.approx(sum(each.mean for each in network.demands) - sum(gone))
    assert len(case.failed) == 6
    path = tmp_path / "groups.txt"
    path.write_text("# shared ducts\neast: NYCM->WASH, CHIN-NYCM\nKSCY\nSTTL->DNVR\n")
    _, east, kansas, one_way = failures(network, path)
    ids = [tuple(network.links[row].id for row in each.links) for each in (east, kansas, one_way)]
    assert set(ids[0]) == {"NYCM->WASH", "CHIN->NYCM", "NYCM->CHIN"}
    assert len(ids[1]) == 6
    assert ids[2] == ("STTL->DNVR",)
    path.write_text("\nKSCI\n")
    with pytest.raises(FileError, match=r"line 2: fail: got 'KSCI'.*did you mean 'KSCY'"):
        failures(network, path)
    with pytest.raises(InvalidValue, match="each-link, each-node"):
        failures(network, "every-link")


def test_matrices_and_scales_are_cases_of_their_own() -> None:
    table = pd.DataFrame({"time_s": [0, 300], "STTL->NYCM": [1e6, 5e6], "LOSA->NYCM": [2e6, 1e6]})
    answer = what_if("abilene", over=table, demand_unit="1bit", scale=[1.0, 40.0], fail=None, top=4)
    found = {(case.time, case.scale): case.offered_bit_per_s for case in answer.cases}
    assert found == {("0", 1.0): 3e6, ("0", 40.0): 120e6, ("300", 1.0): 6e6, ("300", 40.0): 240e6}
    assert [case.time for case in answer.cases[:2]] == ["300", "0"]
    assert answer.details[0].case == answer.cases[0]


def test_interrupted_work_goes_on_and_workers_change_nothing(tmp_path, monkeypatch) -> None:
    network = netctrl.read("abilene")
    path = tmp_path / "groups.txt"
    pairs = [(a, b) for a in lines_of(network) for b in lines_of(network) if a < b][:40]
    path.write_text("".join(f"{a}, {b}\n" for a, b in pairs))
    expected = what_if(network, fail=path).cases
    assert len(expected) == 41
    assert what_if(network, fail=path, n_jobs=2).cases == expected
    monkeypatch.setattr("netctrl.engines.what_if.run._SHORT", 0.0)
    assert what_if(network, fail=path, n_jobs=2).cases == expected
    keep = tmp_path / "keep"

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        what_if(network, fail=path, keep=keep, progress=stop)
    assert [each.name for each in sorted(keep.iterdir())] == ["0.json", "what-if.json"]
    with pytest.raises(FileError, match="resume it, or delete"):
        what_if(network, fail=path, keep=keep)
    with pytest.raises(FileError, match="another what-if"):
        what_if(network, fail=path, scale=2.0, keep=keep, resume=True)
    assert what_if(network, fail=path, keep=keep, resume=True).cases == expected
    assert not keep.exists()


def test_the_record_is_json_and_a_table_and_a_map() -> None:
    answer = what_if("abilene", scale=2.0, top=2)
    content = json.loads(answer.to_json())
    assert content["schema"] == "netctrl.what_if/1"
    assert len(content["details"]) == 2
    table = answer.table()
    assert table["unmet"].is_monotonic_decreasing
    assert len(table) == 15
    assert "NYCM" in repr(answer)
    figure = answer.plot(case=1)
    assert {"STTL", "KSCY"} <= {text.get_text() for text in figure.axes[0].texts}
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        answer.plot(case=2)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"scale": 0.0}, "scale"),
        ({"scale": []}, "network"),
        ({"reroute": "ospf"}, "reroute"),
        ({"metric": "cost"}, "metric"),
        ({"top": -1}, "top"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_what_is_no_question_is_refused(options, argument) -> None:
    with pytest.raises(InvalidValue) as refusal:
        what_if("abilene", **options)
    assert refusal.value.argument == argument


def test_a_network_without_demands_has_its_remedies() -> None:
    network = Network(links=(Link(source="a", target="b", capacity=1e9),))
    with pytest.raises(InvalidValue, match="--gravity"):
        what_if(network)


def test_lines_between_nodes_of_one_name_fail_each() -> None:
    """Nodes with numbers as ids are shown by name, which two share; and a line runs beside another."""
    lines = [("0", "2"), ("1", "2"), ("0", "1"), ("2", "0")]
    links = tuple(
        Link(source=a, target=b, capacity=1e9, id=f"{n}{k}")
        for k, p in enumerate(lines)
        for n, (a, b) in (("f", p), ("r", p[::-1]))
    )
    nodes = tuple(Node(id=str(row), name=name) for row, name in enumerate(("Paris", "Paris", "Rome")))
    found = failures(Network(links=links, nodes=nodes), "each-link")
    assert len({each.name for each in found}) == len(found) == 1 + len(lines)
    assert {frozenset(each.links) for each in found[1:]} == {
        frozenset((0, 1)),
        frozenset((2, 3)),
        frozenset((4, 5)),
        frozenset((6, 7)),
    }


def test_losses_and_ranks_by_hand() -> None:
    """A triangle of 100 Mbit/s; a=>c 80 and b=>c 60 Mbit/s. Without a - c, b->c gets 140 and loses 40, in proportion;
    without b - c, a->c does; without a - b, both fit. Where a fails, only b=>c is offered; where c does, nothing is."""
    lines = [("a", "b"), ("b", "c"), ("a", "c")]
    links = tuple(Link(source=x, target=y, capacity=1e8, delay="1ms") for a, b in lines for x, y in ((a, b), (b, a)))
    network = Network(
        links=links, demands=(Demand(source="a", target="c", mean=8e7), Demand(source="b", target="c", mean=6e7))
    )
    cases = what_if(network).cases
    assert [each.name for each in cases] == ["b - c", "a - c", "intact", "a - b"]
    for case in cases[:2]:
        assert (case.lost_bit_per_s, case.cut_bit_per_s, case.utilization) == (
            pytest.approx(4e7),
            0.0,
            pytest.approx(1.4),
        )
        assert (case.hurt, case.worst_loss, case.unmet) == (2, pytest.approx(2 / 7), pytest.approx(2 / 7))
    assert [(each.unmet, each.utilization) for each in cases[2:]] == [(0.0, pytest.approx(0.8))] * 2
    assert cases[1].delay_s == pytest.approx((80 * 2e-3 + 60 * 1e-3) / 140)
    offered = {
        each.name: (each.offered_bit_per_s, each.cut_bit_per_s) for each in what_if(network, fail="each-node").cases
    }
    assert offered == {"intact": (1.4e8, 0.0), "a": (6e7, 0.0), "b": (8e7, 0.0), "c": (0.0, 0.0)}
