"""Crossings of a level, peaks, bandwidths and disk margins, against closed forms and dense grids."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.frequency.hinf_norm import bandwidth, gain_at, level_crossings, peak_gain
from netctrl.model.statespace import StateSpace


def stable(seed: int) -> StateSpace:
    rng = np.random.default_rng(seed)
    n, m, p = rng.integers(1, 5), *rng.integers(1, 3, 2)
    A = rng.normal(size=(n, n))
    A *= rng.uniform(0.1, 0.98) / np.abs(np.linalg.eigvals(A)).max()
    return StateSpace(A, rng.normal(size=(n, m)), rng.normal(size=(p, n)), rng.normal(size=(p, m)), 0.5)


def first_order(a: float) -> StateSpace:
    """G = (1 - a)/(z - a)."""
    return StateSpace([[a]], [[1.0 - a]], [[1.0]], [[0.0]], 2.0)


@given(st.floats(0.05, 0.98))
def test_the_bandwidth_of_a_first_order_lag_is_the_textbooks(a):
    """|e^{iθ} - a|² = 2 (1 - a)²."""
    cosine = (1.0 + a**2 - 2.0 * (1.0 - a) ** 2) / (2.0 * a)
    found = bandwidth(first_order(a))
    if cosine < -1.0:
        assert found is None
    elif abs(cosine + 1.0) > 1e-6:
        assert found == pytest.approx(np.arccos(cosine) / (2.0 * np.pi * 2.0), rel=1e-8)


def test_a_constant_has_no_bandwidth_and_a_zero_at_dc_neither():
    assert bandwidth(StateSpace([[0.0]], [[0.0]], [[1.0]], [[2.0]], 1.0)) is None
    assert bandwidth(StateSpace([[0.5]], [[1.0]], [[-0.5]], [[1.0]], 1.0)) is None


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_no_frequency_has_more_gain_than_the_peak(seed):
    system = stable(seed)
    peak, angle = peak_gain(system)
    assert gain_at(system, angle) == pytest.approx(peak, rel=1e-12)
    grid = max(gain_at(system, each) for each in np.linspace(0.0, np.pi, 400))
    assert grid <= peak * (1.0 + 1e-8)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 0.95))
def test_every_crossing_that_a_grid_sees_is_found(seed, share):
    system = stable(seed)
    level = share * peak_gain(system)[0]
    found = level_crossings(system, level)
    A, B, C, D = system.A, system.B, system.C, system.D
    for angle in found:
        G = C @ np.linalg.solve(np.exp(1j * angle) * np.eye(len(A)) - A, B) + D
        assert np.abs(np.linalg.svd(G, compute_uv=False) - level).min() <= 1e-5 * level
    grid = np.linspace(0.0, np.pi, 200)
    above = np.array([gain_at(system, each) > level for each in grid])
    for k in np.flatnonzero(above[1:] != above[:-1]):
        assert ((found >= grid[k] - 1e-9) & (found <= grid[k + 1] + 1e-9)).any()


def test_what_has_no_peak_is_refused():
    with pytest.raises(InvalidValue, match="stable system"):
        peak_gain(first_order(1.0))
    with pytest.raises(InvalidValue, match="discrete-time"):
        level_crossings(StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]], 0.0), 1.0)
    with pytest.raises(InvalidValue, match="level"):
        level_crossings(first_order(0.5), 0.0)
