"""Laws of a data centre's senders, one step at a time, against their papers' formulas and numbers."""

from __future__ import annotations

from math import asinh, cosh, inf, sinh, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.laws.record import width
from netctrl.laws.window import rows
from netctrl.laws.window.dcqcn import DcqcnState, dcqcn_sent
from netctrl.laws.window.dctcp import DctcpState
from netctrl.laws.window.explicit import riccati_gains
from netctrl.laws.window.hpcc import HpccState, inflight
from netctrl.laws.window.law import MAX_HOPS, SILENT, Acknowledged, Hop, Hops, Packet, Path
from netctrl.laws.window.mpcc import MpccState, bottleneck, predicted_queue
from netctrl.laws.window.records import LAWS, SCHEMES, Dcqcn, Dctcp, Hpcc, Mpcc, Timely, law_of
from netctrl.laws.window.riccati import riccati_gain
from netctrl.laws.window.timely import TimelyState

NONE = (0.0, 0.0, 0.0, 0.0)


def path_of(base_rtt: float, bdp: float, line: float, *rates: float) -> Path:
    return Path(base_rtt, bdp, line, float(len(rates)), (*rates, *NONE, 0.0)[:MAX_HOPS])


# One hop of 1 Gbit/s, 34.752 us, as in section 5.2 of the thesis.
PATH = path_of(34752.0, 4344.0, 1e9, 1e9)
THESIS = Mpcc(bdp=3750, rtt=34.752e-6, packet_size=1080, window=3750, window_weight=1.0)


def seen(**given) -> Acknowledged:
    usual = {"now": 1e6, "una": 1000.0, "next_byte": 5000.0, "newly": 1000.0, "rtt": 40_000.0}
    usual |= {"marked": False, "notified": False, "lost": False, "hops": SILENT}
    return Acknowledged(**(usual | given))


def hops(*told: tuple[float, ...]) -> Hops:
    return (*(Hop(*map(float, each)) for each in told), *SILENT)[:MAX_HOPS]


def started(state, window: float, rate: float = 1e9):
    """A state of a law as a new flow has it."""
    return rows_to(state, np.array([window, rate]))


def rows_to(state, row: np.ndarray):
    fields = [SILENT if name == "before" and state is HpccState else 0.0 for name in state._fields]
    return state(*row, *fields[len(row) :])


def one_step(scheme, state, acknowledged, memory=None, path=PATH):
    law = law_of(scheme)
    own = path if law.path is None else law.path(scheme, path)
    given = {"table": law.table(scheme, own, 1100, 64)} if law.table else {}
    given |= {"memory": np.zeros(16) if memory is None else memory} if law.memory else {}
    return law.step(state, acknowledged, own, law.read(scheme, Packet(1000.0, 1100.0, 34752.0)), **given)


def test_every_scheme_has_a_law_whose_numbers_fit_their_rows() -> None:
    assert tuple(law.record for law in LAWS) == SCHEMES
    for law in LAWS:
        values = law.read(law.record(), Packet(1000.0, 1100.0, 1e4))
        assert np.isfinite(rows.row_of(values)).all()
        assert len(rows.row_of(values)) <= rows.PARAMETERS
        assert law.state._fields[:2] == ("window", "rate")
        assert width(law.state) <= rows.STATES


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
    assert riccati_gains(np.array([1.0 / 3.0]), horizon, 1.0, weight)[0] == riccati_gain(
        1.0 / 3.0, horizon, 1.0, weight
    )


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
@pytest.mark.parametrize("given_window", [3750, None])
def test_windows_of_section_5_2(weight, windows, given_window) -> None:
    """The theory note's table of W at Q = 0, 100, 500, 1100, 5000; W = 0 is floored at 1 byte. The gain is of a
    table, or that of the flow's own window."""
    import msgspec

    scheme = msgspec.structs.replace(THESIS, window_weight=weight, window=given_window)
    for queue, expected in zip((0, 100, 500, 1100, 5000), windows, strict=True):
        state = one_step(scheme, started(MpccState, 3750.0), seen(hops=hops((queue, 4, 0, 0))))
        assert state.window == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("queue", "predicted"), [(5000.0, 5733.3333), (200.0, 1333.3333)])
