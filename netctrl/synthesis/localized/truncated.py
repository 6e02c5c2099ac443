"""Truncated columns of coordinated control: a law with a certified lower and upper bound of its cost.

Each link's column is solved on the links and samples that matter. What it leaves over is a fresh disturbance where it
is (virtual localization), so the closed loop is (R, M)(I − Δ)⁻¹ with the leaks Δ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.laws.link_rate.cascade import Table
from netctrl.model.law import FirColumns
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.synthesis.localized import region_kernels as regions
from netctrl.synthesis.localized import truncated_kernels as kernels
from netctrl.synthesis.localized.dual import Tables
from netctrl.synthesis.localized.region import SMALLER, Source, down_of, explain, hearing_of
from netctrl.synthesis.localized.truncated_kernels import Columns, Hearing, Wanted

_BLOCK = 256  # columns per task of a worker
_ROUNDS = 4
_STAGES = (0, 1e-2), (0, 1e-4), (2, 1e-4)
"""Times that leaks are answered in full, and from which part of `least` on further answers are added exactly."""
_MOST = 2**25  # numbers in all columns above which they are not refined
_ROWS = 2**22  # equations of one column
_ASIDE, _BESIDE, _NEAR = 2**9, 12, 4  # equations, links and hops of a column of a link that no demand enters
_HOPELESS = 4.0  # excess relative to the tolerance, above which finer columns are worth more than answers
_SWEEPS = 2000
_WORTH = 0.999  # contraction above which finer columns are worth more than a bound
_LARGEST = 1e13  # weight above which the rates' own weight of 1 is lost in rounding
_HOPS = 1000  # downstream links whose costs a price includes


class Truncated(NamedTuple):
    """Law of truncated columns, with bounds."""

    columns: tuple[FirColumns, ...]
    cost: float
    cost_rate: float
    bound: float
    ratio: float
    """ρ(L) is at most this, below 1; L holds the ℓ1 norms of what columns leave over."""
    longest: int
    """Samples after which no column leaves anything over."""


def truncated(
    model: NetworkModel,
    mu: np.ndarray,
    information: InformationPattern,
    disturbances: Mapping[Source, float],
    *,
    tolerance: float,
    reach: int | None = None,
    n_jobs: int = 1,
) -> Truncated:
    """Columns with which the certified excess is at most `tolerance`, or as near to it as some refinements come.

    Raises
    ------
    InvalidValue
        Information about another number of links.
    NoAdmissibleDesign
        A link learns of the traffic that reaches it never or too late, or no refinement is certified to be stable.
    """
    N = model.n_links
    if mu.max() > _LARGEST:
        heaviest = int(np.argmax(mu))
        raise NoAdmissibleDesign(explain(model.links, regions.SINGULAR, heaviest, heaviest))
    net, settle = _tables(model, mu)
    hearing = Hearing(*hearing_of(information, N), -1 if reach is None else reach)
    sources = list(disturbances)
    variance = np.array([disturbances[source] for source in sources])
    seeds = _seeds(sources)
    alone = np.array([len(links) == 1 for links, _ in sources], dtype=bool)
    entry = np.array([links[0] for links, _ in sources], dtype=np.int64)
    split = [source for source, one in zip(sources, alone, strict=True) if not one]
    entered = np.unique(seeds[1])
    factor = np.full(N, 1.0)  # of the tolerance, link by link
    columns: Columns | None = None
    again = np.arange(N)
    best: Truncated | None = None
    bound = np.zeros(len(sources))
    for turn in range(_ROUNDS):
        share = factor * tolerance
        inner = np.zeros(N, dtype=bool)
        inner[entered] = True
        parts = []
        for some, lower in ((again[inner[again]], True), (again[~inner[again]], False)):
            # One accuracy a call; a node's links together, as they learn of everything at the same time.
            some = some[np.lexsort((information.node[some], share[some]))] if len(information.node) else some
            for level in np.unique(share[some]):
                which = some[share[some] == level]
                units = np.arange(len(which) + 1), which, np.ones(len(which))
                parts.append((which, _solved(units, net, hearing, _wanted(settle, level, lower, turn), n_jobs)))
        columns = _updated(columns, parts, N)
        bad = np.flatnonzero(columns.status[:, 0] != regions.SOLVED)
        if bad.size:
            why, where = columns.status[bad[0]].tolist()
            raise NoAdmissibleDesign(explain(model.links, why, int(bad[0]), where))
        bound[alone] = columns.bound[entry[alone]] * np.array(
            [shares[0] ** 2 for (_, shares), one in zip(sources, alone, strict=True) if one]
        )
        if split:
            wanted = _wanted(settle, float(share[seeds[1]].min()), True, turn)
            bound[~alone] = _solved(_seeds(split), net, hearing, wanted, n_jobs).bound
        size, ratio = _contraction(columns, N)
        last = turn == _ROUNDS - 1 or columns.u.size > _MOST
        if ratio < (1.0 if last else _WORTH):
            enough = bound * (1.0 + 0.7 * tolerance)
            low = float(variance @ bound) * (1.0 - 1e-12)
            goal = low * (1.0 + tolerance), np.inf if last else low * (1.0 + _HOPELESS * tolerance)
            upper = _upper(seeds, variance, columns, net, size, ratio, enough, 0.25 * tolerance, goal, n_jobs)
            cost = float(variance @ upper[:, 0])
            if best is None or cost - low < best.cost - best.bound:
                longest = int(columns.horizon.max()) + int(model.delay.max()) + 2
                best = Truncated(_law(columns), cost, float(variance @ upper[:, 1]), low, ratio, longest)
            if cost <= low * (1.0 + tolerance) or columns.u.size > _MOST:
                break
            far = upper[:, 0] > enough
            again = np.unique(_seeds([source for source, one in zip(sources, far, strict=True) if one])[1])
            leaks = sp.csc_array((columns.leak, columns.leak_links, columns.leak_offset), shape=(N, N))
            again = np.union1d(again, np.flatnonzero(~inner & (leaks[:, again].sum(axis=1) > 0.1 * tolerance)))
        elif columns.u.size > _MOST:
            break
        else:
            again = np.arange(N)
        factor[again] *= 0.1
    if best is None:
        raise NoAdmissibleDesign(
            "no truncation of the columns is certified to be stable: use horizon exact, or larger weights"
        )
    return best


def _wanted(settle: Callable[[float, float], np.ndarray], level: float, lower: bool, turn: int) -> Wanted:
    """Accuracy of columns; those of links that no demand enters only answer what others leave over."""
    if not lower:
        level = min(10.0 * level, 0.1)
    size = (_ROWS, _ROWS) if lower else (4**turn * _ASIDE, 2**turn * _BESIDE)
    window = settle(level, _HOPS if lower else _NEAR)
    return Wanted(window, 0.3 * level, min(1e-3, 0.1 * np.sqrt(level)), lower, *size)


def _tables(model: NetworkModel, mu: np.ndarray):
    """The network for the kernels, and the window of each disturbance for a tolerance."""
    squares = model.coupling.power(2).T.tocsr()
    p = 0.5 * (mu + np.sqrt(mu * (mu + 4.0)))
    hops, before = np.ones(len(mu)), np.zeros(len(mu))
    for _ in range(_HOPS):  # what a unit at a link costs downstream too
        if (hops - before).max() < 1e-3 * hops.max():
            break
        before, hops = hops, np.minimum(1.0 + squares @ hops, len(mu))
    # A disturbance that n links in series pass on settles as under the weight mu times the least eigenvalue of the
    # Laplacian over the links: none comes from before the first one, and the last one's leave.

    def settle(tolerance: float, most: float) -> np.ndarray:
        slow = mu * 4.0 * np.sin(0.5 * np.pi / (2.0 * np.minimum(hops, most) + 1.0)) ** 2
        slow = 0.5 * (slow + np.sqrt(slow * (slow + 4.0)))
        longest = -0.6 * np.log(tolerance) / np.log1p(slow.min())
        if longest > _ROWS:
            takes = f"smaller regions: a column has at least 1 link over {longest:.2g} samples. {SMALLER}"
            raise InvalidValue("reach", "regions too large", takes)
        return np.ceil(-0.6 * np.log(tolerance) / np.log1p(slow)).astype(np.int64) + 2

    rows = model.coupling
    up = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
    return Tables(model.delay, mu, p * (1.0 + np.log(hops) / np.pi), down_of(model), up), settle


def _seeds(sources: Sequence[Source]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    links = [link for each, _ in sources for link in each]
    shares = [share for _, each in sources for share in each]
    offset = np.cumsum([0, *(len(each) for each, _ in sources)])
    return offset, np.array(links, dtype=np.int64), np.array(shares, dtype=float)


def _blocks(seeds):
    """Parts of a list of disturbances."""
    offset, links, shares = seeds
    for first in range(0, len(offset) - 1, _BLOCK):
        part = offset[first : first + _BLOCK + 1]
        yield part - part[0], links[part[0] : part[-1]], shares[part[0] : part[-1]]


def _each(task, parts, n_jobs: int) -> list:
    """Results of a task over parts; the kernels release the GIL."""
    parts = list(parts)
    if n_jobs == 1 or len(parts) <= 1:
        return [task(*part) for part in parts]
    from joblib import Parallel, delayed

    return Parallel(n_jobs, prefer="threads")(delayed(task)(*part) for part in parts)


def _solved(seeds, net: Tables, hearing: Hearing, wanted: Wanted, n_jobs: int) -> Columns:
    done = _each(kernels.solve_columns, ((*part, net, hearing, wanted) for part in _blocks(seeds)), n_jobs)
    return _joined(done) if done else kernels.solve_columns(*seeds, net, hearing, wanted)


_RAGGED = {
    "links": "offset",
    "norm": "offset",
    "u": "start",
    "b": "start",
    "leak_links": "leak_offset",
    "leak": "leak_offset",
}
_OFFSETS = ("offset", "start", "leak_offset")


def _joined(parts: Sequence[Columns]) -> Columns:
    """Columns of several pieces in one."""
    fields = {}
    for name in Columns._fields:
        pieces = [getattr(part, name) for part in parts]
        if name in _OFFSETS:
            ends = np.cumsum([0, *(piece[-1] for piece in pieces)])
            pieces = [np.zeros(1, np.int64), *(piece[1:] + end for piece, end in zip(pieces, ends, strict=False))]
        fields[name] = np.concatenate(pieces)
    return Columns(**fields)


def _updated(old: Columns | None, parts, links: int) -> Columns:
    """Columns of all links, in their order, the new ones in place of the old."""
    every = _joined([*([] if old is None else [old]), *(part for _, part in parts)])
    take = np.arange(links)
    at = 0 if old is None else links
    for which, _ in parts:
        take[which] = at + np.arange(len(which))
        at += len(which)
    if at == links and (take == np.arange(links)).all():
        return every
    fields = {name: getattr(every, name)[take] for name in ("horizon", "bound", "status")}
    index = {}
    for name in _OFFSETS:
        offset = getattr(every, name)
        counts = offset[take + 1] - offset[take]
        fields[name] = np.concatenate([[0], np.cumsum(counts)])
        index[name] = np.arange(fields[name][-1]) + np.repeat(offset[take] - fields[name][:-1], counts)
    return Columns(**fields, **{name: getattr(every, name)[index[offset]] for name, offset in _RAGGED.items()})


def _contraction(columns: Columns, links: int) -> tuple[np.ndarray, float]:
    """A vector v > 0 and a ratio q with v'L ≤ q v', so that ρ(L) ≤ q (Collatz and Wielandt).

    Any v > 0 proves it, so an error in v doesn't matter, and one in v'L is far below the margin that is added: sums of
    numbers of one sign have a relative error of at most their number times the rounding.
    """
    L = sp.csc_array((columns.leak, columns.leak_links, columns.leak_offset), shape=(links, links)).T.tocsr()
    v, ratio = np.ones(links), np.inf
    margin = 1.0 + 4.0 * np.finfo(float).eps * (2.0 + np.diff(L.indptr).max(initial=0))
    for _ in range(_SWEEPS):
        leaks = L @ v
        found = float((leaks / v).max(initial=0.0)) * margin
        if found >= ratio * (1.0 - 1e-3) and ratio < _WORTH:
            break
        if found < ratio:
            ratio, best = found, v
        v = 1.0 + leaks
        if not np.isfinite(v).all() or v.max() > 1e12:
            break
    return best, ratio


def _upper(
    seeds,
    variance: np.ndarray,
    columns: Columns,
    net: Tables,
    size,
    ratio: float,
    enough: np.ndarray,
    least: float,
    goal: tuple[float, float],
    n_jobs: int,
):
    """Upper bounds (n, 2) of costs and of their parts due to rates, as near to `enough` as answers bring them.

    Where all together are already below the first number of `goal`, or above the second, no more is answered.
    """
    table = Table(
        columns.offset, columns.links, columns.horizon, columns.start, columns.u, columns.b, net.delay, net.down
    )
    lengths = np.repeat(columns.horizon, np.diff(columns.offset))
    rows = np.cumsum(lengths) - lengths
    rates, queues = (np.add.reduceat(np.abs(each), rows) ** 2 for each in (columns.u, columns.b))
    wide = np.sqrt(rates + net.weight[columns.links] * queues) * (1.0 + 1e-12)
    scale = float((np.sqrt(np.add.reduceat(columns.norm**2, columns.offset[:-1])) / size).max()) * (1.0 + 1e-12)
    found, which = np.full((len(enough), 2), np.inf), np.arange(len(enough))
    for rounds, fine in _STAGES:
        offset, links, shares = seeds
        counts = np.diff(offset)[which]
        at = np.repeat(offset[which] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        some = np.cumsum([0, *counts]), links[at], shares[at]
        known = table, columns, wide, net.weight, size, scale, ratio, least, fine * least, rounds
        parts = ((*part, *known) for part in _blocks(some))
        done = _each(kernels.upper_costs, parts, n_jobs)
        if not done:
            break
        found[which] = np.concatenate(done)
        which = which[found[which, 0] > enough[which]]
        if not goal[0] < float(variance @ found[:, 0]) <= goal[1]:
            break
    return found


def _law(columns: Columns) -> tuple[FirColumns, ...]:
    found = []
    for link, T in enumerate(columns.horizon.tolist()):
        part = slice(columns.start[link], columns.start[link + 1])
        links = columns.links[columns.offset[link] : columns.offset[link + 1]]
        shape = (1, len(links), T)
        found.append(FirColumns(links=links, u=columns.u[part].reshape(shape), b=columns.b[part].reshape(shape)))
    return tuple(found)
