"""Figures of single runs of a network under demands, and the result of all runs.

Runs under a trace play disjoint windows of it, so that they count as independent samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import checked_jobs
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.io.provenance import Provenance
from netctrl.model.trace import RateTrace, read_trace
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.traffic import GaussianTraffic, Spread, TraceTraffic
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow


def tcp_of(scenario: Scenario) -> tuple[Flow, ...]:
    """Flows in the place of demands, in the scenario's order."""
    return tuple(flow for flow in scenario.flows if flow.answered)


def spread_of(scenario: Scenario) -> Spread:
    """Distribution of the rates of a scenario's demands."""
    return next((flow.offers.spread for flow in scenario.flows if not flow.answered), GaussianTraffic())


def scenario_trace(scenario: Scenario) -> RateTrace | None:
    """The trace that a scenario's demands send, over its interval; None where its traffic is drawn.

    Raises
    ------
    FileError
        The trace can't be read.
    """
    spread = spread_of(scenario)
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


def run_figures(
    scenario: Scenario,
    plan: LinkPlan,
    links: Mapping[str, np.ndarray],
    ends: tuple[float, float],
    tcp: np.ndarray,
    demands: np.ndarray,
    watched: int,
) -> RunFigures:
    """Figures of one run from its time series.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
    links : dict
        Series of the plan's links in all intervals, (N, T): backlog at their ends, and what `arrived`, `departed` and
        was `lost` in them [byte].
    ends : tuple of float
        What entered the network after the warm-up, and left it [byte].
    tcp : ndarray, shape (4, M)
        `TCP_TOTALS`.
    demands : ndarray, shape (5, I)
        `DEMAND_TOTALS`.
    watched : int
        Intervals whose series are kept.
    """
    since, per_interval = scenario.warmup_steps, BITS_PER_BYTE / scenario.interval
    backlog, rate, waiting = links["backlog"], per_interval * links["departed"], per_interval * links["backlog"]
    return RunFigures(
        entered=ends[0],
        left=ends[1],
        **{name: links[name][:, since:].sum(axis=1) for name in ("arrived", "departed", "lost")},
        growth=backlog[:, -1] - (backlog[:, since - 1] if since else 0.0),
        backlog=backlog[:, since:].mean(axis=1),
        rate_square=np.square(rate - plan.nominal[:, None])[:, since:].mean(axis=1),
        backlog_square=np.square(waiting - plan.law.setpoint)[:, since:].mean(axis=1),
        tcp=tcp,
        demands=demands,
        watched=np.stack([backlog, rate, links["lost"]])[:, :, :watched],
    )


def run_many(
    scenario: Scenario,
    plan: LinkPlan,
    runs: range,
    draws: Iterable[Any],
    one: Callable[[Scenario, Any, int], RunFigures],
    simulator: str,
    provenance: Provenance,
    *,
    n_jobs: int = 1,
    watch: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Result of all runs, each in a thread.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
    runs : range
        Numbers of the runs.
    draws : iterable
        What each run draws by its number (`netctrl.sim.network.plan.run_draws`).
    one : callable
        Runs the scenario, to whose seed the run's number is added, with its draws; last, how many intervals' series it
        keeps.
    simulator : str
        Name of the engine.
    provenance : Provenance
    n_jobs : int
        Runs at a time, -1: one for each core.
    watch : bool
        Keep the first run's time series.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.

    Raises
    ------
    InvalidValue
        A number that isn't one of processes.
    """
    from joblib import Parallel, delayed

    checked_jobs(n_jobs)
    found: list[RunFigures] = []
    tasks = (
        delayed(one)(
            scenario.replace(seed=(scenario.seed + run) % 2**32),
            drawn,
            scenario.steps if watch and run == runs[0] else 0,
        )
        for run, drawn in zip(runs, draws, strict=True)
    )
    for each in Parallel(n_jobs, prefer="threads", return_as="generator")(tasks):
        found.append(each)
        if progress is not None:
            progress(len(found) / len(runs))
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
    known = {link.id: link.capacity for link in scenario.links}
    ids = tuple(flow.id for flow in tcp_of(scenario) or scenario.flows)
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
