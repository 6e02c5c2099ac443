"""Run a data centre's program from `netctrl.ns3.fabric.render`, and read its results."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Unpack

import numpy as np

from netctrl.model.design.design import Provenance
from netctrl.ns3.program import Ns3, Running, read_table, run_seed, whole
from netctrl.scenario.fabric.plan import FabricPlan
from netctrl.scenario.fabric.result import ACKNOWLEDGEMENTS, HISTOGRAM_BINS, fabric_result
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

_PORTS = (
    "sent", "sent_bytes", "came", "came_bytes", "waiting", "waiting_bytes", "area", "most", "drops", "dropped_bytes",
    "marked",
)  # fmt: skip
_HOSTS = (
    "sent", "received", "sent_bytes", "received_bytes", "acks", "again", "events", "waiting", "most_under_way",
)  # fmt: skip


def run_fabric(
    folder: Path, scenario: Scenario, plan: FabricPlan, *, ns3: Ns3, provenance: Provenance, **running: Unpack[Running]
) -> Result:
    """Run the compiled program in `folder`, whose table of flows is in the folder.

    Parameters
    ----------
    folder : Path
    scenario, plan
        Arguments of the rendering.
    ns3, provenance, **running
        As in `netctrl.ns3.tcp_aqm.read.run_program`, with the same exceptions.

    Returns
    -------
    Result
        As of `netctrl.sim.packet.run.simulate_packets`.
    """
    run_seed(folder, scenario.seed, **running)
    with whole(folder):
        return _read(folder, scenario, plan, f"ns-{ns3.version}", provenance)


def _read(folder: Path, scenario: Scenario, plan: FabricPlan, simulator: str, provenance: Provenance) -> Result:
    ports, flows, watch = plan.ports, plan.flows, scenario.network.watch

    def table(name: str, columns: int, rows: int | None = None) -> np.ndarray:
        """Numbers of a file; without columns the program wrote empty lines."""
        if columns == 0:
            return np.zeros((rows or 0, 0))
        return read_table(folder / f"{name}-{scenario.seed}.csv", columns, rows)

    P, F, T, B = len(ports.names), len(flows.size), ceil(plan.end / plan.interval), ceil(plan.end / plan.bin)
    port = dict(zip(_PORTS, table("ports", len(_PORTS), P).T, strict=True))
    hosts = dict(zip(_HOSTS, table("counts", len(_HOSTS), 1)[0].astype(np.int64).tolist(), strict=True))
    return fabric_result(
        scenario,
        simulator,
        provenance,
        ports=ports.names,
        links={
            "capacity": ports.rate,
            "departed": port["sent_bytes"],
            "backlog": port["area"] / plan.end,
            "backlog_most": port["most"],
            "drops": port["drops"],
        },
        transfers=flows,
        ideal=plan.ideal,
        finish=table("flows", 1, F)[:, 0].astype(np.int64),
        backlog=table("queues", len(watch.ports), T).T,
        histogram=table("histogram", HISTOGRAM_BINS, 1)[0].astype(np.int64),
        log=table("acknowledgements", len(ACKNOWLEDGEMENTS)),
        received=table("throughput", B if watch.flows else 0, len(watch.flows)).astype(np.int64),
        counts=_counts(port, hosts, plan.senders.ack),
    )


def _counts(port: dict[str, np.ndarray], hosts: dict[str, int], ack: int) -> dict[str, int]:
    """Of the run; under way is what waits at hosts and in queues, and what ports sent that hasn't come."""
    total = {name: int(each.sum()) for name, each in port.items()}
    waiting = hosts.pop("waiting")
    return hosts | {
        "dropped": total["drops"],
        "dropped_bytes": total["dropped_bytes"],
        "marked": total["marked"],
        "hops": total["sent"],
        "under_way": waiting + total["waiting"] + total["sent"] - total["came"],
        "under_way_bytes": waiting * ack + total["waiting_bytes"] + total["sent_bytes"] - total["came_bytes"],
    }
