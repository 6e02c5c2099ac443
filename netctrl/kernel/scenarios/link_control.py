"""Which links of a scenario have their rates set, and how: by a fixed factor, or by a law once an interval."""

from __future__ import annotations

import numpy as np

from netctrl.kernel.scenarios.rater import LinkControl, RaterTask
from netctrl.scenario.network.decided import DecidedRates
from netctrl.scenario.network.plan import FlowLinks
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.scenario import Scenario


def static_rates(scenario: Scenario) -> dict[str, float]:
    """Rates of the links that send at a fixed factor of their capacities, by id [bit/s]."""
    policy = scenario.control
    if not isinstance(policy, StaticPacing):
        return {}
    chosen = [link for link in scenario.links if not policy.links or link.id in policy.links]
    return {link.id: policy.factor * link.capacity for link in chosen}


def rater_task(control: FlowLinks, scenario: Scenario, places: np.ndarray) -> RaterTask:
    """The task for a scenario's links; `places`, (L, 2), as in `KernelPlan`."""
    rows = {link.id: row for row, link in enumerate(scenario.links)}
    chosen = [rows[name] for name in control.plan.links]
    order = {name: number for number, name in enumerate(control.plan.links)}
    changes = [
        (each.at, order[each.link], each.capacity)
        for each in sorted(scenario.changes, key=lambda each: each.at)
        if each.capacity is not None and each.link in order
    ]
    law = control.plan.law
    decided = isinstance(law, DecidedRates)
    return RaterTask(
        control=LinkControl(
            *((None, law) if decided else (law, None)),
            law.nominal,
            law.ticks,
            control.interval,
            control.plan.paced,
            *control.draws[1:],
        ),
        capacity=np.array([scenario.links[row].capacity for row in chosen]),
        changes=np.array(changes, dtype=float).reshape(-1, 3),
        place=places[chosen],
        packet=scenario.packet_size,
    )
