"""Which links of a scenario have their rates set, and how: by a fixed factor, or by a law once an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.kernel.scenarios.rater import RaterTask
from netctrl.laws.link_rate.distributed_step import LinkRates
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.scenario import Scenario


class LinkControl(NamedTuple):
    """Law of N links over K intervals, with its messages."""

    law: LinkRates
    links: Sequence[str]
    """(N,) ids of the links in the scenario."""
    interval_s: float
    paced: np.ndarray
    """(N,) whether a link sends at the law's rate."""
    phase: np.ndarray
    """(N,) tick of the interval at which each link acts."""
    late: np.ndarray
    """(K, messages) delay of each message in ticks; -1: lost."""
    received: np.ndarray
    """(K, N) whether a central command arrives."""

    @property
    def set_links(self) -> frozenset[str]:
        """Ids of the links whose rates are set."""
        return frozenset(name for name, paced in zip(self.links, self.paced, strict=True) if paced)


def static_rates(scenario: Scenario) -> dict[str, float]:
    """Rates of the links that send at a fixed factor of their capacities, by id [bit/s]."""
    policy = scenario.control
    if not isinstance(policy, StaticPacing):
        return {}
    chosen = [link for link in scenario.links if not policy.links or link.id in policy.links]
    return {link.id: policy.factor * link.capacity for link in chosen}


def rater_task(control: LinkControl, scenario: Scenario, places: np.ndarray) -> RaterTask:
    """The task for a scenario's links; `places`, (L, 2), as in `KernelPlan`."""
    rows = {link.id: row for row, link in enumerate(scenario.links)}
    chosen = [rows[name] for name in control.links]
    order = {name: number for number, name in enumerate(control.links)}
    changes = [
        (each.at, order[each.link], each.capacity)
        for each in sorted(scenario.changes, key=lambda each: each.at)
        if each.capacity is not None and each.link in order
    ]
    return RaterTask(
        law=control.law,
        interval_s=control.interval_s,
        capacity=np.array([scenario.links[row].capacity for row in chosen]),
        changes=np.array(changes, dtype=float).reshape(-1, 3),
        paced=control.paced,
        place=places[chosen],
        packet=scenario.packet_size,
        phase=control.phase,
        late=control.late,
        received=control.received,
    )
