"""Paths of a routed network's demands: shares at each node, and whole paths that keep them."""

from __future__ import annotations

from collections.abc import Callable

from netctrl.scenario.network.plan import LinkPlan

__all__ = ["DemandPaths"]


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
