"""Run a scenario's program from `netctrl.ns3.tcp_aqm.render`, and read its results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from netctrl.laws.pacing.pacing import EVENTS
from netctrl.model.design.design import Provenance
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.program import Ns3, Running, execute, read_table, whole
from netctrl.ns3.tcp_aqm.track import read_signals
from netctrl.scenario.bottleneck import single_line
from netctrl.scenario.network.tracking import TrackPlan
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

_NS = 1e-9
_LINKS = ("backlog", "arrived", "departed", "lost", "marked", "probability")
_WATCHED_LINKS, _WATCHED_FLOWS = ("delay", "backlog_most"), ("delivered", "pace", "window")
_CONNECTION = ("flow", "start", "read", "sent", "resent", *EVENTS)


def run_program(
    folder: Path,
    scenario: Scenario,
    *,
    plan: TrackPlan | None = None,
    ns3: Ns3,
    provenance: Provenance,
    **running: Unpack[Running],
) -> Result:
    """Run the compiled program in `folder` and read its tables, which are kept.

    Parameters
    ----------
    folder : Path
        Folder with the program and its sources.
    scenario : Scenario
        Scenario of the rendering.
    plan : TrackPlan, optional
        That of the rendering.
    ns3 : Ns3
        The ns-3 of the compilation.
    provenance : Provenance
        For the result.
    **running
        `progress`, called with the elapsed share of the simulated time, 0 to 1; `timeout`, the time limit [s].

    Returns
    -------
    Result
        Of a single line without marks (`netctrl.scenario.bottleneck.single_line`) also each packet's round trip, in the
        table `trips`, and what each flow sent, in the table `connections`. Under a plan also the table `signals`.

    Raises
    ------
    NetctrlError
        It failed, took too long, or its output is incomplete.
    """
    execute(folder, ["."], "run.log", **running)
    with whole(folder):
        found = _read(folder, scenario, f"ns-{ns3.version}", provenance)
        return found if plan is None else replace(found, tables={**found.tables, "signals": read_signals(folder, plan)})


def _read(folder: Path, scenario: Scenario, simulator: str, provenance: Provenance) -> Result:
    L, G, watched = len(scenario.links), len(scenario.flows), single_line(scenario)
    T = nanoseconds("duration", scenario.duration) // nanoseconds("interval", scenario.interval)
    shapes = [(L, _LINKS), (1, ("payload",) * G), (1, ("rtt",) * G)]
    shapes += [(L, _WATCHED_LINKS), (G, _WATCHED_FLOWS)] if watched else []
    sizes = [count * len(names) for count, names in shapes]
    table = read_table(folder / "series.csv", 1 + sum(sizes), T, skip=1)
    responses = read_table(folder / "responses.csv", 4)
    parts = np.split(table[:, 1:].T.copy(), np.cumsum(sizes)[:-1])
    links = _by_name(parts[0], _LINKS)
    flows = {"payload": parts[1], "rtt": parts[2]}
    totals: dict[str, np.ndarray] = {}
    tables: dict[str, Any] = {
        "transfers": dict(zip(("start", "size", "duration"), responses[:, 1:].T.copy(), strict=True))
        | {"flow": responses[:, 0].astype(np.int64)}
    }
    if watched:
        links |= _by_name(parts[3], _WATCHED_LINKS)
        flows |= _by_name(parts[4], _WATCHED_FLOWS)
        tables |= _connections(folder)
        flows["rtt"] = _mean_trips(scenario, tables["trips"], T)
        rows = tables["connections"]["flow"]
        for name in ("sent", "resent"):
            totals[name] = np.full(G, np.nan)
            totals[name][rows] = tables["connections"][name]
    return Result.of_series(scenario, simulator, provenance, links=links, flows=flows, totals=totals, tables=tables)


def _by_name(part: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Series of rows that have these in turn."""
    return {name: part[i :: len(names)] for i, name in enumerate(names)}


def _connections(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Round trips of packets, and a row a flow that is answered."""
    rows = read_table(folder / "connections.csv", len(_CONNECTION)).T
    found = {name: row.astype(np.int64) for name, row in zip(_CONNECTION, rows, strict=True)}
    found |= {name: found[name].astype(float) for name in ("read", "sent", "resent")}
    samples = np.fromfile(folder / "rtts.bin", dtype="<i8")
    if len(samples) % 3:
        raise ValueError("rtts.bin ends within a record")
    flow, at, rtt = samples.reshape(-1, 3).T
    return {
        "trips": {"flow": flow, "time": at * _NS, "rtt": rtt * _NS},
        "connections": found | {"start": found["start"] * _NS},
    }


def _mean_trips(scenario: Scenario, trips: dict[str, np.ndarray], bins: int) -> np.ndarray:
    """Mean round trip of each flow in each bin, (G, T) [s]; 0 without any, and of packets without acknowledgements."""
    place = np.minimum((trips["time"] / scenario.interval).astype(np.int64), bins - 1) + bins * trips["flow"]
    count = len(scenario.flows) * bins
    times, total = np.bincount(place, minlength=count), np.bincount(place, trips["rtt"], count)
    return np.divide(total, times, out=np.zeros(count), where=times > 0).reshape(-1, bins)
