"""Pacing laws at work: the note's trace, freeze and run-away, units, samples that are none, many flows at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.pacing.best_rate import freeze_deviation
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.pacing.pacing import (
    EVENTS,
    PacingSample,
    arx_state,
    pace,
    pace_many,
    pace_trace,
    pacer,
    pacing_values,
    start_pacing,
)
from netctrl.laws.record import as_record
from netctrl.model.law import ArxPacer, OwnRatePacer

NAN, INF = float("nan"), float("inf")
LITERAL = ArxPacer(
    psi=1.0,
    xi=100.0,
    period_s=0.0,
    least_rate_bit_per_s=0.0,
    max_rate_bit_per_s=1.0,
    start_rate_bit_per_s=0.4,
    past_rtts=2,
    past_rates=1,
    step=0.5,
    normalised=False,
    smoothing=0.5,
    guarded=False,
    rtt_unit_s=1.0,
    rate_unit_bit_per_s=1.0,
    first_slope=0.1,
    slope_floor=0.0,
    deviation_floor=0.0,
    theta_limit=1e9,
)
"""Algorithm 1 with the note's parameters."""
PAPER = ArxPacer(
    psi=1.0,
    xi=100.0,
    period_s=0.01,
    least_rate_bit_per_s=1e6,
    max_rate_bit_per_s=1e10,
    start_rate_bit_per_s=5e9,
    past_rtts=5,
    past_rates=1,
    step=0.5,
    normalised=True,
    smoothing=0.5,
    guarded=True,
    rtt_unit_s=None,
    rate_unit_bit_per_s=1e10,
    first_slope=0.1,
    slope_floor=1e-3,
    deviation_floor=1e-4,
    theta_limit=100.0,
)
OWN = netctrl.pacing(mode="own-rate").law
assert isinstance(OWN, OwnRatePacer)


def with_changes(law, **changes):
    from msgspec.structs import replace

    return replace(law, **changes)


def test_the_trace_of_the_theory_note():
    """p = 2, q = 1, alpha = gamma = .5, psi = 1, xi = 100, R = 1; a = (.5, .5), b = .1, RTTs .52, .55, .53."""
    state = arx_state(
        LITERAL, theta=[0.5, 0.5, 0.1], phi=[0.5, 0.5, 0.4], rate=0.4, mean_rtt=0.5, variance=0.01, mean_rate=0.4
    )
    ready = pacer(LITERAL)
    expected = [
        (0.54, (0.495, 0.495, 0.096), 0.51, 0.0058, 78.661427696, 1.0, 0.7),
        (0.6009, (0.481766, 0.482275, 0.07055), 0.53, 0.007031405, 101.014608211, 1.0, 0.85),
    ]
    for n, (prediction, theta, mean_rtt, variance, free, rate, mean_rate) in enumerate(expected):
        found, state = pace(ready, state, PacingSample(float(n + 1), (0.52, 0.55, 0.53)[n]))
        values = pacing_values(LITERAL, state)
        assert found == rate
        assert values["prediction"] == pytest.approx(prediction, abs=1e-9)
        assert values["theta"] == pytest.approx(theta, abs=1e-9)
        assert values["mean_rtt"] == pytest.approx(mean_rtt, abs=1e-9)
        assert values["variance"] == pytest.approx(variance, abs=1e-9)
        assert values["free"] == pytest.approx(free, abs=1e-9)
        assert values["mean_rate"] == pytest.approx(mean_rate, abs=1e-9)


