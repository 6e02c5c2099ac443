"""Results of every kind of scenario: tables of links and of flows in one vocabulary, which are the measures."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import netctrl
from netctrl.laws.window.records import Hpcc
from netctrl.scenario.access.scenario import access_link
from netctrl.scenario.fabric.flows import MessageFlows
from netctrl.scenario.fabric.topology import Dumbbell
from netctrl.scenario.links import Link
from netctrl.scenario.result import UNITS, Result, quantity_text
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, UdpFlows


def links() -> Scenario:
    path = ("a", "b")
    first = Link(id="a", source="x", target="y", capacity=1e7, buffer=5e4)
    ends = (first, Link(id="b", source="y", target="z", capacity=8e6))
    flows = (
        BulkFlows(id="tcp", path=path, rtt=0.02, count=2),
        UdpFlows(id="udp", path=path[:1], count=1, rate=1e6),
    )
    return Scenario.of(name="two", links=ends, flows=flows, duration=3.0, warmup=1.0)


def centre() -> Scenario:
    flows = MessageFlows(id="x", source=[0, 1], target=4, size=1e5)
    return Scenario.of(name="four", network=Dumbbell(), sender=Hpcc(), flows=(flows,), duration=5e-3)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [
        netctrl.simulate(links(), "packet"),
        netctrl.simulate(netctrl.read("hftrac-testbed").replace(duration="20s"), "fluid"),
        netctrl.simulate(access_link(duration=3.0), "packet"),
        netctrl.simulate(centre(), "packet"),
    ]


def test_tables_are_the_measures(results) -> None:
    """Of a data centre they are of ports and flows, one by one."""
    for result in results[:3]:
        measures = result.measures()
        seen = 0
        for name, table in (("link", result.links_table()), ("flow", result.flows_table())):
            for row in table.to_dict("records"):
                of = row.pop(name)
                told = {quantity: value for quantity, value in row.items() if not np.isnan(value)}
                assert told == {quantity: value for (quantity, each), value in measures.items() if each == of}
                seen += len(told)
        assert seen == len(measures)


def test_links_and_flows_are_told_apart(results) -> None:
    found = [(list(each.links_table()["link"]), list(each.flows_table()["flow"])) for each in results]
    assert found[0] == (["a", "b"], ["tcp", "udp"])
    assert found[2] == (["link"], ["premium", "regulated"])
    assert len(found[1][0]) == len(results[1].links)
    assert found[3] == (list(results[3].ports), [0, 1])


def test_quantities_have_one_unit_each_and_shares_none(results) -> None:
    names = {quantity for each in results[:3] for quantity, _ in each.measures()}
    assert {"throughput", "backlog", "loss", "delay"} <= names
    assert names - set(UNITS) <= {"loss", "marks", "utilization"}
    assert quantity_text("throughput", 1.2345e6, 3) == "1.23 Mbit/s"
    assert quantity_text("loss", 0.0123, 2) == "1.2 %"
    assert quantity_text("slow-down", 1.234, 3) == "1.23"


def test_ports_and_flows_of_a_data_centre_add_up(results) -> None:
    centre = results[3]
    flows, ports = centre.flows_table(), centre.links_table()
    sent = flows["size_bytes"] * 8 / flows["throughput"]
    assert np.allclose(sent, (centre.finish_ns - centre.start_ns) / 1e9)
    assert ports.loc[ports["link"] == "s0>s1", "utilization"].item() == ports.loc[:, "utilization"].max()


def test_every_result_shows_itself(results) -> None:
    for each in results:
        title, rows = each.table()
        page = each._repr_html_()
        assert page.startswith(f"<table><caption>{title}".replace(">=", "&gt;="))
        assert all(name in page for name, _ in rows)
        assert each.simulator
        assert each.provenance.seed == each.scenario.seed
        msgspec.json.encode(each.summary())
