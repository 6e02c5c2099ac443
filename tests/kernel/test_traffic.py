"""When UDP flows send: at their rate, in their time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.kernel.scenarios.planner import plan_scenario
from netctrl.kernel.scenarios.traffic import constant_times, poisson_times, series_times, udp_times
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.fluid.traffic import draw_flows

RATES = st.floats(1e3, 1e7)


def test_a_constant_source_sends_at_its_rate() -> None:
    times = constant_times(8e6, 1000, 1.0)  # a packet every ms
    assert len(times) == 1000
    np.testing.assert_allclose(np.diff(times), 1e-3)
    assert constant_times(8e6, 1000, 1.0, phase=0.5)[0] == pytest.approx(0.5e-3)


def test_poisson_intervals_are_exponential() -> None:
    times = poisson_times(8e6, 1000, 20.0, np.random.default_rng(1))
    gaps = np.diff(times)
    assert len(times) == pytest.approx(20_000, abs=5 * 20_000**0.5)  # five standard deviations
    assert gaps.mean() == pytest.approx(1e-3, rel=0.05)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


def test_a_series_is_followed_and_may_pause() -> None:
    times = series_times(np.arange(3.0), np.array([8e5, 0.0, 1.6e6]), 1000, 3.0)
    counts, _ = np.histogram(times, bins=[0.0, 1.0 + 1e-9, 2.0, 3.0])
    assert counts.tolist() == [100, 0, 200]
    assert series_times(np.zeros(1), np.array([8e6]), 1000, 1.0) == pytest.approx(
        constant_times(8e6, 1000, 1.0) + 1e-3, abs=1e-9
    )


@given(st.lists(st.floats(0.0, 1e7), min_size=1, max_size=6), st.floats(0.1, 5.0))
def test_a_series_sends_its_integral(rates, duration) -> None:
    begin = np.arange(len(rates)) * 0.5
    times = series_times(begin, np.array(rates), 1250, duration)
    knots = np.append(np.minimum(begin, duration), duration)
    whole = float(np.sum(np.diff(knots) * rates)) / 10_000
    assert abs(len(times) - whole) <= 1.0
    assert np.all(np.diff(times) >= 0.0)
    assert len(times) == 0 or (times[0] >= 0.0 and times[-1] < duration)


@given(RATES, st.floats(64.0, 9000.0), st.floats(0.0, 1.0))
def test_sources_keep_within_their_time(rate, size, phase) -> None:
    generator = np.random.default_rng(3)
    for times in (constant_times(rate, size, 0.2, phase=phase), poisson_times(rate, size, 0.2, generator)):
        assert np.all(times >= 0.0) and np.all(times < 0.2)
        assert np.all(np.diff(times) >= 0.0)
    assert abs(len(constant_times(rate, size, 0.2)) - 0.2 * rate / (8 * size)) <= 1.0


def test_udp_packets_are_in_order_and_of_the_rate(scenario_of) -> None:
    udp = Flow(id="udp", path=("line",), count=2, offers=Stream(rate="2Mbit"))
    scenario = scenario_of(None, udp, duration="30s")
    plan = plan_scenario(scenario, draw_flows(scenario, merged=False))
    for group, times in plan.streams:
        assert group == 1
        assert all(one <= other for one, other in pairwise(times))
        assert len(times) * 1514 * 8 / 30 == pytest.approx(2e6, rel=0.05)


def test_evenly_spaced_flows_have_phases_of_their_own(scenario_of) -> None:
    even = Flow(
        id="even", path=("line",), count=3, start="1s", stop="2s", offers=Stream(rate="1Mbit", spacing="constant")
    )
    scenario = scenario_of(None, even)
    flows = udp_times(scenario, even, draw_flows(scenario, merged=False)[1], 5, {})
    assert {len(times) for times in flows} <= {82, 83}
    phases = [times[0] - 1.0 for times in flows]
    assert len({round(phase, 6) for phase in phases}) == 3 and 0.0 <= min(phases) <= max(phases) < 1514 * 8e-6
    assert all(np.allclose(np.diff(times), 1514 * 8e-6) and times[-1] < 2.0 for times in flows)
