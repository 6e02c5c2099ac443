"""The packet engine, which simulates each packet in compiled Python."""

from __future__ import annotations

from typing import Any

from netctrl.engines.case import Case, kind_of, link_rate_law
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.model.design.design import ConnetDesign, LinkDesign
from netctrl.scenario.fabric.design import design_gains
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.links import Links
from netctrl.scenario.result import Result
from netctrl.sim.packet.lacks import flows_lack, network_lacks


def _queues(case: Case, job: Job) -> Result:
    from netctrl.sim.packet.run import simulate_packets

    if case.scenario.under_demands:
        return _network(case, job)
    job.once(case.scenario)
    design = case.design if isinstance(case.design, LinkDesign | ConnetDesign) else None
    centre = kind_of(case.scenario) in TOPOLOGIES and case.design is not None
    gains = design_gains(case.design.law) if centre else None
    return simulate_packets(case.scenario, design=design, gains=gains, **job.told)


def _network(case: Case, job: Job) -> Result:
    from netctrl.sim.network.plan import link_plan
    from netctrl.sim.packet.network import simulate_network_packets

    plan = link_plan(case.scenario, link_rate_law(case), sampled_delays=bool(job.options.get("sampled_delays")))
    options: dict[str, Any] = {"n_jobs": job.n_jobs, "watch": job.watch, **job.told, **job.options}
    return simulate_network_packets(case.scenario, plan, job.numbers, **options)


def _lacks(case: Case) -> str | None:
    return (network_lacks if case.scenario.under_demands else flows_lack)(case.scenario)


PACKET = OwnEngine("packet", {Links: Kind(_queues, _lacks), **dict.fromkeys(TOPOLOGIES, Kind(_queues))})
