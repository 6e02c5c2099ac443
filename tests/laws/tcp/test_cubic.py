"""Cubic's window by hand (RFC 9438, in whole packets): fast convergence, the Reno-friendly line, a time-out."""

from math import inf

import numpy as np
import pytest

from netctrl.laws.record import as_record, width
from netctrl.laws.tcp.cubic import CUBIC, CubicState
from netctrl.laws.tcp.sender import Acked


def begun(window: float, highest: float = 0.0, threshold: float = 0.0) -> np.record:
    state = as_record(CubicState, np.zeros(width(CubicState)))
    state.window, state.highest, state.threshold, state.min_rtt = window, highest, threshold, inf
    return state


def followed(state: np.record, start: float, end: float, rtt: float, step: float = 1e-3) -> float:
    """The window after acknowledgements that come steadily, from one time after the cut to another [s]."""
    state.min_rtt = rtt
    for k in range(round((end - start) / step)):
        CUBIC.grow(state, Acked(state.window * step / rtt, start + k * step, rtt, True))
    return state.window


def acknowledged(state: np.record, packets: int, since: float = 0.0) -> float:
    """The window after so many packets, acknowledged one by one at once."""
    state.min_rtt = 0.0
    for _ in range(packets):
        CUBIC.grow(state, Acked(1.0, since, 0.0, True))
    return state.window


def test_fast_convergence_begins_at_the_window_after_the_cut():
    """W = 80 below a W_max of 100: W_max = .85 · 80 = 68, W = 56, K = ((68 − 56)/.4)^(1/3) = 3.107 s, so that W is 64.3
    after 1 s; with K = (.3 · 68/.4)^(1/3) = 3.708 s it would be 60.1. The window is below the curve's 64.3 and 71.2 by
    what it grows in a round trip, up to 1.1 packets, and by up to two packets that aren't whole."""
    state, rtt, begins = begun(80.0, 100.0), 0.3, 0.3
    CUBIC.cut(state)
    assert (state.window, state.highest) == (56.0, 68.0)
    for since, offset, most in ((1.0, -2.107, 3.1), (3.107, 0.0, 1.0), (5.107, 2.0, 3.1)):
        curve = 68.0 + 0.4 * offset**3
        state = begun(80.0, 100.0)
        CUBIC.cut(state)
        window = followed(state, begins, begins + since, rtt)
        assert curve + 0.2 - most <= window <= curve + 0.4 * (abs(offset) + rtt) ** 2 * rtt * 3.0 + 1.0
        assert window == int(window)


def test_the_reno_friendly_line_begins_at_the_window_after_the_cut():
    """W = 10 below 12: W = 7, and W_max = 8 (8.5). The line grows by a packet after 7/(.9/1.7) = 13.2 packets: at the
    14th, when more than the 7 that it then takes are counted already. After it 8 · 1.889 = 15.1 packets, of which .78
    are counted, and so on: after 20 windows it is at 7 + 20 · .9/1.7 = 17.6 if windows are as long as packets are."""
    state = begun(10.0, 12.0)
    CUBIC.cut(state)
    assert (state.window, state.highest) == (7.0, 8.0)
    acknowledged(state, 1)
    state.until = 1e3  # the curve is far below
    assert acknowledged(state, 12) == 7.0
    assert acknowledged(state, 1) == 8.0
    assert acknowledged(state, 14) == 8.0
    assert acknowledged(state, 1) == 9.0
    state, rtt = begun(10.0, 12.0), 0.01
    CUBIC.cut(state)
    assert followed(state, rtt, 21 * rtt, rtt, 1e-4) == pytest.approx(7.0 + 20 * 0.9 / 1.7, abs=1.0)


def test_a_fluid_s_window_is_on_the_curve():
    """The same in parts of packets: within 3 C |t − K| R², .23 packets, of the curve; after 20 round trips of 10 ms on
    the line, 7 + 20 · .9/1.7 = 17.588 packets."""
    state, rtt, begins = begun(80.0, 100.0), 0.3, 0.3
    state.even = 1.0
    CUBIC.cut(state)
    assert (state.window, state.highest) == (56.0, 68.0)
    assert followed(state, begins, begins + 1.0, rtt) == pytest.approx(68.0 - 0.4 * 2.107**3, abs=0.3)
    assert followed(state, begins + 1.0, begins + 3.107, rtt) == pytest.approx(68.0, abs=0.05)
    assert followed(state, begins + 3.107, begins + 5.107, rtt) == pytest.approx(68.0 + 0.4 * 2.0**3, abs=0.3)
    state, rtt = begun(10.0, 12.0), 0.01
    state.even = 1.0
    CUBIC.cut(state)
    assert (state.window, state.highest) == (7.0, 8.5)
    assert followed(state, rtt, 21 * rtt, rtt, 1e-4) == pytest.approx(7.0 + 20 * 0.9 / 1.7, abs=0.06)


def test_a_curve_that_rises_by_a_packet_lets_it_grow_in_a_window():
    """5 s after K the curve is 50 packets above W_max = W = 100: each two acknowledged packets let out one more; 2.5 s
    after it 6 (6.25) packets above, each 16. Where the curve asks for none, a hundred windows do."""
    for since, packets in ((5.0, 2), (2.5, 16), (1.0, 100 * 100)):
        state = begun(100.0, highest=100.0)
        acknowledged(state, 1)  # it begins
        state.until, state.friendly = 0.0, -inf
        assert acknowledged(state, packets - 2, since) == 100.0
        assert acknowledged(state, 1, since) == 101.0


def test_after_slow_start_the_curve_begins_at_its_end():
    """K = 0 and W_max = 35, the window at the end of the slow start that follows a time-out: W = 35 + .4 t³, or faster,
    as while nothing is known of losses each 20 packets let out one more: Linux's rule."""
    state, rtt = begun(1.0, 50.0, threshold=35.0), 0.3
    state.timed_out, state.min_rtt = 1.0, rtt
    CUBIC.grow(state, Acked(34.0, 0.5, rtt, True))
    assert (state.window, state.highest) == (35.0, 0.0)
    assert acknowledged(state, 19, 2.0) == 35.0
    assert acknowledged(state, 1, 2.0) == 36.0
    assert (state.plateau, state.until, state.highest) == (35.0, 0.0, 0.0)
    fresh = begun(10.0, threshold=inf)
    CUBIC.grow(fresh, Acked(1.0, 0.0, rtt, True))
    assert (fresh.window, fresh.plateau) == (11.0, 0.0)


def test_a_pause_keeps_the_curve_and_a_time_out_forgets_it():
    state = begun(80.0, 100.0)
    CUBIC.cut(state)
    followed(state, 0.3, 1.3, 0.3)
    known = state.highest, state.plateau, state.until
    state.window, state.threshold = 20.0, 40.0  # as after a pause
    acknowledged(state, 5, 2.0)
    assert (state.window, state.highest, state.plateau, state.until) == (25.0, *known)
    state.timed_out = 1.0
    acknowledged(state, 5, 2.0)
    assert (state.window, state.highest, state.plateau) == (30.0, 0.0, 0.0)
