"""Ways of demands through what is left of a network: shortest paths, equal-cost paths, k paths, least utilization."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from netctrl.core.errors import NetctrlError, optional_import
from netctrl.model.network import Network

SCHEMES = ("shortest", "ecmp", "k-paths", "min-max", "max-min")
METRICS = ("delay", "hops", "capacity")
PATHS = 4
_HOP = 1e-9
"""Seconds added to each link's delay, as in `netctrl.laws.link_rate.routing`: of paths of equal delay the shortest."""
_TIE = 1e-9
_SPARE = 1e-9
_SMALL = 1e-6
"""Flow over the largest demand below which the solver's tolerance may have left it: it could circulate."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Arrays of a network: N nodes, L links, D demands."""

    source: np.ndarray
    """(L,) node that each link leaves."""
    target: np.ndarray
    """(L,) node that each link enters."""
    capacity: np.ndarray
    """(L,) [bit/s]."""
    delay: np.ndarray
    """(L,) propagation delay [s]."""
    wait: np.ndarray
    """(L,) delay of a full buffer [s]; 0 where the buffer isn't known."""
    ends: np.ndarray
    """(D, 2) source and target of each demand."""
    mean: np.ndarray
    """(D,) [bit/s]."""
    nodes: int
    """N."""

    @classmethod
    def of(cls, network: Network) -> Graph:
        """The arrays of a network."""
        place = {node.id: row for row, node in enumerate(network.nodes)}
        links, demands = network.links, network.demands
        return cls(
            np.array([place[link.source] for link in links]),
            np.array([place[link.target] for link in links]),
            np.array([link.capacity for link in links]),
            np.array([link.delay for link in links]),
            np.array([8.0 * (link.buffer or 0.0) / link.capacity for link in links]),
            np.array([(place[each.source], place[each.target]) for each in demands]).reshape(-1, 2),
            np.array([each.mean for each in demands]),
            len(place),
        )

    def cost(self, metric: str) -> np.ndarray:
        """(L,) cost of each link, above 0, of which paths take the least sum."""
        if metric == "hops":
            return np.ones(len(self.delay))
        return self.capacity.max() / self.capacity if metric == "capacity" else self.delay + _HOP


@dataclass(frozen=True, slots=True)
class Routes:
    """Shares of traffic over states, each a node of the traffic to one target or a place on one path.

    A slot takes a share of what is in its `tail` over its `link` to its `head`; traffic that reaches an `end` is
    delivered, and that in a state without slots has no way. There are S states and K slots.
    """

    tail: np.ndarray
    """(K,) state that the slot leaves."""
    head: np.ndarray
    """(K,) state that it enters."""
    link: np.ndarray
    """(K,) its link."""
    share: np.ndarray
    """(K,) share of the traffic in its tail."""
    end: np.ndarray
    """(S,) whether the state is a demand's target."""
    enter: sp.csr_array
    """(S, D) share of each demand that enters in each state."""


