"""Routing of demands: split ratios at each link, nominal rates, and the links' coupling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import isclose

import msgspec
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.model.io.fields import rate as read_rate
from netctrl.model.io.validation_errors import shorten
from netctrl.model.network import MAX_UTILIZATION, UTILIZATION_TAKES, Demand, Link, Network

_RATIO_TOLERANCE = 1e-6
_OVERLOAD_TOLERANCE = 1e-9
STD_TAKES = "a share of each demand's mean, as in 10%, or a rate, as in 2Mbit"
_MAX_SHARE = 100.0
_SWEEPS, _SETTLED = 20_000, 1e-12
_DENSE = 2**22  # sources times nodes above which searches stop at their targets
_HOP = 1e-9
"""Seconds added to each link's delay, so that among paths of equal delay the one with fewest links is taken."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Nominal flow of a network; N links and I demands, in the network's order."""

    split: sp.csr_array
    """(N, I) alpha_l^i: share of demand i at a link's source that takes the link."""
    rate: sp.csr_array
    """(N, I) f*_l^i, what each link sends of each demand [bit/s]."""
    load: np.ndarray
    """(N,) nominal rate of each link, sum of `rate` over the demands; at most its capacity [bit/s]."""
    offered: np.ndarray
    """(N,) rate that the demands would send over each link if no link lost anything [bit/s]."""
    lost: np.ndarray
    """(N,) rate that each link loses: above 0 where it is overloaded, else exactly 0 [bit/s]."""
    delivered: np.ndarray
    """(I,) rate of each demand at its target; below its mean where a link on its route is overloaded [bit/s]."""
    coupling: sp.csr_array
    """(N, N) c_lk: share of what link k carries that goes on to link l."""
    injection: sp.csr_array
    """(N, I) share of demand i that enters the network at link l."""


def routing(network: Network) -> Routing:
    """Route every demand, by its split ratios or along its shortest path by delay.

    f*_l^i = alpha_l^i (d_i [tail(l) = source of i] + Σ_{k: head(k) = tail(l)} f*_k^i), beta_k^i = f*_k^i / Σ_j f*_k^j,
    c_lk = Σ_i alpha_l^i beta_k^i for head(k) = tail(l).

    A link to which more comes than it can send is overloaded: it sends its capacity, shared as its arrivals are (first
    in, first out), and loses the rest. f* are then the rates behind all losses.

    Raises
    ------
    InvalidValue
        No demand; split ratios that don't sum to one; a demand without a path, or whose route has a loop. The message
        names the demand, node or link.

    Notes
    -----
    HFTraC paper, Section III: nominal rates after the notation, eqs. (1) and (7).
    """
    if not network.demands:
        raise InvalidValue("demands", "none", 'one demand or more: "demands": [{"source", "target", "mean", "std"}]')
    index = {link.id: row for row, link in enumerate(network.links)}
    paths = _shortest_paths(network)
    alpha: list[tuple[int, int, float]] = []
    flow: list[tuple[int, int, float]] = []
    pairs: list[tuple[int, int, int, float]] = []  # demand, from link, to link, share at the second
    for i, demand in enumerate(network.demands):
        ratios = paths[i] if demand.split is None else demand.split
        chosen = {index[name]: ratio for name, ratio in ratios.items() if ratio > 0.0}
        rates = _nominal(network, demand, chosen)
        alpha += [(row, i, chosen[row]) for row in rates]
        flow += [(row, i, rate) for row, rate in rates.items()]
        leaving = _by_source(network.links, rates)
        pairs += [(i, k, row, chosen[row]) for k in rates for row in leaving.get(network.links[k].target, ())]
    shape = (len(network.links), len(network.demands))
    offered = np.bincount([row for row, _, _ in flow], [value for _, _, value in flow], minlength=shape[0])
    capacity = np.array([link.capacity for link in network.links])
    lost = np.zeros(shape[0])
    if (offered > capacity * (1.0 + _OVERLOAD_TOLERANCE)).any():
        sources = [network.links[row].source == network.demands[i].source for row, i, _ in alpha]
        entering = np.array([share * network.demands[i].mean for _, i, share in alpha]) * sources
        flow, lost = _behind_losses(entering, flow, pairs, capacity)
    rate = _sparse(flow, shape)
    load = np.asarray(rate.sum(axis=1)).ravel()
    carried = {(row, i): value for row, i, value in flow}
    ends = [(i, value) for row, i, value in flow if network.links[row].target == network.demands[i].target]
    delivered = np.bincount([i for i, _ in ends], [value for _, value in ends], minlength=shape[1])
    coupling = _sparse([(row, k, share * carried[k, i] / load[k]) for i, k, row, share in pairs], (shape[0], shape[0]))
    sources = [demand.source for demand in network.demands]
    injection = _sparse([each for each in alpha if network.links[each[0]].source == sources[each[1]]], shape)
    return Routing(_sparse(alpha, shape), rate, load, offered, lost, delivered, coupling, injection)


