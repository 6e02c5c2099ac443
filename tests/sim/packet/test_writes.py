"""Programs that write into a connection that stays open, and receivers with windows: closed forms, order, no loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Writes
from netctrl.sim.packet.run import simulate_packets

RTT, RATE, SEGMENT, PAYLOAD = 0.04, 1e8, 1500, 1460


def scenario(sender="reno", size=12.5e3, interval=0.04, duration=10.0, *, seed=1, window=None, **line) -> Scenario:
    """Writes over one link of 100 Mbit/s, with a round trip of 40 ms; `size` None: endless data."""
    link = Link(**{"id": "line", "source": "a", "target": "b", "capacity": RATE, "delay": 0.01, "buffer": 1e6} | line)
    offers = None if size is None else Writes(size=size, interval=interval)
    flow = Flow(id="program", path=("line",), rtt=RTT, sender=sender, offers=offers, receive_window=window, ecn=False)
    return Scenario(links=[link], flows=[flow], duration=duration, warmup=1.0, packet_size=SEGMENT, seed=seed)


def alone(size: float, rounds: int = 1) -> float:
    """Time of a write that takes so many windows: a round trip each but the last, half of one, and the last window's
    transmission [s]; the windows before the last are 10, 20, 40 packets."""
    before = PAYLOAD * 10 * (2 ** (rounds - 1) - 1)
    left = size - before
    packets = -(-left // PAYLOAD)
    return (rounds - 0.5) * RTT + 8.0 * (left + 40.0 * packets) / RATE + (rounds > 1) * 8.0 * SEGMENT / RATE


@pytest.mark.parametrize("sender", ["reno", "cubic", "htcp", "vegas", "bbr"])
def test_a_frame_takes_its_transmission_and_half_a_round_trip(sender):
    """Nine packets at once: less than a connection begins with."""
    found = simulate_packets(scenario(sender))
    rows = found.transfers
    np.testing.assert_allclose(rows["start"], 0.04 * np.arange(250), atol=1e-9)
    if sender != "bbr":  # which paces
        first = 1.5 * RTT + 3e-6 + 8.0 * 12860 / RATE  # after a handshake, whose packets take 3.2 µs
        assert rows["duration"][0] == pytest.approx(first, abs=1e-5)
    np.testing.assert_allclose(rows["duration"][3:], alone(12.5e3), atol=0.01 if sender == "bbr" else 5e-6)
    assert found["goodput", "program"] == pytest.approx(2.5e6, rel=1e-3)
    assert found["response", "program"] == pytest.approx(rows["duration"][25:].mean())
    assert found["response 95 %", "program"] == pytest.approx(np.percentile(rows["duration"][25:], 95.0))


def test_after_a_pause_a_window_is_as_at_first():
    """30 packets each 5 s take windows of 10 and 20 packets each time: 5 s are more than all halvings take."""
    rows = simulate_packets(scenario(size=30 * PAYLOAD, interval=5.0, duration=40.0)).transfers
    np.testing.assert_allclose(rows["duration"][1:], alone(30 * PAYLOAD, 2), atol=5e-5)
    often = simulate_packets(scenario(size=30 * PAYLOAD, interval=0.15, duration=40.0)).transfers
    np.testing.assert_allclose(often["duration"][5:], alone(30 * PAYLOAD), atol=1e-6)  # within the timeout it is kept


def test_bbr_remembers_its_rate_while_data_are_short():
    """500 kB each second over 100 Mbit/s: a bandwidth that forgot what pauses hide would be 4 Mbit/s after ten of them.
    In Linux (kernel lab) each takes 61.9 ms once the rate is known."""
    rows = simulate_packets(scenario("bbr", size=5e5, interval=1.0, duration=30.0)).transfers
    np.testing.assert_allclose(rows["duration"][2:], 0.0615, atol=1e-3)


def test_what_the_link_cannot_carry_waits_at_the_sender():
    """10 kB each 2 ms are 40 Mbit/s for a link of 20: the n-th is done after n times 10 kB at its rate."""
    found = simulate_packets(scenario(size=1e4, interval=2e-3, capacity=2e7, buffer=1e5))
    assert found["utilization", "line"] > 0.99
    rows = found.transfers
    late = np.interp([1.5, 3.5], rows["start"], rows["duration"])
    share = 8.0 * (1e4 + 7 * 40) / 2e7 / 2e-3  # of the link that is asked for
    assert late[1] - late[0] == pytest.approx(2.0 * (share - 1.0), rel=0.02)


@settings(max_examples=25)
@given(
    st.sampled_from(["reno", "cubic", "bbr"]),
    st.floats(1.0, 1e5),
    st.floats(1e-3, 0.5),
    st.floats(0.0, 0.05),
    st.integers(0, 1000),
)
def test_writes_come_whole_and_in_order(sender, size, interval, loss, seed):
    """Never before light and transmission let them, the first written first; what came is no more than was written."""
    found = simulate_packets(scenario(sender, size, interval, 5.0, seed=seed, loss=loss))
    rows = found.transfers
    done = rows["start"] + rows["duration"]
    assert (np.diff(done) >= -1e-12).all() and done.max(initial=0.0) <= 5.0 + 1e-9
    np.testing.assert_allclose(np.diff(rows["start"]), interval, rtol=1e-6, atol=2e-9)
    assert (rows["duration"] >= 0.5 * RTT + 8.0 * size / RATE - 1e-6).all()
    received = found.series["payload"][0].sum()
    assert len(rows["size"]) * round(size) <= received + 1e-6
    assert received <= np.ceil(5.0 / interval + 1.0) * round(size)


@pytest.mark.parametrize("sender", ["reno", "cubic", "bbr"])
def test_a_round_trip_carries_a_receive_window(sender):
    found = simulate_packets(scenario(sender, None, window=65536.0))
    trip = RTT + 8.0 * SEGMENT / RATE
    assert found["goodput", "program"] == pytest.approx(8.0 * (65536 // PAYLOAD) * PAYLOAD / trip, rel=0.002)
    assert found["loss", "line"] == 0.0


def test_a_window_that_takes_nothing_out_of_order_still_gets_on():
    found = simulate_packets(scenario("reno", None, window=1.0, loss=0.05, duration=30.0))
    assert 8.0 * PAYLOAD / 1.0 < found["goodput", "program"] < 8.0 * PAYLOAD / RTT


def test_others_say_that_they_lack_them():
    for fields in ({}, {"size": None, "window": 1e5}):
        whole = scenario(**fields)
        lacks = supports(whole)
        assert lacks["packet"] is None
        assert all("program" in lacks[name] for name in ("fluid", "ns3"))


def test_values_that_do_not_fit():
    for fields, name in (({"size": 0.0, "interval": 1.0}, "size"), ({"size": 1e3, "interval": 1e-9}, "interval")):
        with pytest.raises(InvalidValue) as refusal:
            Writes(**fields)
        assert name in refusal.value.argument
    with pytest.raises(InvalidValue) as refusal:
        netctrl.Flow(offers={"kind": "stream", "rate": "1Mbit"}, receive_window="64kB")
    assert refusal.value.argument == "receive_window"
    for fields in ({"offers": {"kind": "writes", "size": 1e4, "interval": 0.1}}, {"receive_window": 1e5}):
        with pytest.raises(InvalidValue) as refusal:
            netctrl.Flow(sender="hpcc", **fields)
        assert refusal.value.argument in fields


def test_windows_are_sampled():
    """Slow start doubles a window each round trip of 40 ms from 10 packets on; what is in flight is within it."""
    whole = scenario(None, None, capacity=1e10, duration=1.2).replace(interval=RTT, warmup=0.0)
    found = simulate_packets(whole)
    window, out = (found.series[name, "program"] / SEGMENT for name in ("window", "in_flight"))
    np.testing.assert_allclose(window[1:8], 10.0 * 2.0 ** np.arange(7), atol=1.0)
    assert np.isnan(window[0])  # the connection isn't open yet
    assert (out[1:8] <= window[1:8]).all() and (out[1:8] > 0.9 * window[1:8] - 1.0).all()
    held = simulate_packets(scenario(None, None, window=20 * PAYLOAD))
    assert (held.series["in_flight", "program"][5:] == 20 * SEGMENT).all()
