"""Loops with exact delay: every crossing is found, also where phase or magnitude isn't monotone."""

from __future__ import annotations

import math
from itertools import pairwise

import control
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.frequency.certified.interchange import from_control
from netctrl.frequency.loop import (
    gain_crossings,
    lag_crossings,
    lag_turning_points,
    magnitude,
    magnitude_turning_points,
    phase_lag,
    response,
    to_control,
)
from netctrl.model.loop import DelayLoop
from netctrl.model.open_loop import OpenLoop

CORNERS = st.floats(-2.0, 2.0).map(lambda x: 10.0**x)


@st.composite
def loops(draw: st.DrawFn) -> DelayLoop:
    integrators = draw(st.integers(0, 2))
    lags = tuple(draw(st.lists(CORNERS, min_size=1, max_size=3)))
    most = min(len(lags) + integrators - 1, 3)
    leads = tuple(draw(st.lists(CORNERS, max_size=most)))
    delay = draw(st.one_of(st.just(0.0), CORNERS))
    gain = draw(CORNERS)
    return DelayLoop(gain=gain, delay=delay, integrators=integrators, leads=leads, lags=lags)


def test_response_is_the_formula() -> None:
    loop = DelayLoop(gain=3.0, delay=0.4, integrators=1, leads=(0.2,), lags=(2.0, 0.5))
    s = 1j * np.array([0.1, 1.0, 7.0])
    expected = 3.0 * (0.2 * s + 1) * np.exp(-0.4 * s) / (s * (2 * s + 1) * (0.5 * s + 1))
    np.testing.assert_allclose(response(loop, s.imag), expected, rtol=1e-14)


@given(loops(), CORNERS)
def test_magnitude_and_lag_are_the_response_in_polar_form(loop: DelayLoop, w: float) -> None:
    polar = magnitude(loop, w) * np.exp(-1j * phase_lag(loop, w))
    np.testing.assert_allclose(response(loop, w), polar, rtol=1e-11)


@pytest.mark.slow
@given(loops(), st.floats(0.2, 4.0))
@settings(max_examples=150)
def test_every_lag_crossing_is_found_and_is_one(loop: DelayLoop, half_turns: float) -> None:
    level = half_turns * math.pi + 1e-3  # off the multiples of 90°, which a lag may only approach
    found = lag_crossings(loop, level)
    for w in found:
        assert phase_lag(loop, w) == pytest.approx(level, rel=1e-12)
    # An independent look: sign changes on a dense grid, in every interval between found roots and elsewhere.
    w = np.geomspace(1e-5, 1e4, 20_001)
    signs = np.array([phase_lag(loop, x) > level for x in w])
    seen = int(np.count_nonzero(signs[1:] != signs[:-1]))
    inside = [x for x in found if w[0] < x < w[-1]]
    # Two roots closer than the grid's step show as none: the search may find more, by pairs, never fewer.
    assert len(inside) >= seen
    assert (len(inside) - seen) % 2 == 0


@given(loops(), st.floats(-1.0, 1.0))
@settings(max_examples=150)
def test_every_gain_crossing_is_found_and_is_one(loop: DelayLoop, exponent: float) -> None:
    level = 10.0**exponent
    found = gain_crossings(loop, level)
    for w in found:
        assert magnitude(loop, w) == pytest.approx(level, rel=1e-11)
    w = np.geomspace(1e-5, 1e7, 20_001)
    signs = np.abs(response(loop, w)) > level
    seen = int(np.count_nonzero(signs[1:] != signs[:-1]))
    inside = [x for x in found if w[0] < x < w[-1]]
    assert len(inside) >= seen
    assert (len(inside) - seen) % 2 == 0


@given(loops())
def test_between_turning_points_lag_and_magnitude_are_monotone(loop: DelayLoop) -> None:
    for turns, values in (
        (lag_turning_points(loop), lambda w: [phase_lag(loop, x) for x in w]),
        (magnitude_turning_points(loop), lambda w: [math.log(magnitude(loop, x)) for x in w]),
    ):
        ends = [1e-4, *(t for t in turns if 1e-4 < t < 1e4), 1e4]
        for a, b in pairwise(ends):
            steps = np.diff(values(np.linspace(a, b, 60)))
            scale = 1e-9 * (1.0 + np.abs(steps).max())
            assert (steps >= -scale).all() or (steps <= scale).all()


def test_a_conditionally_stable_phase_crosses_three_times() -> None:
    loop = DelayLoop(gain=1.0, delay=0.01, integrators=1, leads=(1.0, 1.0), lags=(100.0, 100.0))
    found = lag_crossings(loop, math.pi)
    assert len(found) == 3
    slopes = [phase_lag(loop, w * 1.0001) > phase_lag(loop, w) for w in found]
    assert slopes == [True, False, True]


def test_a_level_that_the_lag_only_approaches_is_not_crossed() -> None:
    loop = DelayLoop(gain=1.0, delay=0.0, integrators=1, leads=(), lags=(1.0,))
    assert lag_crossings(loop, math.pi) == []
    assert lag_crossings(loop, 0.75 * math.pi) == [pytest.approx(1.0, rel=1e-14)]


def test_control_round_trip() -> None:
    loop = DelayLoop(gain=2.5, delay=0.3, integrators=1, leads=(0.25,), lags=(3.0, 0.5))
    undelayed = to_control(DelayLoop(gain=2.5, delay=0.0, integrators=1, leads=(0.25,), lags=(3.0, 0.5)), 1)
    back = from_control(undelayed, delay_s=0.3)
    assert (back.integrators, back.delay) == (1, 0.3)
    assert back.gain == pytest.approx(loop.gain, rel=1e-9)
    assert sorted(back.lags) == pytest.approx(sorted(loop.lags), rel=1e-9)
    assert back.leads == pytest.approx(loop.leads, rel=1e-9)
    w = np.array([0.2, 1.0, 3.0])
    np.testing.assert_allclose(to_control(loop, 5)(1j * w), response(loop, w), rtol=1e-6)


@pytest.mark.parametrize(
    "system",
    [
        control.tf([1.0], [1.0, 0.2, 1.0]),
        control.tf([1.0], [1.0, -1.0]),
        control.tf([1.0], [1.0, 0.5], 0.1),
        control.tf([-1.0], [1.0, 1.0]),
        control.tf([1.0, 0.0], [1.0, 3.0, 2.0]),
    ],
    ids=["complex poles", "unstable", "discrete", "negative gain", "zero at the origin"],
)
def test_what_a_delay_loop_cannot_hold_becomes_an_open_loop(system: control.TransferFunction) -> None:
    held = from_control(system, delay_s=0.2)
    assert isinstance(held, OpenLoop)
    numerator, denominator = (terms[0][1] for terms in (held.numerator, held.denominator))
    np.testing.assert_array_equal(numerator, system.num[0][0])
    np.testing.assert_array_equal(denominator, system.den[0][0])


@pytest.mark.parametrize(
    "change",
    [
        {"gain": 0.0},
        {"gain": math.nan},
        {"delay": -0.1},
        {"delay": math.inf},
        {"integrators": 3},
        {"lags": (0.0,)},
        {"lags": (-1.0,)},
        {"leads": (0.0,)},
        {"leads": (1.0, 1.0)},
    ],
)
def test_a_loop_refuses_values_outside_its_bounds(change: dict) -> None:
    good = {"gain": 1.0, "delay": 0.1, "integrators": 1, "leads": (), "lags": (1.0,)}
    DelayLoop(**good)
    with pytest.raises(InvalidValue, match=next(iter(change))):
        DelayLoop(**(good | change))