def test_predicted_queues_of_the_theory_note(queue, predicted) -> None:
    """B = 1/3, u = (−900, −900, 2000, 2000), never below 0 on the way."""
    history = np.array([-900.0, -900.0, 2000.0, 2000.0]) + 1000.0
    assert predicted_queue(queue, 1.0 / 3.0, 1000.0, history, 4.0, 4.0) == pytest.approx(predicted, abs=1e-4)


def test_the_fullest_hop_counts_and_with_empty_ones_the_least_share() -> None:
    path = path_of(12000.0, 150000.0, 1e11, 4e11, 4e11, 1e11)
    assert bottleneck(path, hops((500, 9, 0, 0), (600, 3, 0, 0), (10, 2, 0, 0))) == (600.0, 3, 4.0 / 3.0)
    assert bottleneck(path, hops((0, 9, 0, 0), (0, 3, 0, 0), (0, 5, 0, 0))) == (0.0, 5, 0.2)


@given(
    st.integers(0, 10**7),
    st.integers(1, 2000),
    st.floats(1.0, 4344.0),
    st.sampled_from(["delay-free", "delayed", "feed-forward", "hold"]),
    st.sampled_from([None, 3750]),
)
def test_mpccs_window_is_between_a_byte_and_the_largest(queue, flows, window, variant, given_window) -> None:
    state, memory = started(MpccState, window), np.zeros(16)
    for _ in range(3):
        told = seen(hops=hops((queue, flows, 0, 0)))
        state = one_step(Mpcc(variant=variant, window=given_window), state, told, memory)
        assert 1.0 <= state.window <= 4344.0


def test_hold_holds_while_queues_are_empty() -> None:
    state = one_step(Mpcc(variant="hold"), started(MpccState, 123.0), seen(hops=hops((0, 4, 0, 0))))
    assert state.window == 123.0


def test_hpcc_measures_in_flight_bytes_as_its_algorithm() -> None:
    """u' = min(q, q before)/(B T) + rate/B, U = (1 − τ/T) U + τ/T u' (Algorithm 1)."""
    T = 10_000.0
    before, now = hops((2000, 0, 1e6, 0)), hops((3000, 1, 1_025_000, 2000))
    u = 2000.0 / 1.25e5 + 25_000 * 8e9 / 2000 / 1e11
    assert inflight(now, before, path_of(T, 1.25e5, 1e11, 1e11), T, 0.5) == pytest.approx(0.8 * 0.5 + 0.2 * u)


def test_hpcc_divides_above_its_target_and_adds_below() -> None:
    path = path_of(10_000.0, 1.25e5, 1e11, 1e11)
    scheme = Hpcc(rtt=1e-5)
    for sent, multiplicative in ((125_000, True), (25_000, False)):
        state = started(HpccState, 1e5, 1e11)
        state = one_step(scheme, state, seen(una=1000.0, hops=hops((0, 1, 0, 0))), path=path)
        state = state._replace(reference=1e5)
        told = seen(una=2000.0, next_byte=9000.0, hops=hops((0, 1, sent, 10_000)))
        state = one_step(scheme, state, told, path=path)
        u = sent / 1.25e5
        expected = 1e5 / (u / 0.95) + 80.0 if multiplicative else 1e5 + 80.0
        assert state.window == pytest.approx(expected)
        assert state.rate == pytest.approx(expected * 8.0 / 1e-5)
        assert (state.stage, state.updated) == (0.0 if multiplicative else 1.0, 9000.0)


def test_dctcp_cuts_by_half_the_marked_part_once_a_window() -> None:
    state = started(DctcpState, 20_000.0)
    state = one_step(Dctcp(), state, seen(una=1000.0, next_byte=20_000.0))
    alpha = 1.0 * (1.0 - 1.0 / 16.0)  # nothing was marked before
    for window in range(1, 6):  # every fourth packet of 20 is marked: F = 1/4
        end = 20_000.0 * window
        for packet in range(20):
            una = end + 1000.0 * (packet + 1)
            state = one_step(Dctcp(), state, seen(una=una, next_byte=end + 20_000.0, marked=packet % 4 == 3))
    for _ in range(4):
        alpha += (0.25 - alpha) / 16.0
    assert state.alpha == pytest.approx(alpha, rel=1e-12)
    before = state.window
    state = one_step(Dctcp(), state, seen(una=140_000.0, next_byte=160_000.0, marked=True))
    assert state.window == pytest.approx(before * (1.0 - 0.5 * state.alpha), rel=0.02)
    before = state.window
    assert one_step(Dctcp(), state, seen(una=141_000.0, next_byte=161_000.0, marked=True)).window == before


