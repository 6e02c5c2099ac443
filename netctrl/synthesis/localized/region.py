"""Regions of links that a disturbance affects, and the disturbances; for all coordinated syntheses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.model.law import FirColumns
from netctrl.model.network_model import InformationPattern, NetworkModel, state_matrices
from netctrl.synthesis.localized import region_kernels as kernels


class Region(NamedTuple):
    """Links that take part in the response to a disturbance at one link; `links` are the model's numbers."""

    links: np.ndarray
    delay: np.ndarray
    heard: np.ndarray
    travel: np.ndarray
    weight: np.ndarray
    fed: tuple[np.ndarray, np.ndarray, np.ndarray]

    @property
    def n_states(self) -> int:
        """Number of states: rates in all lines, and backlogs."""
        return int(self.delay.sum()) + 2 * len(self.links)

    @property
    def min_horizon(self) -> int:
        """Samples that any controller needs to return all affected links to rest."""
        ours = kernels.reached(self.fed)
        return int((self.heard + self.delay)[ours].max()) + 2

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Dense A and B of these links (`netctrl.model.network_model.state_matrices`)."""
        offsets, index, share = self.fed
        m = len(self.links)
        A, B = state_matrices(self.delay, sp.csc_array((share, index, offsets), shape=(m, m)).tocsr())
        return A.toarray(), B.toarray()

    def ordered(self) -> Region:
        """The same region with its links in the order of their numbers."""
        order = np.argsort(self.links)
        rank = np.argsort(order)
        offsets, index, share = self.fed
        feeding = np.repeat(np.arange(len(order)), np.diff(offsets))
        sorting = np.lexsort((rank[index], rank[feeding]))
        counts = np.bincount(rank[feeding], minlength=len(order))
        fed = (np.concatenate([[0], np.cumsum(counts)]), rank[index][sorting], share[sorting])
        return Region(*(part[order] for part in self[:5]), fed)

    def key(self) -> bytes:
        """Key that is equal for regions whose problems differ only in the links' numbers."""
        parts = (self.delay, self.heard, self.travel, self.weight, *self.fed)
        return b"|".join(part.tobytes() for part in parts)


SMALLER = "Shorter routes, longer intervals, larger weights or, out of band, a smaller reach make it smaller"
"""Remedy where a column is too large."""
Source = tuple[tuple[int, ...], tuple[float, ...]]
"""Links at which a demand enters, and its share at each."""


def checked_weight(weight: float | np.ndarray, links: int) -> np.ndarray:
    """Weights mu as an array of one finite number above 0 per link."""
    takes = f"a number above 0 (mu = lambda·interval², dimensionless), or one for each of the {links} links"
    try:
        given = np.asarray(weight, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue("weight", weight, takes) from None
    if given.shape not in ((), (links,)):
        raise InvalidValue("weight", f"shape {given.shape}", takes)
    mu = np.full(links, given)
    if not (np.isfinite(mu) & (mu > 0.0)).all():
        bad = mu[~(np.isfinite(mu) & (mu > 0.0))][0]
        raise InvalidValue("weight", float(bad), f"{takes}; with 0 no controller drains the backlogs")
    return mu


def regions(
    model: NetworkModel,
    mu: np.ndarray,
    information: InformationPattern,
    reach: np.ndarray,
    *,
    links: Iterable[int] | None = None,
    travel: np.ndarray | None = None,
) -> dict[int, Region]:
    """Region of each of `links`, by default of all; `travel` is the result of `travel_times`, if known."""
    N = model.n_links
    down, rows = down_of(model), model.coupling
    up = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64))
    heard, place = np.full(N, -1, np.int64), np.full(N, -1, np.int64)
    came = np.zeros(0, np.int64)
    node, roads, at_node, matrix = hearing_of(information, N)
    # Information about a disturbance must reach as far as the traffic of the last link that acts on it.
    further = (travel_times(model) if travel is None else travel).max()
    found = {}
    for link in range(N) if links is None else links:
        if len(matrix):
            heard[:] = matrix[:, link]
        else:
            heard[came] = -1
            came = kernels.hear(link, node, roads, at_node, reach[link] + further, heard)
        status, where, around, since, fed = kernels.find_region(link, model.delay, down, up, heard, reach[link], place)
        if status != kernels.SOLVED:
            raise NoAdmissibleDesign(explain(model.links, status, link, where))
        found[link] = Region(around, model.delay[around], heard[around], since, mu[around], fed)
    return found


def hearing_of(information: InformationPattern, links: int) -> tuple[Any, ...]:
    """Nodes of the links' controllers, lines, the links at each node, and the matrix, for the kernels."""
    if len(information.matrix):
        if information.matrix.shape != (links, links):
            raise InvalidValue("information", f"shape {information.matrix.shape}", f"shape ({links}, {links})")
    elif len(information.node) != links:
        raise InvalidValue(
            "information", f"a pattern of {len(information.node)} links", f"a pattern of the model's {links} links"
        )
    order = np.argsort(information.node, kind="stable")
    offsets = np.searchsorted(information.node[order], np.arange(len(information.offsets)))
    roads = (information.offsets, information.to, information.samples)
    return information.node, roads, (offsets.astype(np.int64), order), information.matrix