def routes(graph: Graph, alive: np.ndarray, scheme: str, metric: str, paths: list[list[np.ndarray]] | None) -> Routes:
    """The ways of all demands over the links that are alive.

    Parameters
    ----------
    graph : Graph
    alive : array of bool, shape (L,)
    scheme : str
        One of `SCHEMES`. "max-min" takes shortest paths.
    metric : str
        One of `METRICS`.
    paths : list
        For "k-paths", from `tunnels`.
    """
    if scheme == "k-paths":
        return _tunnelled(graph, alive, metric, paths or [])
    targets, column = np.unique(graph.ends[:, 1], return_inverse=True)
    cost = graph.cost(metric)
    distance = _distance(graph, alive, cost, targets)
    if scheme == "min-max":
        share = _least_utilization(graph, alive, targets, column, distance, cost)
    else:
        share = _nearer(graph, alive, targets, distance, cost, equal=scheme == "ecmp")
    row, link = np.nonzero(share)
    N, S = graph.nodes, len(targets) * graph.nodes
    tail, head, first = row * N + graph.source[link], row * N + graph.target[link], column * N + graph.ends[:, 0]
    # Only states that a demand reaches: from a root that leads to where the demands enter.
    slots = np.append(tail, np.full(len(first), S)), np.append(head, first)
    reach = sp.csr_array((np.ones(len(slots[0])), slots), shape=(S + 1, S + 1))
    states = breadth_first_order(reach, S, return_predecessors=False)[1:]
    place = np.full(S, -1)
    place[states] = np.arange(len(states))
    kept = place[tail] >= 0
    enter = np.ones(len(first)), (place[first], np.arange(len(first)))
    return Routes(
        tail=place[tail[kept]],
        head=place[head[kept]],
        link=link[kept],
        share=share[row, link][kept],
        end=states % N == targets[states // N],
        enter=sp.csr_array(enter, shape=(len(states), len(first))),
    )


def tunnels(graph: Graph, metric: str, k: int = PATHS) -> list[list[np.ndarray]]:
    """The k shortest paths of each demand without failures, each as links; of parallel links the cheapest.

    Source: Yen, "Finding the K shortest loopless paths in a network" (as in networkx).
    """
    with optional_import():
        import networkx

    cost, best = graph.cost(metric), networkx.DiGraph()
    for row in np.argsort(cost, kind="stable")[::-1]:  # the first of the cheapest stays, as in `_nearer`
        best.add_edge(int(graph.source[row]), int(graph.target[row]), cost=float(cost[row]), row=int(row))
    known: dict[tuple[int, int], list[np.ndarray]] = {}
    for a, b in graph.ends.tolist():
        if (a, b) not in known:
            try:
                found = list(islice(networkx.shortest_simple_paths(best, a, b, weight="cost"), k))
            except (networkx.NetworkXNoPath, networkx.NodeNotFound):
                found = []
            known[a, b] = [np.array([best.edges[pair]["row"] for pair in pairwise(path)]) for path in found]
    return [known[a, b] for a, b in graph.ends.tolist()]


def _distance(graph: Graph, alive: np.ndarray, cost: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(T, N) least cost from each node to each target; inf where there is no way."""
    N, links = graph.nodes, np.flatnonzero(alive)
    links = links[np.argsort(cost[links], kind="stable")]
    _, cheapest = np.unique(graph.target[links] * N + graph.source[links], return_index=True)  # of parallel links
    links = links[cheapest]
    return dijkstra(sp.csr_array((cost[links], (graph.target[links], graph.source[links])), (N, N)), indices=targets)


def _nearer(
    graph: Graph, alive: np.ndarray, targets: np.ndarray, distance: np.ndarray, cost: np.ndarray, *, equal: bool
) -> np.ndarray:
    """(T, L) shares of links on shortest paths to each target: equal ones of all, or all on the first."""
    here, there = distance[:, graph.source], distance[:, graph.target]
    with np.errstate(invalid="ignore"):
        on = np.abs(there + cost - here) <= _TIE * here
    on &= alive & np.isfinite(there) & (graph.source != targets[:, None])
    if equal:
        ways = np.zeros((len(targets), graph.nodes))
        np.add.at(ways.T, graph.source, on.T)
        return on / np.maximum(ways[:, graph.source], 1.0)
    first = np.zeros(on.shape)
    row, link = np.nonzero(on)
    _, at = np.unique(row * graph.nodes + graph.source[link], return_index=True)
    first[row[at], link[at]] = 1.0
    return first


def _least_utilization(
    graph: Graph, alive: np.ndarray, targets: np.ndarray, column: np.ndarray, distance: np.ndarray, cost: np.ndarray
) -> np.ndarray:
    """(T, L) shares under which the most utilized link is utilized least, and of these the cheapest flow: two LPs.

    min θ over flows f_tl >= 0 to each target t: Σ_out f − Σ_in f = demand at each node, Σ_t f_tl <= θ C_l.
    """
    N, links, T = graph.nodes, np.flatnonzero(alive), len(targets)
    unit = graph.mean.max(initial=0.0)
    demand = np.zeros((T, N))
    np.add.at(demand, (column, graph.ends[:, 0]), graph.mean / unit if unit else 0.0)
    demand[~np.isfinite(distance)] = 0.0
    # Links on ways to a target only: the others' flow is 0, and without it no circulation is left over.
    use = np.isfinite(distance[:, graph.target[links]]) & (graph.source[links] != targets[:, None])
    row, at = np.nonzero(use)
    link, F = links[at], len(row)
    if not F or not demand.any():
        return np.zeros((T, len(alive)))
    place = np.arange(F)
    out, into = row * N + graph.source[link], row * N + graph.target[link]
    kept = np.ones(T * N, dtype=bool)
    kept[np.arange(T) * N + targets] = False
    signs = np.concatenate([np.ones(F), -np.ones(F)])
    balance = sp.csr_array((signs, (np.concatenate([out, into]), np.concatenate([place, place]))), shape=(T * N, F))[
        kept
    ]
    used = sp.csr_array((np.full(F, unit) / graph.capacity[link], (at, place)), shape=(len(links), F))
    A_eq = sp.hstack([balance, sp.csr_array((balance.shape[0], 1))], format="csr")
    A_ub = sp.hstack([used, -np.ones((len(links), 1))], format="csr")
    b_eq, zero = demand.reshape(-1)[kept], np.zeros(len(links))
    found = _solved(np.append(np.zeros(F), 1.0), A_ub, zero, A_eq, b_eq, None)
    most = float(found[-1]) * (1.0 + _SPARE) + _SPARE
    flow = _solved(np.append(cost[link] / cost[link].max(), 0.0), A_ub, zero, A_eq, b_eq, most)[:F]
    flow[flow < _SMALL] = 0.0
    through = np.bincount(out, flow, minlength=T * N)
    share = _nearer(graph, alive, targets, distance, cost, equal=False)  # where the solver's zeros leave no way
    some = through[out] > 0.0
    share[row, link] = np.where(some, np.divide(flow, through[out], out=np.zeros(F), where=some), share[row, link])
    return share


def _solved(c: np.ndarray, A_ub: Any, b_ub: np.ndarray, A_eq: Any, b_eq: np.ndarray, most: float | None) -> np.ndarray:
    bounds = np.column_stack([np.zeros(len(c)), np.full(len(c), np.inf)])
    bounds[-1, 1] = np.inf if most is None else most
    found = linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, method="highs")
    if found.x is None:
        raise NetctrlError(f"the linear program of least utilization isn't solved: {found.message}")
    return found.x


def _tunnelled(graph: Graph, alive: np.ndarray, metric: str, paths: list[list[np.ndarray]]) -> Routes:
    """Each demand in equal shares over those of its paths that are left, else over the shortest that there is."""
    left = [[path for path in some if alive[path].all()] for some in paths]
    lost = [i for i, some in enumerate(left) if not some]
    if lost:
        targets, column = np.unique(graph.ends[lost, 1], return_inverse=True)
        cost = graph.cost(metric)
        share = _nearer(graph, alive, targets, _distance(graph, alive, cost, targets), cost, equal=False)
        following = np.full((len(targets), graph.nodes), -1)
        row, link = np.nonzero(share)
        following[row, graph.source[link]] = link
        for i, t in zip(lost, column.tolist(), strict=True):
            left[i] = _followed(following[t], graph, *graph.ends[i].tolist())
    ways = [(i, path, 1.0 / len(some)) for i, some in enumerate(left) for path in some]
    demand, taken, share = zip(*ways, strict=True) if ways else ((), (), ())
    length = np.array([len(path) for path in taken], dtype=int)
    tail = np.arange(length.sum()) + np.repeat(np.arange(len(ways)), length)  # a path's end lies before the next path
    end = np.ones(length.sum() + len(ways), dtype=bool)
    end[tail] = False
    enter = sp.csr_array(
        (share, (np.cumsum(length + 1) - length - 1, demand)), shape=(len(end), len(graph.mean)), dtype=float
    )
    link = np.concatenate([np.zeros(0, dtype=int), *taken])
    return Routes(tail, tail + 1, link, np.ones(len(tail)), end, enter)


def _followed(following: np.ndarray, graph: Graph, a: int, b: int) -> list[np.ndarray]:
    path = []
    while a != b:
        if following[a] < 0:
            return []
        path.append(following[a])
        a = int(graph.target[following[a]])
    return [np.array(path)]
