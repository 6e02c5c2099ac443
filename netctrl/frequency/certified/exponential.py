"""Exponential polynomials f(ω) = Σ q_k(ω) e^(−iω t_k): values, Taylor coefficients and rigorous bounds.

On the imaginary axis, or on the unit circle with ω the angle, the numerator, the denominator and the closed loop of a
loop with delays are such sums, and so are |L|² − 1 and Im L over |D|². Every bound here counts rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb, factorial

import numpy as np

from netctrl.core.errors import InvalidValue

_EPS = float(np.finfo(float).eps)
_CANCELLED = 64.0 * _EPS  # a leading coefficient below this fraction of its summands is rounding error
_ORDER = 14  # Taylor coefficients about a known zero
_NOUGHT = 1e-12  # a Taylor coefficient below this fraction of its summands is 0
_HIDDEN = 1e-3  # the fraction of an interval, next to a known zero, in which rounding may hide another zero
HIDDEN = InvalidValue(
    "loop",
    "coefficients so badly scaled that rounding errors hide its crossings",
    "a loop of fewer crowded poles and zeros, a shorter delay in samples, or a longer sampling interval",
)
_I = np.array([1.0, 1.0j, -1.0, -1.0j])  # powers of i, exact


@dataclass(frozen=True, slots=True, eq=False)
class ExponentialPolynomial:
    """f(ω) = Σ q_k(ω) e^(−iω t_k), or its real part.

    Parameters
    ----------
    delays : ndarray, shape (K,)
        t_k, any sign.
    coefficients : complex ndarray, shape (K, P)
        Of 1, ω, ω², ...
    sizes : ndarray, shape (K, P)
        Sum of the absolute values of each coefficient's summands: the scale of its rounding error.
    real : bool
        Whether f is the real part.
    """

    delays: np.ndarray
    coefficients: np.ndarray
    sizes: np.ndarray
    real: bool = False

    def scaled(self, factor: complex) -> ExponentialPolynomial:
        """factor · f."""
        return ExponentialPolynomial(self.delays, factor * self.coefficients, abs(factor) * self.sizes, self.real)

    def shifted(self, delay: float) -> ExponentialPolynomial:
        """f(ω) e^(−iω·delay)."""
        return ExponentialPolynomial(self.delays + delay, self.coefficients, self.sizes, self.real)

    def real_part(self) -> ExponentialPolynomial:
        """Re f."""
        return _gathered(list(zip(self.delays, self.coefficients, self.sizes, strict=True)), real=True)

    def times_conjugate(self, other: ExponentialPolynomial) -> ExponentialPolynomial:
        """f · conj(g)."""
        rows = [
            (a - b, np.convolve(p, q.conj()), np.convolve(P, Q))
            for a, p, P in zip(self.delays, self.coefficients, self.sizes, strict=True)
            for b, q, Q in zip(other.delays, other.coefficients, other.sizes, strict=True)
        ]
        return _gathered(rows, real=False)

    def derivative(self) -> ExponentialPolynomial:
        """df/dω."""
        powers = np.arange(1, self.coefficients.shape[1])
        t = self.delays[:, None]
        slope, size = -1j * t * self.coefficients, np.abs(t) * self.sizes
        slope[:, :-1] += powers * self.coefficients[:, 1:]
        size[:, :-1] += powers * self.sizes[:, 1:]
        return ExponentialPolynomial(self.delays, slope, size, self.real)

    @property
    def vanishes(self) -> bool:
        """Whether f = 0, to the rounding of its coefficients."""
        return not self.sizes.any()

    def leading(self) -> tuple[int, complex, float]:
        """Highest power, its coefficient without delay, and the sum of the moduli of its coefficients with delays."""
        still = self.delays == 0.0
        top = self.coefficients.shape[1] - 1
        own = complex(self.coefficients[still, top].sum())
        return top, (own.real if self.real else own), float(np.abs(self.coefficients[~still, top]).sum())

    def radius(self, share: float) -> float:
        """Ω beyond which all terms but the leading one are at most `share` of |its coefficient without delay|."""
        top, own, _ = self.leading()
        lower = np.abs(self.coefficients).sum(axis=0)[:top]
        found = np.flatnonzero(lower)
        if not found.size:
            return 1e-6
        # Each of n lower terms at most share/n, ω^(j − top) |c_j| <= share |own| / n.
        bounds = (lower[found] * found.size / (share * abs(own))) ** (1.0 / (top - found))
        return float(bounds.max())


def quasi_polynomial(terms: Iterable[tuple[float, np.ndarray]]) -> ExponentialPolynomial:
    """Σ p_k(iω) e^(−iω t_k) from (t_k, real coefficients of 1, s, s², ...)."""
    return _gathered([(t, p * _I[np.arange(len(p)) % 4], np.abs(p)) for t, p in terms], real=False)


def combined(*parts: ExponentialPolynomial) -> ExponentialPolynomial:
    """Sum of exponential polynomials; real where all of them are."""
    rows = [row for f in parts for row in zip(f.delays, f.coefficients, f.sizes, strict=True)]
    return _gathered(rows, real=all(f.real for f in parts))


def _gathered(rows: list[tuple[float, np.ndarray, np.ndarray]], real: bool) -> ExponentialPolynomial:
    """Rows with the same delay added up; leading powers that cancelled are dropped."""
    width = max((len(p) for _, p, _ in rows), default=1)
    largest = max((abs(t) for t, _, _ in rows), default=0.0)
    delays: list[float] = []
    coefficients: list[np.ndarray] = []
    sizes: list[np.ndarray] = []
    for t, p, size in sorted(rows, key=lambda row: row[0]):
        if not delays or t - delays[-1] > 4.0 * _EPS * largest:
            delays.append(0.0 if abs(t) <= 4.0 * _EPS * largest else t)
            coefficients.append(np.zeros(width, complex))
            sizes.append(np.zeros(width))
        coefficients[-1][: len(p)] += p
        sizes[-1][: len(p)] += size
    if not delays:
        return ExponentialPolynomial(np.zeros(1), np.zeros((1, 1), complex), np.zeros((1, 1)), real)
    c, size = np.array(coefficients), np.array(sizes)
    if real:  # a coefficient without delay counts by its real part alone
        still = np.array(delays) == 0.0
        c[still] = c[still].real
    keep = width
    while keep > 1 and (np.abs(c[:, keep - 1]) <= _CANCELLED * size[:, keep - 1]).all():
        keep -= 1
    if (np.abs(c[:, :keep]) <= _CANCELLED * size[:, :keep]).all():
        c, size = np.zeros_like(c), np.zeros_like(size)
    return ExponentialPolynomial(np.array(delays), c[:, :keep], size[:, :keep], real)


def evaluate(f: ExponentialPolynomial, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f and a bound of its rounding error at an array of ω."""
    return values(f, at), _rounding(f, np.abs(at))