def down_of(model: NetworkModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, indices and c_lk of the links that each link feeds."""
    columns = model.coupling.tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data


def travel_times(model: NetworkModel) -> np.ndarray:
    """Samples within which information about each link must reach all links that its traffic reaches, (N,)."""
    down, place = down_of(model), np.full(model.n_links, -1, np.int64)
    return np.array([kernels.travel_time(link, model.delay, down, place) for link in range(model.n_links)])


def sources(model: NetworkModel) -> dict[Source, float]:
    """Distinct disturbances by demands, as links and shares, with their variances."""
    injection = model.injection.tocsc()
    found: dict[Source, float] = {}
    for demand, variance in enumerate(model.std**2):
        part = slice(injection.indptr[demand], injection.indptr[demand + 1])
        source = tuple(injection.indices[part].tolist()), tuple(injection.data[part].tolist())
        if variance > 0.0 and source[0]:
            found[source] = found.get(source, 0.0) + float(variance)
    return found


def check_splits(information: InformationPattern, names: Sequence[str], disturbances: Iterable[Source]) -> None:
    """Reject links over which a demand splits at its source and of which another link learns at different times.

    Lines carry what the same node measures at the same time, so only a matrix can say so.
    """
    for first, *others in (links for links, _ in disturbances if len(information.matrix)):
        for other in others:
            odd = np.flatnonzero(information.matrix[:, first] != information.matrix[:, other])
            if odd.size:
                takes = (
                    "a pattern in which a link learns at one time of all links over which a demand splits at its source"
                )
                got = f"{names[odd[0]]} learns of {names[first]} and of {names[other]} at different times"
                raise InvalidValue("information", got, takes)


def used(information: InformationPattern, columns: Sequence[FirColumns]) -> tuple[np.ndarray, np.ndarray]:
    """Largest delay of the data that each link's controller uses [samples], and of how many other links they are."""
    N = len(columns)
    node, roads, at_node, matrix = hearing_of(information, N)
    reach, messages, heard = np.zeros(N, np.int64), np.zeros(N, np.int64), np.full(N, -1, np.int64)
    came, last, far = np.zeros(0, np.int64), -1, 0
    for link, column in enumerate(columns):
        if len(matrix):
            heard = matrix[:, link]
        elif node[link] != last or column.u.shape[2] >= far:
            last, far = node[link], column.u.shape[2] + 1
            heard[came] = -1
            came = kernels.hear(link, node, roads, at_node, far, heard)
        acts = column.links[column.u[0].any(axis=1)]
        reach[acts] = np.maximum(reach[acts], heard[acts])
        messages[acts[acts != link]] += 1
    return reach, messages


def together(parts: Sequence[Region]) -> Region:
    """Region of several links with simultaneous disturbances; the first link's region where it contains the others."""
    first, *others = parts
    if all(np.isin(other.links, first.links).all() for other in others):
        return first
    place: dict[int, int] = {}
    known: list[tuple[Region, int]] = []
    for region in parts:
        for row, link in enumerate(region.links.tolist()):
            if link not in place:
                place[link] = len(known)
                known.append((region, row))
    fields = [np.array([getattr(region, name)[row] for region, row in known]) for name in Region._fields[:-1]]
    fed = [slice(region.fed[0][row], region.fed[0][row + 1]) for region, row in known]
    index = [
        place[link] for part, (region, _) in zip(fed, known, strict=True) for link in region.links[region.fed[1][part]]
    ]
    share = np.concatenate([region.fed[2][part] for part, (region, _) in zip(fed, known, strict=True)])
    offset = np.cumsum([0, *(part.stop - part.start for part in fed)])
    return Region(*fields, (offset, np.array(index, np.int64), share))


def explain(names: Sequence[str], status: int, link: int, where: int, limit: int = 0, takes: int = 0) -> str:
    """Message for a status; `limit` is the requested horizon, `takes` the least one for all links."""
    one, other = names[link], names[where]
    return {
        kernels.DEAF: f"the traffic of {one} reaches {other}, which learns of it never or too late: information may "
        "take at most the propagation and two samples per hop, as in-band messages do",
        kernels.SLOW: f"the traffic of {one} reaches {other} before the information about it, which may take at "
        "most the propagation and two samples per hop",
        kernels.LATE: f"a horizon of {limit} samples is too short for {other} to return to rest after a disturbance at "
        f"{one}: this network takes at least {takes}",
        kernels.SINGULAR: f"the equations of a disturbance at {one} are singular to rounding: its traffic never leaves "
        "the network, or weights are too far from 1, the weight of a rate",
    }[status]
