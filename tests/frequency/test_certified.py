"""Margins of loops that users bring: sourced numbers, closed forms, laws, and random loops against root finding."""

from __future__ import annotations

import math
import os
from collections import Counter

import control
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from margin_checks import complaints, response
from quasi_roots import rightmost
from random_loops import KINDS

import netctrl
from netctrl import DelayLoop, InvalidValue, OpenLoop, StateSpace
from netctrl.frequency.certified.interchange import open_loop, transfer_polynomials
from netctrl.frequency.margins import gain_band, margins
from netctrl.frequency.records import Margins, factor

s = control.tf("s")
RANDOM = int(os.environ.get("NETCTRL_RANDOM_LOOPS", "48"))
"""Random loops in all; 10000 is the full run (six minutes of one core)."""


def loop(numerator: list[float], denominator: list[float], delay: float = 0.0, dt: float = 0.0) -> OpenLoop:
    return OpenLoop(numerator=[(delay, numerator)], denominator=[(0.0, denominator)], dt=dt)


RESONANT = 8.75 * (4 * s**2 + 0.4 * s + 1) / ((100 * s + 1) * (s**2 + 0.22 * s + 1)) / (s**2 / 100 + 0.008 * s + 1)
SEVEN_POLES = 0.002 * (s + 0.02) * (s + 0.05) * (s + 5) * (s + 10)
SEVEN_POLES = SEVEN_POLES / ((s - 0.0005) * (s + 0.0001) * (s + 0.01) * (s + 0.2) * (s + 1) * (s + 100) ** 2)
DAMPED = control.tf([1.1 * 4 * math.pi**2], [1, 0.8 * math.pi, 4 * math.pi**2])

# system, then what python-control's tests/margin_test.py expects (version 0.10): gain margin as a ratio, phase margin
# [degree], gain crossover [rad/s]; None where that library has none. The ratio is one that leaves the stable interval
# at its upper or lower end.
PYTHON_CONTROL = {
    "two poles": (control.tf([1, 2], [1, 2, 3]), None, None, None),
    "three poles": (control.tf([1], [1, 2, 3, 4]), 2.0, None, None),
    "resonant": (RESONANT, 2.2716, 97.5941, 0.0850),
    "lag": (1 / (1 + s), None, None, None),
    "biproper": (3 * (10 + s) / (2 + s), None, None, None),
    "zero on the right": (0.01 * (10 - s) / (2 + s) / (1 + s), 300.0, None, None),
    "zero at the origin": (2 * s / (s + 1), None, -120.0, 0.5774),
    "three equal poles": (2 / (s + 1) ** 3, 4.0, 67.6058, 0.7663),
    "one integrator": ((s + 0.1) / s / (s + 1), None, 144.9032, 0.3162),
    "two integrators": ((s + 0.1) / s**2 / (s + 1), None, 44.4594, 0.7907),
    "three integrators": ((s + 0.1) ** 2 / s**3 / (s + 1), 0.0626, 37.1748, 0.7951),
    "unstable open loop": (1000 * SEVEN_POLES, 0.1793, 22.5215, 0.0630),
    "unstable, more gain": (5000 * SEVEN_POLES, 4.5596, 21.2101, 0.1868),
    "third order": (control.tf(15, [1, 6, 11, 6]), 4.0, None, None),
    "sampled, integrator": (control.tf([2], [1, 3, 2, 0]).sample(1e-2), 2.955761, 32.398492, 0.749367),
    "sampled, equal poles": (control.tf([2], [1, 3, 3, 1]).sample(0.1), 3.4927, 65.4212, 0.76625),
    "sampled, damped": (DAMPED.sample(0.05), 2.3842, 18.161, 8.7478),
    "sampled, crowded": (
        control.tf([5e4], [1.0, 101.0, 10101.0, 10100.0, 10000.0]).sample(1e-3),
        18.8766,
        26.3564,
        2.32933,
    ),
}


