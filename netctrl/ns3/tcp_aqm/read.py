"""Run a scenario's program from `netctrl.ns3.tcp_aqm.render`, and read its results."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from netctrl.model.design.design import Provenance
from netctrl.ns3.program import Ns3, Running, execute, read_table, whole
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

__all__ = ["run_program"]

_COLUMNS = ("backlog", "arrived", "departed", "lost", "marked", "probability")


def run_program(
    folder: Path,
    scenario: Scenario,
    *,
    ns3: Ns3,
    provenance: Provenance,
    **running: Unpack[Running],
) -> Result:
    """Run the compiled program in `folder` and read its series.csv and responses.csv, which are kept.

    Parameters
    ----------
    folder : Path
        Folder with the program and its sources.
    scenario : Scenario
        Scenario of the rendering.
    ns3 : Ns3
        The ns-3 of the compilation.
    provenance : Provenance
        For the result.
    **running
        `progress`, called with the elapsed share of the simulated time, 0 to 1; `timeout`, the time limit [s].

    Raises
    ------
    NetctrlError
        It failed, took too long, or its output is incomplete.
    """
    execute(folder, ["."], "run.log", **running)
    return _read(folder, scenario, f"ns-{ns3.version}", provenance)


def _read(folder: Path, scenario: Scenario, simulator: str, provenance: Provenance) -> Result:
    L, G = len(scenario.links), len(scenario.flows)
    T = int(scenario.duration / scenario.interval * (1.0 + 1e-12))
    with whole(folder):
        table = read_table(folder / "series.csv", 1 + len(_COLUMNS) * L + 2 * G, T, skip=1)
        responses = read_table(folder / "responses.csv", 4)
    series = table[:, 1 : 1 + len(_COLUMNS) * L].T.reshape(L, len(_COLUMNS), T)
    groups = table[:, 1 + len(_COLUMNS) * L :]
    return Result.of_series(
        scenario,
        simulator,
        provenance,
        links=dict(zip(_COLUMNS, series.transpose(1, 0, 2), strict=True)),
        flows={"payload": groups[:, :G].T, "rtt": groups[:, G:].T},
        tables={"transfers": dict(zip(("start", "size", "duration"), responses[:, 1:].T.copy(), strict=True))},
    )
