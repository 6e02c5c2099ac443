"""Run a network scenario in the fluid: many parallel runs, in blocks on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_function, checked_jobs, checked_whole, from_workers
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.model.design.design import provenance
from netctrl.model.law import LinkRateLaw
from netctrl.model.trace import RateTrace
from netctrl.scenario.network.policy import messages_of
from netctrl.scenario.network.runs import DEMAND_TOTALS, network_result, scenario_trace, tcp_of
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_demands
from netctrl.sim.network.demand_fluid import demand_contents, demand_fluid, demand_lanes, demand_routes, demand_sums
from netctrl.sim.network.demand_kernel import DemandRoutes
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
from netctrl.sim.network.messages import run_with_messages, ticks
from netctrl.sim.network.problem import LinkProblem, LinkRuns, link_problem, link_state

__all__ = ["LANES", "simulate_network"]

Progress = Callable[[float], None]

_CHUNK = 2**21  # bytes of demands at a time


def simulate_network(
    scenario: Scenario,
    law: LinkRateLaw | None = None,
    *,
    runs: int = 1,
    first_run: int = 0,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
    """Run a network under fluctuating demands, many times.

    Parameters
    ----------
    scenario : Scenario
    law : LinkRateLaw, optional
        Law of a Design; needed where the control is `hftrac` or `design`.
    runs : int
        Number of runs, each with its own random streams.
    first_run : int
        Number of the first run; run r doesn't depend on the other runs or on the policy.
    n_jobs : int
        Processes, −1: all cores.
    watch : bool
        Keep the first run's time series.
    progress, argv, inputs
        As for `netctrl.sim.packet.run.simulate_packets`.

    Raises
    ------
    InvalidValue
        As in `netctrl.sim.network.problem`; also numbers of runs or processes out of bounds.
    FileError
        The trace can't be read.
    """
    checked_demands(scenario)
    if progress is not None:
        checked_function("progress", progress)
    checked_whole("runs", runs, "a whole number from 1 to 1000000", at_least=1, at_most=1_000_000)
    checked_whole("first_run", first_run, "a whole number of at least 0")
    checked_jobs(n_jobs)
    checked_flag("watch", watch)
    if tcp := tcp_of(scenario):
        raise InvalidValue(
            "flows",
            f"{len(tcp)} demands of which senders carry the packets",
            "none in the fluid of demands; use the packet engine",
        )
    for link in scenario.links:
        if not isinstance(link.queue, DropTailQueue):
            takes = "droptail in the fluid of demands; use the packet engine for other queues"
            raise InvalidValue(f"links.{link.id}.queue.kind", link.queue.__struct_config__.tag, takes)
    ready = link_problem(scenario, law)
    routes = demand_routes(ready, ticks(scenario)) if scenario.per_demand else None
    lanes, last = LANES if routes is None else demand_lanes(routes), first_run + runs
    numbers = [range(start, min(start + lanes, last)) for start in range(first_run, last, lanes)]
    trace = scenario_trace(scenario)
    from joblib import Parallel, delayed

    blocks: list[LinkRuns] = []
    tasks = (
        delayed(_run_block)(scenario, ready, law, trace, block, watch and not i, routes)
        for i, block in enumerate(numbers)
    )
    for block in from_workers(Parallel(n_jobs=n_jobs, return_as="generator")(tasks)):
        blocks.append(block)
        if progress is not None:
            progress(len(blocks) / len(numbers))
    record = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "scipy", "numba"))
    count = scenario.steps - scenario.warmup_steps
    sums = np.concatenate([block.sums for block in blocks], axis=2).transpose(0, 2, 1) / count
    growth = np.concatenate([block.growth for block in blocks], axis=1).T
    interval, seconds = scenario.interval, count * scenario.interval
    rate, amount = seconds / BITS_PER_BYTE, interval / BITS_PER_BYTE
    flows = _demand_totals(blocks, interval)
    leaves = 1.0 - np.asarray(ready.model.coupling.sum(axis=0)).ravel()
    links = {
        "arrived": sums[ARRIVED] * rate,
        "departed": sums[DEPARTED] * rate,
        "lost": sums[LOST] * rate,
        "growth": growth * amount,
        "backlog": sums[WAITING] * amount,
        "rate_square": sums[RATE_SQUARE],
        "backlog_square": sums[WAITING_SQUARE],
    }
    ends = {
        "entered": np.concatenate([block.offered for block in blocks]) * amount,
        "left": flows["delivered"].sum(axis=1) if flows else sums[DEPARTED] @ leaves * rate,
    }
    watched = blocks[0].watched * np.array([amount, 1.0, amount])[:, None, None]
    counted, names = range(first_run, first_run + runs), ready.model.links
    return network_result(scenario, counted, names, ready.weight, links, ends, flows, watched, "fluid", record)


def _demand_totals(blocks: list[LinkRuns], interval: float) -> dict[str, np.ndarray]:
    """Totals of each demand, (R, I); empty where they aren't kept apart."""
    kept = [block.demands for block in blocks if block.demands is not None]
    if not kept:
        return {}
    offered, delivered, lost, age, growth = np.concatenate(kept, axis=1)
    delay = np.divide(age * interval, delivered, out=np.full_like(age, np.nan), where=delivered > 0.0)
    bytes_ = [each * (interval / BITS_PER_BYTE) for each in (offered, delivered, lost, growth)]
    return dict(zip(DEMAND_TOTALS, (*bytes_, delay), strict=True))


def _run_block(
    scenario: Scenario,
    ready: LinkProblem,
    law: LinkRateLaw | None,
    trace: RateTrace | None,
    numbers: range,
    watch: bool,
    routes: DemandRoutes | None,
) -> LinkRuns:
    source = DemandSource(scenario, numbers, trace=trace)
    if not messages_of(scenario.control).ideal or len(ready.prices.link):
        return run_with_messages(scenario, ready, law, source, numbers, watch, routes)
    state = link_state(ready, len(numbers))
    fluid = None if routes is None else demand_fluid(ready, routes, len(numbers))
    N, steps, warmup = ready.model.n_links, scenario.steps, scenario.warmup_steps
    watched = np.zeros((3, N, steps if watch else 0))
    chunk = max(1, _CHUNK // (8 * len(ready.network.demands) * len(numbers)))
    before, held = np.zeros((N, len(numbers))), None
    slots = state.history.shape[1]
    step = 0
    while step < steps:
        end = warmup if step < warmup else steps
        demand = source.draw(min(chunk, end - step))
        if step == warmup:
            before = state.history[N : 2 * N, step % slots].copy()
            held = None if fluid is None else demand_contents(fluid, step)
        advance_links(ready.plant, ready.taps, *ready.tiles, state, demand, step, warmup, watched, fluid)
        step += len(demand)
    sums = state.sums[:, :, : len(numbers)].transpose(1, 0, 2)
    demands = None if fluid is None else demand_sums(fluid, held, steps)
    return LinkRuns(sums, state.history[N : 2 * N, step % slots] - before, state.offered, watched, demands)
