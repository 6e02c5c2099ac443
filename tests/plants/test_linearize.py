"""The fluid's laws and the link, one function at a time: closed forms, plain re-computation, algebraic laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm import fluid as aqm
from netctrl.laws.aqm.arc import ArcQueue, RateError
from netctrl.laws.aqm.avq import AVQ, AvqQueue
from netctrl.laws.aqm.codel import CODEL, CodelQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.fluid import FAST_PROBABILITY, PRICE, STATES, Sample, column, epoch_of, law_of, probability
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PIE, PieQueue
from netctrl.laws.aqm.records import DesignQueue, DropTailQueue
from netctrl.laws.aqm.red import RED, RedQueue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.laws.link import backlog_step
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import arc_sampled_loop, linear_tcp
from netctrl.plants.tcp import fast_rate, window_slope

amount = st.floats(0.0, 1e6)


@given(backlog=amount, arrivals=amount, service=amount, buffer=st.one_of(amount, st.just(math.inf)))
def test_nothing_is_made_or_lost_at_a_link(backlog, arrivals, service, buffer):
    backlog = min(backlog, buffer)
    after, departed, lost = backlog_step(backlog, arrivals, service, buffer)
    assert min(after, departed, lost) >= 0.0
    assert after <= buffer
    assert departed <= service
    assert backlog + arrivals == pytest.approx(after + departed + lost, rel=1e-12, abs=1e-9)
    assert lost == 0.0 or after == pytest.approx(buffer)
    assert after == 0.0 or departed == service  # a link works while something waits


point = {"flows": st.floats(1.0, 500.0), "rtt": st.floats(0.01, 3.0), "rate": st.floats(100.0, 1e5)}


@given(**point)
def test_the_equilibrium_is_where_the_window_rests(flows, rtt, rate):
    rest = tcp_equilibrium(flows, rtt, rate)
    slope = window_slope(rest.window, rtt, rest.window / rtt, rest.marking)
    assert abs(slope) < 1e-12 / rtt


@given(**point)
def test_the_linear_model_is_the_derivative_of_what_is_simulated(flows, rtt, rate):
    _, w0, p0 = tcp_equilibrium(flows, rtt, rate)
    at = np.array([w0, rtt, w0 / rtt, p0])
    derivatives = []
    for k in range(4):
        h = 1e-6 * at[k] * np.eye(4)[k]
        derivatives.append((window_slope(*(at + h)) - window_slope(*(at - h))) / (2e-6 * at[k]))
    # Hollot, Misra, Towsley, Gong, INFOCOM 2001, Appendix I.
    by_window, _, by_rate, by_signal = derivatives
    assert derivatives == pytest.approx([-1.0 / (w0 * rtt), -1.0 / rtt**2, -1.0 / w0, -0.5 * w0**2 / rtt], rel=1e-6)
    # The first-order model, with the window of one round trip ago taken for today's.
    slowness = -(by_window + by_rate / rtt)
    linear = linear_tcp(flows, rtt, rate)
    assert linear.time_constant == pytest.approx(1.0 / slowness, rel=1e-6)
    assert linear.gain == pytest.approx(-flows * by_signal / slowness, rel=1e-6)


def test_the_linear_arc_is_the_derivative_of_the_law_that_is_simulated():
    setting = ArcSetting(capacity_packet_per_s=1250.0, utilization=0.9, epoch_s=0.5, target_queue_packets=30.0)
    kind, row = law_of(ArcQueue(alpha=1e-4, epoch=0.5, target_utilization=0.9, target_queue=30e3), 1000.0, None)

    def after(arrived: float, backlog: float) -> float:
        state = np.zeros(STATES)
        state[aqm.PROBABILITY] = 0.5
        return probability(kind, row, state, Sample(0.5, 0.5, backlog, arrived, 0.0, 1250.0))

    b, q, h = 600.0, 40.0, 1e-3
    read = arc_sampled_loop(50.0, 0.5, setting, "phys").read  # of window, backlog, arrivals
    assert (after(b + h, q) - after(b - h, q)) / (2 * h) == pytest.approx(1e-4 * read[2], rel=1e-6)
    assert (after(b, q + h) - after(b, q - h)) / (2 * h) == pytest.approx(1e-4 * read[1], rel=1e-6)


samples = st.lists(st.tuples(st.floats(0.0, 500.0), st.floats(0.0, 50.0)), min_size=1, max_size=60)


def run(queue, seen, step, capacity=1250.0, buffer=500e3):
    """Probabilities of a law over steps of (backlog, arrivals), all of which are enqueued; and its state."""
    kind, row = law_of(queue, 1000.0, buffer)
    state, before, out = np.zeros(STATES), 0.0, []
    for n, (backlog, arrivals) in enumerate(seen):
        out.append(probability(kind, row, state, Sample(n * step, step, backlog, before, arrivals, capacity)))
        before = arrivals
    return np.array(out), state


@given(seen=samples)
def test_arc_is_algorithm_2(seen):
    alpha, gamma, d, q0 = 3e-3, 0.9, 0.05, 20.0
    found, _ = run(ArcQueue(alpha=alpha, epoch=d, target_utilization=gamma, target_queue=q0 * 1000), seen, 0.01)
    p, b, expected = 0.0, 0.0, []
    for n, (q, arrivals) in enumerate(seen):
        if n > 0 and n % 5 == 0:  # an epoch is five steps
            p = min(max(p + alpha * (b - gamma * (d * 1250.0 - (q - q0))), 0.0), 1.0)
            b = 0.0
        expected.append(p)
        b += arrivals
    assert found == pytest.approx(expected, abs=1e-12)


def test_arcs_rate_error_is_integrated_over_each_epoch():
    error = RateError(amplitude="0.5Mbit", frequency_rad_s=0.7, start="2s")
    quiet, loud = (
        run(ArcQueue(alpha=1e-6, epoch=1.0, target_utilization=0.5, rate_error=e), [(1000.0, 50.0)] * 800, 0.01)[0]
        for e in (None, error)
    )
    t = np.arange(800) * 0.01
    whole = np.floor(t + 1e-9)
    packets = 0.5e6 / 8e3 / 0.7 * (1.0 - np.cos(0.7 * np.maximum(whole - 2.0, 0.0)))
    assert loud - quiet == pytest.approx(1e-6 * packets, abs=1e-12)
    assert np.ptp(loud - quiet) > 1e-5


@given(seen=samples)
def test_pi_is_the_difference_equation(seen):
    alpha, beta, reference = 1.822e-3, 1.816e-3, 50.0
    found, _ = run(PiQueue(alpha=alpha, beta=beta, frequency_hz=100.0, reference_queue=50e3), seen, 0.01)
    p, old, expected = 0.0, 0.0, []
    for n, (q, _) in enumerate(seen):
        if n > 0:
            p = min(max(p + alpha * (q - reference) - beta * (old - reference), 0.0), 1.0)
            old = q
        expected.append(p)
    assert found == pytest.approx(expected, abs=1e-12)


@given(seen=samples)
def test_sfc_is_static_in_backlog_and_rate(seen):
    found, _ = run(SfcQueue(k1=0.001, k2=0.5, epoch=0.1, target_queue=10e3), seen, 0.05)
    expected, p = [], 0.0
    for n, (q, _) in enumerate(seen):
        if n > 0 and n % 2 == 0:
            rate = (seen[n - 1][1] + seen[n - 2][1]) / 0.1
            p = min(max(0.001 * (q - 10.0) + 0.5 * (rate / 1250.0 - 1.0), 0.0), 1.0)
        expected.append(p)
    assert found == pytest.approx(expected, abs=1e-12)


@given(seen=samples)
def test_the_fast_extension_marks_tcp_as_arc_does(seen):
    """Algorithm 3 with q_v = p/alpha is Algorithm 2; FAST's price is q_v/(gamma C), coded by REM."""
    common = {"alpha": 3e-3, "epoch": 0.05, "target_utilization": 0.9, "target_queue": 20e3}
    arc, _ = run(ArcQueue(**common), seen, 0.01)
    extended, state = run(FastArcQueue(**common, phi=1.7), seen, 0.01)
    assert extended == pytest.approx(arc, abs=1e-12)
    assert state[PRICE] == pytest.approx(arc[-1] / 3e-3 / (0.9 * 1250.0), abs=1e-12)
    decoded = -math.log(1.0 - state[FAST_PROBABILITY]) / math.log(1.7)
    assert decoded == pytest.approx(state[PRICE], abs=1e-9)


