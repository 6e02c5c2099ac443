"""Search tree of a piecewise-affine law, and unions of its regions, compiled; nothing is checked here.

Sources: Tøndel, Johansen, Bemporad, Automatica 39 (2003) 945-950 (the tree); Bemporad, Fukuda, Torrisi, Computational
Geometry 18 (2001) 141-154 (a union is convex where it is the polyhedron of the rows that hold for both).
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit
from netctrl.mpc.piecewise.geometry import extent, largest_ball

TOLERANCE = 1e-9  # of the box's half width: neighbours overlap by this, so that no point falls between them
_LEAF, _LARGE_LEAF = 3, 8  # regions of a leaf at most, where a hyperplane divides more; from 5 dimensions on
_TRIED, _EXACT = 300, 12  # hyperplanes tried at a node by their regions' balls and boxes, and exactly
_ALIKE = 1e-8


@njit(cache=True)
def within(rows: np.ndarray, right: np.ndarray, edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and right sides with the box, each wider by twice the tolerance where nothing is beyond."""
    count, q = rows.shape
    all_, sides = np.zeros((count + 2 * q, q)), np.full(count + 2 * q, 1.0 + 2.0 * TOLERANCE)
    for i in range(count):
        all_[i], sides[i] = rows[i], right[i] + (2.0 * TOLERANCE if edge[i] else 0.0)
    for k in range(q):
        all_[count + k, k], all_[count + q + k, k] = 1.0, -1.0
    return all_, sides


