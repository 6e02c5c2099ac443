"""Routing: nominal rates and couplings by the formulas, written out densely; laws of conservation; shortest paths."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.laws.link_rate.routing import Routing, routing
from netctrl.model.datasets import network_path, networks
from netctrl.model.network import Demand, Link, Network, read_network

ROOMY = 1e12


def network(links: str | list[Link], *demands: Demand) -> Network:
    """Links written as "ab bc" are roomy, without delay, from a to b and from b to c."""
    if isinstance(links, str):
        links = [Link(id=name, source=name[0], target=name[1], capacity=ROOMY) for name in links.split()]
    return Network(links=tuple(links), demands=demands)


def demand(ends: str, mean: float = 1e6, **split: float) -> Demand:
    return Demand(id=ends, source=ends[0], target=ends[1], mean=mean, split=split or None)


# --- the formulas, densely ------------------------------------------------------------------------------------------


def dense(problem: Network, split: np.ndarray) -> dict[str, np.ndarray]:
    """Rates from the linear equations of all links; beta and couplings entry by entry (HFTraC paper, eqs. 1 and 7)."""
    links, demands = problem.links, problem.demands
    N, pairs = len(links), len(demands)
    joins = np.array([[into.target == link.source for into in links] for link in links], dtype=float)
    starts = np.array([[link.source == each.source for each in demands] for link in links], dtype=float)
    rate = np.column_stack(
        [
            np.linalg.solve(np.eye(N) - split[:, [i]] * joins, split[:, i] * starts[:, i] * demands[i].mean)
            for i in range(pairs)
        ]
    )
    coupling = np.zeros((N, N))
    for row in range(N):
        for k in range(N):
            if joins[row, k] and rate[k].sum() > 0.0:
                beta = rate[k] / rate[k].sum()
                coupling[row, k] = sum(split[row, i] * beta[i] for i in range(pairs))
    return {"rate": rate, "load": rate.sum(axis=1), "coupling": coupling, "injection": split * starts}


def assert_follows_the_formulas(problem: Network, found: Routing) -> None:
    expected = dense(problem, found.split.toarray())
    scale = expected["rate"].max()
    assert found.rate.toarray() == pytest.approx(expected["rate"], rel=1e-9, abs=1e-9 * scale)
    assert found.load == pytest.approx(expected["load"], rel=1e-9, abs=1e-9 * scale)
    assert found.coupling.toarray() == pytest.approx(expected["coupling"], rel=1e-9, abs=1e-12)
    assert np.array_equal(found.injection.toarray(), expected["injection"])


def assert_conserves(problem: Network, found: Routing) -> None:
    """What enters a node leaves it, and what a link carries goes on or has arrived."""
    rate, load, mean = found.rate.toarray(), found.load, np.array([each.mean for each in problem.demands])
    for i, each in enumerate(problem.demands):
        for node in (node.id for node in problem.nodes):
            into = sum(rate[row, i] for row, link in enumerate(problem.links) if link.target == node)
            out = sum(rate[row, i] for row, link in enumerate(problem.links) if link.source == node)
            gained = each.mean * ((node == each.source) - (node == each.target))
            assert into + gained == pytest.approx(out, rel=1e-6, abs=1e-6 * each.mean)
    assert load == pytest.approx(rate.sum(axis=1), rel=1e-12)
    assert found.coupling @ load + found.injection @ mean == pytest.approx(load, rel=1e-6, abs=1e-6)
    assert found.injection.sum(axis=0) == pytest.approx(np.ones(len(mean)), abs=1e-6)
    stays = np.zeros(len(load))
    for k in np.flatnonzero(load):
        arrived = sum(rate[k, i] for i, each in enumerate(problem.demands) if each.target == problem.links[k].target)
        stays[k] = 1.0 - arrived / load[k]
    assert found.coupling.sum(axis=0) == pytest.approx(stays, abs=1e-6)


@pytest.mark.parametrize("name", networks())
def test_networks_that_come_with_netctrl_follow_the_formulas(name) -> None:
    problem = read_network(network_path(name))
    found = routing(problem)
    assert_follows_the_formulas(problem, found)
    assert_conserves(problem, found)


def test_the_testbed_by_hand() -> None:
    """HFTraC paper, Fig. 7a: 38 Mbit/s split 3 : 1, and 19 Mbit/s beside the smaller part."""
    found = routing(read_network(network_path("testbed")))
    e1, e2, s13, s23, s21 = range(5)
    assert found.load / 1e6 == pytest.approx([19.0, 38.0, 28.5, 28.5, 9.5], rel=1e-15)
    expected = np.zeros((5, 5))
    expected[s13, e1], expected[s23, e2], expected[s21, e2], expected[s13, s21] = 1.0, 0.75, 0.25, 1.0
    assert np.array_equal(found.coupling.toarray(), expected)
    assert np.array_equal(found.injection.toarray(), np.eye(5, 2))


def test_beta_mixes_what_arrives_and_what_goes_on() -> None:
    """Two demands share ab: 3 Mbit/s end at b, 1 Mbit/s goes on to c, half of it each way."""
    links = [*network("ab bc").links, Link(id="other", source="b", target="c", capacity=ROOMY)]
    found = routing(network(links, demand("ab", 3e6), demand("ac", 1e6, ab=1, bc=0.5, other=0.5)))
    assert found.coupling.toarray().tolist() == [[0, 0, 0], [0.125, 0, 0], [0.125, 0, 0]]
    assert found.load.tolist() == [4e6, 0.5e6, 0.5e6]


@st.composite
def split_networks(draw) -> Network:
    """Links lead from lower to higher numbers, so no route has a circle; some are parallel, some carry nothing."""
    n = draw(st.integers(2, 6))
    chords = st.tuples(st.integers(0, n - 2), st.integers(1, n - 1)).filter(lambda pair: pair[0] < pair[1])
    pairs = [(k, k + 1) for k in range(n - 1)] + draw(st.lists(chords, max_size=6))
    ends = {f"l{row}": pair for row, pair in enumerate(pairs)}
    links = tuple(Link(id=name, source=u, target=v, capacity=ROOMY) for name, (u, v) in ends.items())  # ty: ignore[invalid-argument-type]
    demands = []
    for number in range(draw(st.integers(1, 3))):
        source, target = draw(chords)
        split = {}
        for node in range(source, target):
            out = [name for name, (u, v) in ends.items() if u == node and v <= target]
            shares = draw(st.lists(st.integers(0, 3), min_size=len(out), max_size=len(out)).filter(any))
            split |= {name: share / sum(shares) for name, share in zip(out, shares, strict=True)}
        mean = draw(st.floats(1e3, 1e9))
        demands.append(Demand(id=number, source=source, target=target, mean=mean, split=split))  # ty: ignore[invalid-argument-type]
    return Network(links=links, demands=tuple(demands))


@pytest.mark.slow
@settings(max_examples=150)
@given(split_networks())
def test_any_split_follows_the_formulas_and_conserves(problem) -> None:
    found = routing(problem)
    assert_follows_the_formulas(problem, found)
    assert_conserves(problem, found)


# --- shortest paths -------------------------------------------------------------------------------------------------


def path_of(found: Routing, problem: Network, i: int = 0) -> list[str]:
    """Ids of the links that a demand takes, in the network's order."""
    return [str(problem.links[row].id) for row in np.flatnonzero(found.rate[:, [i]].toarray())]


