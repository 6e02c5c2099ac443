"""Compression of a trace to a few triangular factors for subspace methods, in memory independent of its length.

A column of the block Hankel matrix is h_k = (1, z_k, z_{k+1}, ..., z_{k+2i−1}), z = (u, y); the factor R of h_0', h_1',
... stacked has R'R = Σ h_k h_k', and gives all regressions of parts of h on others. Factors of pieces of a
trace, or of several traces, combine: the factor of the stacked factors is that of all of them. The 1 removes the means
of the columns, which differ from those of the signals; a remaining constant would be a state with its pole at 1.

Source: van Overschee and De Moor 1996, section 6.1; for the moments, Sima, Sima and Van Huffel 2004.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np

_PIECES = 24  # pieces of a long trace, from which the bootstrap draws
_BLOCK = 2048  # columns at a time: a few MB
# Squaring the data loses twice as many digits as R's condition number has. Above 1e3 fewer than 10 digits remain.
_WIDE, _APART = 4, 1e-3  # columns whose moments are faster; their least distance from others', of their size
_LONG = 12  # columns per row above which moments are faster

Segment = tuple[np.ndarray, np.ndarray]
"""Inputs (T, m) and outputs (T, p), scaled."""


@dataclass(frozen=True, slots=True, eq=False)
class LqReduction:
    """Compressed block Hankel matrix of a trace."""

    triangles: np.ndarray
    """(F, r + 1, r + 1) upper triangular: a factor for each piece of the trace, r = 2 horizon (m + p)."""
    columns: np.ndarray
    """(F,) columns in each piece."""
    factor: np.ndarray
    """(r, r) factor of all pieces about their common means, over the root of the number of columns."""
    horizon: int
    n_inputs: int
    n_outputs: int

    def drawn(self, times: np.ndarray) -> np.ndarray:
        """Factor (r, r) of pieces, each as often as `times` gives, over the root of the number of columns."""
        return _sum(self.triangles, self.columns, times)


def _sum(triangles: np.ndarray, columns: np.ndarray, times: np.ndarray) -> np.ndarray:
    taken = times > 0
    stacked = triangles[taken] * np.sqrt(times[taken])[:, None, None]
    return triangular(stacked.reshape(-1, stacked.shape[2]))[1:, 1:] / np.sqrt(times @ columns)


def first_samples(segments: Sequence[Segment], most: int) -> list[Segment]:
    """Whole segments and the beginning of one, with `most` samples together."""
    kept: list[Segment] = []
    for u, y in segments:
        room = most - sum(len(v) for v, _ in kept)
        if room <= 0:
            break
        kept.append((u[:room], y[:room]))
    return kept


def about(segments: Sequence[Segment], offset: np.ndarray) -> list[Segment]:
    """Segments with the outputs' deviations from an offset."""
    return [(u, y - offset) for u, y in segments]


def columns_of(segments: Sequence[Segment], horizon: int) -> list[int]:
    """Columns of each segment's block Hankel matrix of 2 horizon samples; 0 for shorter segments."""
    return [max(0, len(u) - 2 * horizon + 1) for u, _ in segments]


def triangular(rows: np.ndarray) -> np.ndarray:
    """Factor R of rows = QR.

    Many columns are multiplied faster than they are reflected: R is the Cholesky factor of their moments where each
    column is far enough from the ones before it that no more than 6 of 16 digits are lost, as lq_reduce's is.
    """
    if rows.shape[1] >= _WIDE and len(rows) >= 2 * rows.shape[1]:
        R = _of_moments(rows.T @ rows)
        if R is not None:
            return R
    return cast(np.ndarray, np.linalg.qr(rows, mode="r"))


def _of_moments(G: np.ndarray) -> np.ndarray | None:
    """Cholesky factor; None where too many digits are lost."""
    size = np.sqrt(np.diag(G))
    if size.all() and np.isfinite(size).all():
        with suppress(np.linalg.LinAlgError):
            R = np.linalg.cholesky(G / size / size[:, None]).T
            if np.diag(R).min() > _APART:
                return R * size
    return None


