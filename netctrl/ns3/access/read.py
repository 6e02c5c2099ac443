"""Run an access link's program that `netctrl.ns3.access.render` rendered, and read what it gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from netctrl.model.design.design import Provenance
from netctrl.ns3.access.render import COLUMNS
from netctrl.ns3.program import Ns3, execute, read_table, whole
from netctrl.scenario.access.plan import AccessLinkPlan, AccessLinkTracking
from netctrl.scenario.access.result import AccessLinkResult
from netctrl.scenario.access.scenario import AccessLinkScenario

__all__ = ["run_access_link", "table_name"]

_COUNTS = ("burst", "premium_received", "premium_lost", "other_lost")


def table_name(seed: int) -> str:
    """The file in the program's folder that says what a run draws."""
    return f"run-{seed}.bin"


def run_access_link(
    folder: Path,
    scenario: AccessLinkScenario,
    plan: AccessLinkPlan,
    *,
    ns3: Ns3,
    provenance: Provenance,
    progress: Callable[[float], None] | None = None,
    timeout: float | None = None,
) -> AccessLinkTracking:
    """Run the compiled program in `folder` for the scenario's seed, whose table is there.

    Parameters
    ----------
    folder : Path
    scenario, plan
        What it was rendered from; the seed may be another.
    ns3, provenance, progress, timeout
        As in `netctrl.ns3.tcp_aqm.read.run_program`; so is what it raises.

    Returns
    -------
    AccessLinkTracking
        As `netctrl.track_access_link` gives it.
    """
    seed = scenario.seed
    execute(folder, [".", str(seed)], f"run-{seed}.log", progress=progress, timeout=timeout)
    (T, p), m = plan.reference.shape, len(plan.law.inputs)
    H, S, first = scenario.hops, len(scenario.sources), len(COLUMNS)
    with whole(folder):
        table = read_table(folder / f"result-{seed}.csv", first + H + S + 2 * p + m, skip=1)
        if len(table) != T:
            raise ValueError(f"result-{seed}.csv has {len(table)} rows, not {T}")
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
    return AccessLinkTracking(result, plan.reference, given, measured, commanded)
