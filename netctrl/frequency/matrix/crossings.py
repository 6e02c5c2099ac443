"""Eigenvalues of a loop's matrix response on the boundary of stability; gains and phases at which they meet −1.

det(1 + k L) = Π (1 + k lambda_j): the generalised Nyquist criterion follows the eigenvalues of L as one follows the
response of a single loop (MacFarlane, Postlethwaite, Int. J. Control 25(1), 1977).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi
from typing import NamedTuple

import numpy as np

__all__ = ["Crossing", "Locus", "gain_crossovers", "locus", "negative_real", "scan_angles", "tracked"]

Response = Callable[[np.ndarray], np.ndarray]
"""Angles (n,) to matrices (n, S, S)."""

_GEOMETRIC, _PER_TURN, _MOST_EVEN = 200, 24, 4000
_HALVINGS = 60
_CLOSE = 1e-13
_REAL = 1e-9
"""Imaginary part over modulus up to which an eigenvalue of a real matrix is real."""


class Crossing(NamedTuple):
    """Angle at which an eigenvalue is on the negative axis, or of modulus 1."""

    angle: float
    """[rad]"""
    value: complex
    """The eigenvalue."""

    @property
    def gain(self) -> float:
        """Factor k with k lambda = −1, of an eigenvalue on the negative axis."""
        return -1.0 / self.value.real

    @property
    def off(self) -> float:
        """Angle from the negative axis [rad]."""
        return abs(float(np.angle(-self.value)))


class Locus(NamedTuple):
    """Eigenvalues of a response at neighbouring angles."""

    response: Response
    angles: np.ndarray
    """(n,) [rad]."""
    curves: np.ndarray
    """(n, S), each column one eigenvalue that is followed."""
    real_end: bool
    """Whether the last angle is that of z = −1, where the response is real."""


def locus(response: Response, angles: np.ndarray, matrices: np.ndarray, *, real_end: bool) -> Locus:
    """Eigenvalues of a response whose values at the angles are given, (n, S, S)."""
    return Locus(response, angles, tracked(matrices), real_end)


def scan_angles(longest: float, end: float = pi, lowest: float = 1e-4) -> np.ndarray:
    """Angles up to `end`: in geometric steps, and even ones of a small part of a turn of the longest delay [epoch]."""
    widest = max(2.0 * pi / _PER_TURN / max(longest, 1.0), end / _MOST_EVEN)
    start = lowest / max(longest, 1.0)
    return np.unique(
        np.concatenate([np.geomspace(start, end, _GEOMETRIC), np.linspace(start, end, 2 + int(end / widest))])
    )


def tracked(matrices: np.ndarray) -> np.ndarray:
    """Eigenvalues of matrices (n, S, S) at neighbouring angles as S curves, (n, S), each next to the last."""
    values = np.linalg.eigvals(matrices)
    size = values.shape[1]
    for n in range(1, len(values)):
        distance = np.abs(values[n][None, :] - values[n - 1][:, None])
        order = np.empty(size, dtype=int)
        for _ in range(size):
            row, column = np.unravel_index(np.argmin(distance), distance.shape)
            order[row] = column
            distance[row, :] = inf
            distance[:, column] = inf
        values[n] = values[n][order]
    return values


def negative_real(found: Locus, steps: int = _HALVINGS) -> list[Crossing]:
    """Where eigenvalues cross the negative axis, each refined to rounding or by so many steps."""
    curves, crossings = found.curves, []
    for n, j in _sign_changes(curves.imag):
        if found.real_end and n + 2 == len(curves):
            continue
        if curves[n, j].real < 0.0 or curves[n + 1, j].real < 0.0:
            crossing = _refined(found, n, j, lambda v: float(np.angle(-v)), steps)
            if crossing.value.real < 0.0:
                crossings.append(crossing)
    if found.real_end:
        last = curves[-1]
        real = (np.abs(last.imag) <= _REAL * np.abs(last)) & (last.real < 0.0)
        crossings += [Crossing(float(found.angles[-1]), complex(value)) for value in last[real]]
    return crossings


def gain_crossovers(found: Locus, steps: int = _HALVINGS) -> list[Crossing]:
    """Where eigenvalues have modulus 1, each refined to rounding or by so many steps."""
    changes = _sign_changes(np.log(np.abs(found.curves)))
    return [_refined(found, n, j, lambda v: float(np.log(np.abs(v))), steps) for n, j in changes]


def _sign_changes(values: np.ndarray) -> list[tuple[int, int]]:
    sign = np.signbit(values)
    return [(int(n), int(j)) for n, j in zip(*np.nonzero(sign[1:] != sign[:-1]), strict=True)]


def _refined(found: Locus, n: int, j: int, off: Callable[[complex], float], steps: int) -> Crossing:
    """Root of a function of an eigenvalue that is followed from one angle to the next, by the Illinois method."""
    a, b = (float(angle) for angle in found.angles[n : n + 2])
    va, vb = (complex(value) for value in found.curves[n : n + 2, j])
    fa, fb = off(va), off(vb)
    for _ in range(steps):
        with np.errstate(divide="ignore", invalid="ignore"):
            c = b - fb * (b - a) / (fb - fa) if fb != fa else 0.5 * (a + b)
        if not min(a, b) < c < max(a, b):
            c = 0.5 * (a + b)
        share = (c - a) / (b - a) if b != a else 0.5
        near = va + share * (vb - va)
        all_values = np.linalg.eigvals(found.response(np.array([c]))[0])
        value = complex(all_values[np.argmin(np.abs(all_values - near))])
        fc = off(value)
        if (fc < 0.0) != (fb < 0.0):
            a, fa, va = b, fb, vb
        else:
            fa *= 0.5
        b, fb, vb = c, fc, value
        if abs(fc) <= _CLOSE or abs(b - a) <= 1e-15 * abs(b):
            break
    return Crossing(b, vb)
