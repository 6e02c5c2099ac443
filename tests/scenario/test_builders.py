"""Builders write the links and flows that one would write; what a flow doesn't say has one default everywhere."""

from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.scenario.files import scenario_from

TIMES = {"duration": 10.0, "warmup": 1.0, "packet_size": 1500.0}


def test_a_bottleneck_is_the_link_and_flows_that_it_stands_for() -> None:
    built = netctrl.bottleneck(
        **TIMES, name="x", capacity="20Mbit", rtt="50ms", queue="pie", cross="1Mbit", start_spread=0.5, flows=[{}]
    )
    line = {"id": "bottleneck", "source": "router", "target": "far", "capacity": 2e7, "buffer": 250e3, "queue": "pie"}
    flows = [
        {"rtt": 0.05, "start": (0.0, 0.5), "ecn": False},
        {"id": "cross", "offers": {"kind": "stream", "rate": 1e6}, "ecn": False},
    ]
    assert built == netctrl.Scenario(**TIMES, name="x", links=[line], flows=flows)


@given(st.integers(1, 5), st.integers(0, 2), st.sampled_from([0.001, 0.005, 0.02]))
def test_a_parking_lot_is_the_links_and_flows_that_it_stands_for(hops: int, crossing: int, delay: float) -> None:
    cross = [{"sender": sender, "count": 2} for sender in ("bbr", "dctcp")[:crossing]]
    words = {"hops": hops, "delay": delay, "cross": cross}
    built = netctrl.parking_lot(**TIMES, name="x", **words)
    names = [f"hop{i}" for i in range(1, hops + 1)]
    links = [
        {"id": name, "source": f"node{i}", "target": f"node{i + 1}", "capacity": 2e7, "delay": delay, "buffer": 1e5}
        for i, name in enumerate(names)
    ]
    flows = [{"sender": "cubic", "path": names, "rtt": fsum(2 * hops * [delay])}]
    flows += [
        each | {"id": f"{each['sender']}{i}", "path": [name], "rtt": 2 * delay}
        for i, name in enumerate(names, 1)
        for each in cross
    ]
    assert built == netctrl.Scenario(**TIMES, name="x", links=links, flows=flows)
    read = scenario_from(
        {**TIMES, "name": "x", "network": {"kind": "parking-lot", **words}, "flows": [{"sender": "cubic"}]}
    )
    assert read == built


@pytest.mark.parametrize("queue", ["dualpi2", "fq_codel", {"kind": "drr", "quantum": 3000.0}])
def test_builders_take_every_queue_of_a_link(queue: object) -> None:
    line = netctrl.Link(id="x", source="a", target="b", capacity=1e7, queue=queue)
    assert netctrl.bottleneck(queue=queue).links[0].queue == line.queue
    assert {hop.queue for hop in netctrl.parking_lot(queue=queue).links} == {line.queue}


def test_a_graph_whose_demands_senders_carry_is_links_and_flows_like_any_others() -> None:
    """With one demand drawn, or a policy that assumes them, laws of link rates are to know of all."""
    carried = [{"id": name, "sender": "cubic"} for name in ("p1", "p2")]
    testbed = netctrl.read("testbed")
    assert not netctrl.routed(testbed, flows=carried).under_demands
    assert netctrl.routed(testbed, flows=carried[:1]).under_demands
    assert netctrl.routed(testbed, flows=carried, control={"kind": "static", "factor": 1.1}).under_demands


def test_a_flow_without_a_round_trip_has_that_of_its_links() -> None:
    links = [
        {"id": "out", "source": "a", "target": "b", "capacity": 1e7, "delay": "10ms"},
        {"id": "back", "source": "b", "target": "a", "capacity": 1e7, "delay": "30ms"},
    ]
    flows = [
        {"id": "data", "path": ["out"]},
        {"id": "returned", "path": ["out"], "ack_path": ["back"]},
        {"id": "given", "path": ["out"], "rtt": "50ms"},
    ]
    scenario = netctrl.Scenario(duration=1.0, links=links, flows=flows)
    assert [flow.rtt for flow in scenario.flows] == [(0.02, 0.02), (0.04, 0.04), (0.05, 0.05)]


@pytest.mark.parametrize("fields", [{"hops": 0}, {"hops": 101}, {"delay": -1.0}, {"queue": "lifo"}, {"cross": [3]}])
def test_parking_lots_that_are_none_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(fields))):
        netctrl.parking_lot(**fields)


def test_a_parking_lot_without_flows_is_refused() -> None:
    with pytest.raises(InvalidValue, match="flows"):
        netctrl.parking_lot(flows=[], cross=[])
