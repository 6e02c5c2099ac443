"""Polyhedra rows t ≤ right in a few dimensions, compiled: largest ball, necessary rows, facets; nothing is checked.

Each question is a linear program with a known point inside, so the simplex method needs no first phase; in q dimensions
a pivot takes rows · q operations, and a program a few times q pivots.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit

DEEP = 1e-10  # a row is necessary where the polyhedron without it reaches this far beyond
_PIVOT = 1e-10
_SLACK = 1e-13
_NOISE = 1e-11  # of the terms whose sum is a row: what rounding leaves of a row of zeros
_DANTZIG = 100  # pivots with the largest slope, which may cycle; then the first one, which never does


@njit(cache=True)
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    found = 0.0
    for k in range(len(a)):
        found += a[k] * b[k]
    return found


@njit(cache=True)
def _alike(a: np.ndarray, b: np.ndarray, alike: float) -> bool:
    far = 0.0
    for k in range(len(a)):
        far = max(far, abs(a[k] - b[k]))
    return far < alike


@njit(cache=True)
def maximise(cost: np.ndarray, rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The t (q,) with the largest cost·t on rows t ≤ right, right ≥ 0; NaN for a polyhedron without an end."""
    count, q = rows.shape
    # Dictionary: each row's basic variable is table[i, q] − Σ table[i, k] · (the k-th nonbasic variable).
    table = np.empty((count + 1, q + 1))
    table[:count, :q] = rows
    for i in range(count):
        table[i, q] = max(right[i], 0.0)
    table[count, :q] = -cost
    table[count, q] = 0.0
    column = -1 - np.arange(q)  # nonbasic variables: −1 − k is t_k, others slacks
    basic = np.arange(count)
    for turn in range(1000 * (count + q)):
        enter, best, sign = -1, _PIVOT, 1.0
        for k in range(q):
            slope = -table[count, k]
            free = column[k] < 0
            size = abs(slope) if free else slope
            if size > best:
                enter, sign = k, (1.0 if slope > 0.0 else -1.0)
                if turn > _DANTZIG:
                    break
                best = size
        if enter < 0:
            break
        # Harris's ratio test: of the rows that are reached up to rounding, the one with the largest pivot.
        leave, most, pivot = -1, np.inf, 0.0
        for i in range(count):
            speed = sign * table[i, enter]
            if basic[i] >= 0 and speed > _PIVOT:
                most = min(most, (table[i, q] + _SLACK) / speed)
        for i in range(count):
            speed = sign * table[i, enter]
            if basic[i] >= 0 and speed > max(_PIVOT, pivot) and table[i, q] <= most * speed:
                leave, pivot = i, speed
        if leave < 0:
            return np.full(q, np.nan)
        factor = 1.0 / table[leave, enter]
        table[leave, q] = max(table[leave, q], 0.0)
        for k in range(q + 1):
            table[leave, k] *= factor
        table[leave, enter] = factor
        for i in range(count + 1):
            by = table[i, enter]
            if i != leave and by != 0.0:
                for k in range(q + 1):
                    table[i, k] -= by * table[leave, k]
                table[i, enter] = -by * factor
        column[enter], basic[leave] = basic[leave], column[enter]
    t = np.zeros(q)
    for i in range(count):
        if basic[i] < 0:
            t[-1 - basic[i]] = table[i, q]
    return t


@njit(cache=True)
def factored(rows: np.ndarray, at: np.ndarray) -> tuple[bool, np.ndarray, np.ndarray]:
    """Orthonormal Q and lower triangular R with rows[at] = R Q (Gram-Schmidt, twice); False where rows depend."""
    size, n = len(at), rows.shape[1]
    Q, R = np.zeros((size, n)), np.zeros((size, size))
    for j in range(size):
        own = np.sqrt(_dot(rows[at[j]], rows[at[j]]))
        Q[j] = rows[at[j]]
        for _ in range(2):
            for i in range(j):
                along = _dot(Q[i], Q[j])
                R[j, i] += along
                for k in range(n):
                    Q[j, k] -= along * Q[i, k]
        R[j, j] = np.sqrt(_dot(Q[j], Q[j]))
        if not R[j, j] > _NOISE * own:
            return False, Q, R
        Q[j] /= R[j, j]
    return True, Q, R


@njit(cache=True)
def _back(R: np.ndarray, right: np.ndarray) -> None:
    """Overwrite right (a, k) with R'⁻¹ right."""
    for j in range(len(R) - 1, -1, -1):
        for k in range(j + 1, len(R)):
            right[j] -= R[k, j] * right[k]
        right[j] /= R[j, j]


