"""DCTCP and Vegas on packets: marking part, queue and packets that wait, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.dctcp import DctcpState
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets
from netctrl.sim.packet.state import FLOW, LINK, PacketState

SIZE = 1500
UNMARKED = list(fields_of(DctcpState)).index("unmarked")


def runs(sender, *, rate, rtt, count=1, queue=None, duration=10.0, sample=1e-4, ecn=True) -> PacketState:
    line = {"id": "line", "source": "a", "target": "b", "capacity": rate} | ({} if queue is None else {"queue": queue})
    flows = Flow(id="flows", path=("line",), rtt=rtt, count=count, sender=sender, ecn=ecn)
    scenario = Scenario(
        name="ecn", duration=duration, links=(Link(**line),), flows=(flows,), packet_size=SIZE, interval=sample
    )
    return run_packets(packet_problem(scenario), 10.0)


@pytest.mark.parametrize("threshold", [20, 40, 100])
def test_dctcp_s_alpha_and_queue_are_those_of_its_theory(threshold):
    """alpha = √(2/W), W = C RTT + K the window at which marks begin; the queue swings between K + 1 - D, with
    D = (W + 1) alpha/2, and K + 1. Source: Alizadeh et al., SIGCOMM 2010, (3) to (9)."""
    rate, rtt = 1e9, 1e-3
    state = runs("dctcp", rate=rate, rtt=rtt, queue=ThresholdQueue(threshold=threshold * SIZE))
    W = rate * rtt / (8.0 * SIZE) + 1.0 + threshold
    alpha = 1.0 - state.window[0, UNMARKED]
    assert alpha == pytest.approx(np.sqrt(2.0 / W), abs=1.0 / 16.0)  # a window of marks adds up to g
    assert state.link[0, LINK["chosen"]] / state.link[0, LINK["packets"]] == pytest.approx(np.sqrt(2.0 / W), rel=0.1)
    queue = state.series[0, 0, 20_000:] / SIZE
    assert queue.max() == pytest.approx(threshold + 1.0, abs=1.0)
    assert queue.min() == pytest.approx(threshold + 1.0 - 0.5 * (W + 1.0) * np.sqrt(2.0 / W), abs=2.0)
    assert np.diff(state.series[2, 0])[20_000:].mean() * 8.0 / 1e-4 == pytest.approx(rate, rel=1e-3)
    assert state.flow[0, FLOW["again"]] == 0


def test_ten_dctcp_flows_keep_the_queue_at_the_threshold():
    state = runs("dctcp", rate=1e9, rtt=1e-3, count=10, queue=ThresholdQueue(threshold=20 * SIZE))
    queue = state.series[0, 0, 20_000:] / SIZE
    assert queue.mean() == pytest.approx(20.0, abs=5.0)
    assert queue.max() <= 20.0 + 2.0 * 10.0  # each adds a packet in the round trip in which marks are under way
    shares = state.flow[:, FLOW["received"]] / state.flow[:, FLOW["received"]].mean()
    assert np.abs(shares - 1.0).max() < 0.1


def test_an_rfc_3168_sender_is_halved_where_dctcp_is_not():
    """One bit of ECN a window for Reno, each packet's for DCTCP: at one threshold Reno's queue runs empty."""
    queue = ThresholdQueue(threshold=20 * SIZE)
    reno, dctcp = (runs(name, rate=1e9, rtt=1e-3, queue=queue) for name in ("reno", "dctcp"))
    assert np.diff(dctcp.series[2, 0])[20_000:].mean() > 1.02 * np.diff(reno.series[2, 0])[20_000:].mean()


def test_without_ecn_a_threshold_drops():
    state = runs("reno", rate=1e8, rtt=5e-3, queue=ThresholdQueue(threshold=20 * SIZE), ecn=False)
    assert state.series[0, 0].max() <= 21 * SIZE
    assert state.link[0, LINK["marked"]] == 0
    assert state.link[0, LINK["lost"]] == state.link[0, LINK["chosen"]] * SIZE > 0


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_vegas_flow_keeps_two_to_four_packets_in_the_queue(count):
    state = runs("vegas", rate=1e8, rtt=0.02, count=count, duration=60.0, sample=0.01)
    queue = state.series[0, 0, 3000:] / SIZE
    assert 2.0 * count - 1.0 <= queue.mean() <= 4.0 * count + 1.0
    assert queue.min() > 0.0
    assert state.link[0, LINK["lost"]] == 0
    assert np.diff(state.series[2, 0])[3000:].mean() * 8.0 / 0.01 == pytest.approx(1e8, rel=1e-3)
