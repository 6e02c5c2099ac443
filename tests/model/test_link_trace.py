"""Links' traces in mahimahi's format: reading them, what is refused, and laws over the one that is shipped."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from one_link import paced, plain, scenario_of, seen
from places import EXPERIMENTS

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.model.datasets import data_path
from netctrl.model.link_trace import LinkTrace, deliveries, link_trace_of, read_link_trace, trace_bits
from netctrl.model.trace import RateTrace
from netctrl.sim.fluid.traffic import link_rates

OWN = netctrl.pacing(mode="own-rate").law
RECIPES = EXPERIMENTS / "pacing"
PACKET_BITS = 8.0 * 1504.0


def written(tmp_path, text: str) -> Path:
    path = tmp_path / "link.trace"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_packet_each_millisecond_is_12_mbit_s(tmp_path):
    trace = read_link_trace(written(tmp_path, "".join(f"{n}\n" for n in range(1, 1001))))
    assert trace.duration_s == 1.0
    assert trace.mean_bit_per_s == pytest.approx(12.032e6)
    assert in_fluid(trace, 3.0) == pytest.approx(np.full(300, 12.032e6))  # it repeats


def in_fluid(trace: LinkTrace, duration: float, step: float = 0.01) -> np.ndarray:
    """Capacities in steps of the fluid [bit/s]."""
    scenario = scenario_of([plain("cubic", 0.1)], 1e6, 1e5, duration)
    scenario = scenario.replace(links=(replace(scenario.links[0], trace=trace),))
    return link_rates(scenario, 0, step, round(duration / step))


def test_windows_follow_the_opportunities(tmp_path):
    """Of a tenth of a second; one without an opportunity has a twentieth of the mean."""
    trace = read_link_trace(written(tmp_path, "10\n10\n20\n100\n200\n400\n"))
    rates = in_fluid(trace, 0.8)
    mean = 15 * PACKET_BITS
    windows = [40 * PACKET_BITS, 10 * PACKET_BITS, 0.05 * mean, 10 * PACKET_BITS]
    assert rates == pytest.approx(np.repeat(windows * 2, 10))


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=60))
def test_a_period_delivers_what_the_trace_does(times):
    """But for windows that have less than the least rate; an opportunity at 0 would be the next period's, too."""
    trace = LinkTrace(np.array([*sorted(times), 2000], dtype=np.int64))
    rates = in_fluid(trace, 2.0)
    least = 0.05 * PACKET_BITS * len(trace.times_ms) / 2.0
    delivered = rates[rates > 1.001 * least].sum() * 0.01
    assert delivered == pytest.approx(PACKET_BITS * len(trace.times_ms), rel=1e-6)
    assert rates.min() >= 0.999 * least


@given(st.floats(1e6, 1e9), st.integers(10, 3000))
def test_a_known_rate_s_trace_has_its_mean(rate, ms):
    trace = link_trace_of(lambda times: np.full(times.shape, rate), 1e-3 * ms) if rate * ms > 2e7 else None
    if trace is not None:
        assert abs(len(trace.times_ms) * PACKET_BITS - rate * 1e-3 * ms) <= PACKET_BITS * (1.0 + 1e-6)
        assert (np.diff(trace.times_ms) >= 0).all()


def test_deliveries_are_the_opportunities_of_all_turns():
    found = deliveries(LinkTrace(np.array([0, 4, 4, 10])), 0.025)
    assert (found[:, 0] / 1e6).tolist() == [4, 10, 10, 14, 20, 20, 24]  # an opportunity at 0 is one at a turn's end
    assert found[:, 1].tolist() == [3008, 1504, 1504, 3008, 1504, 1504, 3008]


def test_deliveries_of_rates_are_never_more_than_these_allow():
    trace = RateTrace(0.007, ("rate",), 1e6 * np.array([[3.0], [0.0], [11.0]]))
    at, size = deliveries(trace, 0.1).T
    short = trace_bits(trace, at / 1e9) / 8.0 - np.cumsum(size)
    assert (short > -1e-6).all() and (short < 1.0).all()
    assert not ((at % 21_000_000 > 7_250_000) & (at % 21_000_000 <= 14_000_000)).any()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty; each packet"),
        ("0\n0\n", "line 2: got 0"),
        ("1\n2.5\n", "line 2: got '2.5'"),
        ("1\n-1\n", "line 2: got '-1'"),
        ("5\n7\n6\n", "line 3: got 6"),
        ("99999999999\n", "line 1"),
        ("1\n²\n", "not a text file"),
    ],
)
def test_a_trace_that_is_none_is_refused_by_its_line(tmp_path, text, says):
    with pytest.raises(FileError, match=r"link\.trace") as refusal:
        read_link_trace(written(tmp_path, text))
    assert says in str(refusal.value)


def test_what_else_is_refused(tmp_path):
    with pytest.raises(FileError):
        read_link_trace(tmp_path / "none.trace")
    with pytest.raises(InvalidValue):
        link_trace_of(lambda times: 0.0 * times, 1.0)
    with pytest.raises(InvalidValue):
        link_trace_of(lambda times: 0.0 * times, 0.0)


def test_the_trace_that_is_shipped_is_what_its_recipe_makes(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPES))
    from mobile_trace import mobile_trace

    shipped = read_link_trace(data_path("traces/mobile.trace"))
    assert (shipped.times_ms == mobile_trace().times_ms).all()
    assert shipped.mean_bit_per_s == pytest.approx(5.38e6, rel=1e-2)
    assert "mobile_trace" in sys.modules


def test_over_the_shipped_trace():
    """40 ms, a buffer of 150 kB, from 20 to 60 s: the own-rate law uses 98 % with a fifth of BBR's median
    queueing delay and a tenth of Cubic's."""
    trace = read_link_trace(data_path("traces/mobile.trace"))
    used, median = [], []
    for flow in (paced(OWN, 0.04), plain("bbr", 0.04), plain("cubic", 0.04)):
        scenario = scenario_of([flow], 5e6, 1.5e5, 60.0, interval=0.04)
        found = seen(scenario.replace(links=(replace(scenario.links[0], trace=trace),)))
        late = found.time_s > 20.0
        used.append(found.throughput[0, late].mean() / found.capacity[late].mean())
        median.append(np.median(found.delay_s[late]))
    assert used == pytest.approx([0.997, 0.997, 1.0], abs=0.005)
    assert median == pytest.approx([0.0179, 0.092, 0.181], rel=0.06)
