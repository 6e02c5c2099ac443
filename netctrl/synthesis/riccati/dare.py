"""Discrete-time algebraic Riccati equation, with a certified status of its solution."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.linalg as sl

from netctrl.core.errors import InvalidValue, RiccatiStatus
from netctrl.model.io.display import Shown
from netctrl.model.io.matrix import dense_matrix, square_matrix
from netctrl.synthesis.riccati.doubling import riccati_by_doubling, stein_by_doubling
from netctrl.synthesis.threads import blas_threads

_METHODS = ("auto", "doubling", "scipy")
_EPS = float(np.finfo(float).eps)
_ASYMMETRY = 1e-10  # relative; above rounding errors
_HALF = 1e-8  # half of the digits, the accuracy of an equation with a pole on the unit circle
# Rounding moves a pole on the circle by eps^(1/(2k)), with k integrators in series that the cost doesn't see: 1e-8,
# 1e-4, 2e-3, 1e-2 for k = 1 to 4. Poles closer than this are examined individually.
_NEAR = 1e-2

_REMEDIES = {
    RiccatiStatus.STABILISING: "",
    RiccatiStatus.MARGINAL: (
        "A + BK has a pole on the unit circle to rounding, so its stability is not proved. Put a weight in Q on each "
        "mode of A there that the cost doesn't see (Q = 0, or lambda = 0, on an integrator has no stabilising "
        "solution), or raise one that is lost in rounding; a mode that B doesn't move (w'A = zw', w'B = 0) must leave "
        "the model."
    ),
    RiccatiStatus.NOT_STABILISING: (
        "X solves the equation, but A + BK has a pole outside the unit circle. Look for a mode z of A with |z| > 1 "
        "that B doesn't move (rank [zI - A, B] < n there): give it an actuator or leave it out. With "
        "method='doubling', a mode that the cost doesn't see does this too: put a weight on it in Q, or take "
        "method='auto'."
    ),
    RiccatiStatus.NO_SOLUTION: (
        "No X was found that solves the equation. Look for a mode z of A with |z| >= 1 that B doesn't move "
        "(rank [zI - A, B] < n there): give it an actuator or leave it out. R + B'XB must not be singular to rounding: "
        "with Q >= 0 every R > 0 will do that isn't lost beside B'XB. An indefinite [[Q, S], [S', R]] may have no "
        "solution: make it positive semidefinite."
    ),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DareSolution(Shown):
    """Solution of the Riccati equation with its status, which must be checked before X and K are used."""

    X: np.ndarray
    """(n, n) symmetric; NaN throughout where `status` is NO_SOLUTION."""
    K: np.ndarray
    """(m, n) gain of u = K x, K = −(R + B'XB)⁻¹(B'XA + S'); python-control's dlqr has the other sign. NaN as X is."""
    residual: float
    """‖A'XA − L'(R + B'XB)⁻¹L + Q − X‖ / (‖A'XA‖ + ‖L'(R + B'XB)⁻¹L‖ + ‖Q‖ + ‖X‖) with L = B'XA + S', Frobenius
    norms. Where `status` is NO_SOLUTION: that of the best X found, infinite without any."""
    spectral_radius: float
    """Greatest modulus of the eigenvalues of A + BK; NaN as X is."""
    status: RiccatiStatus
    """Whether X stabilises, and what to do where it doesn't."""
    method: Literal["doubling", "scipy"]
    """Method that computed X."""
    iterations: int
    """Number of doublings; 0 for SciPy."""

    def __post_init__(self) -> None:
        for array in (self.X, self.K):
            array.setflags(write=False)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return DareSolution, tuple(getattr(self, each.name) for each in fields(self))  # rebuilt, so read-only again

    @property
    def remedy(self) -> str:
        """What to change, in words; empty where X stabilises."""
        return _REMEDIES[self.status]


