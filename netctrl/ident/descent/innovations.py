"""Noise model of given A, B, C, D: the Kalman gain K and the covariance V of the innovations.

The predictor x₊ = (A − K C) x + (B − K D) u + K y has the errors e = y − C x − D u. With the right K
they are the innovations, and their covariance is least. So K minimises log det V(K), the likelihood of Gaussian
innovations, among gains whose predictor forgets its start within ten traces and predicts no output worse than the
simulation, K = 0. K is 0 where no gain improves the fit by more than chance. A and C are fixed: de = −C ψ,
ψ₊ = (A − K C) ψ + dK e are the filters of `output_error`, applied to e.

The Riccati equation of the residuals' covariances, which subspace methods solve for K, holds for the right model. For a
model with too few states, or refined by its simulation error, it gives predictors worse than K = 0 and a wrong V.

Source: Ljung 1999, sections 7.2 and 10.2; Hannan and Rissanen 1982 (the first guess).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
import scipy.linalg as sl

from netctrl.ident.descent.output_error import compressed, damped, fit
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, first_samples
from netctrl.ident.validate import Matrices, predicted

NOISELESS = 1e-18  # relative to an output's variance
_FEW, _ENOUGH = 4_000, 10_000  # samples for comparing guesses, and for K; V uses all
_INSIDE = 1.0 - 1e-9
_TRACES = 10  # most trace lengths in which a predictor forgets its start
_ROUNDING = 1e-9  # relative to a variance
_EPS = 1e-14
_MAX_STEPS = 30
_ROUNDS = 8
_GAIN = 1e-6  # decrease of log det V below which the descent stops
_MAX_DAMPING = 1e4


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Noise of the innovation form, in scaled units."""

    K: np.ndarray
    """(n, p) Kalman gain."""
    V: np.ndarray
    """(p, p) covariance of the innovations."""


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    model: Matrices
    segments: Sequence[Segment]
    radius: float
    """Largest spectral radius of A − K C, where K isn't 0."""
    extra: np.ndarray
    """(p,) λ of the loss log det V + Σ λ_i log V_ii: above 0 for outputs predicted worse than simulated."""


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    K: np.ndarray
    errors: list[np.ndarray]
    V: np.ndarray

    def loss(self, extra: np.ndarray) -> float:
        return float(np.log(self.spread()[0]).sum() + extra @ np.log(np.diag(self.V) + NOISELESS))

    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of V, at least at rounding, and eigenvectors."""
        values, vectors = np.linalg.eigh(self.V)
        return np.maximum(values, NOISELESS + _EPS * values.max()), vectors

    def worse(self, other: _Tried | None) -> np.ndarray:
        """Mask (p,) of the outputs that are predicted worse than with another gain."""
        return np.diag(self.V) > (np.inf if other is None else (1.0 + _ROUNDING) * np.diag(other.V))


def noise_of(
    model: Matrices, segments: Sequence[Segment], data: LqReduction, guess: np.ndarray | None = None
) -> Noise | None:
    """K and V from signals, scaled and relative to the model's offsets, and from the compressed signals.

    `guess`, shape (n, p), is the initial K where its predictor is stable. The result is None where the model explains
    an output exactly, or where it is unstable and no stabilising gain is found.
    """
    nothing, samples = np.zeros(model[2].T.shape), sum(len(u) for u, _ in segments)
    whole = _Task(model, segments, 1.0 - 1.0 / (_TRACES * max(len(u) for u, _ in segments)), np.zeros(len(model[2])))
    found = None
    for count in (_FEW, _ENOUGH, samples):
        task = replace(whole, segments=first_samples(segments, count))
        none = _tried(task, nothing)
        if none is not None and np.diag(none.V).min() < NOISELESS:
            return None
        starts = _starts(task, data, none, guess) if found is None else [_tried(task, found.K)]
        if count > _ENOUGH and starts[0] is not None and not starts[0].worse(none).any():
            return Noise(starts[0].K, starts[0].V)
        # Least loss reached from any start, with no output worse than with `none`, K = 0.
        ends = [_no_worse(task, start, none) for start in starts if start is not None]
        if none is not None:
            ends.append(_descended(task, none, limit=none))
        usable = [each for each in ends if not each.worse(none).any()]
        best = min(usable, key=lambda each: each.loss(task.extra), default=None)
        found = none if best is None or (none is not None and not _pays(task, best, none)) else best
        if found is None or count >= samples:
            break
    return None if found is None else Noise(found.K, found.V)


def _pays(task: _Task, best: _Tried, none: _Tried) -> bool:
    """Whether K's number of entries is justified by BIC; always where K = 0 would never forget its start."""
    A, samples = task.model[0], sum(len(u) for u, _ in task.segments)
    gain = samples * (none.loss(task.extra) - best.loss(task.extra))
    return bool(gain > best.K.size * log(samples) or np.abs(np.linalg.eigvals(A)).max() >= task.radius)


def _no_worse(task: _Task, best: _Tried, none: _Tried | None) -> _Tried:
    """Descent, repeated with more weight on the outputs that are worse than with `none`."""
    for _ in range(_ROUNDS):
        best = _descended(task, best, limit=None)
        worse = best.worse(none)
        if not worse.any():
            break
        task = replace(task, extra=np.where(worse, 4.0 * task.extra + 1.0, task.extra))
    return best


