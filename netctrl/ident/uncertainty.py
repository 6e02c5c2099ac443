"""Models that a trace allows around the identified one: draws from its likelihood, for bands on all that they say.

Given A and C, a predictor is linear in its other parameters, which are drawn exactly. A and C are drawn by importance
sampling in output-normal coordinates. Offset and initial states are integrated out of the likelihood: once they are
fitted, a short trace says little of the noise's slow part, and a likelihood with them is greatest for noise without.

A model of greatest likelihood is drawn as it is. One of least simulation error has residuals of any colour: draws as of
white residuals are stretched to the covariance that an autoregression of the residuals implies.

Source: Harville 1974 (the integrated likelihood); Rubin 1987 and Cappé et al. 2004 (importance resampling, in rounds);
White 1982 and Shaby 2014 (the stretch).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from netctrl.ident.descent.basis import Basis
from netctrl.ident.descent.innovations import Noise
from netctrl.ident.descent.kernels import free_response, simulate
from netctrl.ident.descent.output_error import Fitted, compressed, directions, fit, output_normal, refine
from netctrl.ident.subspace.lq_reduction import Segment, first_samples, triangular
from netctrl.ident.validate import Matrices

DRAWS = 200
_SLOWEST = 10.0  # time constants that a record has: slower modes than the model's would be drift, and not the plant's
_SMALL, _FEW = 100_000, 60  # numbers in a regression, samples a parameter: above, draws are normal, by the curvature
_ENTRIES = 1_000_000  # most numbers in the regression of a long trace
_TINY = 1e-12
_RANK = 1e-9  # relative singular value below which the data say nothing of a direction
_TAILS = 8.0  # most degrees of freedom of the proposals
_ROUNDS, _GOOD, _USABLE = 4, 0.6, 0.25  # effective share of the proposals that ends the rounds, and the least of all
_STEPS = 10
_TRIES = 20  # proposals for one stable draw
_SLOW, _CALMER = 0.95, 0.9  # a predictor's poles beyond the first may stand for noise without a slow part


class _Linear(NamedTuple):
    """Least squares of a predictor's B, D and offset, given A and C."""

    A: np.ndarray
    C: np.ndarray
    values: np.ndarray
    root: np.ndarray
    """W with W W' = (J'J)⁺."""
    error: float
    """Sum of the squares left."""


