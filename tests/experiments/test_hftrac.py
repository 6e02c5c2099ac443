"""The HFTraC study's own parts: its random networks, and which of its comparisons count."""

from __future__ import annotations

import runpy

import networkx as nx
import numpy as np
import pytest
from places import EXPERIMENTS

from netctrl.laws.link_rate.routing import routing
from netctrl.model.datasets import network_path
from netctrl.model.network import read_network


@pytest.fixture
def study(monkeypatch) -> dict:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return runpy.run_path(str(EXPERIMENTS / "hftrac" / "architectures.py"))


@pytest.mark.parametrize("seed", range(25))
def test_random_networks_are_connected_and_can_be_routed(study, seed) -> None:
    network = study["random_network"](np.random.default_rng(seed))
    assert 3 <= len(network.nodes) <= 7
    assert nx.is_strongly_connected(nx.DiGraph(network.to_networkx()))
    assert 1 <= len(network.demands) <= 3
    assert all(demand.std > 0.0 for demand in network.demands)
    samples = np.array([link.delay for link in network.links]) / study["STEP"]
    np.testing.assert_allclose(samples, np.rint(samples), atol=1e-12)
    assert samples.max() <= 4
    routes = routing(network)  # ratios that sum to 1, no circle, no overload
    assert routes.load.max() > 0.0
    assert study["random_network"](np.random.default_rng(seed)) == network


def test_some_demands_split_and_some_do_not(study) -> None:
    rng = np.random.default_rng(0)
    networks = [study["random_network"](rng) for _ in range(20)]
    splits = [demand.split for network in networks for demand in network.demands]
    assert None in splits
    assert any(split is not None and any(0.0 < share < 1.0 for share in split.values()) for split in splits)


@pytest.mark.parametrize(("name", "samples", "expected"), [("tandem", 0, False), ("tandem", 1, True)])
def test_word_comes_in_band_as_late_as_the_data(study, name, samples, expected) -> None:
    network = read_network(network_path(name))
    assert study["heard_within"](network, [link.id for link in network.links], samples) is expected


def test_word_does_not_go_upstream_in_band(study) -> None:
    network = read_network(network_path("merge"))
    assert not study["heard_within"](network, ["L1", "L2", "L3"], 100)