def test_fast_senders_follow_their_demand():
    assert fast_rate(1000.0, 0.5, 0.0, 0.1) == 1000.0
    assert fast_rate(1000.0, 0.5, 0.2, 0.1) == pytest.approx(1000.0 * math.exp(-1.0))


def test_avq_rests_where_arrivals_are_gamma_c():
    """C~' = damping (gamma C − arrivals): at rest nothing changes; above, C~ falls linearly and marks set in."""
    at_rest, state = run(AvqQueue(damping=0.15), [(0.0, 0.98 * 12.5)] * 3000, 0.01)
    assert at_rest.max() == 0.0
    assert state[column(AVQ, "capacity")] == pytest.approx(0.98 * 1250.0, rel=1e-9)
    steps, excess = 4000, 0.01 * 1250.0  # packets a second above gamma C
    p, state = run(AvqQueue(damping=0.15), [(0.0, 0.99 * 12.5)] * steps, 0.01)
    assert state[column(AVQ, "capacity")] == pytest.approx(0.98 * 1250.0 - 0.15 * excess * 0.01 * steps, rel=1e-9)
    # The virtual queue grows by excess t + 0.15 excess t²/2; from 500 packets on p = 1 − C~/rate.
    full = (-1.0 + math.sqrt(1.0 + 2.0 * 0.15 * 500.0 / excess)) / 0.15
    assert np.flatnonzero(p > 0.0)[0] * 0.01 == pytest.approx(full, abs=0.03)
    at_the_middle = state[column(AVQ, "capacity")] + 0.15 * excess * 0.005
    assert p[-1] == pytest.approx(1.0 - at_the_middle / (0.99 * 1250.0), rel=1e-9)


