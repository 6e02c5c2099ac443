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

_COUNTS = (
    "sent", "received", "dropped", "sent_bytes", "received_bytes", "dropped_bytes", "acks", "again", "marked", "hops",
    "events", "under_way", "under_way_bytes", "most_under_way",
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
        As of `netctrl.sim.fabric.run.simulate_fabric`.
    """
    run_seed(folder, scenario.seed, **running)
    with whole(folder):
        return _read(folder, scenario, plan, f"ns-{ns3.version}", provenance)


def _read(folder: Path, scenario: Scenario, plan: FabricPlan, simulator: str, provenance: Provenance) -> Result:
    ports, flows, watch = plan.ports, plan.flows, scenario.watch

    def table(name: str, columns: int, rows: int | None = None) -> np.ndarray:
        """Numbers of a file; without columns the program wrote empty lines."""
        if columns == 0:
            return np.zeros((rows or 0, 0))
        return read_table(folder / f"{name}-{scenario.seed}.csv", columns, rows)

    P, F, T, B = len(ports.names), len(flows.size), ceil(plan.end / plan.interval), ceil(plan.end / plan.bin)
    sent, mean, most, drops = table("ports", 4, P).T
    counts = table("counts", len(_COUNTS), 1)[0].astype(np.int64).tolist()
    return fabric_result(
        scenario,
        simulator,
        provenance,
        ports=ports.names,
        links={"capacity": ports.rate, "departed": sent, "backlog": mean, "backlog_most": most, "drops": drops},
        transfers=flows,
        ideal=plan.ideal,
        finish=table("flows", 1, F)[:, 0].astype(np.int64),
        backlog=table("queues", len(watch.ports), T).T,
        histogram=table("histogram", HISTOGRAM_BINS, 1)[0].astype(np.int64),
        log=table("acknowledgements", len(ACKNOWLEDGEMENTS)),
        received=table("throughput", B if watch.flows else 0, len(watch.flows)).astype(np.int64),
        counts=dict(zip(_COUNTS, counts, strict=True)),
    )
