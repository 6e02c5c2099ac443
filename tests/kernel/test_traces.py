"""Links with a trace in the kernel: each packet at its opportunity, and TCP as on the packet engine."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.units import NANOSECOND
from netctrl.kernel.boot import run_plan
from netctrl.kernel.build import build_guest, chosen_kernel
from netctrl.kernel.plan import ARRIVAL, Answer
from netctrl.kernel.scenarios.planner import plan_scenario
from netctrl.kernel.scenarios.result import joined
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.model.datasets import data_path
from netctrl.model.link_trace import LinkTrace, mean_rate, read_link_trace, trace_bits
from netctrl.model.trace import RateTrace
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.fluid.traffic import draw_flows

pytestmark = pytest.mark.needs("lab")

DELAY = 0.0123
BURSTS = LinkTrace(np.array([3, 3, 3, 4, 9, 10, 10, 12, 700, 701]))  # 0.69 s without any
STEPS = RateTrace(0.1, ("rate",), 1e6 * np.array([[8.0], [0.0], [3.0], [0.4], [20.0]]))


def traced(trace, *, size: int = 1500, duration: str = "3s", flow=(), **link) -> netctrl.Scenario:
    line = {"capacity": mean_rate(trace), "delay": f"{DELAY}s"} | link
    return netctrl.Scenario(
        name="traced",
        links=(Link(id="line", source="a", target="b", trace=trace, **line),),
        flows=(Flow(id="flow", path=("line",), **dict(flow)),),
        duration=duration,
        packet_size=size,
    )


def sent_and_left(scenario, folder) -> tuple[np.ndarray, np.ndarray]:
    """When a stream's packets come to its link, and when those that arrive leave it [s]."""
    plan = plan_scenario(scenario, draw_flows(scenario, merged=False))
    results = run_plan(plan.writer, chosen_kernel(), build_guest(), folder, seed=1)
    rows = joined(results, Answer.ARRIVALS, ARRIVAL)
    assert (rows["number"] == np.arange(len(rows))).all()
    return plan.streams[0][1], rows["at_ns"] * NANOSECOND - DELAY


@pytest.mark.parametrize("rate", ["300kbit", "20Mbit"])
@pytest.mark.parametrize("size", [1514, 1500, 700])
def test_each_packet_leaves_at_its_opportunity(tmp_path, rate: str, size: int) -> None:
    """An opportunity has 1504 bytes, a packet 4 more than its own; what is left is for one that waits."""
    sent, left = sent_and_left(traced(BURSTS, size=size, flow={"offers": Stream(rate=rate)}), tmp_path)
    turns = BURSTS.duration_s * np.arange(6)[:, None]
    expected, credit, waiting = [], 0.0, 0
    for at in (turns + BURSTS.times_ms / 1e3).ravel():
        come = np.searchsorted(sent, at - 1e-6)
        credit += 1504
        while waiting < come and credit >= size + 4:
            credit -= size + 4
            waiting += 1
            expected.append(at)
        credit *= waiting < come
    assert 0 <= np.searchsorted(expected, 3.0 - DELAY) - len(left) <= 1
    np.testing.assert_allclose(left, expected[: len(left)], atol=2e-6)


def test_a_full_link_sends_what_its_rates_allow(tmp_path) -> None:
    sent, left = sent_and_left(traced(STEPS, flow={"offers": Stream(rate="30Mbit")}), tmp_path)
    times = np.arange(0.05, 2.9, 0.05)
    counted = 8.0 * 1500 * np.searchsorted(left, times + 1e-6)
    offered = trace_bits(STEPS, times) - trace_bits(STEPS, sent[:1])
    assert (np.abs(counted - offered) <= 8.0 * 1500 * 1.01).all()


def test_tcp_over_a_trace_is_that_on_packets() -> None:
    trace = read_link_trace(data_path("traces/mobile.trace"))  # repeats after 20 s, and has none for 0.4 s
    flow = {"sender": "reno", "rtt": "50ms"}
    scenario = traced(trace, duration="30s", buffer="150kB", flow=flow)
    lab, packets = (netctrl.simulate(scenario, engine) for engine in ("kernel", "packet"))
    assert lab["utilization", "line"] == pytest.approx(packets["utilization", "line"], rel=5e-3)
    assert lab["throughput", "flow"] == pytest.approx(packets["throughput", "flow"], rel=0.01)
    assert lab["backlog", "line"] == pytest.approx(packets["backlog", "line"], rel=0.03)
    assert lab.series["backlog"].max() <= 150e3


def test_a_traced_link_may_lose_packets_and_have_another_queue() -> None:
    trace = read_link_trace(data_path("traces/mobile.trace"))
    flow = {"sender": "cubic", "rtt": "50ms", "count": 3}
    found = netctrl.simulate(traced(trace, duration="10s", queue=CodelQueue(), loss=0.002, flow=flow), "kernel")
    assert found["utilization", "line"] > 0.85
    assert 0.001 < found["loss", "line"] < 0.01
    assert found["marks", "line"] > 0.01
    assert found["backlog", "line"] < 20e3
