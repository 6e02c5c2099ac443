"""The packet simulator of data centres: closed forms, other ways, published numbers, conservation."""

from __future__ import annotations

from functools import cache
from math import sqrt

import msgspec
import numpy as np
import pytest
from fabric_support import counted, data_centre, empty_again, finish_ns, nanoseconds, poisson
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Scheme, Timely
from netctrl.scenario.fabric.flows import with_sender
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Incast
from netctrl.scenario.transfers import queue_quantile, queue_shares, received_rates, residual, slow_down
from netctrl.sim.packet import fabric as problem
from netctrl.sim.packet import problem as packets
from netctrl.sim.packet.fabric_traffic import draw_fabric_flows
from netctrl.sim.packet.run import simulate_packets

NS3 = Packets(clock="ns-3")


def flows_to_one(count: int, size: float, starts: tuple[float, ...] = ()) -> tuple[Flow, ...]:
    when = starts or (0.0,) * count
    return tuple(Flow(id=f"flow{i}", source=i, target=count, offers=size, start=when[i]) for i in range(count))


def arrays(result: Result) -> dict[str, np.ndarray]:
    """All but how often something happened."""
    tables = [(f"{name} {title}", each) for name, table in result.tables.items() for title, each in table.items()]
    totals = {name: each for name, (_, each) in (*result.totals.values.items(), *result.series.values.items())}
    return totals | {name: each for name, each in tables if not name.startswith("counts")}


def same(first: Result, second: Result) -> bool:
    ours, theirs = arrays(first), arrays(second)
    return ours.keys() == theirs.keys() and all(
        np.array_equal(each, theirs[name], equal_nan=True) for name, each in ours.items()
    )


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 999, 1000, 1001, 123_456])
@pytest.mark.parametrize(
    "topology", [Dumbbell(senders=1), Dumbbell(senders=1, host_rate=1e10, link_rate=1e9), FatTree(hosts_per_rack=1)]
)
def test_a_flow_alone_takes_its_ideal_time_to_the_nanosecond(topology, size) -> None:
    flow = Flow(id="flow", source=0, target=topology.hosts - 1, offers=size)
    scenario = data_centre(topology, FixedWindow(), flow, duration=5e-3)
    result = simulate_packets(scenario)
    assert finish_ns(result)[0] == nanoseconds(result, "transfers", "ideal")[0]
    assert slow_down(result.transfers)[0] == 1.0


def test_one_packets_latency_is_the_sum_of_its_links() -> None:
    flow = Flow(id="flow", source=0, target=15, offers=1000)
    result = simulate_packets(data_centre(FatTree(), Hpcc(), flow, duration=1e-3, watch=Watch(flows=(0,))))
    # Two links of 100 and four of 400 Gbit/s, 1 us each: 1100 B there, 98 B back.
    there = 2 * (88 + 1000) + 4 * (22 + 1000)
    assert finish_ns(result)[0] == there
    assert nanoseconds(result, "acknowledgements", "time")[0] == there + 2 * (8 + 1000) + 4 * (2 + 1000)


@pytest.mark.slow
def test_a_queue_of_single_packets_is_lindleys_recursion_and_that_of_m_d_1() -> None:
    """Poisson packets through one link of 1 Gbit/s at 70 %: finish times by Lindley, mean queue ρ²/(2 (1 − ρ))."""
    rng, count, service, load = np.random.default_rng(5), 100_000, 8800, 0.7
    starts = np.cumsum(rng.exponential(service / load, count)).astype(np.int64) + 1
    flows = tuple(
        Flow(id=f"flow{i}", source=i % 64, target=64, offers=1000, start=t * 1e-9)
        for i, t in enumerate(starts.tolist())
    )
    topology = Dumbbell(senders=64, host_rate=1e12, link_rate=1e9)
    duration = float(starts[-1]) * 1e-9
    result = simulate_packets(data_centre(topology, FixedWindow(), *flows, duration=duration, interval=1e-5))
    arrived, left, out = starts + 9 + 1000, 0, np.empty(count, dtype=np.int64)
    order = np.argsort(arrived, kind="stable")
    for i in order.tolist():
        left = max(left, int(arrived[i])) + service
        out[i] = left + 1000 + 9 + 1000
    ended = finish_ns(result)
    assert np.array_equal(np.sort(ended[ended >= 0]), np.sort(out[out < round(duration * 1e9)]))
    # The mean of so many packets has a standard error of some 2 %.
    mean = result["backlog", "s0>s1"] / 1100
    assert mean == pytest.approx(load**2 / (2.0 * (1.0 - load)), rel=0.05)


