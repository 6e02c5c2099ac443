"""Links with a trace in ns-3: packets leave at its opportunities, and TCP as on the packet engine."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.model.datasets import data_path
from netctrl.model.link_trace import LinkTrace, mean_rate, read_link_trace, trace_bits
from netctrl.model.trace import RateTrace
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream

pytestmark = pytest.mark.needs("ns3")

SIZE = 1500
BURSTS = LinkTrace(np.array([3, 3, 3, 4, 9, 10, 10, 12, 700, 701]))  # 0.69 s without any
STEPS = RateTrace(0.1, ("rate",), 1e6 * np.array([[8.0], [0.0], [3.0], [0.4], [20.0]]))


def traced(trace, flow, duration: float, interval: float) -> netctrl.Scenario:
    line = Link(id="line", source="a", target="b", capacity=mean_rate(trace), delay="20ms", buffer="150kB", trace=trace)
    return netctrl.Scenario(
        name="traced",
        links=(line,),
        flows=(Flow(id="flow", path=("line",), **flow),),
        duration=duration,
        interval=interval,
        packet_size=SIZE,
    )


def test_a_full_link_uses_each_opportunity():
    found = netctrl.simulate(traced(BURSTS, {"offers": Stream(rate="30Mbit")}, 2.5, 1e-3), "ns3")
    times = (found.time_s * 1e3).round().astype(int)
    expected = np.bincount(BURSTS.times_ms, minlength=702)[(times - 1) % 701 + 1]
    late = times > 3  # before, no packet waits
    np.testing.assert_array_equal(found.series["departed"][0, late] / SIZE, expected[late])


def test_what_finds_no_packet_is_lost():
    """Each 120 ms one comes, six a turn of ten opportunities: most in the 0.69 s without any, and wait."""
    flow = {"offers": Stream(rate="100kbit", spacing="constant")}
    found = netctrl.simulate(traced(BURSTS, flow, 3.6, 1e-3), "ns3")
    left = found.series["departed"][0] / SIZE
    times = (found.time_s[left > 0.0] * 1e3).round().astype(int)
    assert {700, 701, 3} <= set(((times - 1) % 701 + 1).tolist()) <= set(BURSTS.times_ms.tolist())
    assert left.sum() == pytest.approx(0.704 * 5 / 0.12, abs=1.0)


def test_a_full_link_sends_what_its_rates_allow():
    found = netctrl.simulate(traced(STEPS, {"offers": Stream(rate="30Mbit")}, 3.0, 0.01), "ns3")
    sent, offered = np.cumsum(found.series["departed"][0]), trace_bits(STEPS, found.time_s) / 8.0
    assert (np.abs(sent - offered) <= 2.0 * SIZE).all()


def test_tcp_over_a_trace_is_that_on_packets():
    trace = read_link_trace(data_path("traces/mobile.trace"))  # repeats after 20 s, and has none for 0.4 s
    scenario = traced(trace, {"sender": "cubic", "rtt": "50ms"}, 30.0, 0.1)
    ns3, packets = (netctrl.simulate(scenario, engine) for engine in ("ns3", "packet"))
    assert ns3["utilization", "line"] == pytest.approx(packets["utilization", "line"], rel=5e-3)
    assert ns3["throughput", "flow"] == pytest.approx(packets["throughput", "flow"], rel=0.01)
    assert ns3["backlog", "line"] == pytest.approx(packets["backlog", "line"], rel=0.03)