def lq_reduce(segments: Sequence[Segment], horizon: int, *, block: int = _BLOCK) -> LqReduction:
    """Factors of the block Hankel matrices of all segments; those shorter than 2 horizon are skipped.

    Long and well-conditioned ones use lagged moments, which process each sample once; all others use QR.
    """
    m, p = segments[0][0].shape[1], segments[0][1].shape[1]
    r = 2 * horizon * (m + p)
    counts = columns_of(segments, horizon)
    size = max(-(-sum(counts) // _PIECES), 2 * r)
    pieces = [piece for segment, N in zip(segments, counts, strict=True) for piece in _cut(segment, N, size, horizon)]
    columns = np.array(columns_of(pieces, horizon))
    triangles = _by_moments(pieces, horizon, block) if sum(counts) >= _LONG * r else None
    if triangles is None:
        triangles = np.stack([_by_qr(piece, horizon, block) for piece in pieces])
    return LqReduction(triangles, columns, _sum(triangles, columns, np.ones(len(columns))), horizon, m, p)


def _cut(segment: Segment, N: int, size: int, horizon: int) -> Iterator[Segment]:
    """Pieces of about `size` columns; they overlap in samples, not in columns."""
    if N <= 0:
        return
    u, y = segment
    edges = np.linspace(0, N, max(1, N // size) + 1).astype(int)
    for first, last in pairwise(edges):
        part = slice(first, last + 2 * horizon - 1)
        yield u[part], y[part]


def _hankel(piece: Segment, horizon: int, first: int, count: int) -> np.ndarray:
    """Rows h_first, ..., (count, r), as a view of overlapping memory."""
    u, y = (signal[first : first + count + 2 * horizon - 1] for signal in piece)
    z = np.hstack([u, y])
    q = z.shape[1]
    return np.lib.stride_tricks.sliding_window_view(z.reshape(-1), 2 * horizon * q)[::q]


def _by_qr(piece: Segment, horizon: int, block: int) -> np.ndarray:
    N = len(piece[0]) - 2 * horizon + 1
    r = 2 * horizon * (piece[0].shape[1] + piece[1].shape[1]) + 1
    R = np.zeros((0, r))
    for first in range(0, N, max(block, r)):
        rows = _hankel(piece, horizon, first, min(max(block, r), N - first))
        R = triangular(np.vstack([R, np.insert(rows, 0, 1.0, axis=1)]))
    return np.vstack([R, np.zeros((r - len(R), r))])


def _by_moments(pieces: Sequence[Segment], horizon: int, block: int) -> np.ndarray | None:
    """Cholesky factors of the pieces' moments; None where too many digits are lost."""
    found = []
    for piece in pieces:
        R = _of_moments(_moments(piece, horizon, block))
        if R is None:
            return None
        found.append(R)
    return np.stack(found)


def _moments(piece: Segment, horizon: int, block: int) -> np.ndarray:
    """Moments Σ h_k h_k', (r + 1, r + 1): the first q rows of z by products, each later block from the one before it.

    Σ z_{k+a+1} z_{k+b+1}' = Σ z_{k+a} z_{k+b}' − z_a z_b' + z_{N+a} z_{N+b}'.
    """
    u, y = piece
    N, q = len(u) - 2 * horizon + 1, u.shape[1] + y.shape[1]
    r = 2 * horizon * q
    whole = np.empty((r + 1, r + 1))
    G = whole[1:, 1:]
    G[:q] = 0.0
    for first in range(0, N, block):
        rows = np.ascontiguousarray(_hankel(piece, horizon, first, min(block, N - first)))
        G[:q] += rows[:, :q].T @ rows
    start = np.hstack([signal[: 2 * horizon] for signal in piece]).reshape(-1)
    end = np.hstack([signal[N : N + 2 * horizon - 1] for signal in piece]).reshape(-1)
    for a in range(q, r, q):
        before = G[a - q : a, : r - q] - np.outer(start[a - q : a], start[: r - q])
        G[a : a + q, q:] = before + np.outer(end[a - q : a], end[: r - q])
        G[a : a + q, :q] = G[:q, a : a + q].T
    sums = np.hstack([signal[:N].sum(axis=0) for signal in piece])
    steps = np.cumsum((end - start[:-q]).reshape(-1, q), axis=0)
    whole[0, 1:] = np.vstack([sums, sums + steps]).reshape(-1)
    whole[1:, 0] = whole[0, 1:]
    whole[0, 0] = N
    return whole
