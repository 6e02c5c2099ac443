"""DCTCP's fluid at a queue that marks above a threshold, and its limit cycle.

Alizadeh, Javanmard, Prabhakar, "Analysis of DCTCP: Stability, Convergence, and Fairness", SIGMETRICS 2011, (3) to (5):
N windows W and averages alpha, the queue q and the round trip R = d + q/C obey

    W' = 1/R − W alpha p/(2 R),   alpha' = (g/R)(p − alpha),   q' = N W/R − C,   p(t) = 1{q(t − R*) > K}.

The packet that meets the threshold waits K/C, so that its mark comes back after R* = d + K/C: this delay is exact
although R moves. With time in d and the queue as x = q/(C d) only three numbers remain: b = C d/N, kappa = K/(C d) and
g.

    w' = 1/R − w alpha p/(2 R),   alpha' = (g/R)(p − alpha),   x' = w/(b R) − 1,   R = 1 + x

A step has no slope: no equilibrium is stable, and the queue always swings around the threshold.

The same fluid and DCQCN's are integrated where marks rise steeply with the queue (`dctcp_ramp_cycle`). Where the rise
is narrower than the queue's own cycle, or the queue stands above it, small deviations say nothing: the queue swings
over the whole of it. The fluid in time doesn't depend on the slope, so that what it shows moves continuously with the
thresholds, down to a step. DCQCN's fluid is that of `netctrl.plants.ecn.dcqcn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, cos, inf, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from netctrl.plants.ecn.dcqcn import DcqcnSender, dcqcn_equilibrium

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
    deviation: float = 0.0
    """Of the queue around its mean."""


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
    from netctrl.plants.ecn.step_kernel import run_step  # Numba loads slowly

    highest, lowest, mean, deviation, *rest = run_step(fluid.product, fluid.threshold, fluid.gain)
    period, marked, lost, periodic = rest
    return Cycle(highest, lowest, mean, period, marked, lost, bool(periodic), deviation)


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


Points = Sequence[tuple[float, float]]
"""(queue [packet], probability), rising; two at one queue are a jump."""

_STEPS = 40
"""In a round trip."""
_CYCLES = 40
"""Cycles that are left out, and that are described after them."""
_MOST_STEPS = 1_000_000
_REST = 1e-4
"""Swing over the mean queue below which the queue is at rest."""


def dctcp_ramp_cycle(
    flows: float,
    rate: float,
    rtt_s: float,
    marks: Points,
    gain: float = 1.0 / 16.0,
    forgetting: float = 0.0,
    *,
    spaced: bool = False,
) -> Cycle:
    """Where the queue of DCTCP's flows ends below marks that rise with it: a cycle, or rest.

    Parameters
    ----------
    flows, rate, rtt_s : float
        N, C [packet/s] and d without the queue [s].
    marks : sequence of (float, float)
        Points (queue [packet], probability) of the law, straight in between.
    gain : float
        g
    forgetting : float
        −ln(1 − weight) of the average by which packets are marked; 0: the present queue.
    spaced : bool
        Whether 2p/(1 + p) of packets are marked.

    Returns
    -------
    Cycle
        In C d and d; the period is 0 at rest.

    Examples
    --------
    >>> step, narrow = (dctcp_ramp_cycle(4.0, 83333.0, 1e-3, [(20.0, 0.0), (end, 1.0)]) for end in (20.0, 20.001))
    >>> round(step.highest * 83.333, 2), abs(step.highest - narrow.highest) < 1e-4
    (23.98, True)
    """
    from netctrl.plants.ecn.ramp_kernel import run_dctcp_ramp  # Numba loads slowly

    product = rate * rtt_s
    points = np.array([(q / product, p) for q, p in marks])
    b, longest = product / flows, float(points[-1, 0])
    trip = 1.0 + float(points[0, 0])
    # A cycle takes some sqrt(W/2) round trips, in which an average may lag.
    cycle = (3.0 + sqrt(0.5 * b * (1.0 + longest))) * (1.0 + longest)
    cycle += 3.0 / (forgetting * product) if forgetting else 0.0
    h = min(trip / _STEPS, 0.1 / (forgetting * product) if forgetting else inf)
    steps = min(2 * ceil(_CYCLES * cycle / h), _MOST_STEPS)
    return _described(run_dctcp_ramp(b, points, gain, forgetting * product, spaced, points[0, 0], h, steps), h)


def dcqcn_ramp_cycle(
    sender: DcqcnSender, flows: float, rate: float, rtt_s: float, marks: Points, *, arriving: bool = False
) -> Cycle:
    """The same of DCQCN's flows, whose marks overtake the queue unless packets are marked as they come."""
    from netctrl.plants.ecn.ramp_kernel import run_dcqcn_ramp

    each = rate / flows
    points = np.array([(q / flows, p) for q, p in marks])
    at = dcqcn_equilibrium(sender, each)
    start = np.array([points[0, 0], 1.02 * each, float(at.target), float(at.alpha)])
    h = 2.0 * min(rtt_s, sender.notification_s, sender.timer_s, sender.alpha_s) / _STEPS
    # Recovery takes F + 1 increases of either kind, and rates agree with alpha after 1/g updates.
    recovery = min(sender.timer_s, sender.counter / each) * (sender.stages + 1.0)
    cycle = 2.0 * recovery + rtt_s + sender.alpha_s / sender.gain / 10.0
    steps = min(2 * ceil(_CYCLES * cycle / h), _MOST_STEPS)
    found = run_dcqcn_ramp(each, points, tuple(sender), rtt_s, arriving, start, h, steps)
    scale = np.array([flows, flows, 1.0])[:, None]
    found = found * scale / np.array([rate * rtt_s, rate * rtt_s, 1.0])[:, None]
    return _described(found, h / rtt_s)


def _described(found: np.ndarray, h: float) -> Cycle:
    """The second half of a run, in steps of h."""
    queue, unused, marked = found[:, found.shape[1] // 2 :]
    highest, lowest, mean = float(queue.max()), float(queue.min()), float(queue.mean())
    period = 0.0
    if highest - lowest > _REST * mean:
        up = np.flatnonzero((queue[1:] > mean) & (queue[:-1] <= mean))
        period = h * float(up[-1] - up[0]) / (len(up) - 1) if len(up) > 1 else h * len(queue)
    lost, deviation = float(unused.mean()) / h, float(queue.std()) if period else 0.0
    return Cycle(highest, lowest, mean, period, float(marked.mean()), lost, deviation=deviation)
