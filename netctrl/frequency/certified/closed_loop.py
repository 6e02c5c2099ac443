"""Closed loop with delays on its stability boundary: crossings, and a certified count of unstable poles.

The closed loop is P = D + k N e^(−s·delay). P has no poles, so poles of the open loop on the axis need no indentation:

    unstable poles = n/2 − (arg P(i∞) − arg P(0))/π        n the order (Mikhailov, Stépán)

In discrete time z = (1 + v)/(1 − v) maps the circle to the axis, z = e^{iθ} to v = i tan(θ/2), and separates poles
crowded around z = 1. The polynomials in v are computed in integers (`boundary`). At high order their powers cancel
too much; then x is the angle itself: unstable poles = n − (arg P(e^{iπ}) − arg P(1))/π.

The argument is followed through intervals on which P is certainly not 0. A delay at the output is treated in closed
form: as it grows from 0, a pair of poles crosses the axis at each gain crossover w whenever its phase reaches 180°, to
the right where |L| falls (Cooke, van den Driessche, Funkcialaj Ekvacioj 29, 1986; Walton, Marshall, IEE Proc. D 134,
1987).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import atan, ceil, floor, inf, pi

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.frequency.certified.exponential import (
    ExponentialPolynomial,
    combined,
    evaluate,
    nearest_zero,
    taylor,
    values,
)
from netctrl.frequency.certified.isolation import Zero, argument_change, zeros

_EPS = float(np.finfo(float).eps)
_EQUAL = 1e-12  # relative: the neutral part counts as on its stability boundary
_BLURRED = 1e-11  # relative width of a zero's bounds above which they are refined


@dataclass(frozen=True, slots=True)
class Critical:
    """A gain at which closed-loop poles lie on the boundary: k L = −1 at `at`."""

    gain: float
    at: float
    change: float
    """Number of unstable poles above that gain, minus the number below it."""


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """1 + k L e^(−ix·delay) = 0 on the boundary, as a function of x.

    N, D : numerator and denominator, in continuous time without the delay at the output.
    dt : 0, or the sampling interval.
    circle : x is the angle on the unit circle; else x = ω/unit, or tan(θ/2)/unit in discrete time.
    undelayed, lag : with `circle` and a low order, the same loop without its common delay of `lag` samples, mapped to
        the axis, where terms that almost cancel near z = 1 are exact.
    """

    N: ExponentialPolynomial
    D: ExponentialPolynomial
    delay: float
    order: int
    unit: float
    dt: float = 0.0
    circle: bool = False
    undelayed: ClosedLoop | None = None
    lag: int = 0

    def angle(self, x: float) -> float:
        """Angle on the unit circle for x, in discrete time."""
        return x if self.circle else 2.0 * atan(x * self.unit)

    def frequency(self, x: float) -> float:
        """Frequency of x [rad/s]."""
        return self.angle(x) / self.dt if self.dt else x * self.unit

    @cached_property
    def _squares(self) -> tuple[ExponentialPolynomial, ExponentialPolynomial]:
        return self.N.times_conjugate(self.N).real_part(), self.D.times_conjugate(self.D).real_part()

    @cached_property
    def is_zero(self) -> bool:
        """Whether L = 0."""
        return self.N.vanishes

    def response(self, at: np.ndarray) -> np.ndarray:
        """Values of L at an array of x; inf at a pole."""
        with np.errstate(divide="ignore", invalid="ignore"):
            L = values(self.N, at) * np.exp(-1j * at * self.delay) / values(self.D, at)
        if self.undelayed is not None and (low := at < 0.5 * pi).any():
            theta = at[low]
            L[low] = self.undelayed.response(np.tan(0.5 * theta) / self.undelayed.unit) * np.exp(-1j * theta * self.lag)
        return np.where(np.isfinite(L), L, inf)

    # ------------------------------------------------------------------ crossings of |L|

    def level(self, gain: float) -> ExponentialPolynomial:
        """The function gain² |N|² − |D|², which is 0 at a gain crossover."""
        NN, DD = self._squares
        return combined(NN.scaled(gain * gain), DD.scaled(-1.0))

    def crossovers(self, gain: float = 1.0) -> list[Zero]:
        """All x > 0 with gain·|L| = 1; none where that holds at all frequencies."""
        if self.undelayed is not None:
            to = self.undelayed.angle
            found = self.undelayed.crossovers(gain)
            return [replace(z, at=to(z.at), low=to(z.low), high=to(z.high)) for z in found]
        f = self.level(gain)
        if f.vanishes:
            return []
        end = self.level_end(f)
        low = self._without_crossover(f, gain, 0.0, end)
        high = pi - self._without_crossover(f, gain, pi, pi) if self.circle else end
        return self._sharpened(zeros(f, low, high), f, gain)

    def _without_crossover(self, f: ExponentialPolynomial, gain: float, point: float, most: float) -> float:
        """Distance from a point within which f = gain² |N|² − |D|² has no zero.

        It comes from the Taylor series of N and D: where both are small, f is below the rounding of its coefficients.
        """
        N, D = taylor(self.N, point).squared(), taylor(self.D, point).squared()
        return nearest_zero(f, point, 0, most, N.minus(D, gain * gain))[0]

    def _sharpened(self, found: list[Zero], f: ExponentialPolynomial, gain: float) -> list[Zero]:
        """Crossovers with the digits that the squares in f lose,. They come from
        Newton steps on (gain |N| − |D|)(gain |N| + |D|)."""
        blurred = [i for i, z in enumerate(found) if z.simple and z.high - z.low > _BLURRED * z.at]
        if not blurred:
            return found
        low, x, high = np.array([(found[i].low, found[i].at, found[i].high) for i in blurred]).T
        slope = values(f.derivative(), x)
        for _ in range(4):
            above, below = gain * np.abs(values(self.N, x)), np.abs(values(self.D, x))
            x = np.clip(x - (above - below) * (above + below) / slope, low, high)
        sharp = dict(zip(blurred, x.tolist(), strict=True))
        return [replace(z, at=sharp.get(i, z.at)) for i, z in enumerate(found)]

    def level_end(self, f: ExponentialPolynomial) -> float:
        """x beyond which f has no zero."""
        if self.circle:
            return pi
        _, own, others = f.leading()
        if abs(own) <= others * (1.0 + _EQUAL):
            takes = "a neutral loop whose delayed terms of highest power sum to less than the undelayed one"
            raise InvalidValue("loop", "delays in both numerator and denominator at the highest power", takes)
        return 1.001 * f.radius(0.9 * (1.0 - others / abs(own)))

    # ------------------------------------------------------------------ what happens at infinite frequency

    def neutral_gain(self, delayed: bool) -> float:
        """Gain above which infinitely many poles are unstable, possibly after a small change of the delays.

        In discrete time: the gain that puts a pole at z = −1.
        """
        if self.circle:
            return inf
        own, others = self.highest(self.D)
        undelayed, late = self.highest(self.N)
        if own < 0.0:
            own, undelayed = -own, -undelayed
        if delayed or self.delay > 0.0:
            undelayed, late = 0.0, abs(undelayed) + late
        if own <= others * (1.0 + _EQUAL):
            return 0.0
        rises = late - undelayed  # own + k·undelayed > others + k·late
        return (own - others) / rises if rises > 0.0 else inf

    def end_gain(self) -> float:
        """|L| in the limit of high frequency (after any change of the delays), or at z = −1."""
        if self.circle:
            return float(abs(self.response(np.array([pi]))[0]))
        return 1.0 / gain if (gain := self.neutral_gain(delayed=True)) else inf

    def highest(self, f: ExponentialPolynomial) -> tuple[float, float]:
        """Coefficient of the loop's highest power without delay, and the sum of |those with delays|."""
        n = self.order
        if f.coefficients.shape[1] <= n:
            return 0.0, 0.0
        column, still = f.coefficients[:, n], f.delays == 0.0
        return float((column[still] / 1j**n).real.sum()), float(np.abs(column[~still]).sum())

    # ------------------------------------------------------------------ unstable poles

    def characteristic(self, gain: float, delay: float) -> ExponentialPolynomial:
        """P = D + gain·N·e^(−ix·delay)."""
        return combined(self.D, self.N.shifted(delay).scaled(gain))

    def unstable_poles(self, gain: float = 1.0, delay: float | None = None) -> float | None:
        """Number of unstable poles of the closed loop.

        inf where a neutral loop has infinitely many; None where rounding errors hide on which side a pole lies. `delay`
        replaces the delay at the output.
        """
        if delay is not None:
            return replace(self, delay=delay).unstable_poles(gain)
        most = self.neutral_gain(delayed=False)
        if gain >= most * (1.0 - _EQUAL) and (terms := self.neutral_terms()):
            # With one term only its size matters, whatever its delay; with several the ratios of the delays matter.
            return inf if gain > most * (1.0 + _EQUAL) and terms == 1 else None
        if self.circle or self.delay == 0.0 or self.is_zero:
            return self._followed(gain, self.delay)
        crossovers = self.crossovers(gain)
        if self._on_boundary(crossovers, gain):
            return None
        start, events = self.delay_events(crossovers)
        base = self._followed(gain, start)
        if base is None:
            return None
        return base + sum(2 * d * _between(first, period, start, self.delay) for first, period, d in events)

    def neutral_terms(self) -> int:
        """Number of delayed terms that have the highest power."""
        if self.circle:
            return 0
        shifted = self.N.shifted(self.delay)
        top = [
            f.coefficients[f.delays != 0.0, self.order]
            for f in (self.D, shifted)
            if f.coefficients.shape[1] > self.order
        ]
        return sum(int(np.count_nonzero(column)) for column in top)

    def _on_boundary(self, crossovers: list[Zero], gain: float = 1.0) -> bool:
        """Whether rounding allows P = 0 at one of the gain crossovers."""
        if not crossovers:
            return False
        P = self.characteristic(gain, self.delay)
        at = np.array([z.at for z in crossovers])
        value, error = evaluate(P, at)
        slope = np.abs(values(P.derivative(), at))
        reach = np.array([0.5 * (z.high - z.low) for z in crossovers])
        return bool((np.abs(value) <= 2.0 * error + slope * reach).any())

    def delay_events(self, crossovers: list[Zero]) -> tuple[float, list[tuple[float, float, int]]]:
        """Delay at which the count starts, and (first delay, period, direction) of each crossing of the axis.

        The count starts in the widest gap between early crossings; a crossing occurs as the delay grows.
        """
        events = []
        for z in crossovers:
            phase = float(np.angle(-values(self.N, np.array([z.at])) / values(self.D, np.array([z.at])))[0])
            events.append((phase % (2.0 * pi) / z.at, 2.0 * pi / z.at, -z.direction))
        early = [first + j * period for first, period, _ in events for j in (0, 1)]
        ends = np.array([0.0, *sorted(t for t in early if t < self.delay), self.delay])
        widest = int(np.argmax(np.diff(ends)))
        last = ends[widest + 1] == self.delay
        return (self.delay if last else float(0.5 * (ends[widest] + ends[widest + 1]))), events

    def _followed(self, gain: float, delay: float) -> float | None:
        P = self.characteristic(gain, delay)
        if self.circle:
            turned = argument_change(P, pi)
            return None if turned is None else _whole(self.order - turned / pi)
        own, others = self.highest(P)
        top = P.coefficients.shape[1] > self.order
        if self.dt and (not top or abs(own) <= 64.0 * _EPS * P.sizes[:, -1].sum()):
            return None  # P(z = −1) = 0
        if not top or abs(own) <= max(others, _EQUAL * P.sizes[:, -1].sum()) * (1.0 + _EQUAL):
            takes = "a loop with L(i∞) other than −1: the closed loop has no solution (an algebraic loop)"
            raise InvalidValue("loop", f"a closed loop of order below {self.order}", takes)
        sigma = others / abs(own)
        end = 1.001 * P.radius(0.5 * (1.0 - sigma))
        turned = argument_change(P, end)
        if turned is None:
            return None
        # On the half circle from i·end to infinity P is within a disk around its highest power, which turns n π/2.
        rest = float(np.angle(values(P, np.array([end]))[0] / (own * (1j * end) ** self.order)))
        return _whole(0.5 * self.order + (rest - turned) / pi)

    # ------------------------------------------------------------------ crossings of the negative real axis

    def criticals(self, low: float, high: float) -> list[Critical]:
        """Gains with poles on the boundary between x = low and x = high, in any order."""
        if self.is_zero:
            return []
        f = self._imaginary
        found = []
        if low == 0.0:
            low, sign = nearest_zero(f, 0.0, 1, high)
            found += self._real_end(0.0, sign)
            if not low:
                return found
        if self.circle and high == pi:
            width, sign = nearest_zero(f, pi, 1, pi)
            found += self._real_end(pi, sign)
            high -= width
        crossing = zeros(f, low, high)
        at = np.array([z.at for z in crossing])
        (n, en), (d, ed) = evaluate(self.N, at), evaluate(self.D, at)
        reach = np.array([0.5 * (z.high - z.low) for z in crossing])
        en = 2.0 * en + reach * np.abs(values(self.N.derivative(), at))
        ed = 2.0 * ed + reach * np.abs(values(self.D.derivative(), at))
        real = (n * np.exp(-1j * at * self.delay) * d.conj()).real
        for i, z in enumerate(crossing):
            if real[i] < 0.0 and abs(n[i]) > en[i] and abs(d[i]) > ed[i]:
                found.append(Critical(abs(d[i]) / abs(n[i]), z.at, 2 * z.direction))
        return found

    @cached_property
    def _imaginary(self) -> ExponentialPolynomial:
        """Im(N conj(D) e^(−ix·delay)) = |D|² Im L."""
        return self.N.shifted(self.delay).times_conjugate(self.D).scaled(-1j).real_part()

    def _real_end(self, at: float, sign: float) -> list[Critical]:
        (n,), (en,) = evaluate(self.N, np.array([at]))
        (d,), (ed,) = evaluate(self.D, np.array([at]))
        n = n * np.exp(-1j * at * self.delay)
        if abs(n) <= 4.0 * en or abs(d) <= 4.0 * ed or (n / d).real > 0.0:
            return []
        # Im L is odd about the point, and `nearest_zero` gives its sign above it.
        return [Critical(abs(d) / abs(n), at, int(sign))]

    def crossing_end(self) -> float | None:
        """x beyond which the negative real axis is never crossed; None where delay brings infinitely many crossings."""
        if self.circle:
            return pi
        f = self._imaginary
        if not f.delays.any():
            return 1.001 * f.radius(0.5) if f.leading()[1] else 1.0
        _, own, others = f.leading()
        if abs(own) <= others * (1.0 + _EQUAL):
            return None
        return 1.001 * f.radius(0.9 * (1.0 - others / abs(own)))

    def min_delay(self) -> float:
        """The shortest delay of the loop."""
        delays = np.abs([self.delay, *self.N.delays, *self.D.delays])
        return float(delays[delays > 0.0].min())

    def corner(self) -> float:
        """Value of x above all corners, where the highest powers of numerator and denominator dominate."""
        return pi if self.circle else max(f.radius(0.5) for f in (self.N, self.D) if abs(f.leading()[1]) > 0.0)


def _whole(count: float) -> float:
    """Count as a whole number; any other value means an error in the bounds."""
    if abs(count - round(count)) > 1e-6:
        raise InvalidValue("loop", f"a count of {count} unstable poles", "a loop whose coefficients fit in doubles")
    return round(count)


def _between(first: float, period: float, low: float, high: float) -> int:
    """How many of first, first + period, ... lie between low and high; `first` is at least 0."""
    begin = max(0, ceil((low - first) / period))
    return max(0, floor((high - first) / period) - begin + 1)