def solve_dare(
    A: Any, B: Any, Q: Any, R: Any, S: Any = None, *, method: Literal["auto", "doubling", "scipy"] = "auto"
) -> DareSolution:
    """Solve the discrete-time algebraic Riccati equation: the state feedback of least quadratic cost.

        min Σ x'Qx + 2 x'S u + u'R u,  x₊ = A x + B u,  u = K x
        X = A'XA − (A'XB + S)(R + B'XB)⁻¹(B'XA + S') + Q,  K = −(R + B'XB)⁻¹(B'XA + S')

    The stabilising solution has all poles of A + BK inside the unit circle, and cost x'Xx. It exists where B can
    move every mode of A on or outside the circle, the cost sees every mode on it, R ≻ 0 and [[Q, S], [S', R]] ⪰ 0.
    R may be singular, and Q and R indefinite: `status` of the result tells which case applies.

    STABILISING holds, to first order, for all data that round to the given ones: none has a pole of A + BK on or
    outside the circle. MARGINAL: some of these data may have one. An X whose residual is above 1e-8, or whose R + B'XB
    is singular to rounding, counts as NO_SOLUTION.

    Parameters
    ----------
    A, B : array_like or sparse, shapes (n, n), (n, m)
        Dynamics.
    Q, R : array_like or sparse, shapes (n, n), (m, m)
        Weights, symmetric to rounding.
    S : array_like or sparse, shape (n, m), optional
        Cross weight, zero by default.
    method : {"auto", "doubling", "scipy"}
        "doubling" is fast, and accurate whatever the units of the states; "scipy" is `scipy.linalg.solve_discrete_are`
        (ordered QZ). "auto" doubles, tries SciPy too where the result doesn't stabilise or its residual is above
        rounding, and takes the better one. Without inputs, m = 0, the equation is Stein's and is always solved by
        doubling.

    Returns
    -------
    DareSolution
        Solution with its status; no exception is raised where a stabilising solution doesn't exist.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, entries that aren't finite real numbers, Q or R not symmetric, an unknown method.

    Examples
    --------
    >>> from netctrl.synthesis.riccati.dare import solve_dare
    >>> solution = solve_dare([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> str(solution.status), round(float(solution.X[0, 0]), 4), round(float(solution.K[0, 0]), 4)
    ('stabilising', 1.618, -0.618)

    Notes
    -----
    The sign of K is u = K x; python-control's `dlqr` and MATLAB's have u = −K x.

    References
    ----------
    Chu, Fan, Lin, Wang, Int. J. Control 77 (2004) 767-788 (doubling); D. L. Kleinman, IEEE Trans. Autom. Control 13
    (1968) 114-115, and G. A. Hewer, ibid. 16 (1971) 382-384 (Newton's steps, where the residual is above rounding).
    """
    if not isinstance(method, str) or method not in _METHODS:
        raise InvalidValue("method", method, f"one of {', '.join(map(repr, _METHODS))}")
    A = square_matrix("A", A)
    n = len(A)
    B = dense_matrix("B", B, (n, None))
    m = B.shape[1]
    Q, R = _symmetric("Q", dense_matrix("Q", Q, (n, n))), _symmetric("R", dense_matrix("R", R, (m, m)))
    S = np.zeros((n, m)) if S is None else dense_matrix("S", S, (n, m))
    with np.errstate(all="ignore"), blas_threads(n):  # overflow is reported as a status
        return _solved_by(method if B.size else "doubling", _Equation(A, B, Q, R, S))


def _symmetric(argument: str, matrix: np.ndarray) -> np.ndarray:
    asymmetry, size = np.abs(matrix - matrix.T).max(initial=0.0), np.abs(matrix).max(initial=0.0)
    if asymmetry > _ASYMMETRY * size:
        takes = f"a symmetric matrix; pass ({argument} + {argument}')/2 if a symmetric one is intended"
        raise InvalidValue(argument, f"entries that differ from those of its transpose by {asymmetry:.3g}", takes)
    return 0.5 * (matrix + matrix.T)


class _Equation(NamedTuple):
    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    S: np.ndarray


class _Candidate(NamedTuple):
    """Candidate X, with its gain, closed loop and residual."""

    X: np.ndarray
    K: np.ndarray
    weight: np.ndarray
    """R + B'XB."""
    pivot: float
    """Smallest modulus of the weight's eigenvalues, relative to its terms; 0 if below rounding or the residual."""
    Phi: np.ndarray
    """A + BK."""
    error: np.ndarray
    """Error of the equation."""
    residual: float
    unitless: float
    """Residual in the units below, in which an error in a small part of X counts whatever the user's units."""
    units: np.ndarray
    """Units of the states, (n,), in which no term of the equation has a diagonal above 1; 0 for a state without cost,
    which doesn't act on any state with cost."""
    by: np.ndarray
    """Inverse of the units, 0 where they are 0."""


def _solved_by(method: str, equation: _Equation) -> DareSolution:
    if method == "scipy":
        return _solution(equation, _candidate(equation, _ordered_qz(equation)), "scipy", 0)
    X, doublings = riccati_by_doubling(*equation)
    candidate = _refined(equation, _candidate(equation, X))
    doubled = _solution(equation, candidate, "doubling", doublings)
    stable = doubled.status is RiccatiStatus.STABILISING and candidate is not None and _is_rounding(candidate)
    if method == "doubling" or stable:
        return doubled
    other = _solution(equation, _refined(equation, _candidate(equation, _ordered_qz(equation))), "scipy", 0)
    return min(doubled, other, key=_rank)


