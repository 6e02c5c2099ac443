"""Links of a scenario whose rates a law sets once an interval."""

from __future__ import annotations

import numpy as np

from netctrl.kernel.scenarios.rater import LinkControl, RaterTask
from netctrl.scenario.network.decided import DecidedRates
from netctrl.scenario.network.plan import FlowLinks
from netctrl.scenario.scenario import Scenario


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
