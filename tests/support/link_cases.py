"""Networks of controlled links with all that a synthesis asks for, and eq. (14) of their laws run as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import networkx
import numpy as np

from netctrl.model.datasets import network_path
from netctrl.model.law import FirGain
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.plants.information import information_pattern
from netctrl.plants.linearize import network_model

TAU = 0.01
NETWORKS = ("tandem", "merge", "testbed")
MBPS2 = 1e12
WAYS = ("god", "centralized", "out-of-band", "in-band", "myopic")
"""The centralized one with a round trip of one sample."""
COSTS = {
    ("tandem", 0.1): (2.844531036, 3.469531036, 2.894893202, 2.894893202, 3.152589016),
    ("tandem", 1.0): (11.7006259, 17.9506259, 11.76048033, 11.76048033, 14.36760852),
    ("merge", 0.1): (14.41503458, 17.61503458, 14.68591549, 14.82185319, 16.14125572),
    ("merge", 1.0): (59.48957478, 91.48957478, 60.12308051, 60.2136593, 73.56215546),
    ("testbed", 0.1): (57.0446992, 69.8446992, 57.11597909, 57.40459726, 62.00365939),
    ("testbed", 1.0): (234.883517, 362.883517, 235.2224193, 235.4299862, 282.3747606),
}
"""[Mbps²] of each way, by network and mu: theory note hftrac, "Reference costs", found apart from this code."""


def least_cost(name: str, mu: float, way: str) -> float:
    return MBPS2 * COSTS[name, mu][WAYS.index(way)]


class Case(NamedTuple):
    """A network with all that a synthesis asks for, and who hears of what when: row hears of column."""

    network: Network
    model: NetworkModel
    pattern: InformationPattern
    heard: np.ndarray


def build(links: Sequence[tuple[str, str, int]], demands: Sequence[tuple]) -> Network:
    """Links are (source, target, samples), demands (source, target, std[, split])."""
    return Network(
        links=tuple(Link(source=a, target=b, capacity="1Gbit", delay=n * TAU) for a, b, n in links),
        demands=tuple(
            Demand(source=a, target=b, mean="1Mbit", std=std, split=split[0] if split else None, id=str(i))
            for i, (a, b, std, *split) in enumerate(demands)
        ),
    )


def case(network: Network, communication: str = "out-of-band") -> Case:
    model = network_model(network, TAU)
    pattern = information_pattern(network, TAU, model.links, communication)
    return Case(network, model, pattern, hearing(network, model, communication))


def published(name: str, communication: str = "out-of-band") -> Case:
    return case(read_network(network_path(name)), communication)


def line(links: int) -> Case:
    names = [str(i) for i in range(links + 1)]
    return case(build([(a, b, 1) for a, b in pairwise(names)], [(names[0], names[-1], 1e6)]))


DIAMOND = build(
    [("S", "A", 1), ("S", "B", 2), ("A", "D", 0), ("B", "D", 1), ("D", "E", 1)],
    [("S", "E", 1e6, {"S->A": 0.7, "S->B": 0.3, "A->D": 1.0, "B->D": 1.0, "D->E": 1.0}), ("A", "D", 2e6)],
)


def random_network(seed: int, chords: Sequence[tuple[int, int]], counts: tuple[int, int], max_samples: int) -> Network:
    """Nodes in a row with some of the chords, from lower to higher ones, and demands that split at random.

    The number of chords is drawn between `counts`, the second one excluded.
    """
    random = np.random.default_rng(seed)
    last = max(end for _, end in chords)
    pairs = [(i, i + 1) for i in range(last)] + [*chords][: random.integers(*counts)]
    links = [(str(a), str(b), int(random.integers(0, max_samples + 1))) for a, b in pairs]
    demands = []
    for _ in range(random.integers(1, last)):
        source = int(random.integers(0, last))
        target = int(random.integers(source + 1, last + 1))
        split = {}
        for node in range(source, target):
            out = [b for a, b in pairs if a == node and b <= target]
            for b, share in zip(out, random.dirichlet(np.ones(len(out))), strict=True):
                split[f"{node}->{b}"] = float(share)
        demands.append((str(source), str(target), float(random.uniform(1e5, 1e6)), split))
    return build(links, demands)


def hearing(network: Network, model: NetworkModel, communication: str) -> np.ndarray:
    """n_lk, by networkx; inf: never."""
    lines = networkx.DiGraph()
    links = {link.id: link for link in network.links}
    lines.add_nodes_from(node.id for node in network.nodes)
    for name, link in links.items():
        ways = [(link.source, link.target)] if name in model.links else []
        if communication == "out-of-band":
            ways = [(link.source, link.target), (link.target, link.source)]
        for a, b in ways:
            samples = round(link.delay / TAU)
            if not lines.has_edge(a, b) or lines[a][b]["samples"] > samples:
                lines.add_edge(a, b, samples=samples)
    known = dict(networkx.all_pairs_dijkstra_path_length(lines, weight="samples"))
    at = [links[name].source for name in model.links]
    return np.array([[known[end].get(here, inf) for end in at] for here in at])


def god(model: NetworkModel) -> InformationPattern:
    """All links know everything at once."""
    return InformationPattern.from_matrix(np.zeros((model.n_links, model.n_links)))


def matrices(model: NetworkModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and H from the model's equation, entry by entry."""
    N, n, c = model.n_links, model.n_states, model.coupling.toarray()
    A, B, H = np.zeros((n, n)), np.zeros((n, N)), np.zeros((n, len(model.std)))
    for link in range(N):
        backlog = model.first_backlog + link
        B[model.first_rate[link], link], B[backlog, link], A[backlog, backlog] = 1.0, -1.0, 1.0
        for state in range(model.first_rate[link] + 1, model.first_rate[link + 1]):
            A[state, state - 1] = 1.0
        for k in range(N):
            A[backlog, model.first_rate[k + 1] - 1] = c[link, k]
        H[backlog] = model.injection.toarray()[link]
    return A, B, H


