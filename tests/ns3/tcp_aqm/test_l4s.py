"""DualPI2, TCP Prague and DCTCP in ns-3 beside the packet engine: one program with two links."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

RATE, SIZE, RTT = 2e7, 1500.0, 0.02
LATE = slice(500, None)


def flows(name, path, sender, count, rtt=RTT, **changed):
    return Flow(id=name, path=(path,), rtt=rtt, count=count, sender=sender, start=("0s", "0.5s"), **changed)


def scenario(*more):
    two = Link(id="two", source="a", target="b", capacity=RATE, buffer=1e6, queue=DualPi2Queue())
    one = Link(id="one", source="c", target="d", capacity=5e7, buffer=1e6, queue=ThresholdQueue(threshold=3e4))
    groups = (
        flows("low", "two", "prague", 3),
        flows("classic", "two", "reno", 3),
        flows("dctcp", "one", "dctcp", 2, rtt=0.005),
    )
    return Scenario(
        name="l4s", links=(two, one), flows=(*groups, *more), duration=20.0, warmup=5.0, interval=0.01, packet_size=SIZE
    )


@pytest.fixture(scope="module")
def both():
    return netctrl.simulate(scenario(), "ns3"), netctrl.simulate(scenario(), "packet")


@pytest.mark.needs("ns3")
def test_rates_probability_and_waits_are_the_packet_engine_s(both):
    """Three Prague and three Reno flows, 15 s. In ns-3 a packet waits in the device too."""
    packet = SIZE * 8.0 / RATE
    found = []
    for result, ahead in zip(both, (2.0, 1.0), strict=True):
        carried = result.series["payload"][:2, LATE].sum(axis=1)
        waits = [each[each > 0.0].mean() - RTT - ahead * packet for each in result.series["rtt"][:2, LATE]]
        found.append((carried[0] / carried[1], *waits, np.sqrt(result.series["probability"][0, LATE]).mean()))
    ns3, packets = found
    assert ns3[0] == pytest.approx(packets[0], rel=0.25)
    assert ns3[1] == pytest.approx(packets[1], abs=1e-4)
    assert ns3[2] == pytest.approx(packets[2], rel=0.1)
    assert ns3[3] == pytest.approx(packets[3], rel=0.1)
    assert ns3[1] < 1e-3 < 0.01 < ns3[2]


@pytest.mark.needs("ns3")
def test_packets_are_marked_as_the_law_says(both):
    """Marks are those of p'² and 2 p', and the step's, as many as on packets; each packet is somewhere."""
    shares = []
    for result in both:
        assert result.series["lost"][0, LATE].sum() == 0.0
        shares.append(result.series["marked"][0, LATE].sum() / result.series["departed"][0, LATE].sum())
    assert shares[0] == pytest.approx(shares[1], rel=0.1)
    result = both[0]
    carried = result.series["payload"][:2, LATE].sum(axis=1)
    base = np.sqrt(result.series["probability"][0, LATE])
    coupled = (carried[0] * 2.0 * base.mean() + carried[1] * (base**2).mean()) / carried.sum()
    assert coupled < shares[0] < 1.5 * coupled
    growth = np.diff(result.series["backlog"], axis=1, prepend=0.0)
    np.testing.assert_array_equal(result.series["arrived"], result.series["departed"] + result.series["lost"] + growth)


@pytest.mark.needs("ns3")
def test_dctcp_keeps_its_queue_at_the_threshold_as_on_packets(both):
    ns3, packets = (result.series["backlog"][1, LATE].mean() for result in both)
    assert ns3 == pytest.approx(packets, rel=0.15)


@pytest.mark.parametrize("sender", ["dctcp", "prague"])
def test_what_the_program_lacks_is_named(sender):
    web = flows("more", "two", sender, 1, offers="web")
    with pytest.raises(InvalidValue, match=f"ns3, which has no {sender} but in bulk flows"):
        netctrl.simulate(scenario(web), "ns3")


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("kind", ["codel", "pie"])
def test_own_rate_hears_as_many_marks_as_on_packets(kind):
    """Four flows at 10 Mbit/s, whose queue would be above both laws' targets; nothing is lost."""
    line = Link(id="line", source="a", target="b", capacity=1e7, buffer=1e6, queue={"kind": kind})
    group = Flow(id="own", path=("line",), rtt=0.05, count=4, sender="own-rate", start=("0s", "1s"))
    settings = {"duration": 40.0, "warmup": 15.0, "packet_size": SIZE}
    found = []
    for engine in ("ns3", "packet"):
        measures = dict(netctrl.simulate(Scenario(links=(line,), flows=(group,), **settings), engine).measures())
        found.append([measures[name, "line"] for name in ("utilization", "marks", "loss")] + [measures["rtt", "own"]])
    ns3, packets = found
    assert ns3[0] == pytest.approx(packets[0], abs=0.015)  # drains, which PIE's draws may spare a flow
    assert ns3[1] == pytest.approx(packets[1], rel=0.4)
    assert ns3[1] > 0.0 == ns3[2] == packets[2]
    assert ns3[3] == pytest.approx(packets[3], rel=0.05)
