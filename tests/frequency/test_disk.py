"""Disc margins in closed form: alpha, the gains and the phase on its edge, and the frequency where it is met."""

from __future__ import annotations

from math import atan, degrees, inf, pi, radians, tan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.frequency.hinf_norm import discrete_disk_margin
from netctrl.model.statespace import StateSpace


def integrator(k: float, dt: float) -> StateSpace:
    """S − T of L = k/(z − 1): (z − 1 − k)/(z − 1 + k)."""
    return StateSpace(A=[[1.0 - k]], B=[[1.0]], C=[[-2.0 * k]], D=[[1.0]], dt=dt)


def late_integrator(k: float, dt: float) -> StateSpace:
    """S − T of L = k/(z (z − 1)): 1 − 2k/(z² − z + k)."""
    return StateSpace(A=[[1.0, -k], [1.0, 0.0]], B=[[1.0], [0.0]], C=[[0.0, -2.0 * k]], D=[[1.0]], dt=dt)


@given(st.floats(0.01, 1.9), st.floats(1e-6, 1e3))
def test_an_integrator_is_nearest_to_its_limit_at_half_the_sampling_rate(k: float, dt: float) -> None:
    """|S − T| rises up to z = −1, where it is (2 + k)/(2 − k)."""
    found = discrete_disk_margin(integrator(k, dt))
    alpha = 2.0 * (2.0 - k) / (2.0 + k)
    assert found.alpha == pytest.approx(alpha, rel=1e-7)
    assert found.phase_deg == pytest.approx(degrees(2.0 * atan(alpha / 2.0)), rel=1e-7)
    assert found.lowest_gain == pytest.approx(k / 2.0, rel=1e-7)
    assert found.highest_gain == pytest.approx(2.0 / k, rel=1e-7)  # the loop's own limit is k = 2
    assert found.frequency_hz == pytest.approx(0.5 / dt, rel=1e-6)


@pytest.mark.parametrize("k", [0.05, 0.2, 0.381966, 0.7, 0.95])
def test_with_a_delay_it_is_in_between(k: float) -> None:
    """Against all frequencies of a fine grid; e^{jφ} and both gains are on the edge of the disc |δ| = α."""
    dt = 1e-3
    found = discrete_disk_margin(late_integrator(k, dt))
    z = np.exp(1j * np.linspace(0.0, pi, 2_000_001))
    size = np.abs(1.0 - 2.0 * k / (z * z - z + k))
    worst = int(np.argmax(size))
    assert found.alpha == pytest.approx(2.0 / size[worst], rel=1e-9)
    # The peak's height is found to 1e-9; where it is flat, its place is less sharp.
    assert found.frequency_hz == pytest.approx(worst / 2_000_000 * 0.5 / dt, rel=1e-3)
    edge = np.array([np.exp(1j * radians(found.phase_deg)), found.lowest_gain, found.highest_gain])
    np.testing.assert_allclose(np.abs(2.0 * (edge - 1.0) / (edge + 1.0)), found.alpha, rtol=1e-9)
    # The factor on the edge that brings the loop to −1 at that frequency: f = −1/L.
    at = np.exp(2j * pi * found.frequency_hz * dt)
    f = -at * (at - 1.0) / k
    assert abs(2.0 * (f - 1.0) / (f + 1.0)) == pytest.approx(found.alpha, rel=1e-6)


def test_a_loop_that_no_gain_makes_unstable_has_no_highest_one() -> None:
    """L = 1/2 at all frequencies: S − T = 1/3, α = 6."""
    found = discrete_disk_margin(StateSpace(A=[[0.5]], B=[[0.0]], C=[[0.0]], D=[[1.0 / 3.0]], dt=0.1))
    assert found.alpha == pytest.approx(6.0)
    assert found.highest_gain is None
    assert found.lowest_gain == pytest.approx(-0.5)
    assert tan(radians(found.phase_deg) / 2.0) == pytest.approx(3.0)
    assert found.alpha < inf
