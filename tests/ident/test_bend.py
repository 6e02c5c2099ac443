"""What a line's errors tell of a curve: slopes of a known one, none of a line, however its noise is."""

import numpy as np
import pytest
from scipy.signal import lfilter

import netctrl
from netctrl.ident.bend import line_slopes


def test_slopes_of_a_known_curve():
    """y = u², whose line has a slope of 1 between 0 and 1: its own is 2 u."""
    random = np.random.default_rng(1)
    u = random.uniform(0.0, 1.0, (2000, 1))
    y = u**2 + 0.05 * random.standard_normal((2000, 1))
    for unit in (1.0, 1e-170):
        low, high = line_slopes(u, unit * y, unit * (u - 1.0 / 6.0))[0]
        assert (low, high) == pytest.approx((0.1, 1.9), abs=0.1)


def test_a_line_is_told_as_one_under_coloured_noise_that_grows():
    """At .1 %: of 200 lines with noise of pole 0.8, four times as great at one end as at the other, at most 3."""
    curves = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        u = random.uniform(0.0, 1.0, (400, 1))
        noise = (0.2 + 0.6 * u) * lfilter([1.0], [1.0, -0.8], random.standard_normal((400, 1)), axis=0)
        curves += bool((line_slopes(u, u + noise, u) != 1.0).any())
    assert curves <= 3


def test_two_levels_tell_nothing():
    u = netctrl.gbn(100, (0.0, 1.0), np.random.default_rng(1))
    assert line_slopes(u, u, u) is None
