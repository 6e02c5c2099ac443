"""An access link packet by packet: against queueing theory, a plain event simulation, laws, and CONNET's figures."""

from __future__ import annotations

import heapq
from collections import deque
from functools import cache
from itertools import pairwise
from math import inf, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from access_links import crossing, link_of, sources
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.errors import InvalidValue
from netctrl.plants.access import departure, pause_mean, window_after_ack, window_after_loss
from netctrl.scenario.access.flows import CrossFlow, PremiumFlow, RegulatedFlows, RegulatorFailure, TcpSenders
from netctrl.scenario.access.network import DISCIPLINES
from netctrl.scenario.access.result import AccessLinkResult, AccessLinkSample
from netctrl.scenario.access.scenario import access_link, access_parts
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.access.run import AccessLink, control_access_link, simulate_access_link

MEGA = 1e6
BITS = 8000.0  # of a packet
SERVICE_MS = 0.08
TOLERANCE = {
    "delay": 1e-9,  # ms: rounding of times up to some seconds
    "curve": (0.03, 0.12),  # relative, of delay and jitter: the published values come from single runs
    "peers": 0.06,
    "errors": 4.0,  # standard errors
}
ONE = sources({"count": 1, "burst": 1, "share": 1.0})
EVEN = {"pause_variation": 0.0}
TCP = {"sender": TcpSenders()}
SMALL_PROBES = {"premium": PremiumFlow(rate=1e5, size=10.0)}
"""1250 premium packets a second that hardly load the link: they see what waits as it is at any time."""


def run(rate: Any = inf, burst: Any = 0, **options: Any) -> AccessLinkResult:
    return simulate_access_link(link_of(**options), rate, burst)


# --- queueing theory --------------------------------------------------------------------------------------------------


def estimated(result: AccessLinkResult) -> tuple[float, float]:
    """Mean waiting time [ms], and the standard error of it from the means of periods."""
    parts = access_parts(result.scenario)
    sent = parts.premium.size * 8e3 / parts.line.capacity
    waits = result.mean_delay_ms[1:] - 1e3 * parts.line.base_delay - sent
    return float(waits.mean()), float(waits.std(ddof=1) / sqrt(len(waits)))


@pytest.mark.parametrize("load", [0.3, 0.6, 0.85])
def test_poisson_packets_wait_as_pollaczek_and_khinchine_say(load):
    """M/D/1: W = rho S/(2 (1 - rho)); premium traffic of 0.1 % counts too."""
    found = run((load - 1e-3) * 100 * MEGA, 1, duration=120, limit=10_000, **SMALL_PROBES)
    mean, error = estimated(found)
    expected = load * SERVICE_MS / (2.0 * (1.0 - load))
    assert error < 0.03 * expected
    assert abs(mean - expected) < TOLERANCE["errors"] * error + 0.005 * expected


@pytest.mark.parametrize("burst", [2, 10])
def test_poisson_bursts_that_come_at_once_wait_as_batches_do(burst):
    """M/D/1 of customers as long as a burst: W = rho b S/(2 (1 - rho))."""
    load = 0.5
    found = run((load - 1e-3) * 100 * MEGA, burst, duration=120, limit=10_000, access_rate=1e14, **SMALL_PROBES)
    mean, error = estimated(found)
    expected = load * burst * SERVICE_MS / (2.0 * (1.0 - load))
    assert abs(mean - expected) < TOLERANCE["errors"] * error + 0.005 * expected


def test_even_packets_of_one_flow_wait_for_what_is_on_the_wire():
    """D/D/1 with a probe: at time t it waits for the rest of the last even packet's service, or not at all."""
    rate = 40 * MEGA
    link = AccessLink(link_of(regulated=ONE, every=EVEN, premium=PremiumFlow(rate=MEGA / 8), seed=3))
    first = float(link.traffic.gates.held[0]) * BITS / rate
    phase, period = link.plant.premium_phase, link.plant.premium_period
    sample = link.advance(rate)
    times = phase + period * np.arange(sample.premium_received)
    ago = (times - first) % (BITS / rate)
    ago[times < first] = inf
    waits = np.maximum(BITS / 1e8 - ago, 0.0)
    expected = 1e3 * waits.mean() + SERVICE_MS + 0.36
    assert sample.mean_delay_ms == pytest.approx(expected, abs=1e-7)
    assert not sample.other_lost


