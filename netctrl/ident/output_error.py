"""The model whose simulated outputs come closest: B, D, offsets and initial states by least squares, then A and C too.

ŷ = C x + D u + c, x₊ = A x + B u from x_0 is linear in B, D, c and each segment's x_0: the regressors are outputs of
w₊ = A'w + C_l' u_j, one filter for each pair of input and output, and C A^t. What A and C do to ŷ, to first order, are
the same filters fed with the states. All is compressed to one triangle as it is made, so that memory doesn't grow.

Source: Verhaegen and Verdult 2007, sections 7.3 (least squares) and 8.2 (Gauss-Newton on a full parametrisation, whose
redundant directions the damping leaves alone; McKelvey and Helmersson 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from netctrl.ident.compress import Segment

__all__ = ["Fitted", "fit", "refine", "simulated"]

_BLOCK = 4096  # rows of the regression at a time
_ENOUGH = 1e-6  # of the squared error: less gain than this a step is none
_MOST_STEPS = 30
_LARGEST_RADIUS = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model and how far its simulated outputs are from those measured, in scaled units."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    offset: np.ndarray
    """(p,) c."""
    initial: np.ndarray
    """(S, n) state at the first sample of each segment."""
    error: float
    """Mean of (y − ŷ)² over samples and outputs."""

    @property
    def radius(self) -> float:
        """Greatest modulus of A's eigenvalues."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())


def fit(A: np.ndarray, C: np.ndarray, segments: Sequence[Segment], feedthrough: bool) -> Fitted:
    """B, D, c and initial states of least squared simulated error for given A and C."""
    triangle, heads = _compressed(A, C, None, None, segments, feedthrough)
    return _solved(A, C, triangle, heads, segments, feedthrough)


def refine(start: Fitted, segments: Sequence[Segment], feedthrough: bool) -> Fitted:
    """The local optimum of all parameters from `start` on, all of whose steps are stable (Levenberg-Marquardt)."""
    best, damping = start, 1e-3
    triangle = None
    for _ in range(_MOST_STEPS):
        if triangle is None:
            best = _balanced(best)
            n, p = len(best.A), len(best.C)
            triangle, _ = _compressed(best.A, best.C, best.B, best.initial, segments, feedthrough)
        step = _damped(triangle, n * n + n * p, damping)
        A, C = best.A + step[: n * n].reshape(n, n), best.C + step[n * n :].reshape(p, n)
        found = None
        if np.abs(np.linalg.eigvals(A)).max() < _LARGEST_RADIUS:
            found = fit(A, C, segments, feedthrough)
        if found is not None and found.error < best.error:
            gain = 1.0 - found.error / best.error
            best, triangle, damping = found, None, max(damping * 0.1, 1e-9)
            if gain < _ENOUGH:
                break
        else:
            damping *= 10.0
            if damping > 1e6:
                break
    return best


def simulated(fitted: Fitted, segments: Sequence[Segment]) -> list[np.ndarray]:
    """ŷ of each segment, scaled as they are."""
    return [
        simulate(fitted.A, fitted.B, fitted.C, fitted.D, x, u) + fitted.offset
        for x, (u, _) in zip(fitted.initial, segments, strict=True)
    ]


@njit(cache=True)
def simulate(A, B, C, D, x, u):
    """(T, p) outputs from state x on."""
    n, m, p = A.shape[0], B.shape[1], C.shape[0]
    y = np.empty((len(u), p))
    now, after = x.copy(), x.copy()
    for t in range(len(u)):
        for row in range(p):
            total = 0.0
            for k in range(n):
                total += C[row, k] * now[k]
            for j in range(m):
                total += D[row, j] * u[t, j]
            y[t, row] = total
        for row in range(n):
            total = 0.0
            for k in range(n):
                total += A[row, k] * now[k]
            for j in range(m):
                total += B[row, j] * u[t, j]
            after[row] = total
        now, after = after, now
    return y


@njit(cache=True)
def _regressors(A, B, C, u, y, state, free, filters, moving, rows):
    """Fill `rows` (T p, columns) with x_0, then A and C (where `moving`), B, D, c and y; advance what is carried.

    state (n,) x; free (p, n) C A^t; filters (p, s, n) of the inputs, and of the states where `moving`.
    """
    T, m = u.shape
    n, p = A.shape[0], C.shape[0]
    s = filters.shape[1]
    fed = np.empty(s)
    kept = np.empty(n)
    for t in range(T):
        for j in range(m):
            fed[j] = u[t, j]
        if moving:
            for k in range(n):
                fed[m + k] = state[k]
        for out in range(p):
            row = rows[t * p + out]
            row[:] = 0.0
            at = n
            row[:n] = free[out]
            if moving:
                for i in range(n):  # A[i, k]: the filter of state k, entry i
                    for k in range(n):
                        row[at] = filters[out, m + k, i]
                        at += 1
                for k in range(n):
                    row[at + out * n + k] = state[k]
                at += p * n
            for i in range(n):
                for j in range(m):
                    row[at] = filters[out, j, i]
                    at += 1
            for j in range(m):
                row[at + out * m + j] = u[t, j]
            row[at + p * m + out] = 1.0
            row[at + p * m + p] = y[t, out]
            for j in range(s):
                for i in range(n):
                    total = 0.0
                    for k in range(n):
                        total += A[k, i] * filters[out, j, k]
                    kept[i] = total
                for i in range(n):
                    filters[out, j, i] = kept[i] + C[out, i] * fed[j]
            for i in range(n):
                total = 0.0
                for k in range(n):
                    total += free[out, k] * A[k, i]
                kept[i] = total
            free[out] = kept
        for i in range(n):
            total = 0.0
            for k in range(n):
                total += A[i, k] * state[k]
            for j in range(m):
                total += B[i, j] * u[t, j]
            kept[i] = total
        state[:] = kept