@njit(cache=True)
def coefficients(rows: np.ndarray, at: np.ndarray, i: int) -> tuple[float, np.ndarray]:
    """Sine of the angle between row i and the span of rows[at], and the coefficients of its part in this span."""
    _, Q, R = factored(rows, at)
    c, rest = np.zeros((len(at), 1)), rows[i].copy()
    own = np.sqrt(_dot(rest, rest))
    for _ in range(2):
        for j in range(len(at)):
            along = _dot(Q[j], rest)
            c[j, 0] += along
            for k in range(len(rest)):
                rest[k] -= along * Q[j, k]
    _back(R, c)
    return np.sqrt(_dot(rest, rest)) / own if own > 0.0 else 0.0, c[:, 0].copy()


@njit(cache=True)
def normalised(rows: np.ndarray, right: np.ndarray, noise: np.ndarray, reach: float) -> np.ndarray:
    """Scale rows to length 1 in place, for |t_i| ≤ reach; kind of each: 1 a row, 0 met by all t, 2 equal for all t, −1
    met by none. Rows of the latter kinds become 0 ≤ 1. `noise`: size of what rounding leaves of a row."""
    kind = np.ones(len(right), np.int64)
    for i in range(len(right)):
        size, sum_ = np.sqrt(_dot(rows[i], rows[i])), 0.0
        for k in range(rows.shape[1]):
            sum_ += reach * abs(rows[i, k])
        if size <= noise[i] and abs(right[i]) <= noise[i]:
            kind[i] = 2
        elif right[i] > sum_ + noise[i]:
            kind[i] = 0
        elif right[i] < -sum_ - noise[i] or size <= noise[i]:
            kind[i] = -1
        else:
            rows[i] /= size
            right[i] /= size
            continue
        rows[i], right[i] = 0.0, 1.0
    return kind


@njit(cache=True)
def largest_ball(rows: np.ndarray, right: np.ndarray) -> tuple[float, np.ndarray]:
    """Radius and centre of the largest ball inside; a radius below 0: how far the rows miss each other."""
    count, q = rows.shape
    worst = np.min(right)
    wide, shifted = np.ones((count, q + 1)), right - worst
    wide[:, :q] = rows
    for i in range(count):
        if _dot(rows[i], rows[i]) == 0.0:
            wide[i, q] = 0.0
    cost = np.zeros(q + 1)
    cost[q] = 1.0
    found = maximise(cost, wide, shifted)
    # As the rows have it, not as the last dictionary has it.
    return np.min(right - rows @ found[:q]), found[:q]


@njit(cache=True)
def _farthest(i: int, rows: np.ndarray, reach: np.ndarray, needed: np.ndarray) -> tuple[np.ndarray, float]:
    """The t with the largest rows[i] t where the needed rows hold, row i up to 1 beyond, and that value."""
    count, q = rows.shape
    some, ends = np.zeros((count + 1 + 2 * q, q)), np.full(count + 1 + 2 * q, 10.0)
    for k in range(q):
        some[k, k], some[q + k, k] = 1.0, -1.0
    at = 2 * q
    for k in range(count):
        if k == i or needed[k]:
            for j in range(q):
                some[at, j] = rows[k, j]
            ends[at] = reach[k] + (1.0 if k == i else 0.0)
            at += 1
    t = maximise(rows[i], some[:at], ends[:at])
    return t, _dot(rows[i], t)