def test_a_link_that_is_offered_too_much_fills_at_the_difference_and_then_loses_it():
    offered = 125 * MEGA
    options = {"every": EVEN | {"offered": offered}, "access_rate": 1e9, "limit": 1000}
    found = run(duration=1.2, interval=0.1, regulated=ONE, premium=PremiumFlow(rate=1e3), **options)
    growth = (offered - 100 * MEGA) * 0.1 / BITS  # packets a period
    filling = found.backlog[:3, 0]
    np.testing.assert_allclose(filling, growth * np.arange(1, 4), atol=2.0)
    assert (found.backlog[4:, 0] >= 999).all()
    np.testing.assert_allclose(found.other_lost[4:], growth, atol=2.0)
    np.testing.assert_allclose(found.utilization[1:], 1.0, atol=2e-3)


# --- a plain event simulation -----------------------------------------------------------------------------------------


class Packet(NamedTuple):
    kind: int
    entered: float


class Node:
    """A node of one discipline, told one event at a time."""

    def __init__(self, scenario: Scenario, kinds: int) -> None:
        self.parts, self.kinds = access_parts(scenario), kinds
        self.line = self.parts.line
        self.queues: dict[int, deque[tuple[float, Packet]]] = {}
        self.tags: dict[int, float] = {}
        self.busy: Packet | None = None
        self.tag = self.until = 0.0
        self.dropped = [0] * kinds
        self.departed = [0] * kinds

    def queue(self, kind: int) -> int:
        return {"fifo": 0, "wfq": kind, "cbq": min(kind, 1)}[self.line.discipline]

    def weight(self, queue: int) -> float:
        if self.line.discipline == "cbq":
            return self.line.premium_share if queue == 0 else 1.0 - self.line.premium_share
        return 1.0 / self.kinds

    def bits(self, kind: int) -> float:
        return 8.0 * (self.parts.packet_size if kind else self.parts.premium.size)

    def offer(self, packet: Packet, time: float) -> None:
        q = self.queue(packet.kind)
        sending = self.busy is not None and self.queue(self.busy.kind) == q and self.until > time
        held = len(self.queues.get(q, ())) + sending
        if held >= self.line.limit:
            self.dropped[packet.kind] += 1
            return
        cost = self.bits(packet.kind) / (self.line.capacity * self.weight(q))
        self.tags[q] = max(self.tags.get(q, 0.0), self.tag) + cost
        self.queues.setdefault(q, deque()).append((self.tags[q], packet))

    def take(self, time: float) -> bool:
        """Start to send the next packet, if there is one."""
        ready = [(queue[0][0], q) for q, queue in self.queues.items() if queue]
        if not ready:
            self.busy, self.tag = None, 0.0
            self.tags.clear()
            return False
        q = min(ready)[1]
        self.tag, self.busy = self.queues[q].popleft()
        self.until = time + self.bits(self.busy.kind) / self.line.capacity
        return True


class Plain(NamedTuple):
    released: list[int]
    dropped: list[list[int]]
    departed: list[list[int]]
    delay: float
    jitter: float