def assemble(law: FirGain) -> tuple[np.ndarray, np.ndarray]:
    """M(1), ..., M(T) and R(1), ..., R(T) as matrices, as FirGain says."""
    first = np.concatenate([[0], np.cumsum(law.delay + 1)])
    backlog, T = first[-1], max(column.u.shape[2] for column in law.columns)
    n = backlog + len(law.delay)
    M, R = np.zeros((T, len(law.delay), n)), np.zeros((T, n, n))
    for e, column in enumerate(law.columns):
        for j, state in enumerate([backlog + e, *range(first[e], first[e + 1])]):
            t = column.u.shape[2]
            M[:t, column.links, state] = column.u[j].T
            R[:t, backlog + column.links, state] = column.b[j].T
            for link in column.links:
                for age in range(law.delay[link] + 1):
                    R[age + 1 :, first[link] + age, state] = M[: max(T - age - 1, 0), link, state]
            for t in range(min(T, first[e + 1] - state) if j else 0):  # what is in the line goes on
                R[t, state + t, state] = 1.0
    return M, R


def run(law: FirGain, model: NetworkModel, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States and rates of the model under eq. (14); w has shape (samples, n, runs) and acts on the state."""
    A, B, _ = matrices(model)
    M, R = assemble(law)
    x, x_hat = np.zeros(w.shape[1:]), np.zeros(w.shape[1:])
    delta, xs, us = np.zeros((len(M), *w.shape[1:])), [], []
    for kick in w:
        x = x + kick
        delta = np.concatenate([[x - x_hat], delta[:-1]])  # newest first
        u = np.tensordot(M, delta, ([0, 2], [0, 1]))
        xs.append(x)
        us.append(u)
        x = A @ x + B @ u
        x_hat = np.tensordot(R[1:], delta[:-1], ([0, 2], [0, 1]))
    return np.array(xs), np.array(us)
