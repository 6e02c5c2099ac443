"""Run a scenario of links and flows in the kernel in virtual time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from netctrl.core.files import write_atomically
from netctrl.core.units import NANOSECOND
from netctrl.kernel.boot import MEMORY_BYTES, WALL_LIMIT_S, run_plan, work_folder
from netctrl.kernel.build import Kernel, build_guest, chosen_kernel
from netctrl.kernel.programs import read_record, write_record
from netctrl.kernel.regulated.task import GivenPlan, Left, RegulatedTask, Tracking
from netctrl.kernel.scenarios.link_control import rater_task
from netctrl.kernel.scenarios.network import network_figures, network_run
from netctrl.kernel.scenarios.pacer import PacerTask
from netctrl.kernel.scenarios.planner import KernelPlan, capture_file, plan_scenario
from netctrl.kernel.scenarios.rater import RaterTask
from netctrl.kernel.scenarios.result import simulation_result
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.network.plan import FlowLinks, LinkPlan
from netctrl.scenario.network.policy import static_rates
from netctrl.scenario.network.runs import RunFigures, run_many
from netctrl.scenario.network.track import tracked_groups
from netctrl.scenario.network.tracking import GateDraws, TrackPlan, driven_columns, law_columns, tracked_flows
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import FlowDraw

_WHOLE = 1e-9  # of a period
_CAPTURED = 2**28
_FILE_NAME = re.compile(r"[\w.-]+")


def run_scenario(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    provenance: Provenance,
    *,
    demands: Mapping[str, np.ndarray] = MappingProxyType({}),
    control: FlowLinks | None = None,
    track: TrackPlan | None = None,
    gates: Mapping[str, GateDraws] = MappingProxyType({}),
    kernel: Kernel | None = None,
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
    pcap: Path | None = None,
) -> Result:
    """Boot a kernel for a scenario, and read what it measured.

    Parameters
    ----------
    scenario : Scenario
        One that passes `netctrl.kernel.scenarios.lacks.scenario_lacks`. Its seed is that of the kernel's random
        numbers.
    draws : sequence of FlowDraw
        Flows of each group, unmerged.
    provenance : Provenance
    demands : mapping, optional
        Rates of the flows of each group of demands, by its id, (intervals, count) [bit/s].
    control : FlowLinks, optional
        Law that sets links' rates.
    track : TrackPlan, optional
        Law of the scenario's control of kind track, without a schedule that learns.
    gates : mapping, optional
        Draws of groups with regulators, by their ids.
    kernel : Kernel, optional
        By default the one that `chosen_kernel` finds.
    memory_bytes : int
    wall_limit_s : float
    pcap : Path, optional
        Folder for what each link transmits, one file LINK.pcap of at most 256 MiB each: the first 128 bytes of each
        packet, and when its transmission begins, to the nanosecond of the scenario's time. Each costs 256 ns of it.

    Raises
    ------
    NetctrlError
        No kernel is built, or the run fails, as in `netctrl.kernel.boot.run_plan`; a folder that can't be written.
    """
    kernel = kernel or chosen_kernel()
    rates, captured = static_rates(scenario), 0 if pcap is None else _CAPTURED
    plan = plan_scenario(
        scenario, draws, demands=demands, rates=rates, control=control, gates=gates, capture_bytes=captured
    )
    task = None if control is None else rater_task(control, scenario, plan.places)
    regulated = regulated_task(scenario, plan, track)
    results, left = _results(plan, kernel, scenario.seed, (task, regulated), memory_bytes, wall_limit_s, pcap)
    found = simulation_result(scenario, plan, results, kernel.version, provenance, left)
    if track is None or left is None or left.found is None:
        return found
    signals = driven_columns(track.law.interval_s, left.found.driven) | law_columns(track, left.found)
    return replace(found, tables={**found.tables, "signals": signals})


def run_network(
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    draws: Iterable[Any],
    flows: Callable[[Scenario], Sequence[FlowDraw]],
    provenance: Provenance,
    *,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """The same for a scenario under demands, many times.

    Parameters
    ----------
    scenario : Scenario
        One that passes `netctrl.kernel.scenarios.lacks.network_lacks`.
    plan : LinkPlan
    runs : range
        Numbers of the runs; run r has the demands of run r in the other engines.
    draws : iterable of RunDraws
        Of the runs, in their order (`netctrl.sim.network.plan.run_draws`).
    flows : callable
        Draws the flows of a scenario with a run's seed.
    provenance : Provenance
    n_jobs, watch, progress
        As for `netctrl.scenario.network.runs.run_many`.

    Raises
    ------
    InvalidValue
        No run, or a number that isn't one of processes.
    NetctrlError
        As in `run_scenario`.
    """
    kernel = chosen_kernel()
    build_guest()

    def figures(played: Scenario, drawn: Any, watched: int) -> RunFigures:
        run = network_run(played, plan, drawn, flows(played))
        results, _ = _results(run.plan, kernel, played.seed, (run.task,))
        return network_figures(plan, run, results, kernel.version, provenance, watched)

    name = f"kernel-{kernel.version}"
    return run_many(
        scenario, plan, runs, draws, figures, name, provenance, n_jobs=n_jobs, watch=watch, progress=progress
    )


def _results(
    plan: KernelPlan,
    kernel: Kernel,
    seed: int,
    tasks: Sequence[RaterTask | RegulatedTask | None],
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
    pcap: Path | None = None,
) -> tuple[Sequence[tuple[int, bytes]], Left | None]:
    guest = build_guest()
    with work_folder() as folder:
        for task in filter(None, (*tasks, PacerTask(plan.laws) if plan.laws else None)):
            write_record(folder, task)
            read_record(folder, type(task)).warm_up()  # as the program reads it: other arrays would be compiled inside
        results = run_plan(
            plan.writer, kernel, guest, folder, seed=seed, memory_bytes=memory_bytes, wall_limit_s=wall_limit_s
        )
        for number, link in enumerate(plan.scenario.links if pcap is not None else ()):
            name = link.id if _FILE_NAME.fullmatch(link.id) else f"link {number}"
            write_atomically(Path(pcap or "") / f"{name}.pcap", (folder / capture_file(number)).read_bytes())
        return results, read_record(folder, Left) if plan.regulated else None


def regulated_task(scenario: Scenario, plan: KernelPlan, track: TrackPlan | None) -> RegulatedTask | None:
    """Task of the program that sends a plan's regulated flows; None without such."""
    if not plan.regulated:
        return None
    place = {scenario.flows[each.group].id: k for k, each in enumerate(plan.regulated)}
    interval = scenario.interval if track is None else track.law.interval_s
    tracking = None
    if track is not None:
        tracked = tuple(place[group.id] for group in tracked_groups(scenario))
        tracking = Tracking(GivenPlan(*track), tracked_flows(scenario), tracked, place[scenario.control.measures])
    return RegulatedTask(
        groups=tuple(plan.regulated),
        packet_size=int(scenario.packet_size),
        interval_s=interval,
        periods=ceil(scenario.duration / interval - _WHOLE) if track is None else len(track.reference),
        sample_s=scenario.interval,
        samples=plan.samples,
        changes=tuple(
            (round(each.at / NANOSECOND), place[each.flow], each.rate)
            for each in sorted(scenario.changes, key=lambda each: each.at)
            if each.flow
        ),
        tracking=tracking,
    )
