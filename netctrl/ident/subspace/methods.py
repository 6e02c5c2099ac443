"""Subspace identification from compressed data: N4SID, MOESP and CVA, which differ in a weighting.

Future outputs regressed on the past and the future inputs, Y_f = L_w Z_p + L_u U_f + E, have L_w Z_p = Γ X: the
extended observability matrix Γ = (C; CA; CA²; ...) times the state. Its range is found by a singular value
decomposition of W₁ L_w Z_p W₂.

The order is the number of canonical correlations of past and future above those of noise alone. Without dynamics, the
greatest correlation of a past of a and a future of b white numbers in N columns tends to
ρ = √(a/N (1 − b/N)) + √(b/N (1 − a/N)). A correlation above it, by a margin for the Hankel structure, is a state.

Source: van Overschee and De Moor 1996, table 4.1; Verhaegen 1994 (PO-MOESP); Larimore 1990 (CVA, correlations);
Wachter 1980 (the edge); Bauer 2001 (SVC).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.ident.subspace.lq_reduction import LqReduction, triangular
from netctrl.ident.validate import Matrices
from netctrl.model.fit import OrderChoice

METHODS = ("n4sid", "moesp", "cva")
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """Range of the extended observability matrix, and the data for states."""

    U: np.ndarray
    """(p i, k) W₁⁻¹ times the left singular vectors, scaled by the root of the singular values."""
    singular_values: np.ndarray
    """(k,) singular values of the weighted projection, descending; for CVA the canonical correlations."""
    past: np.ndarray
    """(p i, (m + p) i) L_w: regression of future outputs on the past."""
    R: np.ndarray
    """Factor from which the subspace was computed."""
    horizon: int
    n_inputs: int
    n_outputs: int

    @property
    def most(self) -> int:
        """Number of states in the data."""
        return self.U.shape[1]

    def gamma(self, order: int) -> np.ndarray:
        """Extended observability matrix (p i, order); raises InvalidValue where the data have a lower rank."""
        if order > self.most:
            raise InvalidValue(
                "order", order, f"at most {self.most}, the number of states in these data, or a longer horizon"
            )
        return self.U[:, :order]


def subspace(data: LqReduction, method: str, R: np.ndarray | None = None) -> Subspace:
    """Subspace by the weighting of `method`, one of METHODS; `R` replaces the factor of all data."""
    i, m, p = data.horizon, data.n_inputs, data.n_outputs
    R = data.factor if R is None else R
    future_u, past, future_y = _places(i, m, p)
    S = triangular(R[:, [*future_u, *past, *future_y]])
    a, b = m * i, (2 * m + p) * i
    R22, R23, R33 = S[a:b, a:b], S[a:b, b:], S[b:, b:]
    Lw = _least_squares(R22, R23).T
    if method == "n4sid":
        U, s, _ = np.linalg.svd(Lw @ S[:b, a:b].T, full_matrices=False)
    elif method == "moesp":
        U, s, _ = np.linalg.svd(R23.T, full_matrices=False)
    else:
        left, size, Vt = np.linalg.svd(np.vstack([R23, R33]), full_matrices=False)
        kept = size > size[0] * len(R) * _EPS
        U, s, _ = np.linalg.svd(left[: b - a, kept].T, full_matrices=False)
        U = (Vt[kept].T * size[kept]) @ U
    return Subspace(U * np.sqrt(s), s, Lw, R, i, m, p)


def shift(gamma: np.ndarray, p: int, *, closed: bool = False) -> np.ndarray:
    """Least-squares A of (Γ without its last block) A = Γ without its first; `closed` appends zeros to the latter.

    With orthogonal columns of Γ the closed shift is always stable (Maciejowski 1995), at the price of a bias.
    """
    if closed:
        Q, T = np.linalg.qr(gamma)
        moved = np.vstack([Q[p:], np.zeros((p, Q.shape[1]))])
        return np.linalg.solve(T, Q.T @ moved @ T)
    return np.linalg.lstsq(gamma[:-p], gamma[p:], rcond=None)[0]


def states_regressed(found: Subspace, order: int, feedthrough: bool) -> tuple[np.ndarray, np.ndarray]:
    """A and C of the regression of (x₊, y) on (x, u), with x = Γ⁺ L_w Z_p at successive times."""
    # State x at the end of the past, x one sample later, and u and y between, in the coordinates of R's rows.
    gamma = found.gamma(order)
    i, m, p, R = found.horizon, found.n_inputs, found.n_outputs, found.R
    to_state = np.linalg.lstsq(gamma, found.past, rcond=None)[0].T
    _, past, _ = _places(i, m, p)
    later = [place + m + p for place in past]
    now = (m + p) * i
    X, X_next, u, y = R[:, past] @ to_state, R[:, later] @ to_state, R[:, now : now + m], R[:, now + m : now + m + p]
    on_both = np.linalg.lstsq(np.hstack([X, u]), np.hstack([X_next, y]), rcond=None)[0]
    A, C = on_both[:order, :order].T, on_both[:order, order:].T
    return A, C if feedthrough else np.linalg.lstsq(X, y, rcond=None)[0].T


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """States of a long ARX model (PBSID-opt)."""

    data: LqReduction
    to_state: np.ndarray
    """(k, q horizon) states from the past."""
    singular_values: np.ndarray
    """(k,) of the product of observability matrix and past."""
    feedthrough: bool

    @property
    def most(self) -> int:
        """Number of states in the data."""
        return len(self.to_state)

    def matrices(self, order: int) -> tuple[Matrices, np.ndarray]:
        """(A, B, C, D) and K by regression on the states; A isn't made stable."""
        i, m, p, R = self.data.horizon, self.data.n_inputs, self.data.n_outputs, self.data.factor
        q = m + p
        T = self.to_state[:order].T
        X, after = R[:, : i * q] @ T, R[:, q : i * q + q] @ T
        u, y = R[:, i * q : i * q + m], R[:, i * q + m : i * q + q]
        known = np.hstack([X, u]) if self.feedthrough else X
        CD = np.linalg.lstsq(known, y, rcond=None)[0]
        ABK = np.linalg.lstsq(np.hstack([X, u, y - known @ CD]), after, rcond=None)[0].T
        D = CD[order:].T if self.feedthrough else np.zeros((p, m))
        return (ABK[:, :order], ABK[:, order : order + m], CD[:order].T, D), ABK[:, order + m :]


