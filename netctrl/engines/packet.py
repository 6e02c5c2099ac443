"""The packet engine: packet by packet, in compiled Python."""

from __future__ import annotations

from netctrl.engines.case import Case, link_rate_law, tracking_plan
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.model.design.design import HftracDesign
from netctrl.scenario.access.plan import AccessLinkTracking
from netctrl.scenario.access.result import AccessLinkResult
from netctrl.scenario.access.scenario import AccessLinkScenario
from netctrl.scenario.bottleneck.result import BottleneckResult
from netctrl.scenario.bottleneck.scenario import BottleneckScenario
from netctrl.scenario.fabric.design import design_gains
from netctrl.scenario.fabric.result import FabricResult
from netctrl.scenario.fabric.scenario import FabricScenario
from netctrl.scenario.network.result import NetworkResult
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.scenario.tcp_aqm.scenario import Scenario
from netctrl.sim.packet.lacks import flows_lack, network_lacks

__all__ = ["PACKET"]


def _queues(case: Case, job: Job) -> SimulationResult:
    from netctrl.sim.packet.run import simulate_packets

    job.once(case.scenario)
    design = case.design if isinstance(case.design, HftracDesign) else None
    return simulate_packets(case.scenario, design=design, progress=job.progress, argv=job.argv, inputs=job.inputs)


def _network(case: Case, job: Job) -> NetworkResult:
    from netctrl.sim.network.plan import link_plan
    from netctrl.sim.packet.network import simulate_network_packets

    plan = link_plan(case.scenario, link_rate_law(case))
    return simulate_network_packets(
        case.scenario,
        plan,
        range(job.runs),
        n_jobs=job.n_jobs,
        progress=job.progress,
        argv=job.argv,
        inputs=job.inputs,
        **job.options,
    )


def _bottleneck(case: Case, job: Job) -> BottleneckResult:
    from netctrl.sim.packet.bottleneck import simulate_bottleneck_packets

    job.once(case.scenario)
    made = job.provenance(case.scenario, "numpy", "numba")
    return simulate_bottleneck_packets(case.scenario, case.law, made, progress=job.progress)


def _fabric(case: Case, job: Job) -> FabricResult:
    from netctrl.sim.fabric.run import simulate_fabric

    job.once(case.scenario)
    gains = None if case.design is None else design_gains(case.design.law)
    return simulate_fabric(case.scenario, gains, progress=job.progress, argv=job.argv, inputs=job.inputs)


def _access(case: Case, job: Job) -> AccessLinkTracking | AccessLinkResult:
    from netctrl.sim.access.run import simulate_access_link
    from netctrl.sim.access.track import track

    job.once(case.scenario)
    if case.design is None:
        return simulate_access_link(case.scenario, argv=job.argv)
    return track(case.scenario, tracking_plan(case), job.provenance(case.scenario, "numpy", "numba"))


PACKET = OwnEngine(
    "packet",
    {
        Scenario: Kind(_queues, lambda case: flows_lack(case.scenario)),
        NetworkScenario: Kind(_network, lambda case: network_lacks(case.scenario)),
        BottleneckScenario: Kind(_bottleneck),
        FabricScenario: Kind(_fabric),
        AccessLinkScenario: Kind(_access),
    },
)
