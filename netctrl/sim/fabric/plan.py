"""A data centre's scenario for exported programs: the same flows, paths and law as in netctrl's simulator."""

from __future__ import annotations

import numpy as np

from netctrl.scenario.fabric.plan import FabricPlan, PlannedFlows, PlannedPorts
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fabric.problem import fabric_problem
from netctrl.sim.fabric.state import FLOW, PORT

__all__ = ["fabric_plan", "run_table"]

_FLOW_TIMEOUT = 1
"""Entry of a problem's `rule`."""


def fabric_plan(scenario: Scenario, gains: np.ndarray | None = None) -> FabricPlan:
    """Routes and numbers of a run of `netctrl.sim.fabric.run.simulate_fabric`.

    Raises
    ------
    InvalidValue
        As in `netctrl.sim.fabric.problem`.
    """
    ready = fabric_problem(scenario, gains)
    net, drawn, flow = ready.fabric, ready.flows, ready.state.flow
    return FabricPlan(
        ports=PlannedPorts(
            hosts=net.hosts,
            nodes=int(net.source.max()) + 1,
            names=net.names,
            source=net.source,
            target=net.target,
            rate=net.rate,
            delay=net.delay,
            mark_low=ready.state.port[:, PORT["mark_low"]].copy(),
            mark_high=ready.state.port[:, PORT["mark_high"]].copy(),
        ),
        flows=PlannedFlows(
            source=drawn.source,
            target=drawn.target,
            size=drawn.size,
            start=drawn.start,
            incast=drawn.incast,
            kind=flow[:, FLOW["path"]].copy(),
            there=ready.state.route[:, 0],
            back=ready.state.route[:, 1],
            ideal=ready.ideal,
        ),
        law=ready.law,
        parameters=ready.values,
        paths=ready.paths,
        tables=ready.hosts.tables,
        lines=ready.hosts.lines,
        windows=ready.hosts.windows,
        memory=ready.state.memory.shape[1],
        max_marking=ready.max_marking,
        notification=ready.hosts.notification,
        payload=ready.hosts.payload,
        overhead=ready.hosts.overhead,
        ack=ready.hosts.ack,
        flow_timeout=int(ready.rule[_FLOW_TIMEOUT]),
        retransmission_timeout=ready.hosts.timeout,
        interval=ready.interval,
        bin=ready.hosts.bin,
        end=ready.end,
    )


def run_table(scenario: Scenario, plan: FabricPlan) -> bytes:
    """Flows of a run as 64-bit integers, little-endian: their number, then a row each.

    A row has source, target, size, start, kind of path, place among the watched flows or −1, ports of the forward and
    return path.
    """
    flows = plan.flows
    watched, watch = scenario.watch.flows, np.full(len(flows.size), -1, dtype=np.int64)
    watch[list(watched)] = np.arange(len(watched))
    columns = (flows.source, flows.target, flows.size, flows.start, flows.kind, watch)
    rows = np.column_stack([*columns, flows.there, flows.back]).astype("<i8")
    return np.array([len(rows)], dtype="<i8").tobytes() + rows.tobytes()
