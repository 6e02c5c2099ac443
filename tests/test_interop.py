"""Networks, models, scenarios and sweeps as users have them: networkx graphs, files, names that come with netctrl."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.model.datasets import data_path, network_path, scenario_path
from netctrl.scenario.builders import access_link
from netctrl.scenario.network.sweep import read_sweep


def line(kind: type[nx.Graph]) -> nx.Graph:
    graph = kind(demands=[{"source": "a", "target": "c", "mean": 4e6, "std": 1e6}])
    graph.add_edge("a", "b", capacity=10e6, delay=0.002, buffer=60e3)
    graph.add_edge("b", "c", capacity=8e6)
    return graph


def test_hftrac_takes_a_graph_and_an_undirected_edge_is_a_link_each_way() -> None:
    directed = netctrl.hftrac(line(nx.DiGraph), 0.001, mu=1.0)
    links = {each.id: each for each in directed.inputs.network.links}
    assert list(links) == ["a->b", "b->c"]
    assert (links["a->b"].capacity, links["a->b"].delay, links["a->b"].buffer) == (10e6, 0.002, 60e3)
    both = netctrl.hftrac(line(nx.Graph), 0.001, mu=1.0)
    assert [each.id for each in both.inputs.network.links] == ["a->b", "b->a", "b->c", "c->b"]
    assert both.certificate.cost == pytest.approx(directed.certificate.cost)  # nothing goes back
    back = directed.inputs.network.to_networkx()
    assert netctrl.hftrac(back, 0.001, mu=1.0).certificate.cost == directed.certificate.cost


def test_a_name_is_a_network_a_model_a_scenario_or_a_sweep() -> None:
    by_name = netctrl.hftrac("merge", 0.01, mu=1.0)
    assert by_name.inputs == netctrl.hftrac(network_path("merge"), 0.01, mu=1.0).inputs
    assert by_name.inputs.network == netctrl.read("merge")
    model = netctrl.connet("connet-paper", track="delay").inputs.model
    np.testing.assert_array_equal(model.A, netctrl.read("connet-paper").A)


def test_simulate_and_compare_take_names_and_files(tmp_path) -> None:
    short = netctrl.read("arc-staircase-bulk").replace(duration="2s", warmup=0.0)
    result = netctrl.simulate(short)
    text = scenario_path("arc-staircase-bulk").read_text()
    for name, value in (("duration", "2s"), ("warmup", "0s")):
        text = re.sub(f"(?m)^{name} = .*$", f'{name} = "{value}"', text, count=1)
    (tmp_path / "short.toml").write_text(text)
    again = netctrl.simulate(tmp_path / "short.toml")
    np.testing.assert_array_equal(again.series["backlog"], result.series["backlog"])
    netctrl.arc(50, 0.5, 10e6, simulation=False).save(tmp_path / "d.json")
    for asked in (netctrl.simulate, lambda name: netctrl.compare(name, ("fluid", "packet"))):
        with pytest.raises(InvalidValue, match="did you mean 'arc-staircase-bulk'") as refusal:
            asked("arc-staircase-bluk")
        assert refusal.value.argument == "scenario"
    with pytest.raises(InvalidValue, match=r"scenario: got 'a sweep', .* netctrl\.sweep runs a sweep"):
        netctrl.simulate(data_path("sweeps/hftrac-testbed.toml"))
    with pytest.raises(InvalidValue, match='queue is of kind "design" or "arc"'):  # the Design of the file
        netctrl.simulate("hftrac-testbed", design=tmp_path / "d.json")


def test_a_sweep_may_be_a_file(tmp_path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'name = "s"\nruns = 2\n[scenario]\nnetwork = { kind = "routed", graph = "testbed" }\n'
        'duration = "2s"\ninterval = "10ms"\n'
        '[[grid]]\nset = { "control.kind" = "static" }\nover = { "control.factor" = [1.02, 1.2] }\n'
    )
    spec = read_sweep(path, network_path, scenario_path)
    assert netctrl.sweep(path).equals(netctrl.sweep(spec))
    assert netctrl.sweep(path)["control.factor"].tolist() == [1.02, 1.02, 1.2, 1.2]


@pytest.mark.parametrize(
    ("call", "argument", "said"),
    [
        (lambda: netctrl.hftrac("merg", 0.01, mu=1.0), "network", "did you mean 'merge'?"),
        (lambda: netctrl.hftrac(7, 0.01, mu=1.0), "network", "a DataFrame of links, a file's path, or one of abilene"),
        (lambda: netctrl.connet("connet-papre"), "model", "did you mean 'connet-paper'?"),
        (lambda: netctrl.connet(None), "model", "an IdentifiedModel"),
        (lambda: netctrl.sweep("hftrac-tesbed"), "sweep", "did you mean 'hftrac-testbed'?"),
        (lambda: netctrl.read("mereg"), "path", "did you mean 'merge'?"),
        (lambda: netctrl.read("arc-staircase").replace(durration=1.0), "durration", "did you mean 'duration'?"),
        (lambda: access_link().replace(durration=1.0, seed=2), "durration", "did you mean 'duration'?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_closest(call, argument, said) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)) as refusal:
        call()
    assert refusal.value.argument == argument


def test_an_edge_without_capacity_is_named_with_what_it_has_and_a_remedy() -> None:
    graph = line(nx.DiGraph)
    del graph.edges["b", "c"]["capacity"]
    graph.edges["b", "c"]["bandwidth"] = 8e6
    with pytest.raises(
        InvalidValue, match=r"the edge 'b' to 'c' with bandwidth alone.*edges with `capacity`"
    ) as refusal:
        netctrl.hftrac(graph, 0.01, mu=1.0)
    assert 'networkx.set_edge_attributes(graph, 10e6, "capacity")' in str(refusal.value)
    graph.add_edge("c", "d")
    nx.set_edge_attributes(graph, 10e6, "capacity")
    del graph.edges["b", "c"]["bandwidth"]
    assert len(netctrl.hftrac(graph, 0.001, mu=1.0).inputs.network.links) == 3