# --- the thesis's numbers, by the theory note -------------------------------------------------------------------------


def test_open_loop_slopes_are_3_0003_and_1_0001_gbit_per_s() -> None:
    scenario = data_centre(
        Dumbbell(),
        FixedWindow(),
        *flows_to_one(4, 1e6),
        duration=36e-3,
        packets=NS3,
        interval=8.799e-6,
        watch=Watch(ports=("s0>s1",)),
    )
    queue = simulate_packets(scenario).series["backlog"][0]
    slope = np.diff(queue) * 8 / 8799
    assert slope[4:799] == pytest.approx(3.0003, abs=1e-4)
    assert slope[1199:2999] == pytest.approx(-1.0001, abs=1e-4)


def test_delays_of_fig_3_5_are_1_018_and_6_038_ms() -> None:
    scenario = data_centre(
        Dumbbell(delay=1e-3),
        FixedWindow(),
        *flows_to_one(4, 1e7),
        duration=8e-3,
        packets=NS3,
        watch=Watch(flows=(0, 1, 2, 3)),
    )
    log = simulate_packets(scenario).to_pandas("acknowledgements")
    first = log[log.queue > 0].iloc[0]
    assert first.left * 1e3 == pytest.approx(1.018, abs=5e-4)
    assert first.time * 1e3 == pytest.approx(6.038, abs=5e-4)


def test_a_window_of_3750_bytes_holds_the_queue_at_13200() -> None:
    scenario = data_centre(
        Dumbbell(),
        FixedWindow(window=3750),
        *flows_to_one(4, 1e7),
        duration=5e-3,
        packets=NS3,
        watch=Watch(ports=("s0>s1",)),
    )
    queue = simulate_packets(scenario).series["backlog"][0, 299:]
    # A packet comes 450 ns before the wire is free for the next one.
    assert set(queue.tolist()) == {13_200, 14_300}
    assert (queue == 13_200).mean() == pytest.approx(1.0 - 450 / 8799, abs=0.01)


@pytest.mark.parametrize("weight", [1.0, 10.0, 100.0])
@pytest.mark.parametrize(("bdp", "empty_ns"), [(3750, 175_530), (3000, 140_334)])
def test_fig_5_2_the_queue_is_empty_at_the_thesis_nanosecond(weight, bdp, empty_ns) -> None:
    """W0 = 3750: 175,530 ns for every ratio of weights; a start of three packets: 140,334 ns."""
    base = netctrl.read("mpcc-dumbbell")
    sender = msgspec.structs.replace(base.flows[0].sender, bdp=bdp, window_weight=weight)
    result = simulate_packets(with_sender(base, sender))
    assert empty_again(result) == empty_ns
    if bdp == 3750:
        shares = received_rates(result.tables["received"])[:, 1:] / 1e9  # bins of 2 ms: 56 or 57 packets
        assert set(np.round(shares.ravel(), 4)) <= {0.2464, 0.2508}
        assert shares.mean() == pytest.approx(0.25, abs=5e-4)


def test_staggered_flows_finish_at_79_67_60_and_40_ms() -> None:
    sizes, starts = (4.9e6, 2.4e6, 1.4e6, 0.3e6), (0.0, 0.01, 0.02, 0.03)
    flows = tuple(
        Flow(id=f"flow{i}", source=i, target=4, offers=s, start=t)
        for i, (s, t) in enumerate(zip(sizes, starts, strict=True))
    )
    for scheme in (Mpcc(bdp=4344, variant="feed-forward"), Mpcc(bdp=4344, window=4344, window_weight=100.0)):
        result = simulate_packets(data_centre(Dumbbell(), scheme, *flows, duration=90e-3, packets=NS3))
        assert finish_ns(result) * 1e-6 == pytest.approx([79.3, 67.2, 59.6, 40.5], rel=0.01)


