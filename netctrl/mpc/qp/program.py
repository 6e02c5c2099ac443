"""Quadratic programs, and solutions that compute their own residuals, and the interface of solvers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.io.display import Shown
from netctrl.model.io.matrix import dense, is_sparse, matrix

_ROUNDING = 1e-10  # relative tolerance of H's symmetry and convexity
_MAX_CHECKED = 1500  # variables up to which the eigenvalues of H are computed


class QPStatus(StrEnum):
    """Status of a quadratic program's solution."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    """No x meets all bounds: `netctrl.mpc.qp.certificate.conflict` names the conflicting ones."""
    UNBOUNDED = "unbounded"
    """The cost decreases without bound along a direction without curvature and bounds."""
    FAILED = "failed"
    """The solver stopped before its tolerance: check the scaling, or use another solver."""


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticProgram:
    """A convex quadratic program with bounds on variables and rows.

        min ½ x'Hx + g'x  over x,  lower ≤ [x; A x] ≤ upper

    Parameters
    ----------
    H : array_like, shape (n, n)
        Symmetric and positive semidefinite; scipy.sparse stays sparse.
    g : array_like, shape (n,)
        Linear cost.
    A : array_like, shape (k, n)
        Rows of the constraints; k may be 0.
    lower, upper : array_like, shape (n + k,)
        Bounds of x, then of A x; infinite where there is none.
    names : tuple of str
        n + k names of bounds in messages; by default "x[i]" and "row i".
    units : array_like, shape (n + k,), optional
        Size of 1 in each bound, in the user's units, for messages; by default 1.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, an indefinite H, lower above upper, entries that aren't numbers.
    """

    H: Any
    g: np.ndarray
    A: Any
    lower: np.ndarray
    upper: np.ndarray
    names: tuple[str, ...] = ()
    units: Any = None

    def __post_init__(self) -> None:
        H = matrix("H", self.H)
        n = H.shape[0]
        H = matrix("H", H, (n, n))
        _check_convex(H)
        A = matrix("A", self.A, (None, n))
        size = n + A.shape[0]
        if not isinstance(self.names, (tuple, list)):
            raise InvalidValue("names", self.names, f"{size} names: one per variable, one per row of A")
        names = self.names or (*(f"x[{i}]" for i in range(n)), *(f"row {i}" for i in range(A.shape[0])))
        if len(names) != size:
            raise InvalidValue("names", len(names), f"{size} names: one per variable, one per row of A")
        units = _vector("units", np.ones(size) if self.units is None else self.units, size)
        for name, value in (("H", H), ("A", A), ("names", tuple(names)), ("units", units)):
            object.__setattr__(self, name, value)
        self._take(self.g, self.lower, self.upper)

    def _take(self, g: Any, lower: Any, upper: Any) -> None:
        """Check and keep the data that change from one program to the next."""
        g = _vector("g", g, self.n_variables)
        if not np.isfinite(g).all():
            raise InvalidValue("g", "an entry that is not finite", f"{len(g)} finite numbers")
        size = self.n_variables + self.n_rows
        lower, upper = _vector("lower", lower, size), _vector("upper", upper, size)
        check_bounds(lower, upper, self.names)
        for name, value in (("g", g), ("lower", lower), ("upper", upper)):
            object.__setattr__(self, name, value)

    def changed(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> QuadraticProgram:
        """The same program with another linear cost and other bounds.

        H and A are not checked again, as the check takes longer than a solve.

        Parameters
        ----------
        g : ndarray, shape (n,)
            Linear cost.
        lower, upper : ndarray, shape (n + k,)
            Bounds of x, then of A x.

        Returns
        -------
        QuadraticProgram
        """
        other = object.__new__(QuadraticProgram)
        for name in ("H", "A", "names", "units"):
            object.__setattr__(other, name, getattr(self, name))
        other._take(g, lower, upper)
        return other

    @property
    def n_variables(self) -> int:
        """Number of variables, n."""
        return self.H.shape[0]

    @property
    def n_rows(self) -> int:
        """Number of rows of A, k."""
        return self.A.shape[0]


class Residuals(NamedTuple):
    """Largest residuals of a solution; 0 for an exact one, relative to 1 or to larger terms beside them."""

    primal: float
    """Largest violation of a bound."""
    dual: float
    """Residual of H x + g + [I; A]'y = 0."""
    complementarity: float
    """Greatest product of a multiplier and its bound's slack."""
    gap: float
    """Primal cost minus dual cost."""

    @property
    def worst(self) -> float:
        """Largest of the residuals; NaN where any is NaN."""
        return float(np.max(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QPSolution(Shown):
    """Solution of a quadratic program, with its status: x is valid only where that is SOLVED."""

    program: QuadraticProgram
    """The program that was solved."""
    x: np.ndarray
    """(n,) variables; NaN where `status` is not SOLVED."""
    multipliers: np.ndarray
    """(n + k,) y of H x + g + [I; A]'y = 0: positive at an upper bound, negative at a lower one; NaN where x is."""
    status: QPStatus
    """Outcome: solved, infeasible, unbounded or failed."""
    solver: str
    """Name of the solver."""
    iterations: int
    """Iterations that the solver reports, else 0."""

    def __post_init__(self) -> None:
        for array in (self.x, self.multipliers):
            array.setflags(write=False)

    @property
    def cost(self) -> float:
        """Cost of x: ½ x'Hx + g'x."""
        return float(0.5 * self.x @ (self.program.H @ self.x) + self.program.g @ self.x)

    @property
    def residuals(self) -> Residuals:
        """Primal, dual, complementarity and duality gap, computed from x and y alone."""
        H, g, A = self.program.H, self.program.g, self.program.A
        lower, upper = self.program.lower, self.program.upper
        x, y, n = self.x, self.multipliers, self.program.n_variables
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return Residuals(np.nan, np.nan, np.nan, np.nan)
        at = np.concatenate([x, A @ x])
        size = max(1.0, _largest(at))
        broken = max(0.0, float(np.max(lower - at, initial=0.0)), float(np.max(at - upper, initial=0.0)))
        Hx, pull = H @ x, y[:n] + A.T @ y[n:]
        terms = max(1.0, _largest(Hx), _largest(g), _largest(pull))
        with np.errstate(invalid="ignore"):
            # The error of a multiplier on an infinite bound is its own size.
            high = np.where(np.isfinite(upper), np.maximum(y, 0.0) * np.abs(upper - at), np.maximum(y, 0.0))
            low = np.where(np.isfinite(lower), np.maximum(-y, 0.0) * np.abs(at - lower), np.maximum(-y, 0.0))
            towards = np.where(
                y > 0.0, np.where(np.isfinite(upper), upper, at), np.where(np.isfinite(lower), lower, at)
            )
        curved = float(x @ Hx)
        gap = abs(curved + float(g @ x) + float(y @ towards))
        whole = max(1.0, abs(curved), abs(float(g @ x)))
        return Residuals(
            broken / size, _largest(Hx + g + pull) / terms, max(_largest(high), _largest(low)) / whole, gap / whole
        )


def check_bounds(lower: np.ndarray, upper: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise InvalidValue, with the bound's name, where a bound is NaN or an interval is empty."""
    if np.isnan(lower).any() or np.isnan(upper).any():
        at = int(np.argmax(np.isnan(lower) | np.isnan(upper)))
        raise InvalidValue("lower, upper", f"NaN for {names[at]}", "numbers, infinite where there is no bound")
    wrong = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if wrong.any():
        at = int(np.argmax(wrong))
        got = f"{lower[at]:.9g} to {upper[at]:.9g} for {names[at]}"
        raise InvalidValue("lower, upper", got, "a lower bound that is not above the upper one")


def _check_convex(H: Any) -> None:
    largest = _largest(H.data) if is_sparse(H) else _largest(H)
    if _largest(dense(H - H.T) if not is_sparse(H) else (H - H.T).data) > _ROUNDING * largest:
        raise InvalidValue("H", "a matrix that isn't symmetric", "a symmetric matrix: pass 0.5 (H + H')")
    if H.shape[0] > _MAX_CHECKED:
        return
    least = float(np.linalg.eigvalsh(dense(H)).min(initial=0.0))
    if least < -_ROUNDING * H.shape[0] * largest:
        raise InvalidValue("H", f"an eigenvalue of {least:.3g}", "a positive semidefinite matrix: a convex cost")


def _vector(name: str, value: Any, size: int) -> np.ndarray:
    try:
        found = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(name, value, f"{size} numbers") from None
    if found.shape != (size,):
        raise InvalidValue(name, f"shape {found.shape}", f"{size} numbers")
    found.setflags(write=False)
    return found


def _largest(values: Any) -> float:
    return float(np.abs(values).max(initial=0.0))


class Answer(NamedTuple):
    """Result of one solve; x and y are valid where `status` is SOLVED."""

    x: np.ndarray
    """(n,)"""
    multipliers: np.ndarray
    """(n + k,), above 0 at an upper bound."""
    status: QPStatus
    iterations: int
    """0 where the solver doesn't report it."""


class Workspace(Protocol):
    """Program set up once, and solved for many g and bounds; H, A and the set of infinite bounds are fixed."""

    def solve(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray | None = None) -> Answer:
        """Solution for g (n,), lower and upper (n + k,), contiguous writable float64; `start` (n,) may be ignored."""
        ...

    def anew(self, g: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Answer:
        """Solution without any kept data, by slower but safer settings, for answers of `solve` that fail the check."""
        ...
