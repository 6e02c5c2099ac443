"""The own-rate law hears of losses: short buffers and many flows lose what is tolerated, its start's are heard once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_link import jain, paced, run

import netctrl
from netctrl.laws.pacing.pacing import pace_trace

LAW = netctrl.pacing(mode="own-rate").law
PACKET = 1500.0


def settled(rate: float, rtt: float, buffer: float, flows: int, duration: float, stagger: float = 0.0):
    """In the second half: share of what is sent that is lost, of the capacity that is delivered; Jain's index."""
    found = run([paced(LAW, rtt, i * stagger) for i in range(flows)], rate, buffer, duration, interval=max(rtt, 0.01))
    late = found.time_s > 0.5 * duration
    lost = 8.0 * found.lost[late].sum() / (found.time_s[0] * late.sum())
    delivered = found.throughput[:, late].mean(axis=1)
    return lost / (lost + delivered.sum()), delivered.sum() / rate, jain(delivered)


@pytest.mark.parametrize(("rtt", "bdps"), [(0.02, 0.02), (0.02, 0.05), (0.02, 0.1), (0.01, 1.0)])
def test_a_start_whose_overshoot_is_lost_is_over_at_once(rtt, bdps):
    """What it lost was heard twice, and cut to half of the link's rate or less, for 20 s at 100 Mbit/s."""
    found = run([paced(LAW, rtt)], 1e8, bdps * 1e8 * rtt / 8.0, 4.0, interval=0.02)
    assert found.lost.sum() > 0.0
    assert found.throughput[0, found.time_s > 2.0].mean() > 0.95e8


@pytest.mark.parametrize("packets", [2.0, 6.4, 16.0, 64.0])
@pytest.mark.parametrize("stagger", [0.0, 0.1])
def test_sixteen_flows_of_four_packets_lose_what_is_tolerated(packets, stagger):
    """Their queue of 50 packets is longer than most of these buffers."""
    lost, used, fair = settled(16 * 4 * 8 * PACKET / 0.02, 0.02, packets * PACKET, 16, 20.0, stagger)
    assert lost < 0.045
    assert used > 0.95
    assert fair > 0.95


@settings(max_examples=12)
@given(
    st.floats(6.0, 10.0).map(lambda exponent: 10.0**exponent),
    st.floats(-3.0, -0.7).map(lambda exponent: 10.0**exponent),
    st.floats(-2.0, 0.6).map(lambda exponent: 10.0**exponent),
    st.integers(0, 4).map(lambda exponent: 2**exponent),
)
def test_any_link_is_used_with_little_loss(rate, rtt, bdps, flows):
    """1 Mbit/s to 10 Gbit/s, 1 to 200 ms, buffers from four packets or a hundredth of a BDP to 4 BDPs; windows of at
    least two packets, as with fewer no law knows of losses but by timers."""
    rate = max(rate, 2.0 * flows * 8.0 * PACKET / rtt)
    lost, used, _ = settled(rate, rtt, max(bdps * rate * rtt / 8.0, 4.0 * PACKET), flows, max(200.0 * rtt, 20.0))
    assert lost < 0.06
    assert used > 0.9


@settings(max_examples=8)
@given(st.floats(0.5, 3.5).map(lambda exponent: 10.0**exponent), st.floats(2e-3, 0.1), st.sampled_from([1, 3, 16]))
def test_half_more_than_the_certificate_s_buffer_loses_next_to_nothing(window, rtt, flows):
    """After drains windows come back at once, so that the queue's mean isn't its peak."""
    rate = window * flows * 8.0 * PACKET / rtt
    requested = {"mode": "own-rate", "rtt_s": rtt, "bottleneck_bit_per_s": rate, "flows": flows}
    least = netctrl.pacing(**requested).certificate.least_buffer_bytes
    assert netctrl.pacing(**requested, buffer_bytes=1.1 * least).certificate.most_flows >= flows
    assert netctrl.pacing(**requested, buffer_bytes=0.9 * least).certificate.most_flows < flows
    lost, used, fair = settled(rate, rtt, 1.5 * least, flows, max(400.0 * rtt, 30.0))
    assert lost < 1e-3
    assert used > 0.96
    assert fair > 0.95


# --- sample by sample ------------------------------------------------------------------------------------------------


def samples(seconds: float, step: float = 2e-3, rtt: float = 0.02, rate: float = 1e7):
    """(times, RTTs, delivered) of a link that delivers a rate steadily, without a queue."""
    times = step * np.arange(1, round(seconds / step) + 1)
    return times, np.full(len(times), rtt), rate / 8.0 * times


def test_traces_without_losses_are_as_before():
    """Of which nothing is known, of which nothing was lost, or all of it before the first sample."""
    times, rtts, delivered = samples(3.0)
    rtts = rtts + 2e-3 * (times % 0.5)
    known = [None, np.zeros(len(times)), np.full(len(times), 7 * PACKET)]
    rates = [pace_trace(LAW, times, rtts, delivered=delivered, lost=lost).rates for lost in known]
    np.testing.assert_array_equal(rates[0], rates[1])
    np.testing.assert_array_equal(rates[0], rates[2])
