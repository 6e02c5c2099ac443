"""Networks under demands, and groups of demands, in the kernel beside the packet engine, which has the same packets."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.laws.aqm.red import RedQueue
from netctrl.model.network import Demand, Link, Network
from netctrl.scenario import links
from netctrl.scenario.builders import routed
from netctrl.scenario.network.plan import Ways
from netctrl.scenario.network.policy import Backpressure, CreditPolicy, HftracPolicy, Messages, StaticPacing
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand as Offered

WAYS = {"a->b": 0.75, "a->c": 0.25, "b->d": 1.0, "c->d": 1.0}


def diamond(buffer: float = 60e3, duration: str = "8s", **parts):
    """A demand over two ways, and one that shares the first; links' names have characters that interfaces lack."""
    made = tuple(
        Link(source=source, target=target, capacity=rate, delay=0.01, buffer=buffer)
        for source, target, rate in (("a", "b", 20e6), ("a", "c", 20e6), ("b", "d", 15e6), ("c", "d", 8e6))
    )
    demands = (
        Demand(id="split", source="a", target="d", mean=14e6, std=5e6, split=WAYS),
        Demand(id="one", source="b", target="d", mean=2e6, std=1e6),
    )
    graph = Network(name="diamond", links=made, demands=demands)
    return routed(graph, duration=duration, warmup="1s", seed=4, **parts)


def test_ways_keep_the_shares_at_any_time() -> None:
    scenario = diamond()
    split, one = (Ways(scenario.links, flow) for flow in scenario.flows)
    ways = [split.next() for _ in range(40)]
    assert set(ways) == {("a->b", "b->d"), ("a->c", "c->d")}
    first = np.cumsum([way[0] == "a->b" for way in ways])
    assert np.abs(first - 0.75 * np.arange(1, 41)).max() <= 1.0
    assert scenario.flows[0].path == ("a->b", "b->d")
    assert one.next() == ("b->d",)


def test_what_it_lacks_of_a_network_is_named() -> None:
    assert "backpressure" in str(supports(diamond(control=Backpressure()))["kernel"])
    assert "links.a->b.queue" in str(supports(diamond(queue=RedQueue()))["kernel"])
    with pytest.raises(InvalidValue, match="packets of demands"):
        netctrl.simulate(diamond(duration="10000s"), "kernel")


@pytest.mark.needs("lab")
@pytest.mark.parametrize(("control", "buffer"), [(None, 60e3), (None, 6e3), (StaticPacing(factor=1.05), 20e3)])
def test_a_network_is_that_of_the_packet_engine(control, buffer: float) -> None:
    scenario = diamond(buffer, control=control)
    packet, kernel = (netctrl.simulate(scenario, engine, runs=2) for engine in ("packet", "kernel"))
    np.testing.assert_allclose(kernel.totals["entered"], packet.totals["entered"])
    np.testing.assert_allclose(kernel.totals["left"], packet.totals["left"], rtol=1e-3)
    np.testing.assert_allclose(kernel.totals["departed"], packet.totals["departed"], rtol=1e-3)
    np.testing.assert_allclose(kernel.totals["lost"], packet.totals["lost"], rtol=0.02, atol=6000)
    np.testing.assert_allclose(kernel.totals["backlog"], packet.totals["backlog"], rtol=0.03, atol=40)
    # a packet that leaves at an interval's end may count in the next one: 1.2 Mbit/s there, in one of 700 intervals
    np.testing.assert_allclose(kernel.totals["rate_square"], packet.totals["rate_square"], rtol=0.03, atol=2e10)
    np.testing.assert_allclose(kernel.totals["backlog_square"], packet.totals["backlog_square"], rtol=0.05, atol=1e11)
    balance = kernel.totals["arrived"] - kernel.totals["departed"] - kernel.totals["lost"] - kernel.totals["growth"]
    np.testing.assert_allclose(balance, 0.0, atol=1.0)
    np.testing.assert_allclose(kernel.totals["one_way"], packet.totals["one_way"], rtol=2e-3)
    np.testing.assert_allclose(kernel.totals["flow_lost"], packet.totals["flow_lost"], rtol=0.02, atol=6000)
    # one packet's time at the links' rates
    assert np.abs(kernel.series["backlog"] - packet.series["backlog"]).mean() < 300.0
    if buffer < 10e3:
        assert kernel.figures()["loss", "network"].min() > 1e-3


LATE = Messages(loss=0.1, jitter=("0ms", "5ms"), asynchronous=True)


