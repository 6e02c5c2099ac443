"""Scaling of a program to rows and columns of similar size, as solvers' absolute tolerances expect.

All factors are powers of 2, so scaling doesn't round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.model.io.matrix import is_sparse
from netctrl.mpc.qp.program import QuadraticProgram

_ROUNDS = 12
_ALIKE = 32.0  # sizes within this factor of 1 are left alone


class Scaling(NamedTuple):
    """Factors of x = columns · x̂; rows of A times `rows`, the cost times `cost`: Ĥ = cost · columns H columns."""

    columns: np.ndarray
    """(n,)"""
    bounds: np.ndarray
    """(n + k,) factors of the bounds of x, then of A x: 1 / columns and rows."""
    cost: float

    def point(self, x: np.ndarray) -> np.ndarray:
        """Point x of a scaled x̂."""
        return x * self.columns

    def multipliers(self, y: np.ndarray) -> np.ndarray:
        """Multipliers y of a scaled ŷ."""
        return y * self.bounds / self.cost


def balance(H: Any, A: Any) -> Scaling:
    """Factors that bring the largest entry of each row of [[H, A'], [A, 0]] close to 1.

    Source: Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices" (2001).
    """
    size_H, size_A = abs(H), abs(A)
    n, k = H.shape[0], A.shape[0]
    column, row = np.ones(n), np.ones(k)
    for _ in range(_ROUNDS):
        of_column = np.maximum(_largest(size_H, column, column, n), _largest(size_A.T, row, column, n))
        of_row = _largest(size_A, column, row, k)
        column, row = column / np.sqrt(_or_one(of_column)), row / np.sqrt(_or_one(of_row))
    curved = float(_largest(size_H, column, column, n).max(initial=0.0)) or 1.0
    if max(_spread(column), _spread(row), _spread(np.array([curved]))) <= _ALIKE:
        return Scaling(np.ones(n), np.ones(n + k), 1.0)
    column, row = _power(column), _power(row)
    return Scaling(column, np.concatenate([1.0 / column, row]), float(_power(np.array([1.0 / curved]))[0]))


def balanced(program: QuadraticProgram, scaling: Scaling) -> QuadraticProgram:
    """Program in units of `scaling`."""
    column, bounds, cost = scaling
    row = bounds[len(column) :]
    scaled = object.__new__(QuadraticProgram)
    parts = {
        "H": _times(program.H, column, column * cost),
        "g": program.g * column * cost,
        "A": _times(program.A, row, column),
        "lower": program.lower * bounds,
        "upper": program.upper * bounds,
        "names": program.names,
        "units": program.units / bounds,
    }
    for name, value in parts.items():
        object.__setattr__(scaled, name, value)
    return scaled


def _times(M: Any, left: np.ndarray, right: np.ndarray) -> Any:
    if is_sparse(M):
        import scipy.sparse as sp

        return (sp.diags_array(left) @ M @ sp.diags_array(right)).tocsr()
    return left[:, None] * M * right


def _largest(M: Any, right: np.ndarray, left: np.ndarray, count: int) -> np.ndarray:
    """Largest entry of each row of left · M · right; 0 where there is none."""
    if M.shape[1] == 0 or M.shape[0] == 0:
        return np.zeros(count)
    if is_sparse(M):
        return left * (M * right[None, :]).max(axis=1).toarray().ravel()
    return left * (M * right).max(axis=1)


def _or_one(size: np.ndarray) -> np.ndarray:
    return np.where(size > 0.0, size, 1.0)


def _spread(size: np.ndarray) -> float:
    return float(np.maximum(size, 1.0 / size).max(initial=1.0))


def _power(size: np.ndarray) -> np.ndarray:
    return 2.0 ** np.round(np.log2(size))
