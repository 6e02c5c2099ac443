"""Rates, losses, delays and utilizations of traffic on its routes, overloaded links included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.engines.what_if.routes import Graph, Routes

OVER = 1e-9
"""Relative excess over its capacity from which a link is overloaded."""
_SWEEPS, _SETTLED = 20_000, 1e-12


@dataclass(frozen=True, slots=True)
class Flows:
    """Traffic of a network on its routes: L links and D demands."""

    arrives: np.ndarray
    """(L,) rate that comes to each link [bit/s]."""
    sent: np.ndarray
    """(L,) rate that each link sends [bit/s]."""
    admitted: np.ndarray
    """(D,) rate of each demand that enters the network [bit/s]."""
    delivered: np.ndarray
    """(D,) rate of each demand at its target [bit/s]."""
    cut: np.ndarray
    """(D,) whether no way leads to the demand's target."""
    delay: np.ndarray
    """(D,) mean delay of what is delivered: propagation, and full buffers at overloaded links [s]; NaN for nothing."""
    utilization: np.ndarray
    """(D,) greatest utilization, arrivals over capacity, of a link on the demand's ways."""


def flows(graph: Graph, ways: Routes, demand: np.ndarray, *, fair: bool = False) -> Flows:
    """Traffic of the demands on their ways.

    A link to which more comes than it can send shares its capacity as its arrivals are and loses the rest:
    x = e + F g x with g = min(1, capacity / arrivals), as in `netctrl.laws.link_rate.routing`. With `fair` the demands
    are limited at their sources instead, to max-min fair rates, and nothing is lost inside.

    Parameters
    ----------
    graph : Graph
    ways : Routes
    demand : array, shape (D,)
        Rates [bit/s].
    fair : bool

    Raises
    ------
    InvalidValue
        Losses that don't settle, in a ring of overloaded links.
    """
    S, L = len(ways.end), len(graph.capacity)
    ends = ways.end.astype(float)
    cut = ways.enter.T @ _ahead(ways, ways.share, ends) <= 0.0
    entering = np.where(cut, 0.0, demand)
    if fair:
        entering = _fair(graph, ways, entering)
    start = ways.enter @ entering
    state, passes = start.copy(), np.ones(L)
    limit, least = graph.capacity, _SETTLED * max(float(demand.max(initial=0.0)), 1e-300)
    for sweep in range(_SWEEPS):
        through = ways.share * state[ways.tail]
        arrives = np.bincount(ways.link, through, minlength=L)
        passes = np.minimum(1.0, limit / np.maximum(arrives, limit))
        after = start + np.bincount(ways.head, through * passes[ways.link], minlength=S)
        if np.abs(after - state).max(initial=0.0) <= least:
            break
        state = after if sweep <= L else 0.5 * (state + after)  # in a ring it may swing
    else:
        raise InvalidValue("demands", "an overload whose losses don't settle", "demands that overload no ring of links")
    over = arrives > limit * (1.0 + OVER)
    gain, late = ways.share * passes[ways.link], graph.delay + np.where(over, graph.wait, 0.0)
    gets = _ahead(ways, gain, ends)  # share of what is in each state that gets to its end
    arrive = ways.enter.T @ gets
    total = _ahead(ways, gain, np.bincount(ways.tail, gain * gets[ways.head] * late[ways.link], minlength=S))
    with np.errstate(invalid="ignore", divide="ignore"):
        delay = (ways.enter.T @ total) / arrive
    worst = _worst(ways, arrives / limit, len(demand))
    return Flows(arrives, np.minimum(arrives, limit), entering, entering * arrive, cut, delay, worst)


def _ahead(ways: Routes, gain: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(S,) what each state has of its own, and by the gains of its slots of what lies ahead: x = own + G x."""
    found, least = own, _SETTLED * max(float(own.max(initial=0.0)), 1e-300)
    for _ in range(_SWEEPS):
        after = own + np.bincount(ways.tail, gain * found[ways.head], minlength=len(own))
        if np.abs(after - found).max(initial=0.0) <= least:
            return after
        found = after
    return found


def _worst(ways: Routes, used: np.ndarray, demands: int) -> np.ndarray:
    """(D,) greatest utilization on the ways of each demand."""
    worst = np.zeros(len(ways.end))
    for _ in range(len(worst) + 1):
        after = worst.copy()
        np.maximum.at(after, ways.tail, np.maximum(used[ways.link], worst[ways.head]))
        if np.array_equal(after, worst):
            break
        worst = after
    entry = ways.enter.tocoo()
    found = np.zeros(demands)
    np.maximum.at(found, entry.col, worst[entry.row])
    return found


def _fair(graph: Graph, ways: Routes, demand: np.ndarray) -> np.ndarray:
    """(D,) max-min fair rates of demands that each take one path: all grow alike until a link or a demand is full.

    Source: Bertsekas, Gallager, "Data Networks", 2nd ed., Section 6.5.2.
    """
    slot = np.full(len(ways.end), -1)
    slot[ways.tail] = np.arange(len(ways.tail))
    state = ways.enter.tocoo()
    at = np.zeros(len(demand), dtype=int)
    at[state.col] = state.row
    links, users = [], []
    going = np.flatnonzero(demand > 0.0)
    while len(going := going[~ways.end[at[going]]]):
        taken = slot[at[going]]
        links.append(ways.link[taken])
        users.append(going)
        at[going] = ways.head[taken]
    if not links:
        return demand
    link, user = np.concatenate(links), np.concatenate(users)
    rate, growing = np.zeros(len(demand)), demand > 0.0
    spare = graph.capacity.astype(float).copy()
    while growing.any():
        count = np.bincount(link, growing[user], minlength=len(spare))
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(count > 0.0, np.maximum(spare, 0.0) / count, np.inf)
        step = min(float(room.min()), float((demand - rate)[growing].min()))
        rate[growing] += step
        spare -= step * count
        full = (count > 0.0) & (spare <= OVER * graph.capacity)
        stopped = np.bincount(user, full[link], minlength=len(demand)) > 0.0
        growing &= ~stopped & (rate < demand * (1.0 - _SETTLED))
    return np.minimum(rate, demand)
