"""TCP of the packet engine through losses made by hand: what RFC 5681, 6298, 6582 and 6675 say happens next."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.kernel import advance_packets, resume
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.state import FLOW, LINK, PacketState, grown

RTT, SEGMENT = 0.1, 1.2e-3
"""Without queue; of a segment on the wire [s]."""


def run(end: float, closed: Iterable[tuple[float, float]], rtt: float = RTT) -> PacketState:
    """One Reno flow at 10 Mbit/s from 0 to `end`; what comes to the link while it is closed is lost. Times in s."""
    line = Link(id="line", source="a", target="b", capacity=1e7, delay=0.0)
    flow = Flow(id="flow", path=("line",), rtt=rtt, count=1, ecn=False)
    scenario = Scenario(name="losses", duration=end, links=(line,), flows=(flow,), packet_size=1500, interval=end)
    ready = packet_problem(scenario)
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
    """RFC 6298, rules 2.2, 2.4, 5.5: a second, two, four; ten segments are out, the window is one."""
    silent = HANDSHAKE - 1e-3
    for end, timeouts in ((1.05, 0), (1.15, 1), (3.05, 1), (3.15, 2), (7.05, 2), (7.15, 3)):
        found = sender(run(end, [(silent, 100.0)]))
        assert found["timeouts"] == timeouts
    assert found["sent"] == 10 + 3
    assert (found["window"], found["threshold"], found["pipe"]) == (1.0, 5.0, 1)


def test_the_timer_follows_the_round_trip():
    """RFC 6298, rule 2.2: RTO = R + 4 R/2 of the handshake's R, here 1.8 s."""
    for end, timeouts in ((0.6 + 1.75, 0), (0.6 + 1.85, 1)):
        assert sender(run(end, [(0.55, 100.0)], rtt=0.6))["timeouts"] == timeouts


def test_a_timer_may_end_before_one_that_was_planned_earlier():
    """A SYN is lost at 0 and answered at 1.1 s, when its own timer would end at 3 s; then all data is lost."""
    closed = [(0.0, 0.5), (1.05, 1.15)]
    assert sender(run(2.05, closed))["timeouts"] == 1
    after = sender(run(2.15, closed))
    assert (after["timeouts"], after["again"]) == (2, 1)


def test_a_retransmission_that_is_lost_waits_for_the_timer():
    """RFC 6675, section 5.1: SACK doesn't tell; the threshold stays what the loss made it."""
    second = opening(0)
    third = second[0][0] + 1e-4 + RTT + 4 * SEGMENT  # segment 14 is acknowledged, 10 is sent again
    closed = [*second, (third - 1e-4, third + 1e-4)]
    last = HANDSHAKE + RTT + 10 * SEGMENT  # segment 9 is acknowledged
    state = sender(run(last + 0.99, closed))
    assert (state["cuts"], state["timeouts"]) == (1, 0)
    state = sender(run(last + 1.01, closed))
    assert (state["cuts"], state["timeouts"]) == (1, 1)
    assert state["threshold"] == 10.0


def test_after_a_timeout_slow_start_goes_to_the_threshold():
    """1, 2, 4 segments a round trip below 5, then one more in each: RFC 5681, section 3.1."""
    closed = [(HANDSHAKE - 1e-3, HANDSHAKE + 1e-3)]
    timeout = HANDSHAKE + 1.0
    windows = [sender(run(timeout + RTT * (k + 0.7), closed))["window"] for k in range(4)]
    np.testing.assert_allclose(windows[:3], [1.0, 2.0, 4.0])
    assert 5.0 <= windows[3] < 6.0
