"""Run a scenario's program that `netctrl.ns3.tcp_aqm.render` rendered, and read what it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import numpy as np

from netctrl.model.design.design import Provenance
from netctrl.ns3.program import Ns3, Running, execute, read_table, whole
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.scenario.tcp_aqm.scenario import Scenario

__all__ = ["run_program"]

_COLUMNS = ("backlog", "arrived", "departed", "lost", "marked", "probability")


def run_program(
    folder: Path,
    scenario: Scenario,
    *,
    ns3: Ns3,
    provenance: Provenance,
    **running: Unpack[Running],
) -> SimulationResult:
    """Run the compiled program in `folder` and read its series.csv and responses.csv, which stay there.

    Parameters
    ----------
    folder : Path
        With the program and its sources.
    scenario : Scenario
        What it was rendered from.
    ns3 : Ns3
        What it was compiled against.
    provenance : Provenance
        For the result.
    **running
        `progress`, called with the part of the simulated time that has passed, 0 to 1; `timeout` [s], to end it then.

    Raises
    ------
    NetctrlError
        It failed, took too long, or its output isn't whole.
    """
    execute(folder, ["."], "run.log", **running)
    return _read(folder, scenario, f"ns-{ns3.version}", provenance)


def _read(folder: Path, scenario: Scenario, simulator: str, provenance: Provenance) -> SimulationResult:
    L, G = len(scenario.links), len(scenario.flows)
    T = int(scenario.duration / scenario.sample * (1.0 + 1e-12))
    with whole(folder):
        table = read_table(folder / "series.csv", 1 + len(_COLUMNS) * L + G, T, skip=1)
        responses = read_table(folder / "responses.csv", 4)
    series = table[:, 1 : 1 + len(_COLUMNS) * L].T.reshape(L, len(_COLUMNS), T)
    backlog, arrived, departed, lost, marked, probability = series.transpose(1, 0, 2)
    return SimulationResult(
        scenario=scenario,
        simulator=simulator,
        time_s=scenario.sample * np.arange(1, T + 1),
        backlog_bytes=backlog,
        arrived_bytes=arrived,
        departed_bytes=departed,
        lost_bytes=lost,
        marked_bytes=marked,
        probability=probability,
        carried_bytes=table[:, 1 + len(_COLUMNS) * L :].T,
        response_start_s=responses[:, 1],
        response_bytes=responses[:, 2],
        response_s=responses[:, 3],
        provenance=provenance,
    )