def test_algorithm_1_written_again_with_numpy():
    """Another way to compute it, with several past rates and a bound that is not always reached."""
    law = with_changes(LITERAL, past_rtts=3, past_rates=2, step=0.05, xi=2.0, max_rate_bit_per_s=3.0)
    random = np.random.default_rng(5)
    theta, rtts, rates = np.array([0.5, 0.3, 0.1, 0.2, 0.05]), [1.0, 1.1, 0.9], [0.6, 0.5]
    mean, variance, mean_rate, psi = 1.0, 0.02, 0.5, 1.0
    state = arx_state(
        law, theta=theta, phi=rtts + rates, rate=0.6, mean_rtt=mean, variance=variance, mean_rate=mean_rate
    )
    inside = 0
    for n in range(60):
        rtt = 1.0 + 0.1 * random.standard_normal()
        rate, state = pace(pacer(law), state, PacingSample(float(n + 1), rtt))
        phi = np.array(rtts + rates)
        guess = theta @ phi
        theta = theta - 0.05 * (guess - rtt) * phi
        variance = 0.5 * variance + 0.5 * (guess - mean) ** 2
        mean = 0.5 * mean + 0.5 * rtt
        rtts = [rtt, *rtts[:-1]]
        at_zero = theta[:3] @ rtts + theta[4] * rates[0]
        b1 = theta[3]
        free = ((2.0 / mean_rate - b1 / mean) * variance / (2.0 * psi * b1) + mean - at_zero) / b1
        desired = float(np.clip(free, 0.0, 3.0))
        rates = [desired, rates[0]]
        mean_rate = 0.5 * mean_rate + 0.5 * desired
        assert rate == pytest.approx(desired, rel=1e-8, abs=1e-10)
        inside += 0.0 < desired < 3.0
    assert inside > 5


@pytest.mark.parametrize("unit", [1.0, 1e3], ids=["s", "ms"])
def test_what_the_printed_step_does_to_the_loop_in_the_note_s_units(unit):
    """RTTs around 4 ms, rates from 9 Gbit/s on in Gbit/s, so |φ|² = 81. In ms the estimate diverges; in s it throws the
    rate to where |φ|² is below 4, and stays there. The normalised step does neither."""
    random = np.random.default_rng(1)
    times, rtts = 0.01 * np.arange(300), 4e-3 * (1.0 + 0.05 * random.random(300))
    off, rates = {}, {}
    for normalised in (False, True):
        law = with_changes(
            LITERAL,
            normalised=normalised,
            max_rate_bit_per_s=1e10,
            start_rate_bit_per_s=9e9,
            rtt_unit_s=1.0 / unit,
            rate_unit_bit_per_s=1e9,
            first_slope=1e-4 * unit,
        )
        run = pace_trace(law, times, rtts)
        off[normalised], rates[normalised] = np.abs(run.predictions / rtts - 1.0), run.rates
        assert ((run.rates >= 0.0) & (run.rates <= 1e10)).all()  # also where theta is no number
    assert np.nanmax(off[True]) < 0.1
    assert rates[True].min() > 8e9
    if unit == 1e3:
        assert np.nanmax(off[False]) > 1e20
        assert rates[False][-1] == 0.0  # the dead lock of docs/explanation/pacing.md
    else:
        assert rates[False][1:].max() < 3e9


def test_below_d_star_the_rate_freezes_and_above_it_runs_to_the_bound():
    """A link whose RTT is what the model says: l = l_0 + b_1 (r - 1) around 1."""
    for share, ends in ((0.5, "frozen"), (2.0, "bound")):
        b1 = 0.1
        d_star = freeze_deviation(1.0, 100.0, b1, 1.0, 1.0)
        assert d_star == pytest.approx(2.0 * 1.0 * b1 * 1.0 / 100.0, rel=2e-3)
        law = with_changes(LITERAL, past_rtts=1, step=1e-12, smoothing=0.0, max_rate_bit_per_s=40.0)
        d = share * d_star
        state = arx_state(
            law, theta=[0.9, b1], phi=[1.0, 1.0], rate=1.0, mean_rtt=1.0 - d, variance=d * d, mean_rate=1.0
        )
        rate = 1.0
        for n in range(8):
            rate, state = pace(pacer(law), state, PacingSample(float(n + 1), 1.0 + b1 * (rate - 1.0)))
        assert (abs(rate - 1.0) < 0.05) if ends == "frozen" else (rate == 40.0)


