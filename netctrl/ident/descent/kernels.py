"""Recursions over samples: arrays in, arrays out."""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import njit


@njit(inline="always")
def _add(total, matrix, vector):
    """total += matrix @ vector."""
    for i in range(matrix.shape[0]):
        for k in range(matrix.shape[1]):
            total[i] += matrix[i, k] * vector[k]


@njit(cache=True)
def simulate(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, x: np.ndarray, u: np.ndarray) -> np.ndarray:
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
def predict(
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    K: np.ndarray,
    x: np.ndarray,
    u: np.ndarray,
    y: np.ndarray,
) -> np.ndarray:
    """(T, p) outputs one sample ahead, from state x on: x₊ = A x + B u + K (y − ŷ); a missing y, NaN, is taken as ŷ."""
    found = np.zeros(y.shape)
    now, after = x.copy(), np.empty_like(x)
    error = np.empty(y.shape[1])
    for t in range(len(u)):
        _add(found[t], C, now)
        _add(found[t], D, u[t])
        for k in range(len(error)):
            error[k] = 0.0 if np.isnan(y[t, k]) else y[t, k] - found[t, k]
        after[:] = 0.0
        _add(after, A, now)
        _add(after, B, u[t])
        _add(after, K, error)
        now, after = after, now
    return found


@njit(cache=True)
def free_response(A: np.ndarray, C: np.ndarray, count: int) -> np.ndarray:
    """(count p, n) C, CA, CA², ... stacked."""
    p, n = C.shape
    found = np.zeros((count * p, n))
    found[:p] = C
    for row in range(p, count * p):
        _add(found[row], A.T, found[row - p])
    return found


@njit(cache=True)
def regressors(
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    u: np.ndarray,
    y: np.ndarray,
    state: np.ndarray,
    free: np.ndarray,
    filters: np.ndarray,
    moving: bool,
    direct: int,
    rows: np.ndarray,
) -> None:
    """Fill `rows` (T p, columns) with x_0, then A and C (where `moving`), B, D of the first `direct` inputs, c and y.

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
            for j in range(direct):
                row[at + out * direct + j] = u[t, j]
            at += p * direct
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