@pytest.mark.needs("lab")
@pytest.mark.parametrize(
    ("control", "share"),
    [
        (HftracPolicy(architecture="coordinated", mu=0.3, messages=LATE), 0.7),
        (HftracPolicy(architecture="centralized", mu=0.3), 0.7),
        (CreditPolicy(messages=LATE), 0.99),
    ],
)
def test_rates_are_set_as_in_the_packet_engine(control, share: float) -> None:
    scenario = diamond(30e3, "6s", control=control)
    packet, kernel, fifo = (
        netctrl.simulate(each, engine)
        for each, engine in ((scenario, "packet"), (scenario, "kernel"), (diamond(30e3, "6s"), "packet"))
    )
    np.testing.assert_allclose(kernel.totals["departed"], packet.totals["departed"], rtol=2e-3)
    np.testing.assert_allclose(kernel.totals["backlog"], packet.totals["backlog"], rtol=0.05, atol=100)
    np.testing.assert_allclose(kernel.totals["rate_square"].sum(), packet.totals["rate_square"].sum(), rtol=0.05)
    # the law does something, and the two series are the same, not only their means
    assert kernel.totals["rate_square"].sum() < share * fifo.totals["rate_square"].sum()
    first = kernel.series["departed"][0], packet.series["departed"][0]
    assert np.corrcoef(*first)[0, 1] > 0.9


@pytest.mark.needs("lab")
def test_an_overload_is_that_of_the_packet_engine() -> None:
    scenario = diamond(30e3, "6s", control=CreditPolicy(), utilization=1.3)
    packet, kernel = (netctrl.simulate(scenario, engine) for engine in ("packet", "kernel"))
    np.testing.assert_allclose(kernel.totals["departed"], packet.totals["departed"], rtol=2e-3)
    np.testing.assert_allclose(kernel.totals["flow_lost"], packet.totals["flow_lost"], rtol=0.02, atol=6000)
    assert kernel.figures()["loss", "network"].min() > 0.1


@pytest.mark.needs("lab")
def test_tcp_takes_what_the_demands_leave() -> None:
    scenario = diamond(flows=[{"id": "one", "count": 3, "sender": "cubic"}])
    found = netctrl.simulate(scenario, "kernel", runs=1)
    assert "resent" in found.totals and "offered" not in found.totals
    shared = list(found.links).index("b->d")
    assert found.totals["departed"][0, shared] * 8.0 / found.seconds == pytest.approx(15e6, rel=2e-3)
    udp = found.totals["departed"][0, list(found.links).index("a->b")]  # most of which the shared link carries
    goodput = found.totals["payload"][0, 0]
    lost = found.totals["lost"][0, shared]
    assert found.totals["departed"][0, shared] - udp <= goodput * 1500.0 / 1434.0 * 1.002
    assert goodput <= found.totals["departed"][0, shared] - udp + lost
    least = 2 * 0.01  # there and back
    assert least < found.totals["rtt"][0, 0] < least + 60e3 * 8.0 / 15e6 + 0.01
    assert 0.0 < found["resent", "one"] < 0.1


@pytest.mark.needs("lab")
def test_groups_of_demands_are_those_of_the_packet_engine() -> None:
    line = links.Link(id="line", source="a", target="b", capacity="10Mbit", delay="2ms", buffer="100kB")
    drawn = Flow(
        id="drawn", path=("line",), count=2, rtt="20ms", offers=Offered(mean="3Mbit", std="1Mbit", interval="50ms")
    )
    given = Flow(
        id="given", path=("line",), start=("1s", "1s"), offers=Offered(rates=[1e6, 0.0, 2e6], interval="100ms")
    )
    scenario = netctrl.Scenario(
        name="demands", links=(line,), flows=(drawn, given), duration="5s", packet_size=1000, interval="100ms"
    )
    packet, kernel = (netctrl.simulate(scenario, engine) for engine in ("packet", "kernel"))
    share = (1000.0 - 40.0) / (1000.0 - 42.0)  # what counts as headers
    np.testing.assert_allclose(kernel.series["payload"] * share, packet.series["payload"], atol=2 * 1000.0)
    np.testing.assert_allclose(kernel.series["departed"].sum(), packet.series["departed"].sum(), atol=2000.0)
    for mine, theirs in zip(kernel.series["one_way"], packet.series["one_way"], strict=True):
        both = (mine > 0.0) & (theirs > 0.0)
        assert both.sum() > 25
        assert mine[both].mean() == pytest.approx(theirs[both].mean(), rel=0.02)
