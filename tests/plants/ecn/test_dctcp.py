"""DCTCP's limit cycle at a threshold: closed forms, a second integration of the fluid, and published rules."""

from __future__ import annotations

from cmath import phase
from math import pi, sqrt

import numpy as np
import pytest
from dctcp_fluid import cycle

from netctrl.plants.ecn.dctcp import (
    StepFluid,
    busy_threshold,
    described_cycle,
    fluid_cycle,
    marked_share,
    sawtooth_cycle,
)


@pytest.mark.parametrize("seed", range(24))
def test_the_fluid_swings_as_in_a_second_integration(seed: int) -> None:
    """Euler's method with 800 steps in R* and marks from a history: within .3 % of the swing, period within .2 %."""
    rng = np.random.default_rng(seed)
    b, kappa = float(np.exp(rng.uniform(np.log(2.6), np.log(400.0)))), 10.0 ** rng.uniform(-1.3, 0.3)
    gain, flows, rtt = 2.0 ** -float(rng.integers(2, 7)), float(rng.integers(1, 60)), 10.0 ** rng.uniform(-4.5, -2.0)
    product = b * flows
    highest, lowest, mean, period, lost = cycle(flows, rtt, product / rtt, kappa * product, gain, trips=1500, steps=800)
    found, swing = fluid_cycle(StepFluid(b, kappa, gain)), highest - lowest
    assert found.periodic
    ends = np.array([found.highest, found.lowest, found.mean]) * product
    assert ends == pytest.approx([highest, lowest, mean], abs=0.003 * swing)
    assert found.period * rtt == pytest.approx(period, rel=0.002)
    assert found.lost == pytest.approx(lost, abs=5e-4)


def plant(fluid: StepFluid, s: complex) -> complex:
    """From marks to the queue over C d, by central differences of the equations; the mark is delayed by R*."""
    b, g = fluid.product, fluid.gain
    W = b * fluid.trip
    p0 = sqrt(2.0 / W)
    rest = np.array([W, p0, fluid.threshold, p0])

    def slopes(y: np.ndarray) -> np.ndarray:
        w, alpha, x, p = y
        R = 1.0 + x
        return np.array([1.0 / R - 0.5 * w * alpha * p / R, g / R * (p - alpha), w / (b * R) - 1.0])

    assert np.abs(slopes(rest)).max() < 1e-12
    moves = [(slopes(rest + step) - slopes(rest - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    J = np.stack(moves, axis=1)
    return complex(np.linalg.solve(s * np.eye(3) - J[:, :3], J[:, 3])[2] * np.exp(-s * fluid.trip))


@pytest.mark.parametrize(("b", "kappa", "gain"), [(8.0, 0.3, 1 / 16), (3.0, 0.1, 1 / 4), (60.0, 1.0, 1 / 64)])
def test_the_described_cycle_balances_the_first_harmonic(b: float, kappa: float, gain: float) -> None:
    """Fourier's sums of 1{q > K} over a sine, through the linearised fluid, give the same sine and the share p0."""
    fluid = StepFluid(b, kappa, gain)
    found = described_cycle(fluid)
    X, middle = 0.5 * (found.highest - found.lowest), 0.5 * (found.highest + found.lowest)
    turns = 2.0 * pi * (np.arange(400_000) + 0.5) / 400_000
    marks = middle + X * np.sin(turns) > kappa
    assert marks.mean() == pytest.approx(marked_share(fluid), abs=1e-5)
    harmonic = 2.0 * np.mean(marks * np.sin(turns))
    answer = harmonic * plant(fluid, 2j * pi / found.period)
    assert phase(answer) == pytest.approx(0.0, abs=1e-6)  # marks lower the queue, 180 degrees late
    assert abs(answer) == pytest.approx(X, rel=1e-4)


@pytest.mark.parametrize(
    ("windows", "swing", "period"),
    [((6.0, 12.0), (0.90, 0.94), (0.95, 0.99)), ((12.0, 20.0), (0.79, 0.91), (0.91, 0.98))],
)
def test_the_described_cycle_is_a_prediction_for_windows_of_some_packets(windows, swing, period) -> None:
    """Swing and period over those of the fluid: measured ranges, beyond 20 packets it is off by more than 20 %."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        kappa = 10.0 ** rng.uniform(-0.6, 0.3)
        fluid = StepFluid(rng.uniform(*windows) / (1.0 + kappa), kappa)
        fluid_, described = fluid_cycle(fluid), described_cycle(fluid)
        assert swing[0] <= (described.highest - described.lowest) / (fluid_.highest - fluid_.lowest) <= swing[1]
        assert period[0] <= described.period / fluid_.period <= period[1]


@pytest.mark.parametrize(("b", "kappa"), [(200.0, 0.2), (2000.0, 0.5), (50_000.0, 0.1)])
def test_the_sawtooth_has_the_closed_form_of_2010(b: float, kappa: float) -> None:
    """A = sqrt(2 N (C d + K))/2 from K + N down, in sqrt(2 (C d + K)/N)/2 round trips (SIGCOMM 2010, (8) to (11))."""
    found = sawtooth_cycle(StepFluid(b, kappa))
    assert found.highest == kappa + 1.0 / b
    close = 2.0 / sqrt(b)
    assert (found.highest - found.lowest) * b == pytest.approx(0.5 * sqrt(2.0 * b * (1.0 + kappa)), rel=close)
    assert found.period == pytest.approx(0.5 * sqrt(2.0 * b * (1.0 + kappa)) * (1.0 + kappa), rel=close)


def test_the_threshold_that_keeps_the_link_busy_is_between_the_published_rules() -> None:
    """C d/7 (2010) and .17 C d (2011): .1664 at most, for windows of about 10 packets."""
    products = np.geomspace(2.5, 1000.0, 60)
    found = np.array([busy_threshold(float(b)) for b in products])
    assert found.max() == pytest.approx(0.1664, abs=1e-4)
    assert products[np.argmax(found)] == pytest.approx(9.4, abs=0.7)
    assert 1.0 / 7.0 < found.max() < 0.17
    for b, kappa in zip(products[::10], found[::10], strict=True):
        assert fluid_cycle(StepFluid(float(b), float(kappa) + 1e-5)).lowest > 0.0
        assert fluid_cycle(StepFluid(float(b), float(kappa) - 1e-4)).lowest == 0.0


def test_spare_packets_stay_in_the_queue() -> None:
    for b in (3.0, 10.0, 80.0):
        kappa = busy_threshold(b, 1.0 / 16.0, 1.0)
        assert fluid_cycle(StepFluid(b, kappa)).lowest * b == pytest.approx(1.0, abs=1e-3)


def test_slower_averages_need_less_and_faster_ones_more() -> None:
    quick, usual, slow = (busy_threshold(12.0, g) for g in (1 / 4, 1 / 16, 1 / 64))
    assert quick == pytest.approx(0.2599, abs=1e-4)
    assert slow < usual < quick


def test_windows_below_2_packets_are_marked_always() -> None:
    """A marked window rests at 2 packets: the queue is what makes 2 packets of each flow fill the link."""
    found = fluid_cycle(StepFluid(1.25, 0.2))
    assert (found.lowest, found.highest, found.period, found.marked) == pytest.approx((0.6, 0.6, 0.0, 1.0))
    assert busy_threshold(1.5) < 1e-5
