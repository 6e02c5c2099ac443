"""Noise of a queue's delay: what chance does to the windows of a certified loop whose packets are marked one by one.

Of class i, λ_i = p_i C y_i packets a second are marked. In the loop a change δp_i/p_i moves the delay by A_i(s) times
it through windows, and where packets are dropped by M_i(s) times it, since each is missing until it is sent again,

    M_i = y_i p_i (1 − e^(−s d_i))/s,    d_i = R_i (1 + 3/w_i): three duplicate acknowledgements tell of it.

A mark finds a window open with the chance ρ_i, as one that is cut is deaf for a round trip, and takes Δ from it. The
change moves λ_i ρ_i E[Δ_i] of what cuts take a second, so that one cut moves the delay by A_i Δ/(λ_i ρ_i E[Δ_i]), and
one mark by M_i/λ_i. Marks that come independently are shot noise, whose density is their rate times the mean square of
what one does; so without the law's answer the delay has the two-sided density

    S(ω) = Σ_i (|A_i + M_i|² + ((1 + v_i)/ρ_i − 1) |A_i|²)/λ_i + (c²(ω) − 1) |Σ_i (A_i + M_i)|²/Σ_i λ_i,

with v_i = Var Δ_i/E[Δ_i]²; the loop L divides it by |1 + L|². c² is the density of all marks over their rate, 1 where
they are independent; it is common to all classes, each of which is hit in proportion to its rate. A law that spaces its
marks has with the intervals' transform φ

    c² = Re((1 + φ)/(1 − φ)),   φ = e^(−.85 s/(C P))/(1 + s/(C P)) of PIE, (1 − e^(−s/(C P)))/(s/(C P)) of RED,

P its probability: PIE drops none of the first .85/P packets on average (Linux, sch_pie; RFC 8034, 4.2), RED one of the
next 1/P, each with the same chance (Floyd and Jacobson 1993). At low frequencies they are 1/1.85² and 1/3.

A window is hit in proportion to its size. The moments of a window that grows by a a round trip and is cut to β of it
with the intensity p w follow from the generator, E[w^(k+1)] = a k E[w^(k−1)]/(p (1 − β^k)), so that with w √p = κ

    v = 2 κ² (1 − β)²/(a (1 − β²)) − 1,   .144 of Reno, .083 of Cubic's Reno-friendly line.

On Cubic's curve it is .342, in between as the renewal process has it (a simulation of 200,000 cuts for each share y).
Nothing here is fitted to packets; packets judge it in the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.laws.targets.pie import PIE_SPREAD
from netctrl.plants.queues.clocked_response import ClockedMode, clocked_moment
from netctrl.plants.queues.cubic_response import cubic_share
from netctrl.plants.queues.high_frequencies import Equilibrium
from netctrl.plants.queues.queue_laws import Averaged, SampledPi, WindowClass
from netctrl.plants.queues.queue_response import QueueResponse
from netctrl.plants.queues.several_trips import shared_queue
from netctrl.plants.queues.window_response import DUPLICATES, Sender

_CURVED = np.array(
    [(0.0, 0.0), (0.018, 0.0), (0.092, 0.013), (0.218, 0.16), (0.405, 0.515), (0.734, 0.945), (0.94, 1.0), (1.0, 1.0)]
).T
_ON_CURVE = 0.342
"""v on Cubic's curve, and how far v has gone there from the Reno-friendly line at shares y of flows on the curve."""


