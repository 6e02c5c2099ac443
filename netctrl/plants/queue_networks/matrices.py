"""Small matrices of arrays or of functions over cells: linear equations and determinants, entry by entry.

There is no pivoting: rows are those of links in the order in which packets come to them, whose pivots are largest.
Entries are arrays, functions over cells (`netctrl.plants.queues.mean_value`), or the number 0.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

Matrix = list[list[Any]]


def solved(A: Matrix, B: Matrix) -> Matrix:
    """X of A X = B, by Gaussian elimination."""
    A, B = [list(row) for row in A], [list(row) for row in B]
    size, columns = len(A), range(len(B[0]))
    for pivot in range(size):
        for row in range(pivot + 1, size):
            if _is_zero(A[row][pivot]):
                continue
            factor = A[row][pivot] / A[pivot][pivot]
            for column in range(pivot + 1, size):
                A[row][column] = _less(A[row][column], factor, A[pivot][column])
            for column in columns:
                B[row][column] = _less(B[row][column], factor, B[pivot][column])
    for row in reversed(range(size)):
        for column in columns:
            value = B[row][column]
            for other in range(row + 1, size):
                value = _less(value, A[row][other], B[other][column])
            B[row][column] = value if _is_zero(value) else value / A[row][row]
    return B


def determinant(A: Matrix) -> Any:
    """Determinant by minors, each computed once: no division, so that bounds stay narrow. 0.0 where it has no terms."""
    minors: dict[tuple[int, ...], Any] = {(): 1.0}
    for row in reversed(A):
        found: dict[tuple[int, ...], Any] = {}
        for kept in combinations(range(len(A)), len(next(iter(minors))) + 1):
            total: Any = 0.0
            for place, column in enumerate(kept):
                minor = minors[kept[:place] + kept[place + 1 :]]
                if _is_zero(row[column]) or _is_zero(minor):
                    continue
                term = row[column] if isinstance(minor, float) else row[column] * minor
                total = total + (-term if place % 2 else term)
            found[kept] = total
        minors = found
    return minors[tuple(range(len(A)))]


def _less(value: Any, factor: Any, other: Any) -> Any:
    """value − factor · other."""
    return value if _is_zero(factor) or _is_zero(other) else value - factor * other


def _is_zero(entry: Any) -> bool:
    return isinstance(entry, float) and entry == 0.0