def at_utilization(network: Network, utilization: float | None) -> Network:
    """Network with the means of all demands scaled so that the busiest link is offered this share of its capacity.

    Above 1 it is overloaded. Standard deviations keep their values. With None the network is returned unchanged.

    Raises
    ------
    InvalidValue
        As in `routing`.
    """
    if utilization is None:
        return network
    utilization = checked_number("utilization", utilization, UTILIZATION_TAKES, above=0.0, at_most=MAX_UTILIZATION)
    if not network.demands:
        return network
    offered = routing(network).offered
    busiest = max(rate / link.capacity for rate, link in zip(offered, network.links, strict=True))
    factor = utilization / busiest
    demands = tuple(msgspec.structs.replace(demand, mean=demand.mean * factor) for demand in network.demands)
    return msgspec.structs.replace(network, demands=demands)


def with_ways(network: Network) -> Network:
    """Network whose demands all have split ratios; those without take the path of least delay.

    Raises
    ------
    InvalidValue
        No path leads from a demand's source to its target.
    """
    paths = _shortest_paths(network)
    demands = (
        msgspec.structs.replace(demand, split=dict(reversed(paths[i].items()))) if i in paths else demand
        for i, demand in enumerate(network.demands)
    )
    return msgspec.structs.replace(network, demands=tuple(demands))


def main_path(network: Network, demand: Demand) -> tuple[str, ...]:
    """Links of a demand's greatest shares, from its source to its target, as far as they lead."""
    leaving: dict[str, list[Link]] = {}
    split = demand.split or {}
    for link in network.links:
        if split.get(link.id, 0.0) > 0.0:
            leaving.setdefault(link.source, []).append(link)
    node, path = demand.source, []
    while node != demand.target and node in leaving and len(path) < len(network.links):
        link = max(leaving[node], key=lambda link: split[link.id])
        path.append(link.id)
        node = link.target
    return tuple(path)


def varied(network: Network, std: float | str | None) -> Network:
    """A network whose demands with a standard deviation of 0 have another one.

    Parameters
    ----------
    network : Network
    std : float, str or None
        Rate [bit/s], as "2Mbit", or as "10%" the share of each demand's mean; None: the network as it is.

    Raises
    ------
    InvalidValue
        Neither a share nor a rate above 0.
    """
    if std is None:
        return network
    share, amount = 0.0, 0.0
    if isinstance(std, str) and std.strip().endswith("%"):
        try:
            share = float(std.strip()[:-1]) / 100.0
        except ValueError:
            raise InvalidValue("std", std, STD_TAKES) from None
    else:
        amount = read_rate("std", std)
    if not 0.0 <= share <= _MAX_SHARE or share + amount <= 0.0:
        raise InvalidValue("std", std, f"{STD_TAKES}, above 0 and at most {100.0 * _MAX_SHARE:g}%")
    replace = msgspec.structs.replace
    demands = (each if each.std else replace(each, std=share * each.mean + amount) for each in network.demands)
    return replace(network, demands=tuple(demands))


def _nominal(network: Network, demand: Demand, ratios: Mapping[int, float]) -> dict[int, float]:
    """Nominal rate of each link that a demand takes [bit/s], upstream first."""
    links = network.links
    leaving = _by_source(links, ratios)
    nodes = _in_order(links, demand, leaving)
    through = dict.fromkeys(nodes, 0.0)
    through[demand.source] = demand.mean
    rates: dict[int, float] = {}
    for node in nodes:
        out = leaving.get(node, [])
        if node == demand.target:
            if out:
                takes = f"no ratios for links that leave the demand's target {node}"
                raise InvalidValue(f"demands.{demand.id}.split", links[out[0]].id, takes)
            continue
        total = sum(ratios[row] for row in out)
        if not out:
            raise InvalidValue(f"demands.{demand.id}.split", f"no link leaves {node}", f"a path to {demand.target}")
        if not isclose(total, 1.0, abs_tol=_RATIO_TOLERANCE):
            raise InvalidValue(f"demands.{demand.id}.split", f"{total:.9g} in all at {node}", "ratios that sum to 1")
        for row in out:
            rates[row] = ratios[row] * through[node]
            through[links[row].target] += rates[row]
    return rates


