"""Margins of a queue's loop by brute force: equilibrium by bisection, a plain sum over aliases, poles by winding.

Written from the equations of "Certificates of queues" alone, for AIMD senders and DCTCP in one queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf, log, pi

import numpy as np
from scipy.optimize import brentq

_ALIASES = 300


@dataclass(frozen=True)
class Flows:
    """Class of flows: a, b and g (0: AIMD) of the sender, share, stretch, and p = factor x^power."""

    a: float
    b: float
    g: float = 0.0
    share: float = 1.0
    stretch: float = 1.0
    factor: float = 1.0
    power: float = 1.0

    def window(self, x: float) -> float:
        p = self.factor * x**self.power
        return 2.0 * self.a / p if self.g else (self.a / (self.b * p)) ** 0.5


@dataclass(frozen=True)
class Pi:
    """x+ = x + alpha (D − target) + beta (D − D_old) every T, on D as it was `age` standing delays ago."""

    alpha: float
    beta: float
    T: float
    target: float
    age: float = 0.0
    leaving: bool = False

    def standing(self, x: float) -> float:
        return self.target


@dataclass(frozen=True)
class Line:
    """x = slope (D − start) on the average with this corner, or on D where the corner is inf; read `late` ago."""

    slope: float
    corner: float
    start: float
    late: float

    def standing(self, x: float) -> float:
        return self.start + x / self.slope


@dataclass
class Loop:
    """Loop of a law with flows at a rate C [packet/s]."""

    law: Pi | Line
    classes: tuple[Flows, ...]
    C: float
    N: float
    tau: float
    x: float = field(init=False)

    def __post_init__(self) -> None:
        self.x = exp(brentq(self._excess, -100.0, 40.0, xtol=1e-14))
        self.D = self.law.standing(self.x)
        self.R = [k.stretch * self.tau + self.D for k in self.classes]
        self.w = [k.window(self.x) for k in self.classes]
        both = zip(self.R, self.w, self.classes, strict=True)
        slow = max(R * (w / k.a + (1.0 / k.g if k.g else 0.0) + 4.0) for R, w, k in both)
        if isinstance(self.law, Pi):
            lowest = 3e-3 / (slow / self.law.T + 1.0 + self.law.beta / self.law.alpha)
            lowest *= min(1.0, 0.1 * float(np.abs(self.at(lowest))[0]))  # there |L| is above 1
            self.angles = np.unique(
                np.concatenate([np.geomspace(min(lowest, 0.01), pi, 200), np.linspace(0.01, pi, 80)])
            )
        else:
            top = 300.0 / min(self.R)
            lowest = 3e-3 / (slow + 1.0 / self.law.corner)
            self.angles = np.unique(np.concatenate([np.geomspace(lowest, top, 400), np.linspace(lowest, top, 400)]))
        self.angles, self.values = self._followed()

    def _excess(self, u: float) -> float:
        D = max(self.law.standing(exp(u)), 1e-300)
        rates = [self.N * k.share * k.window(exp(u)) / (k.stretch * self.tau + D) for k in self.classes]
        return log(sum(rates) / self.C)

    def plant(self, s: np.ndarray) -> np.ndarray:
        """−δD/δx."""
        moved, den = 0.0, s
        for k, R, w in zip(self.classes, self.R, self.w, strict=True):
            y, damping, sigma = self.N * k.share * w / (self.C * R), k.a / w, s * R
            V = 0.0
            if k.g:
                Q = damping / (sigma + damping) * k.g / (sigma + k.g)
            else:
                Q = damping / (sigma + damping * (1.0 + np.exp(-sigma)))
                V = (1.0 - np.exp(-sigma)) * Q
            waited = self.D if isinstance(self.law, Pi) and self.law.leaving else 0.0
            moved = moved + y * k.power * Q * np.exp(-s * (R - waited))
            den = den + y * (1.0 + V) / R
        return moved / den / self.x

    def at(self, angles: np.ndarray, extra: float = 0.0) -> np.ndarray:
        """L at angles, of a line at frequencies [rad/s], with more delay [s]."""
        law, angles = self.law, np.atleast_1d(angles)
        if isinstance(law, Line):
            s = 1j * angles
            return law.slope * self.plant(s) * np.exp(-s * (law.late + extra)) / (1.0 + s / law.corner)
        parts = []
        for some in np.array_split(angles, max(len(angles) // 64, 1)):
            s = 1j * (some[:, None] + 2.0 * pi * np.arange(-_ALIASES, _ALIASES + 1)) / law.T
            sums = (self.plant(s) / s * np.exp(-s * (law.age * self.D + extra))).sum(axis=1)
            parts.append((law.beta * (1.0 - np.exp(-1j * some)) + law.alpha) / law.T * sums)
        return np.concatenate(parts)

    def _followed(self, extra: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Angles so close that L turns and falls little from one to the next, and L."""
        angles, values = self.angles, self.at(self.angles, extra)
        for _ in range(12):
            far = np.abs(np.log(values[1:] / values[:-1])) > 0.3
            far &= np.maximum(np.abs(values[1:]), np.abs(values[:-1])) > (0.5 if extra else 0.0)
            if not far.any() or len(angles) > 20_000:
                break
            new = np.sqrt(angles[1:] * angles[:-1])[far]
            order = np.argsort(both := np.concatenate([angles, new]))
            angles, values = both[order], np.concatenate([values, self.at(new, extra)])[order]
        return angles, values

    def unstable_poles(self, gain: float = 1.0, extra: float = 0.0) -> int:
        """By the turns of 1 + gain L: from −j∞ at z = 1, around which the contour goes, or from the axis without it."""
        values = 1.0 + gain * (self._followed(extra)[1] if extra else self.values)
        turned = np.angle(values[1:] / values[:-1]).sum() + np.angle(values[0])
        if isinstance(self.law, Pi):
            return round(-turned / pi)
        return round((np.angle(values[-1]) - turned) / pi)

    def crossings(self) -> list[float]:
        """Gains at which gain · L is −1, in ascending order."""
        found = []
        a, v = self.angles, self.values
        last = len(a) - 2 if isinstance(self.law, Pi) else len(a)
        for i in np.flatnonzero((v.imag[1:] < 0.0) != (v.imag[:-1] < 0.0)):
            if min(v.real[i], v.real[i + 1]) < 0.0 and i < last:
                at = brentq(lambda u: np.angle(-self.at(u)[0]), a[i], a[i + 1], xtol=1e-14)
                found.append(-1.0 / self.at(at)[0].real)
        if isinstance(self.law, Pi) and v[-1].real < 0.0:
            found.append(-1.0 / v[-1].real)
        return sorted(g for g in found if g > 0.0)

    def margin(self) -> float:
        """Gain margin as a factor: of a stable loop the least gain above 1 with other poles, of an unstable one the
        greatest below which none is unstable."""
        gains = self.crossings()
        if self.unstable_poles() == 0:
            return min((g for g in gains if g >= 1.0), default=inf)
        return max((g for g in gains if g < 1.0 and self.unstable_poles(g * (1.0 - 1e-6)) == 0), default=0.0)

    def phase_deg(self) -> float | None:
        """Least angle from the negative axis where |L| is 1 [degree]."""
        size, a = np.abs(self.values), self.angles
        found = []
        for i in np.flatnonzero((size[1:] < 1.0) != (size[:-1] < 1.0)):
            at = brentq(lambda u: log(abs(self.at(u)[0])), a[i], a[i + 1], xtol=1e-14)
            found.append(abs(np.angle(-self.at(at)[0], deg=True)))
        return min(found, default=None)

    def disk(self) -> float:
        """Least 2|1 + L|/|1 − L|."""
        angles, values = self.angles, self.values
        for _ in range(5):
            ratio = 2.0 * np.abs(1.0 + values) / np.abs(1.0 - values)
            i = int(np.argmin(ratio))
            angles = np.linspace(angles[max(i - 1, 0)], angles[min(i + 1, len(angles) - 1)], 25)
            values = self.at(angles)
        return float((2.0 * np.abs(1.0 + values) / np.abs(1.0 - values)).min())
