"""Links of the packet engine whose rate varies, that lose or delay packets: by hand, and by plain computations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from link_queues import delivered
from places import ROOT

import netctrl
from netctrl.cli.simulate import json_text
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import FqCodelQueue
from netctrl.model.datasets import data_path
from netctrl.model.link_trace import LinkTrace, read_link_trace, trace_bits
from netctrl.model.trace import RateTrace
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.result import Result
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.packet.problem import PacketProblem, packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW, LINK

MS = 1_000_000


def line(**changed) -> Link:
    return Link(**{"id": "line", "source": "a", "target": "b", "capacity": 1e7} | changed)


def udp(rate=1e6, **changed) -> Flow:
    offers = Stream(rate=rate, spacing="constant")
    return Flow(**{"id": "udp", "path": ("line",), "ecn": False, "offers": offers} | changed)


def scenario(link: Link | tuple[Link, ...], *flows, duration=0.05, sample=1e-3, size=1000.0, **changed) -> Scenario:
    links = link if isinstance(link, tuple) else (link,)
    return Scenario(
        name="link", duration=duration, interval=sample, links=links, flows=flows, packet_size=size, **changed
    )


def opportunities(*times: int) -> LinkTrace:
    return LinkTrace(np.array(times))


def came(ready: PacketProblem) -> list[int]:
    """When evenly spaced datagrams come [ns]."""
    times = []
    for start, flow in zip(ready.state.agenda[:, 0], ready.state.agenda[:, 2], strict=True):
        row = ready.state.flow[flow]
        times += range(start, row[FLOW["stop"]], row[FLOW["gap"]])
    return sorted(times)


def by_sample(times: list[int], interval: int, samples: int) -> np.ndarray:
    """How many of these times [ns] are in each interval; one at its end is in the next."""
    return np.bincount(np.array(times) // interval, minlength=samples)[:samples]


# --- traces -----------------------------------------------------------------------------------------------------------


def test_opportunities_by_hand():
    """Datagrams of 752 B and 4 B of header come at 0, 1, 2, 3 ms; opportunities of 1504 B are at 2, 2, 5, 9 ms.

    At 2 ms the first goes with 756 B, and 748 B of the second; the second opportunity of that time takes its last 8 B,
    and is lost but for them, since the third datagram comes at 2 ms, too late. That goes at 5 ms, with 748 B of the
    fourth, of which 8 B are left for 9 ms.
    """
    trace = opportunities(2, 2, 5, 9)
    rate = 8.0 * 752 / 1e-3
    whole = scenario(line(trace=trace, capacity=1e6), udp(rate=rate, stop=3.5e-3), duration=0.02, size=752)
    ready = packet_problem(whole)
    ready.state.agenda[0, 0] = 0
    state = run_packets(ready, 10.0)
    left = np.flatnonzero(np.diff(state.carried[0], prepend=0.0))
    np.testing.assert_array_equal(left, [2, 5, 9])
    assert state.carried[0, 3] == 2 * 712
    # They wait until a byte of theirs goes, each opportunity being served a nanosecond early: 2, 1, 3 and 2 ms.
    assert state.link[0, LINK["waited_ns"]] == 8 * MS - 4


@given(
    gaps=st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any),
    size=st.integers(100, 4000),
    loads=st.lists(st.integers(2, 40), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
def test_opportunities_as_a_plain_computation(gaps, size, loads, seed):
    """Each millisecond as many datagrams leave as where opportunities are gone through one by one."""
    times = list(map(int, np.cumsum(gaps)))
    flows = [udp(id=f"u{i}", rate=8.0 * size / (gap * 1.1e-3), stop=0.3) for i, gap in enumerate(loads)]
    link = line(trace=opportunities(*times))
    ready = packet_problem(scenario(link, *flows, duration=0.6, size=float(size), seed=seed))
    left = delivered([(time, size + 4) for time in came(ready)], times, 1504)
    state = run_packets(ready, 10.0)
    carried = np.diff(state.carried.sum(axis=0), prepend=0.0) / (size - 40)
    np.testing.assert_array_equal(carried, by_sample(left, MS, 600))


def steps(came: list[int], rates: list[int], interval: int, bits: int) -> list[int]:
    """When packets leave whose bits are sent at rates that change, exactly; rounded as each leaves [ns]."""
    left, free = [], 0
    for time in came:
        now, need = Fraction(max(time, free)), Fraction(bits)
        while True:
            k = int(now // interval)
            rate, end = Fraction(rates[k % len(rates)], 10**9), Fraction((k + 1) * interval)
            if rate and now + need / rate <= end + Fraction(1, 2):
                break
            now, need = end, need - rate * (end - now)
        free = int(now + need / rate + Fraction(1, 2))
        left.append(free)
    return left


@given(
    rates=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any),
    load=st.integers(5, 90),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
def test_rates_as_a_plain_computation(rates, load, seed):
    trace = RateTrace(0.007, ("rate",), np.array(rates)[:, None] * 1e6)
    ready = packet_problem(
        scenario(line(trace=trace), udp(rate=load * 1e5, count=2, stop=0.2), duration=2.0, seed=seed)
    )
    times = came(ready)
    left = steps(times, [rate * 10**6 for rate in rates], 7 * MS, 8000)
    state = run_packets(ready, 10.0)
    carried = np.diff(state.carried[0], prepend=0.0) / 960
    np.testing.assert_array_equal(carried, by_sample(left, MS, 2000))
    begun = np.maximum(times, np.concatenate([[0], left[:-1]]))
    done = state.link[0, LINK["started"]]
    assert state.link[0, LINK["waited_ns"]] == (begun - times)[:done].sum()


@pytest.mark.parametrize("queue", [CodelQueue(target=1e3, interval=1e3), PieQueue(), CodelQueue()])
def test_a_trace_of_one_rate_is_that_rate(queue):
    """Byte for byte, and mark for mark."""
    flows = Flow(id="bulk", path=("line",), rtt=(0.03, 0.05), count=3)
    link = line(queue=queue, delay=0.01, buffer=5e4)
    traced = line(queue=queue, delay=0.01, buffer=5e4, trace=RateTrace(1.0, ("r",), np.full((3, 1), 1e7)))
    one, other = (simulate_packets(scenario(each, flows, duration=10.0, sample=0.1)) for each in (link, traced))
    if isinstance(queue, CodelQueue):
        np.testing.assert_array_equal(one.series["marked"], other.series["marked"])
        np.testing.assert_array_equal(one.series["departed"], other.series["departed"])
    else:  # packets that come at the same nanosecond may be asked about in another order
        assert one.series["departed"].sum() == pytest.approx(other.series["departed"].sum(), rel=1e-3)
        assert one.series["marked"].sum() == pytest.approx(other.series["marked"].sum(), rel=0.2)


def test_a_full_link_uses_all_of_a_trace():
    """Utilization is of what the trace offers in that time; 1500 B and the tunnel's 4 B fill an opportunity."""
    trace = opportunities(*range(2, 2001, 2), *range(2010, 4001, 10))
    flows = udp(rate=2e7)
    result = simulate_packets(scenario(line(trace=trace, buffer=3e4), flows, duration=12.0, sample=0.01, size=1500.0))
    for start, stop, packets in ((0.1, 2.0, 950), (2.1, 4.0, 190), (4.0, 8.0, 1200)):
        summary = result.between(start, stop).of(result.links[0])
        assert summary["throughput"] * (stop - start) / 12e3 == pytest.approx(packets, abs=2)
        assert summary["utilization"] == pytest.approx(1500 / 1504, abs=2e-3)


