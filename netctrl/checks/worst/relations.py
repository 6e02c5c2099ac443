"""Piecewise linear relations between bounded variables, for HiGHS: minimum, maximum, choice, products and curves.

Curves and products are known within their convex hulls, so that a bound holds for them too; a point that is found may
lie off them. Bounds of variables are tightened as relations are added: the tighter they are, the smaller the hulls and
the constants by which a bit switches a row. A search for such a bound has the rows of the newest parts only: without
the others it finds a wider one, which holds, in a time that doesn't grow from part to part.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

_T = TypeVar("_T")
_CURVE = 65  # points of a curve's hull
_OUT = 1.5  # times the deviation of a chord in its middle
_SLACK = 1e-5  # of a bound: ten times the solver's tolerance
_NARROW = 1e-6
_PARTS = 3  # the newest, for bounds of variables
_EACH, _SOON_S = 0.1, 0.01  # of the time that is left for a part's bounds, for one of them; too short to begin


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """c + Σ aᵢ xᵢ."""

    relations: Relations
    terms: dict[int, float]
    constant: float = 0.0

    def __add__(self, other: Affine | float) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.relations, self.terms, self.constant + other)
        terms = dict(self.terms)
        for place, factor in other.terms.items():
            terms[place] = terms.get(place, 0.0) + factor
        return Affine(self.relations, terms, self.constant + other.constant)

    def __mul__(self, factor: float) -> Affine:
        return Affine(self.relations, {i: factor * a for i, a in self.terms.items()}, factor * self.constant)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Affine:
        return self * -1.0

    def __sub__(self, other: Affine | float) -> Affine:
        return self + -other

    def __rsub__(self, other: float) -> Affine:
        return -self + other

    @property
    def low(self) -> float:
        """Least value within the variables' bounds."""
        low, high = self.relations.low, self.relations.high
        return self.constant + sum(a * (low[i] if a > 0.0 else high[i]) for i, a in self.terms.items())

    @property
    def high(self) -> float:
        """Greatest value within the variables' bounds."""
        return -(-self).low


class Solved(NamedTuple):
    """Outcome of one search."""

    values: np.ndarray | None
    """A point, or None where none was found in time."""
    bound: float
    """No point has less."""