def delay_density(
    loop: QueueResponse, omega: np.ndarray, flows: Any, rtt: Any, *, drops: bool = False, rate: Any = None
) -> np.ndarray:
    """Density S of the delay's noise without the law's answer, two-sided, (..., n) [s² s].

    Parameters
    ----------
    loop : QueueResponse
    omega : ndarray
        Angular frequencies above 0, (..., n) [rad/s].
    flows, rtt : float or ndarray
        N and tau [s], broadcast with `omega`.
    drops : bool
        Whether packets are dropped and not marked.
    rate : float or ndarray, optional
        C where it isn't the loop's, with the same share for each flow [packet/s].
    """
    x, rate = loop.output(flows, rtt), loop.rate if rate is None else rate
    point = loop.point(x, flows, rtt)
    density: Any = 0.0
    together: Any = 0.0
    all_marks: Any = 0.0
    for k, moved, trip, share, mode in zip(
        loop.classes, _by_class(loop, 1j * omega, point), point.trips, point.shares, point.modes, strict=True
    ):
        p = k.factor * x**k.power
        marks, each = rate * share * p, moved
        if drops and not k.sender.notice:  # the response of a sender with a notice has it
            away = trip * (1.0 + DUPLICATES / k.window(x, trip))
            each = moved + share * p * -np.expm1(-1j * omega * away) / (1j * omega)
        chance = (1.0 + cut_variation(k.sender, p, trip)) / _open_share(k, p, trip, mode) - 1.0
        density += (np.abs(each) ** 2 + chance * np.abs(moved) ** 2) / marks
        together, all_marks = together + each, all_marks + marks
    return density + (marks_density(loop, omega, all_marks, rate) - 1.0) * np.abs(together) ** 2 / all_marks


def _by_class(loop: QueueResponse, s: np.ndarray, point: Equilibrium) -> list[np.ndarray]:
    """A_i(s) of each class: delay by a relative change of its marks; of a sender with a notice A_i + M_i [s]."""
    turned = [[np.exp(-s * lag) for lag in lags] for lags in point.lags(loop.classes)]
    marks = [np.exp(-s * delay) for delay in loop.delays(point, -point.late)]  # from a mark to its queue
    parts, den = loop.parts(s, point, turned, marks)
    moves = [part / k.power for k, part in zip(loop.classes, parts, strict=True)]  # of its marks, and not of x
    if not loop.several_clocks:
        return [move / den for move in moves]
    stretches, none = [k.stretch for k in loop.classes], np.zeros_like(s)
    alone = [[move if i == j else none for j in range(len(moves))] for i, move in enumerate(moves)]
    return [shared_queue(s, stretches, each, point.trips, point.shares) for each in alone]


def _open_share(k: WindowClass, p: Any, trip: Any, mode: Any) -> Any:
    """ρ, share of a class's marks that cut a window: those that find it open; each of a scalable sender's counts."""
    if k.sender.scalable:
        return 1.0
    if isinstance(mode, ClockedMode):
        return 1.0 / (1.0 + mode.hits * (1.0 + mode.notice))
    return 1.0 / (1.0 + p * k.sender.window(p, trip))


def cut_variation(sender: Sender, p: Any, trip: Any) -> Any:
    """v, variance of a cut over its mean's square; 0 of a scalable sender, of which each mark takes the same."""
    if sender.scalable:
        return 0.0
    friendly = clocked_moment(sender)
    if not sender.curve:
        return friendly
    y = cubic_share(np.log(p), np.log(trip), sender.curve, sender.increase)
    return friendly + (_ON_CURVE - friendly) * np.interp(y, *_CURVED)


def marks_density(loop: QueueResponse, omega: np.ndarray, marks: Any, rate: Any) -> Any:
    """c²(ω), density of the marks of all classes over their rate [1/s] on a link of `rate` [packet/s]: below 1 of a law
    that spaces them, (..., n)."""
    law = loop.law
    if isinstance(law, SampledPi) and law.spaced:
        turns = 1j * omega / (PIE_SPREAD * marks)  # s/(C P): of P is dropped the share 1/1.85
        phi = np.exp((1.0 - PIE_SPREAD) * turns) / (1.0 + turns)
    elif isinstance(law, Averaged) and law.spaced:
        x = marks / rate
        turns = 1j * omega / rate * ((2.0 - x) / x)  # x = 2 P/(1 + P) is marked
        phi = -np.expm1(-turns) / turns
    else:
        return 1.0
    return np.real((1.0 + phi) / (1.0 - phi))