def test_red_marks_by_its_average():
    queue = RedQueue(min_threshold=20e3, max_threshold=60e3, max_probability=0.1, weight=0.002)
    p, state = run(queue, [(40.0, 12.5)] * 2000, 0.01)
    assert state[column(RED, "average")] == pytest.approx(40.0, rel=1e-6)
    assert p[-1] == pytest.approx(2.0 * 0.05 / 1.05, rel=1e-5)
    average = 40.0 * (1.0 - (1.0 - 0.002) ** 12.5)  # after the 12.5 packets of the first step
    assert run(queue, [(40.0, 12.5)], 0.01)[1][column(RED, "average")] == pytest.approx(average, rel=1e-9)
    assert run(queue, [(90.0, 12.5)] * 2000, 0.01)[0][-1] == pytest.approx(2.0 * 0.55 / 1.55, rel=1e-5)  # gentle
    assert run(queue, [(500.0, 12.5)] * 2000, 0.01)[0][-1] == 1.0
    assert run(queue, [(10.0, 12.5)] * 2000, 0.01)[0].max() == 0.0


@given(p=st.floats(0.0, 1.0), old=st.floats(0.0, 0.2), delay=st.floats(0.0, 0.4))
def test_pie_takes_the_step_of_rfc_8033(p, old, delay):
    kind, row = law_of(PieQueue(), 1000.0, None)
    state = np.zeros(STATES)
    state[[column(PIE, name) for name in ("drop_probability", "old_delay", "burst_used")]] = p, old, 1.0
    probability(kind, row, state, Sample(0.015, 0.015, delay * 1250.0, 0.0, 0.0, 1250.0))
    # RFC 8033, Section 4.2, line by line.
    rise = 0.125 * (delay - 0.015) + 1.25 * (delay - old)
    for bound, divisor in ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2)):
        if p < bound:
            rise /= divisor
            break
    if p >= 0.1 and rise > 0.02:
        rise = 0.02
    if delay > 0.25:
        rise = 0.02
    expected = min(max(p + rise, 0.0), 1.0)
    if delay == 0.0 and old == 0.0:
        expected *= 0.98
    assert state[column(PIE, "drop_probability")] == pytest.approx(expected, abs=1e-12)


def test_pie_spares_a_burst():
    p, _ = run(PieQueue(burst="150ms"), [(300.0, 12.5)] * 40, 0.015)
    first = np.flatnonzero(p > 0.0)[0]
    assert first * 0.015 == pytest.approx(0.150, abs=0.0151)


def test_codels_marks_come_ever_faster():
    """count' = √count/interval from 1, so √count = 1 + t/(2 interval) once the delay has stood for an interval."""
    step, steps = 0.001, 2000
    p, state = run(CodelQueue(), [(100.0, 1.25)] * steps, step)
    waited = np.flatnonzero(p > 0.0)[0] * step
    assert waited == pytest.approx(0.100, abs=2 * step)
    marking = steps * step - 0.100
    assert math.sqrt(state[column(CODEL, "count")]) == pytest.approx(1.0 + marking / 0.2, rel=2e-3)
    assert p[-1] == pytest.approx(math.sqrt(state[column(CODEL, "count")]) / 0.1 / 1250.0, rel=2e-3)
    quiet, state = run(CodelQueue(), [(100.0, 1.25)] * 200 + [(2.0, 1.25)], step)
    assert (quiet[-1], state[column(CODEL, "above")]) == (0.0, 0.0)


ANY = [ArcQueue(), FastArcQueue(), PiQueue(), AvqQueue(), SfcQueue(), RedQueue(), PieQueue(), CodelQueue()]


@pytest.mark.parametrize("queue", ANY, ids=lambda queue: queue.__struct_config__.tag)
@given(seen=samples)
def test_a_probability_is_one(queue, seen):
    found, _ = run(queue, seen, 0.05)
    assert found.min() >= 0.0
    assert found.max() <= 1.0


def test_epochs():
    assert [epoch_of(queue) for queue in ANY] == [1.0, 1.0, pytest.approx(1 / 170), None, 1.0, None, 0.015, None]
    assert epoch_of(DropTailQueue()) is None


@pytest.mark.parametrize("queue", [DesignQueue(), AvqQueue()])
def test_a_queue_without_a_law_is_refused(queue):
    with pytest.raises(InvalidValue):
        law_of(queue, 1000.0, None)