def _compressed(
    A: np.ndarray,
    C: np.ndarray,
    B: np.ndarray | None,
    initial: np.ndarray | None,
    segments: Sequence[Segment],
    feedthrough: bool,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Triangle of the regression on what all segments share, y last, and for each segment the rows that give x_0.

    With B and initial states, the regressors for A and C come first.
    """
    m, (p, n) = segments[0][0].shape[1], C.shape
    moving = B is not None
    B = np.zeros((n, m)) if B is None else B
    shared = (n * n + p * n if moving else 0) + n * m + p * m + p + 1
    kept = np.ones(n + shared, dtype=bool)
    if not feedthrough:
        kept[-1 - p - p * m : -1 - p] = False
    triangle, heads = np.zeros((0, int(kept.sum()) - n)), []
    for number, (u, y) in enumerate(segments):
        state = np.zeros(n) if initial is None else initial[number].copy()
        free, filters = C.copy(), np.zeros((p, m + n if moving else m, n))
        R = np.zeros((0, int(kept.sum())))
        for first in range(0, len(u), block := max(_BLOCK // p, 2 * shared)):
            part = slice(first, first + block)
            rows = np.empty((len(u[part]) * p, n + shared))
            _regressors(A, B, C, u[part], y[part], state, free, filters, moving, rows)
            R = np.linalg.qr(np.vstack([R, rows[:, kept]]), mode="r")
        heads.append(R[:n])
        triangle = np.linalg.qr(np.vstack([triangle, R[n:, n:]]), mode="r")
    return triangle, heads


def _solved(
    A: np.ndarray,
    C: np.ndarray,
    triangle: np.ndarray,
    heads: Sequence[np.ndarray],
    segments: Sequence[Segment],
    feedthrough: bool,
) -> Fitted:
    m, (p, n) = segments[0][0].shape[1], C.shape
    found = _lstsq(triangle[:, :-1], triangle[:, -1])
    left = triangle[:, -1] - triangle[:, :-1] @ found
    initial = np.array([_lstsq(head[:, :n], head[:, -1] - head[:, n:-1] @ found) for head in heads])
    B, rest = found[: n * m].reshape(n, m), found[n * m :]
    D = rest[: p * m].reshape(p, m) if feedthrough else np.zeros((p, m))
    samples = sum(len(u) for u, _ in segments)
    return Fitted(A, B, C, D, rest[-p:], initial, float(left @ left) / (samples * p))


def _lstsq(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Least squares with columns of one length first: states and inputs have no common scale."""
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0.0] = 1.0
    return np.linalg.lstsq(matrix / size, right, rcond=1e-13)[0] / size


def _damped(triangle: np.ndarray, count: int, damping: float) -> np.ndarray:
    """The first `count` parameters' step: those behind them are free to follow, undamped."""
    behind = triangle[:, count:-1]
    Q, _ = np.linalg.qr(behind)
    moved = triangle[:, :count] - Q @ (Q.T @ triangle[:, :count])
    error = triangle[:, -1] - Q @ (Q.T @ triangle[:, -1])
    size = np.linalg.norm(moved, axis=0)
    size[size == 0.0] = 1.0
    U, s, Vt = np.linalg.svd(moved / size, full_matrices=False)
    return (Vt.T @ (s / (s * s + damping * s[0] ** 2) * (U.T @ error))) / size


def _balanced(fitted: Fitted) -> Fitted:
    """States so that inputs move them, and outputs see them, alike: the damping then treats them alike."""
    from scipy.linalg import solve_discrete_lyapunov

    A, B, C = fitted.A, fitted.B, fitted.C
    try:
        P = solve_discrete_lyapunov(A, B @ B.T)
        Q = solve_discrete_lyapunov(A.T, C.T @ C)
        n = len(A)
        L = np.linalg.cholesky(P + 1e-12 * np.trace(P) / n * np.eye(n))
        U, s, _ = np.linalg.svd(L.T @ Q @ L)
        T = (L @ U) / np.maximum(s, 1e-12 * s[0]) ** 0.25
        inverse = np.linalg.inv(T)
    except (np.linalg.LinAlgError, ValueError):
        return fitted
    if not (np.isfinite(T).all() and np.isfinite(inverse).all()):
        return fitted
    return Fitted(
        inverse @ A @ T, inverse @ B, C @ T, fitted.D, fitted.offset, fitted.initial @ inverse.T, fitted.error
    )