@settings(max_examples=100)
@given(st.integers(2, 7), st.data())
def test_a_demand_without_split_takes_a_shortest_path_of_fewest_links(n, data) -> None:
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    chords = data.draw(st.dictionaries(pairs, st.integers(0, 4), max_size=12))
    lengths = {(k, (k + 1) % n): 3 for k in range(n)} | chords  # a ring, so there is a path
    source, target = data.draw(pairs)
    links = tuple(
        Link(id=f"{u}-{v}", source=u, target=v, capacity=ROOMY, delay=length * 1e-3)  # ty: ignore[invalid-argument-type]
        for (u, v), length in lengths.items()
    )
    problem = Network(links=links, demands=(Demand(source=source, target=target, mean=1e6),))  # ty: ignore[invalid-argument-type]
    found = routing(problem)
    assert_conserves(problem, found)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(u, v, length) for (u, v), length in lengths.items()])
    shortest = nx.all_shortest_paths(graph, source, target, weight="weight")
    fewest = min(len(path) - 1 for path in shortest)
    taken = [tuple(map(int, name.split("-"))) for name in path_of(found, problem)]
    assert sum(lengths[pair] for pair in taken) == nx.shortest_path_length(graph, source, target, weight="weight")
    assert len(taken) == fewest
    assert set(found.rate.data) == {1e6}