@njit(cache=True)
def necessary(rows: np.ndarray, right: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Rows (count,) of bool that bound a bounded polyhedron with `middle` inside (Clarkson's method).

    Source: Clarkson, Symposium on Foundations of Computer Science 35 (1994) 695-702.
    """
    count, q = rows.shape
    reach = right - rows @ middle
    needed, undecided = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for k in range(q):  # rays along the axes find rows between which everything is bounded, and most facets
        for side in (1.0, -1.0):
            hit, least = -1, np.inf
            for i in range(count):
                speed = side * rows[i, k]
                if speed > 0.0 and reach[i] < least * speed:
                    hit, least = i, reach[i] / speed
            needed[hit], undecided[hit] = True, False
    for i in range(count):
        while undecided[i]:
            t, ahead = _farthest(i, rows, reach, needed)
            if ahead <= reach[i] + DEEP:  # so for rows of zeros
                undecided[i] = False
                break
            # The first row on the way there is necessary.
            hit, least = i, reach[i] / ahead
            for k in range(count):
                if undecided[k]:
                    speed = _dot(rows[k], t)
                    if speed > 0.0 and reach[k] < least * speed:
                        hit, least = k, reach[k] / speed
            needed[hit], undecided[hit] = True, False
    # A ray may have hit a ridge, so that a row was taken that only touches.
    for i in range(count):
        if needed[i]:
            needed[i] = not _farthest(i, rows, reach, needed)[1] <= reach[i] + DEEP
    return needed


@njit(cache=True)
def facet_ball(rows: np.ndarray, right: np.ndarray, row: np.ndarray, value: float) -> tuple[float, np.ndarray]:
    """Radius and centre of the largest ball inside rows t ≤ right on the hyperplane row·t = value, within |t_i| ≤ 1.

    `row` has length 1.
    """
    q = len(row)
    if q == 1:
        at = np.array([value * row[0]])
        return np.min(right - rows @ at), at
    # Householder's reflection of the first axis onto ±row; its other columns are an orthonormal basis.
    mirror = row.copy()
    mirror[0] += 1.0 if row[0] >= 0.0 else -1.0
    basis = (np.eye(q) - 2.0 / np.sum(mirror**2) * mirror.reshape(-1, 1) * mirror)[:, 1:].copy()
    origin = value * row
    flat, left = rows @ basis, right - rows @ origin
    if np.any(normalised(flat, left, np.full(len(left), 1e-11), 2.0 * q) < 0):
        return -1.0, origin
    radius, centre = largest_ball(flat, left)
    return radius, origin + basis @ centre


@njit(cache=True)
def extent(rows: np.ndarray, right: np.ndarray, middle: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """Least and greatest direction·t on a bounded polyhedron with `middle` inside."""
    reach, at = right - rows @ middle, _dot(direction, middle)
    low = at + _dot(direction, maximise(-direction, rows, reach))
    return low, at + _dot(direction, maximise(direction, rows, reach))


@njit(cache=True)
def region(
    turned: np.ndarray, excess: np.ndarray, equal: np.ndarray, active: np.ndarray, thin: float, alike: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, np.ndarray, bool, int]:
    """Necessary rows and right sides in the box, bound of each, largest ball, whether no rows coincide, and the number
    of facets on the box, where the bounds `active` are. With G_a root = R Q, R⁻¹ excess_a = Q d, λ = R'⁻¹ Q d.

    A radius of −1 where the rows of the active bounds depend on each other, or the region is empty.
    """
    count, q = len(turned), excess.shape[1] - 1
    none, zero, nobody = np.zeros((0, q)), np.zeros(q), np.zeros(0, np.int64)
    is_active = np.zeros(count, np.bool_)
    for i in active:
        is_active[i] = True
    rest = np.flatnonzero(~is_active)
    size = len(active)
    L = np.zeros((size, q + 1))
    over, noise = excess[rest], np.zeros(count + 2 * q)
    for i in range(len(rest)):
        noise[rest[i]] = np.max(np.abs(over[i]))
    if size > 0:
        independent, Q, R = factored(turned, active)
        if not independent:
            return none, zero[:0], nobody, -1.0, zero, False, 0
        L = excess[active]
        for j in range(size):
            for k in range(j):
                L[j] -= R[j, k] * L[k]
            L[j] /= R[j, j]
        over = over - (turned[rest] @ Q.T) @ L
        far = 0.0  # length of d, at most
        for j in range(size):
            far += np.max(np.abs(L[j])) ** 2
        _back(R, L)
        scale, largest = np.empty(size), 0.0  # of the multipliers, in the unit of each
        for j in range(size):
            scale[j] = np.sqrt(_dot(turned[active[j]], turned[active[j]]))
            largest = max(largest, scale[j] * np.max(np.abs(L[j])))
        for j in range(size):
            noise[active[j]] = largest / scale[j]
        for i in rest:
            noise[i] = max(noise[i], np.sqrt(far * _dot(turned[i], turned[i])))
    rows, right = np.zeros((count + 2 * q, q)), np.ones(count + 2 * q)
    rows[rest], right[rest] = over[:, :q], -over[:, q]
    for j in range(size):
        if not equal[active[j]]:
            rows[active[j]], right[active[j]] = -L[j, :q], L[j, q]
    for k in range(q):
        rows[count + k, k], rows[count + q + k, k] = 1.0, -1.0
    kind = normalised(rows, right, _NOISE * noise, 1.0)
    if np.any(kind < 0):
        return none, zero[:0], nobody, -1.0, zero, False, 0
    radius, middle = largest_ball(rows, right)
    if radius <= thin:
        return none, zero[:0], nobody, radius, middle, False, 0
    needed = necessary(rows, right, middle)
    box = 0
    for k in range(count, count + 2 * q):  # a row that coincides with the box's has nothing beyond it
        on = needed[k]
        for i in range(count):
            if needed[i] and abs(right[i] - 1.0) < alike and _alike(rows[i], rows[k], alike):
                needed[i], on = False, True
        box += on
    owner = np.flatnonzero(needed[:count])
    plain = True
    for i in range(count):
        if kind[i] == 2 and np.any(turned[i] != 0.0) and not equal[i]:
            plain = False  # a bound that is active, or a multiplier that is 0, in all of the region
    for k in owner:
        for i in range(count):
            if i != k and kind[i] == 1 and abs(right[i] - right[k]) < alike and _alike(rows[i], rows[k], alike):
                plain = False
    return rows[owner], right[owner], owner, radius, middle, plain, box
