"""Invariant sets of linear systems within bounds, by linear programs.

Source: Gilbert, Tan, IEEE TAC 36 (1991) 1008-1020: the set is found at the first t whose rows the ones before imply.
"""

from __future__ import annotations

import numpy as np

MOST_STEPS, MOST_ROWS = 400, 2000
_IMPLIED = 1e-9  # relative to a bound: rows that are met this closely are implied
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def invariant(Phi: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Rows H, (l, q), of the set {z: G Φ^t z ≤ 1 for all t} = {H z ≤ 1}, and the last t that adds to it.

    None where it has too many rows, or takes too long.
    """
    kept, now = np.zeros((0, len(Phi))), G
    for t in range(MOST_STEPS):
        added = []
        for row in now:
            known = np.vstack([kept, *added]) if added else kept
            if _most(row, known) > 1.0 + _IMPLIED:
                added.append(row[None])
        if not added:
            return _irredundant(kept), max(t - 1, 0)
        kept, now = np.vstack([kept, *added]), now @ Phi
        if len(kept) > MOST_ROWS:
            return None
    return None


def _most(row: np.ndarray, rows: np.ndarray) -> float:
    """Greatest row z where rows z ≤ 1; infinite without a bound."""
    from scipy.optimize import linprog

    size = np.linalg.norm(row)
    if not size > 0.0:
        return 0.0
    if not len(rows):
        return np.inf
    found = linprog(-row / size, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(None, None), method="highs", options=EXACT)
    return float(-found.fun * size) if found.status == 0 else np.inf


def _irredundant(rows: np.ndarray) -> np.ndarray:
    """Rows without those that the others imply; the later ones first, which more often are."""
    kept = list(range(len(rows)))
    for i in reversed(range(len(rows))):
        others = [j for j in kept if j != i]
        if _most(rows[i], rows[others]) <= 1.0 + _IMPLIED:
            kept = others
    return rows[kept]