@pytest.mark.parametrize("name", ["abilene", "merge", "tandem"])
def test_networks_that_come_with_netctrl_take_the_paths_of_networkx(name) -> None:
    problem = read_network(network_path(name))
    found = routing(problem)
    graph = problem.to_networkx()
    for i, each in enumerate(problem.demands):
        nodes = nx.shortest_path(graph, each.source, each.target, weight="delay")
        taken = {
            (problem.links[row].source, problem.links[row].target) for row in np.flatnonzero(found.rate.toarray()[:, i])
        }
        assert taken == set(nx.utils.pairwise(nodes))


def test_of_equally_long_paths_the_one_of_fewest_links_is_taken() -> None:
    delays = {"ab": 0.01, "bc": 0.01, "cd": 0.01, "ac": 0.02, "ad": 0.03}
    links = [Link(id=name, source=name[0], target=name[1], capacity=ROOMY, delay=s) for name, s in delays.items()]
    problem = network(links, demand("ad"), demand("bd"))
    assert path_of(routing(problem), problem) == ["ad"]
    without = network([link for link in links if link.id != "ad"], demand("ad"))
    assert path_of(routing(without), without) == ["cd", "ac"]
    zero = network("ab bc cd ac", demand("ad"))
    assert path_of(routing(zero), zero) == ["cd", "ac"]


def test_of_parallel_links_the_fastest_then_the_first_is_taken() -> None:
    delays = {"slow": 0.02, "first": 0.01, "second": 0.01}
    links = [Link(id=name, source="a", target="b", capacity=ROOMY, delay=delay) for name, delay in delays.items()]
    problem = network(links, demand("ab"))
    assert path_of(routing(problem), problem) == ["first"]


def test_demands_with_and_without_split_may_stand_side_by_side() -> None:
    links = network("ab bc ac").links
    halves = Demand(id="split", source="a", target="c", mean=4e6, split={"ab": 0.25, "ac": 0.75, "bc": 1.0})
    problem = network(list(links), demand("ac", 1e6), halves)
    assert routing(problem).load.tolist() == [1e6, 1e6, 4e6]


def test_a_long_way_is_routed_too() -> None:
    links = [Link(source=k, target=k + 1, capacity=1e6) for k in range(3000)]  # ty: ignore[invalid-argument-type]
    ends = {"source": 0, "target": 3000, "mean": 1e6}
    found = routing(Network(links=tuple(links), demands=(Demand(**ends),)))
    assert set(found.load) == {1e6}
    assert found.coupling.nnz == 2999
    split = {f"{k}->{k + 1}": 1.0 for k in range(3000)}
    assert set(routing(Network(links=tuple(links), demands=(Demand(**ends, split=split),))).load) == {1e6}


# --- ratios ---------------------------------------------------------------------------------------------------------


def test_a_ratio_of_zero_is_as_good_as_none() -> None:
    """Even on a way back, or out of the target."""
    with_zeros = routing(network("ab bc ac ba cb", demand("ac", ab=0.5, bc=1, ac=0.5, ba=0, cb=0)))
    without = routing(network("ab bc ac ba cb", demand("ac", ab=0.5, bc=1, ac=0.5)))
    for name in ("split", "rate", "coupling", "injection"):
        assert (getattr(with_zeros, name) != getattr(without, name)).nnz == 0
    assert with_zeros.split.nnz == 3


def test_ratios_where_the_demand_never_comes_say_nothing() -> None:
    """A routing by destination has ratios at all nodes; here c is never reached, and its ratios sum to 0.4."""
    found = routing(network("ab ac cb", demand("ab", ab=1, cb=0.4)))
    assert found.load.tolist() == [1e6, 0.0, 0.0]
    assert found.split.nnz == 1