def test_bits_of_traces():
    trace = opportunities(1, 1, 4)
    np.testing.assert_allclose(trace_bits(trace, [0.0009, 0.001, 0.004, 0.005]) / 12032, [0, 2, 3, 5])
    rates = RateTrace(0.5, ("r",), np.array([[1e6], [3e6]]))
    np.testing.assert_allclose(trace_bits(rates, [0.25, 0.75, 1.25]), [0.25e6, 1.25e6, 2.25e6])


# --- loss and jitter --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_losses_are_binomial_and_of_the_wire(share):
    """A full link loses its share after it has sent them; all are in the books, and neighbours are independent."""
    whole = scenario(line(loss=share, buffer=2e4), udp(rate=1.2e7), duration=60.0, sample=8e-4 * 2)
    result = simulate_packets(whole)
    state = run_packets(packet_problem(whole), 10.0)
    sent, got = state.link[0, LINK["sent"]], state.group[0] / 960
    assert sent == pytest.approx(60.0 / 8e-4, abs=2)
    assert got / sent == pytest.approx(1.0 - share, abs=4.0 * np.sqrt(share * (1.0 - share) / sent))
    grown = np.diff(result.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_array_equal(result.series["arrived"], result.series["departed"] + result.series["lost"] + grown)
    pairs = np.bincount((result.series["departed"][0, 5:] / 1000).astype(int), minlength=3)[:3]
    both = np.array([share**2, 2 * share * (1 - share), (1 - share) ** 2]) * pairs.sum()
    assert ((pairs - both) ** 2 / both).sum() < 13.8  # chi square, 2 degrees of freedom, 0.1 %
    other = run_packets(packet_problem(whole.replace(seed=2)), 10.0)
    assert other.group[0] != state.group[0]


def test_jitter_delays_by_half_of_it_in_the_mean():
    """Datagrams further apart than it; sampled each ms, which adds half a ms."""
    whole = scenario(line(delay=0.01, jitter=0.04), udp(rate=8e3 / 0.06, stop=240.0), duration=241.0)
    ready = packet_problem(whole)
    times = np.array(came(ready)) / 1e9
    state = run_packets(ready, 10.0)
    arrived = 1e-3 * (1.0 + np.repeat(np.arange(241_000), (np.diff(state.carried[0], prepend=0.0) / 960).astype(int)))
    late = arrived - times - 0.01 - 8e-4
    assert len(arrived) == len(times) > 3900
    assert late.mean() == pytest.approx(0.0205, abs=4.0 * 0.04 / np.sqrt(12 * len(times)))
    assert late.std() == pytest.approx(0.04 / np.sqrt(12), rel=0.05)
    assert (late.min() >= 0.0, late.max() <= 0.041, late.max() > 0.039) == (True, True, True)


def splitmix(state: int) -> Iterator[float]:
    """Steele, Lea, Flood 2014, with Python's whole numbers."""
    mask = 2**64 - 1
    while True:
        state = state + 0x9E3779B97F4A7C15 & mask
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        yield ((z ^ z >> 31) >> 11) / 2**53


def test_jitter_keeps_the_order():
    """Datagrams 2 ms apart, up to 30 ms late: each comes at its time, or with the one before it where that is later."""
    links = line(delay=0.01, jitter=0.03), line(id="next", source="b", target="c")
    ready = packet_problem(scenario(links, udp(path=("line", "next"), rate=4e6, stop=1.0), duration=1.5))
    draws, arrives, free, waited, left = splitmix(int(ready.state.random[0])), 0, 0, 0, []
    for time in came(ready):
        arrives = max(arrives, time + 800_000 + 10 * MS + int(next(draws) * (30 * MS + 1)))
        waited += max(free - arrives, 0)
        free = max(free, arrives) + 800_000
        left.append(free)
    state = run_packets(ready, 10.0)
    np.testing.assert_array_equal(np.diff(state.carried[0], prepend=0.0) / 960, by_sample(left, MS, 1500))
    assert state.link[1, LINK["waited_ns"]] == waited > 100 * MS


# --- what docs/explanation/simulation.md and docs/figures/engines.md say -------------------------------------------

PAGE = (ROOT / "docs" / "explanation" / "simulation.md").read_text(encoding="utf-8")
TABLE = (ROOT / "docs" / "figures" / "engines.md").read_text(encoding="utf-8")


def test_the_page_s_scenario_runs(tmp_path):
    (tmp_path / "mobile.toml").write_text(
        PAGE.partition('```toml title="mobile.toml"\n')[2].partition("```")[0], encoding="utf-8"
    )
    (tmp_path / "mobile.trace").write_bytes(data_path("traces/mobile.trace").read_bytes())
    result = netctrl.simulate(read_scenario(tmp_path / "mobile.toml"))
    call = result.series["payload"][1, 500:].sum() / (100e3 / 8.0 * 55.0 * 1460 / 1500)
    assert call == pytest.approx(1.0, abs=0.01)
    assert 0.8 < result["utilization", result.links[0]] < 1.0


def late(result: Result, at_head: bool) -> float:
    """95 % quantile of the time in the queue [s]; what is lost is taken from its head, or was never in it."""
    lost = result.series["lost"][0]
    came = np.cumsum(result.series["arrived"][0] - (0.0 if at_head else lost))
    left = np.cumsum(result.series["departed"][0] + (lost if at_head else 0.0))
    packets = np.arange(750.0, left[-1], 1500.0)
    begin, end = (np.interp(packets, each, result.time_s) for each in (came, left))
    return float(np.quantile((end - begin)[end > 10.0], 0.95))


@pytest.mark.parametrize("sender", ["Reno", "Cubic"])
@pytest.mark.parametrize(
    ("name", "queue", "packets"),
    [("drop-tail, 15 packets", DropTailQueue(), 15), ("drop-tail, 1000 packets", DropTailQueue(), 1000),
     ("`fq_codel`, 1000 packets", FqCodelQueue(), 1000)],
)  # fmt: skip
def test_what_a_mobile_link_does_to_a_flow(sender, name, queue, packets):
    trace = read_link_trace(data_path("traces/mobile.trace"))
    link = line(trace=trace, capacity=trace.mean_bit_per_s, delay=0.02, buffer=1500.0 * packets, queue=queue)
    flow = Flow(id="flow", path=("line",), rtt=0.05, count=1, sender=sender.lower(), ecn=False)
    result = simulate_packets(scenario(link, flow, duration=120.0, size=1500.0, warmup=10.0))
    throughput, delay = result["throughput", result.links[0]], late(result, packets > 15 and name[0] == "`")
    assert f"| {sender} | {name} | {throughput / 1e6:.2f} Mbit/s, {1e3 * delay:.0f} ms |" in TABLE


# --- files, and engines -----------------------------------------------------------------------------------------------

FILE = """schema = "netctrl.scenario/3"
name = "mobile"
duration = "2s"
interval = "10ms"
links = [{ id = "line", source = "a", target = "b", buffer = "60kB", trace = "NAME", loss = 0.01, jitter = "1ms" }]
flows = [{ id = "bulk", path = ["line"], rtt = "50ms", count = 2 }]
"""


@pytest.mark.parametrize(
    ("name", "text", "mean"),
    [("down.trace", "1\n3\n8\n", 3 * 8 * 1504 / 8e-3), ("rate.csv", "time_s,r\n0,1e6\n0.5,3e6\n", 2e6)],
)
def test_a_trace_stands_beside_its_scenario(tmp_path, name, text, mean):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / name).write_text(text, encoding="ascii")
    (tmp_path / "there" / "s.toml").write_text(FILE.replace("NAME", name), encoding="ascii")
    whole = read_scenario(tmp_path / "there" / "s.toml")
    assert whole.links[0].capacity == pytest.approx(mean)
    result = netctrl.simulate(whole)
    assert result.simulator == "packet"
    assert json.loads(json_text(result))["scenario"]["links"][0]["trace"]
    result.save(tmp_path / "result.npz")
    again = simulate_packets(read_result(tmp_path / "result.npz").scenario)
    np.testing.assert_array_equal(again.series["backlog"], result.series["backlog"])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.trace", None, "No such file"),
        ("bad.trace", "3\n1\n", "line 2: got 1"),
        ("two.csv", "time_s,a,b\n0,1,2\n1,1,2\n", "2 columns of rates, takes one"),
        ("zero.csv", "time_s,a\n0,0\n1,0\n", "got rates of 0"),
    ],
)
def test_bad_traces_are_refused(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="ascii")
    (tmp_path / "s.toml").write_text(FILE.replace("NAME", name), encoding="ascii")
    with pytest.raises(FileError, match=said):
        read_scenario(tmp_path / "s.toml")


