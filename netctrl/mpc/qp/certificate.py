"""Proofs of a solver's verdict on a program, checked in the program's own data and units.

SOLVED needs a point and multipliers with small residuals; INFEASIBLE a combination of rows that no point of the box
meets (Farkas); UNBOUNDED a direction of descent that meets all bounds, and a feasible point to start from.
What people need of an infeasible program are the bounds that conflict, and by how much (`conflict`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import checked_kind
from netctrl.model.io.matrix import dense
from netctrl.mpc.qp.program import QuadraticProgram
from netctrl.mpc.qp.scaling import Scaling, balance, balanced

TOLERANCE = 1e-6
"""Relative tolerance of a solution's bounds, stationarity and complementarity."""

_SMALL = 1e-3  # relative to the largest bound in balanced units: the smallest unit of errors
_NO_BOUND = 1e6  # a bound above this in balanced units counts as none, as users often write large numbers for no bound
_EPS = float(np.finfo(float).eps)
_LP = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Optimality:
    """Check whether x and y solve a program of this H and A, for any g and bounds, independently of units."""

    __slots__ = ("_A", "_At", "_H", "_curvature", "_rows", "_scaling", "_unit", "empty")

    def __init__(self, H: Any, A: Any, scaling: Scaling) -> None:
        self._H, self._A, self._At, self._scaling = H, A, A.T, scaling
        self._curvature = H.diagonal()
        curved = self._curvature > 0.0
        self._unit = np.where(curved, 1.0 / np.sqrt(np.where(curved, self._curvature, 1.0)), 0.0)
        self._rows = abs(A)
        self.empty = self._rows @ np.ones(A.shape[1]) == 0.0
        """(k,) rows of zeros."""

    def holds(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether x (n,) and y (n + k,) meet the bounds, stationarity and complementarity, each to `TOLERANCE`.

        The unit of x_i is the greatest of its own size, the step that changes the cost by the cost's size, and a
        thousandth of the largest bound in balanced units. The unit of a row is the size of its terms.
        """
        n = len(x)
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return False
        used = np.where(y > 0.0, upper, lower)
        there = np.isfinite(used)
        y = np.where(there, y, 0.0)  # without a bound the multiplier is 0
        Hx, pull = self._H @ x, y[:n] + self._At @ y[n:]
        whole = 0.5 * abs(x @ Hx) + abs(g @ x) + float(((g * self._unit) ** 2).sum())
        bounds = np.concatenate([lower, upper]) * np.tile(self._scaling.bounds, 2)
        bounds = np.abs(bounds[np.isfinite(bounds)])
        bounds = bounds[bounds < _NO_BOUND]
        floor = _SMALL * (float(bounds.max()) if len(bounds) and bounds.max() > 0.0 else 1.0) * self._scaling.columns
        size = np.maximum(np.maximum(np.abs(x), self._unit * np.sqrt(whole)), floor)
        at = np.concatenate([x, self._A @ x])
        reach = self._rows @ size
        reach[self.empty] = _largest_bound(lower, upper, n)
        reach = TOLERANCE * np.concatenate([size, reach])
        slack = np.where(there, np.abs(used - at), 0.0)
        cost = TOLERANCE * float(size @ (np.abs(Hx) + np.abs(g) + np.abs(pull)) + self._curvature @ floor**2)
        return bool(
            (at - upper <= _about(upper) + reach).all()
            and (lower - at <= _about(lower) + reach).all()
            and size @ np.abs(Hx + g + pull) <= cost
            and np.abs(y) @ slack <= cost
        )


def farkas(program: QuadraticProgram) -> np.ndarray | None:
    """Proof y (n + k,) that no x meets all bounds, above 0 at an upper bound; None where none was found.

    A vertex of {y: [I; A]'y = 0, support of y = −1}, hence a minimal conflict; refined until it passes `is_farkas`.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    scaling = balance(program.H, program.A)
    scaled = balanced(program, scaling)
    n = program.n_variables
    rows = sp.vstack([sp.eye_array(n), sp.csr_array(scaled.A)], format="csr")
    high, low = (np.flatnonzero(np.isfinite(bound)) for bound in (scaled.upper, scaled.lower))
    G = sp.vstack([rows[high], -rows[low]], format="csr")
    h = np.concatenate([scaled.upper[high], -scaled.lower[low]])
    of, sign = np.concatenate([high, low]), np.repeat([1.0, -1.0], [len(high), len(low)])
    if not len(h):
        return None
    # With rows of equal length the least sum of y gives the worst conflict in these units.
    length = np.sqrt(np.asarray(G.multiply(G).sum(axis=1)).ravel())
    length[length == 0.0] = 1.0
    unit = max(float(np.abs(h / length).max()), np.finfo(float).tiny)
    equal = sp.vstack([(sp.diags_array(1.0 / length) @ G).T, sp.csr_array((h / length / unit)[None, :])], format="csc")
    right = np.zeros(n + 1)
    right[-1] = -1.0
    found = linprog(np.ones(len(h)), A_eq=equal, b_eq=right, bounds=(0.0, None), method="highs-ds", options=_LP)
    if found.status != 0:
        return None
    chosen = np.flatnonzero(found.x > 1e-9 * found.x.max())
    weights = found.x[chosen] / length[chosen]
    # Vector z > 0 near 1 with M z = 0 to rounding, where the columns have one such dependence.
    M = dense(G[chosen]).T * weights
    z = np.ones(M.shape[1])
    correction, *_ = np.linalg.lstsq(M, -(M @ z), rcond=None)
    exact = z + correction if np.isfinite(correction).all() else None
    for factor in (np.ones(len(chosen)), exact):
        if factor is None or not (factor > 0.0).all():
            continue
        y = np.zeros(len(program.lower))
        np.add.at(y, of[chosen], sign[chosen] * weights * factor)
        y = scaling.multipliers(y)
        if is_farkas(program, y):
            return y
    return None


def is_farkas(program: QuadraticProgram, y: np.ndarray) -> bool:
    """Whether y'[I; A] x exceeds the bounds for all x of the box, by more than rounding.

    Only the rows' multipliers are used; r = A'y must be matched by the bounds of x. Where the bound needed is infinite,
    r_j must be 0 to rounding of its terms. So the proof covers every x below some 1e14 of their unit.
    """
    n = program.n_variables
    A, y = program.A, np.asarray(y, dtype=float)[n:]
    lower, upper = program.lower, program.upper
    y = np.where(np.isfinite(np.where(y > 0.0, upper[n:], lower[n:])), y, 0.0)
    r, terms = A.T @ y, abs(A).T @ np.abs(y)
    noise = 4.0 * (1 + np.count_nonzero(y)) * _EPS * terms
    side = np.where(r > 0.0, lower[:n], upper[:n])
    free = ~np.isfinite(side)
    if (np.abs(r[free]) > noise[free]).any():
        return False
    least = np.where(free | (r == 0.0), 0.0, r * np.where(free, 0.0, side))
    allowed = np.where(y != 0.0, y * np.where(y > 0.0, upper[n:], np.where(y < 0.0, lower[n:], 0.0)), 0.0)
    rounding = 4.0 * (n + len(y)) * _EPS * float(np.abs(least).sum() + np.abs(allowed).sum())
    # r is accurate to `noise` only.
    rounding += float((noise * np.where(free, 0.0, np.abs(np.where(free, 0.0, side)))).sum())
    empty = abs(A) @ np.ones(n) == 0.0
    rounding += 4.0 * (n + len(y)) * _EPS * _largest_bound(lower, upper, n) * float(np.abs(y[empty]).sum())
    return bool(least.sum() - allowed.sum() > rounding)


def ray(program: QuadraticProgram) -> np.ndarray | None:
    """Direction d (n,) in which the cost decreases without bound from a feasible point; None where none was found."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    scaling = balance(program.H, program.A)
    scaled = balanced(program, scaling)
    H, g, A, lower, upper = scaled.H, scaled.g, scaled.A, scaled.lower, scaled.upper
    n = len(g)
    start = linprog(np.zeros(n), **_rows(A, lower, upper, n), method="highs", options=_LP)
    if start.status != 0:
        return None
    cone = (np.where(np.isfinite(lower), 0.0, -np.inf), np.where(np.isfinite(upper), 0.0, np.inf))
    limits = (np.maximum(cone[0][:n], -1.0), np.minimum(cone[1][:n], 1.0))
    low, high = (np.concatenate([limit, cone_part[n:]]) for limit, cone_part in zip(limits, cone, strict=True))
    size = np.abs(g).max(initial=0.0)
    if size == 0.0:
        return None
    requested = _rows(A, low, high, n)
    requested |= {"A_eq": sp.csr_array(H), "b_eq": np.zeros(n)}
    found = linprog(g / size, **requested, method="highs-ds", options=_LP)
    if found.status != 0 or found.fun >= 0.0:
        return None
    for d in (found.x, _kept(found.x, H, A, low, high)):
        d = scaling.point(d)
        if is_ray(program, d):
            return d
    return None


def is_ray(program: QuadraticProgram, d: np.ndarray) -> bool:
    """Whether H d = 0 and d never leaves the bounds, to rounding of the terms, and g'd < 0 beyond rounding.

    A curvature along d below the rounding of H's entries counts as 0: a minimum, if any, needs a step of 1e14 or more.
    """
    H, g, A, n = program.H, program.g, program.A, program.n_variables
    size = np.abs(d)
    if not np.isfinite(d).all() or not size.any():
        return False
    noise = 4.0 * (1 + n) * _EPS
    along = np.concatenate([d, A @ d])
    off = np.concatenate([np.zeros(n), noise * (abs(A) @ size)])
    return bool(
        (np.abs(H @ d) <= noise * (abs(H) @ size)).all()
        and (along[np.isfinite(program.upper)] <= off[np.isfinite(program.upper)]).all()
        and (along[np.isfinite(program.lower)] >= -off[np.isfinite(program.lower)]).all()
        and g @ d < -noise * (np.abs(g) @ size)
    )


def _about(bound: np.ndarray) -> np.ndarray:
    return TOLERANCE * np.where(np.isfinite(bound), np.abs(bound), 0.0)


def _largest_bound(lower: np.ndarray, upper: np.ndarray, n: int) -> float:
    """Largest bound of the rows: the unit of a row of zeros."""
    rows = np.concatenate([lower[n:], upper[n:]])
    return float(np.abs(rows[np.isfinite(rows)]).max(initial=0.0))


def _rows(A: Any, lower: np.ndarray, upper: np.ndarray, n: int) -> dict[str, Any]:
    """Constraints lower ≤ [x; A x] ≤ upper as `scipy.optimize.linprog` takes them."""
    import scipy.sparse as sp

    A = sp.csr_array(A)
    high, low = np.flatnonzero(np.isfinite(upper[n:])), np.flatnonzero(np.isfinite(lower[n:]))
    G, h = sp.vstack([A[high], -A[low]], format="csr"), np.concatenate([upper[n:][high], -lower[n:][low]])
    requested: dict[str, Any] = {"A_ub": G, "b_ub": h} if len(h) else {}
    return requested | {"bounds": np.column_stack([lower[:n], upper[:n]])}


def _kept(d: np.ndarray, H: Any, A: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """d projected to H d = 0 and to the rows that it doesn't leave; fixed variables stay 0."""
    n = len(d)
    small = 1e-8 * np.abs(d).max()
    d = np.where(np.abs(d) <= small, 0.0, d)
    tight = np.abs(A @ d) <= 1e-8 * (abs(A) @ np.abs(d))
    tight &= np.isfinite(low[n:]) | np.isfinite(high[n:])
    free = d != 0.0
    M = np.vstack([dense(H), dense(A)[tight]])[:, free]
    correction, *_ = np.linalg.lstsq(M, -(M @ d[free]), rcond=None)
    moved = d.copy()
    moved[free] += correction
    return moved


_ZERO = 1e-9
_MAX_SAID = 6


class Conflict(NamedTuple):
    """Bounds that can't all hold; dropping any one of them removes the conflict."""

    names: tuple[str, ...]
    """Names of the bounds, with "lower" or "upper"; the bound that needs the least widening comes first."""
    shortfall: np.ndarray
    """Widening of each bound that alone would remove the conflict [the program's `units`; an MPC's are its plant's]."""

    @property
    def message(self) -> str:
        """The conflict in words, with the remedy."""
        if len(self.names) == 1:
            return f"the program is infeasible: {self.names[0]} can't hold; widen it"
        said = [f"{name} (off by {by:.4g})" for name, by in zip(self.names, self.shortfall, strict=True)][:_MAX_SAID]
        more = len(self.names) - len(said)
        listed = "; ".join(said) + (f"; and {more} more" if more else "")
        return (
            f"the program is infeasible: these bounds can't all hold: {listed}. Widen one of them by its amount, or "
            "make a bound soft (soft_weight for states, output_soft_weight for outputs)"
        )


def conflict(program: QuadraticProgram) -> Conflict | None:
    """Minimal set of bounds that no x meets; None where some x meets all.

    By Farkas' lemma there is no x with G x ≤ h iff there is y ≥ 0 with G'y = 0, h'y = −1, and the vertices of this set
    are the minimal conflicts. Bound i of a conflict is violated by at least 1/y_i where all others hold.

    Source: Gleeson, Ryan, ORSA J. Computing 2 (1990) 61-63.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    n = checked_kind("program", program, QuadraticProgram).n_variables
    rows = sp.vstack([sp.eye_array(n), sp.csr_array(program.A)], format="csr")
    high, low = (np.flatnonzero(np.isfinite(bound)) for bound in (program.upper, program.lower))
    G = sp.vstack([rows[high], -rows[low]], format="csr")
    h = np.concatenate([program.upper[high], -program.lower[low]])
    # With rows of equal length the least sum of y gives the worst conflict in these units.
    length = np.sqrt(np.asarray(G.multiply(G).sum(axis=1)).ravel())
    length[length == 0.0] = 1.0
    farkas = sp.vstack([(sp.diags_array(1.0 / length) @ G).T, sp.csr_array((h / length)[None, :])], format="csc")
    right = np.zeros(n + 1)
    right[-1] = -1.0
    found = linprog(np.ones(len(h)), A_eq=farkas, b_eq=right, bounds=(0.0, None), method="highs-ds")
    if found.status != 0:
        return None
    y = found.x / length
    chosen = np.flatnonzero(found.x > _ZERO * found.x.max())
    chosen = chosen[np.argsort(-y[chosen], kind="stable")]
    of, sides = np.concatenate([high, low]), np.repeat(["upper", "lower"], [len(high), len(low)])
    names = tuple(f"{program.names[of[i]]}, {sides[i]}" for i in chosen)
    return Conflict(names, program.units[of[chosen]] / y[chosen])
