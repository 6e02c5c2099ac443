"""Largest number of iterations of the exported dual active-set method over all θ of a box.

All that the method decides on is affine in θ as long as its decisions are the same: multipliers, rows and steps, since
directions depend on the active set alone. So the θ with the same decisions are a polyhedron, and all decisions are
followed, each on its polyhedron, until the method ends.

Source: Arnström, Axehill, IEEE Trans. Automatic Control 67 (2022) 2758-2770.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError

_THIN = 1e-9  # relative to the box's half width: pieces with a smaller ball are left out
_TOLERANCE, _DEPENDENT, _FALLS, _ROUNDING = 1e-10, 1e-11, 1e-12, 1e-14  # as in program.c


class WorstCase(NamedTuple):
    """Largest number of iterations over a box."""

    iterations: int
    """Iterations, with the last one that finds all bounds met or excluded."""
    theta: np.ndarray
    """(q,) a point at which as many are made."""
    pieces: int
    """Number of polyhedra with the same decisions from start to end."""


class _Piece(NamedTuple):
    """Polyhedron rows t ≤ right with `middle` inside, and the method's state; functions of t: [slope, base]."""

    rows: np.ndarray
    right: np.ndarray
    middle: np.ndarray
    turn: int
    active: tuple[int, ...]
    side: tuple[float, ...]
    y: np.ndarray
    """(a, q + 1) multipliers."""
    entering: int
    """Row whose multiplier grows; −1: none."""
    sign: float
    excess: np.ndarray
    own: np.ndarray
    """(q + 1,) multiplier of the entering row."""


def worst_case(
    gram: np.ndarray, free: np.ndarray, low: np.ndarray, high: np.ndarray, variables: int, most_pieces: int
) -> tuple[int, np.ndarray, int]:
    """Most iterations, a t in [−1, 1] with as many, and the number of pieces; `free` (k, q + 1) is affine in t."""
    q = free.shape[1] - 1
    none = np.zeros((0, q + 1))
    box = np.vstack([np.eye(q), -np.eye(q)])
    ahead = [_Piece(box, np.ones(2 * q), np.zeros(q), 0, (), (), none, -1, 0.0, none, none)]
    worst, where, pieces = 0, np.zeros(q), 0
    while ahead:
        piece = ahead.pop()
        found = _entered(piece, gram, free, low, high) if piece.entering < 0 else [piece]
        for each in found:
            after = [] if each.entering < 0 else _stepped(each, gram, low, high, variables)
            if not after:  # the end: all bounds are met, or they exclude each other
                pieces += 1
                if each.turn + 1 > worst:
                    worst, where = each.turn + 1, each.middle
            ahead += after
        if pieces + len(ahead) > most_pieces:
            raise NetctrlError(
                f"more than {most_pieces} sequences of iterations: worst cases are for small problems; shorten the "
                "horizon, take a smaller box, or raise most_pieces"
            )
    return worst, where, pieces


def _entered(piece: _Piece, gram: np.ndarray, free: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[_Piece]:
    """Parts of a piece by the bound that is exceeded most, and that where none is."""
    active, q = list(piece.active), free.shape[1] - 1
    bound = np.where(np.array(piece.side) > 0.0, high[active], low[active])
    y = np.linalg.solve(gram[np.ix_(active, active)], free[active] - np.outer(bound, np.eye(q + 1)[q]))
    row = free - gram[:, active] @ y
    excess, at = [], []
    for limit, sign in ((high, 1.0), (low, -1.0)):
        for i in np.setdiff1d(np.flatnonzero(np.isfinite(limit)), active):
            over = sign * row[i]
            over[q] -= sign * limit[i] + _TOLERANCE * (1.0 + abs(limit[i]))
            excess.append(over)
            at.append((int(i), sign, limit[i]))
    if not excess:
        return [piece._replace(y=y)]
    over = np.array(excess)
    # Bounds that are met on all of the piece compete with none.
    reach = _most(piece, over)
    kept = np.flatnonzero(reach > 0.0)
    parts = [_cut(piece._replace(y=y), over[kept])]
    for k in kept:
        i, sign, limit = at[k]
        part = _cut(piece, np.vstack([-over[k], np.delete(over[kept], np.flatnonzero(kept == k), axis=0) - over[k]]))
        if part is not None:
            start = sign * (row[i] - limit * np.eye(q + 1)[q])
            parts.append(part._replace(y=y, entering=i, sign=sign, excess=start, own=np.zeros(q + 1)))
    return [part for part in parts if part is not None]


def _stepped(piece: _Piece, gram: np.ndarray, low: np.ndarray, high: np.ndarray, variables: int) -> list[_Piece]:
    """Parts of a piece by the end of its step: the bound is met, or a multiplier is 0; none where it has no end."""
    active, i = list(piece.active), piece.entering
    side = np.array(piece.side)
    r = np.linalg.solve(gram[np.ix_(active, active)], gram[active, i])
    curvature, reach = gram[i, i] - gram[i, active] @ r, 1.0 + np.abs(r).sum()
    independent = len(active) < max(min(variables, len(gram)), 2) and curvature > _DEPENDENT + _ROUNDING * reach**2
    falls = piece.sign * side * r
    out = np.flatnonzero((falls > _FALLS) & (low[active] != high[active]))
    steps = [side[k] * piece.y[k] / falls[k] for k in out] + ([piece.excess / curvature] if independent else [])
    parts = []
    for k, step in enumerate(steps):
        part = _cut(piece, step - np.delete(np.array(steps), k, axis=0))
        if part is None:
            continue
        y, own = piece.y - piece.sign * np.outer(r, step), piece.own + piece.sign * step
        turn = piece.turn + 1
        if k < len(out):
            stay = [j for j in range(len(active)) if j != out[k]]
            left = piece.excess - curvature * step if independent else piece.excess
            sets = tuple(active[j] for j in stay), tuple(piece.side[j] for j in stay)
            parts.append(part._replace(turn=turn, active=sets[0], side=sets[1], y=y[stay], own=own, excess=left))
        else:
            sets = (*active, i), (*piece.side, piece.sign)
            parts.append(part._replace(turn=turn, active=sets[0], side=sets[1], y=np.vstack([y, own]), entering=-1))
    return parts


def _most(piece: _Piece, over: np.ndarray) -> np.ndarray:
    """Greatest value of each affine function on a piece."""
    from netctrl.mpc.piecewise.geometry import extent

    return np.array([extent(piece.rows, piece.right, piece.middle, each[:-1].copy())[1] + each[-1] for each in over])


def _cut(piece: _Piece, over: np.ndarray) -> _Piece | None:
    """Part of a piece where affine functions are at most 0; None for one without an interior."""
    from netctrl.mpc.piecewise.geometry import largest_ball, necessary, normalised

    rows, right = over[:, :-1].copy(), -over[:, -1]
    kind = normalised(rows, right, 1e-13 * np.abs(over).max(axis=1, initial=0.0), 1.0)
    if (kind < 0).any():
        return None
    rows, right = np.vstack([piece.rows, rows[kind == 1]]), np.concatenate([piece.right, right[kind == 1]])
    radius, middle = largest_ball(rows, right)
    if not radius > _THIN:
        return None
    needed = necessary(rows, right, middle)
    return piece._replace(rows=rows[needed], right=right[needed], middle=middle)
