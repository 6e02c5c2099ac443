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

__all__ = ["Fitted", "balanced", "fit", "free_response", "predict", "refine", "simulate"]

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

    def __post_init__(self) -> None:
        for name in ("A", "B", "C", "D", "offset", "initial"):  # one layout in memory: one compilation of the kernels
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @property
    def radius(self) -> float:
        """Greatest modulus of A's eigenvalues."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())


def fit(A: np.ndarray, C: np.ndarray, segments: Sequence[Segment], feedthrough: bool) -> Fitted:
    """B, D, c and initial states of least squared simulated error for given A and C."""
    A, C = np.ascontiguousarray(A), np.ascontiguousarray(C)
    triangle, heads = _compressed(A, C, None, None, segments, feedthrough)
    return _solved(A, C, triangle, heads, segments, feedthrough)


def refine(start: Fitted, segments: Sequence[Segment], feedthrough: bool) -> Fitted:
    """The local optimum of all parameters from `start` on, all of whose steps are stable (Levenberg-Marquardt)."""
    best, damping = start, 1e-3
    triangle = None
    for _ in range(_MOST_STEPS):
        if triangle is None:
            best = balanced(best)
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


@njit(inline="always")
def _add(total, matrix, vector):
    """total += matrix @ vector."""
    for i in range(matrix.shape[0]):
        for k in range(matrix.shape[1]):
            total[i] += matrix[i, k] * vector[k]


@njit(cache=True)
def simulate(A, B, C, D, x, u):
    """(T, p) outputs from state x on."""
    y = np.zeros((len(u), C.shape[0]))
    now, after = x.copy(), np.empty_like(x)
    for t in range(len(u)):
        _add(y[t], C, now)
        _add(y[t], D, u[t])
        after[:] = 0.0
        _add(after, A, now)
        _add(after, B, u[t])
        now, after = after, now
    return y


@njit(cache=True)
def predict(A, B, C, D, K, x, u, y):
    """(T, p) outputs one sample ahead, from state x on: x₊ = A x + B u + K (y − ŷ)."""
    found = np.zeros(y.shape)
    now, after = x.copy(), np.empty_like(x)
    for t in range(len(u)):
        _add(found[t], C, now)
        _add(found[t], D, u[t])
        after[:] = 0.0
        _add(after, A, now)
        _add(after, B, u[t])
        _add(after, K, y[t] - found[t])
        now, after = after, now
    return found


@njit(cache=True)
def free_response(A, C, count):
    """(count p, n) C, CA, CA², ... stacked."""
    p, n = C.shape
    found = np.zeros((count * p, n))
    found[:p] = C
    for row in range(p, count * p):
        _add(found[row], A.T, found[row - p])
    return found


@njit(cache=True)
def _regressors(A, B, C, u, y, state, free, filters, moving, direct, rows):
    """Fill `rows` (T p, columns) with x_0, then A and C (where `moving`), B, D (where `direct`), c and y.

    What is carried on: state (n,) x; free (p, n) C A^t; filters (p, s, n) of the inputs, and of the states where
    `moving`.
    """
    T, m = u.shape
    n, p = A.shape[0], C.shape[0]
    s = filters.shape[1]
    fed = np.empty(s)
    kept = np.empty(n)
    for t in range(T):
        fed[:m] = u[t]
        if moving:
            fed[m:] = state
        for out in range(p):
            row = rows[t * p + out]
            row[n:] = 0.0
            row[:n] = free[out]
            at = n
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
            if direct:
                for j in range(m):
                    row[at + out * m + j] = u[t, j]
                at += p * m
            row[at + out] = 1.0
            row[at + p] = y[t, out]
            for j in range(s):
                for i in range(n):
                    total = C[out, i] * fed[j]
                    for k in range(n):
                        total += A[k, i] * filters[out, j, k]
                    kept[i] = total
                for i in range(n):
                    filters[out, j, i] = kept[i]
            for i in range(n):
                total = 0.0
                for k in range(n):
                    total += A[k, i] * free[out, k]
                kept[i] = total
            for i in range(n):
                free[out, i] = kept[i]
        kept[:] = 0.0
        _add(kept, A, state)
        _add(kept, B, u[t])
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
    width = n + (n * n + p * n if moving else 0) + n * m + (p * m if feedthrough else 0) + p + 1
    block = max(_BLOCK, 2 * width) // p
    rows = np.empty((width + block * p, width))  # a triangle, and what is put below it
    triangle, heads = np.zeros((0, width - n)), []
    for number, (u, y) in enumerate(segments):
        state = np.zeros(n) if initial is None else initial[number].copy()
        free, filters = C.copy(), np.zeros((p, m + n if moving else m, n))
        rows[:width] = 0.0
        for first in range(0, len(u), block):
            part = slice(first, first + block)
            last = width + len(u[part]) * p
            _regressors(A, B, C, u[part], y[part], state, free, filters, moving, feedthrough, rows[width:last])
            rows[:width] = np.linalg.qr(rows[:last], mode="r")
        heads.append(rows[:n].copy())
        triangle = np.linalg.qr(np.vstack([triangle, rows[n:width, n:]]), mode="r")
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


def balanced(fitted: Fitted) -> Fitted:
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
