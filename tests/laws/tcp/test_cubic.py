"""Cubic's window by hand (RFC 9438): fast convergence, the Reno-friendly line, a time-out."""

from math import inf
from types import SimpleNamespace

import pytest

from netctrl.laws.tcp.cubic import CUBIC
from netctrl.laws.tcp.sender import Acked


def begun(window: float, highest: float = 0.0, threshold: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(window=window, highest=highest, threshold=threshold, first=0.0, begun=0.0)


def followed(state: SimpleNamespace, start: float, end: float, rtt: float, step: float = 1e-3) -> float:
    """The window after acknowledgements that come steadily, from one time after the cut to another [s]."""
    for k in range(round((end - start) / step)):
        CUBIC.grow(state, Acked(state.window * step / rtt, start + k * step, rtt, True))
    return state.window


def test_fast_convergence_begins_at_the_window_after_the_cut():
    """W = 80 below a W_max of 100: W_max = .85 · 80 = 68, cwnd_epoch = 56, K = ((68 − 56)/.4)^(1/3) = 3.107 s, so that
    W is 64.3 after 1 s; with K = (.3 · 68/.4)^(1/3) = 3.708 s it would be 60.1. The window follows the curve within
    3 C |t − K| R², .23 packets."""
    state, rtt, begins = begun(80.0, 100.0), 0.3, 0.3
    CUBIC.cut(state)
    assert (state.window, state.highest) == (56.0, 68.0)
    assert followed(state, begins, begins + 1.0, rtt) == pytest.approx(68.0 - 0.4 * 2.107**3, abs=0.3)
    assert followed(state, begins + 1.0, begins + 3.107, rtt) == pytest.approx(68.0, abs=0.05)
    assert followed(state, begins + 3.107, begins + 5.107, rtt) == pytest.approx(68.0 + 0.4 * 2.0**3, abs=0.3)


def test_the_reno_friendly_line_begins_at_the_window_after_the_cut():
    """W = 10 below 12: cwnd_epoch = 7, K = (1.5/.4)^(1/3) = 1.55 s; after 20 round trips of 10 ms the line is at
    7 + 20 · .9/1.7 = 17.588 packets, W_max being 8.5."""
    state, rtt = begun(10.0, 12.0), 0.01
    CUBIC.cut(state)
    assert (state.window, state.highest) == (7.0, 8.5)
    assert followed(state, rtt, 21 * rtt, rtt, 1e-4) == pytest.approx(7.0 + 20 * 0.9 / 1.7, abs=0.06)


def test_after_slow_start_the_curve_begins_at_its_end():
    """K = 0 and W_max = 35, the window at the end of the slow start that follows a time-out: W = 35 + .4 t³."""
    state, rtt = begun(1.0, 50.0, threshold=35.0), 0.3
    CUBIC.grow(state, Acked(34.0, 0.5, rtt, True))
    assert (state.window, state.highest) == (35.0, 0.0)
    assert followed(state, 2.0, 6.0, rtt) == pytest.approx(35.0 + 0.4 * 4.0**3, abs=0.7)
    assert state.highest == 35.0
    fresh = begun(10.0, threshold=inf)
    CUBIC.grow(fresh, Acked(1.0, 0.0, rtt, True))
    assert (fresh.window, fresh.first) == (11.0, 0.0)
