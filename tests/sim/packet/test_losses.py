"""TCP of the packet engine through losses made by hand: what RFC 5681, 6298, 6582, 6937 and 8985 say happens next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from netctrl.laws.rate.cap import CapSender
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.kernel import advance_packets, resume
from netctrl.sim.packet.problem import PacketProblem, packet_problem
from netctrl.sim.packet.run import run_packets
from netctrl.sim.packet.state import ACK, DUPLICATE, FLOW, KIND_MASK, KIND_SHIFT, LINK, PACKET, PacketState, grown

RTT, SEGMENT = 0.1, 1.2e-3
"""Without queue; of a segment on the wire [s]."""


def scenario_of(
    end: float, *, rtt: float = RTT, flow: Mapping[str, Any] = MappingProxyType({}), **fields: Any
) -> Scenario:
    """One flow at 10 Mbit/s from 0 to `end` [s]."""
    line = Link(id="line", source="a", target="b", capacity=1e7, delay=0.0)
    group = Flow(id="flow", path=("line",), rtt=rtt, count=1, ecn=False, **flow)
    return Scenario(
        name="losses", duration=end, links=(line,), flows=(group,), packet_size=1500, interval=end, **fields
    )


def run(end: float, closed: Iterable[tuple[float, float]], *, offers: int | None = None, **fields: Any) -> PacketState:
    """A Reno flow; what comes to the link while it is closed is lost. Times in s."""
    ready = packet_problem(scenario_of(end, **{"flow": {"offers": offers}} | fields))
    state = ready.state
    state.agenda[:, 0] = 1  # the host is at the link
    changes = sorted([*((a, 0) for a, _ in closed), *((b, 1 << 60) for _, b in closed)])
    for time, room in [*(each for each in changes if each[0] < end), (end, 0)]:
        while not advance_packets(state, ready.interval, ready.full, 10.0, round(time * 1e9)):
            state, waiting = grown(state)
            resume(state, waiting)
        state.link[0, LINK["buffer"]] = room
    return state


def sender(state: PacketState) -> dict[str, float]:
    names = ("sent", "again", "cuts", "timeouts", "una", "next", "pipe", "timer")
    found = {name: int(state.flow[0, FLOW[name]]) for name in names}
    return found | {"window": state.window[0, 0], "threshold": state.window[0, 1]}


HANDSHAKE = RTT + 3.2e-5
"""The 40 bytes of a SYN on the wire are part of it."""


def opening(*numbers: int) -> list[tuple[float, float]]:
    """Times at which these segments of the second round trip come: two for each acknowledgement of the first ten."""
    first = HANDSHAKE + SEGMENT + RTT  # the acknowledgement of segment 0 is there
    return [(first + SEGMENT * k - 1e-4, first + SEGMENT * k + 1e-4) for k in numbers]


def test_a_segment_is_sent_again_after_three_others_and_the_window_halved_once():
    """Segments 10 and 11 come first, at one time: both are lost. RFC 5681, eq. 4; RFC 6675, section 5."""
    state = sender(run(0.5, opening(0)))
    assert (state["again"], state["cuts"], state["timeouts"]) == (2, 1, 0)
    assert state["threshold"] == 10.0  # of the 20 that ten acknowledgements in slow start made


@pytest.mark.parametrize("numbers", [(1,), (2, 4), (1, 3, 5, 7)])
def test_losses_of_one_window_are_one_event(numbers):
    """RFC 6582, section 3.2, and SACK repairs all of it: RFC 6675."""
    state = sender(run(0.7, opening(*numbers)))
    assert (state["again"], state["cuts"], state["timeouts"]) == (2 * len(numbers), 1, 0)
    assert state["threshold"] == 10.0 + numbers[0]
    assert state["pipe"] == state["next"] - state["una"]  # nothing is missing any more


def test_timeouts_are_twice_as_far_apart_each_time():
    """RFC 6298, rule 5.5; RFC 8985, section 7: a probe after two round trips; then R + 4 R/2 later, twice that."""
    silent, probe = HANDSHAKE - 1e-3, HANDSHAKE + 2 * RTT + 2e-3
    first = probe + 3 * RTT
    for end, sent, timeouts in (
        (probe - 1e-3, 10, 0),
        (probe + 1e-3, 11, 0),
        (first - 1e-3, 11, 0),
        (first + 1e-3, 12, 1),
        (first + 6 * RTT - 1e-3, 12, 1),
        (first + 6 * RTT + 1e-3, 13, 2),
        (first + 18 * RTT + 1e-3, 14, 3),
    ):
        found = sender(run(end, [(silent, 100.0)]))
        assert (found["sent"], found["timeouts"]) == (sent, timeouts)
    assert (found["window"], found["threshold"], found["pipe"]) == (1.0, 5.0, 1)


@pytest.mark.parametrize(("least", "timeout"), [(0.2, 3.0), (1.0, 11.0)])
def test_the_timeout_is_above_the_round_trip(least, timeout):
    """R + max(4 R/2, least) of the handshake's R, after the probe."""
    probe = HANDSHAKE + 2 * RTT + 2e-3
    for late, timeouts in ((-1e-3, 0), (1e-3, 1)):
        state = run(probe + timeout * RTT + late, [(HANDSHAKE - 1e-3, 100.0)], min_rto=least)
        assert sender(state)["timeouts"] == timeouts


def test_a_timer_may_end_before_one_that_was_planned_earlier():
    """A SYN is lost at 0 and answered at 1.1 s, when its own timer would end at 3 s; then all data is lost."""
    closed = [(0.0, 0.5), (1.05, 1.15), (1.2, 9.0)]
    assert sender(run(1.59, closed))["timeouts"] == 1
    assert sender(run(1.61, closed))["timeouts"] == 2