def events(scenario: Scenario, rates: list[float], bursts: list[int]) -> Plain:
    """The scenario by one heap of events, with the draws that its seed gives."""
    parts = access_parts(scenario)
    cross, premium = parts.cross, parts.premium
    F, H, bits = parts.flows, parts.line.hops, parts.packet_size * 8.0
    kinds, gap = 1 + F + len(cross), bits / parts.line.access_rate
    streams = [np.random.default_rng([scenario.seed, flow + 1]) for flow in range(F + len(cross))]
    group = [each for each in parts.regulated for _ in range(each.count)]
    variation = [each.pause_variation for each in (*group, *cross)]

    def commanded(flow: int, time: float) -> tuple[float, int]:
        """Mean pause and burst of a flow."""
        if flow >= F:
            rate, burst = cross[flow - F].rate, cross[flow - F].burst
        else:
            period = min(int(time / scenario.interval + 1e-9), len(rates) - 1)
            own = group[flow]
            rate, burst = min(rates[period] * own.share, own.offered), bursts[period] or own.burst
            for failure in own.failures:
                if failure.start <= time < failure.stop:
                    rate = failure.rate
            rate /= own.count
        return (burst * (bits / rate) - (burst - 1) * gap if rate else inf), burst

    def after(flow: int, time: float, mean_pauses: float) -> tuple[float, int]:
        """When a flow's pause from `time` on is over, that is `mean_pauses` mean pauses long, and the burst then."""
        turns = {(k + 1) * scenario.interval for k in range(len(rates) - 1)}
        turns |= {turn for each in group for failure in each.failures for turn in (failure.start, failure.stop)}
        mean, burst = commanded(flow, time)
        planned = time + mean_pauses * mean if mean < inf else inf
        for turn in sorted(turn for turn in turns if turn > time):
            if planned <= turn:
                break
            if commanded(flow, turn) != (mean, burst):
                mean_pauses = (planned - turn) / mean if mean < inf else mean_pauses
                mean, burst = commanded(flow, turn)
                planned = turn + mean_pauses * mean if mean < inf else inf
        return planned, burst

    # What comes as a packet leaves finds its place free, and fair queueing may choose it: first in, then out. Of
    # what comes at once, packets of the node before are first, then premium ones, then flows in their order.
    heap: list[tuple[float, bool, int, int, int, Any]] = []
    serial = 0

    def put(time: float, completion: bool, hop: int, what: Any) -> None:
        nonlocal serial
        serial += 1
        rank = -1 if isinstance(what, Packet) else 0 if what in (None, "done") else what[0] + 1
        heapq.heappush(heap, (time, completion, hop, rank, serial, what))

    def put_release(flow: int, time: float, left: int) -> None:
        put(time, False, cross[flow - F].hop if flow >= F else 0, (flow, left))

    end = len(rates) * scenario.interval
    released, received = [0] * kinds, []
    nodes = [Node(scenario, kinds) for _ in range(H)]
    period = premium.size * 8.0 / premium.rate
    phase = period * np.random.default_rng([scenario.seed, 0]).uniform()
    for k in range(int(end / period) + 1):
        put(phase + k * period, False, 0, None)
    for flow, (stream, v) in enumerate(zip(streams, variation, strict=True)):
        start, burst = after(flow, 0.0, (1.0 - v) * stream.uniform() + v * stream.standard_exponential())
        put_release(flow, start, burst)

    def offer(time: float, hop: int, packet: Packet) -> None:
        nodes[hop].offer(packet, time)
        if nodes[hop].busy is None and nodes[hop].take(time):
            put(nodes[hop].until, True, hop, "done")

    while heap and heap[0][0] <= end:
        time, _, hop, _, _, what = heapq.heappop(heap)
        if what == "done":
            packet = nodes[hop].busy
            nodes[hop].departed[packet.kind] += 1
            if nodes[hop].take(time):
                put(nodes[hop].until, True, hop, "done")
            if hop + 1 < H and packet.kind <= F:
                put(time, False, hop + 1, packet)
            elif packet.kind == 0:
                received.append(time - packet.entered)
        elif isinstance(what, Packet):
            offer(time, hop, what)
        else:
            kind = 0 if what is None else what[0] + 1
            released[kind] += 1
            if what is not None:
                flow, left = what
                if left > 1:
                    put_release(flow, time + gap, left - 1)
                else:
                    draw, v = streams[flow].standard_exponential(), variation[flow]
                    put_release(flow, *after(flow, time, 1.0 - v + v * draw))
            offer(time, hop, Packet(kind, time))
    delay, jitter, before = (received[0] if received else 0.0), 0.0, None
    for each in received:
        delay += (each - delay) / 8
        jitter += ((0.0 if before is None else abs(each - before)) - jitter) / 8
        before = each
    return Plain(released, [n.dropped for n in nodes], [n.departed for n in nodes], delay, jitter)


UNEVEN = ({"share": 0.5, "burst": 3}, {"share": 0.35, "count": 1}, {"share": 0.15, "burst": 1})