def test_timely_adds_below_low_divides_above_high_and_follows_the_gradient_between() -> None:
    path, scheme = path_of(10_000.0, 12_500.0, 1e10, 1e10), Timely(segment=1000)

    def after(*trips: float) -> float:
        state = started(TimelyState, inf, 4e9)
        for rtt in trips:
            state = one_step(scheme, state, seen(rtt=rtt), path=path)
        return state.rate

    assert after(20e3) == 4e9 + 10e6
    assert after(1e6) == pytest.approx(4e9 * (1.0 - 0.8 * 0.5))
    assert after(100e3) == 4e9 + 10e6  # gradient 0
    assert after(100e3, 101e3) == pytest.approx((4e9 + 10e6) * (1.0 - 0.8 * 0.875 * 0.1))
    assert after(*[100e3] * 5) == pytest.approx(4e9 + 9 * 10e6)  # the fifth is five-fold


def sent(scheme: Dcqcn, state: DcqcnState, now: float, count: float, line: float) -> DcqcnState:
    own = law_of(scheme).read(scheme, Packet(1000.0, 1100.0, 34752.0))
    return dcqcn_sent(state, now, count, path_of(1.0, 1.0, line, line), own)


def test_dcqcn_cuts_on_notice_and_recovers_half_way_each_timer() -> None:
    """R_T ← R_C, R_C ← R_C (1 − α/2) with α = 1 at first; fast recovery halves the distance."""
    scheme = Dcqcn()
    state = one_step(scheme, started(DcqcnState, inf), seen(now=0.0, notified=True))
    assert state.rate == 5e8
    for timers in range(1, 6):
        state = sent(scheme, state, 55e3 * timers, 0.0, 1e9)
        assert state.rate == pytest.approx(1e9 - 5e8 * 0.5**timers)
    state = sent(scheme, state, 1e6, 0.0, 1e9)
    assert state.rate <= 1e9
    assert state.alpha == pytest.approx((1.0 - 1.0 / 256.0) ** 18)  # alpha decays every 55 us of 1 ms


def test_dcqcn_increases_additively_after_f_events_of_one_kind_and_hyper_after_f_of_both() -> None:
    """Fig. 7 of the paper: max(T, BC) ≤ F halves the distance, else R_T += R_AI, and min(T, BC) > F: R_T += i R_HAI."""
    scheme, line = Dcqcn(), 1e11
    state = one_step(scheme, started(DcqcnState, inf, 1e10), seen(now=0.0, notified=True))
    target, rate = 1e10, 5e9
    timer = 0.0
    # (kind of event, what it adds to the target): F = 5.
    events = [("bytes", 0.0)] * 5 + [("bytes", 40e6)] + [("timer", 40e6)] * 5
    events += [("timer", 200e6), ("timer", 200e6), ("bytes", 400e6), ("bytes", 400e6), ("timer", 600e6)]
    for kind, step in events:
        timer += 55e3 * (kind == "timer")
        state = sent(scheme, state, timer, scheme.increase_bytes if kind == "bytes" else 0.0, line)
        target += step
        rate = 0.5 * (rate + target)
        assert state.rate == pytest.approx(rate, rel=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 10**6), st.integers(0, 10**7)), max_size=40))
def test_dcqcns_rate_stays_between_its_bounds(events) -> None:
    scheme, state, now = Dcqcn(), started(DcqcnState, inf), 0.0
    for notified, later, count in events:
        now += later
        state = sent(scheme, state, now, float(count), 1e9)
        state = one_step(scheme, state, seen(now=now, notified=notified))
        assert 40e6 <= state.rate <= 1e9
