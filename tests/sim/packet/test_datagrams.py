"""Groups of demands and of bursts on packets: arrays to the byte, Lindley's recursion, a network."""

from __future__ import annotations

from math import floor

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.laws.disciplines import WfqQueue
from netctrl.scenario.links import Link
from netctrl.scenario.network.traffic import GaussianTraffic, LongRangeTraffic, TraceTraffic, TriangularTraffic
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Bursts, Demand, Stream
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.packet.problem import PacketProblem, packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW

SIZE, RATE = 1000, 1e8
WIRE = 80_000  # of a packet [ns]


def scenario(*flows, duration=2.0, sample=0.1, packet_size=SIZE, seed=1, **link) -> Scenario:
    line = Link(**{"id": "link", "source": "a", "target": "b", "capacity": RATE} | link)
    return Scenario(
        name="datagrams", duration=duration, interval=sample, links=(line,), flows=flows, packet_size=packet_size,
        seed=seed,
    )  # fmt: skip


def demand(**given) -> Flow:
    own = {name: given.pop(name) for name in Flow.__struct_fields__ if name in given}
    offers = Demand(**{"interval": 0.1} | given)
    return Flow(**{"id": "demand", "path": ("link",), "ecn": False} | own, offers=offers)


# --- demands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_what_is_sent_is_what_the_rates_say(seed):
    """Of 40 intervals and two flows with rates of 0 to 5 Mbit/s, by the end of each the whole packets of all so far."""
    rates = 80.0 * np.random.default_rng(seed).integers(0, 62_500, (40, 2))
    rates[5:8, 0] = 0.0
    bytes_by_then = rates.cumsum(axis=0) * 0.1 / 8.0  # whole numbers
    for steps in (1, 7, 40):
        group = demand(rates=rates, count=2)
        flow = run_packets(packet_problem(scenario(group, duration=0.1 * steps)), 10.0).flow
        assert flow[:, FLOW["sent"]].tolist() == [floor(each / SIZE) for each in bytes_by_then[steps - 1]]


def test_packets_of_an_interval_are_evenly_spaced():
    """8 Mbit/s from 1 ms on are packets at 2, 3, 4, 5 ms; at 5.5 ms half a packet is there, whose rest takes 1 ms at
    4 Mbit/s, and 2 ms each then. Nothing goes from 10 ms to 14.5 ms, and a quarter is missing there."""
    group = demand(rates=[8e6, 4e6, 0.0], interval=4.5e-3, start=1e-3)
    came = simulate_packets(scenario(group, duration=0.02, sample=2.5e-4)).series["arrived"][0] / SIZE
    assert (np.flatnonzero(came) / 4.0).tolist() == [2, 3, 4, 5, 6.5, 8.5, 14.75, 15.75, 16.75, 17.75, 18.75]
    assert came.max() == 1.0


def test_rates_go_around_and_stop_when_the_flow_does():
    """1 Mbit/s and 3 Mbit/s in turn from 0.25 s to 1.5 s, 12.5 intervals: six rounds and half of the first one."""
    group = demand(rates=[1e6, 3e6], start=0.25, stop=1.5)
    state = run_packets(packet_problem(scenario(group)), 10.0)
    assert state.flow[0, FLOW["sent"]] == floor((6 * 4e6 + 0.5e6) * 0.1 / 8e3)


SPREADS = {
    "gaussian": GaussianTraffic(),
    "triangular": TriangularTraffic(),
    "long-range": LongRangeTraffic(hurst=0.75, scale=0.9),
}