@cache
def sixteen(variant: str, window: float | None = None) -> tuple[float, float]:
    """(utilization, queue that acknowledgements tell over P_BD) from 1 to 5 ms: 16 flows, 100 Gbit/s, 71 packets."""
    scenario = data_centre(
        Dumbbell(senders=16, host_rate=1e11),
        Mpcc(variant=variant, window=window),
        *flows_to_one(16, 1e9),
        duration=5e-3,
        packets=NS3,
        flow_timeout=2e-4,
        watch=Watch(flows=tuple(range(16)), bin=1e-3),
    )
    result = simulate_packets(scenario)
    log = result.to_pandas("acknowledgements")
    P_BD = 6282 * 1e11 / 8e9
    return (
        float(received_rates(result.tables["received"])[:, 1:].sum(axis=0).mean() / 1e11),
        float(log.queue[log.time > 1e-3].mean() / P_BD),
    )


def test_the_delayed_model_uses_the_whole_link_with_a_tenth_of_a_bdp_and_the_delay_free_one_does_not() -> None:
    """Theory note: delay-free 1:1 .952, delayed 1.0115 at .074, feed-forward 1.0115 at .098."""
    full = 88 / 87  # ns-3's clock
    for variant in ("delayed", "feed-forward"):
        utilization, queue = sixteen(variant)
        assert utilization == pytest.approx(full, abs=5e-4)
        assert queue <= 0.1
    assert sixteen("feed-forward")[1] == pytest.approx(0.098, abs=5e-4)
    assert sixteen("delayed")[1] < sixteen("feed-forward")[1]
    assert sixteen("delay-free")[0] == pytest.approx(0.952, abs=0.02)
    # With P_BD as W of (A.1) the delayed one leaves a little of the link; the note's queue of .074 is between the two.
    utilization, queue = sixteen("delayed", 78_525)
    assert 1.0 < utilization < full
    assert queue < 0.074 < sixteen("delayed")[1]


# --- peers where their papers know the steady state ------------------------------------------------------------------


def steady(scheme: Scheme, count: int, rate: float, delay: float, duration: float, **more) -> Result:
    watch = Watch(flows=tuple(range(count)), ports=("s0>s1",), bin=duration / 10, acknowledgements=2_000_000)
    topology = Dumbbell(senders=count, host_rate=rate, delay=delay)
    return simulate_packets(
        data_centre(topology, scheme, *flows_to_one(count, 1e12, **more), duration=duration, watch=watch)
    )


