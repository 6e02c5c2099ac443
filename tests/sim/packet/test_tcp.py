"""TCP of the packet engine: against a plain second computation, closed forms and laws of conservation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tcp_packets import run as plain

import netctrl
from netctrl.core.register import TCP_SENDERS
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.tcp.sender import SLOW_STARTS
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW, LINK, META

SIZE = 1500
OWN = netctrl.pacing(mode="own-rate").law
SENDERS = ["reno", "cubic", "htcp", "dctcp", "vegas", "bbr", CapSender(rate=1e6), PacedSender(law=OWN)]
SENDERS += [PacedSender(law=OWN, window="htcp")]


def line(**changed) -> Link:
    settings = {"id": "line", "source": "a", "target": "b", "capacity": 1e7, "delay": 0.01, "buffer": 6e4} | changed
    return Link(**settings)


def bulk(**changed) -> Flow:
    settings = {"id": "bulk", "path": ("line",), "rtt": 0.05, "count": 1} | changed
    return Flow(**settings)


def scenario(links, *flows, duration=60.0, **changed) -> Scenario:
    links = links if isinstance(links, tuple) else (links,)
    return Scenario(
        name="tcp", duration=duration, warmup=duration / 4, links=links, flows=flows, packet_size=SIZE, **changed
    )


@given(
    rate=st.integers(1_000_000, 10_000_000),
    packets=st.integers(2, 60),
    trips=st.lists(st.integers(2_000_000, 80_000_000), min_size=1, max_size=3),
    law=st.sampled_from(["reno", "htcp", "cubic", "vegas", "dctcp"]),
    start=st.sampled_from([None, *SLOW_STARTS]),
)
@settings(max_examples=40, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
def test_each_segment_is_sent_when_a_plain_computation_sends_it(rate, packets, trips, law, start):
    """Rings, counters and lists against sets and sums: segments sent, sent again, cuts, timeouts, and drops, to one."""
    delay, end = 1_000_000, 3_000_000_000
    link = line(capacity=float(rate), delay=delay / 1e9, buffer=float(packets * SIZE))
    own = TCP_SENDERS[law].slow_start
    start = None if own is None else start
    fields = {"sender": law, "slow_start": start}
    groups = [bulk(id=f"f{f}", rtt=(trip + 2 * delay) / 1e9, start=f * 1e-3, **fields) for f, trip in enumerate(trips)]
    ready = packet_problem(scenario(link, *groups, duration=end / 1e9, interval=0.1))
    ready.state.agenda[:, 2] = np.arange(len(trips))
    ready.state.agenda[:, 0] = 1_000_000 * np.arange(len(trips))  # at the link, not at the host
    state = run_packets(ready, 10.0)
    lines = [int(row[FLOW["line_delay"]]) for row in state.flow]
    by = start or own or "standard"
    flows, other = plain(TCP_SENDERS[law], lines, rate, delay, packets * SIZE, SIZE, 10.0, end, by)
    for row, flow in zip(state.flow, flows, strict=True):
        for name, value in (("sent", flow.sent), ("again", flow.again), ("cuts", flow.cuts)):
            assert row[FLOW[name]] == value, name
        assert row[FLOW["timeouts"]] == flow.timeouts
        assert (row[FLOW["una"]], row[FLOW["next"]], row[FLOW["pipe"]]) == (flow.una, flow.next, flow.pipe())
    assert state.meta[META["dropped"]] == other.dropped
    assert state.link[0, LINK["sent"]] == other.hops


@pytest.mark.parametrize("queue", [DropTailQueue(), PieQueue(), CodelQueue(), RedQueue(), PiQueue(), ThresholdQueue()])
@pytest.mark.parametrize("ecn", [True, False])
@pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: getattr(sender, "kind", sender))
def test_nothing_is_lost_from_the_books(queue, ecn, sender):
    """On each link arrivals are departures, losses and growth of the backlog; packets are in one place each."""
    web = Flow(id="web", path=("line",), rtt=(0.03, 0.1), count=10, sender=sender, ecn=ecn, offers=Web(think_time=1.0))
    back = line(id="back", source="b", target="a", buffer=3e3, capacity=2e5)
    flows = bulk(count=5, rtt=(0.05, 0.1), start=(0.0, 1.0), stop=9.0, sender=sender, ecn=ecn, ack_path=("back",))
    changes = (Change(at=5.0, link="line", capacity=4e6), Change(at=7.0, link="line", delay=0.02))
    whole = scenario((line(queue=queue), back), flows, web, duration=15.0, changes=changes)
    found = simulate_packets(whole)
    grown = np.diff(found.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_array_equal(found.series["arrived"], found.series["departed"] + found.series["lost"] + grown)
    assert (found.series["backlog"][0] <= 6e4).all()
    state = run_packets(packet_problem(whole), float(whole.initial_window))
    meta = {name: int(state.meta[place]) for name, place in META.items()}
    assert meta["live"] + meta["left"] == len(state.packet)
    bulk_rows = state.flow[state.flow[:, FLOW["group"]] == 0]
    assert (bulk_rows[:, FLOW["expected"]] >= bulk_rows[:, FLOW["una"]]).all()
    assert (bulk_rows[:, FLOW["received"]] == bulk_rows[:, FLOW["expected"]] * (SIZE - 40)).all()
    assert found.series["payload"][0].sum() == bulk_rows[:, FLOW["received"]].sum()
    assert len(found.transfers["duration"]) > 20
    # No object is there before a handshake and a half, and the time of its bytes on the wire.
    assert (found.transfers["duration"] >= 1.5 * 0.03 + found.transfers["size"] * 8.0 / 1e7 - 1e-9).all()


def test_a_single_flow_has_renos_sawtooth():
    """With a buffer of B and a pipe of P packets, W swings from (P + B)/2 to P + B: the mean backlog by its area."""
    pipe = 1e7 * (0.05 + 8.0 * SIZE / 1e7) / 8.0 / SIZE
    link = line(buffer=60 * SIZE)
    found = simulate_packets(scenario(link, bulk(), duration=400.0))
    high = pipe + 60.0
    # W grows by one in each round trip of W/C: time at W is W long; the backlog is W - P.
    w = np.linspace(high / 2, high, 10_001)
    mean = np.average(np.maximum(w - pipe, 0.0), weights=np.maximum(w, pipe))
    assert found["backlog", found.links[0]] / SIZE == pytest.approx(mean, rel=0.05)


def test_marks_cut_a_window_once_a_round_trip_as_1_over_sqrt_p():
    """W = √(3/(2p)) of Mathis et al. 1997, with marks instead of losses; the mean of many flows."""
    found = simulate_packets(
        scenario(line(capacity=1e8, buffer=None, queue=PieQueue()), bulk(count=20, rtt=(0.08, 0.12)), duration=120.0)
    )
    link = found.of("line")
    rtt = 0.1 + link["backlog"] * 8.0 / 1e8
    window = link["throughput"] / 20.0 * rtt / 8.0 / SIZE
    assert link["loss"] == 0.0
    assert window == pytest.approx(np.sqrt(1.5 / link["marks"]), rel=0.15)


def test_one_seed_gives_one_run_and_another_another():
    whole = scenario(line(queue=PieQueue()), bulk(count=5, rtt=(0.05, 0.1)), duration=10.0)
    first, second = simulate_packets(whole), simulate_packets(whole)
    other = simulate_packets(whole.replace(seed=2))
    np.testing.assert_array_equal(first.series["backlog"], second.series["backlog"])
    assert (first.series["backlog"] != other.series["backlog"]).any()


def test_a_long_run_has_times_beyond_what_an_event_can_hold():
    """Events hold 1099 s: 3000 s are run as well as 30."""
    slow = scenario(line(capacity=1e6), bulk(), duration=3000.0, interval=10.0)
    assert simulate_packets(slow)["utilization", "line"] == pytest.approx(1.0, abs=0.01)
