"""The linux engine: this machine's kernel in real time, in temporary namespaces."""

from __future__ import annotations

from netctrl.engines.case import Case
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.linux.testbed.lacks import machine_lacks, scenario_lacks
from netctrl.model.design.design import HftracDesign
from netctrl.scenario.links import Links
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

__all__ = ["LINUX", "testbed_text"]


def _queues(case: Case, job: Job) -> Result:
    from netctrl.linux.testbed.run_scenario import run_scenario
    from netctrl.linux.testbed.scenario import plan_scenario
    from netctrl.sim.tcp_aqm.traffic import draw_flows

    job.once(case.scenario)
    plan = plan_scenario(case.scenario, draw_flows(case.scenario, merged=False))
    return run_scenario(plan, job.provenance(case.scenario, "numpy"), job.progress)


def _queues_lack(case: Case) -> str | None:
    if isinstance(case.design, HftracDesign):
        return "link rates that a Design sets over flows"
    return scenario_lacks(case.scenario) or machine_lacks()


def testbed_text(scenario: Scenario) -> str:
    """Description of the testbed and traffic for a scenario of links and flows; needs no privilege."""
    from netctrl.linux.testbed.scenario import plan_scenario, plan_text
    from netctrl.sim.tcp_aqm.traffic import draw_flows

    return plan_text(plan_scenario(scenario, draw_flows(scenario, merged=False)))


LINUX = OwnEngine("linux", {Links: Kind(_queues, _queues_lack)}, auto=False)