def test_a_retransmission_that_is_lost_is_sent_again_after_what_was_sent_later_came():
    """RFC 8985, section 6.2: no timeout, and the threshold stays what the loss made it."""
    second = opening(0)
    third = second[0][0] + 1e-4 + RTT + 4 * SEGMENT  # segment 14 is acknowledged, 10 is sent again
    closed = [*second, (third - 1e-4, third + 1e-4)]
    assert sender(run(third + RTT, closed))["again"] == 2
    state = sender(run(third + 1.5 * RTT, closed))
    assert (state["again"], state["cuts"], state["timeouts"], state["threshold"]) == (3, 1, 0, 10.0)
    assert state["una"] == 10
    assert sender(run(third + 2.5 * RTT, closed))["una"] > 20


def test_the_last_segments_are_repaired_by_a_probe():
    """RFC 8985, section 7: of twelve segments the last two are lost; silence, the last one again, then the other."""
    lost = opening(0)
    state = run(0.7, lost, offers=12 * 1460)
    assert sender(state)["timeouts"] == 0
    assert sender(state)["again"] == 2
    assert state.flow[0, FLOW["received"]] == 12 * 1460


def test_a_window_is_reduced_in_step_with_what_arrives():
    """RFC 6937: 40 segments are in flight, the threshold is 20: one is sent for two that arrive, from the first on."""
    lost = opening(0)
    start = lost[0][0] + 1e-4 + RTT + 4 * SEGMENT
    sent = [sender(run(start + 4 * k * SEGMENT, lost))["sent"] for k in range(1, 4)]
    assert np.ptp(np.diff(sent)) <= 1
    assert np.diff(sent).mean() == pytest.approx(2.0, abs=0.5)


def test_a_timeout_that_was_wrong_is_undone():
    """The line holds its packets back for half a second: the first acknowledgements tell that nothing was lost."""
    whole = scenario_of(3.0, flow={"sender": "cubic"}, changes=(Change(at=1.0, link="line", delay=0.8),))
    state = run_packets(packet_problem(whole), 10.0)
    found = sender(state)
    assert found["timeouts"] >= 1
    assert found["window"] > 20.0
    assert found["again"] <= 0.02 * found["sent"]


def test_after_a_timeout_slow_start_goes_to_the_threshold():
    """1, 2, 4 segments a round trip below 5, then one more in each: RFC 5681, section 3.1."""
    closed = [(HANDSHAKE - 1e-3, HANDSHAKE + 2 * RTT + 1e-2)]  # the probe, too
    timeout = HANDSHAKE + 2 * RTT + 2e-3 + 3 * RTT
    windows = [sender(run(timeout + RTT * (k + 0.7), closed))["window"] for k in range(4)]
    np.testing.assert_allclose(windows[:3], [1.0, 2.0, 4.0])
    assert 5.0 <= windows[3] < 6.0


def in_flight(end: float) -> tuple[PacketProblem, PacketState]:
    """The first ten segments, sent at one time, or their acknowledgements, at this time [s]."""
    ready = packet_problem(scenario_of(1.0))
    ready.state.agenda[:, 0] = 1
    assert advance_packets(ready.state, ready.interval, ready.full, 10.0, round(end * 1e9))
    return ready, ready.state


@pytest.mark.parametrize(("latest_ms", "received"), [(101.9, 10), (102.0, 0)])
def test_what_was_overtaken_by_what_was_sent_again_is_refused(latest_ms, received):
    """RFC 7323, section 5.3: in ticks of a millisecond, more than one behind what last came in order, as Linux has it.
    What was refused is lost to the sender, too."""
    ready, state = in_flight(HANDSHAKE + 1e-4)
    state.flow[0, FLOW["stamp"]] = round(latest_ms * 1e6)
    advance_packets(state, ready.interval, ready.full, 10.0, round(1e9 * (HANDSHAKE + 0.5 * RTT)))
    assert state.flow[0, FLOW["received"]] == received * 1460
    advance_packets(state, ready.interval, ready.full, 10.0, round(1e9 * (HANDSHAKE + 1.5 * RTT)))
    assert state.flow[0, FLOW["una"]] == received
    assert state.flow[0, FLOW["pipe"]] == max(10, 2 * received)


@pytest.mark.parametrize(("upto", "steps"), [(9, 2), (8, 1)])
def test_an_answer_that_was_overtaken_tells_of_no_duplicate(upto, steps):
    """Linux refuses it; else each duplicate makes the window for reordering wider: RFC 8985, section 6.2, step 4."""
    ready, state = in_flight(HANDSHAKE + 0.5 * RTT)
    seq, info, back = (state.packet[:, PACKET[name]] for name in ("seq", "info", "back"))
    last = (info >> KIND_SHIFT & KIND_MASK == ACK) & (seq == 9)
    info[last], seq[last], back[last] = info[last] | DUPLICATE, 0, upto
    advance_packets(state, ready.interval, ready.full, 10.0, round(1e9 * (HANDSHAKE + 1.5 * RTT)))
    assert state.flow[0, FLOW["una"]] == 9
    assert state.flow[0, FLOW["steps"]] == steps


def test_what_is_sent_again_leaves_alone():
    """Pieces of two packets each 3 ms; both of one are lost, and go again one after the other, not at once."""
    flow = {"sender": CapSender(rate=8e6), "offload": True}
    lost = [(0.5, 0.503)]
    again = [sender(run(0.6 + k * 2.5e-4, lost, flow=flow))["again"] for k in range(60)]
    first, second = (np.searchsorted(again, number) for number in (1, 2))
    assert again[-1] == 2
    assert (second - first) * 2.5e-4 == pytest.approx(1.5e-3, abs=3e-4)
