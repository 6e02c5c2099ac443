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
def filtered(F: np.ndarray, b: np.ndarray, state: np.ndarray, z: np.ndarray, rows: np.ndarray) -> None:
    """Fill the first n (1 + s) columns of `rows`, (T, any), with the states of 1 + s filters, and carry `state` on.

    state (n, 1 + s), z (T, s): the first filter is free, the others are driven by z. F has no entry beyond the first
    above its diagonal.
    """
    n, filters = state.shape
    after = np.empty_like(state)
    for t in range(len(z)):
        row, drive = rows[t], z[t]
        for i in range(n):
            last = min(i + 2, n)
            after[i, 0] = 0.0
            for j in range(1, filters):
                after[i, j] = b[i] * drive[j - 1]
            for k in range(last):
                for j in range(filters):
                    after[i, j] += F[i, k] * state[k, j]
            for j in range(filters):
                row[i * filters + j] = state[i, j]
        state[:] = after
