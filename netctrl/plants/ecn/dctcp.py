"""DCTCP's fluid at a queue that marks above a threshold, and its limit cycle.

Alizadeh, Javanmard, Prabhakar, "Analysis of DCTCP: Stability, Convergence, and Fairness", SIGMETRICS 2011, (3) to (5):
N windows W and averages alpha, the queue q and the round trip R = d + q/C obey

    W' = 1/R − W alpha p/(2 R),   alpha' = (g/R)(p − alpha),   q' = N W/R − C,   p(t) = 1{q(t − R*) > K}.

The packet that meets the threshold waits K/C, so that its mark comes back after R* = d + K/C: this delay is exact
although R moves. With time in d and the queue as x = q/(C d) only three numbers remain: b = C d/N, kappa = K/(C d) and
g.

    w' = 1/R − w alpha p/(2 R),   alpha' = (g/R)(p − alpha),   x' = w/(b R) − 1,   R = 1 + x

A step has no slope: no equilibrium is stable, and the queue always swings around the threshold.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from netctrl.jit import njit

__all__ = [
    "Cycle",
    "StepFluid",
    "busy_threshold",
    "described_cycle",
    "fluid_cycle",
    "marked_share",
    "sawtooth_cycle",
]

_STEPS = 40
"""Steps in R*."""
_MOST_CYCLES = 4000
_MOST_TRIPS = 40_000.0
_AGREE = 3
"""Cycles in a row that agree before the last one is taken as the limit cycle."""
_SAME = 1e-6
_AVERAGED = 50
"""Cycles over which a motion without a limit cycle is described."""
_PENDING = 256
_AMPLE = 0.5
"""kappa at which the queue never runs empty, for a start."""
_CLOSE = 1e-6


class StepFluid(NamedTuple):
    """Numbers that the fluid depends on."""

    product: float
    """b = C d/N: window of a flow that fills the link without a queue [packet]."""
    threshold: float
    """kappa = K/(C d)."""
    gain: float = 1.0 / 16.0
    """g"""

    @property
    def trip(self) -> float:
        """R*/d."""
        return 1.0 + self.threshold

    @property
    def window(self) -> float:
        """W* = (C d + K)/N, at which the queue is at the threshold [packet]."""
        return self.product * self.trip


class Cycle(NamedTuple):
    """A swing of the queue; lengths of the queue over C d, times over d."""

    highest: float
    lowest: float
    mean: float
    period: float
    marked: float
    """Share of time in which packets are marked."""
    lost: float = 0.0
    """Share of the link's capacity that stays unused."""
    periodic: bool = True
    """Whether it repeats itself."""


def marked_share(fluid: StepFluid) -> float:
    """Marked share of packets, and alpha, without a swing: p = alpha = sqrt(2/W*).

    At most 1 for windows of 2 packets and more.
    """
    return sqrt(2.0 / fluid.window)


def described_cycle(fluid: StepFluid) -> Cycle:
    """Limit cycle by the describing function of the step, with its offset: a prediction, not a proof.

    A queue q0 + X sin(omega t) is above K for the share p0 of the time where K − q0 = X cos(pi p0), and the first
    harmonic of the marks is N(X) X with N(X) = 2 sin(pi p0)/(pi X). Around W* and p0 = alpha0 = sqrt(2/W*) the marks
    move the queue by

        G(s) = (C p0/(2 R)) (1 + g/(R s + g)) e^(−s R)/((s + p0²/(2 R)) (s + 1/R)),

    so the cycle has the frequency where G is at −180 degrees, and X = (2/pi) sin(pi p0) |G|. It exists for every
    threshold. The prediction is good where the queue is nearly a sine, p0 near 1/2: windows of some packets.
    """
    p, g = marked_share(fluid), fluid.gain
    low, high = 1e-9, pi
    for _ in range(100):  # the lag rises up to pi at sigma = pi at the latest
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _lag(middle, p, g) < pi else (low, middle)
    sigma = low
    R = fluid.trip
    # (C p/(2 R)) R² over C d, with time in d: R p/2.
    size = 0.5 * p * R * abs((1.0 + g / (1j * sigma + g)) / ((1j * sigma + 0.5 * p * p) * (1j * sigma + 1.0)))
    X = 2.0 / pi * sin(pi * p) * size
    mean = fluid.threshold - X * cos(pi * p)
    return Cycle(mean + X, mean - X, mean, 2.0 * pi * R / sigma, p)