class Relations:
    """Variables with bounds and the rows that relate them; `seconds` is the time for searches that tighten bounds
    beyond the linear relaxation."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self._until = self._end = perf_counter() + seconds
        self._parts = [0]
        self._settled: list[tuple[float, float, float, float]] = []
        self._known: Iterator[tuple[float, float, float, float]] = iter(())

    def part(self, left: int) -> None:
        """Begin a part, with its share of the time: so many are left with it."""
        self._parts.append(len(self.rows))
        now = perf_counter()
        self._until = now + (self._end - now) / left

    def alike(self, things: Iterable[_T]) -> Generator[_T]:
        """Things of which the same is said, one by one: what is settled of the first one is known of the others."""
        first: list[tuple[float, float, float, float]] = []
        for k, thing in enumerate(things):
            self._settled, self._known = (first, iter(())) if k == 0 else ([], iter(first))
            yield thing
        self._settled, self._known = [], iter(())

    def constant(self, value: float) -> Affine:
        """A number."""
        return Affine(self, {}, float(value))

    def variable(self, low: float, high: float, whole: int = 0) -> Affine:
        """A new variable."""
        self.low.append(low)
        self.high.append(max(high, low))
        self.whole.append(whole)
        return Affine(self, {len(self.low) - 1: 1.0})

    def at_most(self, left: Affine, right: Affine | float) -> None:
        """left ≤ right."""
        gap = left - right
        self.rows.append((gap.terms, -inf, -gap.constant))

    def equal(self, left: Affine, right: Affine | float) -> None:
        """left = right."""
        gap = left - right
        self.rows.append((gap.terms, -gap.constant, -gap.constant))

    def when(self, bit: Affine, gap: Affine) -> None:
        """gap ≤ 0 where the bit is 1."""
        self.at_most(gap, (1.0 - bit) * max(gap.high, 0.0))

    def maximum(self, left: Affine, right: Affine) -> Affine:
        """max(left, right)."""
        gap = self.settle(left - right)
        if gap.low >= 0.0 or gap.high <= 0.0:
            return left if gap.low >= 0.0 else right
        y, bit = self.variable(max(left.low, right.low), max(left.high, right.high)), self.variable(0, 1, 1)
        for lesser, rest in ((left, 1.0 - bit), (right, bit)):
            self.at_most(lesser, y)
            self.at_most(y, lesser + rest * (max(-gap.low, 0.0) if lesser is left else gap.high))
        return y

    def minimum(self, left: Affine, right: Affine) -> Affine:
        """min(left, right)."""
        return -self.maximum(-left, -right)

    def choice(self, bit: Affine, one: Affine, zero: Affine) -> Affine:
        """`one` where the bit is 1, else `zero`."""
        y = self.variable(min(one.low, zero.low), max(one.high, zero.high))
        for which, value in ((bit, one), (1.0 - bit, zero)):
            self.when(which, y - value)
            self.when(which, value - y)
        return y

    def curve(self, x: Affine, f: Callable[[float], float]) -> Affine:
        """A value in the convex hull of f over the range of x."""
        low, high = x.low, x.high
        if high - low < _NARROW:
            return self.constant(f(0.5 * (low + high)))
        at = np.linspace(low, high, _CURVE)
        values = np.array([f(u) for u in at])
        # Chords cut a curve off by most about their middles: both sides of the hull move out by more than that.
        bends = np.array([f(u) for u in 0.5 * (at[1:] + at[:-1])]) - 0.5 * (values[1:] + values[:-1])
        below, above = (_OUT * max(float((sign * bends).max()), 0.0) for sign in (-1.0, 1.0))
        y = self.variable(values.min() - below, values.max() + above)
        for sign, out in ((1.0, below), (-1.0, above)):
            for i, j in _lower_hull(at, sign * values):
                slope = (values[j] - values[i]) / (at[j] - at[i])
                self.at_most(((x - at[i]) * slope + values[i] - y) * sign, out)
        return y

    def quotient(self, numerator: Affine, divisor: Affine) -> Affine:
        """x with x times the divisor = numerator, both above 0, within McCormick's hull."""
        x = self.variable(numerator.low / divisor.high, numerator.high / divisor.low)
        for _ in range(2):  # the second hull has the bounds that the first leaves
            self._mccormick(x, divisor, numerator)
            x = self.settle(x)
        return x

    def product(self, x: Affine, y: Affine) -> Affine:
        """A value in McCormick's hull of x y."""
        corners = [u * v for u in (x.low, x.high) for v in (y.low, y.high)]
        z = self.variable(min(corners), max(corners))
        self._mccormick(x, y, z)
        return z

    def _mccormick(self, x: Affine, y: Affine, z: Affine) -> None:
        for u, v, sign in ((x.low, y.low, 1), (x.high, y.high, 1), (x.low, y.high, -1), (x.high, y.low, -1)):
            self.at_most((y * u + x * v - u * v - z) * sign, 0.0)

    def greatest(self, values: list[Affine]) -> Affine:
        """One of some values: where it is to be great, the greatest."""
        y = self.variable(min(value.low for value in values), max(value.high for value in values))
        bits = [self.variable(0, 1, 1) for _ in values]
        self.equal(sum(bits[1:], bits[0]), 1.0)
        for bit, value in zip(bits, values, strict=True):
            self.when(bit, y - value)
        return y

    def settle(self, value: Affine, low: float = -inf, high: float = inf) -> Affine:
        """A variable that equals `value`, with the bounds that all relations so far leave it."""
        low, high = within = max(low, value.low), min(high, value.high)
        known = next(self._known, None)
        if known is not None and np.allclose(known[:2], within, rtol=0.0, atol=1e-9):
            low, high = known[2:]
        elif high - low > _NARROW:
            self._known = iter(())
            low = max(low, self._least(value) - _SLACK)
            high = min(high, -self._least(-value) + _SLACK)
        self._settled.append((*within, low, high))
        y = self.variable(low, high)
        self.equal(y, value)
        return y

    def _least(self, value: Affine) -> float:
        bound = self.least(value, relaxed=True).bound
        seconds = _EACH * (self._until - perf_counter())
        if seconds > _SOON_S:
            bound = max(bound, self.least(value, seconds, first=self._parts[-_PARTS:][0]).bound)
        return bound

    def least(self, value: Affine, seconds: float = 60.0, relaxed: bool = False, first: int = 0) -> Solved:
        """The least of a value, with the rows from `first` on: a point, and what it is at least; relaxed: without whole
        numbers."""
        rows, low, high = self.rows[first:], np.array(self.low), np.array(self.high)
        used = np.array(sorted({i for terms, _, _ in rows for i in terms} | set(value.terms)), dtype=int)
        if not len(used):
            return Solved(low, value.constant)
        column = {i: k for k, i in enumerate(used.tolist())}
        cost = np.zeros(len(used))
        cost[[column[i] for i in value.terms]] = list(value.terms.values())
        entries = [(row, column[i], a) for row, (terms, _, _) in enumerate(rows) for i, a in terms.items()]
        whole = np.zeros(len(used)) if relaxed else np.array(self.whole)[used]
        with _silent() if whole.any() else nullcontext():
            found: Any = milp(
                cost,
                integrality=whole,
                bounds=Bounds(low[used], high[used]),
                constraints=_rows(entries, rows, len(used)),
                options={"time_limit": 60.0 if relaxed else seconds, "mip_rel_gap": 1e-3},
            )
        bound = found.mip_dual_bound if whole.any() else found.fun if found.status == 0 else None
        bound = float(bound) if bound is not None and isfinite(bound) else -inf
        if found.x is None:
            return Solved(None, bound + value.constant)
        low[used] = found.x
        return Solved(low, bound + value.constant)


