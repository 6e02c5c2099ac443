"""All regions of a parametric quadratic program's solution, found from neighbour to neighbour.

min ½ v'Hv + (f + F t)'v, G v ≤ w + S t, t in [−1, 1]. A region is known by its set of active bounds. Across a facet on
which exactly one row is 0 the active set is known (Tøndel, Johansen, Bemporad, Theorem 2): a multiplier that reaches 0
leaves the set; a bound that is reached enters it; where its row depends on the active ones, one of them leaves, or
nothing beyond is feasible (Farkas). On other facets (several bounds may leave, several rows coincide, bounds are active
without a multiplier) the program is solved beyond, on the way to the farthest feasible point, closer and closer until a
region touches the facet; the regions found are taken off the facet until nothing is left of it. With all facets
settled, the regions have no border but the box and the feasible set, which is convex, so none is missed: up to regions
of a ball below `THIN`, what is behind facets below `_SMALL`, and at the border of the feasible set slivers below
`_EDGE`, where bounds depend on each other but for rounding.

Sources: Tøndel, Johansen, Bemporad, Automatica 39 (2003) 489-497; Spjøtvold, Kerrigan, Jones, Tøndel, Johansen,
Automatica 42 (2006) 2209-2214, for facets with several neighbours.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.mpc.parametric import ParametricProgram, whitened
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import open_solver

THIN = 1e-9  # relative to the box's half width: a region with a smaller ball is a face of others
DEPENDENT = 1e-7  # sine of the angle between a row and the active ones, in the cost's metric
_ALIKE = 1e-7  # rows of length 1 that differ by less coincide
_EDGE = 1e-6  # a facet beyond which no region and nothing at this distance is feasible bounds the feasible set
_SMALL = 1e-6  # pieces of a facet with a smaller ball are not looked beyond
_FIRST, _LAST, _PLACES = 1e-3, 1e-9, 6  # steps beyond a facet, and places of it to start from


class Region(NamedTuple):
    """Region rows t ≤ right, where the bounds `active` are active."""

    active: tuple[int, ...]
    rows: np.ndarray
    """(e, q) rows of length 1 that are necessary within the box, without the box."""
    right: np.ndarray
    owner: np.ndarray
    """(e,) bound whose multiplier or slack is 0 on the row."""
    radius: float
    middle: np.ndarray
    """(q,) centre of the largest ball, of that radius."""
    plain: bool
    """Whether on each facet exactly one multiplier or slack is 0."""
    box: int
    """Number of facets on the box."""
    edge: np.ndarray
    """(e,) of bool: whether nothing is feasible beyond; set as the facets are crossed."""


class Facets(NamedTuple):
    """Numbers of facets of all regions, by what is beyond."""

    shared: int
    """Other regions."""
    box: int
    """The edge of the box."""
    infeasible: int
    """No solution."""
    covered: int
    """Number of the shared ones that were covered piece by piece, as several regions may be beyond."""


@dataclass(slots=True, eq=False)
class Bounds:
    """Bounds G v ≤ w + S t, all finite ones one-sided, and the quantities from which regions follow."""

    program: ParametricProgram
    centre: np.ndarray
    half: np.ndarray
    G: np.ndarray = field(init=False)
    w: np.ndarray = field(init=False)
    S: np.ndarray = field(init=False)
    equal: np.ndarray = field(init=False)
    """(c,) of bool: equalities, which are always active."""
    names: tuple[str, ...] = field(init=False)
    source: np.ndarray = field(init=False)
    """(c,) row of the program's [v; A v], and (c,) the sign: 1 for an upper bound."""
    sign: np.ndarray = field(init=False)
    free: np.ndarray = field(init=False)
    """(N, q + 1) solution without bounds, v = free [t; 1]."""
    root: np.ndarray = field(init=False)
    """(N, N) with root root' = H⁻¹."""
    turned: np.ndarray = field(init=False)
    """(c, N) G root. Its factors lose half the digits that those of G H⁻¹ G' do where rows nearly depend."""
    size: np.ndarray = field(init=False)
    """(c,) length of each row of it."""
    excess: np.ndarray = field(init=False)
    """(c, q + 1) by how much the solution without bounds exceeds each."""

    def __post_init__(self) -> None:
        program = self.program
        free, self.root, rows, turned = whitened(program)
        equal = program.lower == program.upper
        low, high = np.isfinite(program.lower) & ~equal, np.isfinite(program.upper)
        shift, E = program.E @ self.centre, program.E * self.half
        self.G = np.vstack([rows[high], -rows[low]])
        self.w = np.concatenate([(program.upper + shift)[high], -(program.lower + shift)[low]])
        self.S = np.vstack([E[high], -E[low]])
        self.equal = np.concatenate([equal[high], np.zeros(low.sum(), dtype=bool)])
        self.source = np.concatenate([np.flatnonzero(high), np.flatnonzero(low)])
        self.sign = np.where(np.arange(len(self.w)) < high.sum(), 1.0, -1.0)
        side = [", equality" if is_equal else ", upper" for is_equal in equal[high]]
        self.names = tuple(
            f"{program.names[i]}{at}" for i, at in zip(self.source, side + [", lower"] * low.sum(), strict=True)
        )
        self.free = np.column_stack([free[:, :-1] * self.half, free[:, :-1] @ self.centre + free[:, -1]])
        self.turned = self.sign[:, None] * turned[self.source]
        self.size = np.linalg.norm(self.turned, axis=1)
        self.excess = self.G @ self.free - np.column_stack([self.S, self.w])
        fixed = np.linalg.svd(self.turned[self.equal], compute_uv=False)
        if (fixed <= DEPENDENT * self.size[self.equal].max(initial=0.0)).any() or len(fixed) < self.equal.sum():
            named = ", ".join(name for name, is_equal in zip(self.names, self.equal, strict=True) if is_equal)
            raise InvalidValue("problem", named, "equalities that don't depend on each other: leave out some")

    def solution(self, active: tuple[int, ...]) -> np.ndarray:
        """Solution v = K [t; 1], (N, q + 1)."""
        at = list(active)
        return self.free - self.root @ np.linalg.lstsq(self.turned[at], self.excess[at], rcond=0.0)[0]

    def split(self, active: list[int], i: int) -> tuple[bool, np.ndarray]:
        """Whether row i depends on the active ones, which don't on each other, and its coefficients by them."""
        from netctrl.mpc.piecewise.geometry import coefficients

        sine, c = coefficients(self.turned, np.array(active, dtype=np.int64), i)
        return not sine > DEPENDENT, c


