"""A bottleneck's scenario on packets: against its fluid and against its program for ns-3."""

from __future__ import annotations

import numpy as np
import pytest
from one_link import paced, plain, run

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.design import with_pacer
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

RATE, RTT, PACKET = 2e7, 0.02, 12000.0
OWN = netctrl.pacing(mode="own-rate").law
PAPER = netctrl.pacing(max_rate_bit_per_s=RATE).law


def of(*kinds: str, **fields) -> Scenario:
    """Flows a second apart; the buffer holds two bandwidth-delay products."""
    flows = tuple(Flow(id=f"flow{k}", sender=kind, start=float(k)) for k, kind in enumerate(kinds))
    usual = {"capacity": RATE, "rtt": RTT, "buffer": 1e5, "duration": 30.0, "warmup": 10.0, "flows": flows}
    law = fields.pop("law", None)
    made = bottleneck(**(usual | fields))
    return made if law is None else with_pacer(made, law)


def on_packets(scenario: Scenario) -> tuple[float, float]:
    """Throughput of all flows [bit/s], mean queueing delay [s], after the warm-up."""
    found = simulate_packets(scenario)
    late = found.time_s > scenario.warmup
    payload = found.series["payload"][: len(scenario.flows), late].sum() / late.sum() / scenario.interval
    return 8.0 * payload * 1500.0 / 1460.0, 8.0 * found.series["backlog"][0, late].mean() / scenario.links[0].capacity


def in_ns3(scenario: Scenario) -> tuple[float, float]:
    """The same; the delay is that of RTTs above an idle link's, so that the device behind the queue counts."""
    found: Result = netctrl.simulate(scenario, "ns3")
    rtts = np.concatenate([found.rtts(flow) for flow in found.flows])
    return sum(found["throughput", flow] for flow in found.flows), rtts.mean() - RTT - PACKET / scenario.links[
        0
    ].capacity


def test_what_a_bottleneck_becomes():
    flows = (
        Flow(id="cap", rtt=0.04, sender=CapSender(rate=5e6, window="htcp")),
        Flow(id="paced", sender="paced", start=1.0, stop=3.0),
        Flow(sender="bbr"),
    )
    for law, window in ((OWN, None), (PAPER, "htcp")):
        found = of(flows=flows, cross=1e6, start_spread=0.5, law=law)
        assert [group.id for group in found.flows] == ["cap", "paced", "bbr", "cross"]
        assert (found.network, [link.id for link in found.links]) == (None, ["bottleneck"])
        senders = CapSender(rate=5e6, window="htcp"), PacedSender(law=law, window=window), "bbr"
        assert tuple(group.sender for group in found.flows[:3]) == senders
        assert [group.rtt[0] for group in found.flows[:3]] == [0.04, RTT, RTT]
        assert (found.flows[1].start, found.flows[1].stop) == ((1.0, 1.5), (3.0, 3.0))
        assert (found.interval, found.warmup, found.packet_size) == (0.1, 10.0, 1500.0)
        assert found.flows[3].offers.rate == 1e6
    with pytest.raises(InvalidValue, match="law"):
        of("bbr", law=OWN)
    with pytest.raises(InvalidValue, match="law"):
        simulate_packets(of("paced"))


def test_a_paced_flow_is_that_of_the_fluid():
    rate, delay = on_packets(of("paced", law=OWN))
    fluid = run([paced(OWN, RTT + PACKET / RATE)], RATE, 1e5, 30.0)
    late = fluid.time_s > 10.0
    assert rate == pytest.approx(fluid.throughput[0, late].mean(), rel=0.01)
    assert delay == pytest.approx(fluid.delay_s[late].mean(), rel=0.5)


def sixteen(bdps: float) -> Scenario:
    """Flows of four packets in the pipe each, a tenth of a second apart."""
    rate = 16 * 4 * PACKET / RTT
    flows = tuple(Flow(id=f"flow{k}", sender="paced", start=0.1 * k) for k in range(16))
    return of(capacity=rate, buffer=bdps * rate * RTT / 8.0, flows=flows, law=OWN)


def test_sixteen_paced_flows_keep_the_certificate_s_queue():
    scenario = sixteen(4.0)
    rate, delay = on_packets(scenario)
    line = scenario.links[0]
    fluid = run([paced(OWN, RTT, 0.1 * k) for k in range(16)], line.capacity, line.buffer, 30.0)
    proof = netctrl.pacing(mode="own-rate", rtt_s=RTT, bottleneck_bit_per_s=line.capacity, flows=16).certificate
    assert rate == pytest.approx(line.capacity, rel=0.04)  # a drain to 3.8 packets has three in flight, of four
    assert 0.7 < fluid.delay_s[fluid.time_s > 10.0].mean() / proof.equilibrium.queue_s < 1.1
    assert 0.8 < delay / proof.equilibrium.queue_s < 1.5


@pytest.mark.slow
@pytest.mark.needs("ns3")
@pytest.mark.parametrize("bdps", [0.25, 4.0])
def test_sixteen_paced_flows_are_those_of_ns_3(bdps):
    """ns-3's device holds one packet behind the queue's buffer: with a short buffer it counts, and in drains."""
    (rate, delay), (other, other_delay) = (on_packets(sixteen(bdps)), in_ns3(sixteen(bdps)))
    assert rate == pytest.approx(other, rel=0.016)
    device = PACKET / sixteen(bdps).links[0].capacity
    assert delay - 0.15 * other_delay < other_delay < delay + device + 0.15 * other_delay


@pytest.mark.slow
def test_a_cubic_flow_is_that_of_the_fluid():
    rate, delay = on_packets(of("cubic", duration=100.0))
    fluid = run([plain("cubic", RTT + PACKET / RATE)], RATE, 1e5, 100.0)
    late = fluid.time_s > 10.0
    assert rate == pytest.approx(fluid.throughput[0, late].mean(), rel=0.01)
    assert delay == pytest.approx(fluid.delay_s[late].mean(), rel=0.1)


@pytest.mark.slow
@pytest.mark.needs("ns3")
def test_a_paced_flow_is_that_of_ns_3():
    (rate, delay), (other, other_delay) = on_packets(of("paced", law=OWN)), in_ns3(of("paced", law=OWN))
    assert rate == pytest.approx(other, rel=0.002)
    assert delay == pytest.approx(other_delay, rel=0.05)


@pytest.mark.slow
@pytest.mark.needs("ns3")
def test_bbr_keeps_the_queue_of_linux_and_ns_3_less():
    """Two flows: in Linux (kernel lab) 86 kB wait, which are a BDP and what leaves at once, three times of each flow.
    ns-3.37's TcpBbr has allowances for it, too, but a BDP of smoothed RTTs and a flow that probes each 10 s at 2 %."""
    scenario = of("bbr", "bbr", buffer=2e5)
    (rate, delay), (other, other_delay) = on_packets(scenario), in_ns3(scenario)
    assert rate == pytest.approx(other, rel=0.02)
    assert delay == pytest.approx(8.0 * 86e3 / RATE, rel=0.05)
    assert RTT + PACKET / RATE < other_delay < delay


@pytest.mark.slow
@pytest.mark.needs("ns3")
def test_vegas_is_that_of_ns_3s_program_which_prints_it():
    """Two to four packets in the queue in both: which depends on when slow start ended."""
    for rate, delay in (on_packets(of("vegas")), in_ns3(of("vegas"))):
        assert rate == pytest.approx(RATE, rel=0.001)
        assert 2.0 <= delay * RATE / PACKET <= 4.0
