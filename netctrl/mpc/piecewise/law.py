"""Explicit MPC: a small problem solved for all states in advance, as a piecewise affine law on polyhedra.

The regions come from `netctrl.mpc.piecewise.search`, which proves that none is missed. Those with the same law and a
convex union become one, and a search tree finds the region of a point in a number of steps that is known in advance.

Source: Bemporad, Morari, Dua, Pistikopoulos, Automatica 38 (2002) 3-20.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_whole
from netctrl.mpc.formulate import condensed_program, parameter_box
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.piecewise.search import Bounds, Facets, Region, found_regions
from netctrl.mpc.problem import MpcProblem

_SAME = 9  # decimals, in units of the inputs, to which two laws are the same


class SearchTree(NamedTuple):
    """Binary tree over regions: at node i, t goes to child[i, 0] where split[i] t ≤ value[i], else to child[i, 1].

    A child of at least 0 is a node; −1 − l is the leaf l, with the regions leaf[leaf_first[l] : leaf_first[l + 1]].
    """

    split: np.ndarray
    """(nodes, q)"""
    value: np.ndarray
    """(nodes,)"""
    child: np.ndarray
    """(nodes, 2)"""
    leaf_first: np.ndarray
    """(leaves + 1,)"""
    leaf: np.ndarray
    """(any,) indices of regions."""
    depth: int
    """Nodes on the longest path."""


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseLaw:
    """Law u = gain[r] t + offset[r] in the region r with rows t ≤ right, where t = (θ − centre)/half in [−1, 1].

    θ is as in `netctrl.mpc.parametric.parameters`: the state after the delay, then the last input with a rate weight.
    """

    centre: np.ndarray
    """(q,)"""
    half: np.ndarray
    """(q,)"""
    rows: np.ndarray
    """(T, q) rows of unit length, of all regions one after the other."""
    right: np.ndarray
    """(T,)"""
    edge: np.ndarray
    """(T,) of bool: rows that bound the feasible set."""
    first: np.ndarray
    """(R + 1,) index of each region's first row."""
    gain: np.ndarray
    """(R, m, q)"""
    offset: np.ndarray
    """(R, m) [the plant's units]."""
    active: tuple[tuple[str, ...], ...]
    """Names of the bounds that are active everywhere in each of the R regions."""
    facets: Facets
    """Numbers of facets by what is beyond them, before merging."""
    tree: SearchTree
    """By which a point's region is found."""

    def __post_init__(self) -> None:
        for part in (self.centre, self.half, self.rows, self.right, self.edge, self.first, self.gain, self.offset):
            part.setflags(write=False)

    @property
    def most_tests(self) -> int:
        """Largest number of hyperplanes on whose side a point is tested before its region is known: a proved bound."""
        count, leaf = np.diff(self.first), self.tree.leaf
        in_leaf = [int(count[leaf[a:b]].sum()) for a, b in pairwise(self.tree.leaf_first)]
        return self.tree.depth + max(in_leaf)

    def decide(self, theta: Any) -> np.ndarray:
        """Inputs (m,) at θ (q,).

        Raises
        ------
        InvalidValue
            Numbers that aren't finite, or a θ outside all regions: out of the table's box, or infeasible.
        """
        theta = np.asarray(theta, dtype=float)
        if theta.shape != self.centre.shape:
            self.decide_many(theta[None])  # raises
        inputs, region = self._decide(theta[None])
        if region[0] < 0:
            self.decide_many(theta[None])  # raises for numbers that aren't finite, which are in no region
            low, high = (self.centre - self.half).tolist(), (self.centre + self.half).tolist()
            takes = f"a feasible point from {low} to {high}: the table has no others; solve the program instead"
            raise InvalidValue("theta", theta.tolist(), takes)
        return inputs[0]

    def decide_many(self, thetas: Any) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (count, m) at thetas (count, q), and their regions (count,), −1 with inputs of 0 outside all."""
        thetas = np.ascontiguousarray(thetas, dtype=float)
        if thetas.ndim != 2 or thetas.shape[1] != len(self.centre) or not np.isfinite(thetas).all():
            raise InvalidValue("thetas", f"shape {thetas.shape}", f"finite numbers of shape (any, {len(self.centre)})")
        return self._decide(thetas)

    def _decide(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from netctrl.mpc.piecewise.kernel import decide_points

        t = (thetas - self.centre) / self.half
        return decide_points(t, self.rows, self.right, self.first, *self.tree[:-1], self.gain, self.offset)


def piecewise_law(
    problem: MpcProblem | ParametricProgram, lower: Any, upper: Any, *, merge: bool = True, max_regions: int = 20_000
) -> PiecewiseLaw:
    """Explicit law for the first inputs of an MPC problem for all θ of a box.

    Parameters
    ----------
    problem : MpcProblem or ParametricProgram
        A small problem: the number of regions grows fast with the horizon and with θ.
    lower, upper : array_like, shape (q,)
        The box of θ, finite.
    merge : bool
        Whether regions with the same law become one where their union is convex.
    max_regions : int
        Largest number of regions before merging.

    Returns
    -------
    PiecewiseLaw

    Raises
    ------
    InvalidValue
        An empty or infinite box, or a cost without a unique minimum.
    NetctrlError
        More regions than `max_regions`, no feasible point in the box, or a degenerate problem of which some part of the
        box can't be settled.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.piecewise.law import piecewise_law
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(
    ...     plant=plant, horizon=5, state_weight=1.0, input_weight=1.0, input_lower=-0.5, input_upper=0.5
    ... )
    >>> law = piecewise_law(problem, -4.0, 4.0)
    >>> len(law.offset), law.decide([2.0]).round(3).tolist()
    (3, [-0.5])
    """
    most = checked_whole("max_regions", max_regions, "a number of at least 1", at_least=1)
    program = condensed_program(problem)
    low, high = parameter_box(program, lower, upper)
    bounds = Bounds(program, 0.5 * (low + high), 0.5 * (high - low))
    regions, facets = found_regions(bounds, most)
    pieces = [_piece(bounds, each) for each in regions]
    if checked_flag("merge", merge):
        pieces = _merged(pieces, program.input_scale)
    pieces.sort(key=lambda each: -each.radius)
    rows, right = np.vstack([each.rows for each in pieces]), np.concatenate([each.right for each in pieces])
    edge, first = np.concatenate([each.edge for each in pieces]), np.cumsum([0, *(len(each.right) for each in pieces)])
    return PiecewiseLaw(
        bounds.centre,
        bounds.half,
        rows,
        right,
        edge,
        first,
        np.stack([each.law[:, :-1] for each in pieces]),
        np.stack([each.law[:, -1] for each in pieces]),
        tuple(tuple(bounds.names[i] for i in sorted(each.active)) for each in pieces),
        facets,
        search_tree(rows, right, edge, first),
    )


def search_tree(rows: np.ndarray, right: np.ndarray, edge: np.ndarray, first: np.ndarray) -> SearchTree:
    """Search tree of regions, arguments as in `PiecewiseLaw`."""
    from netctrl.mpc.piecewise.tree import grow

    return SearchTree(*grow(rows, right, edge, first))


class _Piece(NamedTuple):
    """Region of a law: rows t ≤ right, which of them bound the feasible set, and u = law [t; 1]."""

    rows: np.ndarray
    right: np.ndarray
    edge: np.ndarray
    law: np.ndarray
    """(m, q + 1)"""
    active: frozenset[int]
    radius: float
    middle: np.ndarray
    walls: tuple[set[bytes], set[bytes]]
    """Its rows, rounded, and the same seen from beyond: a neighbour has one of these."""


def _walls(rows: np.ndarray, right: np.ndarray) -> tuple[set[bytes], set[bytes]]:
    sides = np.round(np.column_stack([rows, right]), 6)
    return {(each + 0.0).tobytes() for each in sides}, {(0.0 - each).tobytes() for each in sides}


def _piece(bounds: Bounds, region: Region) -> _Piece:
    program, m = bounds.program, len(bounds.program.input_scale)
    law = bounds.solution(region.active)[:m] * program.input_scale[:, None]
    q = program.gains.shape[2]  # references and disturbances follow in θ
    law -= program.gains[0] @ np.column_stack([np.diag(bounds.half), bounds.centre])[:q]
    walls, active = _walls(region.rows, region.right), frozenset(region.active)
    return _Piece(region.rows, region.right, region.edge, law, active, region.radius, region.middle, walls)


def _merged(pieces: list[_Piece], unit: np.ndarray) -> list[_Piece]:
    """Pieces of which none can be joined with another one of the same law."""
    alike: dict[bytes, list[_Piece]] = {}
    for each in pieces:
        alike.setdefault((np.round(each.law / unit[:, None], _SAME) + 0.0).tobytes(), []).append(each)
    found: list[_Piece] = []
    for left in alike.values():
        before = 0
        while len(left) != before:
            before, parts, left = len(left), left, []
            while parts:
                one, at = parts.pop(), 0
                while at < len(parts):
                    both = None if one.walls[0].isdisjoint(parts[at].walls[1]) else _union(one, parts[at])
                    if both is None:
                        at += 1
                    else:
                        del parts[at]
                        one, at = both, 0
                left.append(one)
        found += left
    return found


def _union(one: _Piece, other: _Piece) -> _Piece | None:
    """Union of two pieces that share a facet, where it is convex."""
    from netctrl.mpc.piecewise.geometry import largest_ball, necessary
    from netctrl.mpc.piecewise.tree import convex_union

    q = len(one.middle)
    box, ends = np.vstack([np.eye(q), -np.eye(q)]), np.ones(2 * q)
    sets = [(np.vstack([each.rows, box]), np.append(each.right, ends), each.middle) for each in (one, other)]
    convex, keep, keep_other = convex_union(*sets[0], *sets[1])
    if not convex:
        return None
    keep, keep_other = keep[: len(one.right)], keep_other[: len(other.right)]
    rows = np.vstack([one.rows[keep], other.rows[keep_other], box])
    right = np.concatenate([sets[0][1][: len(keep)][keep], sets[1][1][: len(keep_other)][keep_other], ends])
    edge = np.append(one.edge[keep], other.edge[keep_other])
    radius, middle = largest_ball(rows, right)
    needed = np.flatnonzero(necessary(rows, right, middle)[: len(edge)])
    # A row of both may bound the feasible set along one of them only.
    same = (np.abs(rows[needed, None] - rows[: len(edge)]) < 1e-8).all(axis=2)
    edge = (same & (np.abs(right[needed, None] - right[: len(edge)]) < 1e-8) & edge).any(axis=1)
    rows, right, active = rows[needed], right[needed], one.active & other.active
    return _Piece(rows, right, edge, one.law, active, radius, middle, _walls(rows, right))