@dataclass(frozen=True, slots=True)
class _Task:
    segments: list[Segment]
    """Inputs of the predictor, and outputs weighted to white innovations."""
    direct: int
    m: int
    """Number of the plant's inputs; the predictor's others are the outputs."""
    weight: np.ndarray
    """(p, p) what the weighted outputs are multiplied by."""
    white: bool
    stable: bool

    @property
    def samples(self) -> int:
        return sum(int(np.isfinite(y).sum()) for _, y in self.segments)

    def split(self, C: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The predictor's B, and D of the plant's inputs."""
        (p, n), q = C.shape, self.segments[0][0].shape[1]
        D = np.zeros((p, self.m))
        D[:, : self.direct] = values[n * q : n * q + p * self.direct].reshape(p, self.direct)
        return values[: n * q].reshape(n, q), D

    def plant(self, A: np.ndarray, C: np.ndarray, values: np.ndarray) -> Matrices:
        B, D = self.split(C, values)
        C, D, K = self.weight @ C, self.weight @ D, B[:, self.m :]
        return (A + K @ C, B[:, : self.m] + K @ D, C, D) if self.white else (A, B, C, D)

    def solved(self, A: np.ndarray, C: np.ndarray) -> _Linear:
        triangle, _ = compressed(A, C, None, None, self.segments, self.direct)
        root = _root(triangle[:, :-1])
        values = root @ (root.T @ (triangle[:, :-1].T @ triangle[:, -1]))
        left = triangle[:, -1] - triangle[:, :-1] @ values
        return _Linear(A, C, values, root, float(left @ left))

    def likelihood(self, at: _Linear) -> float:
        """Its logarithm, with flat priors of the steady offset and of each segment's first n free outputs."""
        p, n = at.C.shape
        lengths = [len(u) for u, _ in self.segments]
        free = free_response(at.A, at.C, max(*lengths, n))
        still = np.eye(p)
        if self.white:  # K takes y, not y less its offset
            K = self.split(at.C, at.values)[0][:, self.m :] @ self.weight
            still -= at.C @ np.linalg.solve(np.eye(n) - at.A, K)
        known, rest = -len(lengths) * _log(triangular(free[: n * p])), []
        for T in lengths:
            R = triangular(np.hstack([free[: T * p], np.tile(still, (T, 1))]))
            known += _log(R[:n, :n])
            rest.append(R[n:, n:])
        known += _log(triangular(np.vstack(rest)))
        return -0.5 * (self.samples - p - n * len(lengths)) * np.log(max(at.error, 1e-300)) - known

    def starts(self, A: np.ndarray, first: Fitted) -> list[Fitted]:
        """Where the likelihood may be greatest: the refined model, without K, with calmer poles of the predictor."""

        def usable(at: Fitted) -> bool:
            plant = at.A + at.B[:, self.m :] @ self.weight @ at.C if self.white else at.A
            return not self.stable or bool(np.abs(np.linalg.eigvals(plant)).max() < 1.0)

        found = [refine(first, self.segments, self.direct, usable=usable, steps=_STEPS, enough=1e-4)]
        if self.white and self.stable:
            found.append(fit(A, first.C, self.segments, self.direct))
            if (radius := found[0].radius) > _SLOW:
                found.append(fit(found[0].A * _CALMER / radius, found[0].C, self.segments, self.direct))
        return [output_normal(each) for each in found]


@dataclass(frozen=True, slots=True)
class _Around:
    """Coordinates z of A and C around a predictor."""

    base: Fitted
    ways: np.ndarray

    def pair(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step, (p, n) = self.ways @ z, self.base.C.shape
        return self.base.A + step[: n * n].reshape(n, n), self.base.C + step[n * n :].reshape(p, n)


def draws_of(
    model: Matrices,
    noise: Noise | None,
    segments: Sequence[Segment],
    direct: int,
    random: np.random.Generator,
    filled: Sequence[Segment] | None = None,
) -> Matrices | None:
    """A (200, n, n), B, C, D of models that the trace allows, each in coordinates of its own.

    With `noise` the model is one of greatest likelihood, with white innovations; without, one of least simulation
    error. `direct` is the number of inputs with a direct term; `filled` has missing outputs filled in, for the past.
    Models are stable where the given one is. None for an unstable simulation, and where the trace is too short for the
    number of parameters.
    """
    A, B, C, D = model
    (n, m), p = B.shape, len(C)
    samples, stable = sum(len(u) for u, _ in segments), bool(np.abs(np.linalg.eigvals(A)).max() < 1.0)
    width = n * (n + 2 * p + 2 * m) + p * (m + 2)
    size = n * (m + 2 * p) + p * (direct + 1)
    forgets = A if noise is None else A - noise.K @ C
    slow = np.abs(np.linalg.eigvals(forgets)).max() > _SLOW  # curvature says little near a pole at 1
    short = samples * p * (n * (m + p) + m + p) <= _SMALL and bool(slow or samples * p <= _FEW * size)
    some = first_samples(segments, samples if short else max(_ENTRIES // (width * p), 2 * width))
    if noise is None:
        task = _Task(some, direct, m, np.eye(p), white=False, stable=stable)
    else:
        weight = np.linalg.cholesky(noise.V + _TINY * np.trace(noise.V) * np.eye(p))
        inverse = np.linalg.inv(weight)
        weighted = [
            (np.hstack([u, past[: len(u)]]), np.ascontiguousarray(y @ inverse.T))
            for (u, y), (_, past) in zip(some, some if filled is None else filled, strict=False)
        ]
        task, C = _Task(weighted, direct, m, weight, white=True, stable=stable), inverse @ C
        B, D = np.hstack([B - noise.K @ D, noise.K]), np.hstack([inverse @ D, np.zeros((p, p))])
    if not (task.white or stable) or np.abs(np.linalg.eigvals(forgets)).max() >= 1.0:
        return None
    base = fit(forgets, C, task.segments, direct)
    if short:
        base = max(task.starts(A, base), key=lambda each: task.likelihood(task.solved(each.A, each.C)))
    else:
        base = output_normal(replace(base, B=B, D=D))
    around = _Around(base, directions(base.A, base.C))
    R, _ = compressed(base.A, base.C, base.B, base.initial, task.segments, direct, around.ways)
    k, q = R.shape[1] - 1, n * p
    free = task.samples - k - n * len(some)
    if free < max(_TAILS, k / 2):
        return None
    root = _root(R[:, :-1])
    centre = np.concatenate([np.zeros(q), base.B.ravel(), base.D[:, :direct].ravel(), base.offset])
    deviation = np.sqrt(base.error * task.samples / free * sum(len(u) for u, _ in some) / samples)
    sampled = _sampled(task, around, deviation * root[:q], random) if short else None
    if sampled == []:
        return None
    stretch = np.eye(k) if task.white else _stretch(task, around, root)
    made: list[Matrices] = []
    longest = max(len(u) for u, _ in segments)
    slowest = 1.0 - float(np.abs(np.linalg.eigvals(A)).max())
    largest = 1.0 if slowest < 2.0 * _SLOWEST / longest else 1.0 - _SLOWEST / longest
    for _ in range(_TRIES * DRAWS):
        if sampled is None:
            theta = centre + deviation * (root @ random.standard_normal(root.shape[1]))
        else:
            z, at = sampled[random.integers(len(sampled))]
            spread = np.sqrt(at.error / random.chisquare(free + q))
            theta = np.concatenate([z, at.values + spread * (at.root @ random.standard_normal(at.root.shape[1]))])
        theta = centre + stretch @ (theta - centre)
        each = task.plant(*around.pair(theta[:q]), theta[q:])
        if not stable or np.abs(np.linalg.eigvals(each[0])).max() < largest:
            made.append(each)
            if len(made) == DRAWS:
                return cast(Matrices, tuple(np.array(part) for part in zip(*made, strict=True)))
    return None


def _sampled(
    task: _Task, around: _Around, root: np.ndarray, random: np.random.Generator
) -> list[tuple[np.ndarray, _Linear]]:
    """200 of A and C by their likelihood: resampled t proposals, which the sample before them moves and widens.

    Where weights are too unequal in the last round, a power of them is taken.
    """
    q = len(root)
    mean, cov, tails = np.zeros(q), root @ root.T, min(_TAILS, task.samples / 4.0)
    for _ in range(_ROUNDS):
        L = np.linalg.cholesky(cov + _TINY * np.trace(cov) / q * np.eye(q))
        normal = random.standard_normal((DRAWS, q)) * np.sqrt(tails / random.chisquare(tails, DRAWS))[:, None]
        places, fits, logs = [], [], []
        for each in normal:
            z = mean + L @ each
            A, C = around.pair(z)
            if np.abs(np.linalg.eigvals(A)).max() < 1.0:
                at = task.solved(A, C)
                log = task.likelihood(at) + 0.5 * (tails + q) * np.log1p(each @ each / tails)
                if np.isfinite(log):
                    places.append(z)
                    fits.append(at)
                    logs.append(log)
        if len(logs) <= q:
            return []
        power, logs = 1.0, np.array(logs) - max(logs)
        while True:
            weights = np.exp(power * logs) / np.exp(power * logs).sum()
            if (effective := 1.0 / (weights @ weights)) > min(_USABLE * DRAWS, 0.9 * len(logs)):
                break
            power *= 0.8
        mean = weights @ np.array(places)
        cov = 1.1 * ((np.array(places) - mean).T * weights) @ (np.array(places) - mean)
        if effective > _GOOD * DRAWS:
            break
    return [(places[j], fits[j]) for j in random.choice(len(fits), DRAWS, p=weights)]


def _stretch(task: _Task, around: _Around, root: np.ndarray) -> np.ndarray:
    """S that turns draws for white residuals into those for residuals of the colour that they have.

    With residuals v = H e of an autoregression, J'v has the covariance (H'J)'V(H'J); H' is H backwards in time.
    """
    base, ways = around.base, around.ways
    (n, m), p, k = base.B.shape, len(base.C), len(root)
    basis, parts = Basis.of(base.A), []
    for (u, y), state in zip(task.segments, base.initial, strict=True):
        signals = np.vstack([rows for _, rows in basis.signals(base.B, state, u, task.direct)])
        maps = basis.maps(base.C, base.B, state, m, task.direct, ways)
        rows = np.stack([np.column_stack([signals @ each, y[:, k]]) for k, each in enumerate(maps)], axis=1)
        rows = rows.reshape(len(u) * p, -1)
        rows[np.isnan(rows[:, -1])] = 0.0
        Q, _ = np.linalg.qr(rows[:, :n])
        parts.append(rows[:, n:] - Q @ (Q.T @ rows[:, n:]))
    J = np.vstack(parts)
    U, y = J[:, :k] @ root, J[:, -1]
    left = y - U @ (U.T @ y)
    for _ in range(_ROUNDS):  # residuals of unweighted squares have too little of what is slow
        filters = [_autoregression(v) for v in left.reshape(-1, p).T]
        white, weighted = (_filtered(filters, rows) for rows in (left, np.column_stack([U, y])))
        R = triangular(weighted)
        left = y - U @ np.linalg.lstsq(R[:, :-1], R[:, -1], rcond=_RANK)[0]
    white = white.reshape(-1, p)
    backwards = U.reshape(-1, p, U.shape[1])[::-1].reshape(U.shape)
    coloured = _filtered(filters, backwards, inverse=True).reshape(-1, p, U.shape[1])
    V = white.T @ white / ((y - U @ (U.T @ y)) ** 2).sum() * p  # relative to the variance of white residuals
    scores = np.einsum("tia,ij->tja", coloured, np.linalg.cholesky(V + _TINY * np.trace(V) * np.eye(p)))
    values, vectors = np.linalg.eigh(np.einsum("tja,tjb->ab", scores, scores))
    return root @ (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ np.linalg.pinv(root)


def _filtered(filters: list[np.ndarray], rows: np.ndarray, *, inverse: bool = False) -> np.ndarray:
    """Rows (T p, ...), each output's by its autoregression, or by the inverse of it."""
    found, p = rows.copy(), len(filters)
    for i, a in enumerate(filters):
        own = np.ascontiguousarray(rows[i::p]).reshape(len(rows) // p, -1)
        if inverse:
            k = len(a) - 1
            A = np.vstack([-a[None, 1:], np.eye(k)[:-1]]) if k else np.zeros((0, 0))
            B, C = np.eye(k, 1), -a[None, 1:]
            columns = [simulate(A, B, C, np.eye(1), np.zeros(k), each[:, None]) for each in own.T.copy()]
            found[i::p] = np.hstack(columns).reshape(found[i::p].shape)
        else:
            each = np.zeros_like(own)
            for j, c in enumerate(a):
                each[j:] += c * own[: len(own) - j]
            found[i::p] = each.reshape(found[i::p].shape)
    return found


def _autoregression(v: np.ndarray) -> np.ndarray:
    """1, a_1, ... of v + a_1 v₋ + ... = e by Levinson's recursion, with the number that BIC takes."""
    T, most = len(v), int(len(v) ** 0.5)
    r = np.array([v[: T - k] @ v[k:] for k in range(min(most, 40) + 1)]) / T
    a, left, best = np.ones(1), max(r[0], 1e-300), (0.0, np.ones(1))
    for k in range(1, len(r)):
        mirror = -(a @ r[k:0:-1]) / left
        a = np.append(a, 0.0) + mirror * np.append(a, 0.0)[::-1]
        left = max(left * (1.0 - mirror**2), 1e-300)
        best = min(best, (T * np.log(left / max(r[0], 1e-300)) + np.log(T) * k, a), key=lambda pair: pair[0])
    return best[1]


def _root(R: np.ndarray) -> np.ndarray:
    """W with W W' = (R'R)⁺; columns are normalised first, as parameters have no common scale."""
    size = np.linalg.norm(R, axis=0)
    size[size == 0.0] = 1.0
    _, s, Vt = np.linalg.svd(R / size, full_matrices=False)
    kept = s > _RANK * s[0]
    return Vt[kept].T / s[kept] / size[:, None]


def _log(R: np.ndarray) -> float:
    """log |det R| of a triangular R."""
    return float(np.log(np.abs(np.diag(R)) + 1e-300).sum())
