"""Mean field of Cubic: against renewal equations, flows drawn one by one, closed forms, and its own bounds."""

from __future__ import annotations

import numpy as np
import pytest
from cubic_population import drawn_response, population, renewal_response

from netctrl.plants.queues.cubic_response import (
    EXPONENT_SLOPE,
    EXPONENTS,
    STEEPEST,
    TRIP_EXPONENTS,
    cubic_exponent,
    cubic_leading,
    cubic_least_exponent,
    cubic_mode,
    cubic_response,
    cubic_window,
)
from netctrl.plants.queues.window_response import CUBIC

A, C, BETA = CUBIC.increase, CUBIC.curve, 1.0 - CUBIC.decrease
TRIP = 0.1


def _ln_p(eta: float, trip: float = TRIP) -> np.ndarray:
    return np.array([2.0 * np.log(eta / A) + np.log(C * trip**3)])


def _mean(eta: float, trip: float = TRIP) -> float:
    """Mean window over C^(1/4) (R/p)^(3/4)."""
    ln_p = _ln_p(eta, trip)
    ln_window = cubic_window(ln_p, np.log(trip), C, A)
    return float(np.exp(ln_window - 0.25 * np.log(C) - 0.75 * (np.log(trip) - ln_p))[0])


def _response(eta: float, z: np.ndarray) -> np.ndarray:
    mode = cubic_mode(_ln_p(eta), np.log(TRIP), C, A)
    return cubic_response(1j * z * mode.losses, 1.0, mode)[0]


def test_renewal_equations_of_reno_have_the_known_moments() -> None:
    """E[w²] = 2/p as growth and cuts balance; E[w] = 1.31/√p (Ott, Kemperman, Mathis 1996)."""
    reno = population(1.0, curve=False, beta=0.5)
    assert reno.square == pytest.approx(2.0, rel=1e-4)
    assert reno.mean == pytest.approx(1.3098, rel=1e-4)
    assert renewal_response(reno, 0.01) == pytest.approx(0.5, abs=6e-3)
    assert abs(renewal_response(reno, 20.0) * 20.0) == pytest.approx(0.5 * 2.0 / 1.3098**2, rel=3e-3)


def test_pure_cubic_scales() -> None:
    """w ~ (R/p)^(3/4), so Q is 3/4 at frequency 0, and (1 − beta) E[w²]/E[w]²/z at high ones."""
    flows = population(1e-3)
    assert flows.mean == pytest.approx(1.5041, rel=1e-3)
    assert abs(renewal_response(flows, 0.02)) == pytest.approx(0.75, rel=1e-3)
    assert _mean(1e-3) == pytest.approx(1.5041, rel=1e-3)
    assert _response(1e-3, np.array([1e-4])).real == pytest.approx(0.75, rel=5e-3)
    limit = (1.0 - BETA) * flows.square / flows.mean**2
    assert float(cubic_leading(cubic_mode(_ln_p(1e-3), np.log(TRIP), 1.0, A))[0][0]) > 0.0
    assert abs(_response(1e-3, np.array([1e3]))[0] * 1e3) == pytest.approx(limit, rel=3e-3)


@pytest.mark.parametrize(
    ("eta", "near"), [(0.02, 0.012), (0.2, 0.012), (0.5, 0.03), (0.8, 0.03), (1.5, 0.03), (4.0, 0.012), (30.0, 0.012)]
)
def test_functions_are_near_the_renewal_equations(eta: float, near: float) -> None:
    flows, z = population(eta), np.array([0.05, 0.2, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0, 16.0])
    assert _mean(eta) == pytest.approx(flows.mean, rel=2e-3)
    found = np.array([renewal_response(flows, each) for each in z])
    assert np.abs(_response(eta, z) / found - 1.0).max() < near
    step = 0.02
    ratio = np.log(population(eta * np.exp(step)).mean / population(eta * np.exp(-step)).mean) / (2.0 * step)
    exponent = float(cubic_exponent(_ln_p(eta), np.log(TRIP), C, A)[0])
    assert exponent == pytest.approx(0.75 - 0.5 * ratio, abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("eta", "z"), [(0.05, 1.0), (0.05, 2.0), (0.6, 1.0), (3.0, 2.0)])