@pytest.mark.parametrize("kind", [*SPREADS, "trace"])
def test_a_demand_draws_what_a_run_of_a_network_of_one_demand_does(kind, tmp_path):
    trace = tmp_path / "trace.csv"
    rates = np.random.default_rng(3).uniform(1e6, 9e6, 60).round()
    trace.write_text("time_s,all\n" + "".join(f"{k / 20},{rate}\n" for k, rate in enumerate(rates)))
    spread = SPREADS.get(kind) or TraceTraffic(file=str(trace))
    whole = scenario(demand(interval=0.05, mean=8e6, std=2e6, spread=spread), duration=5.0, sample=0.05, seed=4)
    drawn = DemandSource(whole, range(1)).draw(100)[:, :, 0]
    np.testing.assert_array_equal(packet_problem(whole).state.rates, drawn.ravel())


def test_flows_of_a_group_draw_their_own_rates():
    """Each the mean and the deviation that were asked for, and no two the same; another seed draws others."""
    group = demand(mean=4e6, std=1e6, interval=0.01, count=3)

    def rates(seed: int) -> np.ndarray:
        return packet_problem(
            scenario(group, demand(id="other", mean=4e6, std=1e6, interval=0.01), duration=20.0, seed=seed)
        ).state.rates.reshape(4, 2000)

    drawn = rates(1)
    np.testing.assert_allclose(drawn.mean(axis=1), 4e6, rtol=0.02)
    np.testing.assert_allclose(drawn.std(axis=1), 1e6, rtol=0.06)
    assert abs(np.corrcoef([*drawn, *rates(2)]) - np.eye(8)).max() < 0.1


def test_what_the_engine_cannot_hold_is_refused():
    with pytest.raises(InvalidValue, match=r"flows.demand.offers.interval.*at most 500 s"):
        packet_problem(scenario(demand(mean=1e6, interval=600.0), duration=1000.0, sample=1.0))
    with pytest.raises(InvalidValue, match=r"flows.demand.offers.interval.*to the duration \(2 s\)"):
        scenario(demand(mean=1e6, interval=2.5))
    with pytest.raises(InvalidValue, match=r"flows.demand.offers.interval.*0.0002 s to"):
        scenario(demand(mean=1e6, interval=1e-4, count=1000))


# --- bursts, by a plain recursion -------------------------------------------------------------------------------------


def starts(ready: PacketProblem) -> list[int]:
    """When each flow begins [ns]."""
    return [int(time) for _, time in sorted(zip(ready.state.agenda[:, 2], ready.state.agenda[:, 0], strict=True))]


def bursts(start: int, burst: int, within: int, pause: int, end: int) -> list[int]:
    """Times of packets [ns]."""
    times, time = [], start
    while time < end:
        times += [time + k * within for k in range(burst)]
        time = times[-1] + pause
    return [time for time in times if time < end]


@pytest.mark.parametrize(
    ("rate", "burst", "access"), [(2.2e7, 10, 1e8), (2e7, 3, 4e7), (1.6e7, 1, 1e8), (2e7, 25, 2e8)]
)
def test_bursts_wait_as_lindley_says(rate, burst, access):
    """Four regulated flows without chance into one FIFO: D_n = max(A_n, D_(n-1)) + S, packet by packet."""
    offers = Bursts(rate=rate, burst=burst, access_rate=access, pause_variation=0.0)
    flows = [Flow(id=f"r{i}", path=("link",), offers=offers) for i in range(4)]
    ready = packet_problem(scenario(*flows, sample=1e-3))
    within, pause = round(8e12 / access), round(burst * 8e12 / rate - (burst - 1) * 8e12 / access)
    came = sorted(
        (time, i)
        for i, start in enumerate(starts(ready))
        for time in bursts(start, burst, within, pause, 2_000_000_000)
    )
    busy, before = 0, [-1] * 4
    ways, changes = np.zeros((4, 2000)), np.zeros((4, 2000))
    for time, i in came:
        busy = max(time, busy) + WIRE
        if busy < 2_000_000_000:
            place = i, busy // 1_000_000
            ways[place] += busy - time
            changes[place] += abs(busy - time - before[i]) if before[i] >= 0 else 0
            before[i] = busy - time
    found = run_packets(ready, 10.0)
    np.testing.assert_array_equal(np.diff(found.trips[0], prepend=0.0), ways)
    np.testing.assert_array_equal(np.diff(found.trips[2], prepend=0.0), changes)
    assert ways.sum() > 1.1 * WIRE * len(came) or burst == 1


