"""Scenarios under demands on packets, many times: what each run draws, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_function
from netctrl.model.io.provenance import provenance
from netctrl.scenario.network.plan import FlowLinks, LinkPlan, RunDraws
from netctrl.scenario.network.runs import RunFigures, run_figures, run_many
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario, checked_demands
from netctrl.sim.network.plan import run_draws
from netctrl.sim.packet.lacks import network_lacks
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_to
from netctrl.sim.packet.senders.receiver import HEADERS
from netctrl.sim.packet.state import FLOW, META

_NS = 1e9

Progress = Callable[[float], None]


def simulate_network_packets(
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    *,
    sampled_delays: bool = False,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
    """Run a scenario under demands packet by packet, many times.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
        Its routes and its law (`netctrl.sim.network.plan.link_plan`).
    runs : range
        Numbers of the runs; run r has the demands and messages of run r in the fluid and in ns-3.
    sampled_delays : bool
        Delay what each link sends as the sampled model does, n_l + 1 intervals, instead of by its propagation delay.
    n_jobs, watch, progress
        As for `netctrl.scenario.network.runs.run_many`.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Raises
    ------
    InvalidValue
        What the engine doesn't have, or can't hold.
    FileError
        The scenario's trace can't be read.
    """
    checked_demands(scenario)
    if progress is not None:
        checked_function("progress", progress)
    missing = network_lacks(scenario)
    if missing is not None:
        raise InvalidValue("scenario", missing, "what the packet engine has")
    for link in scenario.links:
        if link.buffer is not None and link.buffer < scenario.packet_size:
            takes = f"{scenario.packet_size:g} bytes (a packet) or more, or null"
            raise InvalidValue(f"links.{link.id}.buffer", link.buffer, takes)
    played = _with_sampled_delays(scenario, plan) if sampled_delays else scenario
    origin = provenance(argv=argv, seed=scenario.seed, inputs=inputs, libraries=("numpy", "numba"))
    draws, one = run_draws(scenario, plan, runs), partial(_run, plan)
    return run_many(played, plan, runs, draws, one, "packet", origin, n_jobs=n_jobs, watch=watch, progress=progress)


def _with_sampled_delays(scenario: Scenario, plan: LinkPlan) -> Scenario:
    delay = dict(zip(plan.links, ((plan.delay + 1) * scenario.interval).tolist(), strict=True))
    links = (msgspec.structs.replace(link, delay=delay.get(link.id, link.delay)) for link in scenario.links)
    flows = (msgspec.structs.replace(flow, rtt=(0.0, 0.0)) for flow in scenario.flows)  # that of the links
    return scenario.replace(links=tuple(links), flows=tuple(flows))


def _run(plan: LinkPlan, scenario: Scenario, draws: RunDraws, watched: int) -> RunFigures:
    """One run, in which demands send what is drawn."""
    rows = {link.id: row for row, link in enumerate(scenario.links)}
    place = np.array([rows[name] for name in plan.links])
    control = FlowLinks(plan, place, draws, scenario.interval, scenario.steps) if plan.paced.any() else None
    rates = {flow.id: draws.rates[:, [i]] for i, flow in enumerate(scenario.flows)}
    ready = packet_problem(scenario, control, rates)
    window = float(scenario.initial_window)
    state = run_to(ready, ready.state, window, round(scenario.warmup_steps * scenario.interval * _NS))
    flow, offered, delivered = state.flow.copy(), *_ends(state.meta)
    state = run_to(ready, state, window, ready.end)
    entered, left = _ends(state.meta)
    backlog, *counted = state.series[:4, place]
    arrived, departed, lost = np.diff(counted, prepend=0.0, axis=2)
    grown, groups, size = state.flow - flow, state.flow[:, FLOW["group"]], ready.full
    by_flow = np.array([grown[groups == g].sum(axis=0) for g in range(len(scenario.flows))])
    return run_figures(
        scenario,
        plan,
        {"backlog": backlog, "arrived": arrived, "departed": departed, "lost": lost},
        (entered - offered, left - delivered),
        _tcp(by_flow[[flow.answered for flow in scenario.flows]], size),
        _demands(by_flow, size),
        watched,
    )


def _ends(meta: np.ndarray) -> tuple[float, float]:
    """What was sent into the network and came out of it [byte]."""
    return float(meta[META["offered"]]), float(meta[META["delivered"]])


def _demands(grown: np.ndarray, size: int) -> np.ndarray:
    """(5, I) `DEMAND_TOTALS`, from what the demands' rows grew by."""
    sent, received, lost, delays = grown[:, [FLOW[name] for name in ("sent", "received", "dropped", "delays")]].T
    offered, delivered = size * sent, size * received
    delay = np.divide(delays / _NS, received, out=np.full(len(grown), np.nan), where=received > 0)
    return np.array([offered, delivered, lost, offered - delivered - lost, delay])


def _tcp(grown: np.ndarray, size: int) -> np.ndarray:
    """(4, M) `TCP_TOTALS`, from what the rows of TCP's flows grew by."""
    names = ("received", "rtt_sum", "rtt_count", "sent", "again")
    received, trips, count, sent, again = grown[:, [FLOW[name] for name in names]].T.astype(float)
    payload = size - HEADERS
    return np.array([received, trips / np.maximum(count, 1.0) / _NS, payload * sent, payload * again])
