"""A decision of MPCC as the ns-3 exporter writes it in C++, compiled with the system's compiler, against the same from
Python; by turns, processor time."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

import msgspec
import numpy as np
from rows import Row, Turns, against, alternate

from netctrl.datasets import scenario_path
from netctrl.laws.window.interface import STATES, WINDOW, Acknowledged
from netctrl.laws.window.mpcc import mpcc
from netctrl.model.design.design import provenance
from netctrl.ns3.fabric.render import render
from netctrl.scenario.fabric.plan import FabricPlan
from netctrl.scenario.fabric.scenario import FabricScenario, read_fabric_scenario
from netctrl.sim.fabric.plan import fabric_plan

ROUNDS = 9
DECISIONS = 20_000_000
SOME = 2000
TARGET = 20e-9

PROGRAM = r"""
#include "gains.h"

#include <cstdio>
#include <ctime>

int main() {
    constexpr int kSeen = 4096, kDecisions = %d;
    static netctrl::HopSeen hops[kSeen][2];
    uint64_t state = 1;
    for (auto& each : hops) {
        for (auto& hop : each) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            hop = {static_cast<double>((state >> 33) %% 4000), static_cast<int64_t>((state >> 50) %% 5), 1e9};
        }
    }
    netctrl::MpccWindow window(netctrl::kLaw, netctrl::kPaths[0]);
    double sum = 0.0;
    const std::clock_t start = std::clock();
    for (int i = 0; i < kDecisions; ++i) sum += window.Step(hops[i %% kSeen], 2);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%%.17g %%.17g\n", took / kDecisions, sum);
}
"""


def rows() -> Iterator[Row]:
    """Two hops tell; the rows without a table take P = 5 steps of Riccati's recursion each."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        yield Row("exported MPCC in C++", "no g++ or clang++", "", "", "", f"< {TARGET * 1e9:g} ns", None)
        return
    base = read_fabric_scenario(scenario_path("mpcc-dumbbell"))
    cases = {
        "table K[N]": {},
        "table, delayed": {"variant": "delayed"},
        "Riccati, P = 5": {"window": None},
        "Riccati, P = 5, delayed": {"window": None, "variant": "delayed"},
    }
    for name, fields in cases.items():
        scheme = msgspec.structs.replace(base.scheme, **fields)
        yield decision(compiler, name, msgspec.structs.replace(base, scheme=scheme))


def decision(compiler: str, name: str, scenario: FabricScenario) -> Row:
    plan = fabric_plan(scenario)
    with tempfile.TemporaryDirectory(prefix="netctrl-bench-") as folder:
        program = build(compiler, Path(folder), scenario, plan)
        ours: list[float] = []

        def compiled() -> float:
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
            ours.append(float(said[0]))
            return float(said[1])

        turns = alternate(compiled, lambda: from_python(plan), ROUNDS, clock=process_time)
    # Its own clock: starting the program is no part of a decision.
    timed = Turns(ours[1:], [each / SOME for each in turns.theirs], turns.answers)
    shown = against(
        f"exported MPCC in C++, a decision: {name}",
        "netctrl.laws.window.mpcc from Python",
        timed,
        f"< {TARGET * 1e9:g} ns",
        lambda seconds, _: seconds < TARGET,
    )
    low, high = min(timed.ours) * 1e9, max(timed.ours) * 1e9
    return shown._replace(ours=f"{median(timed.ours) * 1e9:.3g} ({low:.3g} to {high:.3g}) ns")


def build(compiler: str, folder: Path, scenario: FabricScenario, plan: FabricPlan) -> str:
    files = render(scenario, plan, provenance=provenance())
    for file in ("gains.h", "netctrl-mpcc.h"):
        (folder / file).write_text(files[file], encoding="utf-8")
    (folder / "bench.cc").write_text(PROGRAM % DECISIONS, encoding="utf-8")
    program = str(folder / "bench")
    subprocess.run([compiler, "-std=c++17", "-O2", str(folder / "bench.cc"), "-o", program], check=True)
    return program


def from_python(plan: FabricPlan) -> float:
    state, history = np.zeros(STATES), np.zeros(plan.history)
    state[WINDOW] = plan.windows[0]
    seen = Acknowledged(0, 0, 0, 0, 0, 0, False, False, False, 0)
    hops = np.array([[700, 4, 0, 0], [0, 1, 0, 0]], dtype=np.int64)
    for _ in range(SOME):
        mpcc(plan.parameters, plan.paths, plan.gains, state, history, seen, hops)
    return float(state[WINDOW])