@st.composite
def small_cases(draw: st.DrawFn) -> tuple[Scenario, list[float], list[int]]:
    hops = draw(st.integers(1, 3))
    variations = st.sampled_from([0.0, 0.4, 1.0])
    shares = [({}, {}, {}), UNEVEN, ({"share": 1.0, "count": 1, "burst": 1},)]
    groups = [{"pause_variation": draw(variations), **each} for each in draw(st.sampled_from(shares))]
    cross = [
        {"hop": draw(st.integers(0, hops - 1)), "rate": draw(st.sampled_from([1e7, 4e7])), "burst": 3}
        | {"pause_variation": draw(variations)}
        for _ in range(draw(st.integers(0, 2)))
    ]
    if draw(st.booleans()):
        groups[0]["failures"] = (RegulatorFailure(start=0.0131, stop=0.0377, rate=draw(st.sampled_from([5e7, 9e7]))),)
    scenario = link_of(
        hops=hops,
        regulated=sources(*groups),
        cross=crossing(*cross),
        premium=PremiumFlow(rate=draw(st.sampled_from([1e6, 2e7])), size=draw(st.sampled_from([1000.0, 210.0]))),
        limit=draw(st.sampled_from([1, 2, 7, 100])),
        discipline=draw(st.sampled_from(DISCIPLINES)),
        interval=0.02,
        duration=0.08,
        seed=draw(st.integers(0, 1000)),
    )
    rates = draw(st.lists(st.sampled_from([0.0, 2e7, 5.5e7, 9e7, 1.3e8]), min_size=4, max_size=4))
    return scenario, rates, draw(st.lists(st.sampled_from([0, 1, 4]), min_size=4, max_size=4))


@pytest.mark.slow
@given(small_cases())
@settings(max_examples=150)
def test_the_kernel_does_what_a_plain_event_simulation_does(case):
    scenario, rates, bursts = case
    link = AccessLink(scenario)
    samples = [link.advance(rate, burst) for rate, burst in zip(rates, bursts, strict=True)]
    plain = events(scenario, rates, bursts)
    assert link.traffic.released.tolist() == plain.released
    assert link.traffic.dropped.tolist() == plain.dropped
    assert link.traffic.departed.tolist() == plain.departed
    if samples[-1].delay_ms:
        expected = 1e3 * (plain.delay + scenario.network.base_delay)
        assert samples[-1].delay_ms == pytest.approx(expected, abs=TOLERANCE["delay"])
        assert samples[-1].jitter_ms == pytest.approx(1e3 * plain.jitter, abs=TOLERANCE["delay"])


# --- laws -------------------------------------------------------------------------------------------------------------

CROSSED = crossing({"hop": 0, "rate": 1e7}, {"hop": 1, "rate": 3e7, "burst": 20})


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("rate", [40 * MEGA, inf])
def test_each_packet_is_delivered_dropped_or_queued(discipline, rate):
    scenario = link_of(discipline=discipline, hops=2, cross=CROSSED, limit=30, interval=0.2)
    link, left = AccessLink(scenario), 1 + access_parts(scenario).flows
    for _ in range(5):
        sample = link.advance(rate)
        traffic = link.traffic
        gone = traffic.departed[-1].sum() + traffic.departed[0, left : left + 1].sum() + traffic.dropped.sum()
        assert traffic.released.sum() == gone + sum(sample.backlog)


@pytest.mark.parametrize("rate", [60 * MEGA, 97 * MEGA])
def test_all_disciplines_send_whenever_something_waits(rate):
    """With equal packets and no loss, what waits in all doesn't depend on the order."""
    found = [run(rate, discipline=name, limit=100_000, interval=0.01, duration=2) for name in DISCIPLINES]
    for other in found[1:]:
        np.testing.assert_array_equal(other.backlog, found[0].backlog)


def test_wfq_gives_backlogged_flows_the_same_to_a_packet_each():
    """|W_i/w_i - W_j/w_j| <= L/w_i + L/w_j over any interval (Golestani, Theorem 1): with equal weights two packets."""
    uneven = sources(*({"share": share} for share in (0.5, 0.35, 0.15)))
    link = AccessLink(link_of(discipline="wfq", regulated=uneven, interval=0.0125, duration=1))
    link.advance(inf)
    sent = [link.traffic.departed[0, 1:].copy()]
    for _ in range(40):
        link.advance(inf)
        assert (link.traffic.ring_count[0, 1:] > 0).all()
        sent.append(link.traffic.departed[0, 1:].copy())
    for i in range(len(sent)):
        for j in range(i + 1, len(sent)):
            assert np.ptp(sent[j] - sent[i]) <= 2


