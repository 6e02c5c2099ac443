"""DCQCN's loop over cells: bounds against equilibria and the closed loop at points."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.certificates.ecn.dcqcn import dcqcn
from netctrl.plants.ecn.dcqcn import dcqcn_equilibrium, dcqcn_polynomials
from netctrl.plants.ecn.dcqcn_box import probability_slope

PACKET = 1000.0
UNIT = 55e-6


def closed(arriving: bool, u: np.ndarray) -> complex:
    """The function at a point (angle, gain, phase, ln N, ln C, ln tau), from the loop's polynomials."""
    law = dcqcn(arriving=arriving)
    sender, (N, C, tau) = law.sender(PACKET), np.exp(u[3:])
    p = float(dcqcn_equilibrium(sender, C / N).probability)
    delay = tau + (law.queue_bytes(p) / (C * PACKET) if arriving else 0.0)
    s = 1j * u[0] / UNIT
    plain, echo, moved = (np.polyval(np.array(each, dtype=float), s) for each in dcqcn_polynomials(sender, C / N))
    turned = np.exp(-s * delay)
    return s * (plain + echo * turned) - u[1] * np.exp(-1j * u[2]) * law.slope * PACKET * C * moved * turned


@pytest.mark.parametrize("arriving", [False, True])
@pytest.mark.parametrize("width", [1e-3, 0.02, 0.05])
def test_discs_contain_the_closed_loop(arriving: bool, width: float) -> None:
    rng, k = np.random.default_rng(3), 150
    low = np.array([-4.0, 0.5, -0.3, np.log(2.0), np.log(2.5e6), np.log(5e-6)])
    high = np.array([1.0, 2.0, 0.3, np.log(12.0), np.log(5e6), np.log(8e-5)])
    centre = rng.uniform(low, high, (k, 6))
    centre[:, 0] = np.exp(centre[:, 0])
    half = width * rng.uniform(0.2, 1.0, (k, 6))
    half[:, 0] *= centre[:, 0]
    half[:, 1:3] = 0.0
    values, parts = dcqcn(arriving=arriving).over(PACKET).disc(centre, half)
    radius = parts.sum(axis=1)
    assert np.isfinite(radius).all()
    corners = centre + half * rng.choice([-1.0, 1.0], half.shape)
    off = np.abs(np.array([closed(arriving, u) for u in corners]) - values)
    assert np.all(off <= radius)
    assert (off / radius).max() > 0.5


@pytest.mark.slow
def test_ranges_of_gain_and_phase_are_bounded_by_their_worst_part() -> None:
    loop = dcqcn().over(PACKET)
    for column, ends in ((1, (0.5, 2.0)), (2, (-0.5, 0.5))):
        for angle in (0.05, 0.5, 2.0):
            centre, half = np.array([[angle, 1.0, 0.0, np.log(5.0), np.log(5e6), np.log(2e-5)]]), np.zeros((1, 6))
            centre[0, column], half[0, column] = 0.5 * sum(ends), 0.5 * (ends[1] - ends[0])
            values, parts = loop.disc(centre, half)
            exact = []
            for each in np.linspace(*ends, 101):
                point = centre[0].copy()
                point[column] = each
                exact.append(abs(closed(False, point)))
            least = abs(values[0]) - parts.sum()
            assert 0.5 * min(exact) < least <= min(exact) * (1.0 + 1e-9)


def test_the_probability_s_slope_is_that_of_the_equilibrium_and_holds_near_it() -> None:
    sender = dcqcn().sender(PACKET)
    ln_R = np.log(5e6 / np.array([1.0, 2.0, 5.0, 10.0, 30.0]))

    def ln_p(at: np.ndarray) -> np.ndarray:
        return np.log(dcqcn_equilibrium(sender, np.exp(at)).probability)

    exact = -(ln_p(ln_R + 1e-4) - ln_p(ln_R - 1e-4)) / 2e-4
    assert probability_slope(sender, ln_p(ln_R), ln_R, np.zeros(5)) == pytest.approx(exact, rel=5e-3)
    bound = probability_slope(sender, ln_p(ln_R), ln_R, np.full(5, 0.1))
    for move in (-0.1, 0.1):
        assert np.all(np.abs(ln_p(ln_R + move) - ln_p(ln_R)) <= 0.1 * bound)
    assert np.all(bound < 1.4 * exact)


@pytest.mark.slow
def test_beyond_its_last_frequency_the_function_has_no_zero() -> None:
    loop = dcqcn().over(PACKET)
    last = loop.beyond((2.0, 10.0), (4e6, 5e6), 3.0)
    assert last < 1e6
    for N in (2.0, 10.0):
        for C in (4e6, 5e6):
            for omega in np.geomspace(last, 1e3 * last, 200):
                u = np.array([omega * UNIT, 0.0, 0.0, np.log(N), np.log(C), np.log(2e-5)])
                apart = closed(False, u)
                u[1] = 3.0
                assert abs(closed(False, u) - apart) < abs(apart)