@contextmanager
def _silent() -> Generator[None]:
    """HiGHS 1.12 writes a line of its own to the process's output when it repairs a point, whatever it is told; what
    others write meanwhile comes after."""
    sys.stdout.flush()
    kept = os.dup(1)
    with TemporaryFile() as written:
        os.dup2(written.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            written.seek(0)
            for line in written:
                if not line.startswith(b"HighsMip"):
                    os.write(1, line)


def _rows(entries: list[tuple[int, int, float]], rows: list[Any], width: int) -> Any:
    if not rows:
        return ()
    at = np.array([entry[:2] for entry in entries], dtype=int).reshape(-1, 2)
    matrix = csr_matrix(([entry[2] for entry in entries], (at[:, 0], at[:, 1])), shape=(len(rows), width))
    return LinearConstraint(matrix, [row[1] for row in rows], [row[2] for row in rows])


def _lower_hull(x: np.ndarray, y: np.ndarray) -> list[tuple[int, int]]:
    """Segments of the lower convex hull of points in order of x."""
    kept: list[int] = []
    for k in range(len(x)):
        while len(kept) > 1:
            i, j = kept[-2:]
            if (y[j] - y[i]) * (x[k] - x[i]) < (y[k] - y[i]) * (x[j] - x[i]):
                break
            kept.pop()
        kept.append(k)
    return list(pairwise(kept))


def valued(tree: Any, values: np.ndarray) -> Any:
    """A tree of dicts and lists with the numbers in place of what they were variables for."""
    if isinstance(tree, Affine):
        return tree.constant + sum(a * float(values[i]) for i, a in tree.terms.items())
    if isinstance(tree, dict):
        return {name: valued(item, values) for name, item in tree.items()}
    return [valued(item, values) for item in tree]


def affine(relations: Relations, tree: Any) -> Any:
    """A tree of numbers as constants."""
    if isinstance(tree, dict):
        return {name: affine(relations, item) for name, item in tree.items()}
    if isinstance(tree, list):
        return [affine(relations, item) for item in tree]
    return relations.constant(tree)
