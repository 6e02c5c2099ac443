"""Fit of a model: variance accounted for by simulation and by one-step prediction."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from netctrl.ident.descent.kernels import free_response, predict, simulate
from netctrl.ident.descent.output_error import CALM
from netctrl.ident.subspace.lq_reduction import Segment, triangular

_ENOUGH = 20_000  # samples used for an initial state
_NOTHING_LEFT = 1e-14  # of a state
_SMALLEST, _NOTHING = 1e-6, 1e-150  # of an output's error: relative to the greatest, and where there is none
_LARGEST_GROWTH = 1e8  # largest growth of an unstable model's free response within the samples used

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def variance_accounted_for(measured: np.ndarray, modelled: np.ndarray) -> np.ndarray:
    """Variance accounted for, 100 (1 − var(y − ŷ) / var y), of each column, shape (p,) [%].

    It is at most 100, below 0 where ŷ is worse than the mean, and NaN for a constant column. Missing samples are left
    out.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # an unstable model's outputs
        spread, left = np.nanvar(measured, axis=0), np.nanvar(measured - modelled, axis=0)
    return np.array([100.0 * (1.0 - b / a) if a > 0.0 else np.nan for a, b in zip(spread, left, strict=True)])


def initial_state(model: Matrices, K: np.ndarray | None, segment: Segment) -> np.ndarray:
    """Initial state x_0 of least squared errors of the predictor with gain K, or of the simulation (None, or K = 0).

    The errors y − ŷ are linear in x_0. In a simulation a constant is fitted together with x_0 and dropped, since the
    variance accounted for is about the mean. A predictor follows a constant by itself. Outputs weigh by what a first
    solution leaves of them, so that a noisy one doesn't spoil the start of a clean one.
    """
    A, _, C, _ = model
    alone = K is None or not K.any()
    stable = A if K is None else A - K @ C
    n, p = len(A), len(C)
    count = min(len(segment[0]), _ENOUGH, _finite(stable))
    told = _forgotten(stable, count)
    u, y = (signal[:count] for signal in segment)
    width = n + p if alone else n
    rows = np.zeros(((told + 2) * p, width + 1))
    first, tail, calm = rows[: told * p], rows[told * p : -p], rows[-p:]
    left = y - _run(model, K, np.zeros(n), u, y)
    first[:, :n] = free_response(np.ascontiguousarray(stable), C, told)
    first[:, -1] = left[:told].reshape(-1)
    # What comes after the state is forgotten tells of the constant, by its mean, and of the outputs' weights.
    known, mean = np.isfinite(left[told:]), np.zeros(p)
    if alone:
        number = known.sum(axis=0)
        mean = np.where(known, left[told:], 0.0).sum(axis=0) / np.maximum(number, 1)
        first[:, n:-1] = np.tile(np.eye(p), (told, 1))
        calm[:, n:-1] = np.sqrt(CALM * count) * np.eye(p)
        tail[:, n:-1], tail[:, -1] = np.diag(np.sqrt(number)), np.sqrt(number) * mean
    rows[np.isnan(rows[:, -1])] = 0.0
    found = _least_squares(rows)
    if p > 1:
        within = (np.where(known, left[told:] - mean, 0.0) ** 2).sum(axis=0)
        error = np.sqrt(((rows[:, -1] - rows[:, :-1] @ found).reshape(-1, p) ** 2).sum(axis=0) + within)
        found = _least_squares(rows / np.tile(np.maximum(error, _SMALLEST * error.max() + _NOTHING), told + 2)[:, None])
    return found[:n]


def _forgotten(A: np.ndarray, most: int) -> int:
    """Samples, a power of 2 and at most `most`, after which a state has no effect that rounding leaves."""
    count = 1
    while count < most and np.abs(A).max(initial=0.0) > _NOTHING_LEFT:
        A, count = A @ A, 2 * count
    return min(count, most)


def _least_squares(rows: np.ndarray) -> np.ndarray:
    """Solution for a last column by the others, which have no common scale."""
    triangle = triangular(rows)
    size = np.linalg.norm(triangle[:, :-1], axis=0)
    size[size == 0.0] = 1.0
    return np.linalg.lstsq(triangle[:, :-1] / size, triangle[:, -1], rcond=1e-12)[0] / size


def _finite(A: np.ndarray) -> int:
    """Number of samples in which an unstable model's free response grows to at most 1e8."""
    radius = float(np.abs(np.linalg.eigvals(A)).max())
    return len(A) + int(log(_LARGEST_GROWTH) / log(radius)) if radius > 1.0 + 1e-9 else _ENOUGH


def simulated(model: Matrices, segments: Sequence[Segment], head: float = 1.0) -> np.ndarray:
    """Outputs (T, p) from the inputs and each segment's initial state, estimated from its first share `head`."""
    return predicted(model, None, segments, head)


def predicted(model: Matrices, K: np.ndarray | None, segments: Sequence[Segment], head: float = 1.0) -> np.ndarray:
    """One-step predictions (T, p) by the innovation form, from the initial state that suits the predictor best.

    A predictor begins at a segment's first complete sample, as a state before that is not told by what it predicts.
    """
    parts = []
    for u, y in segments:
        first = 0 if K is None else int(np.isfinite(y).all(axis=1).argmax())
        u, y = u[first:], y[first:]
        some = max(int(head * len(u)), min(len(u), 2 * len(model[0])))
        found = _run(model, K, initial_state(model, K, (u[:some], y[:some])), u, y)
        parts.append(np.vstack([np.full((first, y.shape[1]), np.nan), found]) if first else found)
    return parts[0] if len(parts) == 1 else np.vstack(parts)


def _run(model: Matrices, K: np.ndarray | None, x: np.ndarray, u: np.ndarray, y: np.ndarray) -> np.ndarray:
    return simulate(*model, x, u) if K is None else predict(*model, K, x, u, y)
