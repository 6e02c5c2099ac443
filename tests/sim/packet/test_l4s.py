"""PI2, DualPI2 and TCP Prague on packets: against a plain computation, closed forms, and Linux 7.2."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from dual_queue import ECT0, ECT1, NOT_ECT, DualQueue
from histories import shares
from link_queues import run

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.evaluation.case import plan_case
from netctrl.evaluation.rfc7928 import ENTRIES
from netctrl.laws.aqm.fluid import SCALABLE_PROBABILITY, column
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import PI2, Pi2Queue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.dctcp import DctcpState
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import CLASSIC_ECN, FLOW, LINK, META, NO_ECN, SCALABLE_ECN, PacketState

SIZE = 1500
UNMARKED = list(fields_of(DctcpState)).index("unmarked")


def link(queue, rate=4e7, **changed) -> Link:
    return Link(**{"id": "line", "source": "a", "target": "b", "capacity": rate, "queue": queue} | changed)


def bulk(name: str, sender: str, rtt: float, count: int = 1, **changed) -> Flow:
    return Flow(id=name, path=("line",), rtt=rtt, count=count, sender=sender, **changed)


def scenario(links, *flows, duration=30.0, interval=0.01, packet_size=SIZE, **changed) -> Scenario:
    links = links if isinstance(links, tuple) else (links,)
    whole = {"name": "l4s", "duration": duration, "interval": interval, "packet_size": float(packet_size)}
    return Scenario(**whole, links=links, flows=flows, **changed)


# --- a plain second computation ---------------------------------------------------------------------------------------

SERVICE_NS, END_NS, LIMIT = 80_000, 10_000_000_000, 500
# Loads in packets a service time, starts and stops [s], codepoints: calm, congested, overloaded, full, and calm again.
TRAFFIC = [
    (0.45, 0.0, 10.0, ECT1),
    (0.40, 0.3, 10.0, ECT0),
    (0.20, 0.6, 9.5, NOT_ECT),
    (0.70, 2.0, 3.0, ECT1),
    (0.30, 4.0, 6.0, ECT0),
    (2.00, 7.0, 7.6, NOT_ECT),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_each_packet_has_the_fate_that_rfc_9332_s_algorithm_gives_it(seed):
    """110,000 packets of evenly spaced datagrams with the same random numbers: each sample is a packet's time."""
    rate = SIZE * 8e9 / SERVICE_NS
    flows = [
        Flow(id=f"u{k}", start=at, stop=until, offers=Stream(rate=load * rate, spacing="constant"))
        for k, (load, at, until, _) in enumerate(TRAFFIC)
    ]
    line = link(DualPi2Queue(), rate, buffer=LIMIT * SIZE)
    ready = packet_problem(scenario(line, *flows, duration=10.0, interval=SERVICE_NS / 1e9, seed=seed))
    flow, codepoints = ready.state.flow, [codepoint for *_, codepoint in TRAFFIC]
    flow[:, FLOW["ecn"]] = [{NOT_ECT: NO_ECN, ECT0: CLASSIC_ECN, ECT1: SCALABLE_ECN}[each] for each in codepoints]
    came = []
    for start, f in zip(ready.state.agenda[:, 0], ready.state.agenda[:, 2], strict=True):
        stop = min(flow[f, FLOW["stop"]], END_NS)
        came += [(int(time), int(f), SIZE) for time in range(start, stop, flow[f, FLOW["gap"]])]
    plain = DualQueue(codepoints, LIMIT * SIZE, SIZE, shares(int(ready.state.random[0])).__next__)
    run(plain, sorted(came), SERVICE_NS, SIZE, END_NS)
    state = run_packets(ready, 10.0)

    def counted(*kinds: str, of: int | None = None) -> np.ndarray:
        times = [time for time, f, kind in plain.fates if kind in kinds and of in (None, f)]
        return np.bincount(np.array(times, dtype=int) // SERVICE_NS, minlength=125_000)[:125_000]

    _, arrived, departed, lost, marked = (np.diff(each[0], prepend=0.0) / SIZE for each in state.series[:5])
    np.testing.assert_array_equal(marked, counted("mark"))
    np.testing.assert_array_equal(lost, counted("drop", "full"))
    np.testing.assert_array_equal(departed, counted("mark", "send"))
    ended = {f: counted("drop", "full", of=f).sum() * SIZE for f in range(len(TRAFFIC))}
    assert flow[:, FLOW["dropped"]].tolist() == list(ended.values())
    assert arrived.sum() > 100_000
    assert plain.regimes == {"step", "coupled", "overload"}
    assert min(counted(kind).sum() for kind in ("mark", "drop", "full")) > 300
    assert state.meta[META["live"]] + state.meta[META["left"]] == len(state.packet)


# --- rates under a probability ----------------------------------------------------------------------------------------


def under(base: float, *flows: Flow, coupling: float = 2.0, duration: float = 200.0) -> PacketState:
    """PI2 whose p' doesn't move, on a link on which nothing waits."""
    queue = Pi2Queue(alpha=1e-9, beta=0.0, coupling=coupling)
    ready = packet_problem(scenario(link(queue, 1e10), *flows, duration=duration, interval=1.0))
    for name, value in (("base_probability", base), ("probability", base**2)):
        ready.state.queue[0, column(PI2, name)] = value
    ready.state.queue[0, SCALABLE_PROBABILITY] = coupling * base
    return run_packets(ready, 10.0)


def windows(state: PacketState, rtt: float) -> np.ndarray:
    """Mean windows of each group's flows, after a tenth of the time [packet]."""
    first = state.carried.shape[1] // 10
    seconds = state.carried.shape[1] - first
    flows = np.bincount(state.flow[:, FLOW["group"]])
    return (state.carried[:, -1] - state.carried[:, first - 1]) / (SIZE - 40) / seconds * rtt / flows


def prague_window(p: float) -> float:
    """(W + 1/p)(1 - p) = p W²/2 (`netctrl.laws.tcp.prague`)."""
    return ((1.0 - p) + sqrt((1.0 - p) ** 2 + 2.0 * (1.0 - p))) / p


def reno_window(q: float) -> float:
    """Mean window where each packet is marked with q on its own: c/√q, c = 1.31 (Ott, Kemperman, Mathis 1996), less the
    round trip after a cut in which it doesn't grow: (1/q + a)/(1 + a) with a = √(1/q)/c, the window after a cut.

    c by chance: between two cuts W²/2 grows by 1 a packet, and at a cut it is quartered; W is half of what it was then,
    and as many round trips pass as packets it grows by.
    """
    random, grown = np.random.default_rng(1), np.zeros(200_000)
    for _ in range(20):
        grown = grown / 4.0 + random.exponential(size=len(grown))
    c = 1.0 / (0.5 * np.sqrt(2.0 * grown)).mean()
    assert c == pytest.approx(1.3098, rel=2e-3)
    a = 1.0 / (c * sqrt(q))
    return (1.0 / q + a) / (1.0 + a)


@pytest.mark.slow
@pytest.mark.parametrize("base", [0.005, 0.01, 0.02])
def test_coupled_probabilities_give_reno_and_prague_like_rates(base):
    """Of equal round trips, 30 ms: Prague (1 + √3)/(2 p'), Reno 1.31/p' packets, so that their ratio is 1.04 for small
    p', whatever p' is. Both marked with one probability p it would be 2.1/√p, 15 to 30 here."""
    found = windows(under(base, bulk("l", "prague", 0.03, 20), bulk("c", "reno", 0.03, 20)), 0.03)
    assert found[0] == pytest.approx(prague_window(2.0 * base), rel=0.03)
    assert found[1] == pytest.approx(reno_window(base**2), rel=0.03)
    assert found[0] / found[1] == pytest.approx((1.0 + sqrt(3.0)) / 2.0 / 1.31, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", [1.0, 4.0])
def test_the_coupling_factor_sets_the_ratio(coupling):
    found = windows(under(0.01, bulk("l", "prague", 0.03, 10), coupling=coupling), 0.03)
    assert found[0] == pytest.approx(prague_window(0.01 * coupling), rel=0.04)


@pytest.mark.slow
def test_prague_s_rate_does_not_depend_on_short_round_trips():
    """Below 25 ms its window is in proportion to the round trip; from there on it is the same."""
    for rtt in (0.005, 0.0125, 0.025, 0.05):
        found = windows(under(0.01, bulk("l", "prague", rtt, 10)), rtt)
        assert found[0] == pytest.approx(prague_window(0.02) * min(rtt / 0.025, 1.0), rel=0.04)


def test_prague_has_dctcp_s_average_of_marks():
    """alpha follows the probability, with a standard deviation of some √(p g/(2 W)) from p."""
    state = under(0.02, bulk("l", "prague", 0.05, 20))
    alpha = 1.0 - state.window[:, UNMARKED]
    assert alpha.mean() == pytest.approx(0.04, rel=0.1)
    assert alpha.std() < 0.012


def test_prague_is_cut_by_the_first_mark_after_a_round_trip():
    """Of W + 1/p packets one cuts: of the marks, which are p of all, one in p W + 1."""
    state = under(0.01, bulk("l", "prague", 0.05, 20))
    packets = state.flow[:, FLOW["received"]] / (SIZE - 40)
    cuts = state.flow[:, FLOW["cuts"]] / packets
    assert cuts.mean() == pytest.approx(1.0 / (prague_window(0.02) + 1.0 / 0.02), rel=0.04)


def test_prague_is_halved_by_a_loss_and_falls_back_to_reno_without_marks():
    """Without ECN all that reaches it is loss: Reno's window at p'² from 25 ms on."""
    state = under(0.02, bulk("l", "prague", 0.03, 10, ecn=False), bulk("c", "reno", 0.03, 10, ecn=False))
    found = windows(state, 0.03)
    assert state.link[0, LINK["marked"]] == 0
    assert found[0] == pytest.approx(found[1], rel=0.05)


# --- two queues -------------------------------------------------------------------------------------------------------


def delays(sender: str, rate: float, rtt: float, **changed) -> tuple[np.ndarray, float]:
    """Queueing delays of a group beside nothing, 1 ms by 1 ms [s], and the utilization."""
    whole = scenario(link(DualPi2Queue(), rate, **changed), bulk("l", sender, rtt), interval=1e-3, warmup=5.0)
    result = simulate_packets(whole)
    found = result.series["rtt"][0, 5000:]
    return found[found > 0.0] - rtt - SIZE * 8.0 / rate, result.between(5.0)["utilization", result.links[0]]


@pytest.mark.parametrize("rtt", [0.005, 0.02, 0.05])
def test_a_prague_flow_alone_waits_for_the_step_and_fills_the_link(rtt):
    """At 40 Mbit/s a packet takes .3 ms, so the step of 1 ms acts from the fourth packet on; a mark takes a round trip
    to return, in which the window grows by at most one packet."""
    found, utilization = delays("prague", 4e7, rtt)
    packet = SIZE * 8.0 / 4e7
    assert np.quantile(found, 0.5) < 1.0e-3 + 1e-9
    assert np.quantile(found, 0.99) < 1.0e-3 + 2.0 * packet
    # A cut takes √(W/2) packets (Alizadeh et al. 2010), of which three wait before the step: at 50 ms more than these.
    assert utilization > (0.999 if rtt < 0.05 else 0.95)


def test_a_reno_flow_alone_waits_for_the_target():
    found, utilization = delays("reno", 4e7, 0.02)
    assert 0.005 < found.mean() < 0.02
    assert utilization > 0.98


def test_prague_beside_cubic_keeps_its_delay_and_shares_the_link():
    """RFC 9332, section 1.1: like rates in two queues of unlike delays."""
    flows = bulk("l", "prague", 0.01, 2), bulk("c", "cubic", 0.01, 2)
    result = simulate_packets(scenario(link(DualPi2Queue()), *flows, duration=60.0, interval=0.01))
    late = result.series["rtt"][:, 1500:]
    waits = late.mean(axis=1) - 0.01 - SIZE * 8.0 / 4e7
    assert waits[0] < 1e-3 < 0.01 < waits[1] < 0.02
    carried = result.series["payload"][:, 1500:].sum(axis=1)
    assert 0.5 < carried[0] / carried[1] < 2.0
    assert result.between(15.0)["utilization", result.links[0]] > 0.99
    assert result.series["lost"][0, 1500:].sum() == 0.0


@pytest.mark.parametrize(("least", "marked"), [(0, 2), (1, 1), (2, 0)])
def test_the_step_applies_to_packets_that_find_enough_others(least, marked):
    """Three scalable packets at once, each of which takes 3 ms: the second finds none waiting, the third finds one."""
    offers = Stream(rate=SIZE * 8.0 / 0.05, spacing="constant")
    flows = [Flow(id=f"u{k}", offers=offers) for k in range(3)]
    ready = packet_problem(scenario(link(DualPi2Queue(step_packets=least), 4e6), *flows, duration=5.01))
    ready.state.flow[:, FLOW["ecn"]] = SCALABLE_ECN
    ready.state.agenda[:, 0] = (0, 1000, 2000)
    state = run_packets(ready, 10.0)
    assert state.link[0, LINK["packets"]] == 3 * 101
    assert state.link[0, LINK["marked"]] == marked * SIZE * 101


def test_what_was_marked_before_is_in_the_l_queue():
    """CE is taken for scalable (RFC 9331, section 5.1): datagrams that a link before has marked don't wait."""
    before = Link(id="before", source="o", target="a", capacity=2e7, queue=ThresholdQueue(threshold=1), buffer=6e4)
    line = link(DualPi2Queue(), 4e7)
    flows = (
        Flow(id="marked", path=("before", "line"), count=1, offers=Stream(rate=2.5e7)),
        Flow(id="plain", path=("line",), count=1, offers=Stream(rate=3e7)),
    )
    result = simulate_packets(scenario((before, line), *flows, duration=5.0))
    half = result.series["marked"][0, 100:].sum()
    assert half > 0.9 * result.series["departed"][0, 100:].sum()
    assert result.series["one_way"] is not None
    behind = result.series["one_way"][0, 100:].mean() - 6e4 * 8.0 / 2e7  # the first link's buffer is full
    assert behind < 2e-3
    assert result.series["one_way"][1, 100:].mean() > 0.01


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_classic_queue_is_not_starved(share):
    """Scalable datagrams that alone would fill the link: the C queue has its share, whatever its delay."""
    flows = [Flow(id=name, offers=Stream(rate=4.8e7, spacing="constant")) for name in "lc"]
    queue = DualPi2Queue(alpha=1e-9, beta=0.0, protection=share)
    ready = packet_problem(scenario(link(queue, 4e7, buffer=1e9), *flows, duration=10.0))
    ready.state.flow[0, FLOW["ecn"]] = SCALABLE_ECN
    state = run_packets(ready, 10.0)
    carried = np.diff(state.carried[:, [300, -1]])[:, 0]
    assert carried[1] / carried.sum() == pytest.approx(share, abs=2e-3)


# --- the single queue, other engines ----------------------------------------------------------------------------------


def test_fluid_and_packets_have_the_same_pi2():
    """Ten Reno flows over PI2: the fluid's probability and queue are the packets' within the error of single flows."""
    whole = scenario(link(Pi2Queue(), 2e7, buffer=1e6), bulk("r", "reno", 0.1, 10), duration=120.0, interval=0.1)
    fluid, packet = netctrl.simulate(whole, "fluid"), netctrl.simulate(whole, "packet")
    late = slice(400, None)
    assert packet.series["backlog"][0, late].mean() == pytest.approx(fluid.series["backlog"][0, late].mean(), rel=0.15)
    assert packet.series["probability"][0, late].mean() == pytest.approx(
        fluid.series["probability"][0, late].mean(), rel=0.25
    )
    assert fluid.series["backlog"][0, late].mean() == pytest.approx(0.015 * 2e7 / 8.0, rel=0.05)


def test_linux_7_2_s_backlog_under_ten_reno_flows():
    """Measured in the kernel in virtual time behind 20 Mbit/s, each 100 ms over 36 s, base round trip 20 ms:
    39.8 ± 12.7 kB."""
    flows = bulk("r", "reno", 0.02, 10, start=("0s", "1s"))
    result = simulate_packets(scenario(link(DualPi2Queue(), 2e7, buffer=1.5e6), *(flows,), duration=40.0, interval=0.1))
    backlog = result.series["backlog"][0, 40:]
    assert backlog.mean() == pytest.approx(39.8e3, rel=0.1)
    assert backlog.std() == pytest.approx(12.7e3, rel=0.2)


def test_engines_without_them_say_so():
    with pytest.raises(InvalidValue, match=r"prague.*packet.*which has it"):
        netctrl.simulate(scenario(link(Pi2Queue()), bulk("l", "prague", 0.02)), "kernel")
    with pytest.raises(InvalidValue, match=r"cap.*packet.*which has it"):
        netctrl.simulate(scenario(link(DualPi2Queue()), bulk("l", CapSender(rate=1e9, window="prague"), 0.02)), "ns3")


@pytest.mark.parametrize(("step", "low", "high"), [(1e-3, 0.12, 0.25), (5e-3, 0.44, 0.56)])
def test_a_step_shorter_than_a_packet_s_time_takes_prague_s_share(step, low, high):
    """Four Prague and four Cubic flows at 10 Mbit/s: a packet takes 1.2 ms. Marks by coupling alone share the link."""
    (case,) = next(entry for entry in ENTRIES if entry.section == "4.5 (RFC 9332)").cases
    found = simulate_packets(plan_case(case.faster(0.5), DualPi2Queue(step=step)).scenario)
    carried = found.series["payload"][:, found.time_s > 10.0].sum(axis=1)
    assert low < carried[:4].sum() / carried.sum() < high
