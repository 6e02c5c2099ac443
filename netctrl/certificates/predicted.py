"""What users of a queue feel, from its certified loop: mean, deviation and 99th percentile of the delay, utilization.

Marks come by chance, so that a stable queue moves, too. With the density S of that noise, `delay_density`, and the loop
L that runs, the deviation of the delay is

    σ² = (1/π) ∫ S(ω)/|1 + L(e^(iωT))|² dω      up to half the law's own frequency.

Windows go on below what fills the path while the queue is empty, so the delay is a normal variable X clipped at 0. A
law with a target holds the mean of the clipped one, E[max(0, X)] = target, from which the mean of X follows; RED's is
its standing delay. Then 99 % of packets wait less than μ + 2.326 σ, and while X < 0 the windows lack −X/τ of what the
path holds, at most all of it: utilization is 1 − E[min(max(0, −X), τ)]/τ with the round trip τ without the queue.

A normal variable around a linear loop says nothing where the loop isn't linear over ±σ: where σ is comparable with the
delay itself, where the law's own output moves over its range down to 0, near the loop's limit, and at windows of a few
packets, which time-outs rule. There no figure is given, and the reason is (`PointFigures.why_not`); packets tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import erfc, exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace as replace_record

from netctrl.certificates.box import Box
from netctrl.certificates.loops import Mixture
from netctrl.certificates.point_records import PredictedFigures
from netctrl.certificates.search import box_points
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.shot_noise import delay_density

_ANGLES, _LOWEST = 160, 0.01
"""Frequencies, from this over the sum of the loop's lags on."""
_NINETY_NINE = 2.3263478740408408
"""Quantile of a normal variable."""
MOST_SPREAD, LEAST_DISTANCE, MOST_MOVED, LEAST_WINDOW = 0.7, 0.2, 1.0, 5.0
"""Where figures hold: σ over the standing delay, |1 + L|, deviation of the law's output over it, window [packet]."""


class PointFigures(NamedTuple):
    """Figures of a loop at one point."""

    mean_s: float
    std_s: float
    p99_s: float
    utilization: float
    why_not: str
    """Why they don't hold there; empty: they do."""


def point_figures(loop: QueueLoop, flows: float, rtt: float, *, drops: bool = False) -> PointFigures:
    """Figures of a stable loop at one point.

    Parameters
    ----------
    loop : QueueLoop
        With the link's rate, so that `flows` are those that share it.
    flows, rtt : float
        N and tau [s].
    drops : bool
        Whether packets are dropped and not marked.
    """
    law, epoch = loop.law, loop.epoch
    lags, _ = loop.slowest(np.array([flows]), np.array([rtt]))
    omega = np.geomspace(_LOWEST / float(lags[0]), pi / epoch, _ANGLES)
    away = np.abs(1.0 + loop.at(omega * epoch, flows, rtt))
    density = delay_density(loop, omega, flows, rtt, drops=drops) / away**2
    x = float(loop.output(flows, rtt))
    standing, deviation = float(loop.standing(x)), _root(density, omega)
    if isinstance(law, SampledPi):
        moved = -np.expm1(-1j * omega * epoch)
        steers = np.abs(law.integral / moved + law.proportional) / law.computed(x)
        mean = clipped_to(standing, deviation)
    else:
        steers = law.rise(x) / np.abs(1.0 + 1j * omega / law.corner) / x
        mean = standing
    above, square, below = clipped(mean, deviation)
    steered = _root(density * steers**2, omega)
    path = rtt * sum(k.share * k.stretch for k in loop.classes)
    window = float(loop.windows(flows, rtt).min())
    limits = (
        (window < LEAST_WINDOW, f"windows of {window:.3g} packets wait for time-outs"),
        (deviation > MOST_SPREAD * standing, f"marks move the queue by {deviation / standing:.2g} of its own delay"),
        (away.min() < LEAST_DISTANCE, f"the loop is near its limit, |1 + L| = {away.min():.2g}"),
        (steered > MOST_MOVED, f"marks move the law's output by {steered:.2g} of it"),
    )
    return PointFigures(
        mean_s=above,
        std_s=sqrt(max(square - above**2, 0.0)),
        p99_s=max(mean + _NINETY_NINE * deviation, 0.0),
        utilization=1.0 - (below - clipped(mean + path, deviation)[2]) / path,
        why_not=next((why for beyond, why in limits if beyond), ""),
    )


def _root(density: np.ndarray, omega: np.ndarray) -> float:
    """Deviation of what has this two-sided density."""
    return sqrt(float(np.trapezoid(density, omega)) / pi)


def clipped(mean: float, deviation: float) -> tuple[float, float, float]:
    """E[max(0, X)], E[max(0, X)²] and E[max(0, −X)] of a normal X."""
    z = mean / deviation
    under, bell = 0.5 * erfc(z / sqrt(2.0)), exp(-0.5 * z * z) / sqrt(2.0 * pi)
    above = mean * (1.0 - under) + deviation * bell
    return above, (mean**2 + deviation**2) * (1.0 - under) + mean * deviation * bell, above - mean


def clipped_to(target: float, deviation: float) -> float:
    """Mean of the normal variable whose clipped one has the mean `target`: it rises with it, by bisection."""
    low, high = -40.0 * deviation, target
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if clipped(middle, deviation)[0] < target else (low, middle)
    return 0.5 * (low + high)


def predicted(
    loops: Iterable[tuple[Mixture, QueueLoop]], box: Box, *, drops: bool, per_flow: bool
) -> tuple[PredictedFigures | None, str]:
    """Figures of a box whose loops are stable, at the point that was looked at with the longest 99th percentile, and
    the least utilization of all; or None, and where and why they don't hold.

    At one number of flows a Mbit/s the queue of the fewest flows moves most: S falls as 1/N, and L doesn't change.
    Where each flow has a queue of its own, it is one flow at its share of the rate.
    """
    inputs = box.inputs
    if inputs.flows is None or inputs.capacity_bit_per_s is None:
        return None, ""  # a window alone doesn't tell how many marks there are
    worst: PredictedFigures | None = None
    used = 1.0
    for mixture, loop in loops:
        for flows, rtt in box_points(loop, box):
            low, high = inputs.capacity_bit_per_s
            number = 1.0 if per_flow else max(inputs.flows[0], flows * low / high)
            capacity = high * number / flows
            found = point_figures(replace(loop, rate=loop.rate * number / flows), number, rtt, drops=drops)
            at = PredictedFigures(
                sender=mixture.text,
                flows=number,
                capacity_bit_per_s=capacity,
                rtt_s=rtt,
                delay_mean_s=found.mean_s,
                delay_std_s=found.std_s,
                delay_p99_s=found.p99_s,
                utilization=found.utilization,
            )
            if found.why_not:
                return None, f"no figures in ms by the loop alone: {found.why_not} ({at.point}); --check packet tells"
            used = min(used, at.utilization)
            if worst is None or at.delay_p99_s > worst.delay_p99_s:
                worst = at
    return None if worst is None else replace_record(worst, utilization=used), ""
