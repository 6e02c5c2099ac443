"""Functions over cells with bounds of their slopes, for proofs by the mean value theorem.

A cell is a box of n coordinates. A function over k cells is kept as its value at each centre and, for each coordinate,
a bound of |∂f| that holds in the whole cell; so f stays within Σ slope · half width of its value. Sums, products,
quotients and turns e^(−ix) of such functions are such functions, by the rules of differentiation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from netctrl.plants.aliases import turned

_ONE = np.ones((1, 1))


class MeanValue:
    """Function over k cells: values (k, m) at the centres, bounds (n, k, m) of its slopes, half widths (n, k, 1).

    The last axis is free, for instance for aliases; it may have length 1. Constants are plain numbers or arrays (k, 1)
    or (k, m). A slope is inf or nan where no bound is known. Computed under `np.errstate(all="ignore")` by the caller,
    once for all: to change it at each operation would cost as much as the operation.
    """

    __array_ufunc__ = None
    __slots__ = ("_most", "_radius", "half", "slopes", "value")

    def __init__(self, value: np.ndarray, slopes: np.ndarray, half: np.ndarray) -> None:
        self.value, self.slopes, self.half = value, slopes, half
        self._radius: np.ndarray | None = None
        self._most: np.ndarray | None = None

    @property
    def radius(self) -> np.ndarray:
        """Bound of |f − value| in each cell, (k, m)."""
        if self._radius is None:
            shares = self.slopes * self.half
            self._radius = sum(shares[1:], shares[0])  # of few coordinates: faster than numpy's sum
        return self._radius

    @property
    def most(self) -> np.ndarray:
        """Upper bound of |f|."""
        if self._most is None:
            self._most = np.abs(self.value) + self.radius
        return self._most

    @property
    def least(self) -> np.ndarray:
        """Lower bound of |f|; 0 or less where f may vanish."""
        return np.abs(self.value) - self.radius

    def __add__(self, other: Any) -> MeanValue:
        if isinstance(other, MeanValue):
            return MeanValue(self.value + other.value, self.slopes + other.slopes, self.half)
        value = self.value + other
        slopes = self.slopes if value.shape == self.value.shape else self.slopes + np.zeros(value.shape)
        return MeanValue(value, slopes, self.half)

    __radd__ = __add__

    def __neg__(self) -> MeanValue:
        return MeanValue(-self.value, self.slopes, self.half)

    def __sub__(self, other: Any) -> MeanValue:
        return self + (-other)

    def __rsub__(self, other: Any) -> MeanValue:
        return (-self) + other

    def __mul__(self, other: Any) -> MeanValue:
        if isinstance(other, MeanValue):
            return MeanValue(self.value * other.value, self.slopes * other.most + other.slopes * self.most, self.half)
        return MeanValue(self.value * other, self.slopes * np.abs(other), self.half)

    __rmul__ = __mul__

    def inverse(self) -> MeanValue:
        """1/f; without a bound where f may vanish."""
        least = np.maximum(self.least, 0.0)
        return MeanValue(1.0 / self.value, self.slopes / (least * least), self.half)

    def __truediv__(self, other: Any) -> MeanValue:
        return self * (other.inverse() if isinstance(other, MeanValue) else 1.0 / other)

    def __rtruediv__(self, other: Any) -> MeanValue:
        return self.inverse() * other

    def log(self) -> MeanValue:
        """ln f of a real f above 0; without a bound where it may not be."""
        return MeanValue(np.log(self.value), self.slopes / np.maximum(self.least, 0.0), self.half)

    def turn(self) -> MeanValue:
        """e^(−i f) of a real f."""
        found = MeanValue(turned(self.value), self.slopes, self.half)
        found._most = _ONE
        return found

    def exp(self) -> MeanValue:
        """e^f of a real f."""
        return MeanValue(np.exp(self.value), self.slopes * np.exp(self.value + self.radius), self.half)


def coordinate(centre: np.ndarray, half: np.ndarray, number: int) -> MeanValue:
    """Coordinate of cells (k, n) given by centres and half widths, as a function over them."""
    slopes = np.zeros((half.shape[1], half.shape[0], 1))
    slopes[number] = 1.0
    return MeanValue(centre[:, number : number + 1], slopes, half.T[:, :, None])


def mean_turn(x: MeanValue, turned: MeanValue) -> MeanValue:
    """(1 − e^(−x))/x of an imaginary x with its e^(−x): the mean of e^(−x v) for v from 0 to 1.

    Its slope in |x| is at most 1/2, and at most (1 + min(1, 2/|x|))/|x|.
    """
    return MeanValue((1.0 - turned.value) / x.value, x.slopes * _turn_slope(x), x.half)


def mean_fall(x: MeanValue, mean: MeanValue) -> MeanValue:
    """2 (1 − mean)/x of an imaginary x with its `mean_turn`: the mean of e^(−x v) with the weight 2 (1 − v).

    Its slope in |x| is at most 1/3, and at most (2 |slope of the mean| + min(1, 4/|x|))/|x|.
    """
    least = np.maximum(x.least, 0.0)
    slope = np.minimum(1.0 / 3.0, (2.0 * _turn_slope(x) + np.minimum(1.0, 4.0 / least)) / least)
    return MeanValue(2.0 * (1.0 - mean.value) / x.value, x.slopes * slope, x.half)


def _turn_slope(x: MeanValue) -> np.ndarray:
    """Bound of the slope of `mean_turn` in |x|."""
    least = np.maximum(x.least, 0.0)
    return np.minimum(0.5, (1.0 + np.minimum(1.0, 2.0 / least)) / least)


def unknown_phase(like: MeanValue, number: int) -> MeanValue:
    """Function of modulus at most 1, of which nothing else is known: 0 with a slope of 1 along a coordinate of half
    width 1."""
    slopes = np.zeros((like.slopes.shape[0], like.slopes.shape[1], 1))
    slopes[number] = 1.0
    return MeanValue(np.zeros((like.value.shape[0], 1), dtype=complex), slopes, like.half)


def through(x: Any, function: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Any:
    """f(x) of a number, an array or a real function over cells; `slope` bounds |f'| between two arrays."""
    if not isinstance(x, MeanValue):
        return function(x)
    return MeanValue(function(x.value), x.slopes * slope(x.value - x.radius, x.value + x.radius), x.half)
