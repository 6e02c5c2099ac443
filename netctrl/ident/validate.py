"""How well a model fits: variance accounted for by simulation and by prediction one sample ahead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.ident.compress import Segment
from netctrl.ident.kernels import free_response, predict, simulate

__all__ = ["initial_state", "predicted", "simulated", "variance_accounted_for"]

_ENOUGH = 20_000  # samples that tell an initial state

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def variance_accounted_for(measured: np.ndarray, modelled: np.ndarray) -> np.ndarray:
    """100 (1 − var(y − ŷ) / var y) of each column, shape (p,) [%]; at most 100, and below 0 where ŷ is worse than the
    mean. NaN for a column that doesn't move."""
    spread, left = measured.var(axis=0), (measured - modelled).var(axis=0)
    return np.array([100.0 * (1.0 - b / a) if a > 0.0 else np.nan for a, b in zip(spread, left, strict=True)])


def initial_state(model: Matrices, segment: Segment) -> np.ndarray:
    """x_0 of least squares from y = C x + D u + constant."""
    A, B, C, D = model
    u, y = (signal[:_ENOUGH] for signal in segment)
    n, p = len(A), len(C)
    left = y - simulate(A, B, C, D, np.zeros(n), u)
    regressors = np.hstack([free_response(A, C, len(u)), np.tile(np.eye(p), (len(u), 1))])
    size = np.linalg.norm(regressors, axis=0)
    size[size == 0.0] = 1.0
    return (np.linalg.lstsq(regressors / size, left.reshape(-1), rcond=1e-12)[0] / size)[:n]


def simulated(model: Matrices, segments: Sequence[Segment]) -> np.ndarray:
    """(T, p) outputs from the inputs and each segment's estimated initial state."""
    parts = [simulate(*model, initial_state(model, (u, y)), u) for u, y in segments]
    return parts[0] if len(parts) == 1 else np.vstack(parts)


def predicted(model: Matrices, K: np.ndarray, segments: Sequence[Segment]) -> np.ndarray:
    """(T, p) outputs one sample ahead by the innovation form, from each segment's estimated initial state."""
    parts = [predict(*model, K, initial_state(model, (u, y)), u, y) for u, y in segments]
    return parts[0] if len(parts) == 1 else np.vstack(parts)
