"""Routes of traffic in networks whose links don't feed one another in a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import NoAdmissibleDesign
from netctrl.model.network_model import NetworkModel
from netctrl.synthesis.localized.region import sources


class Routes(NamedTuple):
    """Downstream links and sources of every link."""

    order: list[int]
    """All links, each after those that feed it."""
    feeds: list[list[tuple[int, float]]]
    """For each link, the links that it feeds, with c_lk."""
    beyond: list[list[int]]
    """For each link, all links that its traffic reaches, in that order."""
    entering: list[tuple[np.ndarray, np.ndarray]]
    """For each link, the sources that enter at it and their standard deviations [bit/s]."""
    passing: list[np.ndarray]
    """For each link, the sources whose traffic reaches it."""
    rows: list[list[np.ndarray]]
    """For each link, the positions of its sources among the sources of each link beyond."""


def routes_of(model: NetworkModel) -> Routes:
    """Routes of a model; raises NoAdmissibleDesign, which names the links, where links feed one another in a cycle."""
    coupling, N = model.coupling.copy(), model.n_links
    coupling.eliminate_zeros()
    order, columns = _order(coupling, model.links), coupling.tocsc()
    parts = [slice(columns.indptr[link], columns.indptr[link + 1]) for link in range(N)]
    feeds = [list(zip(columns.indices[p].tolist(), columns.data[p].tolist(), strict=True)) for p in parts]
    rank = np.argsort(order)
    beyond: list[list[int]] = [[] for _ in range(N)]
    for link in reversed(order):
        reached = {fed for fed, _ in feeds[link]}.union(*(beyond[fed] for fed, _ in feeds[link]))
        beyond[link] = sorted(reached, key=rank.__getitem__)
    entering = _entering(model)
    passing = [sources for sources, _ in entering]
    for link in order:
        for fed, _ in feeds[link]:
            passing[fed] = np.union1d(passing[fed], passing[link])
    rows = [[np.searchsorted(passing[to], passing[link]) for to in beyond[link]] for link in range(N)]
    return Routes(order, feeds, beyond, entering, passing, rows)


def _order(coupling: sp.csr_array, names: Sequence[str]) -> list[int]:
    """All links, each after those that feed it."""
    offsets, feeders = coupling.indptr, coupling.indices.tolist()
    fed_by = {link: feeders[offsets[link] : offsets[link + 1]] for link in range(len(names))}
    try:
        return list(TopologicalSorter(fed_by).static_order())
    except CycleError as error:
        around = [names[link] for link in error.args[1][:-1]]
        shown = ", ".join(around if len(around) <= 6 else [*around[:3], "...", around[-1]])
        why = f"links feed one another in a cycle ({shown}), so responses never end"
        raise NoAdmissibleDesign(
            f"{why}: filters need a network without cycles; use static gains (horizon auto)"
        ) from None


def _entering(model: NetworkModel) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sources that enter at each link, and their standard deviations.

    Demands that enter in equal shares are one source, as links forward all traffic alike. A demand that splits at its
    source is one source at several links.
    """
    variances: dict[tuple[tuple[int, ...], tuple[float, ...]], float] = {}
    for (links, shares), variance in sources(model).items():
        size = sum(shares)
        key = links, tuple(share / size for share in shares)
        variances[key] = variances.get(key, 0.0) + variance * size**2
    found: list[list[tuple[int, float]]] = [[] for _ in range(model.n_links)]
    for source, ((links, shares), variance) in enumerate(variances.items()):
        for link, share in zip(links, shares, strict=True):
            found[link].append((source, share * np.sqrt(variance)))
    return [(np.array([s for s, _ in each], np.int64), np.array([v for _, v in each])) for each in found]
