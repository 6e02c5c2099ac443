"""Doubling: Riccati and Stein equations solved by quadratically convergent matrix products.

Functions for `dare.py` from arrays to arrays; None without a solution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import get_lapack_funcs, matrix_balance

_gesv, _posv = get_lapack_funcs(("gesv", "posv"), dtype=float)

_EPS = float(np.finfo(float).eps)
_MAX_DOUBLINGS = 64  # 2^54 steps suffice even for a pole at a distance of eps from the unit circle
_CRITICAL = 1e-6  # with a pole on the circle X is accurate to sqrt(eps), and the change never falls to rounding


def riccati_by_doubling(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, S: np.ndarray
) -> tuple[np.ndarray | None, int]:
    """Solution X = A'XA − (A'XB + S)(R + B'XB)⁻¹(B'XA + S') + Q for symmetric Q and R, and the number of doublings.

    Structured doubling (SDA) of E. K.-W. Chu, H.-Y. Fan, W.-W. Lin, C.-S. Wang, "Structure-preserving algorithms for
    periodic discrete-time algebraic Riccati equations", Int. J. Control 77 (2004) 767-788. It is applied to an equation
    that starts half a step or a whole step later. Its input weight, R + B'QB, is at least R where Q ⪰ 0. So R may be
    singular, and the residual is 1 to 3 decades smaller (random equations of 10 to 100 states).
    """
    for begun, P, L in _later(A, B, Q, R, S):
        if (start := _without_cross_term(*begun)) is not None:
            Z, doublings = _balanced(*start)
            return (None if Z is None else _symmetric(P + (Z if L is None else L.T @ Z @ L))), doublings
    return None, 0


def _later(A, B, Q, R, S) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray | None]]:
    """Equations of Z in X = P + L'ZL that start later, with P and L; None: the identity."""
    QA, QB = Q @ A, Q @ B
    if not S.any():
        # Half a step: X = Q + L'ZL, with the cost Z of z = Lx, the part of the next state known before the input acts.
        # L is A without its zero rows. The newest sample of a delay line is such a row: a third or a quarter of all.
        rows = np.flatnonzero(A.any(axis=1))
        L = A[rows]
        yield (L[:, rows], L @ B, Q[np.ix_(rows, rows)], R + B.T @ QB, QB[rows]), Q, L
    yield (A, B, _symmetric(A.T @ QA), R + B.T @ QB, S + A.T @ QB), Q, None  # a whole step
    yield (A, B, Q, R, S), np.zeros_like(Q), None


def _without_cross_term(A, B, Q, R, S) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Matrices A, G, H of Z = A'Z(I + GZ)⁻¹A + H."""
    n, m = B.shape
    if n == 0 or m == 0:
        return A, np.zeros((n, n)), Q
    sizes = np.sqrt(np.abs(np.diag(R)))
    moduli = np.abs(np.linalg.eigvalsh(R / np.where(sizes[:, None] * sizes > 0.0, sizes[:, None] * sizes, 1.0)))
    if moduli.min() <= 8.0 * n * _EPS * moduli.max():
        return None
    right = np.concatenate([S.T, B.T], axis=1)
    _, solved, info = _posv(R, right)
    if info != 0:
        _, _, solved, info = _gesv(R, right)  # indefinite
    if info != 0:
        return None
    return A - B @ solved[:, :n], _symmetric(B @ solved[:, n:]), _symmetric(Q - S @ solved[:, :n])


def _balanced(A, G, H) -> tuple[np.ndarray | None, int]:
    """`_doubled` in units of the states, powers of 2, in which [[A, G], [H, A']] is balanced, whatever the user's
    units.

    P. Benner, "Symplectic balancing of Hamiltonian matrices", SIAM J. Sci. Comput. 22 (2001) 1885-1904.
    """
    n = len(A)
    M = np.abs(np.block([[A, G], [H, A.T]]))
    np.fill_diagonal(M, 0.0)
    if n == 0 or not np.isfinite(M).all():
        return (H, 0) if n == 0 else (None, 0)
    _, (scale, _) = matrix_balance(M, permute=False, separate=True)
    exponent = np.log2(scale)
    T = 2.0 ** np.round(0.5 * (exponent[n:] - exponent[:n]))
    Z, doublings = _doubled(A * T[:, None] / T, G * T[:, None] * T, H / T[:, None] / T)
    return (None if Z is None else Z * T[:, None] * T), doublings


def _doubled(A, G, H) -> tuple[np.ndarray | None, int]:
    """Solution by doubling: after k doublings H is the cost of 2^k steps."""
    n, before = len(A), np.inf
    right = np.empty((n, 2 * n), order="F")
    for doublings in range(1, _MAX_DOUBLINGS + 1):
        W = H @ G  # for (I + GH)' in Fortran order, which LAPACK takes without a copy
        W.flat[:: n + 1] += 1.0
        right[:, :n], right[:, n:] = A, G
        _, _, solved, info = _gesv(W.T, right, overwrite_a=True, overwrite_b=True)
        if info != 0:
            return None, doublings
        V, M = solved[:, :n], solved[:, n:]
        step = A.T @ (H @ V)
        H = _symmetric(H + step)
        change = _change(step, H)
        if not np.isfinite(change):
            return None, doublings
        AV = A @ V
        rest = float(np.linalg.norm(AV)) ** 2  # the next step is A'H(I + GH)⁻¹A with this A
        if min(change, rest) <= _EPS or 0.9 * before < change <= _CRITICAL:
            return H, doublings
        if rest * change <= _EPS:
            return _symmetric(H + V.T @ step @ V), doublings  # all further steps, to third order
        G = _symmetric(G + (A @ M) @ A.T)
        A, before = AV, change
    return (H if before <= _CRITICAL else None), _MAX_DOUBLINGS


def _change(step: np.ndarray, H: np.ndarray) -> float:
    """Relative change, also of each state alone, so that a small growing state is seen beside a large converged one."""
    own = np.abs(H.diagonal())
    each = np.divide(np.abs(step.diagonal()), own, out=np.zeros_like(own), where=own > 0.0)
    size = np.linalg.norm(H)
    return max(float(each.max(initial=0.0)), float(np.linalg.norm(step) / size) if size > 0.0 else 0.0)


def stein_by_doubling(Phi: np.ndarray, E: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Solution X = Φ'XΦ + E for symmetric E, until a step is at most `tolerance` of X; None where Φ isn't stable.

    R. A. Smith, "Matrix equation XA + BX = C", SIAM J. Appl. Math. 16 (1968) 198-201.
    """
    X = E
    for _ in range(_MAX_DOUBLINGS):
        step = Phi.T @ X @ Phi
        X = _symmetric(X + step)
        change, size = np.linalg.norm(step), np.linalg.norm(X)
        if not np.isfinite(change):
            return None
        if change <= tolerance * size:
            return X
        Phi = Phi @ Phi
    return None


def _symmetric(M: np.ndarray) -> np.ndarray:
    return 0.5 * (M + M.T)
