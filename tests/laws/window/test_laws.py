"""Laws of a data centre's senders, one step at a time, against their papers' formulas and numbers."""

from __future__ import annotations

from math import asinh, cosh, inf, sinh, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.laws.window.dcqcn import dcqcn_timers
from netctrl.laws.window.explicit import riccati_gain
from netctrl.laws.window.hpcc import inflight
from netctrl.laws.window.interface import OWN, RATE, STATES, WINDOW, Acknowledged
from netctrl.laws.window.mpcc import fair_state, predicted_queue
from netctrl.laws.window.records import SCHEMES, Dcqcn, Dctcp, Hpcc, Mpcc, Timely
from netctrl.laws.window.registry import LAWS, law_of, law_paths, mpcc_gains, parameters_of, step_law

# One hop of 1 Gbit/s, 34.752 us, as in section 5.2 of the thesis.
PATHS = np.array([[34752.0, 4344.0, 1e9, 1.0, 1e9, 0.0, 0.0, 0.0, 0.0]])
THESIS = Mpcc(bdp=3750, rtt=34.752e-6, packet_size=1080, window=3750, window_weight=1.0)


def seen(**given) -> Acknowledged:
    usual = {"now": 1_000_000, "una": 1000, "sequence": 0, "next_byte": 5000, "newly": 1000, "rtt": 40_000}
    usual |= {"marked": False, "notified": False, "lost": False, "path": 0}
    return Acknowledged(**(usual | given))


def hops(*rows) -> np.ndarray:
    table = np.zeros((5, 4), dtype=np.int64)
    for place, row in enumerate(rows):
        table[place] = row
    return table


def one_step(scheme, state, acknowledged, telemetry, history=None, paths=PATHS, gains=None) -> None:
    own = law_paths(scheme, paths)
    table = mpcc_gains(scheme, own, 1100, 64) if gains is None else gains
    row = parameters_of(scheme, payload=1000, wire=1100, rtt_ns=34752.0)
    past = np.zeros(16) if history is None else history
    step_law(law_of(scheme), row, own, table, state, past, acknowledged, telemetry)


def test_every_scheme_has_a_law_and_parameters() -> None:
    assert set(LAWS) == set(SCHEMES)
    for scheme in SCHEMES:
        row = parameters_of(scheme(), payload=1000, wire=1100, rtt_ns=1e4)
        assert np.isfinite(row).all()


@pytest.mark.parametrize(
    ("weight", "horizon", "gain"),
    [
        (1.0, 1, 0.3),
        (1.0, 3, 0.6661379857),
        (1.0, 5, 0.7957578145),
        (1.0, 10, 0.8452198244),
        (1.0, 20, 0.8471245836),
        (100.0, 5, 0.016465687),
        (100.0, 20, 0.0577077436),
    ],
)
def test_gains_of_the_theory_note(weight, horizon, gain) -> None:
    assert riccati_gain(1.0 / 3.0, horizon, 1.0, weight) == pytest.approx(gain, abs=6e-11)


@given(st.floats(1e-3, 1e3), st.integers(1, 30), st.floats(1e-2, 1e2), st.floats(1e-2, 1e2))
def test_the_recursion_is_its_closed_form(B, P, queue_weight, window_weight) -> None:
    y = 0.5 * B * sqrt(queue_weight / window_weight)
    theta = 2.0 * asinh(y)
    closed = 2.0 * y / B
    if (P + 0.5) * theta < 300.0:
        closed *= sinh(P * theta) / cosh((P + 0.5) * theta)
    else:
        closed *= np.exp(-0.5 * theta)
    assert riccati_gain(B, P, queue_weight, window_weight) == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize(
    ("weight", "windows"),
    [
        (1.0, (937.5, 884.007327, 670.036636, 349.080600, 1.0)),
        (100.0, (937.5, 931.901813, 909.509067, 875.919948, 657.590671)),
    ],
)
def test_windows_of_section_5_2(weight, windows) -> None:
    """The theory note's table of W at Q = 0, 100, 500, 1100, 5000; W = 0 is floored at 1 byte."""
    import msgspec

    scheme = msgspec.structs.replace(THESIS, window_weight=weight)
    for queue, expected in zip((0, 100, 500, 1100, 5000), windows, strict=True):
        state = np.zeros(STATES)
        state[WINDOW] = 3750.0
        one_step(scheme, state, seen(), hops((queue, 4, 0, 0)))
        assert state[WINDOW] == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("queue", "predicted"), [(5000.0, 5733.3333), (200.0, 1333.3333)])
