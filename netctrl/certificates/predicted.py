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
from math import erfc, inf, pi, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict

from netctrl.certificates.box import Box, box_of, worst_of
from netctrl.certificates.loops import Mixture, box_loops
from netctrl.certificates.point_records import BeyondLoop, PredictedFigures, most_p99_s
from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.search import MarginMap, box_points
from netctrl.certificates.subject import Subject
from netctrl.frequency.margin_grid import gain_factors
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.shot_noise import delay_density

_ANGLES, _LOWEST = 160, 0.01
"""Frequencies, from this over the sum of the loop's lags on."""
_NINETY_NINE = 2.3263478740408408
"""Quantile of a normal variable."""
_NEWTON = 60
"""Steps, at most."""
MOST_SPREAD, LEAST_DISTANCE, MOST_MOVED, LEAST_WINDOW = 0.7, 0.2, 1.0, 5.0
"""Where figures hold: σ over the standing delay, |1 + L|, deviation of the law's output over it, window [packet]."""
_LIMITS = (
    (LEAST_WINDOW, -1, "windows of {:.3g} packets wait for time-outs"),
    (MOST_SPREAD, 1, "marks move the queue by {:.2g} of its own delay"),
    (LEAST_DISTANCE, -1, "the loop is near its limit, |1 + L| = {:.2g}"),
    (MOST_MOVED, 1, "marks move the law's output by {:.2g} of it"),
    (0.0, 0, "marks carry the law's output to {:.3g}"),
)
"""Where figures end, the power with which what they rest on is over that, and why; 0: the law's greatest output."""


class PointFigures(NamedTuple):
    """Figures of a loop at k points, (k,) each."""

    mean_s: np.ndarray
    std_s: np.ndarray
    p99_s: np.ndarray
    utilization: np.ndarray
    beyond: np.ndarray
    """What the figures rest on over where it ends, (5, k): above 1 they don't hold, in the order of `_LIMITS`."""

    def why_not(self, k: int, greatest: float) -> str:
        """Why those of a point don't hold; empty: they do."""
        for over, (most, power, why) in zip(self.beyond[:, k], _LIMITS, strict=True):
            if over > 1.0:
                return why.format((most or greatest) * over**power)
        return ""


def point_figures(
    loop: QueueLoop,
    flows: np.ndarray,
    rtt: np.ndarray,
    number: np.ndarray | None = None,
    *,
    drops: bool = False,
    greatest: float = inf,
    coarse: bool = False,
) -> PointFigures:
    """Figures of a stable loop at points.

    Parameters
    ----------
    loop : QueueLoop
    flows, rtt : ndarray
        N and tau [s], (k,).
    number : ndarray, optional
        Flows that share the link there, at the rate that gives each what it has of the loop's, (k,); `flows` by
        default.
    drops : bool
        Whether packets are dropped and not marked.
    greatest : float
        Output beyond which the law acts differently, as where RED drops every packet.
    coarse : bool
        Whether the response is good to some 1e-5 only.
    """
    law, epoch, x = loop.law, loop.epoch, loop.output(flows, rtt)
    lags, _ = loop.slowest(flows, rtt)
    share = np.linspace(0.0, 1.0, _ANGLES)
    omega = (_LOWEST / lags[:, None]) ** (1.0 - share) * (pi / epoch) ** share
    at = flows[:, None], rtt[:, None]
    away = np.abs(1.0 + loop.at(omega * epoch, *at, coarse=coarse))
    rate = loop.rate * (1.0 if number is None else number / flows)
    density = delay_density(loop, omega, *at, drops=drops, rate=np.reshape(rate, (-1, 1))) / away**2
    standing, deviation = np.broadcast_to(loop.standing(x), x.shape), _root(density, omega)
    if isinstance(law, SampledPi):
        moved = -np.expm1(-1j * omega * epoch)
        steers = np.abs(law.integral / moved + law.proportional) / law.computed(x)[:, None]
        mean = clipped_to(standing, deviation)
    else:
        steers = (law.rise(x) / x)[:, None] / np.abs(1.0 + 1j * omega / law.corner)
        mean = standing
    above, square, below = clipped(mean, deviation)
    steered = _root(density * steers**2, omega)
    path = rtt * sum(k.share * k.stretch for k in loop.classes)
    carried = law.computed(x) * (1.0 + _NINETY_NINE * steered)
    beyond = (
        LEAST_WINDOW / loop.windows_of(x, rtt).min(axis=0),
        deviation / standing / MOST_SPREAD,
        LEAST_DISTANCE / away.min(axis=1),
        steered / MOST_MOVED,
        carried / greatest,
    )
    return PointFigures(
        mean_s=above,
        std_s=np.sqrt(np.maximum(square - above**2, 0.0)),
        p99_s=np.maximum(mean + _NINETY_NINE * deviation, 0.0),
        utilization=1.0 - (below - clipped(mean + path, deviation)[2]) / path,
        beyond=np.stack(beyond),
    )


