"""Run a network scenario in the fluid: many runs side by side, in blocks on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from netctrl.errors import InvalidValue, checked_flag, checked_function, checked_jobs, checked_kind, checked_whole
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.model.design.design import provenance
from netctrl.model.law import LinkRateLaw
from netctrl.model.trace import RateTrace
from netctrl.scenario.network.result import NetworkResult
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.network.trace_window import scenario_trace, traffic_samples
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.kernel import (
    ARRIVED,
    DEPARTED,
    LANES,
    LOST,
    RATE_SQUARE,
    WAITING,
    WAITING_SQUARE,
    advance_links,
)
from netctrl.sim.network.messages import run_with_messages
from netctrl.sim.network.problem import LinkProblem, LinkRuns, link_problem, link_state
from netctrl.units import BITS_PER_BYTE

__all__ = ["LANES", "simulate_network"]

Progress = Callable[[float], None]

_CHUNK = 2**21  # bytes of demands at a time


def simulate_network(
    scenario: NetworkScenario,
    law: LinkRateLaw | None = None,
    *,
    runs: int = 1,
    first_run: int = 0,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> NetworkResult:
    """Run a network under fluctuating demands, many times.

    Parameters
    ----------
    scenario : NetworkScenario
    law : LinkRateLaw, optional
        Of a Design; needed where the policy is `hftrac` or `design`.
    runs : int
        How many, each with random streams of its own.
    first_run : int
        Number of the first: run r is the same whichever others are made with it, and whatever the policy.
    n_jobs : int
        Processes, −1: all cores.
    watch : bool
        Keep the first run's time series.
    progress, argv, inputs
        As for `netctrl.simulate_fabric`.

    Raises
    ------
    InvalidValue
        What `netctrl.sim.network.problem` refuses, or numbers of runs or processes out of bounds.
    FileError
        The trace can't be read.
    """
    checked_kind("scenario", scenario, NetworkScenario)
    if progress is not None:
        checked_function("progress", progress)
    checked_whole("runs", runs, "a whole number from 1 to 1000000", at_least=1, at_most=1_000_000)
    checked_whole("first_run", first_run, "a whole number of at least 0")
    checked_jobs(n_jobs)
    checked_flag("watch", watch)
    if scenario.tcp:
        raise InvalidValue(
            "tcp", f"{len(scenario.tcp)} demands", "none in the fluid: TCP over networks runs on packets"
        )
    if not isinstance(scenario.queue, DropTailQueue):
        takes = "droptail in the fluid: other queues at a network's links run on packets"
        raise InvalidValue("queue.kind", scenario.queue.__struct_config__.tag, takes)
    ready = link_problem(scenario, law)
    numbers = [
        range(start, min(start + LANES, first_run + runs)) for start in range(first_run, first_run + runs, LANES)
    ]
    trace = scenario_trace(scenario)
    from joblib import Parallel, delayed

    blocks: list[LinkRuns] = []
    tasks = (
        delayed(_run_block)(scenario, ready, law, trace, block, watch and not i) for i, block in enumerate(numbers)
    )
    for block in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        blocks.append(block)
        if progress is not None:
            progress(len(blocks) / len(numbers))
    record = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "scipy", "numba"))
    count = scenario.steps - scenario.warmup_steps
    sums = np.concatenate([block.sums for block in blocks], axis=2).transpose(0, 2, 1) / count
    growth = np.concatenate([block.growth for block in blocks], axis=1).T
    interval, seconds = scenario.interval, count * scenario.interval
    leaves = 1.0 - np.asarray(ready.model.coupling.sum(axis=0)).ravel()
    watched = blocks[0].watched
    return NetworkResult(
        scenario=scenario,
        simulator="fluid",
        links=ready.model.links,
        capacity_bit_per_s=ready.plant.capacity,
        weight=ready.weight,
        seconds=seconds,
        sample=traffic_samples(scenario, range(first_run, first_run + runs), trace),
        offered_bytes=np.concatenate([block.offered for block in blocks]) * (interval / BITS_PER_BYTE),
        delivered_bytes=sums[DEPARTED] @ leaves * (seconds / BITS_PER_BYTE),
        arrived_bytes=sums[ARRIVED] * (seconds / BITS_PER_BYTE),
        departed_bytes=sums[DEPARTED] * (seconds / BITS_PER_BYTE),
        lost_bytes=sums[LOST] * (seconds / BITS_PER_BYTE),
        growth_bytes=growth * (interval / BITS_PER_BYTE),
        backlog_bytes=sums[WAITING] * (interval / BITS_PER_BYTE),
        rate_square=sums[RATE_SQUARE],
        backlog_square=sums[WAITING_SQUARE],
        watched_time_s=interval * np.arange(1, watched.shape[2] + 1),
        watched=watched * np.array([interval / BITS_PER_BYTE, 1.0, interval / BITS_PER_BYTE])[:, None, None],
        provenance=record,
    )


def _run_block(
    scenario: NetworkScenario,
    ready: LinkProblem,
    law: LinkRateLaw | None,
    trace: RateTrace | None,
    numbers: range,
    watch: bool,
) -> LinkRuns:
    source = DemandSource(scenario, ready.network, numbers, trace=trace)
    if not scenario.messages.ideal:
        return run_with_messages(scenario, ready, law, source, numbers, watch)
    state = link_state(ready, len(numbers))
    N, steps = ready.model.n_links, scenario.steps
    watched = np.zeros((3, N, steps if watch else 0))
    chunk = max(1, _CHUNK // (8 * len(ready.network.demands) * len(numbers)))
    before = np.zeros((N, len(numbers)))
    slots = state.history.shape[1]
    step = 0
    while step < steps:
        end = scenario.warmup_steps if step < scenario.warmup_steps else steps
        demand = source.draw(min(chunk, end - step))
        if step == scenario.warmup_steps:
            before = state.history[N : 2 * N, step % slots].copy()
        advance_links(ready.plant, ready.taps, *ready.tiles, state, demand, step, scenario.warmup_steps, watched)
        step += len(demand)
    sums = state.sums[:, :, : len(numbers)].transpose(1, 0, 2)
    return LinkRuns(sums, state.history[N : 2 * N, step % slots] - before, state.offered, watched)