def _rank(solution: DareSolution) -> tuple[int, float]:
    # STABILISING and MARGINAL differ only by rounding here, so the smaller residual decides.
    order = {RiccatiStatus.STABILISING: 0, RiccatiStatus.MARGINAL: 0, RiccatiStatus.NOT_STABILISING: 1}
    return order.get(solution.status, 2), solution.residual


def _ordered_qz(equation: _Equation) -> np.ndarray | None:
    A, B, Q, R, S = equation
    try:
        return sl.solve_discrete_are(A, B, Q, R, s=S if S.any() else None)
    except ValueError:  # includes LinAlgError: no stable subspace, or no finite X from it
        return None


def _candidate(equation: _Equation, X: np.ndarray | None) -> _Candidate | None:
    if X is None or not np.isfinite(X).all():
        return None
    A, B, Q, R, S = equation
    XA, XB = X @ A, X @ B
    weight, L = R + B.T @ XB, XB.T @ A + S.T
    pivot = _min_modulus(weight, R, B, X)
    if not pivot > 16.0 * len(X) * _EPS:
        return None
    K = -_solved(weight, L)
    terms = (X, A.T @ XA, L.T @ K, Q)
    error = terms[1] + terms[2] + (Q - X)
    error = 0.5 * (error + error.T)
    units = np.sqrt(sum(np.abs(np.diag(term)) for term in terms))
    by = np.divide(1.0, units, out=np.zeros_like(units), where=units > 0.0)
    residual, unitless = (
        float(np.linalg.norm(error * scale)) / (sum(float(np.linalg.norm(term * scale)) for term in terms) or 1.0)
        for scale in (1.0, by[:, None] * by)
    )
    if not np.isfinite(residual + unitless):
        return None
    return _Candidate(X, K, weight, pivot, A + B @ K, error, residual, unitless, units, by)


def _min_modulus(weight: np.ndarray, R: np.ndarray, B: np.ndarray, X: np.ndarray) -> float:
    """Smallest modulus of the eigenvalues of R + B'XB, in units of the inputs that limit its terms' diagonals to 1."""
    sizes = np.diag(np.abs(R)) + np.sum(np.abs(B) * (np.abs(X) @ np.abs(B)), axis=0)
    units = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
    return float(np.abs(np.linalg.eigvalsh(weight / units[:, None] / units)).min(initial=np.inf))


def _solved(weight: np.ndarray, right: np.ndarray) -> np.ndarray:
    if weight.size == 0:
        return right
    try:
        return sl.cho_solve(sl.cho_factor(weight, check_finite=False), right, check_finite=False)
    except np.linalg.LinAlgError:
        return np.linalg.solve(weight, right)  # indefinite


def _is_rounding(candidate: _Candidate) -> bool:
    return candidate.unitless <= 2.0 * np.sqrt(len(candidate.X)) * _EPS


def _refined(equation: _Equation, candidate: _Candidate | None) -> _Candidate | None:
    """Candidate after Newton steps from a stabilising gain, for as long as they reduce the residual."""
    while candidate is not None and not _is_rounding(candidate):
        units, by = candidate.units, candidate.by
        step = stein_by_doubling(candidate.Phi * units[:, None] * by, candidate.error * by[:, None] * by, _HALF)
        if step is None or not np.linalg.norm(step) <= np.linalg.norm(candidate.X * by[:, None] * by):
            break  # converges to another X
        better = _candidate(equation, candidate.X + step * units[:, None] * units)
        if better is None or better.unitless > 0.5 * candidate.unitless:
            break
        candidate = better
    return candidate


def _solution(
    equation: _Equation, candidate: _Candidate | None, method: Literal["doubling", "scipy"], iterations: int
) -> DareSolution:
    n, m = equation.B.shape
    residual = np.inf if candidate is None else candidate.residual
    if candidate is not None and residual <= min(_HALF, 0.01 * candidate.pivot):
        radius = _radius(equation, candidate)
        status = _status(equation, candidate, radius)
        if status is not RiccatiStatus.NO_SOLUTION:
            return DareSolution(candidate.X, candidate.K, residual, radius, status, method, iterations)
    X, K = np.full((n, n), np.nan), np.full((m, n), np.nan)
    return DareSolution(X, K, residual, np.nan, RiccatiStatus.NO_SOLUTION, method, iterations)


