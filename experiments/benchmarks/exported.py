"""A decision of MPCC as the ns-3 exporter writes it in C++, compiled with the system's compiler, against the same from
Python; by turns, processor time."""

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

import netctrl
from netctrl.laws.window.law import SILENT, Acknowledged, Hop
from netctrl.model.design.design import provenance
from netctrl.ns3.fabric.render import render
from netctrl.scenario.fabric.flows import with_sender
from netctrl.scenario.fabric.plan import FabricPlan
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.fabric import fabric_plan

ROUNDS = 9
DECISIONS = 20_000_000
SOME = 2000
TARGET = 20e-9

PROGRAM = r"""
#include "netctrl-fabric-tables.h"

#include <cstdio>
#include <ctime>

int main() {
    const netctrl::MpccLaw law{%s};
    std::vector<netctrl::fabric::PathRow> kinds;
    for (netctrl::Record& record : netctrl::ReadRecords("scenario.txt"))
        if (record.kind == "path") kinds.push_back(netctrl::Made<netctrl::fabric::PathRow>(record));
    constexpr int kSeen = 1024, kDecisions = %d;
    static netctrl::Acknowledged seen[kSeen];
    uint64_t random = 1;
    for (auto& each : seen) {
        for (auto& hop : each.hops) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            hop = {static_cast<double>((random >> 33) %% 4000), static_cast<double>((random >> 50) %% 5), 0.0, 0.0};
        }
    }
    const netctrl::fabric::PathRow& kind = kinds.back();
    netctrl::MpccLaw::State state;
    state.window = kind.startWindow;
    std::vector<double> memory(%d);
    double sum = 0.0;
    const std::clock_t start = std::clock();
    for (int i = 0; i < kDecisions; ++i) {
        state = law.Next(state, seen[i %% kSeen], kind.path, kind.table, memory);
        sum += state.window;
    }
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
    base = netctrl.read("mpcc-dumbbell")
    cases = {
        "table K[N]": {},
        "table, delayed": {"variant": "delayed"},
        "Riccati, P = 5": {"window": None},
        "Riccati, P = 5, delayed": {"window": None, "variant": "delayed"},
    }
    for name, fields in cases.items():
        sender = msgspec.structs.replace(base.flows[0].sender, **fields)
        yield decision(compiler, name, with_sender(base, sender))


def decision(compiler: str, name: str, scenario: Scenario) -> Row:
    plan = fabric_plan(scenario)
    with tempfile.TemporaryDirectory(prefix="netctrl-bench-") as folder:
        program = build(compiler, Path(folder), scenario, plan)
        ours: list[float] = []

        def compiled() -> float:
            said = subprocess.run([program], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
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
        "other samples",  # that both give the same bits is a test: tests/ns3/fabric
    )
    low, high = min(timed.ours) * 1e9, max(timed.ours) * 1e9
    return shown._replace(ours=f"{median(timed.ours) * 1e9:.3g} ({low:.3g} to {high:.3g}) ns")


def build(compiler: str, folder: Path, scenario: Scenario, plan: FabricPlan) -> str:
    files = render(scenario, plan, provenance=provenance())
    for name in ("centre", "fabric-tables", "files", "records", "window-laws"):
        (folder / f"netctrl-{name}.h").write_text(files[f"netctrl-{name}.h"], encoding="utf-8")
    (folder / "scenario.txt").write_text(files["scenario.txt"], encoding="utf-8")
    numbers = ", ".join(map(repr, plan.senders.laws[0].parameters))
    (folder / "bench.cc").write_text(PROGRAM % (numbers, DECISIONS, plan.senders.laws[0].memory), encoding="utf-8")
    program = str(folder / "bench")
    subprocess.run([compiler, "-std=c++17", "-O2", str(folder / "bench.cc"), "-o", program], check=True)
    return program


def from_python(plan: FabricPlan) -> float:
    state, memory = plan.senders.law.state(plan.senders.laws[0].start, 0.0, 0.0), np.zeros(plan.senders.laws[0].memory)
    hops = (Hop(700.0, 4.0, 0.0, 0.0), Hop(0.0, 1.0, 0.0, 0.0), *SILENT[2:])
    seen = Acknowledged(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, hops)
    for _ in range(SOME):
        state = plan.senders.law.step(
            state, seen, plan.senders.laws[0].path, plan.senders.laws[0].parameters, plan.senders.laws[0].table, memory
        )
    return float(state.window)
