"""Uncertainty of the poles, by a block bootstrap over pieces of the trace, and of the steady gains, by scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from netctrl.ident.descent.kernels import regressors
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, first_samples, triangular
from netctrl.ident.subspace.methods import shift, subspace
from netctrl.ident.validate import Matrices, initial_state

GAIN_DRAWS = 40
_MIN_PIECES = 8
_BLOCKS = 20  # long enough for the noise's memory, many enough for a variance
_ENTRIES = 1_000_000  # most numbers in the regression: its memory, and a third of the time of a long trace
_RANK = 1e-9  # relative singular value below which a direction is one of equivalent coordinates of the state


def gain_draws(model: Matrices, segments: Sequence[Segment], random: np.random.Generator) -> np.ndarray | None:
    """Steady gains (40, p, m) that the trace allows, around that of the model.

    The simulated output's derivatives J by A, B, C, D, the offset and each segment's initial state, and its residuals
    r, give the scores J_b' r_b of blocks b of successive samples. A draw is G + Σ_b ξ_b L (J'J)⁺ J_b' r_b with ξ_b from
    a standard normal distribution and dG = L dθ, where

        G = C (I − A)⁻¹ B + D,  dG = C (I − A)⁻¹ (dA X + dB) + dC X + dD,  X = (I − A)⁻¹ B.

    Noise of any colour is allowed for, as long as its memory is shorter than a block. Being linear in θ, draws reach
    over poles at 1: the gain of a slow pole that the trace doesn't determine has both signs.

    None for an unstable model, and where the trace is too short for the number of parameters.

    Source: Kline and Santos 2012 (score bootstrap); White 1982 (the covariance of a model that is not exact).
    """
    A, B, C, D = (np.ascontiguousarray(matrix) for matrix in model)
    (n, m), p = B.shape, len(C)
    width = n * n + p * n + n * m + p * m + p + 1
    samples = sum(len(u) for u, _ in segments)
    if np.abs(np.linalg.eigvals(A)).max() >= 1.0:
        return None
    used = first_samples(segments, max(_ENTRIES // (width * p), 2 * width))
    J = np.vstack([_regression(A, B, C, D, segment) for segment in used])
    size = np.linalg.norm(J[:, :-1], axis=0)
    size[size == 0.0] = 1.0
    _, s, Vt = np.linalg.svd(triangular(J[:, :-1] / size), full_matrices=False)
    kept = s > _RANK * s[0]
    if len(J) < 2 * np.count_nonzero(kept) + _BLOCKS:
        return None
    directions = Vt[kept].T / s[kept] / size[:, None]
    U = J[:, :-1] @ directions
    scores = U * (J[:, -1] - U @ (U.T @ J[:, -1]))[:, None]
    edges = np.linspace(0, len(J) // p, _BLOCKS + 1).astype(int)[:-1] * p
    influence = np.add.reduceat(scores, edges) @ (_sensitivity(A, B, C) @ directions).T
    influence *= np.sqrt(_BLOCKS / (_BLOCKS - 1.0) * len(J) / (samples * p))
    gain = C @ np.linalg.solve(np.eye(n) - A, B) + D
    return gain + (random.standard_normal((GAIN_DRAWS, _BLOCKS)) @ influence).reshape(-1, p, m)


def _regression(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, segment: Segment) -> np.ndarray:
    """Derivatives of a segment's simulated outputs by what all segments share, and y, the part of x_0 removed."""
    u, y = segment
    (n, m), p = B.shape, len(C)
    rows = np.empty((len(u) * p, n + n * n + p * n + n * m + p * m + p + 1))
    state = initial_state((A, B, C, D), None, segment)
    regressors(A, B, C, u, y, state, C.copy(), np.zeros((p, m + n, n)), True, m, rows)
    rows[np.isnan(rows[:, -1])] = 0.0
    Q, _ = np.linalg.qr(rows[:, :n])
    return rows[:, n:] - Q @ (Q.T @ rows[:, n:])


def _sensitivity(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """L (p m, ...) of dG = L dθ, by A, C, B and D row by row, and the offset."""
    (n, m), p = B.shape, len(C)
    observed = np.linalg.solve((np.eye(n) - A).T, C.T).T
    X = np.linalg.solve(np.eye(n) - A, B)
    by_A = np.einsum("ki,lj->kjil", observed, X).reshape(p * m, n * n)
    by_C = np.einsum("kq,lj->kjql", np.eye(p), X).reshape(p * m, p * n)
    return np.hstack([by_A, by_C, np.kron(observed, np.eye(m)), np.eye(p * m), np.zeros((p * m, p))])


def bootstrap_poles(
    data: LqReduction, method: str, order: int, draws: int, random: np.random.Generator, around: np.ndarray
) -> np.ndarray | None:
    """Poles (draws, order) of the subspace step on pieces drawn with replacement, each column near one of `around`.

    None where a trace has fewer than 8 pieces of 4 horizon (m + p) samples. The pieces are long compared with the
    plant's memory, so dependence between them matters little. Refinement and guard aren't repeated on the draws: the
    cloud is that of the subspace's poles, shifted so that its centre is `around`.

    Source: Künsch 1989 (block bootstrap); Bittanti and Lovera 2000 (of subspace models).
    """
    F = len(data.columns)
    if F < _MIN_PIECES:
        return None
    own = _matched(_poles(data, method, order, None), around)
    found = np.empty((draws, order), dtype=complex)
    for k, weights in enumerate(random.multinomial(F, np.full(F, 1.0 / F), size=draws)):
        found[k] = _matched(_poles(data, method, order, weights), own)
    return found - own + around


def _poles(data: LqReduction, method: str, order: int, weights: np.ndarray | None) -> np.ndarray:
    found = subspace(data, method, None if weights is None else data.drawn(weights))
    return np.linalg.eigvals(shift(found.gamma(order), data.n_outputs))


def _matched(poles: np.ndarray, around: np.ndarray) -> np.ndarray:
    """Poles in the order of `around`, by the least sum of squared distances."""
    _, order = linear_sum_assignment(np.abs(around[:, None] - poles[None, :]) ** 2)
    return poles[order]