def test_predicted_queues_of_the_theory_note(queue, predicted) -> None:
    """B = 1/3, u = (−900, −900, 2000, 2000), never below 0 on the way."""
    history = np.array([-900.0, -900.0, 2000.0, 2000.0]) + 1000.0
    assert predicted_queue(queue, 1.0 / 3.0, 1000.0, history, 3, 4) == pytest.approx(predicted, abs=1e-4)


def test_the_fullest_hop_counts_and_with_empty_ones_the_least_share() -> None:
    path = np.array([12000.0, 150000.0, 1e11, 3.0, 4e11, 4e11, 1e11, 0.0, 0.0])
    assert fair_state(path, hops((500, 9, 0, 0), (600, 3, 0, 0), (10, 2, 0, 0))[:3]) == (600.0, 3, 4.0 / 3.0)
    assert fair_state(path, hops((0, 9, 0, 0), (0, 3, 0, 0), (0, 5, 0, 0))[:3]) == (0.0, 5, 0.2)


@given(
    st.integers(0, 10**7),
    st.integers(1, 2000),
    st.floats(1.0, 4344.0),
    st.sampled_from(["delay-free", "delayed", "feed-forward", "hold"]),
    st.sampled_from([None, 3750]),
)
def test_mpccs_window_is_between_a_byte_and_the_largest(queue, flows, window, variant, given_window) -> None:
    state, history = np.zeros(STATES), np.zeros(16)
    state[WINDOW] = window
    for _ in range(3):
        one_step(Mpcc(variant=variant, window=given_window), state, seen(), hops((queue, flows, 0, 0)), history)
        assert 1.0 <= state[WINDOW] <= 4344.0


def test_hold_holds_while_queues_are_empty() -> None:
    state = np.zeros(STATES)
    state[WINDOW] = 123.0
    one_step(Mpcc(variant="hold"), state, seen(), hops((0, 4, 0, 0)))
    assert state[WINDOW] == 123.0


def test_hpcc_measures_in_flight_bytes_as_its_algorithm() -> None:
    """u' = min(q, q before)/(B T) + rate/B, U = (1 − τ/T) U + τ/T u' (Algorithm 1)."""
    T = 10_000.0
    path = np.array([T, 1.25e5, 1e11, 1.0, 1e11, 0, 0, 0, 0])
    before = np.array([2000.0, 1e6, 0.0])
    now = hops((3000, 1, 1_025_000, 2000))
    u = 2000.0 / 1.25e5 + 25_000 * 8e9 / 2000 / 1e11
    assert inflight(T, path, now, before, 0.5) == pytest.approx(0.8 * 0.5 + 0.2 * u)


def test_hpcc_divides_above_its_target_and_adds_below() -> None:
    path = np.array([[10_000.0, 1.25e5, 1e11, 1.0, 1e11, 0, 0, 0, 0]])
    scheme = Hpcc(rtt=1e-5)
    for sent, multiplicative in ((125_000, True), (25_000, False)):
        state, history = np.zeros(STATES), np.zeros(16)
        state[WINDOW], state[RATE] = 1e5, 1e11
        one_step(scheme, state, seen(una=1000), hops((0, 1, 0, 0)), history, path)
        state[OWN] = 1e5  # W^c
        one_step(scheme, state, seen(una=2000, next_byte=9000), hops((0, 1, sent, 10_000)), history, path)
        u = sent / 1.25e5
        expected = 1e5 / (u / 0.95) + 80.0 if multiplicative else 1e5 + 80.0
        assert state[WINDOW] == pytest.approx(expected)
        assert state[RATE] == pytest.approx(expected * 8.0 / 1e-5)


def test_dctcp_cuts_by_half_the_marked_part_once_a_window() -> None:
    state = np.zeros(STATES)
    state[WINDOW] = 20_000.0
    one_step(Dctcp(), state, seen(una=1000, next_byte=20_000), hops())
    alpha = 1.0 * (1.0 - 1.0 / 16.0)  # nothing was marked before
    for window in range(1, 6):  # every fourth packet of 20 is marked: F = 1/4
        end = 20_000 * window
        for packet in range(20):
            una = end + 1000 * (packet + 1)
            one_step(Dctcp(), state, seen(una=una, next_byte=end + 20_000, marked=packet % 4 == 3), hops())
    for _ in range(4):
        alpha += (0.25 - alpha) / 16.0
    assert state[OWN] == pytest.approx(alpha, rel=1e-12)
    before = state[WINDOW]
    one_step(Dctcp(), state, seen(una=140_000, next_byte=160_000, marked=True), hops())
    assert state[WINDOW] == pytest.approx(before * (1.0 - 0.5 * state[OWN]), rel=0.02)
    before = state[WINDOW]
    one_step(Dctcp(), state, seen(una=141_000, next_byte=161_000, marked=True), hops())
    assert state[WINDOW] == before


