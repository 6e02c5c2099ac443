"""The fluid: rates instead of packets."""

from __future__ import annotations

from netctrl.engines.case import Case, link_rate_law
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.laws.rate.records import sender_name
from netctrl.model.design.design import HftracDesign
from netctrl.scenario.bottleneck.result import BottleneckResult
from netctrl.scenario.bottleneck.scenario import BottleneckScenario
from netctrl.scenario.network.result import NetworkResult
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.tcp_aqm.flows import UdpFlows
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.scenario.tcp_aqm.scenario import Scenario, packet_only

__all__ = ["FLUID"]


def _queues_lack(case: Case) -> str | None:
    for group in case.scenario.flows:
        if isinstance(group, UdpFlows):
            return f"udp flows (flows.{group.id})"
        if group.sender != "reno":
            return f"senders but reno (flows.{group.id} are {sender_name(group.sender)})"
    if isinstance(case.design, HftracDesign):
        return "link rates that a Design sets over flows"
    found = packet_only(case.scenario)
    return None if found is None else f"{found[1]} ({found[0]})"


def _queues(case: Case, job: Job) -> SimulationResult:
    from netctrl.sim.tcp_aqm.run import simulate

    job.once(case.scenario)
    return simulate(case.scenario, progress=job.progress, argv=job.argv, inputs=job.inputs)


def _network_lacks(case: Case) -> str | None:
    if case.scenario.tcp:
        return "demands that are TCP"
    tag = case.scenario.queue.__struct_config__.tag
    return None if tag == "droptail" else "queues but droptail in a network of demands"


def _network(case: Case, job: Job) -> NetworkResult:
    from netctrl.sim.network.run import simulate_network

    return simulate_network(
        case.scenario,
        link_rate_law(case),
        runs=job.runs,
        n_jobs=job.n_jobs,
        progress=job.progress,
        argv=job.argv,
        inputs=job.inputs,
    )


def _bottleneck_lacks(case: Case) -> str | None:
    tag = case.scenario.queue.__struct_config__.tag
    return None if tag in ("droptail", "codel") else f"queues of kind {tag} at a bottleneck"


def _bottleneck(case: Case, job: Job) -> BottleneckResult:
    from netctrl.sim.bottleneck.scenario import run_bottleneck

    job.once(case.scenario)
    return run_bottleneck(case.scenario, case.law, job.provenance(case.scenario, "numpy", "numba"))


FLUID = OwnEngine(
    "fluid",
    {
        Scenario: Kind(_queues, _queues_lack),
        NetworkScenario: Kind(_network, _network_lacks),
        BottleneckScenario: Kind(_bottleneck, _bottleneck_lacks),
    },
)