def predictor(data: LqReduction, feedthrough: bool) -> Predictor:
    """States from the predictor's Markov parameters C (A − KC)^k (B − KD, K), which feedback doesn't bias.

    y_t is regressed on the past of u and y, and on u_t with feedthrough. Future block f of the product of observability
    matrix and past is Σ_k C (A − KC)^{f+k} z_{t−1−k} over the k < i − f that are known; its right singular vectors are
    the states.

    Source: Chiuso 2007 (PBSID-opt).
    """
    i, m, p, R = data.horizon, data.n_inputs, data.n_outputs, data.factor
    q = m + p
    past, u, y = R[:, : i * q], R[:, i * q : i * q + m], R[:, i * q + m : i * q + q]
    theta = np.linalg.lstsq(np.hstack([past, u]) if feedthrough else past, y, rcond=1e-12)[0][: i * q]
    G = np.zeros((i * p, i * q))
    for f in range(i):  # rows of the past are oldest first: lag k is block i - 1 - k
        G[f * p : f * p + p, f * q :] = theta[: (i - f) * q].T
    U, s, _ = np.linalg.svd(G @ past.T, full_matrices=False)
    kept = s > s[0] * len(R) * _EPS
    return Predictor(data, (U[:, kept].T @ G) / np.sqrt(s[kept, None]), s, feedthrough)


