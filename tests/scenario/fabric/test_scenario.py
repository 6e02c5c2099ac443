"""Records of data centres: what they refuse by name, what a file gives, flow sizes, and what a result says."""

from __future__ import annotations

import doctest
from collections import Counter

import msgspec
import numpy as np
import pytest
from fabric_support import data_centre
from hypothesis import given
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Timely
from netctrl.scenario.fabric import flows, topology
from netctrl.scenario.fabric.flow_sizes import FLOW_SIZES, checked_sizes, flow_size, mean_flow_size
from netctrl.scenario.fabric.flows import common_sender, with_sender
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.links import Link
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, Host
from netctrl.scenario.tcp_aqm.offers import Incast, Sizes, Stream, Web
from netctrl.scenario.transfers import jain_index
from netctrl.sim.packet.fabric_traffic import draw_fabric_flows
from netctrl.sim.packet.run import simulate_packets

ONE = Flow(id="one", source=0, target=4, offers=1e6, sender=Mpcc())


def changed(**fields) -> Flow:
    return msgspec.structs.replace(ONE, **fields)


@pytest.mark.parametrize(
    ("record", "arguments", "named"),
    [
        (Flow, {"source": (), "target": 1, "offers": 1000}, "source"),
        (Flow, {"source": -1, "target": 1, "offers": 1000}, "source"),
        (Flow, {"source": 0, "target": 16_384, "offers": 1000}, "target"),
        (Flow, {"source": 0, "target": "h1", "offers": 1000}, "target"),
        (Dumbbell, {"senders": 0}, "senders"),
        (Dumbbell, {"host_rate": "1Gbyte"}, "host_rate"),
        (Dumbbell, {"delay": 0.0}, "delay"),
        (FatTree, {"pods": 0}, "pods"),
        (FatTree, {"pods": 1, "racks": 1, "hosts_per_rack": 1}, "hosts_per_rack"),
        (FatTree, {"pods": 4, "racks": 4, "hosts_per_rack": 257}, "hosts_per_rack"),
        (FatTree, {"pods": 5, "racks": 29, "hosts_per_rack": 113}, "hosts_per_rack"),  # 16,385 hosts
        (FatTree, {"pods": 64, "racks": 64, "hosts_per_rack": 1, "aggregations": 64, "cores": 128}, "network"),
        (FatTree, {"cores": 0}, "cores"),
        (FatTree, {"wiring": "partial"}, "wiring"),
        (FatTree, {"wiring": "al-fares", "cores": 3}, "cores"),
        (FatTree.k_ary, {"k": 5}, "k"),
        (FatTree.k_ary, {"k": 42}, "k"),
        (Dumbbell, {"senders": 16384, "receivers": 1}, "senders"),
        (Packets, {"payload": 10.5}, "payload"),
        (Packets, {"clock": "exact"}, "clock"),
        (Pfc, {"pause": 1000, "resume": 2000}, "resume"),
        (Sizes, {"load": 1.0}, "load"),
        (Sizes, {"distribution": "Websearch"}, "distribution"),
        (Sizes, {"distribution": [[0, 0], [100, 50]]}, "distribution"),
        (Sizes, {"distribution": [[0, 0], [100, 60], [50, 100]]}, "distribution"),
        (Incast, {"senders": 0}, "senders"),
        (Incast, {"size": "0B"}, "size"),
        (Watch, {"flows": [0, 0]}, "flows"),
        (Watch, {"bin": "0s"}, "bin"),
        (Scenario, {"duration": 1.0, "interval": "0s"}, "interval"),
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
    ("fields", "named"),
    [
        ({"flows": ()}, "flows"),
        ({"flows": (ONE, ONE)}, "flows[1].id"),
        ({"flows": (changed(target=(1, 5)),)}, "flows.one.target"),
        ({"flows": (changed(source=1, target=1),)}, "flows.one.target"),
        ({"flows": (changed(source=(0, 1), target=(1, 1)),)}, "flows.one.target"),
        ({"flows": (changed(source=(0, 1, 2), target=(3, 4)),)}, "flows.one.target"),
        ({"flows": (changed(source=None),)}, "flows.one.source"),
        ({"flows": (changed(stop=1.0),)}, "flows.one.stop"),
        ({"flows": (changed(start=(0.0, 1.0)),)}, "flows.one.start"),
        ({"flows": (changed(offers=Sizes()),)}, "flows.one.source"),
        ({"flows": (changed(offers=Web()),)}, "flows.one.offers"),
        ({"flows": (changed(offers=None),)}, "flows.one.offers"),
        (
            {"flows": (ONE, changed(id="two", source=1, sender="cubic")), "network": Dumbbell(watch=Watch(flows=[0]))},
            "network.watch",
        ),
        ({"flows": (Flow(id="many", offers=Incast(senders=5), sender=Mpcc()),)}, "flows.many.offers.senders"),
        ({"flows": (Flow(id="udp", offers=Stream(rate=1e6)),)}, "flows.udp.path"),
        *(
            ({"flows": (changed(**{name: value}),)}, f"flows.one.{name}")
            for name, value in {
                "path": ("a",),
                "ack_path": ("a",),
                "count": 2,
                "rtt": 1e-3,
                "ecn": True,
                "host": Host(),
                "priority": 1,
                "weight": 2.0,
                "packet_size": 1500.0,
                "classes": 1,
            }.items()
        ),
        ({"flows": (ONE, changed(id="two", sender=Hpcc()))}, "flows.two.sender"),
        ({"duration": 2000.0}, "duration"),
        ({"interval": 1e-9}, "interval"),
        ({"network": Dumbbell(watch=Watch(bin=1e-9))}, "watch.bin"),
        ({"network": Dumbbell(host_rate=100.0)}, "network"),
        ({"network": Dumbbell(link_rate=100.0)}, "network"),
        ({"network": FatTree(fabric_rate=100.0)}, "network"),
        ({"packet_size": 1500.0}, "packet_size"),
        ({"initial_window": 1}, "initial_window"),
        ({"warmup": 0.01}, "warmup"),
        ({"step": 0.01}, "step"),
        ({"control": StaticPacing(factor=1.0)}, "control"),
    ],
    ids=str,
)
def test_a_scenario_that_does_not_fit_together_is_refused(fields, named) -> None:
    good = {"name": "x", "network": Dumbbell(), "flows": (ONE,), "duration": 0.1}
    assert Scenario(**good).interval == 1e-6
    with pytest.raises(InvalidValue) as refusal:
        Scenario(**(good | fields))
    assert refusal.value.argument == named


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"flows": (changed(path=("line",)),)}, "flows.one.source"),
        ({"flows": (changed(path=("line",), source=None),)}, "flows.one.target"),
        ({"flows": (Flow(id="all", offers=Sizes()),)}, "flows.all.offers"),
        ({"flows": (Flow(id="all", offers=Incast()),)}, "flows.all.offers"),
    ],
    ids=str,
)
def test_links_refuse_what_only_data_centres_have(fields, named) -> None:
    line = Link(id="line", source="a", target="b", capacity=1e7)
    udp = Flow(id="udp", path=("line",), count=1, offers=Stream(rate=1e6))
    with pytest.raises(InvalidValue) as refusal:
        Scenario(**({"name": "x", "links": (line,), "flows": (udp,), "duration": 1.0} | fields))
    assert refusal.value.argument == named


