"""Receivers that delay acknowledgements, and paced senders that send in pieces: closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.kernel.scenarios.lacks import scenario_lacks
from netctrl.laws.rate.cap import CapSender
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW

RTT, RATE, SEGMENT, PAYLOAD = 0.04, 1e7, 1500, 1460


def run(duration=20.0, *, links=(), rate=RATE, lost=0.0, **fields) -> Result:
    """A flow over one link and back over another, fast one, on which nothing but acknowledgements are."""
    there = Link(id="there", source="a", target="b", capacity=rate, delay=RTT / 2, buffer=1e6)
    back = Link(id="back", source="b", target="a", capacity=1e9, delay=RTT / 2, buffer=1e6, loss=lost)
    flow = Flow(**{"id": "f", "path": ("there",), "ack_path": ("back",), "rtt": RTT, "ecn": False} | fields)
    return simulate_packets(
        Scenario(links=[there, back], flows=[flow], duration=duration, warmup=duration / 4, packet_size=SEGMENT)
    )


@pytest.mark.parametrize("sender", ["reno", "cubic", "bbr"])
def test_each_second_packet_is_answered(sender):
    found, each = (run(sender=sender, receive_window=1e5, delayed_acks=flag) for flag in (True, False))  # none is lost
    packets = found["throughput", "f"] / SEGMENT
    assert found["throughput", "back"] / 40 == pytest.approx(packets / 2.0, rel=0.01)
    assert each["throughput", "back"] / 40 == pytest.approx(each["throughput", "f"] / SEGMENT, rel=0.01)
    assert found["throughput", "f"] == pytest.approx(each["throughput", "f"], rel=0.02)


def test_the_round_trip_that_is_measured_is_the_older_packet_s():
    """A window of ten packets over 10 Mbit/s: the second packet comes 1.2 ms after the first, which waits for it."""
    window = 10 * PAYLOAD
    at_once = run(receive_window=window)["rtt", "f"]
    assert run(receive_window=window, delayed_acks=True)["rtt", "f"] == pytest.approx(at_once + 0.0012, abs=1e-4)


@pytest.mark.parametrize("lost", [0.0, 0.5])
def test_the_round_trip_that_is_measured_is_the_oldest_packet_s(lost):
    """A window of 68 packets is always under way, whatever becomes of the acknowledgements: 1.2 ms for each of them."""
    assert run(receive_window=68 * PAYLOAD, lost=lost)["rtt", "f"] == pytest.approx(68 * 0.0012, rel=2e-3)


def test_one_packet_alone_waits_for_forty_milliseconds():
    """A window of one packet; but each acknowledgement of the first 16, which are sent at once."""
    window, trip = PAYLOAD, RTT + 8.0 * SEGMENT / RATE + 3.2e-7
    found = run(duration=40.0, receive_window=window, delayed_acks=True)
    assert found["goodput", "f"] == pytest.approx(8.0 * PAYLOAD / (trip + 0.04), rel=0.01)
    assert found["rtt", "f"] == pytest.approx(trip + 0.04, rel=1e-3)
    early = run(duration=16 * trip, receive_window=window, delayed_acks=True)
    assert early["rtt", "f"] == pytest.approx(trip, rel=1e-3)


def test_what_was_written_is_answered_to_its_end_at_once():
    """Frames of three packets: the third has no second."""
    offers = {"kind": "writes", "size": 3 * PAYLOAD, "interval": 0.1}
    late, each = (run(offers=offers, delayed_acks=flag).transfers["duration"][10:] for flag in (True, False))
    np.testing.assert_allclose(late, each, rtol=1e-6)
    found = run(offers=offers, delayed_acks=True)
    assert found["rtt", "f"] < RTT + 0.01


def test_marks_are_heard_as_fast_as_ever():
    """DCTCP's receiver answers at each change of the marks (RFC 8257, section 3.2), so its queue is the same."""
    fields = {"sender": "dctcp", "count": 2, "ecn": True}
    queue = {"kind": "threshold", "threshold": 30e3}
    link = Link(id="there", source="a", target="b", capacity=1e8, delay=0.001, buffer=1e6, queue=queue)
    made = []
    for flag in (False, True):
        flow = Flow(id="f", path=("there",), rtt=0.002, delayed_acks=flag, **fields)
        made.append(simulate_packets(Scenario(links=[link], flows=[flow], duration=4.0, warmup=1.0)))
    each, late = made
    assert late["backlog", "there"] == pytest.approx(each["backlog", "there"], rel=0.1)
    assert late["utilization", "there"] == pytest.approx(1.0, abs=1e-3)


def test_a_loss_is_repaired_as_fast_as_ever():
    found, each = (run(sender="reno", rate=1e6, delayed_acks=flag, count=4, duration=60.0) for flag in (True, False))
    assert found["utilization", "there"] == pytest.approx(each["utilization", "there"], abs=0.01)


def test_paced_senders_send_in_pieces_of_a_millisecond():
    """100 Mbit/s over 1 Gbit/s: 12,207 bytes are eight packets of 1500, and all but the first of a piece wait."""
    sender = CapSender(rate=1e8)
    pieces, even = (run(sender=sender, rate=1e9, offload=flag, duration=8.0) for flag in (True, False))
    assert even["delay", "there"] < 1e-7
    assert pieces["delay", "there"] == pytest.approx(3.5 * 8.0 * SEGMENT / 1e9, rel=0.02)
    assert pieces["throughput", "f"] == pytest.approx(even["throughput", "f"], rel=0.01)


def test_a_piece_is_half_the_window_at_most():
    """Over half a millisecond TCP adds up to 64 kB to a piece, so that one would be all that may be under way."""
    link = Link(id="l", source="a", target="b", capacity=1e9)
    flow = Flow(id="f", path=("l",), rtt=5e-4, sender=CapSender(rate=1e8), offload=True)
    state = run_packets(packet_problem(Scenario(links=[link], flows=[flow], duration=0.5, packet_size=SEGMENT)), 10.0)
    assert state.flow[0, FLOW["piece"]] == int(0.5 * state.window[0, 0]) > 2


def test_what_no_engine_would_do_is_refused():
    with pytest.raises(InvalidValue, match="nothing paces"):
        Flow(sender="cubic", offload=True)
    with pytest.raises(InvalidValue, match="nothing but for flows of data"):
        Flow(offers={"kind": "stream", "rate": "1Mbit"}, delayed_acks=True)
    with pytest.raises(InvalidValue, match="data centre"):
        Flow(sender="hpcc", delayed_acks=True)
    link = Link(id="l", source="a", target="b", capacity=RATE)
    for name, engines in (("delayed_acks", {"packet", "kernel"}), ("offload", {"packet"})):
        flow = Flow(id="f", path=("l",), rtt=RTT, sender="bbr", **{name: True})
        scenario = Scenario(links=[link], flows=[flow], duration=2.0)
        lacks = {**supports(scenario), "kernel": scenario_lacks(scenario)}
        assert {engine for engine, lack in lacks.items() if lack is None} == engines
