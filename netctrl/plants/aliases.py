"""Sums over the aliases of a sampled response: closed forms of powers, and bounds of tails."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any

import numpy as np

SMALL_ANGLE = 0.1
"""Up to here a sampled response takes its main alias apart from the others [rad]."""
_ORDERS = 7
"""Terms of the series at small angles: (SMALL_ANGLE/2 pi)^7 is 3e-13."""
_DEGREES = _ORDERS + 4
"""Coefficients of its polynomials."""
_MANY = 100
"""Angles from which their turns are made of tangents."""
_BERNOULLI = {
    2: (1.0, -1.0, 1 / 6),
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


def horner(x: Any, coefficients: Sequence[Any] | np.ndarray) -> Any:
    """Polynomial with these coefficients of x^0, x^1, ...; of few points numpy's takes several times as long."""
    found = coefficients[-1]
    for each in coefficients[-2::-1]:
        found = found * x + each
    return found


def turned(angle: np.ndarray) -> np.ndarray:
    """e^(−i angle)."""
    if np.iscomplexobj(angle) or np.size(angle) < _MANY:
        return np.exp(-1j * angle)
    tangent = np.tan(0.5 * angle)  # for many a fraction of the time of complex exponentials
    square = tangent * tangent
    share = 1.0 / (1.0 + square)
    found = np.empty(np.shape(angle), dtype=complex)
    found.real = (1.0 - square) * share
    found.imag = -2.0 * tangent * share
    return found


def held_aliases(
    angle: np.ndarray, delay: np.ndarray, third: np.ndarray, fourth: np.ndarray, second: Any = 0.0
) -> np.ndarray:
    """Σ_m e^(−s_m delay) (second/s_m² + third/s_m³ + fourth/s_m⁴) with s_m = i theta + 2 pi i m.

    Up to SMALL_ANGLE without m = 0. The delay is in epochs; all broadcast.
    """
    whole, small = np.floor(delay) + 1.0, np.abs(angle) <= SMALL_ANGLE
    share = whole - delay
    if small.all():
        return _other_aliases(angle, _coefficients(share, third, fourth, second)) * turned(angle * delay)
    if not small.any():
        return all_aliases(angle, weights_of(share, third, fourth, second)) * turned(angle * whole)
    others = _other_aliases(angle, _coefficients(share, third, fourth, second))
    every = all_aliases(np.where(small, 1.0, angle), weights_of(share, third, fourth, second))
    return np.where(small, others, every) * turned(angle * np.where(small, delay, whole))


def weights_of(share: Any, third: Any, fourth: Any, second: Any = 0.0) -> tuple[Any, Any, Any, Any]:
    """Factors of Σ_k k^j u^k, j = 0 to 3, in Σ_k u^k (second (k + x) + third (k + x)²/2 + fourth (k + x)³/6); x is the
    share."""
    half, sixth = 0.5 * third, fourth / 6.0
    last = sixth * share
    first = ((half + last) * share + second) * share
    return first, (third + 3.0 * last) * share + second, half + 3.0 * last, sixth


def all_aliases(angle: Any, weights: tuple[Any, Any, Any, Any]) -> Any:
    """Σ_m e^(s_m x) (third/s_m³ + fourth/s_m⁴) with the share x in (0, 1], from its `_weights`.

    1/s^n is the transform of t^(n−1)/(n−1)!. Sampled at k + x, its z-transform is Σ_k u^k (k + x)^(n−1)/(n−1)!,
    u = e^(−i theta). With q = (1 + u)/(1 − u) = −i cot(theta/2), Σ u^k = (1 + q)/2, and Σ k^j u^k = (q² − 1)/4 times 1,
    q and (3 q² − 1)/2 for j = 1, 2 and 3.
    """
    cot = 1.0 / np.tan(0.5 * angle)
    square = cot * cot
    quarter = 0.25 + 0.25 * square
    still, first, second, third = weights
    even = 0.5 * still - quarter * (first - third * (0.5 + 1.5 * square))
    odd = 0.5 * still - quarter * second
    return even - 1j * (cot * odd)


def _other_aliases(angle: np.ndarray, series: np.ndarray) -> np.ndarray:
    """`all_aliases` without m = 0, at small angles: Σ_j series_j (−i theta)^j."""
    square = -angle * angle
    even, odd = (horner(square, series[first::2]) for first in (0, 1))
    return even - 1j * (angle * odd)


def _coefficients(share: np.ndarray, third: np.ndarray, fourth: np.ndarray, second: Any = 0.0) -> np.ndarray:
    """Coefficients of (−i theta)^j in `_other_aliases`, (_ORDERS, ...), from Bernoulli polynomials.

    Σ_(m ≠ 0) e^(2 pi i m x)/(2 pi i m)^k = −B_k(x)/k! (NIST DLMF 24.8.3).
    """
    powers = np.ones((*share.shape, _DEGREES))
    powers[..., 1:] = share[..., None]
    np.multiply.accumulate(powers, axis=-1, out=powers)
    found = fourth[..., None] * (powers @ SERIES[4].T)
    if third.any():
        found = found + third[..., None] * (powers @ SERIES[3].T)
    if np.any(second):
        found = found + second[..., None] * (powers @ SERIES[2].T)
    return np.moveaxis(found, -1, 0)


def _series(power: int) -> np.ndarray:
    """Coefficients of 1, x, x², ... in row j, for the factor of (−i theta)^j."""
    rows = [
        -comb(power + j - 1, j) / factorial(power + j) * np.array(_BERNOULLI[power + j][::-1]) for j in range(_ORDERS)
    ]
    return np.array([np.pad(row, (0, _DEGREES - len(row))) for row in rows])


SERIES = {power: _series(power) for power in (2, 3, 4)}
"""By the power of s, (_ORDERS, _DEGREES)."""


def majorant(terms: np.ndarray, power: float) -> np.ndarray:
    """Σ over all aliases of bounds that fall at least as |m|^−power beyond the last ones computed."""
    most = terms.shape[1] // 2
    edge = np.maximum(terms[:, 0], terms[:, -1])
    # Σ_(j > M) (M − 1/2)^p/(j − 1/2)^p <= (M − 1/2)^p / ((p − 1) M^(p−1)) + ..., on both sides.
    tail = 2.0 * edge * (most + 1.0) / (power - 1.0)
    return terms.sum(axis=1) + tail
