"""Frequency response of loops with exact delay, and all frequencies at which it crosses a level.

The delay enters the phase exactly, without Padé approximation. The phase is expressed as lag, unwrapped from its value
at low frequency: lag(w) = m π/2 + Σ atan(T w) − Σ atan(z w) + w·delay, so L(iw) = |L| e^(−i·lag).

Roots are found in brackets: of one monotone function by Newton's steps, of many functions at once by `illinois`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from math import pi
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from netctrl.core.errors import optional_import
from netctrl.model.loop import DelayLoop

if TYPE_CHECKING:
    import control


_TOLERANCE = 4.0 * np.finfo(float).eps
_FAR = 1e120  # rad/s; beyond it a level is not reached


def phase_lag(loop: DelayLoop, frequency: float) -> float:
    """Unwrapped phase lag [rad] at one frequency [rad/s]."""
    w = frequency
    lag = loop.integrators * (0.5 * math.pi) + loop.delay * w
    for T in loop.lags:
        lag += math.atan(T * w)
    for z in loop.leads:
        lag -= math.atan(z * w)
    return lag


def magnitude(loop: DelayLoop, frequency: float) -> float:
    """|L(iw)| at one frequency [rad/s] above 0."""
    w = frequency
    ratio = loop.gain / w**loop.integrators
    for T in loop.lags:
        ratio /= math.hypot(1.0, T * w)
    for z in loop.leads:
        ratio *= math.hypot(1.0, z * w)
    return ratio


def response(loop: DelayLoop, frequencies: ArrayLike) -> np.ndarray:
    """L(iw) as complex numbers at an array of frequencies [rad/s]."""
    s = 1j * np.asarray(frequencies, dtype=float)
    L = loop.gain * np.exp(-s * loop.delay) / s**loop.integrators
    for T in loop.lags:
        L = L / (1.0 + T * s)
    for z in loop.leads:
        L = L * (1.0 + z * s)
    return L


def lag_turning_points(loop: DelayLoop) -> list[float]:
    """Frequencies [rad/s] that split (0, inf) into intervals of monotone lag; most loops have none."""
    # Each lead lowers the slope by at most its time constant, at w = 0; the delay adds its own length everywhere.
    if sum(z for z in loop.leads if z > 0.0) <= loop.delay:
        return []
    terms = [(T, (T,)) for T in loop.lags] + [(z, (-z,)) for z in loop.leads]
    return _turning_points(loop.delay, terms)


def magnitude_turning_points(loop: DelayLoop) -> list[float]:
    """Frequencies [rad/s] that split (0, inf) into intervals of monotone |L|; most loops have none."""
    if len(loop.leads) <= loop.integrators:  # each integrator falls faster than any one zero rises
        return []
    terms = [(T, (0.0, -T * T)) for T in loop.lags] + [(z, (0.0, z * z)) for z in loop.leads]
    return _turning_points(-float(loop.integrators), terms)


def lag_crossings(loop: DelayLoop, lag: float, turning_points: list[float] | None = None) -> list[float]:
    """All frequencies [rad/s], ascending, at which the unwrapped lag equals `lag` [rad], monotone or not.

    `turning_points` is `lag_turning_points(loop)`, which callers with several levels of one loop compute once.

    Parameters
    ----------
    loop : DelayLoop
    lag : float
        Level [rad].
    turning_points : list of float, optional
    """
    if turning_points is None:
        turning_points = lag_turning_points(loop)

    corners = [(T, 1.0) for T in loop.lags] + [(z, -1.0) for z in loop.leads]

    def value_and_slope(w: float) -> tuple[float, float]:
        value = loop.integrators * (0.5 * math.pi) + loop.delay * w - lag
        slope = loop.delay
        for corner, sign in corners:
            value += sign * math.atan(corner * w)
            slope += sign * (corner / (1.0 + corner * corner * w * w))
        return value, slope

    # Below this frequency the lag has moved by at most half of the way from its start to the level.
    reach = loop.delay + sum(loop.lags) + sum(abs(z) for z in loop.leads)
    start = abs(lag - loop.integrators * 0.5 * math.pi) / (2.0 * reach) if reach > 0.0 else 1.0
    return _roots(value_and_slope, turning_points, start)


def gain_crossings(loop: DelayLoop, level: float = 1.0) -> list[float]:
    """All frequencies [rad/s], ascending, at which |L| equals `level`."""
    log_gain = math.log(loop.gain / level)
    corners = [(T, -1.0) for T in loop.lags] + [(z, 1.0) for z in loop.leads]

    def value_and_slope(u: float) -> tuple[float, float]:
        # In u = ln w, where ln|L| is close to piecewise linear.
        w = math.exp(u)
        value = log_gain - loop.integrators * u
        slope = -float(loop.integrators)
        for corner, sign in corners:
            x = (corner * w) ** 2
            value += sign * (0.5 * math.log1p(x))
            slope += sign * (x / (1.0 + x))
        return value, slope

    splits = [math.log(w) for w in magnitude_turning_points(loop)]
    if loop.integrators:
        # Low-frequency asymptote gain/w^m = level; a loop whose corners all lie above it crosses there.
        start = log_gain / loop.integrators
        return [math.exp(u) for u in _roots(value_and_slope, splits, start, whole_line=True)]
    # |L| starts at a finite value: below `floor` every corner is flat to 1e-9, so the first piece may start there.
    floor = math.log(1e-5 / max([*loop.lags, *map(abs, loop.leads)]))
    splits = [u for u in splits if u > floor]
    return [math.exp(u) for u in _roots(value_and_slope, splits, floor, low_end=floor, whole_line=True)]


def to_control(loop: DelayLoop, pade_order: int) -> control.TransferFunction:
    """A python-control TransferFunction with the delay replaced by a Padé approximation of the given order."""
    with optional_import():
        import control

    s = control.tf("s")
    rational = control.tf([loop.gain], [1.0]) / s**loop.integrators
    for T in loop.lags:
        rational = rational / (T * s + 1)
    for z in loop.leads:
        rational = rational * (z * s + 1)
    return rational * control.tf(*control.pade(loop.delay, pade_order)) if loop.delay else rational


def _turning_points(constant: float, terms: Sequence[tuple[float, tuple[float, ...]]]) -> list[float]:
    """Square roots w of the positive roots x = w² of constant + Σ numerator(x)/(1 + t² x) = 0.

    Roots with a small imaginary part are kept: an unnecessary split does no harm.
    """
    P = np.polynomial.polynomial
    times = [abs(t) for t, _ in terms]
    scale = math.exp(-2.0 * sum(map(math.log, times)) / len(times))  # x = scale·y brings the corners around y = 1
    factors = [np.array([1.0, t * t * scale]) for t in times]
    one = np.array([1.0])
    total = constant * reduce(P.polymul, factors, one)
    for i, (_, numerator) in enumerate(terms):
        scaled = np.array([c * scale**k for k, c in enumerate(numerator)])
        total = P.polyadd(total, P.polymul(scaled, reduce(P.polymul, factors[:i] + factors[i + 1 :], one)))
    total = np.trim_zeros(total, "b")
    roots = P.polyroots(total) if total.size else ()  # no term left: the function is constant
    return sorted(math.sqrt(r.real * scale) for r in roots if r.real > 0.0 and abs(r.imag) < 1e-3 * abs(r))


ValueAndSlope = Callable[[float], tuple[float, float]]


def _roots(
    value_and_slope: ValueAndSlope,
    splits: list[float],
    start: float,
    *,
    low_end: float | None = None,
    whole_line: bool = False,
) -> list[float]:
    """Roots of a function that is monotone between consecutive `splits`.

    The axis is (0, inf), or with `whole_line` (−inf, inf) in ln w; `start` is a guess from which the open ends are
    bracketed, `low_end` replaces the open lower end.
    """
    if low_end is None:
        low_end, step = min([start, *splits[:1]]) if whole_line else 0.0, 1.0
        while whole_line and value_and_slope(low_end)[0] <= 0.0:  # with an integrator |L| grows without bound below
            low_end -= step
            step *= 2.0
    ends = [low_end, *splits]
    roots = []
    for a, b in zip(ends, [*splits, None], strict=True):
        if b is None:  # the last piece is open: its end is where the function has changed sign, if it ever does
            positive = value_and_slope(a)[0] > 0.0
            step = 1.0 if whole_line else max(start - a, abs(a), 1e-300)
            b = a + step
            while b < (math.log(_FAR) if whole_line else _FAR) and (value_and_slope(b)[0] > 0.0) == positive:
                step *= 2.0
                b = a + step
            if not b < (math.log(_FAR) if whole_line else _FAR):
                break
        root = _root_between(value_and_slope, a, b, start if a < start < b else None)
        if root is not None:
            roots.append(root)
    return roots


def _root_between(value_and_slope: ValueAndSlope, a: float, b: float, guess: float | None) -> float | None:
    """Root of a monotone function between a and b by bracketed Newton steps; None without a sign change."""
    fa, slope = value_and_slope(a)
    fb, _ = value_and_slope(b)
    if fb == 0.0:
        return b
    if fa == 0.0 or (fa > 0.0) == (fb > 0.0):  # a root at a split belongs to the piece before it
        return None
    rising = fb > fa
    x = a if guess is None else guess
    f, slope = (fa, slope) if guess is None else value_and_slope(x)
    for _ in range(200):
        if f == 0.0:
            return x
        if (f > 0.0) == rising:
            b = x
        else:
            a = x
        newton = x - f / slope if slope else math.nan  # a turning point: halve the bracket
        new = newton if a <= newton <= b else 0.5 * (a + b)
        if abs(new - x) <= _TOLERANCE * abs(new):
            return new
        x = new
        f, slope = value_and_slope(x)
    return x


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
