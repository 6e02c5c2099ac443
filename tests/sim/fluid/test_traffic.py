"""What chance decides before a run: flows' round trips and times, and what web sessions ask for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.sim.fluid.run import simulate
from netctrl.sim.fluid.traffic import HOSTS, draw_flows
from netctrl.sim.fluid.web import WINDOW, web_load


def scenario(*flows, duration=200.0, capacity="100Mbit", **more):
    links = (Link(id="line", source="a", target="b", capacity=capacity, buffer="500kB"),)
    return Scenario(name="traffic", duration=duration, links=links, flows=flows, **more)


def bulk(**more):
    return Flow(id="bulk", path=("line",), **{"rtt": "60ms:1s", "start": "10s:50s", "count": 200} | more)


def web(count=400, offers="web", **more):
    return Flow(**{"id": "web", "path": ("line",), "rtt": "100ms", "count": count, "offers": offers} | more)


@given(count=st.integers(1, 300), seed=st.integers(0, 1000))
def test_flows_are_drawn_from_their_ranges(count, seed):
    (draw,) = draw_flows(scenario(bulk(count=count, stop="60s:70s"), seed=seed), merged=False)
    for values, (low, high) in ((draw.rtt_s, (0.06, 1.0)), (draw.start_s, (10.0, 50.0)), (draw.stop_s, (60.0, 70.0))):
        assert len(values) == count
        assert low <= values.min() <= values.max() <= high
    assert len(np.unique(draw.rtt_s)) == min(count, HOSTS)
    # One value in each of equal parts of the range: the mean is nearly the middle, whatever the seed.
    parts = np.sort(np.unique(draw.rtt_s))
    k = np.arange(len(parts))
    assert (np.floor((parts - 0.06) / 0.94 * len(parts)) == k).all()
    assert draw.flows.sum() == count


def test_classes_are_midpoints_and_stand_for_all_flows():
    (draw,) = draw_flows(scenario(bulk(classes=4)))
    assert sorted(draw.rtt_s) == pytest.approx(0.06 + 0.94 * np.array([1, 3, 5, 7]) / 8)
    assert sorted(draw.start_s) == pytest.approx([15.0, 25.0, 35.0, 45.0])
    assert (draw.flows == 50.0).all()
    assert np.isinf(draw.stop_s).all()
    (each,) = draw_flows(scenario(bulk(classes=4)), merged=False)
    assert len(each.rtt_s) == 200


def test_the_seed_decides_and_groups_do_not_disturb_each_other():
    one, other = draw_flows(scenario(bulk(), web())), draw_flows(scenario(bulk(), web(), seed=2))
    again = draw_flows(scenario(bulk(), web(count=10)))
    assert np.array_equal(one[0].start_s, again[0].start_s)
    assert not np.array_equal(one[0].start_s, other[0].start_s)


def load(group, **more):
    chosen = scenario(group, **({"initial_window": 1} | more))
    return web_load(group, draw_flows(chosen)[0], chosen, np.random.default_rng(3))


def test_pages_come_as_often_as_sessions_think():
    found = load(web(start="0s:1s", offers=Web(objects_per_page=3, think_time=5.0)), duration=2000.0)
    pages = len(found.start_s) / 3
    # A page takes 5 s of thought and its own time: at least 1.5 round trips, of 0.1 s, and seldom more than 7.
    assert 400 * 2000.0 / 5.6 < pages < 400 * 2000.0 / 5.15
    assert found.start_s.max() < 2000.0


def test_sizes_are_pareto():
    found = load(web(), duration=3000.0)
    least = 5e3 * 0.2 / 1.2
    assert found.size_bytes.min() >= least
    for size in (2e3, 12e3, 100e3):
        expected = (least / size) ** 1.2
        n = len(found.size_bytes)
        noise = 4.0 * math.sqrt(expected * (1.0 - expected) / n)
        assert np.mean(found.size_bytes > size) == pytest.approx(expected, abs=noise)


def test_what_is_asked_for_is_sent_in_slow_start():
    found = load(web(count=20), duration=300.0)
    assert found.sent_packets.sum() == pytest.approx(found.size_bytes.sum() / 1e3, rel=1e-9)
    assert found.sent_packets.max() <= WINDOW
    assert (np.diff(found.sent_s) >= 0.0).all()
    step = 0.01
    whole = found.injected(step, 0, 40_000)
    assert whole.sum() == pytest.approx(found.sent_packets[found.sent_s < 400.0].sum(), rel=1e-9)
    parts = np.concatenate([found.injected(step, first, first + 777) for first in range(0, 38_850, 777)])
    assert np.array_equal(parts, whole[:38_850])


def test_sessions_end_after_their_page():
    found = load(web(stop="50s"), duration=300.0)
    assert found.start_s.max() < 50.0


def test_an_idle_network_answers_in_the_least_number_of_round_trips():
    """12 packets in windows of 1, 2, 4, 8 are the paper's "about 4 round-trip times", and one more to connect."""
    result = simulate(scenario(web(count=30), duration=100.0, capacity="1Gbit", initial_window=1))
    packets = result.transfers["size"] / 1e3
    rounds = np.ceil(np.log2(packets + 1.0))
    small = packets <= 15.0
    assert small.sum() > 100
    # To connect, to fill windows, and half a trip for the last byte.
    assert result.transfers["duration"][small] == pytest.approx((np.maximum(rounds[small], 1.0) + 0.5) * 0.1, abs=1e-3)
    modern = simulate(scenario(web(count=30), duration=100.0, capacity="1Gbit", initial_window=10))
    ten = modern.transfers["size"] <= 10e3
    assert modern.transfers["duration"][ten] == pytest.approx(0.15, abs=1e-3)