def test_flows_drawn_one_by_one_respond_alike(eta: float, z: float) -> None:
    mean = _mean(eta)
    omega, rng = z * mean, np.random.default_rng(int(10 * z + 100 * eta))
    period = 2.0 * np.pi / omega
    inside = max(40, int(period / 0.02))
    warmup = inside * int(np.ceil(12.0 / period))
    marks = rng.exponential(size=(8000, 64))
    found, wave = drawn_response(marks, eta, omega, 0.3, period / inside, warmup + 16 * inside, warmup, BETA)
    assert found == pytest.approx(mean, rel=0.04)  # 3 % of which are of the second order in the modulation
    assert abs(wave - _response(eta, np.array([z]))[0]) < 0.015


def test_the_window_depends_on_the_round_trip_and_p_as_the_exponent_says() -> None:
    for eta in (0.01, 0.3, 0.7, 2.0, 20.0):
        ln_p, ln_trip, step = _ln_p(eta), np.log(TRIP), 1e-4
        e = float(cubic_exponent(ln_p, ln_trip, C, A)[0])
        by_p = cubic_window(ln_p + step, ln_trip, C, A) - cubic_window(ln_p - step, ln_trip, C, A)
        by_trip = cubic_window(ln_p, ln_trip + step, C, A) - cubic_window(ln_p, ln_trip - step, C, A)
        assert -by_p[0] / (2.0 * step) == pytest.approx(e, abs=1e-6)
        assert by_trip[0] / (2.0 * step) == pytest.approx(3.0 * e - 1.5, abs=1e-6)
        mode = cubic_mode(ln_p, ln_trip, C, A)
        Q, V = cubic_response(1e-9j, np.exp(-1e-9j), mode)
        assert V[0].real == pytest.approx(1.5 - 3.0 * e, abs=0.02)  # to p and R at once: only slow changes add up
        assert Q[0].real == pytest.approx(e, rel=0.012)


def test_bounds_hold_for_every_probability_and_round_trip() -> None:
    eta, z = np.geomspace(1e-6, 1e6, 4001), np.geomspace(1e-4, 1e4, 1500)
    e = cubic_exponent(np.log((eta / A) ** 2 * C * TRIP**3), np.log(TRIP), C, A)
    assert EXPONENTS[0] <= e.min()
    assert e.max() <= EXPONENTS[1]
    assert 0.97 * EXPONENT_SLOPE < np.abs(np.diff(e) / np.diff(np.log(eta))).max() <= EXPONENT_SLOPE
    assert TRIP_EXPONENTS[0] <= 2.5 - 3.0 * e.max()
    assert 2.5 - 3.0 * e.min() <= TRIP_EXPONENTS[1]
    steepest = max(np.abs(z * _response(each, z)).max() for each in eta[::20])
    assert 0.97 * STEEPEST < steepest <= STEEPEST


def test_the_least_exponent_is_below_all_near_and_close_to_them() -> None:
    ln_trip = np.log(TRIP)
    for eta in np.geomspace(0.01, 30.0, 40):
        for width in (1e-6, 0.05, 0.5):
            bound = float(cubic_least_exponent(_ln_p(eta), ln_trip, C, A, width)[0])
            near = cubic_exponent(_ln_p(eta) + 2.0 * np.linspace(-width, width, 101), ln_trip, C, A)
            assert bound <= near.min() + 1e-12
            assert near.min() - bound < 0.03 + 0.3 * width


def test_the_response_tends_to_its_leading_powers() -> None:
    for eta in (0.05, 0.7, 5.0):
        mode = cubic_mode(_ln_p(eta), np.log(TRIP), C, A)
        sigma = 1e3j * mode.losses
        first, second = cubic_leading(mode)
        Q = cubic_response(sigma, 1.0, mode)[0]
        assert abs((Q - first / sigma - second / sigma**2) / Q)[0] < 2e-5
