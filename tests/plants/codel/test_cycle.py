"""Flows in CoDel's queue: the cycle of one in closed form, and packets."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from netctrl.engines.engine import simulate
from netctrl.laws.aqm.codel import CodelParameters, CodelQueue
from netctrl.laws.disciplines import CakeQueue
from netctrl.plants.codel.cycle import codel_cycle, codel_flows
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

TIMES = CodelParameters(5e-3, 0.1)


def test_reno_in_closed_form():
    """A path of 1000 packets and .1 s: the window grows by one in each round trip, so the target is reached 50 packets
    above the path, the first drop comes an interval later and is heard of a round trip after that, at 52; then the
    window is halved at once, for of it the queue has less than half."""
    rate, path = 1e4, 0.1
    peak = 1052.0
    found = codel_cycle("reno", rate, path, TIMES)
    assert found is not None
    below, above = np.arange(peak / 2.0, 1000.0), np.arange(1000.0, peak)
    trips = np.concatenate([np.full(len(below), path), above / rate])
    used = np.concatenate([below / 1000.0, np.ones(len(above))])
    delay = trips - path
    assert found.period_s == pytest.approx(trips.sum(), rel=0.005)
    assert found.utilization == pytest.approx(used @ trips / trips.sum(), abs=0.003)
    assert found.mean_s == pytest.approx(delay @ trips / trips.sum(), rel=0.05)
    assert found.p99_s == pytest.approx(4.7e-3, abs=2e-4)


def test_a_few_packets_stay_below_any_target():
    """Nothing is dropped while fewer than two packets are left behind the one that leaves, whatever the target is."""
    slow = [codel_cycle("cubic", 100.0, 0.02, CodelParameters(target, 0.1)) for target in (2e-3, 5e-3, 15e-3)]
    means = [each.mean_s for each in slow if each is not None]
    assert np.ptp(means) < 0.01 * means[0]
    assert min(means) > 15e-3


def test_a_slow_cycle_has_no_figures():
    assert codel_cycle("reno", 1e7, 1.0, TIMES) is None


def test_cobalt_is_nearly_codel_where_one_drop_is_enough():
    one, other = (codel_cycle("cubic", 1666.7, 0.05, TIMES._replace(cobalt=cobalt)) for cobalt in (0.0, 1.0))
    assert one is not None
    assert other is not None
    assert other.utilization == pytest.approx(one.utilization, abs=0.01)
    assert other.p99_s == pytest.approx(one.p99_s, rel=0.15)


def on_packets(mbit, rtt, sender, ecn, flows=1, queue=None):
    """Deviation, 99th percentile of the delay [s] and utilization on packets."""
    line = Link(
        id="line", source="a", target="b", capacity=mbit * 1e6, delay=rtt / 4, buffer=3e7, queue=queue or CodelQueue()
    )
    flow = Flow(id="flow", path=("line",), rtt=rtt, sender=sender, ecn=ecn, count=flows, start=(0.0, 0.5))
    scenario = Scenario(
        name="one", links=(line,), flows=(flow,), duration=90.0, warmup=30.0, interval=7e-4, packet_size=1500.0
    )
    run = simulate(scenario, "packet")
    delay = 8.0 * run.series["backlog"][0][run.time_s > 30.0] / line.capacity
    return delay.std(), np.quantile(delay, 0.99), run["utilization", "line"]


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize("sender", ["reno", "cubic"])
@pytest.mark.parametrize(("mbit", "rtt"), [(20.0, 0.02), (2.0, 0.05), (5.0, 0.1), (100.0, 0.03)])
def test_packets_have_the_same_figures(sender, mbit, rtt, ecn):
    rate = mbit * 1e6 / 12e3
    found = codel_cycle(sender, rate, rtt + 1.0 / rate, TIMES, marks=ecn, spread=False)
    assert found is not None
    deviation, p99, used = on_packets(mbit, rtt, sender, ecn)
    assert abs(log(found.std_s / deviation)) < log(1.3)
    assert abs(log(found.p99_s / p99)) < log(1.3)
    assert found.utilization == pytest.approx(used, abs=0.02 if rate > 200.0 else 0.025)


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize(
    ("mbit", "rtt", "bandwidth"), [(20.0, 0.02, None), (1.0, 0.05, 1e6), (2.0, 0.05, 2e6), (5.0, 0.1, 5e6)]
)
def test_packets_of_cake_have_the_same_figures(mbit, rtt, bandwidth, ecn):
    """Below its shaper, too, which lets four packets wait."""
    rate, queue = mbit * 1e6 / 12e3, CakeQueue(bandwidth=bandwidth)
    found = codel_cycle("cubic", rate, rtt + 1.0 / rate, queue.times(1500.0), marks=ecn, spread=False)
    assert found is not None
    deviation, p99, used = on_packets(mbit, rtt, "cubic", ecn, queue=queue)
    assert abs(log(found.std_s / deviation)) < log(1.3)
    assert abs(log(found.p99_s / p99)) < log(1.3)
    assert found.utilization == pytest.approx(used, abs=0.02)


@pytest.mark.parametrize("sender", ["reno", "cubic"])
@pytest.mark.parametrize(("mbit", "rtt", "flows"), [(20.0, 0.05, 5), (50.0, 0.08, 20)])
def test_packets_of_many_flows_have_the_same_figures(sender, mbit, rtt, flows):
    rate = mbit * 1e6 / 12e3
    found = codel_flows(sender, flows, rate, rtt + 1.0 / rate, TIMES, spread=False)
    assert found is not None
    deviation, p99, used = on_packets(mbit, rtt, sender, False, flows)
    assert abs(log(found.std_s / deviation)) < log(1.3)
    assert abs(log(found.p99_s / p99)) < log(1.3)
    assert found.utilization == pytest.approx(used, abs=0.02)


def test_flows_with_tiny_windows_have_no_figures():
    assert codel_flows("cubic", 30, 1e3, 0.05, TIMES) is None
