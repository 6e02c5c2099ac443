"""Records of data centres: what they refuse by name, what a file gives, flow sizes, and what a result says."""

from __future__ import annotations

import doctest

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netctrl
from netctrl.errors import FileError, InvalidValue
from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Timely
from netctrl.scenario.fabric import topology
from netctrl.scenario.fabric.flow_sizes import FLOW_SIZES, checked_sizes, flow_size, mean_flow_size
from netctrl.scenario.fabric.result import jain_index
from netctrl.scenario.fabric.scenario import (
    Dumbbell,
    FabricFlow,
    FabricScenario,
    FatTree,
    Incast,
    Packets,
    Pfc,
    PoissonFlows,
    Watch,
    read_fabric_scenario,
)
from netctrl.sim.fabric.run import simulate_fabric

ONE = (FabricFlow(source=0, target=4, size=1e6),)


@pytest.mark.parametrize(
    ("record", "arguments", "named"),
    [
        (FabricFlow, {"source": 1, "target": 1, "size": 1000}, "target"),
        (FabricFlow, {"source": -1, "target": 1, "size": 1000}, "source"),
        (FabricFlow, {"source": 0, "target": 1, "size": "0B"}, "size"),
        (Dumbbell, {"senders": 0}, "senders"),
        (Dumbbell, {"host_rate": "1Gbyte"}, "host_rate"),
        (Dumbbell, {"delay": 0.0}, "delay"),
        (FatTree, {"pods": 0}, "pods"),
        (FatTree, {"pods": 1, "racks": 1, "hosts_per_rack": 1}, "hosts_per_rack"),
        (FatTree, {"pods": 4, "racks": 4, "hosts_per_rack": 257}, "hosts_per_rack"),
        (FatTree, {"pods": 5, "racks": 29, "hosts_per_rack": 113}, "hosts_per_rack"),  # 16,385 hosts
        (FatTree, {"pods": 64, "racks": 64, "hosts_per_rack": 1, "aggregations": 64, "cores": 128}, "topology"),
        (FatTree, {"cores": 0}, "cores"),
        (FatTree, {"wiring": "partial"}, "wiring"),
        (FatTree, {"wiring": "al-fares", "cores": 3}, "cores"),
        (FatTree.k_ary, {"k": 5}, "k"),
        (FatTree.k_ary, {"k": 42}, "k"),
        (Dumbbell, {"senders": 16384, "receivers": 1}, "senders"),
        (Packets, {"payload": 10.5}, "payload"),
        (Packets, {"clock": "exact"}, "clock"),
        (Pfc, {"pause": 1000, "resume": 2000}, "resume"),
        (PoissonFlows, {"load": 1.0}, "load"),
        (PoissonFlows, {"sizes": "Websearch"}, "sizes"),
        (PoissonFlows, {"sizes": [[0, 0], [100, 50]]}, "sizes"),
        (PoissonFlows, {"sizes": [[0, 0], [100, 60], [50, 100]]}, "sizes"),
        (Incast, {"senders": 0}, "senders"),
        (Watch, {"flows": [0, 0]}, "flows"),
        (Watch, {"interval": "0s"}, "interval"),
        (Mpcc, {"variant": "late"}, "variant"),
        (Mpcc, {"horizon": 0}, "horizon"),
        (Mpcc, {"window_weight": 0.0}, "window_weight"),
        (Mpcc, {"queue_weight": -1.0}, "queue_weight"),
        (Mpcc, {"window": 0}, "window"),
        (Hpcc, {"target": 0.0}, "target"),
        (Dctcp, {"gain": 2.0}, "gain"),
        (Timely, {"low": "1ms", "high": "1us"}, "high"),
        (Dcqcn, {"mark_low": 300e3}, "mark_high"),
        (FixedWindow, {"window": -1}, "window"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_bad_values_are_named(record, arguments, named) -> None:
    with pytest.raises(InvalidValue) as refusal:
        record(**arguments)
    assert refusal.value.argument == named


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"flows": ()}, "flows"),
        ({"flows": (FabricFlow(source=0, target=5, size=1),)}, "flows[0].target"),
        ({"incast": Incast(senders=5)}, "incast.senders"),
        ({"duration": 2000.0}, "duration"),
        ({"watch": Watch(interval=1e-9)}, "watch.interval"),
        ({"topology": Dumbbell(host_rate=100.0)}, "topology"),
        ({"topology": Dumbbell(link_rate=100.0)}, "topology"),
        ({"scheme": "mpcc"}, "scheme"),
    ],
    ids=str,
)
def test_a_scenario_that_does_not_fit_together_is_refused(arguments, named) -> None:
    with pytest.raises(InvalidValue) as refusal:
        FabricScenario(**({"topology": Dumbbell(), "flows": ONE, "duration": 0.1} | arguments))
    assert refusal.value.argument == named