class Search:
    """Regions found so far, and facets still to be crossed."""

    def __init__(self, bounds: Bounds, most: int) -> None:
        self.bounds, self.most = bounds, most
        self.regions: dict[tuple[int, ...], Region] = {}
        self.looked: dict[tuple[int, ...], Region | None] = {}
        self.queue: deque[Region] = deque()
        self.shared = self.box = self.infeasible = self.covered = 0
        program = bounds.program
        self.solver = open_solver(program.program(bounds.centre))
        q = program.n_parameters
        self.box_rows = np.vstack([np.eye(q), -np.eye(q)])

    def look(self, active: tuple[int, ...]) -> Region | None:
        """Region of a set of active bounds, queued when it is new; None where it has no interior."""
        if active not in self.looked:
            found = self.looked[active] = self._region(active)
            if found is not None:
                if len(self.regions) >= self.most:
                    raise NetctrlError(
                        f"more than {self.most} regions: tables are for small problems; shorten the horizon or raise "
                        "max_regions"
                    )
                self.regions[active] = found
                self.queue.append(found)
        return self.looked[active]

    def _region(self, active: tuple[int, ...]) -> Region | None:
        from netctrl.mpc.piecewise.geometry import region

        bounds = self.bounds
        found = region(bounds.turned, bounds.excess, bounds.equal, np.array(active, dtype=np.int64), THIN, _ALIKE)
        made = Region(active, *found, np.zeros(len(found[0]), dtype=bool))
        return made if made.radius > THIN else None

    def explore(self) -> None:
        """Cross facets until all are settled."""
        while self.queue:
            region = self.queue.popleft()
            for k in range(len(region.right)):
                self._cross(region, k)
            self.box += region.box

    def _cross(self, region: Region, k: int) -> None:
        """Settle one facet."""
        alone, other = self._beyond(region, k)
        if alone and other is not None and self.look(other) is not None:
            self.shared += 1
        elif not (alone and other is None) and self._cover(region, k):
            self.shared += 1
            self.covered += 1
        else:
            region.edge[k] = True
            self.infeasible += 1

    def _beyond(self, region: Region, k: int) -> tuple[bool, tuple[int, ...] | None]:
        """Whether one active set is known to be across a facet, and which; None where nothing is feasible there."""
        bounds, active, i = self.bounds, region.active, int(region.owner[k])
        if i in active:
            return region.plain, tuple(j for j in active if j != i)
        at = list(active)
        depends, c = bounds.split(at, i)
        if not depends:
            return region.plain, tuple(sorted((*active, i)))
        # Row i is Σ c_j row j: as it enters, λ_j falls where c_j > 0, and the first to reach 0 leaves.
        falls = np.flatnonzero((c * bounds.size[at] > DEPENDENT * bounds.size[i]) & ~bounds.equal[at])
        if not len(falls):
            return True, None
        return region.plain and len(falls) == 1, tuple(sorted({*active, i} - {at[falls[0]]}))

    def _cover(self, region: Region, k: int) -> bool:
        """Cover a facet with the regions beyond it, found by solving the program there; False where it is an edge.

        As the feasible set is convex, a facet is an edge of it everywhere or nowhere.
        """
        from netctrl.mpc.piecewise.geometry import facet_ball

        normal, value = region.rows[k], region.right[k]
        middles = np.array([each.middle for each in self.regions.values()])
        far = middles[np.argmax(middles @ normal)]
        if normal @ far - value < _FIRST:
            far = _reach(self.bounds, -normal)
        reach = normal @ far - value
        if not reach > THIN:  # so for NaN
            return False
        inside = np.append(np.delete(region.right, k), np.ones(len(self.box_rows)))
        found, pieces = False, [(np.vstack([np.delete(region.rows, k, axis=0), self.box_rows]), inside)]
        while pieces:
            rows, right = pieces.pop()
            radius, middle = facet_ball(rows, right, normal, value)
            if radius <= _SMALL:
                continue
            beyond = self._next_beyond(middle, normal, far, min(radius, 1.0), region.active)
            if beyond is None:
                if reach > _EDGE:
                    raise NetctrlError(
                        f"no region was found beyond t = {middle.round(6).tolist()} of the box, where bounds depend on "
                        "each other but for rounding: remove bounds that say the same, or solve the program at each "
                        "state"
                    )
                continue
            found = True
            # What is left of the piece: beyond each row of the region found, within those before.
            for row, bound in zip(beyond.rows, beyond.right, strict=True):
                if row @ normal > -1.0 + _ALIKE:
                    pieces.append((np.vstack([rows, -row]), np.append(right, -bound - _ALIKE)))
                    rows, right = np.vstack([rows, row]), np.append(right, bound)
        return found

    def _next_beyond(
        self, middle: np.ndarray, normal: np.ndarray, far: np.ndarray, size: float, behind: tuple[int, ...]
    ) -> Region | None:
        """Region beyond a facet that touches it within a ball, on the way to a feasible point, hence feasible; None
        where all are too thin."""
        rng, nearest, places = np.random.default_rng(0), None, _PLACES if normal @ (far - middle) > _EDGE else 2
        for place in range(places):  # a way along the border of two regions, or in one that is too thin, is not taken
            aside = rng.uniform(-1.0, 1.0, len(middle)) * min(place, 1) * size / np.sqrt(len(middle))
            point = middle + 0.5 * (aside - (normal @ aside) * normal)
            way = far - point
            step, last = (min(each / np.abs(way).max(), 1.0) for each in (_FIRST, _LAST))
            while step > last:
                active = self.at(point + step * way)
                found = None if active is None or active == behind else self.look(active)
                if found is None:
                    step *= 0.2
                    continue
                # Where the way enters what was found; something else is before that.
                over, fall = found.rows @ point - found.right, -(found.rows @ way)
                if (over <= THIN).all():
                    return found
                nearest = found if nearest is None and (over <= _ALIKE).all() else nearest
                step = 0.5 * min(step, (over[over > 0.0] / fall[over > 0.0]).max())
        return nearest

    def at(self, t: np.ndarray) -> tuple[int, ...] | None:
        """Active set of the solution at t, with independent rows; None where no solution was found."""
        bounds, program = self.bounds, self.bounds.program
        theta = bounds.centre + bounds.half * t
        shift = program.E @ theta
        answer = self.solver.solve(program.g + program.F @ theta, program.lower + shift, program.upper + shift)
        if answer.status is not QPStatus.SOLVED:
            return None
        weight = answer.multipliers[bounds.source] * bounds.sign * bounds.size
        weight[bounds.equal] = np.inf
        active: list[int] = []
        for i in np.argsort(-weight):
            if not weight[i] > 1e-10 * max(1.0, np.abs(answer.multipliers).max()):
                break
            if not bounds.split(active, int(i))[0]:
                active.append(int(i))
        return tuple(sorted(active))