def test_ratios_may_be_parts_that_floats_round() -> None:
    links = [Link(id=f"l{k}", source="a", target="b", capacity=ROOMY) for k in range(10)]
    ratios = {f"l{k}": 0.1 for k in range(10)}
    assert routing(network(links, demand("ab", **ratios))).load.sum() == pytest.approx(1e6)


REFUSED = {
    "too little": (demand("ac", ab=0.4, bc=1, ac=0.5), "demands.ac.split", ["'0.9 in all at a'", "sum to 1"]),
    "too much": (demand("ac", ab=0.6, bc=1, ac=0.5), "demands.ac.split", ["'1.1 in all at a'", "sum to 1"]),
    "too little on the way": (demand("ac", ab=1, bc=0.9), "demands.ac.split", ["'0.9 in all at b'"]),
    "an end on the way": (demand("ac", ab=1), "demands.ac.split", ["no link leaves b", "a path to c"]),
    "no start": (demand("ac", bc=1), "demands.ac.split", ["no link leaves a", "a path to c"]),
    "only zeros": (demand("ac", ab=0, ac=0), "demands.ac.split", ["no link leaves a"]),
    "beyond the target": (demand("ab", ab=1, bc=1), "demands.ab.split", ["'bc'", "leave the demand's target b"]),
    "a circle": (
        demand("ad", ab=1, bc=1, ca=0.5, cd=0.5),
        "demands.ad.split",
        ["'a -> b -> c -> a'", "without a loop"],
    ),
    "a circle through the target": (demand("ac", ab=1, bc=1, ca=1), "demands.ac.split", ["'a -> b -> c -> a'"]),
    "no path": (demand("da"), "demands.da", ["'d to a'", "no path leads from d to a"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_route_that_is_none_is_refused_with_demand_and_node(name) -> None:
    wrong, argument, pieces = REFUSED[name]
    with pytest.raises(InvalidValue) as refusal:
        routing(network("ab bc ac ca cd", demand("bd"), wrong))
    assert refusal.value.argument == argument
    assert [piece for piece in pieces if piece not in str(refusal.value)] == [], str(refusal.value)


def test_a_long_circle_is_shortened() -> None:
    n = 500
    split = {f"{k}->{(k + 1) % n}": 1.0 for k in range(n)}
    links = tuple(Link(source=k, target=(k + 1) % n, capacity=ROOMY) for k in range(n))  # ty: ignore[invalid-argument-type]
    with pytest.raises(InvalidValue) as refusal:
        routing(Network(links=links, demands=(Demand(id="d", source="0", target="9", mean=1e6, split=split),)))
    assert refusal.value.argument == "demands.d.split"
    assert "without a loop" in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_a_network_without_demands_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidValue, match=r"demands: got 'none', takes one demand or more: \"demands\": \["):
        routing(network("ab"))


# --- capacity -------------------------------------------------------------------------------------------------------


def test_an_overloaded_link_sends_its_capacity_and_loses_the_rest_by_hand() -> None:
    """10.5 come to 10 Mbit/s, so each demand keeps 1/1.05 of itself there; of 6.190 then come 5 through bc."""
    links = [Link(id="ab", source="a", target="b", capacity=10e6), Link(id="bc", source="b", target="c", capacity=5e6)]
    found = routing(network(links, demand("ab", 4e6), demand("ac", 6.5e6)))
    assert found.offered.tolist() == [10.5e6, 6.5e6]
    assert found.load.tolist() == pytest.approx([10e6, 5e6], rel=1e-12)
    assert found.lost.tolist() == pytest.approx([0.5e6, 6.5e6 / 1.05 - 5e6], rel=1e-9)
    assert found.rate.toarray() == pytest.approx(np.array([[4e6 / 1.05, 6.5e6 / 1.05], [0.0, 5e6]]), rel=1e-12)
    assert found.delivered.tolist() == pytest.approx([4e6 / 1.05, 5e6], rel=1e-12)
    assert found.coupling.toarray() == pytest.approx(np.array([[0.0, 0.0], [0.65 / 1.05, 0.0]]), rel=1e-12)


def ring(rng: np.random.Generator, n: int) -> Network:
    """Links that feed each other in a ring, with demands over 1 to n - 1 of them and loads around the capacities."""
    links = tuple(
        Link(id=str(k), source=str(k), target=str((k + 1) % n), capacity=rng.uniform(1e6, 3e6)) for k in range(n)
    )
    demands = tuple(
        Demand(id=str(k), source=str(k), target=str((k + rng.integers(1, n)) % n), mean=rng.uniform(0.2e6, 2e6))
        for k in range(n)
    )
    return Network(links=links, demands=demands)


@pytest.mark.parametrize("seed", range(6))
def test_overloaded_rings_conserve_and_share_first_in_first_out(seed: int) -> None:
    """Each link keeps the same share of all that comes to it: all of it, or what fills it."""
    problem = ring(np.random.default_rng(seed), n=12)
    found = routing(problem)
    rate, capacity = found.rate.toarray(), np.array([each.capacity for each in problem.links])
    mean = np.array([each.mean for each in problem.demands])
    arrives = found.injection.toarray() * mean
    for k, into in enumerate(problem.links):
        for i, each in enumerate(problem.demands):
            onward = [row for row, link in enumerate(problem.links) if link.source == into.target != each.target]
            arrives[onward, i] += rate[k, i]
    kept = np.minimum(1.0, capacity / arrives.sum(axis=1))
    assert (kept < 0.999).any() and (kept == 1.0).any()
    np.testing.assert_allclose(rate, kept[:, None] * arrives, rtol=1e-9, atol=1e-3)
    np.testing.assert_allclose(found.lost, arrives.sum(axis=1) - found.load, rtol=1e-9, atol=1e-3)
    assert (found.lost[kept == 1.0] == 0.0).all()
    assert found.delivered.sum() + found.lost.sum() == pytest.approx(mean.sum(), rel=1e-9)
    np.testing.assert_allclose(found.coupling @ found.load + found.injection @ mean, arrives.sum(axis=1), rtol=1e-9)


def test_a_link_may_be_full() -> None:
    links = [Link(id="ab", source="a", target="b", capacity=0.3e6)]
    demands = [Demand(id=str(k), source="a", target="b", mean=0.1e6) for k in range(3)]
    assert routing(network(links, *demands)).load == pytest.approx([0.3e6])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_searches_that_stop_at_their_targets_find_the_same_paths(seed: int) -> None:
    """Against networkx, with delays of which no two paths have the same sum."""
    random = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(random.integers(5, 30)), 0.25, seed=int(seed % 2**31), directed=True)
    delays = {ends: float(random.uniform(0.001, 0.1)) for ends in graph.edges}
    nx.set_edge_attributes(graph, delays, "delay")
    away = dict(nx.all_pairs_dijkstra_path(graph, weight=lambda a, b, edge: edge["delay"] + 1e-9))
    pairs = [(a, b) for a in away for b in away[a] if a != b]
    if not pairs:
        return
    some = [pairs[i] for i in random.integers(0, len(pairs), 12)]
    links = [
        Link(source=str(a), target=str(b), id=f"{a}>{b}", capacity=ROOMY, delay=delays[a, b]) for a, b in graph.edges
    ]
    demands = [Demand(id=str(i), source=str(a), target=str(b), mean=1e6) for i, (a, b) in enumerate(some)]
    problem = network(links, *demands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("netctrl.laws.link_rate.routing._DENSE", 0)
        found = routing(problem).split.toarray()
    for i, (a, b) in enumerate(some):
        taken = {problem.links[row].id for row in np.flatnonzero(found[:, i])}
        assert taken == {f"{one}>{other}" for one, other in zip(away[a][b], away[a][b][1:], strict=False)}


def test_a_search_that_stops_at_its_targets_names_the_demand_without_a_path(monkeypatch) -> None:
    monkeypatch.setattr("netctrl.laws.link_rate.routing._DENSE", 0)
    with pytest.raises(InvalidValue, match=r"demands\.ba: got 'b to a'.* no path leads from b to a"):
        routing(network("ab", demand("ab"), demand("ba")))