@pytest.mark.parametrize(
    "trace",
    ["file", (1, 2), [[1], 2], {"names": ["a"]}, opportunities(), opportunities(2, 1), opportunities(0, 0),
     LinkTrace(np.array([1.0, np.nan])), LinkTrace(np.array([1]), 10.0, 11.0)],
)  # fmt: skip
def test_other_traces_are_refused(trace):
    with pytest.raises(InvalidValue, match="trace"):
        line(trace=trace)


def test_a_link_with_a_trace_has_no_other_capacity():
    with pytest.raises(InvalidValue, match="the link has a trace"):
        scenario(line(trace=opportunities(1, 2)), udp(), changes=(Change(at=0.01, link="line", capacity=1e6),))


@pytest.mark.parametrize(
    ("engine", "changed", "said"),
    [("fluid", {"trace": opportunities(1, 2)}, "traces of links .links.line.trace"),
     *((engine, changed, said) for engine in ("fluid", "ns3") for changed, said in
       (({"loss": 0.1}, "random loss"), ({"jitter": 0.1}, "jitter")))],
)  # fmt: skip
def test_other_engines_say_who_has_it(engine, changed, said):
    flows = Flow(id="bulk", path=("line",), rtt=0.05, count=2)
    with pytest.raises(InvalidValue, match=f"which has no {said}.*packet( or ns3)?( or kernel)?, which has it"):
        netctrl.simulate(scenario(line(**changed), flows), engine)


@pytest.mark.parametrize("engine", ["ns3", "kernel"])
def test_a_trace_whose_rate_is_set_as_well_is_for_packets_alone(engine):
    flows = Flow(id="bulk", path=("line",), rtt=0.05, count=2)
    both = scenario(line(trace=opportunities(1, 2)), flows).replace(control=StaticPacing(factor=0.5))
    with pytest.raises(InvalidValue, match=r"which has no traces .*links.line.trace.*packet, which has it"):
        netctrl.simulate(both, engine)


def test_an_interval_that_is_rounded_up_keeps_its_last_sample() -> None:
    """Three intervals of 2/3 s are 2.000000001 s in whole ns."""
    found = simulate_packets(scenario(line(), udp(), duration=2.0, sample=2.0 / 3.0))
    assert len(found.time_s) == 3
    assert (found.series["departed"] > 0.0).all()
    balance = found.series["departed"] + found.series["lost"] + np.diff(found.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_allclose(found.series["arrived"], balance)
