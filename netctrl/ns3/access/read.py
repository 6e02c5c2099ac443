"""Run an access link's program from `netctrl.ns3.access.render`, and read its results."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import numpy as np

from netctrl.model.design.design import Provenance
from netctrl.ns3.access.render import COLUMNS
from netctrl.ns3.program import Ns3, Running, read_table, run_seed, whole
from netctrl.scenario.access.plan import AccessLinkPlan, AccessLinkTracking
from netctrl.scenario.access.result import AccessLinkResult
from netctrl.scenario.access.scenario import access_parts
from netctrl.scenario.scenario import Scenario

_COUNTS = ("burst", "premium_received", "premium_lost", "other_lost")


def run_access_link(
    folder: Path,
    scenario: Scenario,
    plan: AccessLinkPlan,
    *,
    ns3: Ns3,
    provenance: Provenance,
    **running: Unpack[Running],
) -> AccessLinkTracking:
    """Run the compiled program in `folder` for the scenario's seed, whose table is in the folder.

    Parameters
    ----------
    folder : Path
    scenario, plan
        Arguments of the rendering; the seed may differ.
    ns3, provenance, **running
        As in `netctrl.ns3.tcp_aqm.read.run_program`, with the same exceptions.

    Returns
    -------
    AccessLinkTracking
        Result as of `netctrl.sim.access.track.track_access_link`.
    """
    seed, parts = scenario.seed, access_parts(scenario)
    run_seed(folder, seed, **running)
    (T, p), m = plan.reference.shape, len(plan.law.inputs)
    H, S, first = parts.line.hops, len(parts.regulated), len(COLUMNS)
    with whole(folder):
        table = read_table(folder / f"result-{seed}.csv", first + H + S + 2 * p + m, T, skip=1)
    columns = dict(zip(COLUMNS, table.T.copy(), strict=False))
    columns |= {name: columns[name].astype(np.int64) for name in _COUNTS}
    backlog, sources, given, measured, commanded = np.split(
        table[:, first:].copy(), np.cumsum([H, S, p, p]).tolist(), axis=1
    )
    result = AccessLinkResult(
        scenario=scenario,
        simulator=f"ns-{ns3.version}",
        backlog=backlog.astype(np.int64),
        source_bit_per_s=sources,
        regulator_lost=np.zeros(T, dtype=np.int64),
        provenance=provenance,
        **columns,
    )
    return AccessLinkTracking(result, plan.law, plan.reference, given, measured, commanded)
