"""Limits of networks against netctrl's fluid engine, which has its own queues and windows."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows


def parking_lot(rates: tuple[float, ...], long: int, cross: int, rtt: float, alpha: float, beta: float) -> Scenario:
    links = tuple(
        Link(
            id=f"l{k}",
            source=f"n{k}",
            target=f"n{k + 1}",
            capacity=rate,
            delay="2ms",
            buffer="40MB",
            queue=Pi2Queue(alpha=alpha, beta=beta),
        )
        for k, rate in enumerate(rates)
    )
    path = tuple(link.id for link in links)
    groups = [BulkFlows(id="long", path=path, rtt=rtt, count=long, start=(0.0, 1.0))]
    groups += [BulkFlows(id=f"c{k}", path=(k,), rtt=0.8 * rtt, count=cross, start=(0.0, 1.0)) for k in path]
    return Scenario.of(name="lot", links=links, flows=tuple(groups), duration=120.0, packet_size=1500.0, interval=0.02)


def swings(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of the backlogs from 50 to 70 s and from 100 to 120 s, over what waits at the targets."""
    found = netctrl.simulate(scenario, engine="fluid")
    size = np.array([link.capacity * 0.015 / 8.0 for link in scenario.links])
    waits = found.backlog_bytes / size[:, None]
    return tuple(waits[:, (found.time_s > end - 20.0) & (found.time_s < end)].std(axis=1) for end in (70.0, 120.0))


@pytest.mark.parametrize("beta", [3.2, 0.32])
@pytest.mark.parametrize(
    ("rates", "long", "cross", "rtt"), [((100e6, 80e6), 10, 10, 0.1), ((1000e6, 700e6, 800e6), 60, 100, 0.06)]
)
def test_the_fluid_engine_settles_below_the_limit_and_oscillates_above(
    rates: tuple[float, ...], long: int, cross: int, rtt: float, beta: float
) -> None:
    margins = netctrl.certify_network(parking_lot(rates, long, cross, rtt, 0.16, beta)).certificate.margins
    assert margins is not None
    assert margins.gain_margin_db is not None
    limit = 10.0 ** (margins.gain_margin_db / 20.0)
    first, then = swings(parking_lot(rates, long, cross, rtt, 0.9 * limit * 0.16, 0.9 * limit * beta))
    assert np.all(then <= 0.7 * first + 1e-6)
    first, then = swings(parking_lot(rates, long, cross, rtt, 1.1 * limit * 0.16, 1.1 * limit * beta))
    assert np.all(then > 5e-3)
    assert np.all(then > 0.8 * first)