@pytest.mark.parametrize("name", PYTHON_CONTROL)
def test_loops_of_python_controls_margin_tests(name: str) -> None:
    system, ratio, phase, crossover = PYTHON_CONTROL[name]
    found = netctrl.margins(system)
    assert found.stable
    if ratio is None:
        assert found.gain_margin_db == math.inf
    else:
        ends = factor(found.gain_margin_db), factor(found.gain_reduction_db)
        assert min(abs(end / ratio - 1.0) for end in ends) < 2e-3
    if phase is not None:
        assert found.phase_margin_deg == pytest.approx(phase, abs=0.02 if name != "three equal poles" else 0.05)
        assert found.crossover_rad_s == pytest.approx(crossover, abs=1e-3)


TEXTBOOK = {
    # name: loop, stable, unstable poles, gain margin, lower end, phase margin [degree], delay margin [s]
    "equal poles at the limit / 4": (loop([2.0], [1, 3, 3, 1]), 0, 4.0, 0.0, None, None),
    "equal poles beyond it": (loop([9.0], [1, 3, 3, 1]), 2, 8.0 / 9.0, 0.0, None, None),
    "pure delay": (loop([0.5], [1], 1.0), 0, 2.0, 0.0, math.inf, math.inf),
    "pure delay, unstable": (loop([2.0], [1], 1.0), math.inf, 0.5, 0.0, None, -1.0),
    "integrator and delay": (loop([1.0], [1, 0], 0.5), 0, math.pi, 0.0, 90.0 - math.degrees(0.5), math.pi / 2 - 0.5),
    "integrator and delay, unstable": (loop([4.0], [1, 0], 0.5), 2, math.pi / 4, 0.0, None, math.pi / 8 - 0.5),
    "unstable open loop": (
        loop([2.0], [1, -1], 0.3),
        0,
        None,
        0.5,
        math.degrees(math.atan(3**0.5) - 0.3 * 3**0.5),
        math.atan(3**0.5) / 3**0.5 - 0.3,
    ),
    "unstable open loop, too little gain": (loop([0.5], [1, -1], 0.3), 1, None, 2.0, math.inf, -math.inf),
    "three integrators": (loop([10, 20, 10], [1, 0, 0, 0]), 0, math.inf, 0.05, None, None),
    "two integrators": (loop([1], [1, 0, 0], 0.1), 2, 0.0, 0.0, None, -math.inf),
    "undamped oscillator, delayed": (loop([1], [1, 0, 1], 0.1), 2, 0.0, 0.0, None, -math.inf),
    "undamped oscillator, positive feedback": (loop([-0.2], [1, 0, 1], 1.0), 0, 5.0, 0.0, None, None),
    "negative gain": (loop([-0.5], [1, 1], 1.0), 0, 2.0, 0.0, math.inf, math.inf),
    "negative gain, unstable": (loop([-2.0], [1, 1], 1.0), 1, 0.5, 0.0, None, -math.inf),
    "all-pass": (loop([-0.5, 0.5], [1, 1]), 0, 2.0, 0.0, math.inf, math.inf),
    "no loop": (loop([0.0], [1, 1]), 0, math.inf, 0.0, math.inf, math.inf),
    "discrete": (loop([1.0], [1, -0.5], 0.0, 1.0), 0, 1.5, 0.0, None, None),
    "discrete, unstable": (loop([1.6], [1, -0.5], 0.0, 1.0), 1, 1.5 / 1.6, 0.0, None, None),
    "discrete integrator, delayed": (
        loop([0.5], [1, -1], 1.0, 1.0),
        0,
        2.0,
        0.0,
        90.0 - 3.0 * math.degrees(math.asin(0.25)),
        None,
    ),
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_loops_in_closed_form(name: str) -> None:
    example, poles, high, low, phase, delay = TEXTBOOK[name]
    found = margins(example)
    assert (found.stable, found.unstable_poles) == (poles == 0, poles)
    if high is not None:
        assert factor(found.gain_margin_db) == pytest.approx(high, rel=1e-9)
    assert factor(found.gain_reduction_db) == pytest.approx(low, rel=1e-9)
    if phase is not None:
        assert found.phase_margin_deg == pytest.approx(phase, abs=1e-9)
    if delay is not None:
        assert found.delay_margin_s == pytest.approx(delay, rel=1e-9)


def test_biproper_with_delay_is_limited_by_its_gain_at_infinite_frequency() -> None:
    found = margins(loop([1.0, 0.5], [1.0, 1.0], 1.0))  # |L| rises to 1 only at infinite frequency
    assert (found.stable, found.verdict) == (False, "marginal")
    assert margins(loop([0.99, 0.5], [1.0, 1.0], 1.0)).stable
    found = margins(loop([1.01, 0.5], [1.0, 1.0], 1.0))
    assert found.unstable_poles == math.inf
    assert factor(found.gain_margin_db) == pytest.approx(1.0 / 1.01)
    undelayed = margins(loop([3.0, 1.0], [1.0, 1.0]))
    assert (undelayed.stable, undelayed.delay_margin_s) == (True, 0.0)


@pytest.mark.parametrize("w0", [1.5, 12.0, 200.0])
def test_tcps_own_poles_are_stable_whatever_the_window(w0: float) -> None:
    """certify.md 1: w0 tau s + 1 + e^(−tau s) has no root on the axis; its gain margin in closed form.

    At a phase crossover e^(−i tau w) is −(a real number) times the denominator: Im gives w0 tau w = −tan(tau w)."""
    tau = 0.5
    plant = OpenLoop(numerator=[(tau, [1.0])], denominator=[(0.0, [w0 * tau, 1.0]), (tau, [1.0])])
    found = margins(plant)
    assert found.stable
    x = tau * found.phase_crossover_rad_s
    assert w0 * x == pytest.approx(-math.tan(x), rel=1e-9)
    limit = factor(found.gain_margin_db)
    assert rightmost(plant, 0.999 * limit) < 0.0 < rightmost(plant, 1.001 * limit)


def test_series_and_inner_loops_keep_their_delays() -> None:
    tau, w0 = 0.5, 12.0
    window = loop([1.0], [w0 * tau, 1.0])
    inner = window.closed_by(loop([1.0], [1.0], tau)).in_series(loop([1.0], [1.0, 0.0], tau))
    w = np.geomspace(0.1, 10.0, 20)
    sigma = 1j * w
    expected = np.exp(-sigma * tau) / sigma / (w0 * tau * sigma + 1 + np.exp(-sigma * tau))
    np.testing.assert_allclose(response(inner, w), expected, rtol=1e-12)


# ---------------------------------------------------------------------- random loops against root finding


@pytest.mark.parametrize("kind", KINDS)
def test_random_loops_against_root_finding(kind: str) -> None:
    """Verdict, count, gain, phase and delay margins: `NETCTRL_RANDOM_LOOPS=10000` draws that many in all kinds."""
    wrong = []
    for i in range(math.ceil(RANDOM / len(KINDS))):
        drawn = KINDS[kind](np.random.default_rng([2026, i, list(KINDS).index(kind)]))
        wrong += [(i, drawn, said) for said in complaints(drawn)]
    assert wrong == []


@pytest.mark.parametrize(
    ("gain", "samples"), [(k, n) for k in (1e-2, 1e-5, 1e-8, 1e-12) for n in (3, 40, 400) if k * n < 1.0]
)
def test_slow_integrators_keep_their_crossover(gain: float, samples: int) -> None:
    """|gain/(z − 1)| = 1 at θ = 2 asin(gain/2), where the squares of z − 1 are below rounding."""
    found = margins(loop([gain], [1.0, -1.0], float(samples), 1.0))
    theta = 2.0 * math.asin(0.5 * gain)
    late = math.pi / 2.0 - theta * (samples + 0.5)
    assert found.stable
    assert found.crossover_rad_s == pytest.approx(theta, rel=1e-12)
    assert math.radians(found.phase_margin_deg) == pytest.approx(late, rel=1e-9)
    assert found.delay_margin_s == pytest.approx(late / theta, rel=1e-9)


@pytest.mark.parametrize("gain", [1e-3, 1e-5, 1e-6])
def test_slow_loops_keep_their_crossover_where_delayed_terms_cancel(gain: float) -> None:
    """s + 2 (1 − e^(−s)) is 3 s at low frequencies."""
    slow = OpenLoop(numerator=[(0.5, [gain])], denominator=[(0.0, [1.0, 2.0]), (1.0, [-2.0])])
    found = margins(slow)
    assert found.stable
    assert found.crossover_rad_s == pytest.approx(gain / 3.0, rel=2e-6)
    assert found.delay_margin_s == pytest.approx(1.5 * math.pi / gain, rel=2e-2)


CORNERS = st.floats(-1.0, 1.0).map(lambda x: 10.0**x)


@given(CORNERS, CORNERS, st.lists(CORNERS, min_size=1, max_size=3), st.integers(0, 2))
@settings(max_examples=25)
def test_both_ways_to_the_margins_agree(gain: float, delay: float, lags: list[float], integrators: int) -> None:
    """Real corners by monotone pieces, and as a polynomial by isolation."""
    corners = DelayLoop(gain=gain, delay=delay, integrators=integrators, leads=(), lags=tuple(lags))
    one, other = margins(corners), margins(open_loop(corners))
    if "marginal" in (one.verdict, other.verdict):
        return
    for name in ("stable", "unstable_poles", "verdict"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("gain_margin_db", "gain_reduction_db", "phase_margin_deg", "delay_margin_s", "crossover_rad_s"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6, abs=1e-6, nan_ok=True)


# ---------------------------------------------------------------------- where rounding can't decide


@pytest.mark.parametrize(
    "example",
    [
        loop([8.0], [1, 3, 3, 1]),
        loop([1.0], [1, 0, 0]),
        loop([1.0], [1.0], 1.0),
        loop([1.5], [1, -0.5], 0.0, 1.0),
        loop([1.0, 0.0], [1, 1, 0]),
        control.tf([math.pi], [1, 0]),
    ],
    ids=["k = 8", "1/s^2", "e^-s", "z = -1", "cancelled integrator", "DelayLoop"],
)
def test_a_loop_on_the_boundary_says_so(example) -> None:
    found = margins(example, delay_s=0.5) if not isinstance(example, OpenLoop) else margins(example)
    assert (found.stable, found.verdict) == (False, "marginal")
    assert found.phase_margin_deg == found.delay_margin_s == found.gain_margin_db == 0.0


def test_a_pole_and_a_zero_at_the_origin_are_a_closed_loop_pole_there() -> None:
    """P = s (80 s² + 6.4e6 s − 1.8e-7 + (9.2e-6 s + 4.7e-4) e^(−0.1 s)): pieces next to it shrank to nothing."""
    G = control.tf([9.18099770e-06, 4.71203096e-04, 0.0], [8.03158638e01, 6.35458076e06, -1.77304611e-07, 0.0])
    assert margins(G, delay_s=0.1).verdict == "marginal"


@pytest.mark.slow
def test_coefficients_of_any_size_give_a_verdict_or_a_refusal() -> None:
    """Random ones from 1e-300 to 1e300: no overflow is met by a warning or an exception of another kind."""
    random = np.random.default_rng(19)
    verdicts = Counter()
    for _ in range(200):
        span = random.choice([3.0, 10.0, 30.0, 100.0, 300.0])
        order = random.integers(1, 5)
        sizes = [order + 1, random.integers(1, order + 2)]
        den, num = (10.0 ** random.uniform(-span, span, n) * random.choice([1, 1, 0, -1], n) for n in sizes)
        if den.any():
            try:
                verdicts[margins(control.tf(num, den), delay_s=0.1).verdict] += 1
            except InvalidValue:
                verdicts["refused"] += 1
    assert min(verdicts[name] for name in ("stable", "unstable", "marginal", "refused")) > 5


def test_a_hidden_unstable_mode_counts() -> None:
    """(s − 1)/((s − 1)(s + 2)): the output doesn't show it, the loop has it."""
    assert margins(loop([1.0, -1.0], [1.0, 1.0, -2.0])).unstable_poles == 1
    system = StateSpace([[1.0, 0.0], [0.0, -2.0]], [[0.0], [1.0]], [[1.0, 1.0]])
    assert margins(system).unstable_poles == 1


# ---------------------------------------------------------------------- conversion


def test_polynomials_of_a_state_space_are_exact() -> None:
    """Characteristic polynomials in integers: no noise above the true degree of the numerator."""
    A = [[0.1, 0.25, 0.0], [0.0, -0.3, 1.0], [2.0, 0.0, -1.5]]
    system = StateSpace(A, [[0.0], [0.0], [1.0]], [[1.0, 0.0, 0.0]])
    numerator, denominator = transfer_polynomials(system)
    assert numerator[0] == numerator[1] == numerator[2] == 0.0
    assert numerator[3] == 0.25
    np.testing.assert_allclose(denominator, np.poly(A), rtol=1e-13)
    direct = StateSpace(A, [[0.0], [0.0], [1.0]], [[1.0, 0.0, 0.0]], [[2.0]])
    np.testing.assert_allclose(transfer_polynomials(direct)[0], 2.0 * denominator + numerator, rtol=1e-14)


@pytest.mark.parametrize("dt", [0.0, 0.1])
def test_state_space_and_transfer_function_agree(dt: float) -> None:
    system = control.tf([1.0, 0.4], [1.0, -0.2, 0.5, 0.05], dt)
    one, other = netctrl.margins(system, delay_s=0.3), netctrl.margins(control.ss(system), delay_s=0.3)
    ours = netctrl.margins(StateSpace.from_control(control.ss(system)), delay_s=0.3)
    assert repr(other) == repr(ours)  # nan where there is no crossing
    assert one.verdict == other.verdict
    assert one.phase_margin_deg == pytest.approx(other.phase_margin_deg, abs=1e-6)
    assert one.gain_margin_db == pytest.approx(other.gain_margin_db, abs=1e-6)


def test_a_loop_of_real_corners_becomes_a_delay_loop_and_others_do_not() -> None:
    assert isinstance(netctrl.from_control(3 / (s * (2 * s + 1)), 0.1), DelayLoop)
    for system in (1 / (s + 1) ** 3, 1 / (s - 1), -1 / (s + 1), s / (s + 1) ** 2, 1 / s**3, (s + 2) / (s + 1)):
        assert isinstance(netctrl.from_control(system), OpenLoop)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "example",
    ["abc", None, 3.0, [1.0, 2.0], np.eye(2), {"gain": 1.0}, control.tf([[[1.0], [1.0]]], [[[1.0, 1.0], [1.0, 2.0]]]),
     StateSpace(np.eye(2), np.eye(2), np.eye(2)), control.tf([1.0], [1.0, 0.5], True)],
    ids=["text", "none", "number", "list", "array", "dict", "two inputs", "two outputs", "no dt"],
)  # fmt: skip
def test_another_type_is_refused_by_name(example) -> None:
    for function in (netctrl.margins, netctrl.disk_margin):
        with pytest.raises(InvalidValue, match=r"^loop"):
            function(example)
    with pytest.raises(InvalidValue, match=r"^system"):
        netctrl.from_control(example)


@pytest.mark.parametrize("delay", ["1", -1.0, math.inf])
def test_a_delay_that_is_none_is_refused(delay) -> None:
    for system in (1 / (s + 1), DelayLoop(gain=1.0, delay=0.1, integrators=1, leads=(), lags=())):
        with pytest.raises(InvalidValue, match=r"^delay"):
            netctrl.margins(system, delay_s=delay)


BAND = DelayLoop(gain=1.0, delay=0.1, integrators=1, leads=(), lags=(1.0,))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("x",), "loop"),
        ((BAND, 1e5), "gain_margin_db"),
        ((BAND, -1e5), "gain_margin_db"),
        ((BAND, 6.0, "ab"), "phase_margin_deg"),
        ((BAND, 6.0, (60.0, 30.0)), "phase_margin_deg"),
        ((BAND, 6.0, (30.0, 1e9)), "phase_margin_deg"),
        ((BAND, 6.0, 30.0), "phase_margin_deg"),
    ],
)
def test_gain_band_refuses_by_name(arguments: tuple, named: str) -> None:
    with pytest.raises(InvalidValue, match=rf"^{named}"):
        gain_band(*arguments)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"numerator": "abc"}, "numerator"),
        ({"numerator": [1.0]}, "numerator"),
        ({"numerator": [(0.0, "12")]}, "numerator"),
        ({"numerator": [(0.0, [1j])]}, "numerator"),
        ({"numerator": [(0.0, [math.nan])]}, "numerator"),
        ({"numerator": [(-1.0, [1.0])]}, "numerator: delay"),
        ({"numerator": [(0.0, [1.0, 0.0, 0.0])]}, "numerator"),
        ({"numerator": [(0.0, [1.0] * 100)]}, "numerator"),
        ({"denominator": [(0.0, [0.0])]}, "denominator"),
        ({"denominator": []}, "denominator"),
        ({"denominator": [(0.5, [1.0, 1.0])]}, "numerator"),
        ({"dt": -1.0}, "dt"),
        ({"dt": 0.1, "numerator": [(0.05, [1.0])]}, "numerator: delay"),
        ({"dt": 0.1, "numerator": [(1e6, [1.0])]}, "numerator: delay"),
    ],
)
def test_an_open_loop_refuses_by_name(fields: dict, named: str) -> None:
    good = {"numerator": [(0.0, [1.0])], "denominator": [(0.0, [1.0, 1.0])]}
    OpenLoop(**good)
    with pytest.raises(InvalidValue, match=rf"^{named}"):
        OpenLoop(**(good | fields))


