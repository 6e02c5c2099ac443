"""Run a scenario of links and flows in the kernel in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from netctrl.errors import InvalidValue, checked_jobs
from netctrl.kernel.boot import MEMORY_BYTES, WALL_LIMIT_S, run_plan, work_folder
from netctrl.kernel.build import Kernel, build_guest, chosen_kernel
from netctrl.kernel.scenarios.link_control import LinkControl, rater_task, static_rates
from netctrl.kernel.scenarios.network import RunTraffic, network_run, run_figures
from netctrl.kernel.scenarios.pacer import LAWS_FILE, laws_content
from netctrl.kernel.scenarios.planner import KernelPlan, plan_scenario
from netctrl.kernel.scenarios.rater import RaterTask, write_task
from netctrl.kernel.scenarios.result import simulation_result
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.runs import RunFigures, runs_result
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import FlowDraw


def run_scenario(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    provenance: Provenance,
    *,
    demands: Mapping[str, np.ndarray] = MappingProxyType({}),
    control: LinkControl | None = None,
    kernel: Kernel | None = None,
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
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
    control : LinkControl, optional
        Law that sets links' rates.
    kernel : Kernel, optional
        By default the one that `chosen_kernel` finds.
    memory_bytes : int
    wall_limit_s : float

    Raises
    ------
    NetctrlError
        No kernel is built, or the run fails, as in `netctrl.kernel.boot.run_plan`.
    """
    kernel = kernel or chosen_kernel()
    plan = plan_scenario(scenario, draws, demands=demands, rates=static_rates(scenario), control=control)
    task = None if control is None else rater_task(control, scenario, plan.places)
    results = _results(plan, kernel, scenario.seed, memory_bytes, wall_limit_s, task)
    return simulation_result(scenario, plan, results, kernel.version, provenance)


def run_network(
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    traffic: Iterable[RunTraffic],
    provenance: Provenance,
    *,
    packet_size: int,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """The same for a network under fluctuating demands, many times.

    Parameters
    ----------
    scenario : Scenario
        One that passes `netctrl.kernel.scenarios.lacks.network_lacks`.
    plan : LinkPlan
    runs : range
        Numbers of the runs; run r has the demands of run r in the other engines.
    traffic : iterable of RunTraffic
        Of the runs, in their order.
    provenance : Provenance
    packet_size : int
        [byte], with Ethernet's header.
    n_jobs : int
        Kernels at a time, -1: one for each core.
    watch : bool
        Keep the first run's time series.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.

    Raises
    ------
    InvalidValue
        No run, or a number that isn't one of processes.
    NetctrlError
        As in `run_scenario`.
    """
    from joblib import Parallel, delayed

    if not runs:
        raise InvalidValue("runs", runs, "one run or more")
    checked_jobs(n_jobs)
    kernel = chosen_kernel()
    build_guest()

    def figures(sent: RunTraffic) -> RunFigures:
        run = network_run(scenario, plan, sent, packet_size)
        results = _results(run.plan, kernel, run.scenario.seed, task=run.task)
        watched = scenario.steps if watch and sent.number == runs[0] else 0
        return run_figures(scenario, plan, run, results, kernel.version, provenance, watched)

    found: list[RunFigures] = []
    tasks = (delayed(figures)(each) for each in traffic)
    for each in Parallel(n_jobs, prefer="threads", return_as="generator")(tasks):
        found.append(each)
        if progress is not None:
            progress(len(found) / len(runs))
    return runs_result(scenario, plan, runs, found, f"kernel-{kernel.version}", provenance)


def _results(
    plan: KernelPlan,
    kernel: Kernel,
    seed: int,
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
    task: RaterTask | None = None,
) -> Sequence[tuple[int, bytes]]:
    guest = build_guest()
    with work_folder() as folder:
        if plan.laws:
            (folder / LAWS_FILE).write_bytes(laws_content(plan.laws))
        if task is not None:
            write_task(task, folder)
        return run_plan(
            plan.writer, kernel, guest, folder, seed=seed, memory_bytes=memory_bytes, wall_limit_s=wall_limit_s
        )
