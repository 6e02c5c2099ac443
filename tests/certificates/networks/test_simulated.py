"""Limits of networks against netctrl's fluid engine, which has its own queues and windows."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from places import EXPERIMENTS

import netctrl
from netctrl.scenario.scenario import Scenario


def swings(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of the backlogs from 50 to 70 s and from 100 to 120 s, over what waits at the targets."""
    found = netctrl.simulate(scenario, engine="fluid")
    size = np.array([link.capacity * 0.015 / 8.0 for link in scenario.links])
    waits = found.series["backlog"] / size[:, None]
    return tuple(waits[:, (found.time_s > end - 20.0) & (found.time_s < end)].std(axis=1) for end in (70.0, 120.0))


@pytest.mark.slow
@pytest.mark.parametrize("beta", [3.2, 0.32])
@pytest.mark.parametrize(
    ("rates", "long", "cross", "rtt"), [((100e6, 80e6), 10, 10, 0.1), ((1000e6, 700e6, 800e6), 60, 100, 0.06)]
)
def test_the_fluid_engine_settles_below_the_limit_and_oscillates_above(
    rates: tuple[float, ...], long: int, cross: int, rtt: float, beta: float, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    bottlenecks = importlib.import_module("engines.bottlenecks")
    lot = bottlenecks.Lot(rates, long, cross, rtt, beta / 0.16)
    margins = netctrl.certify_network(bottlenecks.scenario(lot, 0.16)).certificate.margins
    limit = 10.0 ** (margins.gain_margin_db / 20.0)
    first, then = swings(bottlenecks.scenario(lot, 0.9 * limit * 0.16))
    assert np.all(then <= 0.7 * first + 1e-6)
    first, then = swings(bottlenecks.scenario(lot, 1.1 * limit * 0.16))
    assert np.all(then > 5e-3)
    assert np.all(then > 0.8 * first)