def _starts(task: _Task, data: LqReduction, none: _Tried | None, guess: np.ndarray | None) -> list[_Tried]:
    A, _, C, _ = task.model
    n, p = len(A), len(C)
    near = None if guess is None else _tried(task, guess)
    if near is not None:
        return [near]
    guesses = [_kalman(A, C, np.eye(n), np.eye(p), np.zeros((n, p)))]
    if none is not None:
        guesses.append(_regressed(task, data, none))
    found = [none, *(_tried(task, K) for K in guesses if K is not None)]
    return [each for each in found if each is not None]


def _regressed(task: _Task, data: LqReduction, none: _Tried) -> np.ndarray | None:
    """K from the simulation error s = y − ŷ, regressed on the errors ê of a long ARX model.

    The regression is ξ₊ = A ξ + K ê, s = C ξ + ê. An unstable predictor is replaced by the stable one of the same
    spectrum.
    """
    A, _, C, _ = task.model
    i, q = data.horizon, data.n_inputs + data.n_outputs
    now = i * q + data.n_inputs
    theta = np.linalg.lstsq(data.factor[:, :now], data.factor[:, now : i * q + q], rcond=1e-12)[0]
    theta = np.vstack([theta, np.zeros((data.n_outputs, data.n_outputs))]).reshape(i + 1, q, -1)
    pairs = []
    for (u, y), s in zip(task.segments, none.errors, strict=True):
        if len(u) > 2 * i:
            past: Any = np.lib.stride_tricks.sliding_window_view(np.hstack([u, y]), i + 1, axis=0)
            pairs.append((y[i:] - np.einsum("tqk,kqp->tp", past, theta, optimize=True), s[i:]))
    if sum(np.isfinite(e).all(axis=1).sum() for e, _ in pairs) <= len(A):
        return None
    W = _covariance(np.vstack([e for e, _ in pairs]))
    found = fit(A, C, [(np.nan_to_num(e), s) for e, s in pairs], len(C))
    G = found.B
    return G if np.abs(np.linalg.eigvals(A - G @ C)).max() < task.radius else _kalman(A, C, G @ W @ G.T, W, G @ W)


def _kalman(A: np.ndarray, C: np.ndarray, Q: np.ndarray, R: np.ndarray, S: np.ndarray) -> np.ndarray | None:
    """Stabilising gain for state and output noises of these covariances; None where there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", sl.LinAlgWarning)
            P = sl.solve_discrete_are(A.T, C.T, Q + 1e-9 * np.trace(Q) / len(Q) * np.eye(len(Q)), R, s=S)
            return np.linalg.solve(C @ P @ C.T + R, (A @ P @ C.T + S).T).T
    except (np.linalg.LinAlgError, sl.LinAlgWarning, ValueError):
        return None


def _descended(task: _Task, best: _Tried, *, limit: _Tried | None) -> _Tried:
    """Levenberg-Marquardt descent from `best`; all steps are stable, and no output becomes worse than with `limit`."""
    damping, triangle = 1e-3, None
    for _ in range(_MAX_STEPS):
        triangle = _linearised(task, best) if triangle is None else triangle
        found = _tried(task, best.K + damped(triangle, best.K.size, damping).reshape(best.K.shape))
        gain = -1.0 if found is None else best.loss(task.extra) - found.loss(task.extra)
        if found is not None and gain > 0.0 and not found.worse(limit).any():
            best, triangle, damping = found, None, max(damping * 0.1, 1e-9)
            if gain < _GAIN:
                break
        else:
            damping *= 10.0
            if damping > _MAX_DAMPING:
                break
    return best


def _tried(task: _Task, K: np.ndarray) -> _Tried | None:
    """Prediction errors with a gain; None where its predictor isn't stable."""
    A, _, C, _ = task.model
    if not np.isfinite(K).all() or np.abs(np.linalg.eigvals(A - K @ C)).max() >= (task.radius if K.any() else _INSIDE):
        return None
    K = np.ascontiguousarray(K)  # one memory layout, so that kernels compile once
    errors = [y - predicted(task.model, K, [(u, y)]) for u, y in task.segments]
    return _Tried(K, errors, _covariance(np.vstack(errors)))


def _covariance(errors: np.ndarray) -> np.ndarray:
    """(p, p) of the samples in which no output is missing."""
    return np.atleast_2d(np.cov(errors[np.isfinite(errors).all(axis=1)].T, bias=True))


def _linearised(task: _Task, at: _Tried) -> np.ndarray:
    """Triangular factor of the regression of e on −de, by K's entries row by row.

    Both are multiplied by a root of the loss's weight on ee', V⁻¹ + diag(λ_i / V_ii).
    """
    A, _, C, _ = task.model
    values, vectors = at.spread()
    root = np.vstack([(vectors / np.sqrt(values)).T, np.diag(np.sqrt(task.extra / (np.diag(at.V) + NOISELESS)))])
    root = root[root.any(axis=1)]
    weighted = [(np.nan_to_num(e), e @ root.T) for e in at.errors]
    return compressed(A - at.K @ C, root @ C, None, None, weighted, 0)[0]
