"""Senders in the fluid: windows of Reno (Misra-Gong-Towsley), Cubic, DCTCP and Prague, and FAST's rate."""

from __future__ import annotations

from math import exp

from netctrl.core.jit import njit
from netctrl.laws.tcp.cubic import AIMD, BETA, C
from netctrl.laws.tcp.dctcp import AVERAGING
from netctrl.plants.equilibrium import MIN_WINDOW

__all__ = ["MIN_WINDOW", "cubic_point", "fast_rate", "scalable_average_slope", "scalable_slope", "window_slope"]


@njit(cache=True, error_model="numpy")
def window_slope(window: float, rtt: float, delayed_rate: float, signal: float) -> float:
    """W' = 1/R − (W/2) · (W(t−R)/R(t−R)) · p(t−R): one packet more a round trip, half the window less a mark.

    Parameters
    ----------
    window : float
        W(t) of one flow [packet].
    rtt : float
        R(t), with queueing [s].
    delayed_rate : float
        x = W/R one round trip ago [packet/s].
    signal : float
        Probability one round trip ago that a packet was marked or lost.

    Notes
    -----
    Misra, Gong, Towsley, "Fluid-based analysis of a network of AQM routers supporting TCP flows", SIGCOMM 2000,
    eq. (6). Neither slow start nor time-outs.
    """
    return 1.0 / rtt - 0.5 * window * delayed_rate * signal


@njit(cache=True, error_model="numpy")
def scalable_slope(
    window: float, rtt: float, trip: float, delayed_rate: float, signal: float, average: float, paused: bool
) -> float:
    """W' of DCTCP and Prague: growth with unmarked data, less W m/2 at each of x p/(1 + x p V) cuts a second.

    A cut is made by the first mark after a round trip V: V + 1/(x p) after the last one, where each packet is marked on
    its own. Prague grows by (1 − p)/W for each packet, over (V/R)²; DCTCP not in the round trip after a cut, so by
    1/(1 + x p R) of 1/W. At rest, with m = p and V = R, u = p W is √2 for DCTCP, and 1 + √3 for Prague at small p, as
    2 (1 + u) = u².

    Parameters
    ----------
    window : float
        W(t) of one flow [packet].
    rtt, trip : float
        R(t) with queueing, and V, the round trip in which a window is cut once [s].
    delayed_rate, signal : float
        x [packet/s] and the probability of a mark p of one round trip ago.
    average : float
        m, moving average of the marked part.
    paused : bool
        Whether growth pauses for the round trip after a cut, as DCTCP's.
    """
    marks = delayed_rate * signal
    growth = 1.0 / (1.0 + marks * rtt) if paused else (1.0 - signal) * (rtt / trip) ** 2
    return delayed_rate / window * growth - 0.5 * average * window * marks / (1.0 + marks * trip)


@njit(cache=True, error_model="numpy")
def scalable_average_slope(average: float, trip: float, signal: float) -> float:
    """m' = g (p − m)/V, DCTCP's average once a round trip (Alizadeh, Javanmard, Prabhakar 2011, eq. (4)) [1/s]."""
    return AVERAGING * (signal - average) / trip


@njit(cache=True, error_model="numpy")
def cubic_point(since: float, highest: float, rtt: float) -> float:
    """Cubic's window a time after a cut, max(C (t + R − K)³ + M, β M + a t/R), with K = ((1 − β) M/C)^(1/3) [packet].

    With cuts at the rate λ = x p, their mean time t' = 1 − t λ and mean M' = (W − M) λ: at rest t = 1/λ and W = M, so
    that (1 − β) W = a/(W p), or K − R = R/(W p), whichever window is larger.

    Parameters
    ----------
    since : float
        t, time since the last cut [s].
    highest : float
        M, the window before it [packet].
    rtt : float
        R, with queueing [s].

    Notes
    -----
    RFC 9438, Sections 4.2 and 4.3, without fast convergence; the mean field is that of Vardoyan, Hollot, Towsley,
    "Towards stability analysis of data transport mechanisms: a fluid model and its applications", 2018.
    """
    K = ((1.0 - BETA) * highest / C) ** (1.0 / 3.0)
    return max(C * (since + rtt - K) ** 3 + highest, BETA * highest + AIMD * since / rtt)


@njit(cache=True)
def fast_rate(max_rate: float, gain: float, price: float, rtt: float) -> float:
    """x = x_max · exp(−a · price/R) [packet/s], with the path's price [s] one round trip ago.

    R is the propagation round trip, the least that the sender has seen: with queueing in it, a queue would speed up
    the senders that fill it.

    Source: Paganini, Wang, Low, Doyle, "A new TCP/AQM for stable operation in fast networks", INFOCOM 2003.
    """
    return max_rate * exp(-gain * price / rtt)
