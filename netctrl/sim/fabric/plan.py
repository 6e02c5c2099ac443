"""A data centre's scenario for exported programs: the same flows, paths and law as in netctrl's simulator."""

from __future__ import annotations

import numpy as np

from netctrl.scenario.fabric.plan import FabricPlan, PlannedFlows, PlannedPorts
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fabric.problem import fabric_problem
from netctrl.sim.packet.state import META


def fabric_plan(scenario: Scenario, gains: np.ndarray | None = None) -> FabricPlan:
    """Routes and numbers of a run of `netctrl.sim.fabric.run.simulate_fabric`.

    Raises
    ------
    InvalidValue
        As in `netctrl.sim.fabric.problem`.
    """
    ready = fabric_problem(scenario, gains)
    net, drawn, senders = ready.fabric, ready.flows, ready.senders
    return FabricPlan(
        ports=PlannedPorts(
            hosts=net.hosts,
            nodes=int(net.source.max()) + 1,
            names=net.names,
            source=net.source,
            target=net.target,
            rate=net.rate,
            delay=net.delay,
            mark_low=ready.marks[0],
            mark_high=ready.marks[1],
        ),
        flows=PlannedFlows(
            source=drawn.source,
            target=drawn.target,
            size=drawn.size,
            start=drawn.start,
            flow=drawn.flow,
            kind=ready.kind,
            there=ready.routes[:, 0],
            back=ready.routes[:, 1],
            ideal=ready.ideal,
        ),
        law=senders.law,
        parameters=senders.values,
        paths=senders.paths,
        tables=senders.tables,
        lines=senders.lines,
        windows=senders.windows,
        memory=senders.memory,
        max_marking=0.0 if senders.marking is None else senders.marking.most,
        notification=senders.notification,
        payload=senders.payload,
        overhead=senders.overhead,
        ack=senders.ack,
        flow_timeout=senders.flow_timeout,
        retransmission_timeout=senders.timeout,
        interval=ready.packets.interval,
        bin=int(ready.packets.state.meta[META["bin"]]),
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