def arx(data: LqReduction, lags: int, feedthrough: bool) -> tuple[Matrices, np.ndarray]:
    """(A, B, C, D) and K of y_t = Σ a_k y_{t−k} + Σ b_k u_{t−k} + d u_t + e_t with some lags: p `lags` states.

    In observer form x^k₊ = x^{k+1} + a_k y + b_k u, y = x¹ + d u + e, so that A − K C is a shift.
    """
    i, m, p, R = data.horizon, data.n_inputs, data.n_outputs, data.factor
    q = m + p
    past, u, y = R[:, (i - lags) * q : i * q], R[:, i * q : i * q + m], R[:, i * q + m : i * q + q]
    theta = np.linalg.lstsq(np.hstack([past, u]) if feedthrough else past, y, rcond=1e-12)[0].T
    D = theta[:, lags * q :] if feedthrough else np.zeros((p, m))
    by_lag = theta[:, : lags * q].reshape(p, lags, q)[:, ::-1]  # rows of the past are oldest first
    K = by_lag[:, :, m:].transpose(1, 0, 2).reshape(lags * p, p)
    B = by_lag[:, :, :m].transpose(1, 0, 2).reshape(lags * p, m) + K @ D
    C = np.eye(p, lags * p)
    return (np.eye(lags * p, k=p) + K @ C, B, C, D), K


def _places(i: int, m: int, p: int) -> tuple[list[int], list[int], list[int]]:
    """Columns of U_f, of Z_p = (u, y) time by time, and of Y_f."""
    q = m + p
    future_u = [t * q + j for t in range(i, 2 * i) for j in range(m)]
    future_y = [t * q + m + j for t in range(i, 2 * i) for j in range(p)]
    return future_u, list(range(i * q)), future_y


def _least_squares(R: np.ndarray, right: np.ndarray) -> np.ndarray:
    """R⁺ right by singular values, as the past of data without noise has a lower rank."""
    U, s, Vt = np.linalg.svd(R)
    kept = s > s[0] * len(R) * 4.0 * _EPS
    return Vt[kept].T @ ((U[:, kept].T @ right) / s[kept, None])


_MARGIN = 1.1
_HALVES = 40
_MIN_PIECES = 8


def noise_edge(past: int, future: int, columns: int) -> float:
    """Greatest canonical correlation of noise of this size; 1 where it fills all dimensions."""
    a, b = past / columns, future / columns
    return sqrt(a * (1.0 - b)) + sqrt(b * (1.0 - a)) if a + b < 1.0 else 1.0


def choose_order(data: LqReduction, random: np.random.Generator, *, most: int) -> OrderChoice:
    """Number of correlations above the noise, from 1 to `most`, and the share of random halves of the trace that agree.

    Two other estimates are returned as well: the greatest drop of the correlations' logarithms among them, and the
    minimum of SVC(n) = ρ_{n+1}² + d(n) log(N) / N with d(n) = n (2p + m) parameters.
    """
    found = subspace(data, "cva")
    rho = found.singular_values
    N, d = int(data.columns.sum()), 2 * data.n_outputs + data.n_inputs
    order = _count(found, data, N, most)
    after = np.append(rho, 0.0)[: most + 1]
    svc = after**2 + np.arange(len(after)) * d * log(N) / N
    drops = -np.diff(np.log(np.maximum(np.append(rho, 0.0)[: order + 1], 1e-12)))
    return OrderChoice(
        order=order,
        noise_edge=noise_edge(*_sizes(data), N),
        correlations=rho,
        by_gap=int(np.argmax(drops)) + 1,
        by_svc=max(1, int(np.argmin(svc))),
        confidence=_agreement(data, order, most, random),
    )


def _sizes(data: LqReduction) -> tuple[int, int]:
    m, p = data.n_inputs, data.n_outputs
    return (m + p) * data.horizon, p * data.horizon


def _count(found: Subspace, data: LqReduction, columns: int, most: int) -> int:
    edge = noise_edge(*_sizes(data), columns)
    above = found.singular_values > min(_MARGIN * edge, 1.0 - 1e-9)
    return int(min(max(1, np.count_nonzero(above)), most))


def _agreement(data: LqReduction, order: int, most: int, random: np.random.Generator) -> float | None:
    """Share of random halves that agree; None where the trace has too few pieces."""
    F = len(data.columns)
    if F < _MIN_PIECES:
        return None
    same = []
    for _ in range(_HALVES):
        half = np.zeros(F)
        half[random.permutation(F)[: F // 2]] = 1.0
        columns = int(half @ data.columns)
        same.append(_count(subspace(data, "cva", data.drawn(half)), data, columns, most) == order)
    return float(np.mean(same))
