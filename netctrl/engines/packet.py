"""The packet engine, which simulates each packet in compiled Python."""

from __future__ import annotations

from typing import Any

from netctrl.engines.case import Case, kind_of, link_rate_law
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.model.design.design import ConnetDesign, HftracDesign
from netctrl.scenario.fabric.design import design_gains
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.links import Links
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.result import Result
from netctrl.sim.packet.lacks import flows_lack, network_lacks


def _queues(case: Case, job: Job) -> Result:
    from netctrl.sim.packet.run import simulate_packets

    job.once(case.scenario)
    design = case.design if isinstance(case.design, HftracDesign | ConnetDesign) else None
    centre = kind_of(case.scenario) in TOPOLOGIES and case.design is not None
    gains = design_gains(case.design.law) if centre else None
    return simulate_packets(case.scenario, design=design, gains=gains, **job.told)


def _network(case: Case, job: Job) -> Result:
    from netctrl.sim.network.plan import link_plan
    from netctrl.sim.packet.network import simulate_network_packets

    plan = link_plan(case.scenario, link_rate_law(case))
    options: dict[str, Any] = {"n_jobs": job.n_jobs, "watch": job.watch, **job.told, **job.options}
    return simulate_network_packets(case.scenario, plan, job.numbers, **options)


PACKET = OwnEngine(
    "packet",
    {
        Links: Kind(_queues, lambda case: flows_lack(case.scenario)),
        Routed: Kind(_network, lambda case: network_lacks(case.scenario)),
        **dict.fromkeys(TOPOLOGIES, Kind(_queues)),
    },
)
