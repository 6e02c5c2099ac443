"""Maximum likelihood in innovation form: all of A, B, C, D and K for the least determinant of the innovations' V.

The predictor x₊ = (A − K C) x + (B − K D) u + K y, ŷ = C x + D u + c is an output-error model with the inputs (u, y),
of which y has no direct term. So `output_error` fits it, with the outputs multiplied by a root of the last V⁻¹: the sum
of squares is then the linearised log det V, and a few rounds reach its minimum. Only A − K C has to be stable, so that
unstable plants that a controller holds are fitted as they are, and feedback leaves no bias.

A model G that is kept as it is gets noise states instead: y = G u + v, and v is fitted by the same predictor with no
inputs (Box-Jenkins form). G's simulation doesn't change.

Source: Ljung 1999, sections 7.2 and 10.3; the variable projection is that of `output_error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from netctrl.ident.descent.kernels import simulate
from netctrl.ident.descent.output_error import ENOUGH, MOST_STEPS, Fitted, fit, refine
from netctrl.ident.subspace.lq_reduction import Segment
from netctrl.ident.validate import Matrices

_ROUNDS = 12
_GAIN = 1e-4  # decrease of log det V below which a round of weights is the last
_INSIDE = 1.0 - 1e-6
_SHRUNK = 0.99
_EPS = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Innovations:
    """Model in innovation form, in scaled units; outputs are about `offset`."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    K: np.ndarray
    V: np.ndarray
    """(p, p) covariance of the innovations."""
    offset: np.ndarray
    """(p,) steady outputs without inputs."""

    @property
    def matrices(self) -> Matrices:
        return self.A, self.B, self.C, self.D

    @property
    def loss(self) -> float:
        """log det V."""
        return float(np.log(np.maximum(np.linalg.eigvalsh(self.V), 1e-300)).sum())


def by_likelihood(
    start: tuple[Matrices, np.ndarray],
    segments: Sequence[Segment],
    *,
    feedthrough: bool,
    stable: bool = True,
    steps: int = MOST_STEPS,
    enough: float = ENOUGH,
    filled: Sequence[Segment] | None = None,
) -> Innovations | None:
    """Model of greatest likelihood near a start ((A, B, C, D), K); None where nothing finite is found.

    With `stable` only models with a stable A are visited. Without steps, A − K C and C are the start's, and the rest is
    fitted by least squares. Samples with a missing output, NaN, count as past only, as the `filled` segments have them.
    """
    (A, _, C, _), K = start
    m, p = segments[0][0].shape[1], len(C)
    direct = m if feedthrough else 0
    forgets = A - K @ C
    if not np.isfinite(forgets).all():
        return None
    radius = np.abs(np.linalg.eigvals(forgets)).max(initial=0.0)
    if radius >= _INSIDE:
        forgets *= _SHRUNK / radius
    root, best = np.eye(p), None
    for number in range(_ROUNDS):
        inverse = np.linalg.inv(root)
        weighted = [
            (np.hstack([u, past]), np.ascontiguousarray(y @ inverse.T))
            for (u, past), (_, y) in zip(segments if filled is None else filled, segments, strict=True)
        ]

        def usable(found: Fitted, root: np.ndarray = root) -> bool:
            A = found.A + found.B[:, m:] @ root @ found.C
            return not stable or bool(np.abs(np.linalg.eigvals(A)).max() < 1.0)

        found = fit(forgets, inverse @ C, weighted, direct)
        if p == 1 or number:  # weights first: without them nearly equal outputs lead to a pole at 1
            found = refine(found, weighted, direct, usable=usable, steps=steps, enough=enough)
        made = _restored(found, root, weighted, m)
        if not np.isfinite(made.V).all() or (best is not None and made.loss > best.loss - _GAIN):
            break
        best = made
        if p == 1 or steps == 0:
            break
        forgets, C = found.A, made.C
        root = np.linalg.cholesky(made.V + _EPS * np.trace(made.V) * np.eye(p))
    return best


def _restored(found: Fitted, root: np.ndarray, weighted: Sequence[Segment], m: int) -> Innovations:
    """The innovation form of a predictor whose outputs are multiplied by root⁻¹."""
    C, D, c = root @ found.C, (root @ found.D)[:, :m], root @ found.offset
    K = found.B[:, m:]
    A, B = found.A + K @ C, found.B[:, :m] + K @ D
    left = [
        y - simulate(found.A, found.B, found.C, found.D, x, z) - found.offset
        for (z, y), x in zip(weighted, found.initial, strict=True)
    ]
    e = np.vstack(left)
    e = e[np.isfinite(e).all(axis=1)] @ root.T
    # In the predictor's coordinates the state has its own steady offset, as K takes y and not y less its offset.
    still = np.eye(len(C)) - C @ np.linalg.solve(np.eye(len(A)) - found.A, K)
    offset = np.linalg.lstsq(still, c, rcond=1e-9)[0]
    return Innovations(A, B, C, D, K, e.T @ e / len(e), offset)


def joined(model: Matrices, offset: np.ndarray, noise: Innovations) -> Innovations:
    """G's states beside those of a model of its simulation error; K drives the latter only."""
    A, B, C, D = model
    n = len(A)
    return Innovations(
        sl.block_diag(A, noise.A),
        np.vstack([B, np.zeros((len(noise.A), B.shape[1]))]),
        np.hstack([C, noise.C]),
        D,
        np.vstack([np.zeros((n, len(C))), noise.K]),
        noise.V,
        offset,
    )