def test_a_file_is_read_with_units_and_comes_back(tmp_path) -> None:
    path = tmp_path / "incast.toml"
    path.write_text(
        'duration = "1ms"\nbuffer = "1MB"\n[topology]\nkind = "fat-tree"\ndelay = "2us"\n[scheme]\nkind = "hpcc"\n'
        '[poisson]\nsizes = "FB_Hadoop"\nload = 0.3\n[incast]\n[pfc]\npause = "100kB"\nresume = "90kB"\n'
    )
    scenario = read_fabric_scenario(path)
    assert scenario.topology == FatTree(delay=2e-6)
    assert scenario.scheme == Hpcc()
    assert scenario.pfc == Pfc(pause=1e5, resume=9e4)
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=FabricScenario) == scenario


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[topology]\nkind = "ring"', "topology"),
        ('[topology]\nkind = "dumbbell"\nlinks = 3', "links"),
        ('[topology]\nkind = "dumbbell"\n[scheme]\nkind = "mpcc"\nhorizon = 0', "horizon"),
        ('[topology]\nkind = "dumbbell"\n[poisson]\nload = 2', "load"),
    ],
)
def test_a_files_mistakes_are_named(tmp_path, text, named) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text + "\n")
    with pytest.raises(FileError, match=named):
        read_fabric_scenario(path)


def test_mean_sizes_of_the_published_distributions() -> None:
    """Theory note of MPCC: 1,711,250 and 120,420.75 bytes, piecewise linear."""
    assert mean_flow_size("WebSearch") == 1_711_250.0
    assert mean_flow_size("FB_Hadoop") == pytest.approx(120_420.75, abs=1e-9)


@pytest.mark.parametrize("name", FLOW_SIZES)
def test_the_mean_is_the_integral_of_the_inverse(name) -> None:
    share = (np.arange(2_000_000) + 0.5) / 2_000_000
    assert flow_size(name, share).mean() == pytest.approx(mean_flow_size(name), rel=1e-6)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0.0, 100.0)), min_size=1, max_size=8))
def test_sizes_of_ones_own_rise_with_the_share(points) -> None:
    sizes = sorted({size for size, _ in points})
    shares = sorted(share for _, share in points)[: len(sizes)]
    own = checked_sizes("sizes", [(0, 0), *zip(np.add(sizes, 1).tolist(), shares, strict=True), (2e9, 100)])
    drawn = flow_size(own, np.linspace(0.0, 1.0, 50))
    assert (np.diff(drawn) >= 0.0).all()
    assert 0.0 <= mean_flow_size(own) <= 2e9


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20))
def test_jains_index_is_between_one_flow_for_all_and_even_shares(values) -> None:
    index = jain_index(np.array(values))
    assert 1.0 / len(values) - 1e-12 <= index <= 1.0 + 1e-12
    assert jain_index(np.full(len(values), values[0])) == pytest.approx(1.0)


def test_the_examples_of_topologies_run() -> None:
    ran = doctest.testmod(topology)
    assert ran.attempted > 0
    assert ran.failed == 0


def test_public_names() -> None:
    assert netctrl.FabricScenario is FabricScenario
    assert callable(simulate_fabric)