def test_an_algebraic_loop_is_refused() -> None:
    with pytest.raises(InvalidValue, match="algebraic"):
        margins(loop([-1.0, 2.0], [1.0, 1.0]))


# ---------------------------------------------------------------------- disk margin


@pytest.mark.parametrize(
    "example",
    [loop([25.0], [1, 10, 10, 10]), loop([1.0], [1, 0], 0.5), loop([2.0], [1, -1], 0.3), loop([0.5, 1.0], [1, 1], 1.0),
     loop([0.3], [1, -0.5], 0.3, 0.1),
     OpenLoop(numerator=[(0.0, [0.2])], denominator=[(0.0, [1.0, 1.0]), (2.0, [0.3, 0.0])])],
    ids=["third order", "integrator", "unstable plant", "biproper", "discrete", "neutral"],
)  # fmt: skip
def test_disk_margin_is_the_least_distance_on_a_dense_grid(example: OpenLoop) -> None:
    found = netctrl.disk_margin(example)
    L = response(example, np.linspace(1e-3, math.pi / example.dt if example.dt else 60.0, 200_001))
    least = (2.0 * np.abs(1.0 + L) / np.abs(1.0 - L)).min()
    assert found.alpha <= least * (1.0 + 1e-6)
    assert found.alpha == pytest.approx(least, rel=2e-4)
    assert margins(example).gain_margin_db >= 20.0 * math.log10(found.highest_gain) - 1e-4
    assert margins(example).phase_margin_deg >= found.phase_deg - 1e-3


