"""Rates of groups of demands in a scenario of links, drawn or given."""

from __future__ import annotations

from math import ceil

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model import network
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand
from netctrl.sim.network.demands import demand_rates


class DemandDraws:
    """Draws of a scenario's groups in turn; flow k of all draws what run k of a network of one demand draws."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._flows = 0

    def lasts(self, group: Flow) -> float:
        """Duration of its intervals [s]."""
        return group.offers.lasts(self._scenario.interval)

    def intervals(self, group: Flow) -> int:
        """Number of its intervals within the scenario's duration."""
        return ceil(self._scenario.duration / self.lasts(group) * (1.0 - 1e-12))

    def rates(self, group: Flow) -> np.ndarray:
        """Rates of the next group's flows, (intervals, count) [bit/s]."""
        steps = self.intervals(group)
        runs = range(self._flows, self._flows + group.count)
        self._flows += group.count
        seed = self._scenario.seed
        return (
            _drawn(group, self.lasts(group), steps, runs, seed) if group.offers.rates is None else _given(group, steps)
        )


def draw_demands(scenario: Scenario) -> dict[str, np.ndarray]:
    """Rates of each group of demands in a scenario of links, by its id, (intervals, count) [bit/s]."""
    draws = DemandDraws(scenario)
    return {group.id: draws.rates(group) for group in scenario.flows if isinstance(group.offers, Demand)}


def _given(group: Flow, steps: int) -> np.ndarray:
    """Around and around."""
    given = group.offers.rates.rate_bit_per_s
    return np.broadcast_to(given[np.arange(steps) % len(given)], (steps, group.count))


def _drawn(group: Flow, interval: float, steps: int, runs: range, seed: int) -> np.ndarray:
    offers = group.offers
    demand = network.Demand(id=group.id, source="here", target="there", mean=offers.mean or 0.0, std=offers.std)
    try:
        rates = demand_rates(offers.spread, (demand,), runs, interval=interval, steps=steps, seed=seed)
        return rates(0, steps)[:, 0]
    except InvalidValue as error:
        where = error.argument.replace("traffic", "spread")
        raise InvalidValue(f"flows.{group.id}.{where}", error.got, error.takes) from None
