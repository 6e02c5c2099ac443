"""The packet engine against queueing theory and a second, plain computation of the same packets."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW, LINK, META

PACKET = 1000.0
SERVICE = 8.0 * PACKET / 1e7


def poisson(load, *, count=1, buffer=None, duration=400.0, seed=1, queue=None, **changed) -> Scenario:
    """Datagrams at a share of a link of 10 Mbit/s."""
    link = Link(
        id="link", source="a", target="b", capacity=1e7, delay=1e-3, buffer=buffer, queue=queue or DropTailQueue()
    )
    flows = Flow(
        id="udp", path=("link",), count=count, ecn=False, offers=Stream(rate=load * 1e7 / count, spacing="poisson")
    )
    return Scenario(
        name="udp", duration=duration, links=(link,), flows=(flows,), packet_size=PACKET, seed=seed, **changed
    )


def waited(scenario: Scenario) -> tuple[float, float]:
    """Mean wait [service times], and share that was dropped."""
    state = run_packets(packet_problem(scenario), 10.0)
    row = state.link[0]
    return row[LINK["waited_ns"]] / row[LINK["started"]] / 1e9 / SERVICE, row[LINK["lost"]] / row[LINK["arrived"]]


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
def test_poisson_datagrams_wait_as_in_m_d_1(load):
    """Pollaczek and Khinchine: the mean wait is load/(2 (1 - load)) service times."""
    found = np.array([waited(poisson(load, seed=seed))[0] for seed in range(1, 6)])
    mean, half = found.mean(), 2.776 * found.std(ddof=1) / np.sqrt(5)
    assert mean == pytest.approx(load / (2.0 * (1.0 - load)), abs=max(2.0 * half, 0.01 * mean))
    assert half < 0.1 * mean


def m_d_1_k(load: float, room: int) -> float:
    """Share that is dropped where `room` packets may be there, the one being sent among them.

    By the chain at departures: P(j arrivals in a service) = load^j e^-load/j!; Takagi 1993, volume 2, section 5.1.
    """
    a = [exp(-load)]
    for j in range(1, room + 1):
        a.append(a[-1] * load / j)
    pi = [1.0]
    for k in range(room - 1):  # balance of state k at departures gives state k + 1
        inflow = pi[0] * a[k] + sum(pi[i] * a[k - i + 1] for i in range(1, k + 1))
        pi.append((pi[k] - inflow) / a[0])
    p0 = pi[0] / sum(pi)
    return 1.0 - 1.0 / (p0 + load)


@pytest.mark.parametrize(("load", "room"), [(0.9, 5), (1.2, 8), (2.0, 3)])
def test_a_short_buffer_drops_as_m_d_1_k(load, room):
    found = [waited(poisson(load, buffer=(room - 1) * PACKET, seed=seed))[1] for seed in range(1, 6)]
    assert np.mean(found) == pytest.approx(m_d_1_k(load, room), rel=0.02)


def test_a_chain_of_links_delays_each_packet_as_lindley_says():
    """Evenly spaced datagrams of several flows, through links of three rates, by a plain second computation."""
    rates, delays = (8e6, 4e6, 6e6), (1e-3, 2e-3, 5e-4)
    links = tuple(
        Link(id=f"l{i}", source=f"n{i}", target=f"n{i + 1}", capacity=rate, delay=delay)
        for i, (rate, delay) in enumerate(zip(rates, delays, strict=True))
    )
    flows = Flow(
        id="udp",
        path=("l0", "l1", "l2"),
        count=3,
        start=(0.0, 0.01),
        stop=2.0,
        offers=Stream(rate=1.7e6, spacing="constant"),
    )
    scenario = Scenario(name="chain", duration=20.0, links=links, flows=(flows,), packet_size=PACKET)
    ready = packet_problem(scenario)
    came = []
    for start, flow in zip(ready.state.agenda[:, 0], ready.state.agenda[:, 2], strict=True):
        gap, stop = ready.state.flow[flow, FLOW["gap"]], ready.state.flow[flow, FLOW["stop"]]
        came += list(range(start, stop, gap))
    came = sorted(came)
    state = run_packets(ready, 10.0)
    for row, rate, delay in zip(state.link, rates, delays, strict=True):
        wire, free, total, left = round(8e9 * PACKET / rate), 0, 0, []
        for time in came:
            begins = max(time, free)
            total += begins - time
            free = begins + wire
            left.append(free + round(delay * 1e9))
        assert row[LINK["waited_ns"]] == total
        assert row[LINK["sent"]] == len(came)
        came = left
    assert state.meta[META["live"]] == 0
    assert state.group[0] == len(came) * (PACKET - 40.0)


@pytest.mark.parametrize("served", [False, True])
def test_a_link_serves_alike_by_times_and_by_events(served):
    """CoDel that never acts serves by events; drop-tail knows its times. Both with rates that change on the way."""
    queue = CodelQueue(target=1e3, interval=1e3) if served else DropTailQueue()
    changes = tuple(Change(at=float(k), link="link", capacity=1e7 if k % 2 else 3e6) for k in range(1, 10))
    found = simulate_packets(poisson(0.5, queue=queue, buffer=40 * PACKET, duration=10.0, changes=changes))
    other = simulate_packets(poisson(0.5, buffer=40 * PACKET, duration=10.0, changes=changes))
    if served:
        assert found.series["lost"].sum() == pytest.approx(other.series["lost"].sum(), rel=0.02)
        assert found.series["departed"].sum() == pytest.approx(other.series["departed"].sum(), rel=1e-3)
    conserved = found.series["departed"] + found.series["lost"] + np.diff(found.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_array_equal(found.series["arrived"], conserved)
    assert found.series["lost"].sum() > 0.0


def test_a_slower_link_keeps_what_is_on_the_wire_and_delays_the_rest():
    """Two datagrams at once at 8 Mbit/s, 1 ms each; at 0.5 ms the link gets four times slower."""
    link = Link(id="link", source="a", target="b", capacity=8e6, delay=0.0)
    flows = Flow(id="udp", path=("link",), count=1, stop=1.5e-4, offers=Stream(rate=8e7, spacing="constant"))
    scenario = Scenario(
        name="two", duration=0.02, interval=1e-3, links=(link,), flows=(flows,), packet_size=PACKET,
        changes=(Change(at=5e-4, link="link", capacity=2e6),),
    )  # fmt: skip
    found = simulate_packets(scenario)
    # The first is there after 1 ms; the second takes 4 ms from then on.
    arrived = found.series["payload"][0] / (PACKET - 40.0)
    np.testing.assert_array_equal(np.flatnonzero(arrived), [1, 5])
