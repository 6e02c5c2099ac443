"""First look at DCQCN's loop at many points: where it is worst, and how far the design rule is kept."""

from __future__ import annotations

from math import inf, radians
from typing import NamedTuple, Protocol

import numpy as np

from netctrl.certificates.box import MIN_FACTOR
from netctrl.certificates.ecn.points import Point
from netctrl.certificates.margin_records import MIN_PHASE_DEG
from netctrl.frequency.sampled_stability import deciding
from netctrl.plants.ecn.dcqcn import (
    DcqcnPolynomials,
    DcqcnSender,
    dcqcn_equilibrium,
    dcqcn_polynomials,
    dcqcn_response,
    dcqcn_settles,
)

__all__ = ["longest_rtt", "smallest_max", "worst_points"]

_FREQUENCIES = 1500
"""Frequencies of a first look, from which the worst points are taken."""
_FAR, _FURTHER, _HALVED = 100.0, 1.5, 10
"""Factor of the longest round trip from and up to which a reach is searched, its steps, and the halvings after."""
_FLATTEST = 1e6
"""Factor by which marks may rise less than the gain margin asks for, in search of the phase margin."""


class Thresholds(Protocol):
    """Part of DCQCN's subject that a look needs."""

    @property
    def min_bytes(self) -> float: ...

    @property
    def max_bytes(self) -> float: ...

    @property
    def slope(self) -> float: ...

    @property
    def arriving(self) -> bool: ...

    @property
    def timer_s(self) -> float: ...

    @property
    def alpha_s(self) -> float: ...

    @property
    def notification_s(self) -> float: ...

    def sender(self, packet_bytes: float) -> DcqcnSender: ...


class _Loads(NamedTuple):
    """Flows and rates with their equilibria, which don't depend on the round-trip time; (k, 1)."""

    rate: np.ndarray
    """C [packet/s]."""
    slope: float
    """dp/dq [1/packet]."""
    wait: np.ndarray
    """Queue's delay in the loop [s]."""
    response: DcqcnPolynomials


def _loads(subject: Thresholds, flows: np.ndarray, rate: np.ndarray, packet_bytes: float) -> _Loads:
    sender = subject.sender(packet_bytes)
    wait = np.zeros(rate.shape)
    if subject.arriving:
        probability = dcqcn_equilibrium(sender, rate / flows).probability
        wait = (subject.min_bytes + probability / subject.slope) / (rate * packet_bytes)
    return _Loads(rate, subject.slope * packet_bytes, wait, dcqcn_polynomials(sender, rate / flows))


def _look(subject: Thresholds, loads: _Loads, rtt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gain margin as a factor and least distance from the negative axis where |L| is 1 [rad], (k,), by the response at
    many frequencies; a factor of 0 where no gain is stable, as rates don't settle at a constant probability either."""
    delay = rtt + loads.wait
    slowest = float(delay.max()) + subject.timer_s + subject.alpha_s + subject.notification_s
    direct = float(np.abs(loads.response.echo[0]).max())  # echo/plain is this over s at high frequencies
    frequency = np.geomspace(1e-3 / slowest, max(20.0 / float(delay.min()), 3.0 * direct), _FREQUENCIES)
    response = dcqcn_response(loads.response, loads.rate, loads.slope, delay, frequency)
    size, real, above = np.abs(response), response.real, response.imag
    with np.errstate(divide="ignore", invalid="ignore"):
        part = above[:, :-1] / (above[:, :-1] - above[:, 1:])
        crossed = -(real[:, :-1] + part * (real[:, 1:] - real[:, :-1]))
        met = np.diff(np.signbit(above), axis=1) & (crossed > 0.0)
        gains = np.where(met, 1.0 / crossed, np.inf)
    decides = deciding(gains, np.where(met, np.where(above[:, 1:] > above[:, :-1], 2, -2), 0))
    factor = np.where(dcqcn_settles(loads.response, delay, frequency), gains[np.arange(len(decides)), decides], 0.0)
    log, turned = np.log(size), np.angle(-response)
    step = np.diff(log, axis=1)
    part = -log[:, :-1] / np.where(step == 0.0, 1.0, step)
    between = np.abs(turned[:, :-1] + part * np.angle(response[:, 1:] / response[:, :-1]))
    return factor, np.where(np.diff(size > 1.0, axis=1), between, np.inf).min(axis=1)


def worst_points(subject: Thresholds, points: list[Point], packet_bytes: float) -> list[Point]:
    """Points with the least gain and phase margin at a first look."""
    if len(points) == 1:
        return points
    flows, rtt, rate = (np.array(each)[:, None] for each in zip(*points, strict=True))
    factor, phase = _look(subject, _loads(subject, flows, rate, packet_bytes), rtt)
    return [points[i] for i in sorted({int(np.argmin(factor)), int(np.argmin(phase))})]


def longest_rtt(subject: Thresholds, points: list[Point], packet_bytes: float) -> float | None:
    """Round-trip time up to which all flows and rates of the points keep the rule; None: not at the shortest."""
    flows, rate = (np.array(each)[:, None] for each in zip(*sorted({(p.flows, p.rate) for p in points}), strict=True))
    loads, end = _loads(subject, flows, rate, packet_bytes), max(each.rtt_s for each in points)

    def kept(rtt: float) -> bool:
        return _keeps(subject, loads, np.full(flows.shape, rtt))

    low, high = None, end / _FAR
    while kept(high):
        low = high
        if low >= _FAR * end:
            return low
        high = low * _FURTHER
    if low is None:
        return None
    for _ in range(_HALVED):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def smallest_max(subject: Thresholds, points: list[Point], packet_bytes: float) -> float | None:
    """Smallest K_max, with the same K_min and P_max, at which all points keep the rule.

    The loop's gain is proportional to the slope of the marks. None where packets are marked as they come: the queue's
    delay grows with K_max then, and the margin with it at first alone; or where no such slope keeps it.
    """
    if subject.arriving:
        return None
    flows, rtt, rate = (np.array(each)[:, None] for each in zip(*points, strict=True))
    loads = _loads(subject, flows, rate, packet_bytes)
    steeper = float(_look(subject, loads, rtt)[0].min()) / MIN_FACTOR
    if not 0.0 < steeper < inf:
        return None

    def kept(factor: float) -> bool:
        return _keeps(subject, loads._replace(slope=loads.slope * factor), rtt)

    low = high = 0.999 * steeper
    while not kept(low):
        low, high = low / _FURTHER, low
        if low < steeper / _FLATTEST:
            return None
    for _ in range(_HALVED if low < high else 0):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if kept(middle) else (low, middle)
    return subject.min_bytes + (subject.max_bytes - subject.min_bytes) / low


def _keeps(subject: Thresholds, loads: _Loads, rtt: np.ndarray) -> bool:
    """Whether the design rule is kept at all points."""
    factor, phase = _look(subject, loads, rtt)
    return bool(factor.min() >= MIN_FACTOR and phase.min() >= radians(MIN_PHASE_DEG))
