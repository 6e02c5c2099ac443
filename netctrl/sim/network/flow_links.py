"""Law of an HFTraC or MPC Design over the links of a scenario of flows, for engines with packets."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.design.design import LinkDesign, MpcDesign, read_design
from netctrl.scenario.builders import routed
from netctrl.scenario.network.decided import decided_links
from netctrl.scenario.network.plan import FlowLinks, LinkPlan, RunDraws
from netctrl.scenario.network.policy import DesignPolicy, Fifo, StaticPacing
from netctrl.scenario.network.track import Track
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.plan import link_plan

_MAX_ACTS = 2**28


def flow_links(scenario: Scenario, design: LinkDesign | None) -> FlowLinks | None:
    """What sets the rates of a scenario's links from one interval to the next; None: nothing does.

    Parameters
    ----------
    scenario : Scenario
        Of links and flows.
    design : HftracDesign, MpcDesign or None
        In place of the file that the scenario names.

    Raises
    ------
    InvalidValue
        A Design of another method, or for other links.
    FileError
        The Design file can't be read.
    """
    policy = scenario.control
    if isinstance(policy, Track | Fifo):  # of flows' rates, or none
        return None
    if isinstance(policy, StaticPacing):
        if design is not None:
            raise InvalidValue("design", f"a Design of {design.method}", 'none for a control of kind "static"')
        return None
    if design is None:
        if policy is None:
            return None
        if not isinstance(policy, DesignPolicy):
            takes = "static, design or track, but with netctrl.simulate, which makes a policy's law"
            raise InvalidValue("control", policy.__struct_config__.tag, takes)
        design = _read(policy.file)
    policy = DesignPolicy(file="design") if policy is None else policy
    if isinstance(design, MpcDesign):
        return decided_links(scenario, design.law, policy)
    inputs, interval = design.inputs, design.law.interval_s
    steps = int(scenario.duration / interval * (1.0 + 1e-12))
    around = routed(inputs.network, control=policy, duration=interval, warmup=0.0, interval=interval)
    plan = link_plan(around, design.law)
    place, N = _places(scenario, plan), len(plan.links)
    if steps * N > _MAX_ACTS:
        raise InvalidValue("duration", scenario.duration, f"a run in which links act at most {_MAX_ACTS:.0e} times")
    nothing = np.zeros((steps, 0)), np.zeros(N, dtype=np.int64), np.zeros((steps, 0), dtype=np.int64)
    return FlowLinks(plan, place, RunDraws(*nothing, np.ones((steps, N), dtype=bool)), interval, steps)


def _read(file: str) -> LinkDesign:
    design = read_design(file)
    if not isinstance(design, LinkDesign):
        raise InvalidValue("control.file", file, f"an HFTraC or MPC Design; this one is of method {design.method}")
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