def _lag(sigma: float, p: float, g: float) -> float:
    """Lag of G at omega = sigma/R [rad]."""
    lead = (1j * sigma + 2.0 * g) / (1j * sigma + g)
    return sigma - float(np.angle(lead)) + float(np.arctan2(sigma, 0.5 * p * p)) + float(np.arctan(sigma))


def sawtooth_cycle(fluid: StepFluid) -> Cycle:
    """Limit cycle of N flows in step that are marked in one round trip of each cycle.

    alpha² (1 − alpha/4) = (2 W* + 1)/(W* + 1)², D = (W* + 1) alpha/2, the queue falls from K + N by N D, and the period
    is D round trips: for large windows alpha = sqrt(2/W*) and N D = sqrt(2 N (C d + K))/2. Alizadeh et al., "Data
    Center TCP (DCTCP)", SIGCOMM 2010, (3) to (12), with the round trip at the threshold. It holds while alpha hardly
    moves in a cycle, (15) there: g < 1.386/sqrt(2 W*).
    """
    W = fluid.window
    aim = (2.0 * W + 1.0) / (W + 1.0) ** 2
    low, high = 0.0, 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle * middle * (1.0 - 0.25 * middle) < aim else (low, middle)
    alpha = min(low, 1.0)
    swing = 0.5 * (W + 1.0) * alpha  # of a window [packet]
    top = fluid.threshold + 1.0 / fluid.product
    fall = swing / fluid.product
    lost = 0.0 if fall <= top else 0.5 * (fall - top) ** 2 / fall  # unused in the part of the ramp below 0
    return Cycle(top, max(top - fall, 0.0), top - 0.5 * fall, swing * fluid.trip, alpha, lost)


def fluid_cycle(fluid: StepFluid) -> Cycle:
    """Limit cycle of the fluid, integrated until it repeats itself.

    Runge-Kutta steps of R*/40 that end at every change of the mark; crossings of the threshold are roots of the cubic
    through the queue and its slope. Where it doesn't repeat itself to 1e-6, the last 50 cycles are described together.
    With W* of at most 2 every packet is marked: the queue rests above the threshold and the period is 0.
    """
    if fluid.window <= 2.0:
        rest = 2.0 / fluid.product - 1.0
        return Cycle(rest, rest, rest, 0.0, 1.0)
    highest, lowest, mean, period, marked, lost, periodic = _run(fluid.product, fluid.threshold, fluid.gain)
    return Cycle(highest, lowest, mean, period, marked, lost, bool(periodic))


def busy_threshold(product: float, gain: float = 1.0 / 16.0, spare: float = 0.0) -> float:
    """Smallest kappa = K/(C d) with which the fluid's queue stays longer than `spare` packets a flow, to 1e-6.

    Parameters
    ----------
    product : float
        b = C d/N [packet].
    gain : float
        g
    spare : float
        [packet]
    """
    low, high = 0.0, _AMPLE
    over = _over(product, high, gain, spare)
    while over <= 0.0:
        low, high = high, 2.0 * high
        over = _over(product, high, gain, spare)
    # From above by steps as long as what is over, which rises about as fast as kappa; else halfway.
    while high - low > _CLOSE:
        aim = high - over
        kappa = aim if low < aim < high else 0.5 * (low + high)
        found = _over(product, kappa, gain, spare)
        if found > 0.0:
            high, over = kappa, found
            if over < 0.1 * _CLOSE:
                break
        else:
            low = kappa
    return high


def _over(product: float, kappa: float, gain: float, spare: float) -> float:
    return fluid_cycle(StepFluid(product, kappa, gain)).lowest - spare / product


@njit(cache=True, error_model="numpy")
def _slopes(w: float, a: float, x: float, p: float, b: float, g: float) -> tuple[float, float, float]:
    R = 1.0 + max(x, 0.0)
    rise = w / (b * R) - 1.0
    if x <= 0.0 and rise < 0.0:
        rise = 0.0
    return (1.0 - 0.5 * w * a * p) / R, g / R * (p - a), rise


