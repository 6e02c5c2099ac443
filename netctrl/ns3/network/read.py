"""Run a network's program from `netctrl.ns3.network.render` many times, and read its results."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Event, Lock

import numpy as np

from netctrl.core.errors import checked_jobs
from netctrl.model.design.design import Provenance
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.program import Ns3, execute, read_table, whole
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.runs import network_result, tcp_of
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

_LINKS = ("arrived", "departed", "lost", "growth", "backlog", "rate_square", "backlog_square")
_TCP = ("payload", "sent", "resent", "rtt")
_SERIES = ("backlog", "arrived", "departed", "lost", "marked", "probability")
Progress = Callable[[float], None]


def run_links(
    folder: Path,
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    *,
    ns3: Ns3,
    provenance: Provenance,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Run the compiled program in `folder` for runs with these numbers, whose tables are in the folder.

    Parameters
    ----------
    folder : Path
    scenario, plan
        Arguments of the rendering.
    runs : range
    ns3 : Ns3
        The ns-3 of the compilation.
    provenance : Provenance
        For the result.
    n_jobs : int
        Number of parallel processes, −1: one per core.
    watch : bool
        Keep the first run's time series.
    progress : callable, optional
        Called repeatedly with the completed share, from 0 to 1.

    Raises
    ------
    NetctrlError
        A run failed, or its output is incomplete.
    FileError
        The scenario's trace can't be read.
    """
    _execute_all(folder, runs, checked_jobs(n_jobs), watch, progress)
    tcp = tcp_of(scenario)
    N, T = len(plan.links), scenario.steps if watch else 0
    with whole(folder):
        tables = np.array([read_table(folder / f"result-{run}.csv", len(_LINKS), 1 + N + len(tcp)) for run in runs])
        watched = np.zeros((3, N, 0))
        if watch:
            columns = 1 + len(_SERIES) * N + 2 * len(tcp)
            series = read_table(folder / f"series-{runs[0]}.csv", columns, T, skip=1)
            found = dict(zip(_SERIES, series[:, 1 : 1 + len(_SERIES) * N].reshape(T, N, -1).T, strict=True))
            rate = found["departed"] * (8e9 / nanoseconds("interval", scenario.interval))
            watched = np.stack([found["backlog"], rate, found["lost"]])
    links = dict(zip(_LINKS, tables[:, 1 : 1 + N].transpose(2, 0, 1).copy(), strict=True))
    ends = {"entered": tables[:, 0, 0].copy(), "left": tables[:, 0, 1].copy()}
    flows = dict(zip(_TCP, tables[:, 1 + N :, :4].transpose(2, 0, 1).copy(), strict=True)) if tcp else {}
    simulator = f"ns-{ns3.version}"
    return network_result(scenario, runs, plan.links, plan.weight, links, ends, flows, watched, simulator, provenance)


def _execute_all(folder: Path, runs: Sequence[int], jobs: int, watch: bool, progress: Progress | None) -> None:
    """Run the processes from threads; none of them is left running after an error."""
    processes: list[subprocess.Popen] = []
    shares, lock, stopped = dict.fromkeys(runs, 0.0), Lock(), Event()

    def run_one(run: int) -> None:
        def tell(share: float) -> None:
            with lock:
                shares[run] = share
                if progress is not None:
                    progress(sum(shares.values()) / len(shares))

        def note(process: subprocess.Popen) -> None:
            processes.append(process)
            if stopped.is_set():
                process.kill()

        arguments = [".", str(run), *(["series"] if watch and run == runs[0] else [])]
        execute(folder, arguments, f"run-{run}.log", progress=tell, started=note)

    if jobs == 1:
        for run in runs:
            run_one(run)
        return
    with ThreadPoolExecutor(os.cpu_count() if jobs == -1 else jobs) as pool:
        try:
            for done in as_completed([pool.submit(run_one, run) for run in runs]):
                done.result()
        except BaseException:  # including Ctrl-C
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            raise
