"""Rate senders of the packet engine: exact rates, BBR and the own-rate law in closed form, one event a wait."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.laws.pacing.own_rate_state import OwnRateState
from netctrl.laws.rate.bbr import BbrSender
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.record import row_names
from netctrl.laws.tcp.bbr import BbrState
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets
from netctrl.sim.packet.state import FLOW, LINK, META, PacketState

SIZE = 1500
PACKET = 8.0 * SIZE
RATE, RTT = 1e8, 0.02
OWN = netctrl.pacing(mode="own-rate").law


def runs(*senders, rate=RATE, rtt=RTT, buffer=4.0, duration=40.0, sample=0.1, apart=0.0, seed=1) -> PacketState:
    """Flows through one link; its buffer is in bandwidth-delay products."""
    link = Link(id="link", source="a", target="b", capacity=rate, buffer=buffer * rate * rtt / 8.0)
    flows = tuple(
        Flow(id=f"f{k}", path=("link",), rtt=rtt, count=1, start=k * apart, sender=sender)
        for k, sender in enumerate(senders)
    )
    scenario = Scenario(
        name="rates", duration=duration, links=(link,), flows=flows, packet_size=SIZE, interval=sample, seed=seed
    )
    return run_packets(packet_problem(scenario), 10.0)


def departed(state: PacketState, sample: float) -> np.ndarray:
    """Of the link, by samples [bit/s]."""
    return 8.0 * np.diff(state.series[2, 0], prepend=0.0) / sample


@pytest.mark.parametrize("window", [None, "htcp"])
def test_a_fixed_rate_is_exact_and_nothing_waits(window):
    """7 Gbit/s is a packet every 1714.29 ns: whole nanoseconds would be 97 packets a second off."""
    rate = 7e9
    state = runs(CapSender(rate=rate, window=window), rate=1e10, rtt=1e-3, duration=1.5)
    second = state.carried[0, -1] - state.carried[0, -11]
    assert second / (SIZE - 40) == pytest.approx(rate / PACKET, abs=1.0)
    assert state.link[0, LINK["waited_ns"]] == 0
    # A window that the rate keeps empty doesn't grow: 2.0 of what is in flight in slow start.
    assert state.window[0, 0] <= (3.0 if window is None else 2.0) * (rate * 1.01e-3 / PACKET + 1.0)


def test_a_cap_above_the_link_changes_nothing_but_the_bursts():
    capped, bare = runs(CapSender(rate=4e8, window="cubic")), runs("cubic")
    for state in (capped, bare):
        assert departed(state, 0.1)[100:].mean() == pytest.approx(RATE, rel=0.01)
        assert state.flow[0, FLOW["cuts"]] > 1
    assert capped.series[0, 0, 100:].mean() == pytest.approx(bare.series[0, 0, 100:].mean(), rel=0.1)


@pytest.mark.parametrize(
    "sender", [CapSender(rate=4e7), CapSender(rate=4e7, window="reno"), "bbr", PacedSender(law=OWN)], ids=str
)
def test_a_packet_costs_three_events_at_most(sender):
    """It leaves the link, its acknowledgement comes, its sender is woken; a timer ends each two round trips."""
    duration = 40.0
    state = runs(sender, duration=duration)
    assert state.meta[META["events"]] < 3.0 * state.flow[0, FLOW["sent"]] + duration / (2.0 * RTT) + 200


def test_bbr_alone_keeps_linux_s_queue_and_probes_the_rtt_each_ten_seconds():
    """In Linux (kernel lab, the same link) .981 is used, 30.7 kB wait and probes are 10.25 s apart: what leaves at once
    three times stands in the queue, a quarter of a BDP comes and goes in each cycle."""
    sample = 0.02
    state = runs("bbr", duration=60.0, sample=sample)
    out = departed(state, sample)
    assert out[100:].mean() == pytest.approx(0.981 * RATE, rel=0.005)
    assert state.series[0, 0, 100:].mean() == pytest.approx(30.7e3, rel=0.1)
    low = np.flatnonzero(out < 0.5 * RATE)
    starts = low[np.diff(low, prepend=0) > 100] * sample
    assert np.diff(starts) == pytest.approx(10.25, abs=0.1)
    law = dict(zip(row_names(BbrState), state.rate[0], strict=False))
    assert law["min_rtt"] == pytest.approx(RTT + PACKET / RATE, abs=1e-8)
    assert 8.0 * law["bandwidth"] == pytest.approx(RATE, rel=0.01)


def test_two_bbr_flows_keep_linux_s_queue():
    """In Linux (kernel lab) 322 kB wait, a BDP and what stands of pieces, and .997 is used: a flow that probes leaves
    the other its queue."""
    state = runs("bbr", "bbr", apart=1.0, duration=60.0, sample=0.02)
    assert departed(state, 0.02)[250:].mean() == pytest.approx(0.997 * RATE, rel=0.005)
    assert state.series[0, 0, 250:].mean() == pytest.approx(322e3, rel=0.1)


def test_where_a_cycle_begins_is_drawn_by_the_seed_and_never_in_its_drain():
    places = {int(packet_settings(seed)) for seed in range(60)}
    assert places == {0, 2, 3, 4, 5, 6, 7}


def packet_settings(seed: int) -> float:
    link = Link(id="link", source="a", target="b", capacity=1e6)
    flows = Flow(id="f", path=("link",), rtt=0.02, count=1, sender=BbrSender())
    scenario = Scenario(name="one", duration=1.0, links=(link,), flows=(flows,), seed=seed)
    return packet_problem(scenario).state.settings[0, 0]


def test_the_own_rate_law_uses_the_link_with_its_rtt_at_the_target():
    """Where nothing disturbs it its queue swings, between 0.2 and 6 ms; with a packet's time of jitter it stands at the
    target (test_own_rate.py)."""
    state = runs(OWN, sample=1e-3)
    late = slice(10_000, None)
    assert departed(state, 1e-3)[late].mean() >= 0.985 * RATE
    law = dict(zip(row_names(OwnRateState), state.rate[0], strict=False))
    assert law["min_rtt"] == pytest.approx(RTT + PACKET / RATE, abs=1e-8)
    waits = 8.0 * np.median(state.series[0, 0, late]) / RATE
    assert 0.9 < waits / (law["target_rtt"] - law["min_rtt"]) < 2.0
    assert state.link[0, LINK["lost"]] == 0


def test_the_paper_s_law_caps_a_window():
    """Started at R/2 it stays near it, where nothing disturbs RTTs (docs/explanation/pacing.md)."""
    law = netctrl.pacing(max_rate_bit_per_s=RATE).law
    state = runs(PacedSender(law=law, window="htcp"))
    assert departed(state, 0.1)[100:].mean() == pytest.approx(0.55 * RATE, rel=0.15)
    assert state.link[0, LINK["waited_ns"]] == 0
    assert state.flow[0, FLOW["cuts"]] == 0