def values(f: ExponentialPolynomial, at: np.ndarray) -> np.ndarray:
    """f at an array of ω."""
    powers = at[:, None] ** np.arange(f.coefficients.shape[1])
    found = ((powers @ f.coefficients.T) * np.exp(-1j * at[:, None] * f.delays)).sum(axis=1)
    return found.real if f.real else found


def _rounding(f: ExponentialPolynomial, at: np.ndarray) -> np.ndarray:
    powers = at[:, None] ** np.arange(f.coefficients.shape[1])
    count = 2.0 * f.coefficients.shape[1] + len(f.delays) + 8.0
    return _EPS * ((powers @ f.sizes.T) * (count + 2.0 * at[:, None] * np.abs(f.delays))).sum(axis=1)


def _shifted_coefficients(f: ExponentialPolynomial, at: np.ndarray) -> np.ndarray:
    """Coefficients of q_k(at + h) in powers of h, shape (M, K, P)."""
    n = f.coefficients.shape[1]
    p, j = np.arange(n)[:, None], np.arange(n)
    binomial = np.array([[comb(a, b) for b in range(n)] for a in range(n)], float)
    powers = at[:, None] ** np.arange(n)
    return f.coefficients @ (binomial * powers[:, np.maximum(p - j, 0)])


def clear_of_zero(f: ExponentialPolynomial, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the intervals [low, high] that certainly contain no zero of f, and of those that rounding leaves open.

    f(c + h) = f0 + f1 h + f2 h² + R with |R| bounded by the series of absolute values. Where |f0| exceeds the
    rest, f stays in a disk without 0, so the change of its argument between two points is known too.

    Parameters
    ----------
    f : ExponentialPolynomial
    low, high : ndarray, shape (k,)
        Ends of the intervals.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        c, r = 0.5 * (low + high), 0.5 * (high - low)
        a = _shifted_coefficients(f, c)
        t, phase = f.delays, np.exp(-1j * c[:, None] * f.delays)
        n = a.shape[2]
        a0 = a[:, :, 0]
        a1 = a[:, :, 1] if n > 1 else np.zeros_like(a0)
        a2 = a[:, :, 2] if n > 2 else np.zeros_like(a0)
        f0 = (phase * a0).sum(axis=1)
        f1 = (phase * (a1 - 1j * t * a0)).sum(axis=1)
        f2 = (phase * (a2 - 1j * t * a1 - 0.5 * t * t * a0)).sum(axis=1)
        if f.real:
            f0, f1, f2 = f0.real, f1.real, f2.real
        x = r[:, None] * np.abs(t)
        rest = (np.abs(a[:, :, 3:]) * r[:, None, None] ** np.arange(3, n)).sum(axis=2) if n > 3 else 0.0
        terms = np.abs(a0) * x**3 / 6.0 + np.abs(a1) * r[:, None] * x**2 / 2.0 + np.abs(a2) * (r * r)[:, None] * x
        remainder = ((terms + rest) * np.exp(np.minimum(x, 700.0))).sum(axis=1)
        change = (np.abs(f1) * r + np.abs(f2) * r * r + remainder) * (1.0 + 1e-9)
        error = _rounding(f, np.abs(c) + r)
        clear = np.abs(f0) > change + error
        hidden = ~clear & ((change <= error) | (r <= 4.0 * _EPS * np.abs(c)))
    return clear, hidden


@dataclass(frozen=True, eq=False)
class Taylor:
    """Taylor coefficients about a point, and the sizes of their summands, which measure the rounding errors."""

    value: np.ndarray
    size: np.ndarray

    def squared(self) -> Taylor:
        """|f|²; coefficients below the rounding errors of their summands are set to 0."""
        value = np.where(np.abs(self.value) <= _CANCELLED * self.size, 0.0, self.value)
        product = np.convolve(value, value.conj()).real
        size = 2.0 * np.convolve(np.abs(value), self.size)
        return Taylor(product[: _ORDER + 1], size[: _ORDER + 1])

    def minus(self, other: Taylor, factor: float) -> Taylor:
        """factor · self − other."""
        return Taylor(factor * self.value - other.value, factor * self.size + other.size)


def taylor(f: ExponentialPolynomial, point: float) -> Taylor:
    """The first coefficients of f about a point."""
    a = _shifted_coefficients(f, np.array([point]))[0] * np.exp(-1j * point * f.delays)[:, None]
    powers = np.array([[t**i / factorial(i) for i in range(_ORDER + 1)] for t in f.delays])
    series = np.array([np.convolve(p, w * (-1j) ** np.arange(_ORDER + 1)) for p, w in zip(a, powers, strict=True)])
    size = np.array([np.convolve(np.abs(p), np.abs(w)) for p, w in zip(a, powers, strict=True)]).sum(axis=0)
    return Taylor(series.sum(axis=0)[: _ORDER + 1], size[: _ORDER + 1])


def nearest_zero(
    f: ExponentialPolynomial, point: float, parity: int, most: float, series: Taylor | None = None
) -> tuple[float, float]:
    """(r, sign): for 0 < ω − point < r <= most, f has no zero and this sign.

    f is real, even (parity 0) or odd (1) about the point, and may be 0 there: the first nonzero power of its Taylor
    series has to outweigh the rest. r = 0 where f is 0. `series` is that series where it is known more accurately
    than from the coefficients of f.

    Parameters
    ----------
    f : ExponentialPolynomial
    point : float
    parity : int
        0 for an even f, 1 for an odd one.
    most : float
        Greatest r that is looked for.
    series : Taylor, optional

    Raises
    ------
    InvalidValue
        The rounding errors of the lower powers are too large.
    """
    a = _shifted_coefficients(f, np.array([point]))[0]
    n = a.shape[1]
    series = series or taylor(f, point)
    value, size = series.value.real.copy(), series.size
    value[1 - parity :: 2] = 0.0
    alive = np.abs(value) > _NOUGHT * size
    if not alive.any():
        return 0.0, 0.0
    first = int(np.argmax(alive))
    below = np.where(value[:first] == 0.0, 0.0, np.abs(value[:first]) + _CANCELLED * size[:first])
    j = np.arange(n)
    start = np.maximum(_ORDER + 1 - j, 0)
    factorials = np.array([float(factorial(i)) for i in start])
    radii = most * 0.5 ** np.arange(200)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        others = (np.abs(value[first + 1 :]) * radii[:, None] ** np.arange(1, _ORDER + 1 - first)).sum(axis=1)
        x = radii[:, None, None] * np.abs(f.delays)[:, None]
        # Terms of an order above the series, over r^first.
        tail = np.abs(a) * radii[:, None, None] ** (j - first) * x**start / factorials * np.exp(np.minimum(x, 700.0))
        good = abs(value[first]) > (1.0 + 1e-9) * (others + tail.sum(axis=(1, 2)))
    if not good.any():
        raise HIDDEN
    r = float(radii[np.argmax(good)])
    if (below * (_HIDDEN * r) ** np.arange(first)).sum() > 0.5 * abs(value[first]) * (_HIDDEN * r) ** first:
        raise HIDDEN
    return r, float(np.sign(value[first]))