def test_cbq_guards_premium_traffic_within_its_share_only():
    within = run(discipline="cbq", duration=5)
    beyond = run(discipline="cbq", duration=5, premium=PremiumFlow(rate=4 * MEGA))
    assert within.premium_lost.sum() == 0
    assert within.premium_bit_per_s[1:].mean() == pytest.approx(MEGA, rel=0.01)
    assert beyond.premium_bit_per_s[1:].mean() == pytest.approx(2 * MEGA, rel=0.01)


BROKEN = {"failures": (RegulatorFailure(start=0.3, stop=0.55, rate=6e7),)}
UDP = {"hops": 2, "cross": CROSSED, "regulated": sources({}, BROKEN, {})}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [*({"discipline": name, **UDP} for name in DISCIPLINES), {"every": TCP, "hops": 2}],
    ids=[*DISCIPLINES, "tcp"],
)
def test_a_run_may_be_cut_anywhere(options):
    """At the same rate: 1 s at once, or in pieces of 10 ms, gives the same packets and averages to the bit."""
    whole, pieces = AccessLink(link_of(**options)), AccessLink(link_of(interval=0.01, **options))
    one = whole.advance(70 * MEGA)
    many = [pieces.advance(70 * MEGA) for _ in range(100)]
    assert (one.delay_ms, one.jitter_ms, one.backlog) == (many[-1].delay_ms, many[-1].jitter_ms, many[-1].backlog)
    for name in ("released", "dropped", "departed", "last"):
        np.testing.assert_array_equal(getattr(whole.traffic, name), getattr(pieces.traffic, name))
    for name in ("next", "left"):
        np.testing.assert_array_equal(getattr(whole.traffic.gates, name), getattr(pieces.traffic.gates, name))
    assert one.premium_received == sum(sample.premium_received for sample in many)
    assert one.mean_delay_ms * one.premium_received == pytest.approx(
        sum(sample.mean_delay_ms * sample.premium_received for sample in many)
    )


def test_equal_nodes_without_cross_traffic_are_one_queue_and_constants():
    one, three = (run(85 * MEGA, hops=hops, duration=20) for hops in (1, 3))
    np.testing.assert_allclose(three.mean_delay_ms - one.mean_delay_ms, 2.0 * SERVICE_MS, atol=1e-3)  # of the last ones
    np.testing.assert_allclose(three.mean_jitter_ms, one.mean_jitter_ms, atol=1e-3)
    assert (three.backlog[:, 1:] <= 1).all()
    np.testing.assert_array_equal(three.premium_lost, one.premium_lost)


def test_a_copy_goes_the_same_way_and_leaves_the_link_alone():
    link = AccessLink(access_link())
    link.advance(55 * MEGA)
    twin = link.copy()
    assert [twin.advance(80 * MEGA) for _ in range(3)] == [link.advance(80 * MEGA) for _ in range(3)]


def test_a_seed_decides_a_run():
    a, b, c = (run(55 * MEGA, duration=3, seed=seed).to_pandas() for seed in (5, 5, 6))
    assert a.equals(b)
    assert not a.equals(c)


# --- regulators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("burst", [1, 10])
@pytest.mark.parametrize("variation", [0.0, 1.0])
def test_what_is_let_through_is_what_is_commanded(variation, burst):
    rates = np.repeat([10.0, 60.0, 0.0, 30.0], 20) * MEGA
    found = run(rates, burst, duration=80, every={"pause_variation": variation})
    for start in range(0, 80, 20):
        let = found.other_bit_per_s[start + 1 : start + 20].mean()
        error = variation * sqrt(rates[start] * burst * BITS / 19.0) + burst * BITS
        assert let == pytest.approx(rates[start], abs=TOLERANCE["errors"] * error)


def test_shares_may_be_uneven_and_no_more_than_offered_is_sent():
    uneven = sources(*({"share": share, "offered": 2e7} for share in (0.5, 0.35, 0.15)))
    found = run(50 * MEGA, regulated=uneven, duration=60)
    expected = np.array([20.0, 17.5, 7.5]) * MEGA
    np.testing.assert_allclose(found.source_bit_per_s[1:].mean(axis=0), expected, rtol=0.02)
    opened = run(inf, regulated=uneven, duration=60)
    np.testing.assert_allclose(opened.source_bit_per_s[1:].mean(axis=0), 2e7, rtol=0.02)