def test_samples_between_two_rates_are_left_alone():
    """Every max(T, RTT): an RTT of 4 ms and T = 10 ms, then of 40 ms."""
    times = 1e-3 * np.arange(400)
    assert pace_trace(PAPER, times, np.full(400, 4e-3)).used.sum() == 40
    assert pace_trace(PAPER, times, np.full(400, 40e-3)).used.sum() == 10


def test_the_first_p_samples_only_teach():
    run = pace_trace(PAPER, 0.02 * np.arange(1, 9), 4e-3 + 1e-3 * np.random.default_rng(0).random(8))
    assert (run.rates[:5] == PAPER.start_rate_bit_per_s).all()
    assert run.rates[-1] != PAPER.start_rate_bit_per_s


def test_where_the_rate_has_no_effect_it_is_held():
    law = with_changes(PAPER, slope_floor=0.2)  # above the first guess
    run = pace_trace(law, 0.02 * np.arange(1, 60), np.full(59, 4e-3))
    assert (run.rates == PAPER.start_rate_bit_per_s).all()
    assert run.events["held"] == 59 - 5


def test_an_estimate_that_explodes_starts_again():
    law = with_changes(PAPER, theta_limit=1.5)
    rtts = np.where(np.arange(60) % 3 == 2, 0.5, 4e-3)
    run = pace_trace(law, np.arange(60.0), rtts)
    assert run.events["resets"] > 0
    assert np.isfinite(pacing_values(law, run.state)["theta"]).all()
    literal = with_changes(law, guarded=False)
    assert pace_trace(literal, np.arange(60.0), rtts).events["resets"] == 0


def test_a_rate_of_zero_is_never_set():
    """Eq. (7) asks for less than nothing where the RTT soars: the least rate is set, and counted."""
    rtts = 4e-3 * np.concatenate([np.ones(20), np.linspace(1.0, 30.0, 40)])
    run = pace_trace(with_changes(PAPER, xi=1.0, first_slope=0.5), 0.2 * np.arange(60), rtts)
    assert run.events["floored"] > 0
    assert run.rates.min() == PAPER.least_rate_bit_per_s


def test_the_variance_has_a_floor():
    run = pace_trace(PAPER, 0.01 * np.arange(200), np.full(200, 4e-3))
    values = pacing_values(PAPER, run.state)
    assert values["variance"] == pytest.approx((1e-4 * values["mean_rtt"]) ** 2)


def delivery(rate: float, times: np.ndarray) -> np.ndarray:
    return rate * times / 8.0


BAD = [
    ({"rtt_s": 0.0}, "bad_rtt"),
    ({"rtt_s": -1.0}, "bad_rtt"),
    ({"rtt_s": NAN}, "bad_rtt"),
    ({"rtt_s": INF}, "bad_rtt"),
    ({"time_s": 0.5}, "bad_time"),
    ({"time_s": NAN}, "bad_time"),
    ({"time_s": INF}, "bad_time"),
]


@pytest.mark.parametrize("law", [LITERAL, PAPER, OWN], ids=["literal", "paper", "own rate"])
@pytest.mark.parametrize(("wrong", "event"), BAD)
def test_a_sample_that_is_none_holds_the_rate_and_is_counted(law, wrong, event):
    ready, state, rate = pacer(law), start_pacing(law), 0.0
    for n in range(80):
        sample = PacingSample(1.0 + 0.02 * n, 4e-3 * (1.0 + 0.01 * (n % 3)), 1e4 * n, 2e3)
        rate, state = pace(ready, state, sample)
    held, after = pace(ready, state, sample._replace(**wrong))
    assert held == rate
    values = pacing_values(law, after)
    assert values[event] == 1.0
    rest = [name for name in values if name not in (event, "theta", "phi")]
    before = pacing_values(law, state)
    assert [values[name] for name in rest] == [before[name] for name in rest]