def _root(density: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Deviations of what has these two-sided densities, (k,)."""
    return np.sqrt(np.trapezoid(density, omega) / pi)


_tail = np.vectorize(erfc, otypes=[float])


def clipped(mean: Any, deviation: Any) -> tuple[Any, Any, Any]:
    """E[max(0, X)], E[max(0, X)²] and E[max(0, −X)] of a normal X."""
    z = mean / deviation
    over, bell = 0.5 * _tail(-z / sqrt(2.0)), np.exp(-0.5 * z * z) / sqrt(2.0 * pi)
    above = mean * over + deviation * bell
    return above, (mean**2 + deviation**2) * over + mean * deviation * bell, above - mean


def clipped_to(target: Any, deviation: Any) -> Any:
    """Mean of the normal variable whose clipped one has the mean `target`: Newton's method, which falls to it since the
    clipped mean is convex and rises by at most as much."""
    mean = target
    for _ in range(_NEWTON):
        move = (clipped(mean, deviation)[0] - target) / (0.5 * _tail(-mean / deviation / sqrt(2.0)))
        mean = mean - move
        if np.all(np.abs(move) <= 1e-12 * deviation):
            break
    return mean


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
        flows, rtt = np.transpose(points)
        number = np.ones_like(flows) if subject.per_flow else np.maximum(inputs.flows[0], flows * low / high)
        at = point_figures(loop, flows, rtt, number, drops=subject.drops, greatest=subject.greatest)
        factors = gain_factors(loop, flows, rtt)
        standing = np.broadcast_to(loop.standing(loop.output(flows, rtt)), flows.shape)
        each = zip(number, high * number / flows, rtt, standing, factors, *at[:4], strict=True)
        for k, values in enumerate(each):
            n, rate, tau, delay, factor, mean, deviation, late, used = map(float, values)
            most = most_p99_s(inputs.p99_s, delay)
            if why := "the loop is unstable" if factor <= 1.0 else at.why_not(k, subject.greatest):
                where = BeyondLoop(sender=mixture.text, flows=n, capacity_bit_per_s=rate, rtt_s=tau, why=why)
                silent.append(((used, -late / most, factor), where))
            else:
                found.append(
                    PredictedFigures(
                        sender=mixture.text,
                        flows=n,
                        capacity_bit_per_s=rate,
                        rtt_s=tau,
                        delay_mean_s=mean,
                        delay_std_s=deviation,
                        delay_p99_s=late,
                        utilization=used,
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


# ---------------------------------------------------------------------- maps

_APART = 0.12
"""With which deviations are within 1.1 % of those at points, and delays within .5 %."""


def figures_map(subject: Subject, inputs: CertifyInputs, over: MarginMap, apart: float = _APART) -> np.ndarray | None:
    """Figures at the points of a map of margins, each with the fewest flows that the box has at its rate of a flow.

    Parameters
    ----------
    subject : Subject
    inputs : CertifyInputs
        Box, and senders.
    over : MarginMap
        Around the box.
    apart : float
        Logarithm of the ratio of flows, and of round-trip times, between points that are computed: cubics through the
        four nearest lie between.

    Returns
    -------
    ndarray or None
        Mean, deviation and 99th percentile of the delay [s] of the sender whose last is longest, and the least
        utilization, (4, m, n); nan where the loop doesn't say them. None: nowhere, as without flows and a rate.
    """
    if inputs.flows is None or inputs.capacity_bit_per_s is None or subject.jumps:
        return None
    box = box_of(subject, **asdict(inputs))
    low, high = inputs.capacity_bit_per_s
    rtt, flows = over.rtt_s, box.rate / over.rate_per_flow
    (rows, by_rtt), (columns, by_flows) = _nodes(rtt, apart), _nodes(flows, apart)
    found = np.full((4, len(rtt), len(flows)), [[[-inf]], [[-inf]], [[-inf]], [[inf]]])
    silent = ~(over.gain_margin_db > 0.0)
    loops = box_loops(subject, box, [((flows[-1], flows[0]), (rtt[0], rtt[-1]))])
    for _, loop in loops:
        x = np.log(loop.output(columns, rows[:, None]))
        wanted = loop.holds(np.exp(by_rtt @ x @ by_flows.T))
        near = (by_rtt.T != 0.0).astype(float) @ wanted @ (by_flows != 0.0) > 0.0
        if not near.any():
            continue
        i, k = np.nonzero(near)
        fewest = 0.0 if subject.in_bytes else inputs.flows[0]
        number = np.ones(len(k)) if subject.per_flow else np.maximum(fewest, columns[k] * low / high)
        at = point_figures(
            replace(loop, within=(0.0, inf)),
            columns[k],
            rows[i],
            number,
            drops=subject.drops,
            greatest=subject.greatest,
            coarse=True,
        )
        nodes = np.zeros((9, *near.shape))
        steep = at.std_s**-2, (at.p99_s - at.mean_s) ** -2  # which the distance from the loop's limit makes straight
        nodes[:, i, k] = np.nan_to_num(np.stack([at.mean_s, *steep, at.utilization, *at.beyond]), posinf=0.0)
        part = tuple(slice(each[0], each[-1] + 1) for each in (np.flatnonzero(wanted.any(axis=k)) for k in (1, 0)))
        inside, known = wanted[part], found[:, *part]
        here = by_rtt[part[0]] @ nodes @ by_flows[part[1]].T
        here[1:3] = 1.0 / np.sqrt(np.maximum(here[1:3], 1e-18))
        here[2] += here[0]
        silent[part] |= inside & (here[4:] > 1.0).any(axis=0)
        longer = inside & (here[2] > known[2])
        np.copyto(known[:3], here[:3], where=longer)
        np.minimum(here[3], known[3], out=known[3], where=inside)
    return np.where(silent | ~np.isfinite(found), np.nan, found)


def _nodes(axis: np.ndarray, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Points in equal ratios from one end of an axis to the other, (p,), and their weights at the axis's, (n, p)."""
    count = max(4, 2 + int(np.ptp(np.log(axis)) / apart))
    places = np.linspace(0.0, count - 1.0, len(axis))
    first = np.clip(places.astype(int) - 1, 0, count - 4)
    weights = np.zeros((len(axis), count))
    for j in range(4):  # Lagrange's
        others = [i for i in range(4) if i != j]
        weights[np.arange(len(axis)), first + j] = prod((places - first - i) / (j - i) for i in others)
    return np.geomspace(axis[0], axis[-1], count), weights


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
