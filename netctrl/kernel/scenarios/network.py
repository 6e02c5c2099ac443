"""Runs of scenarios under demands for the kernel, and their figures.

Demands are UDP packets, each of which leaves as soon as its bytes have accumulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.units import MICROSECOND, NANOSECOND
from netctrl.kernel.plan import ARRIVAL, TRANSFER, Answer
from netctrl.kernel.scenarios.link_control import rater_task
from netctrl.kernel.scenarios.planner import KernelPlan, payload_share, plan_scenario
from netctrl.kernel.scenarios.rater import RaterTask
from netctrl.kernel.scenarios.result import joined, simulation_result
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.network.plan import FlowLinks, LinkPlan, RunDraws
from netctrl.scenario.network.policy import Controlled, CreditPolicy, StaticPacing
from netctrl.scenario.network.runs import RunFigures, run_figures, tcp_of
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import FlowDraw


class NetworkRun(NamedTuple):
    """One run, ready for the kernel."""

    scenario: Scenario
    """With the run's seed."""
    plan: KernelPlan
    task: RaterTask | None
    """Task of the program that sets rates; None: they don't change."""


def network_run(scenario: Scenario, plan: LinkPlan, draws: RunDraws, flows: Sequence[FlowDraw]) -> NetworkRun:
    """A run's plan.

    Parameters
    ----------
    scenario : Scenario
        Under demands alone, with the run's seed.
    plan : LinkPlan
    draws : RunDraws
        Rates of demands, moments and messages (`netctrl.sim.network.plan.run_draws`).
    flows : sequence of FlowDraw
        Flows of each group, unmerged.
    """
    rates, control, policy = {}, None, scenario.control
    if isinstance(policy, StaticPacing):
        desired = zip(plan.links, (policy.factor * plan.nominal).tolist(), plan.paced, strict=True)
        rates = {name: rate for name, rate, paced in desired if paced}
    if isinstance(policy, Controlled | CreditPolicy):
        place = np.array([scenario.link_ids.index(name) for name in plan.links])
        control = FlowLinks(plan, place, draws, scenario.interval, scenario.steps)
    demands = {flow.id: draws.rates[:, [i]] for i, flow in enumerate(scenario.flows)}
    made = plan_scenario(scenario, flows, demands=demands, rates=rates, control=control)
    return NetworkRun(scenario, made, None if control is None else rater_task(control, scenario, made.places))


def network_figures(
    plan: LinkPlan,
    run: NetworkRun,
    results: Sequence[tuple[int, bytes]],
    version: str,
    provenance: Provenance,
    watched: int = 0,
) -> RunFigures:
    """Figures of the time after the warm-up from a run's readings; time series of `watched` intervals.

    Raises
    ------
    NetctrlError
        Readings are missing.
    """
    scenario = run.scenario
    found = simulation_result(scenario, run.plan, results, version, provenance)
    rows = [scenario.link_ids.index(name) for name in plan.links]
    series = {name: found.series[name][rows] for name in ("backlog", "arrived", "departed", "lost")}
    demands = _demands(run, results)
    tcp, sent, acked = _tcp(run, results)
    ends = float(demands[0].sum() + sent), float(demands[1].sum() + acked)
    return run_figures(scenario, plan, series, ends, tcp, demands, watched)


def _demands(run: NetworkRun, results: Sequence[tuple[int, bytes]]) -> np.ndarray:
    """(5, I) `DEMAND_TOTALS`.

    Packets of a stream don't overtake each other: one that didn't come is lost where a later one came, else it may
    be on its way.
    """
    scenario = run.scenario
    rows = joined(results, Answer.ARRIVALS, ARRIVAL)
    rows = rows[rows["at_ns"] * NANOSECOND <= scenario.duration]
    size, since = scenario.packet_size, scenario.warmup_steps * scenario.interval
    offered, delivered, lost, delay = np.zeros((4, len(scenario.flows)))
    for stream, (i, times) in enumerate(run.plan.streams):
        mine = rows[rows["stream"] == stream]
        at, numbers = mine["at_ns"] * NANOSECOND, mine["number"].astype(int)
        came = np.zeros(len(times), dtype=bool)
        came[numbers] = True
        last = numbers.max(initial=-1)
        offered[i] += size * (times >= since).sum()
        delivered[i] += size * (at >= since).sum()
        lost[i] += size * (~came & (times >= since) & (np.arange(len(times)) < last)).sum()
        delay[i] += size * (at - times[numbers])[at >= since].sum()
    delay = np.divide(delay, delivered, out=np.full(len(delay), np.nan), where=delivered > 0.0)
    return np.stack([offered, delivered, lost, offered - delivered - lost, delay])


def _tcp(run: NetworkRun, results: Sequence[tuple[int, bytes]]) -> tuple[np.ndarray, float, float]:
    """(4, M) `TCP_TOTALS`, and the bytes of packets that all of TCP sent and had acknowledged."""
    scenario = run.scenario
    rows = joined(results, Answer.TRANSFER, TRANSFER)
    since = scenario.warmup_steps * scenario.interval
    found, total = [], np.zeros(2)
    for each in tcp_of(scenario):
        grown, trips = np.zeros(3), [np.zeros(0)]
        for flow, group in enumerate(run.plan.flows):
            if scenario.flows[group] is each:
                mine = rows[rows["flow"] == flow]
                at = mine["at_ns"] * NANOSECOND
                for column, name in enumerate(("acked", "sent", "resent")):
                    values = mine[name].astype(float)
                    if len(values):
                        grown[column] += values[-1] - values[at <= since * (1.0 + 1e-12)].max(initial=0.0)
                trips += [mine["rtt_us"][(at > since) & (mine["rtt_us"] > 0)] * MICROSECOND]
        trip = np.concatenate(trips)
        acked, sent, again = grown
        total += sent, acked
        found.append((acked, float(trip.mean()) if len(trip) else 0.0, sent, again))
    sent, acked = total / payload_share(scenario.packet_size)
    return np.array(found).reshape(-1, 4).T, float(sent), float(acked)