@njit(cache=True)
def grow(
    rows: np.ndarray, right: np.ndarray, edge: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """Tree (see `SearchTree`), and its depth: rows, right sides, children, first entry and entries of each leaf."""
    count, q = len(first) - 1, rows.shape[1]
    low, high = np.empty((count, q)), np.empty((count, q))
    radius, middle = np.empty(count), np.empty((count, q))
    axis = np.eye(q)
    for r in range(count):
        part = slice(first[r], first[r + 1])
        own, sides = within(rows[part], right[part], edge[part])
        radius[r], middle[r] = largest_ball(own, sides)
        for k in range(q):
            low[r, k], high[r, k] = extent(own, sides, middle[r], axis[k])
    split, value = np.empty((4 * count + 8, q)), np.empty(4 * count + 8)
    child, parent = np.empty((4 * count + 8, 2), np.int64), np.empty((4 * count + 8, 2), np.int64)
    leaf_first, leaf = [0], [0]
    leaf.pop()
    nodes = leaves = depth = 0
    # Open branches: regions of each, its node and side there, and its depth.
    branches = [(np.arange(count), -1, 0, 0)]
    while len(branches) > 0:
        here, above, which, level = branches.pop()
        size = len(here)
        best, best_sum, chosen, chosen_value = size, 2 * size, np.zeros(q), 0.0
        best_side = np.zeros(size, np.int64)
        if size > (_LEAF if q < 5 else _LARGE_LEAF):
            total = 0
            for r in here:
                total += first[r + 1] - first[r]
            step = max(1, total // _TRIED)
            seen, tried = 0, np.empty(total, np.int64)
            score, number = np.empty(total), 0
            for r in here:
                for k in range(first[r], first[r + 1]):
                    seen += 1
                    if seen % step == 0 and not edge[k]:  # the feasible set, which is convex, is on one side of an edge
                        before = beyond = 0
                        for other in here:
                            guess = _guess(rows[k], right[k], low[other], high[other], radius[other], middle[other])
                            before += guess & 1
                            beyond += (guess >> 1) & 1
                        tried[number], score[number] = k, max(before, beyond) + 1e-3 * (before + beyond)
                        number += 1
            order = np.argsort(score[:number])
            for turn in range(number):
                if turn >= _EXACT and best < size:
                    break
                k = tried[order[turn]]
                side, before, beyond = np.zeros(size, np.int64), 0, 0  # bit 0: on this side, bit 1: beyond
                for place in range(size):
                    side[place] = _sides(rows, right, edge, first, here[place], low, high, radius, middle, k)
                    before += side[place] & 1
                    beyond += side[place] >> 1
                    if max(before, beyond) > best:
                        break
                worst = max(before, beyond)
                if worst < best or (worst == best and best < size and before + beyond < best_sum):
                    best, best_sum, chosen, chosen_value, best_side = worst, before + beyond, rows[k], right[k], side
        if best < size:
            if nodes == len(value):
                split = np.concatenate((split, np.empty_like(split)))
                value, child = (
                    np.concatenate((value, np.empty_like(value))),
                    np.concatenate((child, np.empty_like(child))),
                )
                parent = np.concatenate((parent, np.empty_like(parent)))
            split[nodes], value[nodes] = chosen, chosen_value
            number = nodes
            nodes += 1
            parent[number, 0], parent[number, 1] = above, which
            cell, ends = np.empty((level + 1, q)), np.empty(level + 1)
            cell[level], ends[level] = chosen, chosen_value
            up, at = above, which
            for place in range(level - 1, -1, -1):
                sign = 1.0 if at == 0 else -1.0
                cell[place], ends[place] = sign * split[up], sign * value[up]
                up, at = parent[up]
            for at in range(2):
                stay = (best_side >> at) & 1 > 0
                for place in range(size):  # a region on both sides may miss this side's cell all the same
                    if stay[place] and best_side[place] == 3:
                        r = here[place]
                        part = slice(first[r], first[r + 1])
                        own, sides = within(rows[part], right[part], edge[part])
                        size_ = largest_ball(np.concatenate((own, cell)), np.concatenate((sides, ends)))[0]
                        stay[place] = size_ > 0.25 * TOLERANCE
                branches.append((here[stay], number, at, level + 1))
                cell[level], ends[level] = -chosen, -chosen_value
        else:
            for r in here:
                leaf.append(r)
            leaf_first.append(len(leaf))
            number = -1 - leaves
            leaves += 1
            depth = max(depth, level)
        if above >= 0:
            child[above, which] = number
    return split[:nodes], value[:nodes], child[:nodes], np.array(leaf_first), np.array(leaf), depth


@njit(cache=True)
def _guess(row: np.ndarray, b: float, low: np.ndarray, high: np.ndarray, radius: float, middle: np.ndarray) -> int:
    """Sides of a hyperplane on which a region has points: 1 below, 2 above, 3 both; from 4 on not sure, as its ball is
    on one side and its bounding box on both."""
    at = least = most = 0.0
    for i in range(len(row)):
        a = row[i]
        at += a * middle[i]
        least += a * (low[i] if a > 0.0 else high[i])
        most += a * (high[i] if a > 0.0 else low[i])
    small = 0.5 * TOLERANCE
    if most <= b + small:
        return 1
    if least >= b - small:
        return 2
    if at - radius < b - small and at + radius > b + small:
        return 3
    return 5 if at < b else 6


@njit(cache=True)
def _sides(
    rows: np.ndarray,
    right: np.ndarray,
    edge: np.ndarray,
    first: np.ndarray,
    r: int,
    low: np.ndarray,
    high: np.ndarray,
    radius: np.ndarray,
    middle: np.ndarray,
    k: int,
) -> int:
    """Sides of the hyperplane of row k on which the region r has points: 1 below, 2 above, 3 both."""
    if first[r] <= k < first[r + 1]:
        return 1
    guess = _guess(rows[k], right[k], low[r], high[r], radius[r], middle[r])
    if guess < 4:
        return guess
    part = slice(first[r], first[r + 1])
    own, sides = within(rows[part], right[part], edge[part])
    least, most = extent(own, sides, middle[r], rows[k])
    b, small = right[k], 0.5 * TOLERANCE
    return (1 if least < b - small else 0) + (2 if most > b + small else 0)


@njit(cache=True)
def convex_union(
    rows: np.ndarray, right: np.ndarray, middle: np.ndarray, others: np.ndarray, sides: np.ndarray, centre: np.ndarray
) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether two polyhedra, with the box among their rows, share a facet and have a convex union; rows of each that
    hold for both, whose right sides grow by what rounding would cut off the other one."""
    keep, keep_other = np.zeros(len(right), np.bool_), np.zeros(len(sides), np.bool_)
    wall, opposite = -1, -1
    for i in range(len(right)):
        for k in range(len(sides)):
            if abs(right[i] + sides[k]) < _ALIKE and np.max(np.abs(rows[i] + others[k])) < _ALIKE:
                wall, opposite = i, k
    if wall < 0:
        return False, keep, keep_other
    for i in range(len(right)):
        most = extent(others, sides, centre, rows[i])[1]
        if i != wall and most <= right[i] + TOLERANCE:
            keep[i], right[i] = True, max(right[i], most)
    for k in range(len(sides)):
        most = extent(rows, right, middle, others[k])[1]
        if k != opposite and most <= sides[k] + TOLERANCE:
            keep_other[k], sides[k] = True, max(sides[k], most)
    both = np.concatenate((rows[keep], others[keep_other], rows[wall : wall + 1]))
    ends = np.concatenate((right[keep], sides[keep_other], right[wall : wall + 1]))
    for i in range(len(right)):
        if i != wall and not keep[i] and extent(both, ends, middle, rows[i])[1] > right[i] + TOLERANCE:
            return False, keep, keep_other
    both[-1], ends[-1] = others[opposite], sides[opposite]
    for k in range(len(sides)):
        if k != opposite and not keep_other[k] and extent(both, ends, centre, others[k])[1] > sides[k] + TOLERANCE:
            return False, keep, keep_other
    return True, keep, keep_other
