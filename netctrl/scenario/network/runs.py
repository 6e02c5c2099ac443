"""Figures of single runs of a network on packets, and the result of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.model.io.provenance import Provenance
from netctrl.scenario.network.demand_result import DemandResult
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.result import NetworkResult, TcpResult
from netctrl.scenario.network.routed import tcp_of
from netctrl.scenario.network.trace_window import scenario_trace, traffic_samples
from netctrl.scenario.scenario import Scenario

__all__ = ["RunFigures", "network_result"]


class RunFigures(NamedTuple):
    """Figures of one run after the warm-up; fields of NetworkResult without the runs."""

    offered_bytes: float
    delivered_bytes: float
    arrived_bytes: np.ndarray
    departed_bytes: np.ndarray
    lost_bytes: np.ndarray
    growth_bytes: np.ndarray
    backlog_bytes: np.ndarray
    rate_square: np.ndarray
    backlog_square: np.ndarray
    tcp: np.ndarray
    """(3, M) goodput [bit/s], mean round trip [s] and share that was sent again."""
    demands: np.ndarray
    """(5, I) fields of DemandResult."""
    watched: np.ndarray
    """(3, N, T) time series from the very beginning; T = 0: none."""


_PER_RUN = RunFigures._fields[:-3]


def network_result(
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    found: Sequence[RunFigures],
    simulator: str,
    provenance: Provenance,
) -> NetworkResult:
    """Result of all runs.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
    runs : range
        Numbers of the runs.
    found : sequence of RunFigures
        Figures of each run; the first one's time series are kept.
    simulator : str
        Name of the engine.
    provenance : Provenance
    """
    by_name = {link.id: link for link in plan.network.links}
    table = {name: np.array([getattr(each, name) for each in found]) for name in _PER_RUN}
    goodput, round_trip, again = np.array([each.tcp for each in found]).transpose(1, 0, 2)
    offered, delivered, lost, growth, delay = np.array([each.demands for each in found]).transpose(1, 0, 2)
    with_tcp, watched = bool(tcp_of(scenario)), found[0].watched
    return NetworkResult(
        scenario=scenario,
        simulator=simulator,
        links=plan.links,
        capacity_bit_per_s=np.array([by_name[name].capacity for name in plan.links]),
        weight=plan.weight,
        seconds=(scenario.steps - scenario.warmup_steps) * scenario.interval,
        sample=traffic_samples(scenario, runs, scenario_trace(scenario)),
        **table,
        watched_time_s=scenario.interval * np.arange(1, watched.shape[2] + 1),
        watched=watched,
        provenance=provenance,
        tcp=TcpResult(goodput_bit_per_s=goodput, round_trip_s=round_trip, retransmission_ratio=again)
        if with_tcp
        else None,
        demands=None
        if with_tcp
        else DemandResult(
            offered_bytes=offered, delivered_bytes=delivered, lost_bytes=lost, growth_bytes=growth, delay_s=delay
        ),
    )
