"""Bound of the response of a queue's loop at high frequencies, for laws in continuous time.

With u = omega R_i and the damping k_i = a/w_i of class i, for u > 2 k_i,

    |Q_i| <= k_i/(u − 2 k_i),   |V_i| <= 2 k_i/(u − 2 k_i)   (AIMD),   |Q_i| <= k_i g/u²,   V_i = 0   (DCTCP),

and for Cubic |Q_i| <= k_i/u, |V_i| <= 2 k_i/u with the greatest k_i = |sigma Q_i|; for senders that acknowledgements
clock `clocked_most`, where the denominator is the mean of 1/R_i. With shares y_i that sum to 1 the
denominator of δD/δx is at least omega − max (1 + |V_i|)/R_i. So

    |L| <= (dx/dD) max (power_i k_i/x / (u − 2 k_i)) / (omega − max (1 + |V_i|)/R_i) / |1 + i omega/corner|.

It falls with omega; over a box its parts are taken where they are greatest.
"""

from __future__ import annotations

from math import hypot, inf

from netctrl.plants.queues.clocked_response import clocked_most
from netctrl.plants.queues.queue_laws import Averaged
from netctrl.plants.queues.queue_response import QueueResponse

__all__ = ["tail_bound"]


def tail_bound(loop: QueueResponse, omega: float, flows: tuple[float, float], rtt: tuple[float, float]) -> float:
    """Bound of |L| at `omega` and above for every point of a box in the loop's range; inf where it says nothing.

    Parameters
    ----------
    loop : QueueResponse
        With an averaging law.
    omega : float
        [rad/s]
    flows, rtt : (float, float)
        Ranges of N and of tau [s].
    """
    law = loop.law
    if not isinstance(law, Averaged):
        raise TypeError("a law that acts at intervals has no response beyond its angles")
    low = max(float(loop.output(flows[0], rtt[1])), loop.within[0])
    high = min(float(loop.output(flows[1], rtt[0])), loop.within[1])
    if low > high:
        return 0.0
    rise = max(float(law.rise(x)) for x in (low, high))
    if loop.clocked:
        return rise * _clocked(loop, omega, rtt, (low, high)) / hypot(1.0, omega / law.corner)
    moved, turned = 0.0, 0.0
    for k in loop.classes:
        trips = [float(loop.trip(k, tau, loop.standing(x))) for tau, x in zip(rtt, (low, high), strict=True)]
        steepness = [(float(k.sender.fastest(k.factor * x**k.power, R)), x, R) for x in (low, high) for R in trips]
        fastest = max(each[0] for each in steepness)
        trip = trips[0]
        room = omega * trip - (0.0 if k.sender.scalable or k.sender.curve else 2.0 * fastest)
        if room <= 0.0:
            return inf
        steepest = max(k.power * fast / x for fast, x, _ in steepness)
        slow = k.sender.averaging / room if k.sender.averaging else 1.0
        moved = max(moved, steepest / room * min(slow, 1.0))
        if k.queued:
            turned = max(turned, (1.0 + (0.0 if k.sender.scalable else 2.0 * fastest / room)) / trip)
    if omega <= turned:
        return inf
    return rise * moved / (omega - turned) / hypot(1.0, omega / law.corner)


def _clocked(loop: QueueResponse, omega: float, rtt: tuple[float, float], x: tuple[float, float]) -> float:
    """Bound of |δD/δx| at `omega` and above [s]."""
    most, longest = 0.0, 0.0
    for k in loop.classes:
        trips = [float(loop.trip(k, tau, loop.standing(each))) for tau, each in zip(rtt, x, strict=True)]
        # Each part of the bound is greatest at an end of the range.
        bounds = [k.power * clocked_most(k.sender, k.factor * each**k.power, omega * trips[0]) / each for each in x]
        most, longest = max(most, *bounds), max(longest, *trips)
    return longest * most
