"""Plan of a network for packet engines: its routes, its law as arrays, and the paths that keep its demands' shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.distributed_step import LinkRates
from netctrl.model.network import Network


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
    law: LinkRates
    """The law, with the rates around which links are controlled and the initial rates."""


class DemandPaths:
    """Paths of the demands of a plan, as rows of its links."""

    def __init__(self, plan: LinkPlan) -> None:
        by_name = {link.id: link for link in plan.network.links}
        self.ends = [(by_name[name].source, by_name[name].target) for name in plan.links]
        """Source and target of each link."""
        self.demands = plan.network.demands
        self.index = {demand.id: i for i, demand in enumerate(self.demands)}
        self.ways: list[dict[str, list[tuple[int, float]]]] = [{} for _ in self.demands]
        """Of each demand, by node: pairs of a link and its share."""
        for i, link, share in plan.split:
            self.ways[i].setdefault(self.ends[link][0], []).append((link, share))
        self._behind = [{link: 0.0 for ways in each.values() for link, _ in ways} for each in self.ways]

    def next(self, i: int) -> list[int]:
        """Path of a demand's next flow or packet: at each node the link that is furthest behind its share."""
        behind = self._behind[i]

        def chosen(ways: list[tuple[int, float]]) -> int:
            for link, share in ways:
                behind[link] += share
            best = max((link for link, _ in ways), key=behind.__getitem__)
            behind[best] -= 1.0
            return best

        return self._walk(i, chosen)

    def main(self, i: int) -> list[int]:
        """Path of a demand's greatest shares."""
        return self._walk(i, lambda ways: max(ways, key=lambda way: way[1])[0])

    def _walk(self, i: int, chosen: Callable[[list[tuple[int, float]]], int]) -> list[int]:
        node, path = self.demands[i].source, []
        while node != self.demands[i].target:
            path.append(chosen(self.ways[i][node]))
            node = self.ends[path[-1]][1]
        return path