def test_disk_margin_of_a_neutral_biproper_loop_is_a_bound() -> None:
    """L = −0.2/(1 + 0.3 z) at infinity, z anywhere on the circle: 10/9 at z = −1; (0.8 − 0.3)/(1.2 + 0.3) bounds it."""
    neutral = OpenLoop(numerator=[(0.0, [-0.2, 0.1])], denominator=[(0.0, [1.0, 1.0]), (2.0, [0.3, 0.0])])
    assert netctrl.disk_margin(neutral).alpha == pytest.approx(2.0 * 0.5 / 1.5, rel=1e-9)


def test_a_delay_loop_takes_more_delay() -> None:
    simple = DelayLoop(gain=3.0, delay=0.1, integrators=0, leads=(), lags=(2.0,))
    assert margins(simple, delay_s=0.2) == margins(
        DelayLoop(gain=3.0, delay=0.1 + 0.2, integrators=0, leads=(), lags=(2.0,))
    )


def stable_at(gain: float, damping: float, delays: np.ndarray) -> np.ndarray:
    """Whether s² + 2 D s + 1 + k e^(−s T) is stable at delays T, by counting its roots that cross the axis.

    |s² + 2 D s + 1| = k at up to two frequencies: at the higher roots leave the left half plane as T grows, at the
    lower they return. Source: Cooke, van den Driessche, Funkcialaj Ekvacioj 29 (1986) 77-90, theorem 1.
    """
    half, constant = 1.0 - 2.0 * damping**2, 1.0 - gain**2
    if half**2 < constant:
        return np.full(delays.shape, True)
    root = math.sqrt(half**2 - constant)
    unstable = np.zeros(delays.shape, dtype=int)
    for square, change in ((half + root, 2), (half - root, -2)):
        if square > 0.0:
            omega = math.sqrt(square)
            first = (math.pi - np.angle(1.0 - square + 2j * damping * omega)) % (2.0 * math.pi) / omega
            unstable += change * (np.floor((delays - first) * omega / (2.0 * math.pi)).astype(int) + 1)
    return unstable == 0


