"""Onset of oscillation in random parking lots: the generalised Nyquist criterion against a nonlinear fluid."""

from __future__ import annotations

import numpy as np
import pytest
from network_fluid import network_growth
from parking_lots import network_of, random_parking_lot

from netctrl.certificates.networks.margins import covered, limits_of, scanned
from netctrl.certificates.pi_laws import pi2
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.plants.queue_networks.network import QueueNetwork
from netctrl.plants.queues.window_response import CUBIC, RENO

FAST = (1, 3, 9, 11, 14, 23)


def grows(
    network: QueueNetwork, factor: float, offsets: np.ndarray | None = None, periods: float = 40.0
) -> tuple[float, float]:
    """Growth of deviations in the fluid a little below and above the limit [1/period]."""
    equilibrium = network_equilibrium(network)
    loop = covered(NetworkLoop(equilibrium))
    limits = limits_of(scanned(loop))
    at = limits.lower if limits.unstable else limits.upper
    period = 2.0 * np.pi * loop.epoch / at.angle
    gains = [np.full(len(network.links), at.gain * each) for each in (1.0 / factor, factor)]
    below, above = (network_growth(equilibrium, each, periods, period, offsets) for each in gains)
    return below, above


@pytest.mark.slow
@pytest.mark.parametrize("seed", [pytest.param(n, marks=[] if n in FAST else [pytest.mark.slow]) for n in range(24)])
def test_the_fluid_starts_to_oscillate_within_3_percent(seed: int) -> None:
    below, above = grows(random_parking_lot(seed), 1.03)
    assert below < 0.0 < above


def cubic_lot(seed: int) -> QueueNetwork:
    """Two links under PI2 whose flows are Cubic's: windows of 10 to 200 packets, on the curve or Reno-friendly."""
    rng = np.random.default_rng(seed)
    alpha = 10.0 ** rng.uniform(-2.3, -1.5)
    law = pi2(target_s=round(float(rng.uniform(0.015, 0.05)), 4), alpha=alpha, beta=alpha * rng.uniform(20.0, 60.0))
    rates = 10.0 ** rng.uniform(7.5, 8.5, 2)
    trips, flows = rng.uniform(0.03, 0.12, 3), rng.integers(6, 15, 3)
    paths = ([0, 1], [0], [1])
    groups = [(int(n), float(tau), path, CUBIC) for n, tau, path in zip(flows, trips, paths, strict=True)]
    rates[1] = rates[0] * rng.uniform(0.8, 1.3)
    return network_of([law, law], list(rates), groups, 0.003)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[] if n == 0 else [pytest.mark.slow]) for n in (0, 1, 2, 3, 4, 5, 7, 9)]
)
def test_populations_of_cubic_flows_start_to_oscillate_within_3_percent(seed: int) -> None:
    below, above = grows(cubic_lot(seed), 1.03, periods=24.0)
    assert below < 0.0 < above


def test_laws_may_act_at_any_instants() -> None:
    network = network_of(
        [pi2(), pi2()], [50e6, 60e6], [(6, 0.04, [0, 1], RENO), (8, 0.03, [0], RENO), (9, 0.05, [1], RENO)], 0.003
    )
    for offset in (0.25, 0.5):
        below, above = grows(network, 1.03, np.array([0.0, offset]))
        assert below < 0.0 < above


def test_intervals_that_differ_are_close_without_their_aliases() -> None:
    laws = [pi2(), pi2(tupdate_s=0.032, alpha=0.08)]
    groups = [(10, 0.05, [0, 1], RENO), (8, 0.05, [0], RENO), (12, 0.06, [1], RENO)]
    below, above = grows(network_of(laws, [20e6, 30e6], groups, 0.003), 1.03)
    assert below < 0.0 < above
