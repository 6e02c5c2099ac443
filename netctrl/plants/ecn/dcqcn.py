"""DCQCN's fluid around its equilibrium: N equal rates, one queue, marks between two thresholds.

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, (5) to (9), and Zhu, Ghobadi, Misra,
Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016. With the delay D of
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
from netctrl.plants.queues.mean_value import through

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


def _log_kept(p: Any) -> Any:
    """−ln (1 − p)."""
    return through(p, lambda p: -np.log1p(-p), lambda low, high: 1.0 / (1.0 - high))


def _none(n: Any) -> Any:
    """e^(−n)."""
    return through(n, lambda n: np.exp(-n), lambda low, high: np.exp(-low))


def _chance(p: Any, time: float, rate: Any) -> _Terms:
    """1 − (1 − p)^(time·rate): the chance of a mark in a time."""
    ell = _log_kept(p)
    none = _none(ell * (time * rate))
    value = through(ell * (time * rate), lambda n: -np.expm1(-n), lambda low, high: np.exp(-low))
    return _Terms(value, time * rate * none / (1.0 - p), ell * time * none)


def _events(p: Any, packets: Any, per_rate: Any, stages: float) -> _Terms:
    """p/((1 − p)^(−n) − 1) · (1 − p)^(stages n) for n packets, where dn/d(rate) is `per_rate`."""
    ell = _log_kept(p)
    n = ell * packets
    # 1/(e^n − 1) without overflow; its slope is −(1 + w) w.
    w = through(n, _rare, lambda low, high: _rare(low) * (1.0 + _rare(low)))
    late = _none(n * stages)
    value = p * w * late
    slope = -value * (1.0 + w + stages)  # by n
    return _Terms(value, w * late + slope * packets / (1.0 - p), slope * ell * per_rate)


def _rare(n: Any) -> Any:
    return np.exp(-n) / -np.expm1(-n)


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


class DcqcnPolynomials(NamedTuple):
    """Polynomials of the loop, highest power first; rates over C/N.

    δR_C (plain(s) + echo(s) e^(−s D)) = moved(s) e^(−s D) δp.
    """

    plain: tuple[Any, Any, Any, Any]
    echo: tuple[Any, Any, Any]
    moved: tuple[Any, Any, Any]


def dcqcn_polynomials(sender: DcqcnSender, rate: Any) -> DcqcnPolynomials:
    """Response of a flow's rate to p around the equilibrium with the rate C/N [packet/s], a float or an array."""
    at = dcqcn_equilibrium(sender, rate)
    return polynomials_at(sender, at.probability, at.rate)


def polynomials_at(sender: DcqcnSender, p: Any, R: Any) -> DcqcnPolynomials:
    """The same at an equilibrium with the probability p and the rate R; also of functions over cells."""
    tau, g = sender.notification_s, sender.gain / sender.alpha_s
    mean, cut = (_chance(p, time, R) for time in (sender.alpha_s, tau))
    every, late = (_increases(sender, p, R, stages) for stages in (0.0, sender.stages))
    # Rates in units of R from here on: D = (R_T − R_C)/R, and slopes by the delayed rate times R.
    alpha, t, up = mean.value, cut.value * (1.0 / tau), every.value * R
    D = sender.increase * late.value / t
    target_by_p = sender.increase * late.by_p - D * cut.by_p / tau
    target_by_rate = sender.increase * (late.value + R * late.by_rate) - D * cut.by_rate * R / tau
    rate_by_p = 0.5 * D * R * every.by_p - 0.5 * alpha * cut.by_p / tau
    rate_by_rate = 0.5 * D * R * (every.value + R * every.by_rate) - 0.5 * alpha * cut.by_rate * R / tau
    own = 0.5 * alpha * t + 0.5 * up
    # (s + g) δα = g (mean.by_rate R e δR_C + mean.by_p e δp), with e = e^(−s D),
    # (s + t) δR_T = t δR_C + target_by_rate e δR_C + target_by_p e δp,
    # (s + own) δR_C = rate_by_rate e δR_C + rate_by_p e δp + (up/2) δR_T − (t/2) δα.
    both, product = g + t, g * t
    plain = (1.0, own + both, own * both + product - 0.5 * up * t, own * product - 0.5 * up * t * g)
    echo = _numerator(-rate_by_rate, 0.5 * t * g * mean.by_rate * R, -0.5 * up * target_by_rate, g, t)
    moved = _numerator(rate_by_p, -0.5 * t * g * mean.by_p, 0.5 * up * target_by_p, g, t)
    return DcqcnPolynomials(plain, echo, moved)


def _numerator(direct: Any, through_alpha: Any, through_target: Any, g: Any, t: Any) -> tuple[Any, Any, Any]:
    """direct (s + g)(s + t) + through_alpha (s + t) + through_target (s + g)."""
    return (
        direct,
        direct * (g + t) + through_alpha + through_target,
        direct * g * t + through_alpha * t + through_target * g,
    )


def dcqcn_loop(sender: DcqcnSender, flows: float, capacity: float, slope: float, delay_s: float) -> OpenLoop:
    """Loop from the queue to the rates and back, closed by 1 + L = 0, exact in the delay.

        L(s) = −(dp/dq) (C/s) moved(s) e^(−s D)/(plain(s) + echo(s) e^(−s D))

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
        The delay is in the denominator too, since a rate's events depend on the rate one delay ago.
    """
    plain, echo, moved = dcqcn_polynomials(sender, capacity / flows)
    return OpenLoop(
        numerator=((delay_s, [float(-slope * capacity * c) for c in moved]),),
        denominator=((0.0, [*map(float, plain), 0.0]), (delay_s, [*map(float, echo), 0.0])),
    )


def dcqcn_response(
    polynomials: DcqcnPolynomials, capacity: Any, slope: Any, delay_s: Any, frequency: np.ndarray
) -> np.ndarray:
    """L(i omega) of `dcqcn_loop` at frequencies [rad/s]; arrays broadcast."""
    s = 1j * frequency
    turned = np.exp(-s * delay_s)
    plain, echo, moved = (_value(c, s) for c in polynomials)
    return -slope * capacity * moved * turned / (s * (plain + echo * turned))


def dcqcn_settles(polynomials: DcqcnPolynomials, delay_s: Any, frequency: np.ndarray) -> np.ndarray:
    """Whether rates settle at a constant p, (...): where 1 + e^(−s D) echo/plain doesn't turn around 0.

    plain(s) has no zero with a real part of at least 0. Ascending frequencies [rad/s] are the last axis, from where it
    doesn't turn yet to where it no longer does.
    """
    s = 1j * frequency
    plain, echo, _ = (_value(c, s) for c in polynomials)
    value = 1.0 + np.exp(-s * delay_s) * echo / plain
    turned = np.angle(value[..., 1:] / value[..., :-1]).sum(axis=-1) + np.angle(value[..., 0])
    return np.abs(turned) < 0.5 * np.pi


def _value(coefficients: tuple[Any, ...], s: np.ndarray) -> Any:
    """A polynomial by Horner's rule."""
    total: Any = 0.0
    for c in coefficients:
        total = total * s + c
    return total