def test_a_failed_regulator_lets_its_traffic_through_from_one_moment_to_another():
    failure = RegulatorFailure(start=20.5, stop=40.25, rate=50 * MEGA)
    found = run(30 * MEGA, regulated=sources({}, {"failures": (failure,)}, {}), duration=60)
    through = found.source_bit_per_s / MEGA
    assert through[21:40, 1].mean() == pytest.approx(50.0, rel=0.03)
    for quiet in (through[:20, 1], through[41:, 1], through[:, 0], through[:, 2]):
        assert quiet.mean() == pytest.approx(10.0, rel=0.03)


# --- TCP --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [20 * MEGA, 55 * MEGA, 90 * MEGA])
def test_tcp_behind_regulators_takes_what_they_let_through(rate):
    found = run(rate, every=TCP, hops=3, duration=30)
    assert found.other_bit_per_s[3:].mean() == pytest.approx(rate, rel=0.02)
    np.testing.assert_allclose(found.source_bit_per_s[3:].mean(axis=0), rate / 3.0, rtol=0.03)


def test_tcp_without_regulators_fills_the_link():
    found = run(inf, every=TCP, duration=10)
    assert found.utilization[2:].min() > 0.99
    assert found.other_lost[2:].min() > 0
    assert found.mean_delay_ms[2:].min() > 3.0


@pytest.mark.parametrize("rate", [15 * MEGA, 95 * MEGA, inf])
def test_tcp_loses_no_packet_without_a_record(rate):
    sender = TcpSenders(regulator_limit=9)
    link = AccessLink(link_of(every={"sender": sender}, hops=2, limit=20, interval=0.05))
    for _ in range(20):
        sample, now = link.advance(rate), link.traffic
        np.testing.assert_array_equal(now.number, now.refused + now.released[1:] + now.waiting_count)
        assert now.released.sum() == now.departed[-1].sum() + now.dropped.sum() + sum(sample.backlog)
        assert (now.flight >= 0).all()
        assert (now.window >= 1.0).all()
        assert (now.expected + now.flight == now.number).all()


def test_a_regulator_that_closes_stops_tcp_and_one_that_opens_again_lets_it_go_on():
    rates = np.repeat([40.0, 0.0, 40.0], 10) * MEGA
    found = run(rates, every=TCP, duration=30)
    assert found.other_bit_per_s[11:20].max() == 0.0
    assert found.other_bit_per_s[25:].mean() == pytest.approx(40 * MEGA, rel=0.03)


# --- CONNET's figures -------------------------------------------------------------------------------------------------

CURVE = {20: (0.464, 0.045), 40: (0.532, 0.157), 55: (0.676, 0.361), 70: (0.971, 0.656), 80: (1.434, 0.918)}
CURVE[90] = (2.564, 1.208)
BURSTS = {20: 38.7, 10: 46.0, 5: 59.1, 2: 72.8, 1: 79.9}
HIGH_LOAD = {"fifo": (3.59, 1.36), "cbq": (3.80, 0.84), "wfq": (0.763, 0.126)}


@cache
def at(rate: float, burst: int = 0, **options: Any) -> tuple[float, float]:
    """Mean delay and jitter [ms]."""
    found = run(rate * MEGA, burst, duration=300, **options)
    return float(found.mean_delay_ms.mean()), float(found.mean_jitter_ms.mean())


@pytest.mark.parametrize("rate", CURVE)
def test_characteristic_curve(rate):
    for found, expected, tolerance in zip(at(rate), CURVE[rate], TOLERANCE["curve"], strict=True):
        assert found == pytest.approx(expected, rel=tolerance)


def test_moving_averages_have_the_same_mean_and_more_noise():
    found = run(55 * MEGA, duration=600)
    for mean, moving in ((found.mean_delay_ms, found.delay_ms), (found.mean_jitter_ms, found.jitter_ms)):
        error = moving.std(ddof=1) / sqrt(len(moving))
        assert abs(moving.mean() - mean.mean()) < TOLERANCE["errors"] * error
        assert 2.0 < moving.std() / mean.std() < 4.0


@pytest.mark.parametrize("burst", BURSTS)
def test_smaller_bursts_allow_higher_rates(burst):
    """The rate at which the delay is 0.6 ms, within 6 %."""
    assert at(0.94 * BURSTS[burst], burst)[0] < 0.6 < at(1.06 * BURSTS[burst], burst)[0]