def test_timely_adds_below_low_divides_above_high_and_follows_the_gradient_between() -> None:
    path, scheme = np.array([[10_000.0, 12_500.0, 1e10, 1.0, 1e10, 0, 0, 0, 0]]), Timely(segment=1000)

    def after(*trips: int) -> float:
        state = np.zeros(STATES)
        state[WINDOW], state[RATE] = inf, 4e9
        for rtt in trips:
            one_step(scheme, state, seen(rtt=rtt), hops(), paths=path)
        return float(state[RATE])

    assert after(20_000) == 4e9 + 10e6
    assert after(1_000_000) == pytest.approx(4e9 * (1.0 - 0.8 * 0.5))
    assert after(100_000) == 4e9 + 10e6  # gradient 0
    assert after(100_000, 101_000) == pytest.approx((4e9 + 10e6) * (1.0 - 0.8 * 0.875 * 0.1))
    assert after(*[100_000] * 5) == pytest.approx(4e9 + 9 * 10e6)  # the fifth is five-fold


def test_dcqcn_cuts_on_notice_and_recovers_half_way_each_timer() -> None:
    """R_T ← R_C, R_C ← R_C (1 − α/2) with α = 1 at first; fast recovery halves the distance."""
    scheme = Dcqcn()
    row = parameters_of(scheme, payload=1000, wire=1100, rtt_ns=34752.0)
    state = np.zeros(STATES)
    state[WINDOW], state[RATE] = inf, 1e9
    one_step(scheme, state, seen(now=0, notified=True), hops())
    assert state[RATE] == 5e8
    for timers in range(1, 6):
        dcqcn_timers(row, state, 55_000 * timers, 0, 1e9)
        assert state[RATE] == pytest.approx(1e9 - 5e8 * 0.5**timers)
    dcqcn_timers(row, state, 1_000_000, 0, 1e9)
    assert state[RATE] <= 1e9
    assert state[OWN + 1] == pytest.approx((1.0 - 1.0 / 256.0) ** 18)  # alpha decays every 55 us of 1 ms


def test_dcqcn_increases_additively_after_f_events_of_one_kind_and_hyper_after_f_of_both() -> None:
    """Fig. 7 of the paper: max(T, BC) ≤ F halves the distance, else R_T += R_AI, and min(T, BC) > F: R_T += i R_HAI."""
    scheme, line = Dcqcn(), 1e11
    row = parameters_of(scheme, payload=1000, wire=1100, rtt_ns=34752.0)
    state = np.zeros(STATES)
    state[WINDOW], state[RATE] = inf, 1e10
    one_step(scheme, state, seen(now=0, notified=True), hops())
    target, rate = 1e10, 5e9
    bytes_at, timer = int(scheme.increase_bytes), 0
    # (kind of event, what it adds to the target): F = 5.
    events = [("bytes", 0.0)] * 5 + [("bytes", 40e6)] + [("timer", 40e6)] * 5
    events += [("timer", 200e6), ("timer", 200e6), ("bytes", 400e6), ("bytes", 400e6), ("timer", 600e6)]
    for kind, step in events:
        timer += 55_000 * (kind == "timer")
        dcqcn_timers(row, state, timer, bytes_at if kind == "bytes" else 0, line)
        target += step
        rate = 0.5 * (rate + target)
        assert state[RATE] == pytest.approx(rate, rel=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 10**6), st.integers(0, 10**7)), max_size=40))
def test_dcqcns_rate_stays_between_its_bounds(events) -> None:
    scheme, state, now = Dcqcn(), np.zeros(STATES), 0
    row = parameters_of(scheme, payload=1000, wire=1100, rtt_ns=34752.0)
    state[WINDOW], state[RATE] = inf, 1e9
    for notified, later, sent in events:
        now += later
        dcqcn_timers(row, state, now, sent, 1e9)
        one_step(scheme, state, seen(now=now, notified=notified), hops())
        assert 40e6 <= state[RATE] <= 1e9
