"""An access link as a plan for the kernel: its nodes in a row, hosts and ends; and its run.

A node is an HTB class of the hop's capacity over a `pfifo`, and netem holds a packet while it is being sent, as in
`netctrl.kernel.scenarios.planner`. One host has all traffic that enters at a hop.
"""

from __future__ import annotations

from typing import NamedTuple

from netctrl.kernel.access.program import access_program, warm_up
from netctrl.kernel.access.task import AccessDraws, AccessTask, law_task, periods_of, write_task
from netctrl.kernel.boot import run_plan, work_folder
from netctrl.kernel.build import build_guest, chosen_kernel
from netctrl.kernel.plan import PlanWriter
from netctrl.kernel.scenarios.wiring import Wiring
from netctrl.laws.disciplines import KernelQueue
from netctrl.linux.kernel import messages
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.access.periods import tracking_result
from netctrl.scenario.access.plan import AccessLinkPlan, AccessLinkTracking
from netctrl.scenario.access.result import AccessLinkResult, access_link_result
from netctrl.scenario.access.scenario import access_parts
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario

_AFTER_S = 1e-3  # the last measurement is at the end


class AccessRun(NamedTuple):
    """A run, ready for the kernel."""

    writer: PlanWriter
    task: AccessTask


def access_run(scenario: Scenario, plan: AccessLinkPlan | None) -> AccessRun:
    """Plan of an access link, under the law of its plan or with open regulators."""
    parts, writer = access_parts(scenario), PlanWriter()
    H, wires = parts.line.hops, Wiring(writer, parts.packet_size)
    queue = KernelQueue(discipline="pfifo", parameters={"limit": parts.line.limit - 1})  # one more is being sent
    for hop in range(H):
        link = Link(
            id=f"hop{hop}",
            source=f"node{hop}",
            target=f"node{hop + 1}",
            capacity=parts.line.capacity,
            delay=0.0,
            buffer=None,
            queue=queue,
        )
        wires.link(link, link.capacity)
    addresses = [wires.next_address() for _ in range(H)]
    ends = [wires.node(f"node{hop + 1}") for hop in range(H)]
    for address, end in zip(addresses, ends, strict=True):
        writer.request(end, messages.add_address(1, address), "give the end of a hop an address")
    for hop in range(H):
        wires.route(wires.node(f"node{hop}"), addresses[-1], wires.out[f"hop{hop}"].index)
        if hop < H - 1:
            wires.route(wires.node(f"node{hop}"), addresses[hop], wires.out[f"hop{hop}"].index)
    hosts = {}
    for hop in sorted({0, *(flow.hop for flow in parts.cross)}):
        hosts[hop] = host = wires.namespace()
        out, _ = wires.veth(host, wires.node(f"node{hop}"), f"the host of hop {hop}")
        writer.request(host, messages.add_address(1, wires.next_address()), "give a host an address")
        wires.keep_times(out)
        for address in {addresses[hop], addresses[-1]}:
            wires.route(host, address, out.index)
    writer.prepared(wires.namespace(), access_program())
    writer.run(scenario.duration + _AFTER_S, _AFTER_S)
    task = AccessTask(
        line=parts.line,
        premium=parts.premium,
        regulated=parts.regulated,
        cross=parts.cross,
        packet_size=parts.packet_size,
        interval=scenario.interval,
        periods=scenario.steps,
        law=law_task(plan),
        hosts=hosts,
        addresses=tuple(map(int, addresses)),
        ends=tuple(ends),
        queues=tuple(tuple(wires.out[f"hop{hop}"]) for hop in range(H)),
        wires=tuple(tuple(wires.arrivals[f"hop{hop}"]) for hop in range(H)),
    )
    return AccessRun(writer, task)


def run_access(
    scenario: Scenario, plan: AccessLinkPlan | None, draws: AccessDraws, provenance: Provenance
) -> AccessLinkTracking | AccessLinkResult:
    """Boot a kernel for an access link; without a plan regulators are open.

    Parameters
    ----------
    scenario : Scenario
        One that passes `netctrl.kernel.access.lacks.access_lacks`.
    plan : AccessLinkPlan, optional
        Without a schedule of gains.
    draws : AccessDraws
    provenance : Provenance

    Raises
    ------
    NetctrlError
        No kernel is built, or the run fails, as in `netctrl.kernel.boot.run_plan`.
    """
    kernel, guest, run = chosen_kernel(), build_guest(), access_run(scenario, plan)
    warm_up()
    with work_folder() as folder:
        write_task(run.task, draws, folder)
        run_plan(run.writer, kernel, guest, folder, seed=scenario.seed)
        found = periods_of(folder)
    simulator = f"kernel-{kernel.version}"
    if plan is None:
        return access_link_result(scenario, found.samples, provenance, simulator)
    return tracking_result(scenario, plan, found, provenance, simulator)
