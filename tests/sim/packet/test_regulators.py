"""Flows whose rates change or are set by a control: event by event a second way, laws of conservation, M/D/1."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from histories import shares
from regulated_flows import Flow as PlainFlow
from regulated_flows import Hop, Tandem

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.design.connet.design import connet
from netctrl.engines.case import case_of
from netctrl.engines.engine import supports
from netctrl.kernel.scenarios.lacks import scenario_lacks
from netctrl.laws.rate.regulated import RegulatedSender
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.datasets import model_path
from netctrl.model.identified import read_model
from netctrl.scenario.builders import access_link
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.track import Track, infeasible
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.lacks import packet_only
from netctrl.scenario.tcp_aqm.offers import Bursts, Stream
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets, simulate_rates
from netctrl.sim.packet.state import AVERAGE_DELAY, AVERAGE_JITTER, FLOW, LINK, META, PACKET
from netctrl.sim.packet.tracking import RegulatedRun

SIZE = 1000
LAW = connet(read_model(model_path("connet-paper")), track="delay", limits=[(0.0, 95.0)])


def running(scenario: Scenario, interval: float) -> RegulatedRun:
    return RegulatedRun(scenario, packet_problem(scenario), interval)


def premium(path: tuple[str, ...] = ("hop0",), rate: float = 1e6) -> Flow:
    return Flow(id="premium", path=path, ecn=False, offers=Stream(rate=rate, spacing="constant"))


# --- event by event ---------------------------------------------------------------------------------------------------


def tandem(scenario: Scenario, state) -> Tandem:
    """The oracle's flows and links of a scenario, with the beginnings and the generators of the engine's."""
    hops = [Hop(link.capacity, round(link.delay * 1e9), round(link.buffer)) for link in scenario.links]
    place = {link.id: h for h, link in enumerate(scenario.links)}
    flows = []
    for f, row in enumerate(state.flow):
        group = scenario.flows[row[FLOW["group"]]]
        single = isinstance(group.offers, Stream)
        flows.append(
            PlainFlow(
                first=place[group.path[0]],
                last=place[group.path[-1]],
                size=SIZE,
                rate=group.offers.rate,
                burst=1 if single else group.offers.burst,
                within=1 if single else round(8e9 * SIZE / group.offers.access_rate),
                variation=0.0 if single else group.offers.pause_variation,
                start=int(row[FLOW["start"]]),
                begins=int(row[FLOW["opens"]]),
                draws=shares(int(state.random[len(scenario.links) + f])),
            )
        )
    index = {group.id: g for g, group in enumerate(scenario.flows)}
    changes = [
        (round(change.at * 1e9), int(f), change.rate)
        for change in scenario.changes
        for f in np.flatnonzero(state.flow[:, FLOW["group"]] == index[change.flow])
    ]
    return Tandem(hops, flows, sorted(changes, key=lambda each: each[0]))


def crowded(random: np.random.Generator, hops: int) -> Scenario:
    """Groups over all hops and cross traffic; every second one without chance, on a grid of times that makes ties."""
    path = tuple(f"hop{k}" for k in range(hops))
    links = [
        Link(id=name, source=f"n{k}", target=f"n{k + 1}", capacity=1e8, delay=80e-6 * k, buffer=8 * SIZE)
        for k, name in enumerate(path)
    ]
    flows = [premium(path)]
    for g in range(4):
        offers = Bursts(
            rate=float(random.integers(2, 5)) * 1e7,
            burst=int(random.integers(1, 12)),
            pause_variation=(0.0, 1.0, 0.4)[g % 3],
            access_rate=(1e8, 5e7)[g % 2],
        )
        crosses = path if g < 3 else (path[-1],)
        count, start = int(random.integers(1, 4)), (0.0, 0.0, 0.055, 0.02)[g]
        flows.append(Flow(id=f"g{g}", path=crosses, ecn=False, count=count, offers=offers, start=start))
    at = np.sort(random.choice(np.arange(1, 400), 12, replace=False)) * 1e-3
    changes = [
        Change(at=float(time), flow=f"g{k % 4}", rate=None if k % 3 == 2 else float(random.integers(0, 6)) * 4e6)
        for k, time in enumerate(at)
    ]
    control = Track(flows=("g0", "g1", "g2"), shares=(0.5, 0.3, 0.2))
    return Scenario(
        links=links, flows=flows, changes=changes, control=control, packet_size=SIZE, duration=0.4, interval=0.1,
        seed=int(random.integers(1 << 30)),
    )  # fmt: skip


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_each_packet_goes_as_a_plain_event_list_says(seed, hops):
    """40 periods of commanded rates and bursts, 12 changes that hold rates for a while: counts and delays of each flow,
    and the measured flow's averages, to the last nanosecond."""
    random = np.random.default_rng([seed, hops])
    scenario = crowded(random, hops)
    run = running(scenario, 0.01)
    plain = tandem(scenario, run.state)
    groups = run.state.flow[:, FLOW["group"]]
    count = {g: int(np.count_nonzero(groups == g)) for g in (1, 2, 3)}
    share = {1: 0.5, 2: 0.3, 3: 0.2}
    for k in range(40):
        rate = (0.0, 2e7, np.inf, 6e7, 6e7, 9e7, 1.2e8)[int(random.integers(7))]
        burst = int(random.integers(1, 15))
        rates = {
            f: min(rate * (share[g] / count[g]), scenario.flows[g].offers.rate)
            for f, g in enumerate(groups.tolist())
            if g in share
        }
        plain.command(k * 10_000_000, rates, burst)
        found = run.advance(rate, burst)
        plain.advance((k + 1) * 10_000_000)
        flow = run.state.flow
        assert flow[:, FLOW["sent"]].tolist() == [each.sent for each in plain.flows]
        assert (flow[:, FLOW["dropped"]] // SIZE).tolist() == [each.lost for each in plain.flows]
        assert flow[:, FLOW["received"]].tolist() == [len(each.delays) for each in plain.flows]
        assert flow[:, FLOW["delays"]].tolist() == [sum(each.delays) for each in plain.flows]
    delays = plain.flows[0].delays
    average, jitter = float(delays[0]), 0.0
    for before, each in pairwise(delays):
        average += (each - average) / 8.0
        jitter += (abs(each - before) - jitter) / 8.0
    assert (found.delay_ms, found.jitter_ms) == pytest.approx((average / 1e6, jitter / 1e6), rel=1e-12)
    assert sum(each.lost for each in plain.flows) > 0
    assert run.state.flow[:, FLOW["sent"]].sum() > 500


# --- laws -------------------------------------------------------------------------------------------------------------


def poisson(count: int = 8, **fields) -> Scenario:
    """Flows of single packets with exponential pauses, which are Poisson traffic, beside few premium packets."""
    offers = Bursts(rate=1e8 / count, burst=1, access_rate=1e8)
    others = Flow(id="others", path=("hop0",), ecn=False, count=count, offers=offers)
    return access_link(
        **{"flows": (premium(), others), "limit": 100_000, "base_delay": 0.0, "duration": 40.0, "interval": 20.0,
           "control": Track()} | fields
    )  # fmt: skip


def test_waits_are_those_of_an_m_d_1_queue_at_the_commanded_rates():
    """S (1 + ρ/(2 (1 − ρ))) of Pollaczek and Khinchine at 29 and then 69 Mbit/s of Poisson traffic.

    Premium packets see the mean of the work in the queue; 8 ms apart they don't see each other.
    """
    delays = []
    for seed in range(12):
        run = running(poisson(seed=seed), 20.0)
        delays.append([run.advance(rate).mean_delay_ms for rate in (29e6, 69e6)])
    found, scatter = np.mean(delays, axis=0), np.std(delays, axis=0, ddof=1) / np.sqrt(12)
    load = np.array([0.29, 0.69])
    expected = 0.08 * (1.0 + load / (2.0 * (1.0 - load)))
    assert (abs(found - expected) < 3.0 * scatter).all()
    assert (scatter < 0.01 * expected).all()


@pytest.mark.parametrize("variation", [0.0, 1.0])
def test_what_is_let_through_is_what_the_rates_say(variation):
    """Sent bytes over the integral of the commanded rates, within a burst of each flow without chance; nothing is lost
    on the way: sent packets were received, dropped, or are under way."""
    offers = Bursts(rate=2e7, burst=5, pause_variation=variation, access_rate=1e8)
    group = Flow(id="others", path=("hop0",), ecn=False, count=6, offers=offers)
    scenario = access_link(flows=(premium(), group), limit=20, control=Track(), duration=20.0)
    run, random, total = running(scenario, 0.05), np.random.default_rng(5), 0.0
    for _ in range(400):
        rate = float(random.choice([0.0, 1e6, 3e7, 9e7, 1.1e8]))
        run.advance(rate)
        total += rate * 0.05
    flow = run.state.flow
    sent = flow[1:, FLOW["sent"]] * 8.0 * SIZE
    assert abs(sent - total / 6).max() <= 8 * SIZE * 5 * (1.0 if variation == 0.0 else 4.0 * np.sqrt(total / 6 / 4e4))
    known = flow[:, FLOW["received"]].sum() + flow[:, FLOW["dropped"]].sum() // SIZE + run.state.meta[META["live"]]
    assert flow[:, FLOW["sent"]].sum() == known
    assert flow[1:, FLOW["dropped"]].sum() > 0


def test_commands_that_say_nothing_new_change_nothing():
    """A command each 10 ms of the rates and bursts that the flows have is none, and so is a division into periods."""
    scenario = access_link(control=Track(), duration=2.0, seed=7)
    often, once, free = (running(scenario, interval) for interval in (0.01, 2.0, 2.0))
    for _ in range(200):
        often.advance(3e8, 10)
    once.advance(np.inf)
    free.advance_to(2_000_000_000)
    for run in (often, once):
        for name in ("sent", "received", "dropped", "delays", "opens"):
            assert (run.state.flow[:, FLOW[name]] == free.state.flow[:, FLOW[name]]).all()
        assert (run.state.link == free.state.link).all()
        averages = run.state.regulated[0, [AVERAGE_DELAY, AVERAGE_JITTER]]
        assert (averages == free.state.regulated[0, [AVERAGE_DELAY, AVERAGE_JITTER]]).all()


def test_a_flow_at_rate_0_is_silent_and_goes_on_where_it_was():
    """Two seconds of silence in the middle of a pause move all later packets by two seconds."""
    group = Flow(id="others", path=("hop0",), offers=Bursts(rate=1e6, burst=3, pause_variation=1.0), ecn=False)
    plain = access_link(flows=(premium(), group), duration=20.0, seed=3)
    state = packet_problem(plain).state
    draws = shares(int(state.random[1 + 1]))
    times, time = [], int(state.flow[1, FLOW["opens"]])
    while time < 16_000_000_000:
        times += [time, time + 80_000, time + 160_000]
        time = times[-1] + max(round((24e6 - 160_000) * -np.log(1.0 - next(draws))), 1)
    silent = next(k for k in range(30, len(times), 3) if times[k] - times[k - 1] > 20_000_000)
    at = (times[silent] - 10_000_000) / 1e9
    changes = [Change(at=at, flow="others", rate=0.0), Change(at=at + 2.0, flow="others")]
    run = run_packets(packet_problem(plain.replace(changes=changes, interval=0.001, warmup=0.0)), 10.0)
    came = np.diff(run.series[1, 0], prepend=0.0) - np.diff(
        run_packets(packet_problem(plain.replace(flows=(premium(),), interval=0.001)), 10.0).series[1, 0], prepend=0.0
    )
    expected = np.array(times) + 2_000_000_000 * (np.arange(len(times)) >= silent)
    counted = np.bincount(-(-expected // 1_000_000), minlength=20_001)[1:20_001]
    assert (came[:16_000] / SIZE == counted[:16_000]).mean() > 0.999  # but for packets at a reading's very time
    assert came[:18_000].sum() == SIZE * np.count_nonzero(expected < 18_000_000_000)


def test_a_changed_rate_holds_whatever_is_commanded():
    group = Flow(id="others", path=("hop0",), ecn=False, offers=Bursts(rate=5e7, burst=10, pause_variation=0.0))
    changes = [Change(at=1.0, flow="others", rate="20Mbit"), Change(at=3.0, flow="others")]
    scenario = access_link(flows=(premium(), group), control=Track(), duration=4.0, changes=changes)
    run = running(scenario, 0.5)
    rates = [run.advance(4e7).other_bit_per_s for _ in range(8)]
    assert rates == pytest.approx([4e7] * 2 + [2e7] * 4 + [4e7] * 2, abs=3e5)
    alone = running(scenario, 0.5)
    alone.advance_to(4_000_000_000)  # without a control what the flow offers comes back
    sent = 8.0 * SIZE * alone.state.flow[1, FLOW["sent"]]
    assert sent == pytest.approx(2.0 * 5e7 + 2.0 * 2e7, abs=3e5)


# --- TCP behind regulators --------------------------------------------------------------------------------------------


def behind(count: int = 4, rate: float = 1.5e7, **sender) -> Flow:
    held = RegulatedSender(**{"rate": rate, "limit": 50} | sender)
    return Flow(id="tcp", path=("hop0",), rtt=2e-3, count=count, ecn=False, sender=held)


@pytest.mark.parametrize("rate", [1e7, 4e7, 7e7])
@pytest.mark.parametrize("limit", [9, 100_000])
def test_tcp_takes_what_its_regulators_let_through(rate, limit):
    """Of four flows, whatever is lost before them; the link itself loses nothing at such rates with short bursts."""
    group = behind(limit=limit, burst=3, pause_variation=0.0, rate=2.4e7)
    scenario = access_link(flows=(premium(), group), control=Track(), duration=20.0)
    run = running(scenario, 5.0)
    found = [run.advance(rate).other_bit_per_s for _ in range(4)]
    assert found[1:] == pytest.approx([rate] * 3, rel=0.02)
    link = run.state.link
    assert link[0, LINK["lost"]] == 0
    assert (link[1:, LINK["lost"]] > 0).all() == (limit == 9)


def test_segments_of_a_burst_follow_each_other_and_then_there_is_a_pause():
    """While more waits, what comes to the link is a burst of four with 120 us between, each 10 000 us."""
    group = behind(count=1, rate=3.2e6, burst=4, pause_variation=0.0, access_rate=8e3 / 120e-6)
    scenario = access_link(flows=(premium(), group), duration=3.0, interval=1e-5, packet_size=SIZE)
    arrived = run_packets(packet_problem(scenario), 10.0).series[1, 0]
    at = np.flatnonzero(np.diff(arrived, prepend=0.0) > 0.0)
    at = at[at > 200_000]  # of the third second
    phase = np.unique(at % 800, return_counts=True)
    alone = phase[0][phase[1] > 100]  # the premium packets, each 8 ms, have their own
    times = at[at % 800 != alone[0]] if len(alone) == 1 else at
    gaps = np.diff(times)
    within = gaps[gaps < 500]
    assert np.count_nonzero(gaps >= 500) >= 95
    assert (abs(within - 12) <= 1).all()
    assert (abs(gaps[gaps >= 500] - (1000 - 36)) <= 1).all()
    assert len(within) == pytest.approx(3 * np.count_nonzero(gaps >= 500), abs=3)


def test_no_segment_is_lost_without_a_record_and_a_closed_regulator_stops_tcp():
    """Sent segments came, were dropped, or are under way; at rate 0 no more come, and it goes on when it opens."""
    group = behind(count=3, limit=20, rate=3e7)
    changes = [Change(at=2.0, flow="tcp", rate=0.0), Change(at=3.0, flow="tcp")]
    scenario = access_link(flows=(premium(), group), limit=15, duration=12.0, interval=0.25, changes=changes)
    state = run_packets(packet_problem(scenario), 10.0)
    carried = np.diff(state.carried[1], prepend=0.0)
    assert (carried[9:12] == 0.0).all()
    assert carried[:8].mean() * 8.0 / 0.25 > 3.0e7
    assert carried[24:].mean() > 0.8 * carried[2:8].mean()
    meta = state.meta
    assert meta[META["sent"]] == meta[META["received"]] + meta[META["dropped"]] + meta[META["live"]] - _answers(state)
    assert state.link[0, LINK["lost"]] > 0


def _answers(state) -> int:
    """Acknowledgements under way."""
    found = 0
    for head in state.flow[:, FLOW["line_head"]].tolist():
        while head >= 0:
            found, head = found + 1, int(state.packet[head, PACKET["next"]])
    return found


# --- the law in the loop ----------------------------------------------------------------------------------------------


def test_signals_are_the_laws_own_steps():
    """Each command follows from the measured outputs by the law's step, and the delay settles at its reference."""
    control = Track(reference=((1.0, 0.0), (0.6, 0.0)), start=20.0, first_rate="30Mbit")
    scenario = access_link(duration=300.0, control=control, seed=4)
    result = netctrl.simulate(scenario, design=LAW)
    signals, gains = result.tables["signals"], tracking_gains(LAW.law)
    state = start_tracking(gains, np.array([30.0]))
    assert np.isinf(signals["rate"][:20]).all()
    assert np.isnan(signals["commanded " + LAW.law.inputs[0]][:20]).all()
    for k in range(20, 300):
        assert signals["rate"][k] == pytest.approx(1e6 * state.applied[0], rel=1e-9)
        seen = np.array([signals[f"measured {name}"][k] for name in LAW.law.outputs])
        reference = np.array([1.0 if k < 150 else 0.6, 0.0])
        state = step_tracking(gains, state, seen, reference)
    assert signals["measured delay"][60:150].mean() == pytest.approx(1.0, rel=0.04)
    assert signals["measured delay"][190:].mean() == pytest.approx(0.6, rel=0.04)
    assert signals["measured delay"][5:20].mean() > 3.0
    np.testing.assert_allclose(1e3 * result.series["one_way", "premium"], signals["measured delay"], rtol=2e-3)
    assert (
        dict(result.table()[1])["delay, second half"] == f"{signals['measured delay'][150:].mean():.4g}, requested 0.6"
    )


def test_references_that_cannot_be_had_are_listed():
    """Two of three groups send 50 Mbit/s each whatever is commanded, for a while: the third one is at its limit."""
    changes = [
        change
        for name in ("source0", "source1")
        for change in (Change(at=100.0, flow=name, rate=2.5e7), Change(at=200.0, flow=name))
    ]
    control = Track(reference=((0.86, 0.4),))
    result = netctrl.simulate(access_link(hops=3, duration=300.0, control=control, changes=changes), design=LAW)
    signals = result.tables["signals"]
    ((first, last),) = infeasible(signals["at limit"], 1.0)
    assert 100.0 <= first <= 110.0
    assert 200.0 <= last <= 210.0
    assert signals["measured delay"][150:200].mean() > 3.0
    assert infeasible(signals["at limit"], 1.0, min_s=150.0) == []


def test_signals_of_given_rates_identify_the_link():
    """The trace has the rates in Mbit/s and what was measured in ms; a binary signal tells the curve's slope."""
    rates = netctrl.gbn(400, (40e6, 60e6), np.random.default_rng(3))[:, 0]
    result = simulate_rates(access_link(duration=400.0, control=Track()), rates, 10)
    signals = result.tables["signals"]
    trace = netctrl.access_link_signals(result, outputs=("delay", "throughput"), burst=True)
    assert trace.inputs == ("R", "burst")
    assert trace.input_values.tolist() == [[rate / 1e6, 10.0] for rate in rates.tolist()]
    assert (trace.output_values[:, 0] == 1e3 * signals["mean delay"]).all()
    assert (trace.output_values[:, 1] == signals["throughput"] / 1e6).all()
    average = netctrl.access_link_signals(result, measured="average")
    assert (average.output_values == 1e3 * np.column_stack([signals["delay"], signals["jitter"]])).all()
    high, low = (trace.output_values[rates == rate] for rate in (60e6, 40e6))
    assert high[:, 1].mean() - low[:, 1].mean() == pytest.approx(20.0, rel=0.1)
    assert high[:, 0].mean() > 1.2 * low[:, 0].mean()
    for given, message in (((simulate_rates, np.inf), "open regulators"), ((simulate_packets, None), "no signals")):
        run, rate = given
        plain = access_link(duration=2.0, control=Track() if rate else None)
        with pytest.raises(InvalidValue, match=message):
            netctrl.access_link_signals(run(plain, rate) if rate else run(plain))
    for interval in (7.0, 1e-9):
        with pytest.raises(InvalidValue, match="interval"):
            simulate_rates(access_link(duration=2.0, control=Track()), 1e6, interval=interval)
    for rate, burst in (([1e6], 0), (-1.0, 0), (1e6, 0.5), (1e6, 10_001)):
        with pytest.raises(InvalidValue):
            simulate_rates(access_link(duration=2.0, control=Track()), rate, burst)


def test_a_design_file_controls_a_scenario_file(tmp_path):
    LAW.save(tmp_path / "connet.json")
    (tmp_path / "link.toml").write_text(
        """schema = "netctrl.scenario/3"
duration = "40s"
interval = "1s"
links = [{ id = "line", source = "a", target = "b", capacity = "100Mbit", buffer = "99kB" }]
flows = [
    { id = "premium", offers = { kind = "stream", rate = "1Mbit", spacing = "constant" } },
    { id = "host", count = 4, offers = { kind = "bursts", rate = "25Mbit" } },
]
control = { kind = "track", file = "connet.json", reference = [[1.0, 0.0]] }
"""
    )
    result = netctrl.simulate(str(tmp_path / "link.toml"))
    assert result.tables["signals"]["reference delay"].tolist() == [1.0] * 40
    result.save(tmp_path / "result.npz")
    again = read_result(tmp_path / "result.npz")
    assert (again.tables["signals"]["rate"] == result.tables["signals"]["rate"]).all()
    assert again.scenario.control == result.scenario.control
    asked = again.scenario.replace(control=Track(reference=[[0.5, 0.0]], measured="average"))
    other = netctrl.simulate(asked, design=LAW).tables["signals"]
    assert other["reference delay"].tolist() == [0.5] * 40
    assert result.tables["signals"]["rate"][-10:].mean() > other["rate"][-10:].mean()


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_what_a_change_or_a_track_does_not_fit_is_refused():
    plain = access_link(duration=10.0)
    for fields, message in (
        ({"at": 1.0}, "link: got ''"),
        ({"at": 1.0, "link": "hop0", "flow": "source0"}, "flow: got 'source0'"),
        ({"at": 1.0, "flow": "source0", "capacity": 1e6}, "capacity: got"),
        ({"at": 1.0, "link": "hop0", "rate": 1e6}, "rate: got"),
    ):
        with pytest.raises(InvalidValue, match=message):
            Change(**fields)
    for change, message in (
        (Change(at=1.0, flow="other", rate=1e6), r"changes\[0\].flow: got 'other'.*premium, source0"),
        (Change(at=1.0, flow="source0", rate=2e8), r"changes\[0\].rate.*at most the access_rate"),
        (Change(at=10.0, flow="source0", rate=1e6), r"changes\[0\].at.*before the end"),
    ):
        with pytest.raises(InvalidValue, match=message):
            plain.replace(changes=[change])
    twice = [Change(at=1.0, flow="source0", rate=rate) for rate in (1e6, None)]
    with pytest.raises(InvalidValue, match=r"changes\[1\].at.*another time"):
        plain.replace(changes=twice)
    for control, message in (
        (Track(measures="source1"), "control.measures.*one flow of datagrams"),
        (Track(flows=("premium",)), r"control.flows\[0\].*bursts"),
        (Track(flows=("source0", "source0")), r"control.flows\[1\].*once"),
        (Track(start=10.0), "control.start.*before the end"),
    ):
        with pytest.raises(InvalidValue, match=message):
            plain.replace(control=control)
    for fields, message in (
        ({"shares": (1.0,)}, "shares: got '1 shares'"),
        ({"flows": ("a", "b"), "shares": (0.5, 0.4)}, "add up to 1"),
        ({"reference": ((1.0, 0.0), (1.0,))}, "reference: got '2 references'"),
        ({"reference": (1.0, 0.0)}, r"reference\[0\]: got 1.0"),
    ):
        with pytest.raises(InvalidValue, match=message):
            Track(**fields)


def test_engines_say_what_they_lack_of_tracked_flows():
    scenario = access_link(duration=10.0, control=Track())
    assert packet_only(scenario) == ("control", "controlled rates")
    streams = access_link(duration=10.0, flows=(premium(),), changes=[Change(at=1.0, flow="premium", rate=2e6)])
    assert packet_only(streams) == ("changes", "flows whose rate changes")
    for each in (case_of(scenario, LAW), streams):
        assert [engine for engine in ("fluid", "packet", "ns3") if supports(each)[engine] is None] == ["packet", "ns3"]
    assert scenario_lacks(scenario) is None
    assert scenario_lacks(streams) is None
    behind_gates = scenario.replace(flows=(*scenario.flows, behind()))
    lacks = supports(case_of(behind_gates, LAW))
    assert lacks["ns3"] == "TCP behind regulators (flows.tcp)"
    assert scenario_lacks(behind_gates) == "TCP senders with regulators that pause at random (flows.tcp.sender)"
    with pytest.raises(InvalidValue, match=r"design: got None.*control.file"):
        netctrl.simulate(scenario)
    with pytest.raises(InvalidValue, match=r"duration: got 10.5.*whole number of the law's intervals"):
        netctrl.simulate(scenario.replace(duration=10.5), design=LAW)
    paced = scenario.replace(control={"kind": "static"})
    with pytest.raises(InvalidValue, match=r"design: got 'connet'.*static"):
        netctrl.simulate(paced, design=LAW)
