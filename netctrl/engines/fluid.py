"""The fluid engine, which computes rates instead of packets."""

from __future__ import annotations

from netctrl.engines.case import Case, link_rate_law
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.records import sender_name
from netctrl.model.design.design import LinkDesign
from netctrl.model.io.record_file import taken
from netctrl.scenario.links import Links
from netctrl.scenario.network.runs import tcp_of
from netctrl.scenario.result import Result
from netctrl.scenario.tcp_aqm.lacks import packet_only
from netctrl.sim.fluid.lacks import has_pacers, is_one_line, overflow_lack, sender_lack


def _queues_lack(case: Case) -> str | None:
    if case.scenario.under_demands:
        return _network_lacks(case)
    if has_pacers(case.scenario):
        return None
    alone = is_one_line(case.scenario)
    for group in case.scenario.flows:
        if not group.answered:
            return f"{group.kind} flows (flows.{group.id})"
        lack = None if alone else sender_lack(group)
        if lack is not None:
            return f"senders but {lack} (flows.{group.id} are {sender_name(group.sender)})"
    if isinstance(case.design, LinkDesign):
        return "link rates that a Design sets over flows"
    found = packet_only(case.scenario, DualPi2Queue, line=alone) or overflow_lack(case.scenario)
    return None if found is None else f"{found[1]} ({found[0]})"


def _queues_left(case: Case) -> bool:
    """Other senders than Reno and DualPI2 are mean fields, which leave more out, and rates that vary fill queues in
    bursts: packets come first."""
    if case.scenario.under_demands:
        return False
    varies = case.scenario.changes and has_pacers(case.scenario)
    if varies or any(link.trace is not None for link in case.scenario.links):
        return True
    other = any(group.sender != "reno" for group in case.scenario.flows) and not has_pacers(case.scenario)
    return other or any(isinstance(link.queue, DualPi2Queue) for link in case.scenario.links)


def _queues(case: Case, job: Job) -> Result:
    from netctrl.sim.fluid.run import simulate

    if case.scenario.under_demands:
        return _network(case, job)
    job.once(case.scenario)
    return simulate(case.scenario, **job.told)


def _network_lacks(case: Case) -> str | None:
    if tcp_of(case.scenario):
        return "demands that are TCP"
    if any(not isinstance(link.queue, DropTailQueue) for link in case.scenario.links):
        return "queues but droptail in a network of demands"
    return None


def _network(case: Case, job: Job) -> Result:
    from netctrl.sim.network.run import simulate_network

    options = taken(job, "runs", "first_run", "watch", "n_jobs") | job.told
    return simulate_network(case.scenario, link_rate_law(case), **options)


FLUID = OwnEngine("fluid", {Links: Kind(_queues, _queues_lack, _queues_left)})