def test_a_regulator_lets_its_rate_through():
    """Whatever the pauses: 100 bursts within 3 deviations; without chance to the burst."""
    for variation in (0.0, 0.5, 1.0):
        group = Flow(id="r", path=("link",), count=50, offers=Bursts(rate=1e6, pause_variation=variation))
        sent = run_packets(packet_problem(scenario(group, duration=8.0)), 10.0).flow[:, FLOW["sent"]]
        assert abs(sent.mean() - 1000.0) <= max(10.0, 3.0 * variation * 100.0 / np.sqrt(50))
        assert np.ptp(sent) <= 10 if variation == 0.0 else sent.std() == pytest.approx(100.0 * variation, rel=0.35)


def test_a_regulator_faster_than_its_access_line_is_refused():
    with pytest.raises(InvalidValue, match=r"access_rate: got '10 Mbit/s', takes at least rate, 20 Mbit/s"):
        Flow(id="r", path=("link",), offers=Bursts(rate=2e7, access_rate=1e7))


# --- fair queueing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weight", "others"), [(1.0, (1.0,) * 7), (0.25, (1.0, 3.0)), (4.0, (0.5, 0.5, 2.0))])
def test_a_flow_within_its_share_waits_no_longer_than_the_bound(weight, others):
    """L/r and a packet of each of the N − 1 others: the latency of self-clocked fair queueing, which is nearly reached.

    Source: Stiliadis, Varma, IEEE/ACM Transactions on Networking 6(5), 1998, Table I.
    """
    share = weight / (weight + sum(others))
    modest = Flow(
        id="modest",
        path=("link",),
        weight=weight,
        offers=Bursts(rate=0.97 * share * RATE, burst=1, pause_variation=0.0),
    )
    floods = [
        Flow(id=f"u{i}", path=("link",), count=1, weight=w, offers=Stream(rate=2 * RATE)) for i, w in enumerate(others)
    ]
    found = simulate_packets(scenario(modest, *floods, sample=2e-5, queue=WfqQueue(), buffer=1e5))
    worst = np.nanmax(found.series["one_way"][0]) * 1e9 / WIRE
    bound = 1.0 / share + len(others)
    assert 0.5 * bound < worst <= bound * (1.0 + 1e-9)


# --- results ----------------------------------------------------------------------------------------------------------


def test_one_way_delay_and_jitter_of_datagrams_in_the_result(tmp_path):
    """Alone on a link a datagram takes its transmission and the delay, each the same; TCP has round trips instead."""
    udp = Flow(id="udp", path=("link",), count=2, stop=1.0, offers=Stream(rate=1e6, spacing="constant"))
    found = simulate_packets(scenario(udp, delay=3e-3))
    alone = found.of("udp")
    assert alone["delay"] == pytest.approx(3.08e-3, abs=8e-5)
    assert alone["jitter"] == pytest.approx(0.0, abs=1e-12)
    assert "rtt" not in alone
    assert found.measures()["delay", "udp"] == alone["delay"]
    assert np.isnan(found.series["one_way"][0, 11:]).all()
    bulk = Flow(id="bulk", path=("link",), rtt=0.02, count=1)
    both = simulate_packets(scenario(bulk, udp, delay=3e-3))
    assert ["delay" in both.of(name) for name in both.flows] == [False, True]
    assert both["jitter", "udp"] > 1e-6
    assert "one_way" not in simulate_packets(scenario(bulk)).series
    both.save(tmp_path / "result.npz")
    again = read_result(tmp_path / "result.npz")
    assert again.summary() == both.summary()
    assert "delay" in dict(both.table()[1])["udp"]
