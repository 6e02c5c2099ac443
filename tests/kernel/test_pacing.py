"""Paced flows in the kernel: a cap's rate, a law by netctrl's own pacer, flows through one bottleneck."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.kernel.scenarios.lacks import scenario_lacks
from netctrl.kernel.scenarios.planner import payload_share
from netctrl.kernel.scenarios.senders import kernel_sender
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.model.law import OwnRatePacer
from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web

OWN = netctrl.pacing(mode="own-rate", max_rate_bit_per_s=40e6, rtt_s=0.02)
RATE = 6e6


def two_links(*senders, duration="6s"):
    """A link of 20 Mbit/s behind one of 40 Mbit/s, one flow for each sender."""
    links = (
        Link(id="first", source="a", target="b", capacity="40Mbit", delay="1ms"),
        Link(id="second", source="b", target="c", capacity="20Mbit", delay="4ms", buffer="60kB"),
    )
    flows = tuple(
        Flow(id=f"f{k}", path=("first", "second"), rtt="20ms", count=1, sender=each, start=("0s", "0s"))
        for k, each in enumerate(senders)
    )
    return netctrl.Scenario(
        name="paced", links=links, flows=flows, duration=duration, warmup="2s", packet_size=1514, seed=3
    )


def test_senders_that_the_kernel_has() -> None:
    assert kernel_sender("htcp", 0.9) == ("htcp", 0.0, None)
    assert kernel_sender(CapSender(rate=8e6, window="reno"), 0.9) == ("reno", 0.9e6, None)
    assert kernel_sender(CapSender(rate=8e6), 0.9) is None  # no window to go on with
    assert kernel_sender("hpcc", 0.9) is None
    paced = kernel_sender(PacedSender(law=OWN.law), 0.9)
    assert paced == ("cubic", OWN.law.start_rate_bit_per_s / 8.0, OWN.law)
    assert kernel_sender(PacedSender(law=OWN.law, window="htcp"), 0.9).congestion == "htcp"
    assert kernel_sender("own-rate", 0.9).law == OwnRatePacer()


def test_sessions_that_a_law_paces_are_refused_and_what_a_cap_needs_is_said() -> None:
    web = Flow(id="web", path=("first",), rtt="20ms", count=1, sender=PacedSender(law=OWN.law), offers=Web())
    scenario = two_links("cubic")
    traffic = netctrl.Scenario(name="web", links=scenario.links, flows=(web,), duration="6s", packet_size=1514)
    assert "Web sessions that a law paces" in str(scenario_lacks(traffic))
    assert "cap over one of these" in str(scenario_lacks(two_links(CapSender(rate="1Mbit"))))


@pytest.mark.needs("lab")
def test_a_cap_counts_whole_packets() -> None:
    found = netctrl.simulate(two_links(CapSender(rate=RATE, window="cubic")), "kernel")
    later = found.time_s > 2.0
    carried = 8.0 * found.series["payload"][0, later].sum() / (later.sum() * found.scenario.interval)
    assert carried == pytest.approx(RATE * payload_share(1514), rel=2e-3)
    assert found.series["backlog"][1, later].max() <= 2 * 1514  # a rate below the link's keeps no queue


@pytest.mark.needs("lab")
def test_laws_pace_each_its_flow_and_a_seed_gives_the_same_numbers() -> None:
    slow = netctrl.pacing(mode="own-rate", max_rate_bit_per_s=RATE, rtt_s=0.02).law
    scenario = two_links(PacedSender(law=OWN.law), PacedSender(law=slow), duration="12s")
    found, again = (netctrl.simulate(scenario, "kernel") for _ in range(2))
    for name in ("payload", "rtt", "backlog", "lost"):
        np.testing.assert_array_equal(found.series[name], again.series[name])
    later = found.time_s > 8.0  # the window beneath has grown by then
    carried = 8.0 * found.series["payload"][:, later].sum(axis=1) / (later.sum() * found.scenario.interval)
    assert carried[1] <= 1.002 * RATE  # by its own law, whose greatest rate is of payload
    assert carried.sum() >= 0.96 * 20e6 * payload_share(1514)
    proof = netctrl.pacing(mode="own-rate", bottleneck_bit_per_s=20e6, flows=2).certificate
    assert found.series["backlog"][1, later].mean() < 1.5 * proof.least_buffer_bytes  # of 60 kB, which Cubic fills


@pytest.mark.needs("lab")
def test_flows_through_one_bottleneck_are_those_of_the_packet_engine() -> None:
    line = Bottleneck(capacity="20Mbit", buffer="60kB", rtt="20ms")
    flows = (Flow(id="one", sender="paced"), Flow(id="two", sender="cubic", start="16s", stop="18s"))
    scenario = netctrl.Scenario(
        name="pair", network=line, flows=flows, duration="21s", warmup="1s", interval="100ms", packet_size=1500
    )
    both = packet, kernel = [netctrl.simulate(scenario, each, design=OWN) for each in ("packet", "kernel")]
    for found in both:
        start, read, sent, again = (found.tables["connections"][name] for name in ("start", "read", "sent", "resent"))
        assert np.all(read <= sent - again)
        assert sent[0] == pytest.approx(read[0] + again[0], rel=0.02)
        assert start.tolist() == [0.0, 16.0]
    alone = (packet.time_s > 8.0) & (packet.time_s < 16.0)  # the window beneath grows slowly at first
    throughput = [each.series["delivered"][0, alone].mean() for each in (packet, kernel)]
    assert throughput[1] == pytest.approx(throughput[0], rel=0.03)
    # The kernel's is TCP's smoothed RTT. The guest's interpreter takes other times with another environment, so that
    # medians of the first seconds are from 30.9 to 33.8 ms; means of these stay within 0.2 ms.
    mine, theirs = (np.nanmean(each.series["rtt"][0, alone]) for each in both)
    queue = netctrl.pacing(mode="own-rate", bottleneck_bit_per_s=20e6).certificate.equilibrium.queue_s
    assert 0.9 * queue < mine - 0.02 < 1.5 * queue
    assert 0.9 * queue < theirs - 0.02 < 2.2 * queue  # an agent's, over Cubic's window
    for found in (packet, kernel):
        beside = (found.time_s > 16.2) & (found.time_s <= 18.0)
        assert found.series["delivered"][1, beside].sum() > 0.0
        assert found.series["delivered"][1, found.time_s > 18.5].sum() == 0.0


@pytest.mark.needs("lab")
def test_a_bottleneck_without_its_law_is_refused_with_the_reason() -> None:
    scenario = netctrl.Scenario(name="one", network=Bottleneck(), flows=(Flow(sender="paced"),), duration="5s")
    with pytest.raises(InvalidValue, match=r"paced.*takes a Design of pacing with the scenario"):
        netctrl.simulate(scenario, "kernel")