def test_all_flows_get_another_sender() -> None:
    four = changed(source=range(4))
    ours, others = data_centre(Dumbbell(), Hpcc(), four), data_centre(Dumbbell(), Mpcc(), four)
    theirs = with_sender(others, Hpcc())
    assert [common_sender(scenario.flows) for scenario in (ours, theirs, others)] == [Hpcc(), Hpcc(), Mpcc()]
    sent = [simulate_packets(each).totals["departed"].tolist() for each in (ours, theirs, others)]
    assert sent[0] == sent[1] != sent[2]


def test_a_group_of_messages_is_its_flows_one_by_one() -> None:
    single = [Flow(id=f"flow{i}", source=i, target=4, offers=2e4, start=1e-6) for i in range(4)]
    together = Flow(id="all", source=range(4), target=4, offers=2e4, start=1e-6)
    results = [simulate_packets(data_centre(Dumbbell(), Hpcc(), *groups)) for groups in (single, [together])]
    for name in ("source", "size", "start", "duration"):
        np.testing.assert_array_equal(results[0].transfers[name], results[1].transfers[name])
    assert results[0].transfers["flow"].tolist() == [0, 1, 2, 3]
    assert results[1].transfers["flow"].tolist() == [0, 0, 0, 0]
    assert results[1].transfers["source"].tolist() == [0, 1, 2, 3]