def _radius(equation: _Equation, candidate: _Candidate) -> float:
    A, B, S = equation.A, equation.B, equation.S
    M, rows = candidate.Phi, A.any(axis=1)
    if not S.any() and not rows.all():
        # A + BK = (I − BF)A has the eigenvalues of A(I − BF), whose rows are zero where A's are.
        M = A[rows] - (A[rows] @ B) @ _solved(candidate.weight, B.T @ candidate.X)
        M = M[:, rows]
    return _largest_modulus(M)


def _largest_modulus(M: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(M)).max(initial=0.0))


def _status(equation: _Equation, candidate: _Candidate, radius: float) -> RiccatiStatus:
    if abs(1.0 - radius) > _NEAR or _is_off_the_circle(equation, candidate, radius):
        return RiccatiStatus.STABILISING if radius < 1.0 else RiccatiStatus.NOT_STABILISING
    return RiccatiStatus.NO_SOLUTION if _is_stuck(equation, candidate) else RiccatiStatus.MARGINAL


def _is_off_the_circle(equation: _Equation, candidate: _Candidate, radius: float) -> bool:
    """Whether no rounding of the data moves a pole of A + BK to the unit circle.

    In the candidate's units rounding changes the equation by at most r I and Φ by D, ‖D‖ ≤ r‖Φ‖, r a small multiple of
    n eps and what the equation is off by. Then X changes by at most rZ, Z = Φ'ZΦ + I, and Φ by D − Γ ΔX Φ,
    Γ = B(R + B'XB)⁻¹B'. Z stays a Lyapunov function, to first order, if 2r‖Z‖(‖Γ^½ Z Γ^½‖ + ‖Φ‖) < 1. For one pole at
    the distance g from the circle this is g² > r Γ/2: an integrator without a weight doesn't pass, as rounding gives it
    a weight of about eps and a pole at 1 − √eps. States without cost, and so without a part in X, are examined
    separately.
    """
    A, B, K, Phi, units, by = equation.A, equation.B, candidate.K, candidate.Phi, candidate.units, candidate.by
    costs, weight = units > 0.0, candidate.weight
    if Phi[np.ix_(costs, ~costs)].any():
        return False
    parts = (np.abs(A) + np.abs(B) @ np.abs(K)) * units[:, None] * by
    rounding = 4.0 * len(A) * _EPS
    off = rounding + float(np.linalg.norm(candidate.error * by[:, None] * by))
    B = B * units[:, None]
    if not _is_apart((Phi * units[:, None] * by)[np.ix_(costs, costs)], radius, parts, B[costs], weight, off):
        return False
    if costs.all():
        return True
    blind, _ = sl.matrix_balance(Phi[np.ix_(~costs, ~costs)], permute=False)
    own = _largest_modulus(blind)
    return abs(1.0 - own) > _NEAR or _is_apart(blind, own, blind, B[~costs], weight, rounding)


def _is_apart(Phi: np.ndarray, radius: float, parts: np.ndarray, B: np.ndarray, weight: np.ndarray, r: float) -> bool:
    """The test of `_is_off_the_circle`. If the outermost pole is outside, Φ is scaled to put it equally far inside."""
    away = abs(1.0 - radius)
    Z = stein_by_doubling(Phi * ((1.0 - away) / radius), np.eye(len(Phi)), 0.01) if away > 0.0 else None
    if Z is None:
        return False
    reach = np.linalg.norm(_solved(weight, B.T @ Z @ B))
    return bool(2.0 * r * np.linalg.norm(Z) * (reach + np.linalg.norm(parts)) < 1.0)


def _is_stuck(equation: _Equation, candidate: _Candidate) -> bool:
    """Whether a mode on the unit circle has a cost and B doesn't move it, so that every cost is infinite."""
    A, B, Q, R, S = equation
    K = candidate.K
    poles, left = sl.eig(A, left=True, right=False)
    moved = np.abs(left.T @ B) > _HALF * np.linalg.norm(B, axis=0)  # LAPACK's eigenvectors have length 1
    if not (~moved.any(axis=1) & (np.abs(poles) > 1.0 - _NEAR)).any():
        return False
    poles, right = sl.eig(candidate.Phi)
    V = right[:, np.abs(np.abs(poles) - 1.0) <= _HALF]
    cost = Q + K.T @ R @ K + S @ K + (S @ K).T
    terms = np.abs(Q) + np.abs(K).T @ np.abs(R) @ np.abs(K) + 2.0 * np.abs(S) @ np.abs(K)
    weights = np.abs(np.sum(V.conj() * (cost @ V), axis=0))
    return bool((weights > _HALF * np.sum(np.abs(V) * (terms @ np.abs(V)), axis=0)).any())
