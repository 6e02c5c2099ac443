"""Sums over the aliases of a sampled response: closed forms of powers, and bounds of tails."""

from __future__ import annotations

from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["SMALL_ANGLE", "all_aliases", "held_aliases", "majorant", "other_aliases"]

SMALL_ANGLE = 0.1
"""Up to here a sampled response takes its main alias apart from the others [rad]."""
_ORDERS = 7
"""Terms of the series at small angles: (SMALL_ANGLE/2 pi)^7 is 3e-13."""
_DEGREES = _ORDERS + 4
"""Coefficients of its polynomials."""
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


def all_aliases(angle: np.ndarray, share: np.ndarray, third: ArrayLike, fourth: ArrayLike) -> np.ndarray:
    """Σ_m e^(2 pi i m x) (third/s_m³ + fourth/s_m⁴) with s_m = i theta + 2 pi i m and the share x in (0, 1].

    1/s^n is the transform of t^(n−1)/(n−1)!. Sampled at k + x, its z-transform is Σ_k u^k (k + x)^(n−1)/(n−1)!,
    u = e^(−i theta), and the sum over the aliases is that times e^(−i theta x).
    """
    x, u = share, np.exp(-1j * angle)
    v = -1.0 / np.expm1(-1j * angle)
    first = u * v * v
    second = (1.0 + u) * first * v
    sums = third * (0.5 * second + x * (first + (0.5 * x) * v))
    if np.any(fourth):
        cubes = (1.0 + 4.0 * u + u * u) * first * v * v
        sums = sums + fourth * (cubes / 6.0 + x * (0.5 * second + x * (0.5 * first + (x / 6.0) * v)))
    return np.exp(-1j * angle * x) * sums


def other_aliases(angle: np.ndarray, share: np.ndarray, third: ArrayLike, fourth: ArrayLike) -> np.ndarray:
    """`all_aliases` without m = 0, at small angles: a series in theta of Bernoulli polynomials.

    Σ_(m ≠ 0) e^(2 pi i m x)/(2 pi i m)^k = −B_k(x)/k! (NIST DLMF 24.8.3).
    """
    share = share[:1] if np.all(share == share[0]) else share
    powers, turns = np.vander(share, _DEGREES, increasing=True), np.vander(-1j * angle, _ORDERS, increasing=True)
    third, fourth = (np.reshape(factor, (-1, 1)) for factor in (third, fourth))
    return ((third * (powers @ _SERIES[3].T) + fourth * (powers @ _SERIES[4].T)) * turns).sum(axis=1)


def held_aliases(angle: np.ndarray, delay: np.ndarray, third: np.ndarray, fourth: np.ndarray) -> np.ndarray:
    """Σ_m e^(−s_m delay) (third/s_m³ + fourth/s_m⁴) with s_m = i theta + 2 pi i m and a delay in epochs; all broadcast.

    Up to SMALL_ANGLE without m = 0.
    """
    share, small = 1.0 - (delay - np.floor(delay)), np.abs(angle) <= SMALL_ANGLE
    late = np.exp(-1j * angle * delay)
    if not small.any():
        return all_aliases(angle, share, third, fourth) * late
    *given, small = np.broadcast_arrays(angle, share, third, fourth, small)
    found = np.empty(small.shape, dtype=complex)
    found[small] = other_aliases(*(a[small] for a in given))
    if not small.all():
        found[~small] = all_aliases(*(a[~small] for a in given))
    return found * late


def _series(power: int) -> np.ndarray:
    """Coefficients of 1, x, x², ... in row j, for the factor of (−i theta)^j."""
    rows = [
        -comb(power + j - 1, j) / factorial(power + j) * np.array(_BERNOULLI[power + j][::-1]) for j in range(_ORDERS)
    ]
    return np.array([np.pad(row, (0, _DEGREES - len(row))) for row in rows])


_SERIES = {power: _series(power) for power in (3, 4)}


def majorant(terms: np.ndarray, power: float) -> np.ndarray:
    """Σ over all aliases of bounds that fall at least as |m|^−power beyond the last ones computed."""
    most = terms.shape[1] // 2
    edge = np.maximum(terms[:, 0], terms[:, -1])
    # Σ_(j > M) (M − 1/2)^p/(j − 1/2)^p <= (M − 1/2)^p / ((p − 1) M^(p−1)) + ..., on both sides.
    tail = 2.0 * edge * (most + 1.0) / (power - 1.0)
    return terms.sum(axis=1) + tail