def test_further_groups_have_arrivals_of_their_own() -> None:
    """Those of the groups before them stay; no two are alike."""
    first, second = (Flow(id=name, offers=Sizes(distribution="FB_Hadoop", load=0.2)) for name in ("first", "second"))
    incasts = [Flow(id=name, offers=Incast(interval=1e-4)) for name in ("third", "fourth")]
    one, both = (
        draw_fabric_flows(data_centre(FatTree(), Mpcc(), *groups, duration=1e-3))
        for groups in ([first, incasts[0]], [first, second, *incasts])
    )
    before, after = (Counter(zip(*(column.tolist() for column in table[:4]), strict=True)) for table in (one, both))
    assert before <= after
    assert (both.flow >= 2).sum() == 2 * (one.flow == 1).sum() > 0
    assert 0.7 < (after - before).total() / before.total() < 1.4
    assert not (after - before) & before


FILE = """schema = "netctrl.scenario/3"
name = "incast"
flows = [
    { id = "flow0", source = 3, target = 2, offers = "1MB", sender = "hpcc" },
    { id = "search", offers = { kind = "sizes", distribution = "FB_Hadoop", load = 0.3 }, sender = "hpcc" },
    { id = "incast", offers = "incast", sender = { kind = "hpcc" } },
]
duration = "1ms"
interval = "2us"

[network]
kind = "fat-tree"
watch = { flows = [1] }
delay = "2us"
buffer = "1MB"
pfc = { pause = "100kB", resume = "90kB" }
"""


def test_a_file_is_read_with_units_and_comes_back(tmp_path) -> None:
    path = tmp_path / "incast.toml"
    path.write_text(FILE)
    scenario = netctrl.read(path)
    assert scenario.network == FatTree(delay=2e-6, buffer=1e6, pfc=Pfc(pause=1e5, resume=9e4), watch=Watch(flows=(1,)))
    assert common_sender(scenario.flows) == Hpcc()
    assert scenario.interval == 2e-6
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('kind = "ring"', "network.kind"),
        ("network = 3", "network"),
        ('kind = "dumbbell"\nlinks = 3', "links"),
        ('kind = "dumbbell"\nwatch = 3', "watch"),
        ('kind = "dumbbell"\npackets = { header = -1 }', "header"),
    ],
)
def test_a_network_s_mistakes_are_named(tmp_path, text, named) -> None:
    refused(tmp_path, text if text.startswith("network") else f"[network]\n{text}", named)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("flows = [3]", r"flows\[0\]"),
        ('flows = [{ sender = { kind = "mpcc", horizon = 0 } }]', "horizon"),
        ('flows = [{ offers = { kind = "sizes", load = 2 }, sender = "hpcc" }]', "load"),
        ('flows = [{ offers = "sizes", sender = "dctcp" }]', "flows.dctcp.sender"),
    ],
)
def test_a_scenario_s_mistakes_are_named(tmp_path, text, named) -> None:
    refused(tmp_path, f'{text}\n[network]\nkind = "dumbbell"', named)


def refused(tmp_path, text, named) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(f'duration = "1ms"\n{text}\n')
    with pytest.raises(FileError, match=named):
        netctrl.read(path)


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


@pytest.mark.parametrize("module", [flows, topology])
def test_the_examples_run(module) -> None:
    ran = doctest.testmod(module)
    assert ran.attempted > 0
    assert ran.failed == 0
