"""Law of an HFTraC Design over the links of a scenario of flows, for engines with packets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.design.design import HftracDesign, read_design
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.policy import DesignPolicy, StaticPacing
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.network.track import Track
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.plan import RunDraws, link_plan

_MAX_ACTS = 2**28


class FlowLinks(NamedTuple):
    """N links of a scenario under a Design's law, over K intervals."""

    plan: LinkPlan
    place: np.ndarray
    """(N,) rows of the links among all links."""
    draws: RunDraws
    """No demands, and messages that all arrive in time."""
    interval: float
    """tau [s]."""
    steps: int
    """K."""


def flow_links(scenario: Scenario, design: HftracDesign | None) -> FlowLinks | None:
    """What sets the rates of a scenario's links from one interval to the next; None: nothing does.

    Parameters
    ----------
    scenario : Scenario
        Of links and flows.
    design : HftracDesign or None
        In place of the file that the scenario names.

    Raises
    ------
    InvalidValue
        A Design of another method, or for other links.
    FileError
        The Design file can't be read.
    """
    policy = scenario.control
    if isinstance(policy, Track):  # of flows' rates
        return None
    if isinstance(policy, StaticPacing):
        if design is not None:
            raise InvalidValue("design", "an HFTraC Design", 'none for a control of kind "static"')
        return None
    if design is None:
        if policy is None:
            return None
        design = _read(policy.file)
    policy = DesignPolicy(file="design") if policy is None else policy
    inputs, interval = design.inputs, design.law.interval_s
    steps = int(scenario.duration / interval * (1.0 + 1e-12))
    routed = Routed(graph=inputs.network)
    around = Scenario(name=scenario.name, network=routed, control=policy, duration=interval, interval=interval)
    plan = link_plan(around, design.law)
    place, N = _places(scenario, plan), len(plan.links)
    if steps * N > _MAX_ACTS:
        raise InvalidValue("duration", scenario.duration, f"a run in which links act at most {_MAX_ACTS:.0e} times")
    nothing = np.zeros((steps, 0)), np.zeros(N, dtype=np.int64), np.zeros((steps, 0), dtype=np.int64)
    return FlowLinks(plan, place, RunDraws(*nothing, np.ones((steps, N), dtype=bool)), interval, steps)


def _read(file: str) -> HftracDesign:
    design = read_design(file)
    if not isinstance(design, HftracDesign):
        raise InvalidValue("control.file", file, f"an HFTraC Design; this one is of method {design.method}")
    return design


def _places(scenario: Scenario, plan: LinkPlan) -> np.ndarray:
    """Rows of a scenario's links that a Design is for, in its order."""
    ours = {link.id: (row, link) for row, link in enumerate(scenario.links)}
    theirs = {link.id: link for link in plan.network.links}
    for name in plan.links:
        if name not in ours:
            raise InvalidValue("control", f"a Design with a link {name}", "one whose links are the scenario's, by id")
        for what in ("source", "target", "delay"):
            got, takes = getattr(theirs[name], what), getattr(ours[name][1], what)
            if got != takes:
                raise InvalidValue("control", f"a Design whose links.{name}.{what} is {got}", f"{takes}, as it is here")
    return np.array([ours[name][0] for name in plan.links])
