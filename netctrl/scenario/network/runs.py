"""Figures of single runs of a network under demands, and the result of all runs.

Runs under a trace play disjoint windows of it, so that they count as independent samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.io.provenance import Provenance
from netctrl.model.trace import RateTrace, read_trace
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.routed import demands_of, tcp_of
from netctrl.scenario.network.traffic import TraceTraffic
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario


def scenario_trace(scenario: Scenario) -> RateTrace | None:
    """The trace that a scenario's demands send, over its interval; None where its traffic is drawn.

    Raises
    ------
    FileError
        The trace can't be read.
    """
    spread = demands_of(scenario).spread
    if not isinstance(spread, TraceTraffic):
        return None
    return read_trace(spread.file, interval_s=scenario.interval)


def window_starts(rows: int, steps: int) -> np.ndarray:
    """First rows of the disjoint windows of `steps` rows in a trace of `rows`, shape (W,), W = max(1, ⌊rows/steps⌋).

    They are evenly spaced, the first at row 0. A run that is longer than the trace repeats it: W = 1.
    """
    windows = max(1, rows // steps)
    return np.arange(windows) * (rows // windows)


def traffic_samples(scenario: Scenario, runs: Sequence[int], trace: RateTrace | None) -> np.ndarray:
    """Index of the independent sample of the traffic in each run, shape (R,).

    Where traffic is drawn each run is a sample. For a trace, run r plays window r mod W of `window_starts`, so more
    runs than windows are no additional samples.
    """
    numbers = np.asarray(runs, dtype=np.int64)
    return numbers if trace is None else numbers % len(window_starts(len(trace.rate_bit_per_s), scenario.steps))


TCP_TOTALS = ("payload", "rtt", "sent", "resent")
DEMAND_TOTALS = ("offered", "delivered", "flow_lost", "flow_growth", "one_way")
_WATCHED = ("backlog", "departed", "lost")


class RunFigures(NamedTuple):
    """Figures of one run after the warm-up, as in `netctrl.scenario.labelled.QUANTITIES`."""

    entered: float
    left: float
    arrived: np.ndarray
    """(N,), as the five below."""
    departed: np.ndarray
    lost: np.ndarray
    growth: np.ndarray
    backlog: np.ndarray
    rate_square: np.ndarray
    backlog_square: np.ndarray
    tcp: np.ndarray
    """(4, M) `TCP_TOTALS` of the M demands that are TCP."""
    demands: np.ndarray
    """(5, I) `DEMAND_TOTALS`."""
    watched: np.ndarray
    """(3, N, T) backlog [byte], rate [bit/s] and loss [byte] of each interval from the very beginning; T = 0: none."""


def runs_result(
    scenario: Scenario, plan: LinkPlan, runs: range, found: Sequence[RunFigures], simulator: str, provenance: Provenance
) -> Result:
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
    table = {name: np.array([getattr(each, name) for each in found]) for name in RunFigures._fields[:-3]}
    names, part = (TCP_TOTALS, "tcp") if tcp_of(scenario) else (DEMAND_TOTALS, "demands")
    flows = dict(zip(names, np.array([getattr(each, part) for each in found]).transpose(1, 0, 2), strict=True))
    ends = {name: table.pop(name) for name in ("entered", "left")}
    return network_result(
        scenario, runs, plan.links, plan.weight, table, ends, flows, found[0].watched, simulator, provenance
    )


def network_result(
    scenario: Scenario,
    runs: range,
    names: tuple[str, ...],
    weight: np.ndarray | None,
    links: Mapping[str, np.ndarray],
    ends: Mapping[str, np.ndarray],
    flows: Mapping[str, np.ndarray],
    watched: np.ndarray,
    simulator: str,
    provenance: Provenance,
) -> Result:
    """Result of R runs of a network with N controlled links.

    Parameters
    ----------
    scenario : Scenario
    runs : range
        Numbers of the runs.
    names : tuple of str
        Ids of the links, (N,).
    weight : ndarray, shape (N,), or None
        Weights mu_l of the cost.
    links : dict
        Quantity -> totals of links after the warm-up, shape (R, N).
    ends : dict
        Bytes that `entered` the network, and `left` it, shape (R,).
    flows : dict
        Quantity -> totals of the demands, or where there is TCP of the demands that are TCP, shape (R, I).
    watched : ndarray, shape (3, N, T)
        As in `RunFigures`, of the first run.
    simulator : str
    provenance : Provenance
    """
    graph = scenario.network.graph
    known = {link.id: link.capacity for link in graph.links}
    tcp = tcp_of(scenario)
    ids = tuple(each.demand for each in tcp) if tcp else tuple(demand.id for demand in graph.demands)
    totals: dict[str, tuple[tuple[str, ...], np.ndarray]]
    totals = {name: (("run", "link"), array) for name, array in links.items()}
    totals |= {name: (("run",), array) for name, array in ends.items()}
    totals |= {name: (("run", "flow"), array) for name, array in flows.items()}
    totals["sample"] = ("run",), traffic_samples(scenario, runs, scenario_trace(scenario))
    totals["capacity"] = ("link",), np.array([known[name] for name in names])
    if weight is not None:
        totals["weight"] = ("link",), weight
    scale = np.array([1.0, scenario.interval / BITS_PER_BYTE, 1.0])[:, None, None]
    series = {name: (("link", "time"), array) for name, array in zip(_WATCHED, watched * scale, strict=True)}
    time = scenario.interval * np.arange(1, watched.shape[2] + 1)
    start = scenario.warmup_steps * scenario.interval
    return Result(
        scenario=scenario,
        simulator=simulator,
        provenance=provenance,
        span=(start, scenario.steps * scenario.interval),
        totals=Labelled({"run": tuple(runs), "link": names, "flow": ids if flows else ()}, totals),
        series=Labelled({"link": names, "time": time}, series if len(time) else {}),
    )