def test_even_packets_have_no_curve():
    delays = [
        np.mean([run(rate * MEGA, 1, every=EVEN, duration=3, seed=seed).mean_delay_ms for seed in range(5)])
        for rate in (20, 55, 90)
    ]
    assert max(delays) < 0.36 + 3.0 * SERVICE_MS
    assert at(90.0)[0] > 2.0


@pytest.mark.parametrize("discipline", HIGH_LOAD)
def test_peers_under_high_load(discipline):
    found = run(95 * MEGA, hops=3, discipline=discipline, duration=100)
    pairs = zip((found.mean_delay_ms, found.mean_jitter_ms), HIGH_LOAD[discipline], strict=True)
    for values, expected in pairs:
        assert values.mean() == pytest.approx(expected, rel=TOLERANCE["peers"])


def test_connets_own_point_under_high_load_needs_a_fifth_of_the_traffic():
    assert at(18.0, hops=3) == pytest.approx((0.620, 0.038), rel=0.04)


def test_an_uncontrolled_link_reaches_eight_milliseconds():
    """Fig. 15(b): up to 8 ms; 100 packets of 0.08 ms, and what the base adds."""
    found = run(duration=5)
    assert 8.0 < found.mean_delay_ms[1:].mean() < 8.36


# --- with a controller, records and refusals --------------------------------------------------------------------------


def test_a_controller_sees_a_period_and_sets_the_next():
    seen: list[AccessLinkSample] = []

    def follow(sample: AccessLinkSample) -> tuple[float, int]:
        seen.append(sample)
        return 1e6 * len(seen), 5

    found = control_access_link(access_link(duration=4), follow, first_rate_bit_per_s=7e6)
    np.testing.assert_array_equal(found.rate_bit_per_s, [7e6, 1e6, 2e6, 3e6])
    np.testing.assert_array_equal(found.burst, [0, 5, 5, 5])
    np.testing.assert_array_equal(found.delay_ms, [sample.delay_ms for sample in seen])
    replayed = simulate_access_link(access_link(duration=4), found.rate_bit_per_s, found.burst)
    assert replayed.to_pandas().equals(found.to_pandas())


def test_integral_action_brings_the_delay_to_its_reference():
    rate = 0.0

    def integral(sample: AccessLinkSample) -> float:
        nonlocal rate
        rate = min(max(rate + 20.0 * MEGA * (0.6 - sample.mean_delay_ms), 0.0), 95.0 * MEGA)
        return rate

    found = control_access_link(access_link(duration=120), integral)
    assert found.mean_delay_ms[40:].mean() == pytest.approx(0.6, abs=0.01)


def test_a_result_is_a_table_and_shows_itself():
    found = run(55 * MEGA, duration=5, hops=2, name="<link>")
    frame = found.to_pandas()
    assert len(frame) == 5
    assert {"time_s", "delay_ms", "jitter_ms", "backlog_1", "source_2_bit_per_s"} <= set(frame.columns)
    np.testing.assert_array_equal(frame["time_s"], np.arange(1.0, 6.0))
    assert "&lt;link&gt;" in found._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        found.delay_ms[0] = 0.0