@njit(cache=True, error_model="numpy")
def _step(w: float, a: float, x: float, p: float, b: float, g: float, h: float) -> tuple[float, float, float]:
    k1 = _slopes(w, a, x, p, b, g)
    k2 = _slopes(w + 0.5 * h * k1[0], a + 0.5 * h * k1[1], x + 0.5 * h * k1[2], p, b, g)
    k3 = _slopes(w + 0.5 * h * k2[0], a + 0.5 * h * k2[1], x + 0.5 * h * k2[2], p, b, g)
    k4 = _slopes(w + h * k3[0], a + h * k3[1], x + h * k3[2], p, b, g)
    c = h / 6.0
    return (
        w + c * (k1[0] + 2.0 * (k2[0] + k3[0]) + k4[0]),
        a + c * (k1[1] + 2.0 * (k2[1] + k3[1]) + k4[1]),
        max(x + c * (k1[2] + 2.0 * (k2[2] + k3[2]) + k4[2]), 0.0),
    )


@njit(cache=True, error_model="numpy")
def _crossing(y0: float, y1: float, d0: float, d1: float, h: float) -> float:
    """Part of a step after which the cubic through two values of opposite signs and their slopes is 0, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        u = 0.5 * (low + high)
        v = 1.0 - u
        y = v * v * (y0 * (1.0 + 2.0 * u) + h * d0 * u) + u * u * (y1 * (1.0 + 2.0 * v) - h * d1 * v)
        if (y > 0.0) == (y1 > 0.0):
            high = u
        else:
            low = u
    return 0.5 * (low + high)


@njit(cache=True, error_model="numpy")
def _run(b: float, kappa: float, g: float) -> tuple[float, float, float, float, float, float, float]:
    """Highest, lowest and mean queue, period, marked and lost share, and whether it repeats itself."""
    trip = 1.0 + kappa
    h0 = trip / _STEPS
    p0 = min(np.sqrt(2.0 / (b * trip)), 1.0)
    w, a, x, p = 1.02 * b * trip, p0, kappa, 0.0
    pending = np.empty(_PENDING)  # times at which the mark changes for the sender
    first, count = 0, 0
    t = 0.0
    above = False
    began = -1.0
    highest, lowest, area, marked, lost = x, x, 0.0, 0.0, 0.0
    cycles = np.empty((_MOST_CYCLES, 6))
    n, agreed = 0, 0
    while n < _MOST_CYCLES and t < _MOST_TRIPS * trip:
        h = h0
        change = False
        if count > 0 and pending[first] <= t + h:
            h = max(pending[first] - t, 0.0)
            change = True
        before = _slopes(w, a, x, p, b, g)
        w1, a1, x1 = _step(w, a, x, p, b, g, h)
        crossed = (x1 > kappa) != above
        u = 1.0
        if crossed and h > 0.0:
            after = _slopes(w1, a1, x1, p, b, g)
            u = _crossing(x - kappa, x1 - kappa, before[2], after[2], h)
        if crossed:
            above = x1 > kappa
            if count < _PENDING:
                pending[(first + count) % _PENDING] = t + u * h + trip
                count += 1
        # Parts of the step before and after a crossing upwards, at which a cycle begins.
        split = u if crossed and above else 1.0
        highest, lowest = max(highest, x1), min(lowest, x1)
        idle = 0.0
        if x <= 0.0:
            idle = max(1.0 - 0.5 * (w + w1) / b, 0.0) * h
        area += 0.5 * (x + x1) * h * split
        marked += p * h * split
        lost += idle
        if crossed and above:
            now = t + u * h
            if began >= 0.0:
                span = now - began
                cycles[n] = (highest, lowest, area / span, span, marked / span, lost / span)
                same = n > 0
                for i in range(4):
                    if same and abs(cycles[n, i] - cycles[n - 1, i]) > _SAME * (cycles[n, i] + 1e-3):
                        same = False
                agreed = agreed + 1 if same else 0
                n += 1
                if agreed >= _AGREE:
                    break
            began = now
            highest, lowest, area, marked, lost = x1, x1, 0.5 * (x + x1) * h * (1.0 - u), p * h * (1.0 - u), 0.0
        w, a, x = w1, a1, x1
        t += h
        if change:
            p = 1.0 - p
            first = (first + 1) % _PENDING
            count -= 1
    if n == 0:  # hardly more than 2 packets: nearly every packet is marked
        return x, x, x, 0.0, p, 0.0, 0.0
    periodic = agreed >= _AGREE
    last = cycles[n - 1 : n] if periodic else cycles[max(n - _AVERAGED, 0) : n]
    span = last[:, 3].sum()
    return (
        last[:, 0].max(),
        last[:, 1].min(),
        (last[:, 2] * last[:, 3]).sum() / span,
        span / len(last),
        (last[:, 4] * last[:, 3]).sum() / span,
        (last[:, 5] * last[:, 3]).sum() / span,
        1.0 if periodic else 0.0,
    )
