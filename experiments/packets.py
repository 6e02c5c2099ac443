"""Scenarios in real ns-3: rendered, compiled, run, read back; several at a time, each a process of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from netctrl.errors import NetctrlError
from netctrl.export.ns3 import render
from netctrl.export.ns3_run import compile_program, find_ns3, run_program
from netctrl.model.artifact import provenance
from netctrl.model.scenario import Scenario
from netctrl.model.simulation import SimulationResult
from netctrl.sim.traffic import draw_flows

HOURS = 3600.0

FASTER = {"CXXFLAGS": "-O1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=4000"}
"""Environment of compilers and programs. It changes no bit of a result: the libraries do the work, so that a program
compiled with less optimisation runs as fast; glibc keeps more small blocks at hand, of which packets take many."""


def available() -> bool:
    """Whether this machine has an ns-3."""
    try:
        find_ns3()
    except NetctrlError:
        return False
    return True


class Timed(NamedTuple):
    """A run in ns-3 without its compilation, by the program's own account."""

    simulator: str
    wall_s: float
    peak_mib: float


def run_ns3(scenario: Scenario) -> SimulationResult:
    """One scenario, in a folder that is removed after."""
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        return _run_in(Path(name), scenario)


def timed_ns3(scenario: Scenario) -> Timed:
    """How long one scenario takes in ns-3, and how much memory."""
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        result = _run_in(Path(name), scenario)
        said = dict(
            line.split() for line in (Path(name) / "run.log").read_text().splitlines() if len(line.split()) == 2
        )
    return Timed(result.simulator, float(said["wall_s"]), float(said["peak_rss_kib"]) / 1024.0)


def _run_in(folder: Path, scenario: Scenario) -> SimulationResult:
    made = provenance(seed=scenario.seed, libraries=("numpy",))
    for file, text in render(scenario, draw_flows(scenario, merged=False), provenance=made).items():
        (folder / file).write_text(text, encoding="utf-8")
    ns3 = find_ns3()
    compile_program(folder, ns3)
    return run_program(folder, scenario, ns3=ns3, provenance=made, timeout=3 * HOURS)


def run_all(scenarios: Sequence[Scenario]) -> list[SimulationResult]:
    """All scenarios, as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run_ns3, scenarios))
