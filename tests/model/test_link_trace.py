"""Links' traces in mahimahi's format: reading them, what is refused, and laws over the one that is shipped."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import EXPERIMENTS

import netctrl
from netctrl import BbrFlow, CubicFlow, PacedFlow
from netctrl.datasets import data_path
from netctrl.errors import FileError, InvalidValue
from netctrl.model.link_trace import LinkTrace, link_trace_of, read_link_trace
from netctrl.sim.bottleneck.run import simulate_bottleneck

TARGET = netctrl.pacing(mode="target-rtt").law
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
    rates = trace.capacity(0.1)(np.arange(0.0, 3.0, 0.01))  # it repeats
    assert rates == pytest.approx(np.full(300, 12.032e6))


def test_windows_follow_the_opportunities(tmp_path):
    trace = read_link_trace(written(tmp_path, "10\n10\n20\n100\n200\n"))
    capacity = trace.capacity(0.1)
    assert capacity(np.array([0.05, 0.15, 0.25, 0.39])) == pytest.approx([40 * PACKET_BITS, 10 * PACKET_BITS] * 2)
    last = trace.capacity(0.15)(np.array([0.1, 0.16]))  # the last window is 50 ms
    assert last == pytest.approx([4 * PACKET_BITS / 0.15, PACKET_BITS / 0.05])
    empty = trace.capacity(0.05, min_share=0.2)(np.array([0.12]))
    assert empty == pytest.approx([0.2 * trace.mean_bit_per_s])


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=60), st.floats(0.01, 0.5))
def test_a_period_delivers_what_the_trace_does(times, window):
    """But for windows that have less than the least rate."""
    trace = LinkTrace(np.array([*sorted(times), 2001], dtype=np.int64))
    edges = np.minimum(window * np.arange(int(np.ceil(2.001 / window - 1e-9)) + 1), 2.001)
    widths = np.diff(edges)
    delivered = (trace.capacity(window, min_share=1e-9)(edges[:-1] + 0.5 * widths) * widths).sum()
    assert delivered == pytest.approx(PACKET_BITS * len(trace.times_ms), rel=1e-6)


@given(st.floats(1e6, 1e9), st.integers(10, 3000))
def test_a_known_rate_s_trace_has_its_mean(rate, ms):
    trace = link_trace_of(lambda times: np.full(times.shape, rate), 1e-3 * ms) if rate * ms > 2e7 else None
    if trace is not None:
        assert abs(len(trace.times_ms) * PACKET_BITS - rate * 1e-3 * ms) <= PACKET_BITS * (1.0 + 1e-6)
        assert (np.diff(trace.times_ms) >= 0).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty; each packet"),
        ("\n\n", "empty; each packet"),
        ("0\n0\n", "line 2: got 0"),
        ("1\n2.5\n", "line 2: got '2.5'"),
        ("1\nx\n", "line 2: got 'x'"),
        ("1\n\n2\n", "line 2: got ''"),
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
    trace = LinkTrace(np.array([1, 2, 3]))
    with pytest.raises(InvalidValue):
        trace.capacity(0.0)
    with pytest.raises(InvalidValue):
        trace.capacity(0.1, min_share=0.0)
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
    """40 ms, a buffer of 150 kB, from 20 to 60 s: the target-RTT law uses 98 % with a ninth of BBR's median queueing
    delay and a 21st of Cubic's."""
    capacity = read_link_trace(data_path("traces/mobile.trace")).capacity()
    used, median = [], []
    for flow in (PacedFlow(TARGET, 0.04), BbrFlow(0.04), CubicFlow(0.04)):
        found = simulate_bottleneck([flow], capacity, 1.5e5, 60.0, bin_s=0.04)
        late = found.time_s > 20.0
        used.append(found.throughput[0, late].mean() / found.capacity[late].mean())
        median.append(np.median(found.delay_s[late]))
    assert used == pytest.approx([0.986, 0.993, 1.0], abs=0.005)
    assert median == pytest.approx([0.0079, 0.073, 0.172], rel=0.06)
