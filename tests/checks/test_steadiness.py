"""Envelopes of noisy series: closed forms of a sine, of noise, and of a loop at its limit."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from netctrl.checks.steadiness import AT_LIMIT, envelope

PERIOD, STEP = 1.0, 1.0 / 32.0


def test_a_sine_has_a_steady_envelope() -> None:
    t = STEP * np.arange(32 * 200)
    found = envelope(15.0 + 3.0 * np.sin(2.0 * pi * t / 0.8 + 1.0), STEP, PERIOD)
    assert (found.ratio, found.period_s, found.amplitude) == pytest.approx((1.0, 0.8, 3.0), rel=0.01)


def test_white_noise_has_that_of_gaussian_noise_in_a_band() -> None:
    found = envelope(np.random.default_rng(1).normal(size=32 * 20_000), STEP, PERIOD)
    assert found.ratio == pytest.approx(2.0, abs=0.03)


def normal_form(growth: float, seed: int, turns: int = 8_000) -> np.ndarray:
    """Real part of z' = (nu + i omega) z − |z|² z + noise, by Euler and Maruyama, with omega = 2 pi."""
    rng, inside = np.random.default_rng(seed), 4
    h = STEP / inside
    noise = (rng.normal(size=(turns * 32 * inside, 2)) @ np.array([1.0, 1j])) * np.sqrt(0.02 * h)
    turn, z, found = np.exp(2j * pi * h), 0.1 + 0j, np.empty(turns * 32)
    for k, kick in enumerate(noise):
        z = (z + h * (growth - abs(z) ** 2) * z + kick) * turn
        if k % inside == 0:
            found[k // inside] = z.real
    return found


@pytest.mark.parametrize(("growth", "ratio"), [(-2.0, 1.98), (0.0, AT_LIMIT), (2.0, 1.01)])
def test_the_normal_form_of_a_loop_at_its_limit_has_pi_over_2(growth: float, ratio: float) -> None:
    """u = |z|² has the density ∝ exp((nu u − u²/2)/D) with D = .02 per component: moments by quadrature."""
    D = 0.02
    u = np.linspace(0.0, 4.0, 400_001)
    weight = np.exp((growth * u - 0.5 * u * u - np.max(growth * u - 0.5 * u * u)) / D)
    exact = (u * u * weight).sum() * weight.sum() / (u * weight).sum() ** 2
    assert exact == pytest.approx(ratio, abs=0.02)
    found = envelope(normal_form(growth, 3), STEP, PERIOD)
    assert found.ratio == pytest.approx(exact, abs=0.05)


def test_short_series_have_no_envelope_and_constant_ones_no_amplitude() -> None:
    assert envelope(np.zeros(32 * 17), STEP, PERIOD) is None
    still = envelope(np.full(32 * 30, 0.015), STEP, PERIOD)
    assert (still.ratio, still.amplitude) == (2.0, 0.0)


@pytest.mark.parametrize("scale", [1e-4, 0.03, 1.0, 25.0])
def test_the_unit_of_time_and_what_is_far_in_frequency_change_nothing(scale: float) -> None:
    """A stronger drift and a stronger tone outside of .4 to 2 times the predicted frequency; and near its end a line
    that is higher in one bin, and weaker in all, than the swing's band."""
    t = STEP * np.arange(32 * 400)
    swing = normal_form(-0.1, 5, turns=400)
    line = 0.12 * np.sin(2.0 * pi * 1.8 * t)
    power = np.abs(np.fft.rfft(np.stack([swing, line]) * np.hanning(len(t)))) ** 2
    assert power[1].max() > power[0].max()
    others = 4.0 * np.sin(2.0 * pi * t / 20.0) + 4.0 * np.sin(2.0 * pi * 4.0 * t)
    alone, found = envelope(swing, STEP, PERIOD), envelope(swing + line + others, scale * STEP, scale * PERIOD)
    assert found.period_s == pytest.approx(scale, rel=0.1)
    assert (found.ratio, found.amplitude) == pytest.approx((alone.ratio, alone.amplitude), rel=0.1)


def test_the_ends_of_a_series_do_not_count() -> None:
    t = STEP * np.arange(32 * 60)
    bursts = 5.0 * ((t < 2.0) | (t > t[-1] - 2.0)) * np.sin(2.0 * pi * 1.05 * t)
    found = envelope(np.sin(2.0 * pi * t) + bursts, STEP, PERIOD)
    alone = envelope(np.sin(2.0 * pi * t), STEP, PERIOD)
    assert found.ratio < 1.2
    assert found.amplitude == pytest.approx(alone.amplitude, rel=0.1)
