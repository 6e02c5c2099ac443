"""Run scenarios in the fluid: one with its progress, or many in blocks on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from pathlib import Path

import numpy as np

from netctrl.core.errors import InvalidValue, checked_function, checked_jobs, checked_whole, from_workers
from netctrl.model.design.design import Provenance, provenance
from netctrl.scenario.links import Links
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.scenario.tcp_aqm.flows import FlowDraw
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.sim.fluid.droptail import simulate_one_line
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.lacks import has_pacers, is_one_line
from netctrl.sim.fluid.paced import simulate_paced
from netctrl.sim.fluid.problem import Problem, longer_history, problem
from netctrl.sim.fluid.traffic import draw_flows, fluid_flows
from netctrl.sim.fluid.web import PathHistory, WebLoad, response_times, web_load

Progress = Callable[[float], None]

_LINKS = "backlog", "arrived", "departed", "lost", "marked", "probability"
_CHUNK = 4_000_000  # class-steps between calls of progress


def simulate(
    scenario: Scenario, *, progress: Progress | None = None, argv: Iterable[str] = (), inputs: Iterable[Path] = ()
) -> Result:
    """Run one scenario in the fluid.

    Parameters
    ----------
    scenario : Scenario
        Its seed determines round-trip times, starts, web sessions, and whose packets a drop-tail queue loses.
    progress : callable, optional
        Called repeatedly with the completed share, from 0 to 1.
    argv, inputs : iterable of str and of Path
        The command line and the files that were read, for the provenance.

    Raises
    ------
    InvalidValue
        A scenario that the fluid doesn't support (see `netctrl.sim.fluid.problem.problem`).
    """
    checked_network(scenario, Links)
    if progress is not None:
        checked_function("progress", progress)
    made = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    return _simulate(scenario, made, progress)


def simulate_many(
    scenarios: Sequence[Scenario], *, n_jobs: int = 1, batch_size: int = 1, progress: Progress | None = None
) -> list[Result]:
    """Run scenarios in blocks of `batch_size` on `n_jobs` processes (−1: all cores); results as of `simulate`.

    Raises
    ------
    InvalidValue
        As `simulate`, or a batch size below 1.
    """
    checked_whole("batch_size", batch_size, "a whole number of at least 1", at_least=1)
    checked_jobs(n_jobs)
    if not (isinstance(scenarios, Sequence) and all(isinstance(each, Scenario) for each in scenarios)):
        raise InvalidValue("scenarios", scenarios, "a sequence of Scenario")
    if progress is not None:
        checked_function("progress", progress)
    from joblib import Parallel, delayed

    blocks = [scenarios[i : i + batch_size] for i in range(0, len(scenarios), batch_size)]
    results: list[Result] = []
    tasks = (delayed(_block)(block) for block in blocks)
    for block in from_workers(Parallel(n_jobs=n_jobs, return_as="generator")(tasks)):
        results += block
        if progress is not None:
            progress(len(results) / len(scenarios))
    return results


def class_steps(scenario: Scenario) -> int:
    """Number of steps times classes of a run, a measure of its work."""
    ready = problem(scenario)
    return ready.steps * len(ready.plant.rtt)


def _block(scenarios: Sequence[Scenario]) -> list[Result]:
    return [simulate(scenario) for scenario in scenarios]


def _simulate(scenario: Scenario, made: Provenance, progress: Progress | None) -> Result:
    if has_pacers(scenario):
        return simulate_paced(scenario, made)
    if is_one_line(scenario):
        return simulate_one_line(scenario, made, progress)
    draws = draw_flows(scenario)
    ready = problem(scenario, draws)
    loads = _web_loads(scenario, draws)
    ready = _advance(ready, list(loads.values()), progress)
    time = scenario.interval * np.arange(1, ready.record.links.shape[2] + 1)
    responses = [_responses(scenario, ready, group, load, time) for group, load in loads.items()]
    links = _whole_links(ready) * np.array([scenario.packet_size] * 5 + [1.0])[:, None, None]
    start, size, duration = (np.concatenate([r[k] for r in responses] or [np.zeros(0)]) for k in range(3))
    flow = np.repeat(np.array(list(loads), dtype=np.int64), [len(each[0]) for each in responses])
    return Result.of_series(
        scenario,
        "fluid",
        made,
        links=dict(zip(_LINKS, links, strict=True)),
        flows=fluid_flows(scenario, ready.record.groups[0], _round_trips(ready, draws)),
        tables={"transfers": {"flow": flow, "start": start, "size": size, "duration": duration}},
    )


def _whole_links(ready: Problem) -> np.ndarray:
    """Records of links, both queues of one together; probabilities are the C queue's."""
    rows, pair = ready.record.links, ready.state.pairs.pair
    count = len(pair) - len(ready.state.pairs.base)
    links = rows[:, :count].copy()
    links[:5, pair[:count] >= 0] += rows[:5, count:]
    return links


def _round_trips(ready: Problem, draws: Sequence[FlowDraw]) -> np.ndarray:
    """Mean round-trip times of groups with queueing [s]; 0 while nothing arrives."""
    delivered, delay, _ = ready.record.groups
    base = np.array([np.average(draw.rtt_s, weights=draw.flows) for draw in draws])
    return np.where(delivered > 0.0, base[:, None] + delay, 0.0)


def _advance(ready: Problem, loads: Sequence[WebLoad], progress: Progress | None) -> Problem:
    """Run the kernel to the end, in chunks, with a longer history where needed."""
    plant, state, record, steps = ready
    chunk = max(1000, ceil(_CHUNK / max(len(plant.rtt), 1)))
    step = 0
    while step < steps:
        last = min(step + chunk, steps)
        injected = np.array([load.injected(plant.step, step, last) for load in loads]).reshape(len(loads), last - step)
        step = advance(plant, state, record, injected, step, last)
        if step < last:
            state = longer_history(state, step)
        elif progress is not None:
            progress(step / steps)
    return Problem(plant, state, record, steps)


def _web_loads(scenario: Scenario, draws: Sequence[FlowDraw]) -> dict[int, WebLoad]:
    """What each web group sends, by the group's number; each has a random stream of its own."""
    streams = np.random.SeedSequence(scenario.seed, spawn_key=(len(scenario.flows),)).spawn(len(scenario.flows))
    return {
        g: web_load(group, draws[g], scenario, np.random.default_rng(streams[g]))
        for g, group in enumerate(scenario.flows)
        if isinstance(group.offers, Web)
    }


def _responses(
    scenario: Scenario, ready: Problem, group: int, load: WebLoad, time: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, size and response time of a group's objects, from the links' time series."""
    plant, links = ready.plant, ready.record.links
    path = plant.hops[plant.first_hop[group] : plant.first_hop[group + 1]]
    _, delay, forward = ready.record.groups[:, group]
    arrived, lost, p = links[1, path], links[3, path], links[5, path]
    share = np.divide(lost, arrived, out=np.zeros_like(lost), where=arrived > 0.0)
    kept = np.prod(1.0 - np.minimum(share, 1.0), axis=0)
    refused = 1.0 - np.prod(1.0 - p, axis=0)
    history = PathHistory(time, delay, forward, 1.0 - kept, refused)
    return load.start_s, load.size_bytes, response_times(load, scenario, history)
