"""Output-error fit: B, D, offsets and initial states by least squares, then A and C too.

ŷ = C x + D u + c, x₊ = A x + B u from x_0 is linear in B, D, c and each segment's x_0: the regressors are outputs of
w₊ = A'w + C_l' u_j, one filter for each pair of input and output, and C A^t. The first-order effect of A and C
on ŷ is that of the same filters applied to the states. The regression is compressed to one triangle block by block, so
memory doesn't grow.

Source: Verhaegen and Verdult 2007, sections 7.3 (least squares) and 8.2 (Gauss-Newton on a full parametrisation, whose
redundant directions are removed).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from netctrl.ident.descent.basis import Basis
from netctrl.ident.subspace.lq_reduction import Segment, triangular

CALM = 1e-9
"""Weight of a squared offset relative to the mean square error. A slow pole's free response is nearly a constant; the
penalty assigns their common part to the initial state and keeps the two from growing against each other."""
ENOUGH = 1e-6
"""Relative decrease of the squared error below which a descent stops."""
MOST_STEPS = 30
_LARGEST_RADIUS = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Model with the squared error of its simulated outputs, in scaled units."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    offset: np.ndarray
    """(p,) c."""
    initial: np.ndarray
    """(S, n) state at the first sample of each segment."""
    error: float
    """Mean of (y − ŷ)² over samples and outputs, missing ones aside."""

    def __post_init__(self) -> None:
        for name in ("A", "B", "C", "D", "offset", "initial"):  # one memory layout, so that kernels compile once
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @property
    def radius(self) -> float:
        """Greatest modulus of A's eigenvalues."""
        return float(np.abs(np.linalg.eigvals(self.A)).max())


def fit(A: np.ndarray, C: np.ndarray, segments: Sequence[Segment], direct: int) -> Fitted:
    """B, D of the first `direct` inputs, c and initial states of least squared simulation error for given A and C."""
    A, C = np.ascontiguousarray(A), np.ascontiguousarray(C)
    triangle, heads = compressed(A, C, None, None, segments, direct)
    return _solved(A, C, triangle, heads, segments, direct)


def refine(
    start: Fitted,
    segments: Sequence[Segment],
    direct: int,
    *,
    usable: Callable[[Fitted], bool] = lambda found: True,
    steps: int = MOST_STEPS,
    enough: float = ENOUGH,
) -> Fitted:
    """Local optimum of all parameters from `start`, with stable and `usable` steps only (Levenberg-Marquardt)."""
    best, damping = start, 1e-3
    triangle = None
    for _ in range(steps):
        if triangle is None:
            best = output_normal(best)
            n, p = len(best.A), len(best.C)
            ways = directions(best.A, best.C)
            triangle, _ = compressed(best.A, best.C, best.B, best.initial, segments, direct, ways)
        step = ways @ damped(triangle, ways.shape[1], damping)
        A, C = best.A + step[: n * n].reshape(n, n), best.C + step[n * n :].reshape(p, n)
        found = None
        if np.abs(np.linalg.eigvals(A)).max() < _LARGEST_RADIUS:
            found = fit(A, C, segments, direct)
        if found is not None and found.error < best.error and usable(found):
            gain = 1.0 - found.error / best.error
            best, triangle, damping = found, None, max(damping * 0.1, 1e-9)
            if gain < enough:
                break
        else:
            damping *= 10.0
            if damping > 1e6:
                break
    return best


def compressed(
    A: np.ndarray,
    C: np.ndarray,
    B: np.ndarray | None,
    initial: np.ndarray | None,
    segments: Sequence[Segment],
    direct: int,
    ways: np.ndarray | None = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Triangular factor of the regression on what all segments share, y last, and each segment's rows that give x_0.

    With B and initial states, the regressors for A and C along `ways` come first.
    """
    n, basis = len(A), Basis.of(A)
    heads, rests = [], []
    for number, segment in enumerate(segments):
        start = None if initial is None else initial[number]
        maps = basis.maps(C, B, start, segment[0].shape[1], direct, ways)
        rows = [
            np.hstack([R[:, : maps.shape[1]] @ maps[k], R[:, maps.shape[1] + place, None]])
            for own, R in basis.triangles(B, start, segment, direct)
            for place, k in enumerate(own)
        ]
        both = triangular(np.vstack(rows))
        both = np.vstack([both, np.zeros((max(0, both.shape[1] - len(both)), both.shape[1]))])
        heads.append(both[:n])
        rests.append(both[n:, n:])
    return triangular(np.vstack(rests)), heads


def _solved(
    A: np.ndarray,
    C: np.ndarray,
    triangle: np.ndarray,
    heads: Sequence[np.ndarray],
    segments: Sequence[Segment],
    direct: int,
) -> Fitted:
    m, (p, n) = segments[0][0].shape[1], C.shape
    measured = sum(np.count_nonzero(np.isfinite(y)) for _, y in segments)
    calm = np.zeros((p, triangle.shape[1]))
    calm[:, -1 - p : -1] = np.sqrt(CALM * measured / p) * np.eye(p)
    rows = np.vstack([triangle, calm])
    found = _lstsq(rows[:, :-1], rows[:, -1])
    left = triangle[:, -1] - triangle[:, :-1] @ found
    initial = np.array([_lstsq(head[:, :n], head[:, -1] - head[:, n:-1] @ found) for head in heads])
    B, rest = found[: n * m].reshape(n, m), found[n * m :]
    D = np.zeros((p, m))
    D[:, :direct] = rest[: p * direct].reshape(p, direct)
    return Fitted(A, B, C, D, rest[-p:], initial, float(left @ left) / measured)


def _lstsq(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Least squares with columns normalised first, as states and inputs have no common scale."""
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0.0] = 1.0
    return np.linalg.lstsq(matrix / size, right, rcond=1e-13)[0] / size