def test_a_queue_and_losses_lengthen_responses():
    idle = simulate(scenario(web(count=50)))
    busy = simulate(scenario(web(count=50), bulk(start="0s", count=100), capacity="10Mbit", warmup=50.0))
    assert busy["response", "short objects"] > idle["response", "short objects"] + 0.3
    assert idle["loss", idle.links[0]] == 0.0


@pytest.mark.slow
def test_sessions_that_never_come_to_ask_are_no_error():
    quiet = simulate(scenario(web(count=1, offers=Web(think_time=1e6)), duration=10.0))
    assert len(quiet.transfers["duration"]) == 0
    assert ("response", "short objects") not in quiet.figures()


def test_a_change_of_the_path_is_felt_in_the_responses():
    """A line that gets longer by 150 ms each way."""
    change = Change(at=100.0, link="line", delay="150ms")
    result = simulate(scenario(web(count=200), changes=(change,), initial_window=10))
    small = result.transfers["size"] < 10e3
    early, late = ((small & (result.transfers["start"] < 99.0)), (small & (result.transfers["start"] > 101.0)))
    assert result.transfers["duration"][early].mean() == pytest.approx(0.15, abs=2e-3)
    # A round trip to connect of 0.1 + 0.3 s, and half a one of 0.05 + 0.15 s for the data.
    assert result.transfers["duration"][late].mean() == pytest.approx(0.4 + 0.2, abs=0.01)


def test_acknowledgements_feel_the_line_that_they_cross():
    """By their group: the change counts on the way out, on the way back, or on both where both are one line."""
    links = tuple(
        Link(id=name, source=a, target=b, capacity="1Gbit", delay="10ms")
        for name, a, b in (("out", "x", "y"), ("in", "y", "x"))
    )
    common = {"rtt": "100ms", "count": 100}
    flows = (
        Flow(id="forward", path=("out",), ack_path=("in",), **common, offers=Web()),
        Flow(id="reverse", path=("in",), ack_path=("out",), **common, offers=Web()),
        Flow(id="alone", path=("out",), **common, offers=Web()),
    )
    for group, extra in zip(flows, (0.15 + 0.15, 0.15, 0.30 + 0.15), strict=True):  # to connect, and for the data
        chosen = Scenario(
            name="lines",
            duration=100.0,
            links=links,
            flows=(group,),
            changes=(Change(at=0.0, link="out", delay="160ms"),),
            initial_window=10,
        )
        result = simulate(chosen)
        small = result.transfers["size"] < 10e3
        assert result.transfers["duration"][small].mean() == pytest.approx(0.15 + extra, abs=2e-3)