@pytest.mark.parametrize("delivered", [NAN, INF, -1.0, 10.0])
def test_deliveries_that_are_none_hold_the_rate(delivered):
    ready, state, rate = pacer(OWN), start_pacing(OWN), 0.0
    for n in range(80):
        rate, state = pace(ready, state, PacingSample(1.0 + 0.02 * n, 4e-3, 1e4 * n, 2e3))
    held, after = pace(ready, state, PacingSample(3.0, 4e-3, delivered, 2e3))
    assert held == rate
    assert pacing_values(OWN, after)["held"] == 1.0


def test_nothing_delivered_is_no_reason_to_stop():
    times = 4e-3 * np.arange(200)
    run = pace_trace(OWN, times, np.full(200, 4e-3), delivered=np.zeros(200))
    assert (run.rates == 2.0 * 10 * 12_000 / 4e-3).all()  # twice the first window a round trip


def cruising(law, window, rtt, rounds, marked, share=1.0):
    """Windows after round trips without a queue, of which these shares of what is delivered are marked."""
    row = own_rate_start(law)
    state = as_record(OwnRateState, row)
    state.phase, state.window, state.share, state.samples = 1.0, window, share, 100.0
    state.min_rtt = state.rtt = rtt
    state.lost_bytes, state.time_s, state.round_s, state.probe_s = 0.0, 0.0, 0.0, INF
    settings, delivered, told, windows = own_rate_settings(law), 0.0, 0.0, []
    for n in range(rounds):
        sent = state.window * law.packet_size_bytes
        delivered, told = delivered + sent, told + marked[n % len(marked)] * sent
        own_rate_step(row, settings, (n + 1) * rtt, rtt, delivered, 0.0, 0.0, told)  # the next sample ends a round
        windows.append(float(state.window))
    return np.array(windows), state


@pytest.mark.parametrize(("rtt", "share"), [(0.05, 0.02), (0.1, 0.1), (0.0125, 0.02)])
def test_marks_of_l4s_leave_prague_s_window(rtt, share):
    """Cut by half of the share in two of these round trips (three of half a virtual one), where it grows by 1.366."""
    trips = max(0.025 / rtt, 1.0)
    windows, state = cruising(OwnRatePacer(l4s=True), 50.0, rtt, 4000, [share])
    assert state.marks == pytest.approx(share)
    rounds = 2 if trips == 1.0 else 3
    grown = rounds * (1.0 + 3.0**0.5) / 2.0 / (trips * (trips + 1.0))
    assert windows[-400:].max() == pytest.approx(grown / (0.5 * share), rel=0.02)


