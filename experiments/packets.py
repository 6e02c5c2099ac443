"""Scenarios in real ns-3: rendered, compiled, run, read back; several at a time, each a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

from netctrl.export.ns3 import render
from netctrl.export.ns3_run import compile_program, find_ns3, run_program
from netctrl.model.artifact import provenance
from netctrl.model.scenario import Scenario
from netctrl.model.simulation import SimulationResult
from netctrl.sim.traffic import draw_flows

HOURS = 3600.0


def available() -> bool:
    """Whether this machine has an ns-3."""
    from netctrl.errors import NetctrlError

    try:
        find_ns3()
    except NetctrlError:
        return False
    return True


def run_ns3(scenario: Scenario) -> SimulationResult:
    """One scenario, in a folder that is removed after."""
    made = provenance(seed=scenario.seed, libraries=("numpy",))
    files = render(scenario, draw_flows(scenario, merged=False), provenance=made)
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        ns3 = find_ns3()
        compile_program(folder, ns3)
        return run_program(folder, scenario, ns3=ns3, provenance=made, timeout=3 * HOURS)


def run_all(scenarios: Sequence[Scenario]) -> list[SimulationResult]:
    """All scenarios, as many at a time as there are cores."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        return list(pool.map(run_ns3, scenarios))