@given(st.floats(0.5, 3.0), st.floats(0.01, 0.3), st.floats(2.0, 40.0))
@settings(max_examples=40, deadline=None)
def test_the_delay_that_must_go_is_the_least(gain: float, damping: float, delay: float) -> None:
    """Of k e^(−s T)/(s² + 2 D s + 1), which delay makes stable and unstable in turn: stable just below what is said,
    and nowhere between there and the delay that it has."""
    plant = control.tf([gain], [1.0, 2.0 * damping, 1.0])
    found = margins(plant, delay_s=delay)
    assert found.stable == stable_at(gain, damping, np.array(delay))
    assume(found.verdict == "unstable")
    if found.delay_margin_s == -math.inf:
        tried = np.linspace(0.0, delay, 4000)
    else:
        assert stable_at(gain, damping, np.array(delay + found.delay_margin_s - 1e-7))
        tried = delay + found.delay_margin_s * np.linspace(1e-3, 1.0 - 1e-6, 4000)
    assert not stable_at(gain, damping, tried).any()


def test_an_unstable_loop_has_no_disk_margin() -> None:
    assert netctrl.disk_margin(loop([9.0], [1, 3, 3, 1])).alpha == 0.0


# ---------------------------------------------------------------------- what is shown is run


def test_a_result_shows_its_verdict() -> None:
    found = margins(loop([2.0], [1, 3, 3, 1]))
    assert isinstance(found, Margins)
    assert "stable" in found._repr_html_()
    assert found.to_pandas()["verdict"] == "stable"
    assert "numerator" in loop([1.0], [1.0, 1.0])._repr_html_()
