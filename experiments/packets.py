"""Scenarios in real ns-3: rendered, compiled, run, read back; several at a time, each a process of its own."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import netctrl
from netctrl.model.design.design import Provenance, provenance
from netctrl.model.law import TrackingLaw
from netctrl.ns3.fabric.read import run_fabric
from netctrl.ns3.fabric.render import render as fabric_program
from netctrl.ns3.fabric.render import run_table as fabric_table
from netctrl.ns3.network.read import run_links
from netctrl.ns3.network.render import render as links_program
from netctrl.ns3.program import Ns3, compile_program, find_ns3, table_name
from netctrl.ns3.tcp_aqm.read import run_program
from netctrl.ns3.tcp_aqm.render import render
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.tracking import track_plan
from netctrl.scenario.result import Result
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.network.plan import link_plan, run_tables
from netctrl.sim.packet.fabric import fabric_plan
from netctrl.sim.packet.run import gate_draws

HOURS = 3600.0

FASTER = {"CXXFLAGS": "-O1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=4000"}
"""Environment of compilers and programs. It changes no bit of a result: the libraries do the work, so that a program
compiled with less optimisation runs as fast; glibc keeps more small blocks at hand, of which packets take many."""


def available() -> bool:
    """Whether this machine has an ns-3."""
    try:
        find_ns3()
    except netctrl.NetctrlError:
        return False
    return True


class Timed(NamedTuple):
    """A run in ns-3 without its compilation, by the program's own account."""

    simulator: str
    wall_s: float
    peak_mib: float


def run_ns3(scenario: netctrl.Scenario) -> Result:
    """One scenario, in a folder that is removed after."""
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        return _run_in(Path(name), scenario)


def timed_ns3(scenario: netctrl.Scenario) -> Timed:
    """How long one scenario takes in ns-3, and how much memory."""
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        result = _run_in(Path(name), scenario)
        said = dict(
            line.split() for line in (Path(name) / "run.log").read_text().splitlines() if len(line.split()) == 2
        )
    return Timed(result.simulator, float(said["wall_s"]), float(said["peak_rss_kib"]) / 1024.0)


def _run_in(folder: Path, scenario: netctrl.Scenario, law: TrackingLaw | None = None) -> Result:
    made = provenance(seed=scenario.seed, libraries=("numpy",))
    plan = None if law is None else track_plan(scenario, law)
    gates = {} if law is None else gate_draws(scenario)
    draws = draw_flows(scenario, merged=False)
    for file, text in render(scenario, draws, plan=plan, gates=gates, provenance=made).items():
        (folder / file).write_text(text, encoding="utf-8")
    ns3 = find_ns3()
    compile_program(folder, ns3)
    return run_program(folder, scenario, plan=plan, ns3=ns3, provenance=made, timeout=3 * HOURS)


def run_all(scenarios: Sequence[netctrl.Scenario]) -> list[Result]:
    """All scenarios, as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run_ns3, scenarios))


def run_link(scenarios: Sequence[netctrl.Scenario], law: TrackingLaw) -> list[Result]:
    """Scenarios with a control of kind track under a law, by one program in a folder that is removed after."""
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        return [_run_in(Path(name), scenario, law) for scenario in scenarios]


def run_centre(scenario: netctrl.Scenario) -> Result:
    """A data centre, in a folder that is removed after."""
    made, plan = provenance(seed=scenario.seed, libraries=("numpy",)), fabric_plan(scenario)
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        folder = Path(name)
        for file, text in fabric_program(scenario, plan, provenance=made).items():
            (folder / file).write_text(text, encoding="utf-8")
        (folder / table_name(scenario.seed)).write_bytes(fabric_table(scenario, plan))
        compile_program(folder, find_ns3())
        return run_fabric(folder, scenario, plan, ns3=find_ns3(), provenance=made, timeout=3 * HOURS)


def run_networks(scenarios: Sequence[netctrl.Scenario], runs: int) -> list[Result]:
    """Networks in real ns-3, all runs of each in one result."""
    with _program_for(scenarios) as program:
        return [program.run(case, range(runs)) for case in range(len(scenarios))]


def network_runs(
    scenarios: Sequence[netctrl.Scenario], desired: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int, Result]]:
    """Wanted pairs (number of a scenario, of a run) as they get done, as many at a time as there are cores."""
    with _program_for(scenarios) as program, ThreadPoolExecutor(os.cpu_count()) as pool:
        requested = {pool.submit(program.run, case, range(run, run + 1)): (case, run) for case, run in desired}
        try:
            for done in as_completed(requested):
                yield *requested[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Program:
    """Many scenarios; each has a folder of its own."""

    folder: Path
    scenarios: Sequence[netctrl.Scenario]
    plans: Sequence[LinkPlan]
    ns3: Ns3
    provenance: Provenance

    def run(self, case: int, runs: range) -> Result:
        folder, scenario, plan = self.folder / str(case), self.scenarios[case], self.plans[case]
        for run, table in zip(runs, run_tables(scenario, plan, runs), strict=True):
            (folder / table_name(run)).write_bytes(table)
        return run_links(folder, scenario, plan, runs, ns3=self.ns3, provenance=self.provenance, watch=False)


@contextmanager
def _program_for(scenarios: Sequence[netctrl.Scenario]) -> Iterator[_Program]:
    """A folder a scenario, all with the same program."""
    made, ns3 = provenance(seed=scenarios[0].seed, libraries=("numpy",)), find_ns3()
    plans = [link_plan(each, netctrl.scenario_law(each)) for each in scenarios]
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        for case, (each, plan) in enumerate(zip(scenarios, plans, strict=True)):
            folder = Path(name) / str(case)
            folder.mkdir()
            for file, text in links_program(each, plan, provenance=made).items():
                (folder / file).write_text(text, encoding="utf-8")
            compile_program(folder, ns3)
        yield _Program(Path(name), scenarios, plans, ns3, made)