def _in_order(links: tuple[Link, ...], demand: Demand, leaving: Mapping[str, list[int]]) -> list[str]:
    """Nodes that a demand reaches, each after its predecessors."""
    reached, front = {demand.source: {}}, [demand.source]  # dicts, as a set's order differs from run to run
    while front:
        node = front.pop()
        for row in leaving.get(node, ()):
            after = links[row].target
            if after not in reached:
                reached[after] = {}
                front.append(after)
            reached[after][node] = None
    try:
        return list(TopologicalSorter(reached).static_order())
    except CycleError as error:
        circle = shorten(" -> ".join(error.args[1]), 200)
        raise InvalidValue(f"demands.{demand.id}.split", circle, "a route without a loop") from None


def _by_source(links: tuple[Link, ...], rows: Iterable[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(links[row].source, []).append(row)
    return found


def _shortest_paths(network: Network) -> dict[int, dict[str, float]]:
    """Split ratios, all 1, of each demand without ratios of its own."""
    requested = {i: demand for i, demand in enumerate(network.demands) if demand.split is None}
    if not requested:
        return {}
    place = {node.id: row for row, node in enumerate(network.nodes)}
    best: dict[tuple[int, int], Link] = {}
    for link in network.links:  # of parallel links the fastest, then the first
        ends = place[link.source], place[link.target]
        if ends not in best or link.delay < best[ends].delay:
            best[ends] = link
    entries = [(*ends, link.delay + _HOP) for ends, link in best.items()]
    graph = _sparse(entries, (len(place), len(place)))
    by_source = sorted(requested, key=lambda i: place[requested[i].source])
    ends = [(place[requested[i].source], place[requested[i].target]) for i in by_source]
    sources = np.unique([source for source, _ in ends])
    if len(sources) * len(place) > _DENSE:
        # Here: compiled code, which few networks need. SciPy's searches don't stop at the targets.
        from netctrl.laws.link_rate.nearest import near_paths

        first = np.searchsorted([source for source, _ in ends], [*sources, len(place)])
        graph_ = graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data
        start, path = near_paths(*graph_, sources, first, np.array([target for _, target in ends]))
        walks = [path[start[n] : start[n + 1]].tolist() for n in range(len(ends))]
    else:
        _, before = dijkstra(graph, indices=sources, return_predecessors=True)
        walks = []
        for source, node in ends:
            row, walk = before[np.searchsorted(sources, source)], []
            while node != source and row[node] >= 0:
                node = int(row[node])
                walk.append(node)
            walks.append(walk)
    paths = {}
    for i, (source, target), walk in zip(by_source, ends, walks, strict=True):
        if source != (walk[-1] if walk else target):
            demand = requested[i]
            takes = f"nodes with a path between them; no path leads from {demand.source} to {demand.target}"
            raise InvalidValue(f"demands.{demand.id}", f"{demand.source} to {demand.target}", takes)
        paths[i] = {best[ends].id: 1.0 for ends in zip(walk, [target, *walk], strict=False)}
    return paths


def _behind_losses(
    entering: np.ndarray,
    flow: list[tuple[int, int, float]],
    pairs: list[tuple[int, int, int, float]],
    capacity: np.ndarray,
) -> tuple[list[tuple[int, int, float]], np.ndarray]:
    """What links send and lose where some are overloaded: x = e + F g x, g = min(1, capacity / arrivals) at each link.

    x are the arrivals of each pair of a link and a demand in `flow`, e what enters there, and F the shares that go on.
    Each sweep passes losses on by one link: without a ring of links that feed each other the longest route is enough.
    """
    place = {(row, i): at for at, (row, i, _) in enumerate(flow)}
    onward = _sparse([(place[row, i], place[k, i], share) for i, k, row, share in pairs], (len(flow), len(flow)))
    link, offered = np.array([row for row, _, _ in flow]), np.array([value for _, _, value in flow])
    arrives = offered
    for sweep in range(_SWEEPS):
        load = np.bincount(link, arrives, minlength=len(capacity))
        sent = arrives * np.minimum(1.0, capacity / np.maximum(load, capacity))[link]
        after = entering + onward @ sent
        if np.abs(after - arrives).max() <= _SETTLED * offered.max():
            sends = [(row, i, float(value)) for (row, i, _), value in zip(flow, sent, strict=True)]
            return sends, np.where(load > capacity * (1.0 + _OVERLOAD_TOLERANCE), load - capacity, 0.0)
        arrives = after if sweep <= len(capacity) else 0.5 * (arrives + after)  # in a ring it may swing
    raise InvalidValue("demands", "an overload whose losses don't settle", "demands that overload no ring of links")


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> sp.csr_array:
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    # 32 bits, as SciPy's graph routines take no others before 1.15
    places = np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32)
    return sp.csr_array((np.array(values, dtype=float), places), shape=shape)
