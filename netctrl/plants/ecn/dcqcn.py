"""DCQCN's fluid around its equilibrium: N equal rates, one queue, marks between two thresholds.

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, (5) to (9), and Zhu, Ghobadi, Misra,
Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, (3) to (7). With the delay D of
the control loop, u = R_C(t − D) and p = p(t − D),

    alpha' = (g/tau_a) (1 − (1 − p)^(tau_a u) − alpha),
    R_T' = −(R_T − R_C) a/tau + R_AI u (c + e),        a = 1 − (1 − p)^(tau u),
    R_C' = −R_C alpha a/(2 tau) + (R_T − R_C) u (b + d)/2,
    b = p/((1 − p)^(−B) − 1),    c = b (1 − p)^(F B),      (byte counter)
    d = p/((1 − p)^(−T u) − 1),  e = d (1 − p)^(F T u),    (timer)
    q' = N R_C − C,   p = P_max (q − K_min)/(K_max − K_min).

In equilibrium R_C = C/N, and p solves a² alpha = tau² R_AI R_C (b + d) (c + e), whose left side rises and whose right
side falls. Rates are in packets a second, B and the queue in packets: each packet is marked with p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.model.open_loop import OpenLoop

__all__ = ["DcqcnEquilibrium", "DcqcnSender", "dcqcn_equilibrium", "dcqcn_loop"]

_LEAST, _STEPS = 1e-12, 60


class DcqcnSender(NamedTuple):
    """Constants of a sender and of its receiver's notifications."""

    increase: float
    """R_AI [packet/s]."""
    counter: float
    """B, byte counter [packet]."""
    notification_s: float
    """tau, least time between two notifications of a flow [s]."""
    alpha_s: float
    """tau_a, interval of alpha's update [s]."""
    timer_s: float
    """T, the rate's timer [s]."""
    gain: float
    """g"""
    stages: float
    """F"""


class DcqcnEquilibrium(NamedTuple):
    """Equilibrium of a flow; floats, or arrays of one shape."""

    rate: Any
    """R_C [packet/s]."""
    probability: Any
    """p"""
    alpha: Any
    target: Any
    """R_T [packet/s]."""


class _Terms(NamedTuple):
    """A term with its slopes by the probability and by the delayed rate."""

    value: Any
    by_p: Any
    by_rate: Any


def _chance(p: Any, time: float, rate: Any) -> _Terms:
    """1 − (1 − p)^(time·rate): the chance of a mark in a time."""
    ell = -np.log1p(-p)
    none = np.exp(-ell * time * rate)
    return _Terms(-np.expm1(-ell * time * rate), time * rate * none / (1.0 - p), ell * time * none)


def _events(p: Any, packets: Any, per_rate: Any, stages: float) -> _Terms:
    """p/((1 − p)^(−n) − 1) · (1 − p)^(stages n) for n packets, where dn/d(rate) is `per_rate`."""
    ell = -np.log1p(-p)
    n = ell * packets
    w = np.exp(-n) / -np.expm1(-n)  # 1/(e^n − 1) without overflow
    late = np.exp(-stages * n)
    value = p * w * late
    slope = -value * (1.0 + w + stages)  # by n
    return _Terms(value, w * late + slope * packets / (1.0 - p), slope * ell * per_rate)


def _increases(sender: DcqcnSender, p: Any, rate: Any, stages: float) -> _Terms:
    """Events of byte counter and timer a packet: b + d for no stages, c + e for F."""
    bytes_, timer = (
        _events(p, n, k, stages) for n, k in ((sender.counter, 0.0), (sender.timer_s * rate, sender.timer_s))
    )
    return _Terms(*(x + y for x, y in zip(bytes_, timer, strict=True)))


def dcqcn_equilibrium(sender: DcqcnSender, rate: Any) -> DcqcnEquilibrium:
    """Equilibrium of flows with the rate C/N each [packet/s], by bisection of the logarithm of p.

    Parameters
    ----------
    sender : DcqcnSender
    rate : float or ndarray
        R_C = C/N [packet/s].
    """
    R = np.asarray(rate, dtype=float)
    low, high = np.full(R.shape, np.log(_LEAST)), np.full(R.shape, np.log(1.0 - 1e-9))
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        above = _excess(sender, np.exp(middle), R) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    p = np.exp(0.5 * (low + high))
    alpha = _chance(p, sender.alpha_s, R).value
    cut = _chance(p, sender.notification_s, R).value
    ahead = sender.notification_s * sender.increase * R * _increases(sender, p, R, sender.stages).value / cut
    return DcqcnEquilibrium(R, p, alpha, R + ahead)


def _excess(sender: DcqcnSender, p: Any, R: Any) -> Any:
    """What decreases take over what increases give; rises with p."""
    cut = _chance(p, sender.notification_s, R).value
    up = sender.increase * R * _increases(sender, p, R, 0.0).value * _increases(sender, p, R, sender.stages).value
    return cut * cut * _chance(p, sender.alpha_s, R).value - sender.notification_s**2 * up


def dcqcn_loop(sender: DcqcnSender, flows: float, capacity: float, slope: float, delay_s: float) -> OpenLoop:
    """Loop from the queue to the rates and back, 1 + L = 0, exact in the delay.

    Parameters
    ----------
    sender : DcqcnSender
    flows, capacity : float
        N and C [packet/s].
    slope : float
        dp/dq [1/packet].
    delay_s : float
        D, from a mark at the queue to the change of the queue's arrivals [s].

    Returns
    -------
    OpenLoop
        Rates over C/N, delays in the denominator too, since R_C acts on itself by its own past.
    """
    at = dcqcn_equilibrium(sender, capacity / flows)
    p, R, alpha, ahead = (float(x) for x in (at.probability, at.rate, at.alpha, at.target - at.rate))
    tau, g = sender.notification_s, sender.gain / sender.alpha_s
    mean, cut = (_chance(p, t, R) for t in (sender.alpha_s, tau))
    every, late = (_increases(sender, p, R, stages) for stages in (0.0, sender.stages))
    # Rates in units of R.
    D, up = ahead / R, every.value * R
    t = cut.value / tau
    target_by_p = -D * cut.by_p / tau + sender.increase * late.by_p
    target_by_rate = -D * cut.by_rate * R / tau + sender.increase * (late.value + R * late.by_rate)
    rate_by_p = -0.5 * alpha * cut.by_p / tau + 0.5 * D * R * every.by_p
    rate_by_rate = -0.5 * alpha * cut.by_rate * R / tau + 0.5 * D * R * (every.value + R * every.by_rate)
    own = 0.5 * alpha * t + 0.5 * up
    slow, quick = np.array([1.0, g]), np.array([1.0, t])  # s + g/tau_a and s + a/tau
    # δR_T = ((t + target_by_rate E) δR_C + target_by_p E δp)/(s + t), δα = g (mean.by_rate R E δR_C + mean.by_p E δp)/(s + g)
    both = np.polymul(slow, quick)
    plain = np.polymul(np.array([1.0, own]), both)
    plain[-2:] -= 0.5 * up * t * slow
    echo = -rate_by_rate * both
    echo[-2:] += 0.5 * t * g * mean.by_rate * R * quick - 0.5 * up * target_by_rate * slow
    moved = rate_by_p * both
    moved[-2:] += -0.5 * t * g * mean.by_p * quick + 0.5 * up * target_by_p * slow
    return OpenLoop(
        numerator=((delay_s, tuple(-slope * capacity * moved)),),
        denominator=((0.0, (*plain, 0.0)), (delay_s, (*echo, 0.0))),
    )