def found_regions(bounds: Bounds, most: int) -> tuple[list[Region], Facets]:
    """All regions with an interior, the largest first, and what is beyond their facets.

    Raises
    ------
    NetctrlError
        More than `most` regions, none, or a facet beyond which none could be found.
    """
    search, points = Search(bounds, most), _feasible_points(bounds)
    for t in points:
        active = search.at(t)
        if active is not None and search.look(active) is not None:
            break
    else:
        said = "the feasible set has no interior" if points else "no point of the box is feasible"
        raise NetctrlError(f"{said}: see the bounds, or netctrl.mpc.qp.certificate.conflict")
    search.explore()
    facets = Facets(search.shared, search.box, search.infeasible, search.covered)
    return sorted(search.regions.values(), key=lambda each: -each.radius), facets


def _feasible_points(bounds: Bounds) -> list[np.ndarray]:
    """Points t with a solution, inside the feasible set where it has an interior; empty where it has none."""
    q = bounds.S.shape[1]
    ends = np.array([_reach(bounds, direction) for direction in np.vstack([np.eye(q), -np.eye(q)])])
    if not np.isfinite(ends).all():
        return []
    shares = np.random.default_rng(0).dirichlet(np.ones(2 * q), 50)
    return list(np.vstack([np.full(2 * q, 0.5 / q), shares]) @ ends)


def _reach(bounds: Bounds, direction: np.ndarray) -> np.ndarray:
    """The feasible t with the least direction·t; NaN where none is."""
    from scipy.optimize import linprog

    n, q = bounds.G.shape[1], bounds.S.shape[1]
    both, equal = np.hstack([bounds.G, -bounds.S]), bounds.equal
    found = linprog(
        np.concatenate([np.zeros(n), direction]),
        A_ub=both[~equal],
        b_ub=bounds.w[~equal],
        A_eq=both[equal] if equal.any() else None,
        b_eq=bounds.w[equal] if equal.any() else None,
        bounds=[*[(None, None)] * n, *[(-1.0, 1.0)] * q],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return found.x[n:] if found.status == 0 else np.full(q, np.nan)