def test_a_first_mark_of_l4s_halves_the_window_and_is_heard_once():
    windows, _ = cruising(OwnRatePacer(l4s=True), 50.0, 0.05, 6, [0.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    changes = windows[1:] / windows[:-1]
    assert changes[0] == pytest.approx(0.5, abs=0.02)  # and grows by .7 packets
    assert changes[1] > 1.0
    assert changes[2] == pytest.approx(0.5, abs=0.03)
    assert (changes[3:] > 1.0).all()


def test_a_classic_mark_cuts_the_queue_that_is_kept_and_the_window_only_where_none_is():
    """The echo of a mark stands for a round trip more."""
    marks = [0.0, 0.1, 0.1, 0.0]
    windows, state = cruising(OWN, 50.0, 0.2, 4, marks)
    assert (np.diff(windows) > 0.0).all()
    assert state.share == pytest.approx(0.8 * 0.8, abs=0.03)
    windows, state = cruising(OWN, 50.0, 0.2, 4, marks, share=0.1)
    assert windows[1] == pytest.approx(0.85 * min(windows[0] + 0.5 * 1.0, windows[0] * 1.25), rel=0.02)
    assert (np.diff(windows)[1:] > 0.0).all()


@pytest.mark.parametrize("law", [LITERAL, PAPER, OWN], ids=["literal", "paper", "own rate"])
def test_an_empty_trace_leaves_the_start_rate(law):
    run = pace_trace(law, [], [])
    assert len(run.rates) == len(run.predictions) == 0
    assert pacing_values(law, run.state)["rate"] == law.start_rate_bit_per_s
    assert run.events == dict.fromkeys(EVENTS, 0)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([LITERAL, PAPER, OWN]))
def test_whatever_comes_the_rate_is_within_its_bounds(seed, law):
    random = np.random.default_rng(seed)
    rtts = 10.0 ** random.uniform(-5.0, 1.0, 200)
    rtts[random.random(200) < 0.1] = random.choice([NAN, INF, -INF, 0.0, -1.0, 1e300, 1e-300])
    times = np.cumsum(random.exponential(0.05, 200)) - 0.2 * (random.random(200) < 0.1)
    delivered = np.cumsum(10.0 ** random.uniform(0.0, 8.0, 200))
    flight = np.where(random.random(200) < 0.2, NAN, 10.0 ** random.uniform(-3.0, 9.0, 200))
    run = pace_trace(law, times, rtts, delivered=delivered, in_flight=flight)
    assert (run.rates >= law.least_rate_bit_per_s).all()
    assert (run.rates <= law.max_rate_bit_per_s).all()


@pytest.mark.parametrize("law", [PAPER, OWN], ids=["paper", "own rate"])
def test_many_flows_do_what_each_does_alone(law):
    random = np.random.default_rng(2)
    times = 5e-3 * np.arange(300)
    rtts = 4e-3 * (1.0 + 0.2 * random.random((7, 300)))
    delivered = np.cumsum(1e4 * random.random((7, 300)), axis=1)
    flight = 3e4 * random.random((7, 300))
    starts = np.array([start_pacing(law).values] * 7)
    rates, states = pace_many(law, starts, times, rtts, delivered=delivered, in_flight=flight)
    for flow in range(7):
        run = pace_trace(law, times, rtts[flow], delivered=delivered[flow], in_flight=flight[flow])
        assert np.array_equal(run.rates, rates[flow])
        assert np.array_equal(run.state.values, states[flow], equal_nan=True)
    assert np.array_equal(starts[0], start_pacing(law).values)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_blocks_of_flows_do_what_each_does_alone_to_the_last_bit(seed, p, q, guarded):
    """Also where some samples are none, times go backwards, estimates start again and slopes are too small."""
    law = with_changes(PAPER, past_rtts=p, past_rates=q, guarded=guarded, theta_limit=2.0, slope_floor=0.05)
    random = np.random.default_rng(seed)
    times = np.cumsum(random.exponential(0.01, 60)) - 0.1 * (random.random(60) < 0.05)
    rtts = 4e-3 * 10.0 ** (0.3 * random.standard_normal((70, 60)))
    rtts[random.random((70, 60)) < 0.02] = random.choice([NAN, INF, 0.0, -1.0])
    rates, states = pace_many(law, np.array([start_pacing(law).values] * 70), times, rtts)
    for flow in range(70):
        run = pace_trace(law, times, rtts[flow])
        assert np.array_equal(run.rates, rates[flow])
        assert np.array_equal(run.state.values, states[flow], equal_nan=True)


def test_a_step_leaves_its_state_as_it_was():
    state = start_pacing(PAPER)
    before = state.values.copy()
    pace(pacer(PAPER), state, PacingSample(1.0, 4e-3))
    assert np.array_equal(state.values, before)
    with pytest.raises(ValueError, match="read-only"):
        state.values[0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"times": [0.0, 1.0], "rtts": [0.1]}, "rtts"),
        ({"times": [[0.0]], "rtts": [0.1]}, "times"),
        ({"times": ["a"], "rtts": [0.1]}, "times"),
        ({"times": [0.0], "rtts": [0.1], "delivered": [1.0, 2.0]}, "delivered"),
    ],
)
def test_traces_that_do_not_fit_are_refused(arguments, argument):
    with pytest.raises(InvalidValue) as refusal:
        pace_trace(PAPER, **arguments)
    assert refusal.value.argument == argument
    with pytest.raises(InvalidValue, match="rtts"):
        pace_many(PAPER, [start_pacing(PAPER).values], [0.0], [[0.1, 0.2]])
