"""Plan of a network for packet engines: its routes, its law as arrays, and ways by turns that keep shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from netctrl.model.network import Network
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow


class LinkPlan(NamedTuple):
    """N controlled links and I demands; links without traffic are left out."""

    network: Network
    """The network with the requested means."""
    links: tuple[str, ...]
    """(N,) ids of the links."""
    delay: np.ndarray
    """(N,) delay n_l [sample]"""
    split: tuple[tuple[int, int, float], ...]
    """(demand, link, share): the link takes this share of the demand's traffic at the link's source."""
    nominal: np.ndarray
    """(N,) nominal rate f* [bit/s]"""
    weight: np.ndarray | None
    """(N,) weight mu_l of the cost."""
    paced: np.ndarray
    """(N,) whether a link sends at its law's rate; otherwise at its capacity."""
    law: Any
    """The law with the rates around which links are controlled and the initial rates: a
    `netctrl.laws.link_rate.distributed_step.LinkRates`, or a `netctrl.scenario.network.decided.DecidedRates`."""


class RunDraws(NamedTuple):
    """Draws of a run; I demands, N links."""

    rates: np.ndarray
    """(steps, I) rates of demands, 0 for TCP demands [bit/s]"""
    phase: np.ndarray
    """(N,) tick of the interval at which each link acts"""
    late: np.ndarray
    """(steps, messages) delay of each message in ticks; -1: lost"""
    received: np.ndarray
    """(steps, N) whether a central command arrives"""


class FlowLinks(NamedTuple):
    """N links of a scenario under a law, over K intervals."""

    plan: LinkPlan
    place: np.ndarray
    """(N,) rows of the links among all links."""
    draws: RunDraws
    """Without a graph's demands none, and messages that all arrive in time."""
    interval: float
    """tau [s]."""
    steps: int
    """K."""

    @property
    def set_links(self) -> frozenset[str]:
        """Ids of the links whose rates are set."""
        return frozenset(name for name, paced in zip(self.plan.links, self.plan.paced, strict=True) if paced)


class Ways:
    """Ways of a flow that takes several, by turns which keep its shares."""

    def __init__(self, links: Sequence[Link], flow: Flow) -> None:
        ends = {link.id: (link.source, link.target) for link in links}
        self.source, self.target = ends[flow.path[0]][0], ends[flow.path[-1]][1]
        self.at: dict[str, list[tuple[str, str, float]]] = {}
        """Of each node the links that leave it, with their targets and shares."""
        for name, (source, target) in ends.items():
            share = (flow.split or dict.fromkeys(flow.path, 1.0)).get(name, 0.0)
            if share > 0.0:
                self.at.setdefault(source, []).append((name, target, share))
        self._behind = dict.fromkeys(ends, 0.0)

    def next(self) -> tuple[str, ...]:
        """Path of the next packet or flow: at each node the link that is furthest behind its share."""
        node, path, behind = self.source, [], self._behind
        while node != self.target:
            for name, _, share in self.at[node]:
                behind[name] += share
            name, node, _ = max(self.at[node], key=lambda way: behind[way[0]])
            behind[name] -= 1.0
            path.append(name)
        return tuple(path)