def damped(triangle: np.ndarray, count: int, damping: float) -> np.ndarray:
    """Damped step of the first `count` parameters; the others follow without damping."""
    behind = triangle[:, count:-1]
    Q, _ = np.linalg.qr(behind)
    moved = triangle[:, :count] - Q @ (Q.T @ triangle[:, :count])
    error = triangle[:, -1] - Q @ (Q.T @ triangle[:, -1])
    size = np.linalg.norm(moved, axis=0)
    size[size == 0.0] = 1.0
    U, s, Vt = np.linalg.svd(moved / size, full_matrices=False)
    return (Vt.T @ (s / (s * s + damping * s[0] ** 2) * (U.T @ error))) / size


def directions(A: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Changes (n² + p n, p n) of A and C, row by row, in output-normal coordinates: all that outputs tell of them.

    S = (A; C) has orthonormal columns there, and the changes S⊥ Z of it, Z (p, n), are none of coordinates: those are
    A dT − dT A and C dT, and S' times them is dT − A' dT A, which is 0 only for dT = 0.

    Source: McKelvey, Helmersson and Ribarits 2004, on the p n parameters of an observable pair.
    """
    n = len(A)
    return np.kron(np.linalg.qr(np.vstack([A, C]), mode="complete")[0][:, n:], np.eye(n))


def output_normal(fitted: Fitted) -> Fitted:
    """Coordinates with A'A + C'C = I, in which A is a contraction; as they are where that is lost to rounding."""
    A, C = fitted.A, fitted.C
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", sl.LinAlgWarning)
            Q = sl.solve_discrete_lyapunov(A.T, C.T @ C)
        T = np.linalg.cholesky(Q + 1e-13 * np.trace(Q) / len(A) * np.eye(len(A))).T
        inverse = np.linalg.inv(T)
    except (np.linalg.LinAlgError, sl.LinAlgWarning, ValueError):
        return fitted
    return _moved(fitted, inverse, T)


def settled(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T and T⁻¹ of coordinates T⁻¹ x that are the system's own: balanced, each state positive where it is seen most.

    The identity where they are lost to rounding.
    """
    n = len(A)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", sl.LinAlgWarning)
            P = sl.solve_discrete_lyapunov(A, B @ B.T)
            Q = sl.solve_discrete_lyapunov(A.T, C.T @ C)
        L = np.linalg.cholesky(P + 1e-12 * np.trace(P) / n * np.eye(n))
        U, s, _ = np.linalg.svd(L.T @ Q @ L)
        T = (L @ U) / np.maximum(s, 1e-12 * s[0]) ** 0.25
        seen = C @ T
        rows = np.abs(seen).argmax(axis=0)
        T *= np.where(seen[rows, np.arange(n)] < 0.0, -1.0, 1.0)
        inverse = np.linalg.inv(T)
    except (np.linalg.LinAlgError, sl.LinAlgWarning, ValueError):
        return np.eye(n), np.eye(n)
    return (T, inverse) if np.isfinite(T).all() and np.isfinite(inverse).all() else (np.eye(n), np.eye(n))


def _moved(fitted: Fitted, T: np.ndarray, inverse: np.ndarray) -> Fitted:
    """Coordinates T⁻¹ x, where these are floats."""
    if not (np.isfinite(T).all() and np.isfinite(inverse).all()):
        return fitted
    A, B, C = inverse @ fitted.A @ T, inverse @ fitted.B, fitted.C @ T
    return Fitted(A, B, C, fitted.D, fitted.offset, fitted.initial @ inverse.T, fitted.error)
