"""The target-RTT law hears of losses: its start ends, its rate halves, and short buffers and many flows lose little."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_link import paced, run

import netctrl
from netctrl.laws.pacing.pacing import pace_trace, pacing_values

LAW = netctrl.pacing(mode="target-rtt").law
PACKET = 1500.0


def settled(rate: float, rtt: float, buffer: float, flows: int, duration: float, stagger: float = 0.0):
    """Shares of what is sent that are lost, and of the capacity that are delivered, in the second half."""
    found = run([paced(LAW, rtt, i * stagger) for i in range(flows)], rate, buffer, duration, interval=max(rtt, 0.01))
    late = found.time_s > 0.5 * duration
    lost = 8.0 * found.lost[late].sum() / (found.time_s[0] * late.sum())
    delivered = found.throughput[:, late].mean(axis=1).sum()
    return lost / (lost + delivered), delivered / rate


@pytest.mark.parametrize("bdps", [0.012, 0.02, 0.05])
def test_a_buffer_shorter_than_the_target_loses_next_to_nothing(bdps):
    """It lost one half for ever: a start that waits for a queue which such a buffer can't hold doesn't end."""
    lost, used = settled(1e8, 0.02, bdps * 250e3, 1, 20.0)
    assert lost < 1e-3
    assert used > 0.95


@pytest.mark.parametrize("packets", [2.0, 6.4, 16.0, 64.0])
@pytest.mark.parametrize("stagger", [0.0, 0.1])
def test_sixteen_flows_of_four_packets_lose_next_to_nothing(packets, stagger):
    """Their queue is 16 packets; half was lost with less, and at 16 too where flows start after one another."""
    lost, used = settled(16 * 4 * 8 * PACKET / 0.02, 0.02, packets * PACKET, 16, 20.0, stagger)
    assert lost < 2e-3
    assert used > 0.95


@settings(max_examples=12)
@given(
    st.floats(6.0, 10.0).map(lambda exponent: 10.0**exponent),
    st.floats(-3.0, -0.7).map(lambda exponent: 10.0**exponent),
    st.floats(-3.0, 0.6).map(lambda exponent: 10.0**exponent),
    st.integers(0, 4).map(lambda exponent: 2**exponent),
)
def test_any_link_loses_little(rate, rtt, bdps, flows):
    """1 Mbit/s to 10 Gbit/s, 1 to 200 ms, buffers from two packets or a thousandth of a BDP to 4 BDPs."""
    lost, used = settled(rate, rtt, max(bdps * rate * rtt / 8.0, 2.0 * PACKET), flows, 400.0 * rtt)
    assert lost < 0.02
    assert used > 0.6


@settings(max_examples=8)
@given(st.floats(0.0, 3.5).map(lambda exponent: 10.0**exponent), st.floats(2e-3, 0.1), st.sampled_from([1, 3, 16]))
def test_the_certificate_s_buffer_is_where_losses_end(window, rtt, flows):
    """A tenth above, nothing is lost once rates have settled; a fifth below, losses are how the law knows. (With less
    than a packet a round trip it takes a fifth more.)"""
    rate = window * flows * 8.0 * PACKET / rtt
    requested = {"mode": "target-rtt", "rtt_s": rtt, "bottleneck_bit_per_s": rate, "flows": flows}
    least = netctrl.pacing(**requested).certificate.least_buffer_bytes
    assert netctrl.pacing(**requested, buffer_bytes=1.1 * least).certificate.most_flows >= flows
    assert netctrl.pacing(**requested, buffer_bytes=0.9 * least).certificate.most_flows < flows
    duration = max(400.0 * rtt, 8.0)
    assert settled(rate, rtt, 1.1 * least, flows, duration)[0] == 0.0
    assert settled(rate, rtt, 0.8 * least, flows, duration)[0] > 0.0


# --- sample by sample ------------------------------------------------------------------------------------------------


def samples(seconds: float, step: float = 2e-3, rtt: float = 0.02, rate: float = 1e7):
    """(times, RTTs, delivered) of a link that delivers a rate steadily, without a queue."""
    times = step * np.arange(1, round(seconds / step) + 1)
    return times, np.full(len(times), rtt), rate / 8.0 * times


def test_a_loss_ends_the_start_and_halves_the_rate_for_a_round_trip():
    times, rtts, delivered = samples(2.0)
    before = pace_trace(LAW, times, rtts, delivered=delivered)
    assert before.rates[-1] == pytest.approx(2e7)  # twice what is delivered, as long as no queue is seen
    heard = pace_trace(LAW, times, rtts, delivered=delivered, lost=np.where(times > 1.0, PACKET, 0.0))
    place = np.searchsorted(times, 1.0 + 1e-9)
    np.testing.assert_array_equal(heard.rates[:place], before.rates[:place])
    cut = heard.rates[place : place + 10]
    np.testing.assert_allclose(cut, 5e6, rtol=1e-6)
    assert pacing_values(LAW, heard.state)["phase"] > 0.0
    # Then it grows with the time since the loss, to a quarter a round trip.
    after = heard.rates[place + 20 :]
    assert after[:20].max() < 1.02e7
    assert heard.rates[-1] == pytest.approx(1e7 * (1.0 + 0.25 * (times[-1] - 1.0 - 0.02) / (50 * 0.02)), rel=0.01)


def test_losses_within_a_round_trip_are_one():
    times, rtts, delivered = samples(2.0)
    once = np.where(times > 1.0, PACKET, 0.0)
    burst = once + np.where(times > 1.01, 20 * PACKET, 0.0)
    one, other = (pace_trace(LAW, times, rtts, delivered=delivered, lost=lost) for lost in (once, burst))
    np.testing.assert_array_equal(one.rates, other.rates)


def test_traces_without_losses_are_as_before():
    """Of which nothing is known, of which nothing was lost, or all of it before the first sample."""
    times, rtts, delivered = samples(3.0)
    rtts = rtts + 2e-3 * (times % 0.5)
    known = [None, np.zeros(len(times)), np.full(len(times), 7 * PACKET)]
    rates = [pace_trace(LAW, times, rtts, delivered=delivered, lost=lost).rates for lost in known]
    np.testing.assert_array_equal(rates[0], rates[1])
    np.testing.assert_array_equal(rates[0], rates[2])


@settings(max_examples=30)
@given(st.floats(0.0, 4.0), st.floats(1e6, 1e9), st.floats(2e-3, 0.2))
def test_no_rate_leads_to_more_than_two_bdps_in_flight(load, rate, rtt):
    """With F in flight and C delivered, F + (r - C) until the next rate is at most 2 BDPs or four packets; where it is
    that already, the rate is a quarter of what is delivered, so that it falls."""
    times, rtts, delivered = samples(60 * rtt, rtt / 4.0, rtt, rate)
    flight = np.full(len(times), load * rate * rtt / 8.0)
    run = pace_trace(LAW, times, rtts, delivered=delivered, in_flight=flight)
    most = max(2.0 * rate * rtt / 8.0, 4.0 * PACKET)
    assert pacing_values(LAW, run.state)["most_in_flight"] == pytest.approx(most)
    then = flight[-1] + (run.rates[-1] - rate) / 8.0 * rtt / 4.0
    assert then <= most * (1.0 + 1e-9) or run.rates[-1] == pytest.approx(0.25 * rate)
