"""One epoch of ARC, in plain numbers: what the fluid compiles and a router evaluates."""

from __future__ import annotations

__all__ = ["arc_step"]


def arc_step(
    probability: float, arrived: float, backlog: float, served: float, alpha: float, gamma: float, target: float
) -> float:
    """The probability after an epoch, p + alpha (b − gamma (d C − (q − q0))), kept from 0 to 1.

    Parameters
    ----------
    probability : float
        p, as it was in the epoch.
    arrived, backlog, served, target : float
        b, q at the epoch's end, d C and q0 [packet].
    alpha : float
        [1/packet]
    gamma : float
        Target utilization.

    Notes
    -----
    ARC paper, Algorithm 2.
    """
    p = probability + alpha * (arrived - gamma * (served - (backlog - target)))
    return min(max(p, 0.0), 1.0)