def test_a_period_without_premium_packets_keeps_the_average():
    link = AccessLink(link_of(premium=PremiumFlow(rate=8e3), interval=0.5))
    samples = [link.advance(0.0) for _ in range(4)]
    assert [sample.premium_received for sample in samples].count(0) == 2
    for before, sample in pairwise(samples):
        if not sample.premium_received:
            assert (sample.mean_delay_ms, sample.delay_ms) == (before.delay_ms, before.delay_ms)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"capacity": 0.0}, "capacity"),
        ({"capacity": "100"}, "capacity"),
        ({"hops": 0}, "hops"),
        ({"limit": 0}, "limit"),
        ({"limit": 2.5}, "limit"),
        ({"discipline": "red"}, "discipline"),
        ({"premium_share": 1.0}, "premium_share"),
        ({"premium": PremiumFlow(rate=2e8)}, "flows.premium.rate"),
        ({"packet_size": nan}, "packet_size"),
        ({"regulated": ()}, "flows"),
        ({"regulated": sources({})}, "flows"),
        ({"regulated": sources({"share": 0.5}, {"share": 0.5}) * 2}, "flows[3].id"),
        ({"regulated": sources({"share": 1.0, "count": 1000}) + sources({})}, "flows[2].id"),
        ({"regulated": sources({"share": 0.5, "count": 600}, {"share": 0.5, "count": 600})}, "flows"),
        ({"regulated": (PremiumFlow(id="other"),)}, "flows"),
        ({"flows": sources({}, {}, {})}, "flows"),
        ({"flows": ()}, "flows"),
        ({"flows": 3}, "flows"),
        ({"flows": (Flow(id="bulk", path=("l",), rtt=0.1, count=1),)}, "flows"),
        ({"control": StaticPacing()}, "control"),
        ({"warmup": 1.0}, "warmup"),
        ({"step": 0.1}, "step"),
        ({"regulated": sources({"share": 1.0, "offered": 3e8})}, "flows.source0.offered"),
        ({"base_delay": -1.0}, "base_delay"),
        ({"cross": crossing({"hop": 1, "rate": 1e6})}, "flows.cross0.hop"),
        ({"cross": crossing({"hop": 0, "rate": 1e9})}, "flows.cross0.rate"),
        ({"every": {"failures": (RegulatorFailure(start=0, stop=1, rate=1e9),)}}, "flows.source0.failures[0].rate"),
        ({"every": {"failures": (RegulatorFailure(start=0, stop=9, rate=1e6),) * 2}}, "failures[1].start"),
        ({"every": {"sender": "tcp"}}, "sender"),
        ({"every": TCP, "discipline": "wfq"}, "flows.source0.sender"),
        ({"every": TCP, "cross": crossing({"hop": 0, "rate": 1e6})}, "flows.source0.sender"),
        ({"every": TCP, "regulated": sources({}, {}, BROKEN)}, "flows.source2.sender"),
        ({"regulated": sources({}, TCP, {})}, "flows.source1.sender"),
        ({"interval": 0.0}, "interval"),
        ({"duration": 1.5}, "duration"),
        ({"seed": -1}, "seed"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_scenario_refuses_by_name(options, named):
    with pytest.raises(InvalidValue) as refusal:
        link_of(**options)
    assert refusal.value.argument == named


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: PremiumFlow(size=0), "size"),
        (lambda: RegulatedFlows(id="a", count=0), "count"),
        (lambda: RegulatedFlows(id="a", burst=0), "burst"),
        (lambda: RegulatedFlows(id="a", share=0.0), "share"),
        (lambda: RegulatedFlows(id="a", pause_variation=1.1), "pause_variation"),
        (lambda: RegulatorFailure(start=2, stop=2, rate=1e6), "stop"),
        (lambda: CrossFlow(id="a", hop=-1, rate=1e6), "hop"),
        (lambda: TcpSenders(timeout=1e-3), "timeout"),
        (lambda: run(-1.0), "rate_bit_per_s"),
        (lambda: run(nan), "rate_bit_per_s"),
        (lambda: run("55M"), "rate_bit_per_s"),
        (lambda: run([1e6, 2e6]), "rate_bit_per_s"),
        (lambda: run(1e6, 1.5), "burst"),
        (lambda: run(1e6, -1), "burst"),
        (lambda: control_access_link(access_link(), lambda sample: -1.0), "rate_bit_per_s"),
    ],
)
def test_what_can_not_be_used_is_refused_by_name(build, named):
    with pytest.raises(InvalidValue) as refusal:
        build()
    assert refusal.value.argument == named


def test_text_with_units_is_read():
    premium = PremiumFlow(rate="2Mbit", size="200B")
    found = link_of(capacity="90Mbit", premium=premium, base_delay="2ms", interval="500ms", packet_size="1kB")
    parts = access_parts(found)
    assert (parts.line.capacity, parts.line.base_delay, parts.packet_size) == (9e7, 2e-3, 1000.0)
    assert (premium.rate, premium.size) == (2e6, 200.0)
    assert found.steps == 200


# --- the steps --------------------------------------------------------------------------------------------------------


def test_steps():
    assert departure(3.0, 5.0, 2.0) == 7.0
    assert departure(6.0, 5.0, 2.0) == 8.0
    assert pause_mean(0.0, 10, 8.0, 1.0) == inf
    assert pause_mean(2.0, 10, 8.0, 1.0) == 31.0
    assert window_after_ack(4.0, 10.0) == 5.0
    assert window_after_ack(4.0, 4.0) == 4.25
    assert [window_after_loss(window) for window in (10.0, 3.0)] == [5.0, 2.0]
