"""Senders over links in ns-3, each on its own: caps, pacing laws, printed windows, packets without acknowledgements."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.ns3.tcp_aqm.senders import sender_lack
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Bursts, Stream

RATE, SIZE, RTT = 5e6, 1500.0, 0.04
OWN, PAPER = netctrl.pacing(mode="own-rate").law, netctrl.pacing(max_rate_bit_per_s=RATE).law
SENDERS = {
    "cap": CapSender(rate=2e6, window="htcp"),
    "own-rate": "own-rate",
    "paper": PacedSender(law=PAPER, window="htcp"),
    "htcp": "htcp",
    "vegas": "vegas",
    "dctcp": "dctcp",
}
STREAMS = {"even": Stream(rate=1e6, spacing="constant"), "random": Stream(rate=1e6)}


@pytest.fixture(scope="module")
def result() -> Result:
    """A line of two links for each; acknowledgements of `cap` return over a link of their own."""
    links, flows = [Link(id="home", source="cap-2", target="cap-0", capacity=RATE, delay=0.01)], []
    for name in (*SENDERS, *STREAMS):
        ends = [f"{name}-{place}" for place in range(3)]
        for place, capacity in enumerate((RATE, 2.0 * RATE)):
            one = {"source": ends[place], "target": ends[place + 1], "delay": 0.005, "buffer": 5e4}
            links.append(Link(id=f"{name}-{'ab'[place]}", capacity=capacity, **one))
        path = (f"{name}-a", f"{name}-b")
        if name in STREAMS:
            flows.append(Flow(id=name, path=path, offers=STREAMS[name], count=2))
            continue
        back = ("home",) if name == "cap" else ()
        flows.append(Flow(id=name, path=path, ack_path=back, rtt=RTT, sender=SENDERS[name], ecn=name == "vegas"))
    settings = {"duration": 12.0, "warmup": 4.0, "interval": 0.1, "packet_size": SIZE}
    return netctrl.simulate(Scenario(name="senders", links=tuple(links), flows=tuple(flows), **settings), "ns3")


@pytest.mark.needs("ns3")
def test_rates_are_those_of_caps_and_laws(result):
    assert result["throughput", "cap"] == pytest.approx(2e6, rel=0.01)
    assert result["backlog", "cap-a"] < SIZE
    assert result["throughput", "home"] == pytest.approx(2e6 * 52.0 / SIZE, rel=0.3)  # acknowledgements
    queue = netctrl.pacing(mode="own-rate", rtt_s=RTT, bottleneck_bit_per_s=RATE).certificate.equilibrium.queue_s
    assert result["utilization", "own-rate-a"] > 0.97
    assert result["rtt", "own-rate"] < RTT + 8.0 * SIZE * 1.5 / RATE + 1.5 * queue
    # Round trips that don't change tell the paper's law nothing: it stays where it begins, at half of its bound.
    assert result["throughput", "paper"] == pytest.approx(RATE / 2.0, rel=0.05)
    assert result["loss", "paper-a"] == result["backlog", "paper-a"] == 0.0


@pytest.mark.needs("ns3")
def test_windows_fill_their_lines_as_their_laws_do(result):
    for name in ("htcp", "vegas", "dctcp"):
        assert result["utilization", f"{name}-a"] > 0.95
    assert SIZE < result["backlog", "vegas-a"] < 5.0 * SIZE
    assert result["loss", "vegas-a"] == 0.0 < result["loss", "htcp-a"]
    assert result["backlog", "htcp-a"] > 10.0 * SIZE
    assert result["loss", "dctcp-a"] > 0.0


@pytest.mark.needs("ns3")
def test_packets_without_acknowledgements_come_at_their_rate(result):
    """Two streams of 8.3 packets a sample each: evenly spaced, samples differ by one packet of each."""
    packets = {name: result.series["payload", name] / (SIZE - 40.0) for name in STREAMS}
    for name, each in packets.items():
        assert each[10:].mean() == pytest.approx(2.0 * 1e6 * 0.1 / (8.0 * SIZE), rel=0.02 if name == "even" else 0.15)
        np.testing.assert_array_equal(each, np.round(each))
    assert np.ptp(packets["even"][10:]) <= 2.0
    assert np.ptp(packets["random"][10:]) > 4.0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"sender": {"kind": "cap", "rate": "1Mbit", "window": "cubic"}}, "cap but on htcp"),
        ({"sender": PacedSender(law=OWN, window="cubic")}, "pacing over cubic"),
        ({"sender": {"kind": "own-rate", "l4s": True}}, "own-rate as a sender of L4S"),
        ({"sender": "hpcc"}, "hpcc over links"),
        ({"sender": "prague", "offers": "web"}, "prague but in bulk flows"),
        ({"offers": Bursts(rate=1e6)}, None),
        ({"sender": "prague", "offers": "web", "ecn": False}, None),
        ({"sender": "vegas"}, None),
    ],
)
def test_what_the_program_lacks_is_said(fields, says):
    flow = Flow(**({"id": "x", "rtt": RTT, "ecn": True} | fields))
    assert sender_lack(flow) == says


@pytest.mark.parametrize(("law", "window"), [(OWN, "htcp"), (PAPER, None)])
def test_a_law_runs_over_its_own_window_only(law, window):
    line = Link(id="line", source="a", target="b", capacity=RATE, buffer=5e4)
    flow = Flow(id="x", path=("line",), rtt=RTT, sender=PacedSender(law=law, window=window), count=2)
    with pytest.raises(InvalidValue, match="under this law"):
        netctrl.simulate(Scenario(name="x", links=(line,), flows=(flow,), duration=1.0), "ns3")
