"""Senders in the fluid: TCP's window (Misra-Gong-Towsley) and FAST's rate."""

from __future__ import annotations

from math import exp

from netctrl.jit import njit
from netctrl.plants.equilibrium import MIN_WINDOW

__all__ = ["MIN_WINDOW", "fast_rate", "window_slope"]


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


@njit(cache=True)
def fast_rate(max_rate: float, gain: float, price: float, rtt: float) -> float:
    """x = x_max · exp(−a · price/R) [packet/s], with the path's price [s] one round trip ago.

    R is the propagation round trip, the least that the sender has seen: with queueing in it, a queue would speed up
    the senders that fill it.

    Source: Paganini, Wang, Low, Doyle, "A new TCP/AQM for stable operation in fast networks", INFOCOM 2003.
    """
    return max_rate * exp(-gain * price / rtt)
