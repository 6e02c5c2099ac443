"""Roots of many functions at once, each in a bracket of its own."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import numpy as np

__all__ = ["illinois"]

_SPACING = 4e-16
"""Relative width of a bracket that is rounding error."""
_PHASES = 4
"""Steps to a root of a phase before the imaginary part is followed."""
_JUMP, _STEEP = 1.0, 1e-6
"""A phase that changes by more than _JUMP [rad] over less than _STEEP of ln theta jumps: the response is 0 there, or
less than 1e-5 of what it is around."""


def illinois(
    off: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    a: np.ndarray,
    b: np.ndarray,
    fa: np.ndarray,
    fb: np.ndarray,
    steps: int,
    close: float = 0.0,
    phases_of: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Roots between a and b, each on its own, by the Illinois method in the form of Anderson and Björck (BIT 13, 1973).

    It is the secant method in a bracket: where the same end stays twice, its value is scaled down, so that the next
    secant lands beyond the root and the bracket shrinks from both sides. The order is 1.7, and no slope is needed.

    Parameters
    ----------
    off : callable
        Arguments, and which roots they are for, to the function's values and anything else beside them.
    a, b : ndarray, shape (k,)
        Ends of brackets.
    fa, fb : ndarray, shape (k,)
        The function there.
    steps : int
        At most so many.
    close : float
        Value at which a root is found.
    phases_of : (ndarray, ndarray), optional
        With it the function is the phase of a complex one, which stands beside it and has these values at both ends.
        After some steps its imaginary part is followed, which is straight where the phase is steep. The search also
        ends between a phase above a quarter turn and one below minus a quarter turn, which meet at half a turn and not
        at 0, and where one jumps by half a turn, at a zero of the complex function.

    Returns
    -------
    (ndarray, ndarray)
        The roots, and what `off` gave beside its function there.
    """
    a, b, fa, fb = (each.copy() for each in (a, b, fa, fb))
    at_a, beside = (each.copy() for each in phases_of or (np.empty(0), np.empty(0)))
    going = np.arange(len(b))
    for step in range(steps):
        if not going.size:
            break
        if phases_of is not None and step == _PHASES:
            fa[going], fb[going] = at_a[going].imag, beside[going].imag
        a0, b0, fa0, fb0 = a[going], b[going], fa[going], fb[going]
        with np.errstate(divide="ignore", invalid="ignore"):
            c = b0 - fb0 * (b0 - a0) / (fb0 - fa0)
        c = np.where((c > np.minimum(a0, b0)) & (c < np.maximum(a0, b0)), c, 0.5 * (a0 + b0))
        fc, new = off(c, going)
        width = np.abs(c - b0)
        left = (np.abs(fc) > close) & (width > _SPACING * np.maximum(np.abs(c), 1.0))
        crossed = np.signbit(fc) != np.signbit(fb0)
        if phases_of is not None:
            sizes = np.abs(np.stack([fc, np.angle(beside[going])]))  # where the sign changed b0 and c are both ends
            behind, jumps = sizes.min(axis=0) > 0.5 * pi, (sizes.sum(axis=0) > _JUMP) & (width < _STEEP)
            left &= ~(crossed & (behind | jumps))
            at_a[going] = np.where(crossed, beside[going], at_a[going])
            fc = fc if step < _PHASES else new.imag
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 1.0 - fc / fb0
        a[going] = np.where(crossed, b0, a0)
        fa[going] = np.where(crossed, fb0, np.where(share > 0.0, share, 0.5) * fa0)
        b[going], fb[going] = c, fc
        beside = new if step == 0 else beside
        beside[going] = new
        going = going[left]
    return b, beside