def second_half(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Queue samples, and shares of the link."""
    rate, queue = result.totals["capacity", "s0>s1", 0], result.series["backlog", "s0>s1"]
    return queue[len(queue) // 2 :], received_rates(result.tables["received"])[:, 5:].mean(axis=1) / rate


def test_dctcps_queue_swings_below_its_threshold_as_its_paper_says() -> None:
    """Q_max = K + N packets, amplitude ½ √(2 N (C RTT + K)) (SIGCOMM 2010, (8) to (10)); in packets of 1048 bytes."""
    result = steady(Dctcp(threshold=65 * 1048, threshold_rate=1e10), 2, 1e10, 10e-6, 60e-3)
    queue, shares = second_half(result)
    pipe = 1e10 * result.tables["acknowledgements"]["rtt"].min() / 8 / 1048
    assert queue.max() / 1048 == pytest.approx(65 + 2, rel=0.05)
    assert (queue.max() - queue.min()) / 1048 == pytest.approx(0.5 * sqrt(4 * (pipe + 65)), rel=0.1)
    assert shares.sum() == pytest.approx(1.0, abs=1e-3)
    assert shares == pytest.approx(0.5, abs=0.03)


def test_hpcc_keeps_its_target_utilization_and_no_queue() -> None:
    for count in (1, 4):
        queue, shares = second_half(steady(Hpcc(), count, 1e11, 1e-6, 5e-3))
        assert shares.sum() == pytest.approx(0.95, abs=0.005)
        assert queue.mean() <= 1100


def test_patched_timely_rests_where_its_fixed_point_is() -> None:
    """δ/2 = β/2 R (rtt − T_low)/T_low with equal rates R = C/N: rtt = T_low (1 + δ N/(β C)) = 62.5 us."""
    result = steady(Timely(patched=True, decrease=0.008), 2, 1e10, 1e-6, 150e-3, starts=(0.0, 0.02))
    log = result.to_pandas("acknowledgements")
    late = log.rtt[log.time > 0.1]
    assert late.mean() == pytest.approx(62.5e-6, rel=2e-3)
    assert second_half(result)[1] == pytest.approx(0.5, abs=0.005)


def test_timely_stays_below_its_upper_threshold() -> None:
    result = steady(Timely(), 2, 1e10, 1e-6, 150e-3)
    log = result.to_pandas("acknowledgements")
    assert log.rtt[log.time > 75e-3].max() < 500e-6
    assert 0.5 < second_half(result)[1].sum() <= 1.001


def test_dcqcn_is_fair_and_marks_between_its_thresholds() -> None:
    result = steady(Dcqcn(), 2, 4e10, 1e-6, 100e-3, starts=(0.0, 0.01))
    queue, shares = second_half(result)
    assert shares.sum() == pytest.approx(1.0, abs=0.02)
    assert shares == pytest.approx(0.5, abs=0.05)
    assert 5e3 < queue.mean() < 200e3


# --- what holds for every run ----------------------------------------------------------------------------------------

SCHEMES = (
    FixedWindow(),
    FixedWindow(window=2000),
    Mpcc(),
    Mpcc(variant="delayed"),
    Mpcc(variant="hold", window=4000),
    Hpcc(),
    Dctcp(slow_start=True, initial_window=1000),
    Timely(patched=True, decrease=0.008),
    Dcqcn(window=50e3),
)


@st.composite
def scenarios(draw) -> Scenario:
    topology = draw(
        st.sampled_from([Dumbbell(senders=3, receivers=2, host_rate=1e10), FatTree(hosts_per_rack=2, host_rate=1e10)])
    )
    ends = st.lists(st.integers(0, topology.hosts - 1), min_size=2, max_size=2, unique=True)
    flows = tuple(
        Flow(
            id=f"flow{i}",
            source=a,
            target=b,
            offers=draw(st.integers(1, 60_000)),
            start=draw(st.integers(0, 50_000)) * 1e-9,
        )
        for i, (a, b) in enumerate(draw(st.lists(ends, min_size=1, max_size=8)))
    )
    return data_centre(
        topology,
        draw(st.sampled_from(SCHEMES)),
        *flows,
        buffer=draw(st.sampled_from([None, 8000.0, 50e3])),
        pfc=draw(st.sampled_from([None, Pfc(pause=4000, resume=2000)])),
        retransmission_timeout=1e-4,
        duration=draw(st.sampled_from([30e-6, 40e-3])),
        seed=draw(st.integers(0, 100)),
    )


@settings(max_examples=60, deadline=None)
@given(scenarios())
def test_packets_and_bytes_are_conserved_and_every_flow_comes_through(scenario) -> None:
    result = simulate_packets(scenario)
    n, slow, totals = counted(result), slow_down(result.transfers), result.totals
    assert residual(result.tables["counts"]) == (0, 0)
    assert totals["drops"].sum() == n["dropped"]
    assert totals["lost"].sum() == n["dropped_bytes"]
    assert (totals["arrived"] >= totals["departed"] + totals["lost"]).all()
    assert (slow[np.isfinite(slow)] >= 1.0).all()
    sizes = np.bincount(result.transfers["flow"], result.transfers["size"])
    assert (totals["payload"][0] <= sizes).all()
    if scenario.duration > 1e-3:
        assert np.isfinite(slow).all()
        assert n["under_way"] == 0
        assert (totals["payload"][0] == sizes).all()
    if scenario.network.buffer is None:
        assert n["dropped"] == 0


def test_pauses_keep_a_small_buffer_from_dropping() -> None:
    base = data_centre(
        Dumbbell(senders=8, host_rate=1e10), FixedWindow(), *flows_to_one(8, 200e3), buffer=500e3, duration=20e-3
    )
    lossy, lossless = (simulate_packets(base), simulate_packets(base.replace(pfc=Pfc(pause=40e3, resume=30e3))))
    assert lossy["drops", "network"] > 0
    assert (finish_ns(lossy) >= 0).all()
    assert lossy["packets sent again", "network"] > 0
    assert lossless["drops", "network"] == 0
    assert lossless["pauses", "network"] > 0
    assert lossless["packets sent again", "network"] == 0
    assert finish_ns(lossless).max() <= finish_ns(lossy).max()


@pytest.mark.parametrize("scheme", [Mpcc(variant="delayed"), Dcqcn()], ids=["mpcc", "dcqcn"])
def test_one_seed_gives_the_same_bits_and_another_others(scheme) -> None:
    scenario = data_centre(
        FatTree(), scheme, poisson(load=0.6), Flow(id="incast", offers=Incast()), duration=1e-3, seed=3
    )
    first = simulate_packets(scenario)
    assert same(first, simulate_packets(scenario))
    assert not same(first, simulate_packets(scenario.replace(seed=4)))


def test_small_pools_grow_and_change_nothing(monkeypatch) -> None:
    scenario = data_centre(
        FatTree(), Mpcc(), poisson(distribution="FB_Hadoop", load=0.5), duration=5e-4, watch=Watch(flows=(0, 1))
    )
    whole = simulate_packets(scenario)
    monkeypatch.setattr(problem, "ROWS", 2)
    monkeypatch.setattr(packets, "PACKETS", 8)
    assert same(whole, simulate_packets(scenario))
    assert counted(whole)["most_under_way"] > 100


def test_nothing_happens_for_a_long_time_after_the_last_packet() -> None:
    flow = Flow(id="flow", source=0, target=1, offers=10_000)
    scenario = data_centre(
        Dumbbell(senders=1, host_rate=1e3), Dctcp(), flow, duration=900.0, interval=1.0, watch=Watch(bin=1.0)
    )
    result = simulate_packets(scenario)
    assert (finish_ns(result) >= 0).all()
    assert result.tables["queues"]["samples"].sum() == 900 * sum(name.startswith("s") for name in result.links)


def test_no_flow_at_all_is_a_run_too() -> None:
    result = simulate_packets(data_centre(FatTree(), Mpcc(), poisson(load=1e-9), duration=1e-4))
    assert result.of("transfers") == {"begun": 0.0, "completed": 0.0}
    assert counted(result)["sent"] == 0


def test_memory_follows_what_is_under_way() -> None:
    """Ten times the time: as many packets in the pool, not ten times as many."""
    base = data_centre(FatTree(hosts_per_rack=2), Hpcc(), poisson(distribution="FB_Hadoop", load=0.3), duration=1e-3)
    short, long = (counted(simulate_packets(base.replace(duration=each))) for each in (1e-3, 1e-2))
    assert long["sent"] > 5 * short["sent"]
    assert long["most_under_way"] < 3 * short["most_under_way"]


# --- traffic --------------------------------------------------------------------------------------------


def test_more_flows_than_memory_should_hold_are_refused() -> None:
    """Before a table of them is made."""
    for name, traffic in (
        ("flows.poisson.offers.load", poisson(distribution=[[0, 0], [1, 100]])),
        ("flows.incast.offers.interval", Flow(id="incast", offers=Incast(interval=1e-9))),
    ):
        many = data_centre(FatTree(), Mpcc(), traffic, duration=1000.0, interval=1.0, watch=Watch(bin=1.0))
        with pytest.raises(InvalidValue) as refusal:
            draw_fabric_flows(many)
        assert refusal.value.argument == name


def test_poisson_arrivals_have_the_load_and_exponential_gaps() -> None:
    scenario = data_centre(FatTree(), Mpcc(), poisson(distribution="FB_Hadoop", load=0.3), duration=0.1)
    flows = draw_fabric_flows(scenario)
    offered = flows.size.sum() * 8 / (16 * 1e11 * 0.1)
    assert offered == pytest.approx(0.3, rel=0.03)
    gaps = np.diff(flows.start)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.02)
    assert (flows.source != flows.target).all()
    assert np.bincount(flows.target, minlength=16).std() < 5.0 * sqrt(len(flows.target) / 16)


def test_incast_leaves_the_other_arrivals_as_they_are() -> None:
    base = data_centre(FatTree(), Mpcc(), poisson(load=0.3), duration=5e-3)
    both = draw_fabric_flows(
        base.replace(flows=(Flow(id="incast", offers=Incast(interval=1e-3), sender=Mpcc()), *base.flows))
    )
    incast = both.flow == 0
    assert incast.sum() == 5 * 8
    for name in ("source", "target", "size", "start"):
        assert np.array_equal(getattr(both, name)[~incast], getattr(draw_fabric_flows(base), name))
    for start in np.unique(both.start[incast]):
        chosen = incast & (both.start == start)
        assert len(set(both.target[chosen])) == 1
        assert len(set(both.source[chosen])) == 8


# --- at the door -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "gains"),
    [
        (Hpcc(), np.ones(5)),
        (Mpcc(), np.ones(5)),
        (Mpcc(window=4344), 0.5),
        (Mpcc(window=4344), np.array([0.0, -1.0])),
        (Mpcc(window=4344), np.array([0.0, np.nan])),
        (Mpcc(window=4344), np.ones(1)),
    ],
)
def test_gains_that_do_not_fit_are_refused(scheme, gains) -> None:
    scenario = data_centre(Dumbbell(), scheme, *flows_to_one(4, 1e4), duration=1e-3)
    with pytest.raises(InvalidValue, match="gains"):
        simulate_packets(scenario, gains=gains)


def test_a_table_of_gains_is_the_law_of_its_weights() -> None:
    """Three lines of Riccati against the scheme's own; K = 0 against feed-forward."""
    base = netctrl.read("mpcc-dumbbell")
    table = np.zeros(65)
    for flows in range(1, 65):
        B, s = 1.0008576e-5 * flows * 1e9 / (8 * 3750), 1.0
        for _ in range(4):
            s = 1.0 + s / (1.0 + B * B * s)
        table[flows] = B * s / (1.0 + B * B * s)
    assert same(simulate_packets(base), simulate_packets(base, gains=table))
    ahead = with_sender(base, msgspec.structs.replace(base.flows[0].sender, variant="feed-forward"))
    assert same(simulate_packets(ahead), simulate_packets(base, gains=np.zeros(65)))


@pytest.mark.parametrize(
    ("watch", "named"), [(Watch(ports=("s0>s9",)), "watch.ports"), (Watch(flows=(4,)), "watch.flows")]
)
def test_what_is_not_there_cannot_be_watched(watch, named) -> None:
    scenario = data_centre(Dumbbell(), Mpcc(), *flows_to_one(4, 1e4), duration=1e-3, watch=watch)
    with pytest.raises(InvalidValue) as refusal:
        simulate_packets(scenario)
    assert refusal.value.argument == named


def test_a_result_tells_what_came_out() -> None:
    scenario = data_centre(FatTree(), Mpcc(), poisson(load=0.3), duration=2e-3)
    result = simulate_packets(scenario)
    table, done = result.transfers, finish_ns(result) >= 0
    told = result.of("transfers")
    assert (told["begun"], told["completed"]) == (len(done), done.sum())
    np.testing.assert_array_equal(done, np.isfinite(table["duration"]))
    chosen = done & (table["size"] > 1e4) & (table["size"] <= 3e4)
    assert result["slow-down 95 %", "transfers to 30 kB"] == np.percentile(slow_down(table)[chosen], 95)
    backlog, below = queue_shares(result.tables["queues"])
    assert below[-1] == pytest.approx(1.0)
    assert len(backlog) == len(below)
    assert below[0] <= 0.99 < below[1:][backlog[1:] == queue_quantile(result.tables["queues"], 0.999)].max()
    assert result["queue 99 %", "network"] <= result.totals["backlog_most"].max() + 1000
    assert len(result.to_pandas()) == len(done)
    title, rows = result.table()
    assert "packet" in title
    assert dict(rows)["transfers"].startswith(f"begun {len(done)}, completed {done.sum()}, slow-down ")
    assert result.plot().axes
