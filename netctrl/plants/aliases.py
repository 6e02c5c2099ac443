"""Sums over the aliases of a sampled response: closed forms of powers, and bounds of tails."""

from __future__ import annotations

from math import comb, factorial

import numpy as np

__all__ = ["SMALL_ANGLE", "all_aliases", "held_aliases", "majorant", "other_aliases"]

SMALL_ANGLE = 0.1
"""Up to here a sampled response takes its main alias apart from the others [rad]."""
_ORDERS = 7
"""Terms of the series at small angles: (SMALL_ANGLE/2 pi)^7 is 3e-13."""
_BERNOULLI = {
    3: (1.0, -3 / 2, 1 / 2, 0.0),
    4: (1.0, -2.0, 1.0, 0.0, -1 / 30),
    5: (1.0, -5 / 2, 5 / 3, 0.0, -1 / 6, 0.0),
    6: (1.0, -3.0, 5 / 2, 0.0, -1 / 2, 0.0, 1 / 42),
    7: (1.0, -7 / 2, 7 / 2, 0.0, -7 / 6, 0.0, 1 / 6, 0.0),
    8: (1.0, -4.0, 14 / 3, 0.0, -7 / 3, 0.0, 2 / 3, 0.0, -1 / 30),
    9: (1.0, -9 / 2, 6.0, 0.0, -21 / 5, 0.0, 2.0, 0.0, -3 / 10, 0.0),
    10: (1.0, -5.0, 15 / 2, 0.0, -7.0, 0.0, 5.0, 0.0, -3 / 2, 0.0, 5 / 66),
}
"""Bernoulli polynomials, highest power first (NIST DLMF 24.2)."""


def all_aliases(angle: np.ndarray, share: np.ndarray, power: int) -> np.ndarray:
    """Σ_m e^(2 pi i m x)/(i theta + 2 pi i m)^power with the share x in (0, 1], by samples of a power of time.

    1/s^n is the transform of t^(n−1)/(n−1)!. Sampled at k + x, its z-transform is Σ_k u^k (k + x)^(n−1)/(n−1)!,
    u = e^(−i theta), and the sum over the aliases is that times e^(−i theta x).
    """
    x, u, v = share, np.exp(-1j * angle), -1.0 / np.expm1(-1j * angle)
    first, second = u * v * v, u * (1.0 + u) * v**3
    if power == 3:
        sums, over = second + 2.0 * x * first + x * x * v, 2.0
    else:
        third = u * (1.0 + 4.0 * u + u * u) * v**4
        sums, over = third + 3.0 * x * second + 3.0 * x * x * first + x**3 * v, 6.0
    return np.exp(-1j * angle * x) / over * sums


def other_aliases(angle: np.ndarray, share: np.ndarray, power: int) -> np.ndarray:
    """`all_aliases` without m = 0, at small angles: a series in theta of Bernoulli polynomials.

    Σ_(m ≠ 0) e^(2 pi i m x)/(2 pi i m)^k = −B_k(x)/k! (NIST DLMF 24.8.3).
    """
    share = share[:1] if np.all(share == share[0]) else share
    series = np.vander(share, _SERIES[power].shape[1], increasing=True) @ _SERIES[power].T
    return (series * np.vander(-1j * angle, _ORDERS, increasing=True)).sum(axis=1)


def held_aliases(angle: np.ndarray, delay: np.ndarray, power: int) -> np.ndarray:
    """Σ_m e^(−s_m delay)/s_m^power with s_m = i theta + 2 pi i m and a delay in epochs; both broadcast.

    Up to SMALL_ANGLE without m = 0.
    """
    whole = np.floor(delay)
    share, small = 1.0 - (delay - whole), np.abs(angle) <= SMALL_ANGLE
    if not small.any():
        return all_aliases(angle, share, power) * np.exp(-1j * angle * delay)
    shape = np.broadcast_shapes(angle.shape, delay.shape)
    angle, share, small = (np.broadcast_to(a, shape) for a in (angle, share, small))
    found = np.empty(shape, dtype=complex)
    found[small] = other_aliases(angle[small], share[small], power)
    found[~small] = all_aliases(angle[~small], share[~small], power)
    return found * np.exp(-1j * angle * delay)


def _series(power: int) -> np.ndarray:
    """Coefficients of 1, x, x², ... in row j, for the factor of (−i theta)^j."""
    rows = [
        -comb(power + j - 1, j) / factorial(power + j) * np.array(_BERNOULLI[power + j][::-1]) for j in range(_ORDERS)
    ]
    return np.array([np.pad(row, (0, len(rows[-1]) - len(row))) for row in rows])


_SERIES = {power: _series(power) for power in (3, 4)}


def majorant(terms: np.ndarray, power: float) -> np.ndarray:
    """Σ over all aliases of bounds that fall at least as |m|^−power beyond the last ones computed."""
    most = terms.shape[1] // 2
    edge = np.maximum(terms[:, 0], terms[:, -1])
    # Σ_(j > M) (M − 1/2)^p/(j − 1/2)^p <= (M − 1/2)^p / ((p − 1) M^(p−1)) + ..., on both sides.
    tail = 2.0 * edge * (most + 1.0) / (power - 1.0)
    return terms.sum(axis=1) + tail
