"""Polyhedra of a piecewise-affine law: their largest ball, and their irredundant rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_FLAT = 1e-12  # rows that don't depend on t


class Polyhedra(NamedTuple):
    """Polyhedron of all t with rows t ≤ right."""

    rows: np.ndarray
    right: np.ndarray

    def normalised(self) -> Polyhedra:
        """The polyhedron with rows of length 1; rows of zeros are dropped where they hold, else the result is empty."""
        size = np.linalg.norm(self.rows, axis=1)
        flat = size <= _FLAT * np.maximum(1.0, np.abs(self.right))
        if (self.right[flat] < -_FLAT).any():
            q = self.rows.shape[1]
            return Polyhedra(np.vstack([np.eye(1, q), -np.eye(1, q)]), np.array([-1.0, -1.0]))  # empty
        return Polyhedra(self.rows[~flat] / size[~flat, None], self.right[~flat] / size[~flat])


def chebyshev(region: Polyhedra) -> tuple[float, np.ndarray] | None:
    """Radius and centre of the largest ball inside; None for an empty region."""
    from scipy.optimize import linprog

    rows, right = region
    q = rows.shape[1]
    if q == 1:  # an interval
        up, down = rows[:, 0] > 0.0, rows[:, 0] < 0.0
        high, low = (right[up] / rows[up, 0]).min(), (right[down] / rows[down, 0]).max()
        return (0.5 * (high - low), np.array([0.5 * (high + low)])) if high >= low else None
    cost = np.zeros(q + 1)
    cost[-1] = -1.0
    found = linprog(
        cost,
        A_ub=np.hstack([rows, np.ones((len(rows), 1))]),
        b_ub=right,
        bounds=[*[(None, None)] * q, (0.0, None)],
        method="highs",
    )
    return (float(found.x[-1]), found.x[:q]) if found.status == 0 else None


def feasible(G: np.ndarray, w: np.ndarray, S: np.ndarray, active: tuple[int, ...]) -> bool:
    """Whether for some t in [−1, 1] a v meets G v ≤ w + S t, with equality in the active rows."""
    from scipy.optimize import linprog

    n, q, at = G.shape[1], S.shape[1], list(active)
    both = np.hstack([G, -S])
    found = linprog(
        np.zeros(n + q),
        A_ub=both,
        b_ub=w,
        A_eq=both[at] if at else None,
        b_eq=w[at] if at else None,
        bounds=[*[(None, None)] * n, *[(-1.0, 1.0)] * q],
        method="highs",
    )
    return found.status == 0


def irredundant(region: Polyhedra, middle: np.ndarray) -> Polyhedra:
    """Rows that bound the region within [−1, 1], without the box itself; `middle` is inside."""
    from scipy.spatial import HalfspaceIntersection, QhullError

    rows, right = region
    q, count = rows.shape[1], len(rows)
    all_rows, all_right = np.vstack([rows, np.eye(q), -np.eye(q)]), np.concatenate([right, np.ones(2 * q)])
    if q == 1:
        reach = all_right / np.abs(all_rows[:, 0])
        needed = {int(np.argmin(np.where(sign * all_rows[:, 0] > 0.0, reach, np.inf))) for sign in (1.0, -1.0)}
    else:
        try:
            cut = HalfspaceIntersection(np.hstack([all_rows, -all_right[:, None]]), middle)
        except QhullError:
            return region  # keeping all rows is correct as well
        needed = {int(i) for facet in cut.dual_facets for i in facet}
    at = sorted(i for i in needed if i < count)
    return Polyhedra(rows[at], right[at])
