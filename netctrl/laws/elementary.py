"""Functions of laws by operations that IEEE 754 rounds: the same bits on every machine, and where no libm is."""

from __future__ import annotations

from math import sqrt

from netctrl.core.jit import njit

_LN2, _SQRT_HALF = 0.6931471805599453, 0.7071067811865476
_HALVINGS = 64
_TERMS = 11  # of artanh z, z² ≤ 0.0295: the first that is left out is below 1e-18
_STEPS = 3


@njit(cache=True, error_model="numpy")
def logarithm(x: float) -> float:
    """ln x of 1 ≤ x < 2^64, within 3 units in the last place of the greater of it and 1.

    x = 2^k m with √½ ≤ m < √2, and ln m = 2 artanh z = 2 (z + z³/3 + z⁵/5 + ...), z = (m − 1)/(m + 1).
    """
    k = 0.0
    for _ in range(_HALVINGS):
        if x * _SQRT_HALF < 1.0:
            break
        x *= 0.5
        k += 1.0
    z = (x - 1.0) / (x + 1.0)
    square = z * z
    total = 0.0
    power = 2.0 * _TERMS + 1.0
    for _ in range(_TERMS + 1):
        total = total * square + 1.0 / power
        power -= 2.0
    return k * _LN2 + 2.0 * z * total


@njit(cache=True, error_model="numpy")
def cube_root(x: float) -> float:
    """The cube root of 0 or of 1e-12 ≤ x ≤ 1e12, within 1.5 units in the last place.

    x^(1/4) x^(1/16) x^(1/64) is off by x^(1/192), at most 16 %. Halley's step cubes that error.
    """
    if x <= 0.0:
        return 0.0
    fourth = sqrt(sqrt(x))
    sixteenth = sqrt(sqrt(fourth))
    y = fourth * sixteenth * sqrt(sqrt(sixteenth))
    for _ in range(_STEPS):
        cube = y * y * y
        y += y * ((x - cube) / (2.0 * cube + x))
    return y
