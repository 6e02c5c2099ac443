"""Fluid of a network kept by demand: routes, initial state and results."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import InvalidValue
from netctrl.sim.network.demand_kernel import AGE, AMOUNT, DELIVERED_AGE, DemandFluid, DemandRoutes, DemandState
from netctrl.sim.network.kernel import LANES
from netctrl.sim.network.problem import LinkProblem, power_of_2

_BATCHES = 64
"""At each link, at most; where more wait neighbours are joined."""
_MAX_BLOCK = 2**28  # bytes of parallel runs
_MAX_RUN = 2**31  # bytes of one run


def demand_routes(ready: LinkProblem, ticks: int = 1) -> DemandRoutes:
    """Links of each demand with their shares; a step is one of `ticks` of an interval."""
    network, model = ready.network, ready.model
    row = {name: k for k, name in enumerate(model.links)}
    by_name = {link.id: link for link in network.links}
    links = [by_name[name] for name in model.links]
    split = ready.routes.split[[k for k, link in enumerate(network.links) if link.id in row]].tocsr()
    split.sort_indices()
    link, demand = np.repeat(np.arange(len(links)), np.diff(split.indptr)), split.indices
    leaving: dict[tuple[str, int], list[int]] = {}
    for pair, (k, i) in enumerate(zip(link.tolist(), demand.tolist(), strict=True)):
        leaving.setdefault((links[k].source, i), []).append(pair)
    feeds = [
        (pair, feeding, split.data[pair])
        for feeding, (k, i) in enumerate(zip(link.tolist(), demand.tolist(), strict=True))
        for pair in leaving.get((links[k].target, i), ())
    ]
    fed, by, share = np.array(feeds, dtype=float).reshape(-1, 3).T
    matrix = sp.csr_array((share, (fed.astype(int), by.astype(int))), shape=(len(link), len(link)))
    sources = np.array([each.source for each in network.demands])[demand]
    tails = np.array([each.source for each in links])[link]
    return DemandRoutes(
        first=split.indptr.astype(np.int64),
        demand=demand.astype(np.int64),
        fed_start=matrix.indptr.astype(np.int64),
        fed_by=matrix.indices.astype(np.int64),
        fed_share=matrix.data,
        fed_lag=(model.delay[link[matrix.indices]] + 1) * ticks,
        enters=np.where(sources == tails, split.data, 0.0),
        ends=1.0 - np.asarray(matrix.sum(axis=0)).ravel(),
        propagation=np.array([each.delay for each in links]) * (ticks / model.interval_s),
    )


def demand_lanes(routes: DemandRoutes) -> int:
    """Number of parallel runs that fit into memory.

    Raises
    ------
    InvalidValue
        A single run doesn't fit.
    """
    size = 2 * 8 * len(routes.demand) * (_slots(routes) + _BATCHES)
    if size > _MAX_RUN:
        got = f"{len(routes.demand)} pairs of a link and a demand and delays of {routes.fed_lag.max(initial=1)} steps"
        takes = f"false for this network: fluid by demand would take {size / 2**30:.1f} GiB per run"
        raise InvalidValue("per_demand", got, takes)
    return min(max(_MAX_BLOCK // size, 1), LANES)


def demand_fluid(ready: LinkProblem, routes: DemandRoutes, runs: int, ticks: int = 1) -> DemandFluid:
    """All links at their initial rates, with the backlog setpoint, in the demands' nominal shares.

    The ages are those of a steady state.
    """
    N, P, slots = ready.model.n_links, len(routes.demand), _slots(routes)
    link, setpoint = np.repeat(np.arange(N), np.diff(routes.first)), ready.plant.backlog_setpoint
    by_pair = ready.routes.rate[ready.routes.load > 0.0]
    by_pair.sort_indices()
    rate = by_pair.data
    onward = sp.csr_array((routes.fed_share, routes.fed_by, routes.fed_start), shape=(len(link), len(link)))
    arrives = routes.enters * np.array([each.mean for each in ready.network.demands])[routes.demand] + onward @ rate
    waits = setpoint * ticks / ready.initial_rate
    hop = (waits + routes.propagation)[link]
    age, more = hop, hop  # at the link's end: routes have no circles
    while more.any():
        more = (onward @ (rate * more)) / arrives
        age = age + more
    share = rate / ready.plant.nominal[link]
    sent, batch = np.zeros((runs, slots, 2, P)), np.zeros((runs, _BATCHES, 2, P))
    sent[:, :, AMOUNT] = share * ready.initial_rate[link] / ticks
    sent[:, :, AGE] = sent[:, :, AMOUNT] * age
    batch[:, 0, AMOUNT] = share * setpoint
    batch[:, 0, AGE] = batch[:, 0, AMOUNT] * (age - hop + _waited(waits)[link])
    return DemandFluid(
        routes,
        DemandState(
            sent=sent,
            batch=batch,
            head=np.zeros((runs, N), dtype=np.int64),
            count=np.full((runs, N), int(setpoint > 0.0)),
            arriving=np.zeros((runs, 2, P)),
            sums=np.zeros((runs, 4, len(ready.network.demands))),
        ),
    )


def demands_of_run(fluid: DemandFluid, run: int) -> DemandFluid:
    """One run of the fluid, whose state is changed in place."""
    return DemandFluid(fluid.routes, DemandState(*(array[run : run + 1] for array in fluid.state)))


def demand_sums(fluid: DemandFluid, before: np.ndarray | None, steps: int, ticks: int = 1) -> np.ndarray:
    """Sums of R runs with I demands, shape (5, R, I): see `netctrl.sim.network.problem.LinkRuns`.

    `before` is `demand_contents` when counting began.
    """
    sums = fluid.state.sums.transpose(1, 0, 2).copy()
    sums[DELIVERED_AGE] /= ticks
    return np.concatenate([sums, [demand_contents(fluid, steps, ticks) - before]])


def demand_contents(fluid: DemandFluid, steps: int, ticks: int = 1) -> np.ndarray:
    """Backlog and traffic in flight of each demand after some intervals, shape (R, I)."""
    routes, state, step = fluid.routes, fluid.state, steps * ticks
    found = state.batch[:, :, AMOUNT].sum(axis=1)
    for lag in np.unique(routes.fed_lag):
        chosen = routes.fed_lag == lag
        slots = np.arange(step - lag, step) & (state.sent.shape[1] - 1)
        onward = np.bincount(routes.fed_by[chosen], routes.fed_share[chosen], minlength=found.shape[1])
        found += onward * state.sent[:, slots, AMOUNT].sum(axis=1)
    by_demand = sp.csr_array(
        (np.ones(len(routes.demand)), (np.arange(len(routes.demand)), routes.demand)),
        shape=(len(routes.demand), state.sums.shape[2]),
    )
    return found @ by_demand


def _slots(routes: DemandRoutes) -> int:
    return power_of_2(int(routes.fed_lag.max(initial=0)) + 1)


def _waited(waits: np.ndarray) -> np.ndarray:
    """Mean age of what waits at a link where all of it waits this many steps: n(n − 1)/2 + n(w − n + 1) over w."""
    n = np.ceil(waits)
    return np.divide(n * (waits + 0.5 - n / 2.0), waits, out=np.zeros_like(waits), where=waits > 0.0)
