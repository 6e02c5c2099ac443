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

from collections.abc import Sequence
from dataclasses import replace
from math import erfc, exp, inf, pi, sqrt
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import Box, worst_of
from netctrl.certificates.loops import Mixture
from netctrl.certificates.point_records import BeyondLoop, PredictedFigures, most_p99_s
from netctrl.certificates.search import box_points
from netctrl.certificates.subject import Subject
from netctrl.frequency.margin_grid import gain_factors
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


def point_figures(
    loop: QueueLoop, flows: float, rtt: float, *, drops: bool = False, greatest: float = inf
) -> PointFigures:
    """Figures of a stable loop at one point.

    Parameters
    ----------
    loop : QueueLoop
        With the link's rate, so that `flows` are those that share it.
    flows, rtt : float
        N and tau [s].
    drops : bool
        Whether packets are dropped and not marked.
    greatest : float
        Output beyond which the law acts differently, as where RED drops every packet.
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
        (
            law.computed(x) * (1.0 + _NINETY_NINE * steered) > greatest,
            f"marks carry the law's output to {greatest:.3g}",
        ),
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


class Predicted(NamedTuple):
    """What the loop alone says of a box."""

    figures: PredictedFigures | None
    """Worst of all points that were looked at; None where there are points without a figure."""
    beyond: tuple[BeyondLoop, ...]
    """Of the points without a figure those that seem worst: least used, with the longest delays, least stable."""


def predicted(loops: Sequence[tuple[Mixture, QueueLoop]], box: Box, subject: Subject) -> Predicted:
    """Figures of a box at the points that are looked at: those of the point whose 99th percentile is longest beside
    what is asked there, with the least utilization of all.

    At one number of flows a Mbit/s the queue of the fewest flows moves most: S falls as 1/N, and L doesn't change.
    Where each flow has a queue of its own, it is one flow at its share of the rate.
    """
    inputs = box.inputs
    if inputs.flows is None or inputs.capacity_bit_per_s is None:
        return Predicted(None, ())  # a window alone doesn't tell how many marks there are
    low, high = inputs.capacity_bit_per_s
    found: list[PredictedFigures] = []
    silent: list[tuple[tuple[float, float, float], BeyondLoop]] = []
    for mixture, loop in loops:
        points = box_points(loop, box)
        if not points:
            continue
        for (flows, rtt), factor in zip(points, gain_factors(loop, *np.transpose(points)).tolist(), strict=True):
            number = 1.0 if subject.per_flow else max(inputs.flows[0], flows * low / high)
            here = replace(loop, rate=loop.rate * number / flows)
            at = point_figures(here, number, rtt, drops=subject.drops, greatest=subject.greatest)
            why = at.why_not if factor > 1.0 else "the loop is unstable"
            most = most_p99_s(inputs.p99_s, float(here.standing(here.output(number, rtt))))
            where = BeyondLoop(
                sender=mixture.text, flows=number, capacity_bit_per_s=high * number / flows, rtt_s=rtt, why=why
            )
            if why:
                silent.append(((at.utilization, -at.p99_s / most, factor), where))
            else:
                found.append(
                    PredictedFigures(
                        sender=where.sender,
                        flows=where.flows,
                        capacity_bit_per_s=where.capacity_bit_per_s,
                        rtt_s=where.rtt_s,
                        delay_mean_s=at.mean_s,
                        delay_std_s=at.std_s,
                        delay_p99_s=at.p99_s,
                        utilization=at.utilization,
                        most_p99_s=most,
                        least_utilization=inputs.utilization,
                    )
                )
    if silent:
        worst = (min(silent, key=lambda each: each[0][k])[1] for k in range(3))
        return Predicted(None, tuple(dict.fromkeys(worst)))
    if not found:
        return Predicted(None, ())
    return Predicted(worst_of(found), ())


def without_loop(boxes: Sequence[Box], reasons: Sequence[str | None]) -> tuple[BeyondLoop, ...]:
    """Corners of boxes of one sender each, of those that have a point without an equilibrium: with the smallest and the
    largest windows."""
    found = []
    for box, why in zip(boxes, reasons, strict=True):
        number, capacity = box.inputs.flows, box.inputs.capacity_bit_per_s
        if why is None or number is None or capacity is None:
            continue
        for flows, rate, rtt in ((number[1], capacity[0], box.rtt[0]), (number[0], capacity[1], box.rtt[1])):
            sender = box.inputs.senders[0]
            found.append(BeyondLoop(sender=sender, flows=flows, capacity_bit_per_s=rate, rtt_s=rtt, why=why))
    return tuple(dict.fromkeys(found[:4]))
