"""DCQCN's loop against its nonlinear fluid in time, numerical differentiation, and what is published of it."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from dcqcn_fluid import Reds, _rates, growth

from netctrl.frequency.margins import margins
from netctrl.plants.ecn.dcqcn import (
    DcqcnSender,
    dcqcn_equilibrium,
    dcqcn_loop,
    dcqcn_polynomials,
    dcqcn_response,
    dcqcn_settles,
)

PACKET = 8e3  # 1000 bytes in bits, as in the papers
PAPER = DcqcnSender(40e6 / PACKET, 10e6 * 8.0 / PACKET, 50e-6, 55e-6, 55e-6, 1.0 / 256.0, 5.0)
CAPACITY = 40e9 / PACKET
SLOPE = 0.01 / 195.0
"""P_max = 1 % from 5 to 200 kB [1/packet]."""


def drawn(seed: int) -> tuple[DcqcnSender, float, float, float, float]:
    """Sender, N, C, slope and delay."""
    rng = np.random.default_rng(seed)
    sender = PAPER._replace(
        increase=10.0 ** rng.uniform(7.0, 8.0) / PACKET,
        counter=10.0 ** rng.uniform(6.0, 7.3) * 8.0 / PACKET,
        timer_s=10.0 ** rng.uniform(-4.5, -3.5),
        gain=2.0 ** -float(rng.integers(4, 9)),
        stages=float(rng.integers(1, 6)),
    )
    slope = 10.0 ** rng.uniform(-2.5, -1.0) / 10.0 ** rng.uniform(2.0, 3.0)
    return (
        sender,
        float(rng.integers(2, 40)),
        10.0 ** rng.uniform(10.0, 11.0) / PACKET,
        slope,
        10.0 ** rng.uniform(-5, -4),
    )


def line(sender: DcqcnSender, flows: float, capacity: float, slope: float, delay: float) -> tuple[Reds, list[float]]:
    """The fluid with a line through its equilibrium, and its rest (alpha, R_T, R_C, q)."""
    at = dcqcn_equilibrium(sender, capacity / flows)
    p = float(at.probability)
    queue = max(1000.0, 1.5 * p / slope)
    fluid = Reds(*sender, flows, capacity, queue - p / slope, slope, delay)
    return fluid, [float(at.alpha), float(at.target), capacity / flows, queue]


@pytest.mark.parametrize("seed", range(24))
def test_the_equilibrium_is_at_rest_in_the_fluid(seed: int) -> None:
    fluid, rest = line(*drawn(seed))
    moved = _rates(np.array(rest), rest[2], rest[3], fluid)
    scale = np.array([1.0, rest[1], rest[2], fluid.capacity]) / fluid.notification
    assert np.abs(moved / scale).max() < 1e-9


@pytest.mark.parametrize("seed", range(24))
def test_the_response_is_that_of_the_differentiated_fluid(seed: int) -> None:
    """Central differences of the nonlinear right sides, by present and by delayed arguments."""
    sender, flows, capacity, slope, delay = drawn(seed)
    fluid, rest = line(sender, flows, capacity, slope, delay)
    y = np.array(rest)
    part = 1e-5

    def by(i: int, *, past: bool) -> np.ndarray:
        ends = []
        for sign in (1.0, -1.0):
            now, before = y.copy(), y.copy()
            (before if past else now)[i] *= 1.0 + sign * part
            ends.append(_rates(now, before[2], before[3], fluid))
        return (ends[0] - ends[1]) / (2.0 * part * y[i])

    now = np.stack([by(i, past=False) for i in range(4)], axis=1)
    past = np.zeros((4, 4))
    past[:, 2], past[:, 3] = by(2, past=True), by(3, past=True)
    frequency = np.array([1e2, 1e3, 1e4, 1e5])
    found = dcqcn_response(dcqcn_polynomials(sender, capacity / flows), capacity, slope, delay, frequency)
    for w, value in zip(frequency, found, strict=True):
        turned = np.exp(-1j * w * delay)
        inner = 1j * w * np.eye(3) - now[:3, :3] - past[:3, :3] * turned
        rate = np.linalg.solve(inner, past[:3, 3] * turned)[2]
        assert value == pytest.approx(-flows * rate / (1j * w), rel=2e-5)


@pytest.mark.parametrize("seed", range(24))
def test_the_fluid_begins_to_swing_at_the_margin(seed: int) -> None:
    """At .97 of the critical slope a deviation decays, at 1.03 it grows."""
    sender, flows, capacity, slope, delay = drawn(seed)
    found = margins(dcqcn_loop(sender, flows, capacity, slope, delay))
    critical = slope * 10.0 ** (found.gain_margin_db / 20.0)
    period = 2.0 * pi / found.phase_crossover_rad_s
    below, above = (growth(*line(sender, flows, capacity, k * critical, delay), period) for k in (0.97, 1.03))
    assert below < 0.0 < above


def verdicts(delay: float) -> dict[float, bool]:
    flows = (1.0, 2.0, 4.0, 10.0, 20.0, 30.0, 64.0, 100.0)
    return {n: margins(dcqcn_loop(PAPER, n, CAPACITY, SLOPE, delay)).stable for n in flows}


def test_stability_is_not_monotonic_in_the_number_of_flows() -> None:
    """Zhu, Ghobadi, Misra, Padhye (CoNEXT 2016): at a delay of 85 us few and many flows are stable, ten are not. The
    line of the marks goes on above P_max there and here."""
    assert verdicts(85e-6) == {
        1.0: True,
        2.0: True,
        4.0: False,
        10.0: False,
        20.0: False,
        30.0: True,
        64.0: True,
        100.0: True,
    }
    assert all(verdicts(4e-6).values())
    assert not any(stable for n, stable in verdicts(100e-6).items() if n <= 20.0)


def test_rates_settle_at_a_constant_probability_where_loops_with_hardly_a_slope_are_stable() -> None:
    """Rates that were cut a long round trip ago swing by themselves; certified margins count these poles."""
    sender = DcqcnSender(7300.0, 1372.0, 76e-6, 65e-6, 23.5e-6, 0.425, 5.0)
    rate, delays = 36310.0, np.geomspace(2e-5, 3e-3, 12)
    frequency = np.geomspace(1.0, 1e6, 4000)
    polynomials = dcqcn_polynomials(sender, rate)
    found = [bool(dcqcn_settles(polynomials, delay, frequency)) for delay in delays]
    exact = [margins(dcqcn_loop(sender, 5.0, 5.0 * rate, 1e-9, delay)).stable for delay in delays]
    assert found == exact
    assert found[0]
    assert not found[-1]
