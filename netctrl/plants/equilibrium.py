"""Equilibria of the fluid models."""

from __future__ import annotations

from typing import Any, NamedTuple

MIN_WINDOW = 1.0
"""Smallest window [packet]: a sender keeps one packet in flight; the model has no time-outs."""


class TcpEquilibrium(NamedTuple):
    """Equilibrium of N TCP flows under a constant marking probability; floats, or arrays of one shape."""

    total_window: Any
    """B = tau·gamma·C, all flows together [packet]."""
    window: Any
    """w0 = B/N, one flow [packet]."""
    marking: Any
    """p0 = 2/w0², a probability while it is at most 1."""


def tcp_equilibrium(flows: Any, rtt: Any, rate: Any) -> TcpEquilibrium:
    """Equilibrium of the Misra-Gong-Towsley TCP model, w' = 1/tau − (w²/(2 tau)) p = 0 with N w/tau = rate.

    Parameters
    ----------
    flows : array_like
        N, number of flows.
    rtt : array_like
        tau, round-trip time [s].
    rate : array_like
        gamma·C, rate that all flows together reach [packet/s].

    Returns
    -------
    TcpEquilibrium
        All arguments broadcast. The model holds for marking <= 1 and window >= 2, which the caller checks.

    Notes
    -----
    Hollot, Misra, Towsley, Gong, "A control theoretic analysis of RED", INFOCOM 2001, eq. (4).
    """
    B = rtt * rate
    w0 = B / flows
    return TcpEquilibrium(total_window=B, window=w0, marking=2.0 / (w0 * w0))
