"""The kernel engine: the real Linux kernel in virtual time, without privilege."""

from __future__ import annotations

from netctrl.engines.case import Case
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.errors import InvalidValue
from netctrl.kernel.lacks import machine_lacks, scenario_lacks
from netctrl.model.design.design import HftracDesign
from netctrl.scenario.bottleneck.line import Bottleneck
from netctrl.scenario.bottleneck.network import bottleneck_network
from netctrl.scenario.bottleneck.result import BottleneckResult
from netctrl.scenario.links import Links
from netctrl.scenario.tcp_aqm.result import SimulationResult

__all__ = ["KERNEL"]


def _queues(case: Case, job: Job) -> SimulationResult:
    from netctrl.kernel.run import run_scenario
    from netctrl.sim.tcp_aqm.traffic import draw_flows

    job.once(case.scenario)
    made = job.provenance(case.scenario, "numpy")
    result = run_scenario(case.scenario, draw_flows(case.scenario, merged=False), made)
    if job.progress is not None:
        job.progress(1.0)
    return result


def _queues_lack(case: Case) -> str | None:
    if isinstance(case.design, HftracDesign):
        return "link rates that a Design sets over flows"
    return scenario_lacks(case.scenario) or machine_lacks()


def _bottleneck(case: Case, job: Job) -> BottleneckResult:
    from netctrl.kernel.run import run_bottleneck

    job.once(case.scenario)
    result = run_bottleneck(case.scenario, case.law, job.provenance(case.scenario, "numpy"))
    if job.progress is not None:
        job.progress(1.0)
    return result


def _bottleneck_lacks(case: Case) -> str | None:
    try:
        network = bottleneck_network(case.scenario, case.law)
    except InvalidValue:  # for flows that a law paces the run needs one, and says so
        return machine_lacks()
    return scenario_lacks(network) or machine_lacks()


KERNEL = OwnEngine(
    "kernel", {Links: Kind(_queues, _queues_lack), Bottleneck: Kind(_bottleneck, _bottleneck_lacks)}, auto=False
)
