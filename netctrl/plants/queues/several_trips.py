"""Flows of several round-trip times that acknowledgements clock: how the queue that they share follows their windows.

A packet that comes to the queue at t is acknowledged at t + D(t) + d_i. With A_i packets of class i that have come, its
flight is W_i(t) = A_i(t) − A_i(u) with u + D(u) + d_i = t. Around A_i = y_i C t + a_i and the round trip R_i = d_i + D,
with e_i = e^(−s R_i),

    a_i (1 − e_i) = δW_i − y_i C e_i δD,   C δD = Σ a_i,
    C δD = Σ δW_i/(1 − e_i) / Σ y_i/(1 − e_i).

So a window's packets come back each round trip, and where round trips differ the queue passes them on from class to
class. With one round-trip time it is C δD = Σ δW_i. A change of the rate of acknowledgements moves no window, since in
equilibrium what they add and what cuts take is in balance.

On the axis 1/(1 − e_i) is 1/2 − (i/2) c_i with c_i = cot(omega R_i/2), so the denominator is at least 1/2, and nothing
that the queue passes on grows by itself. But c_i may be large where Σ y_i c_i is 0: there classes exchange packets with
each other in turn, and the queue answers each of them up to |c_i| times as much. There is one such frequency between
any two multiples of 2 pi/R_i that follow each other, and the answer bends within 1/Σ y_i (R_i/2) (1 + c_i²) of it.
Its height has no bound over all frequencies, so a quotient of sums of phases like this has no expansion in delays, and
no bound over cells.
"""

from __future__ import annotations

from math import pi, prod
from typing import Any

import numpy as np

_TRIPS, _ALIASES = 8.0, 5.0 * pi
"""Frequencies up to which sharp bends count: of so many turns of the shortest round trip, and so far in angles."""
_AROUND = np.array([-6.0, -2.0, -0.9, -0.3, 0.3, 0.9, 2.0, 6.0])
"""Where a bend is looked at, in its widths."""
_HALVED = 45
_SHARP = 5.0
"""Bends that are so many times as sharp as a round trip's count."""


def shared_queue(
    s: np.ndarray, stretches: list[float], moves: list[Any], trips: list[Any], shares: list[Any]
) -> np.ndarray:
    """δD [s].

    Parameters
    ----------
    s : ndarray
        [rad/s]
    stretches : list of float
        Equal for classes of one round trip.
    moves : list of ndarray
        y_i δW_i/W_i, of each class.
    trips, shares : list of ndarray
        R_i [s] and y_i.
    """
    trips, moves, shares = _once(stretches, trips), _together(stretches, moves), _together(stretches, shares)
    left = [-np.expm1(-s * trip) for trip in trips]
    above: Any = 0.0
    below: Any = 0.0
    for i, (move, trip, share) in enumerate(zip(moves, trips, shares, strict=True)):
        others: Any = prod(left[:i] + left[i + 1 :])
        above, below = above + move * trip * others, below + share * others
    return above / below


def sharp_angles(stretches: list[float], trips: list[np.ndarray], shares: list[np.ndarray], epoch: float) -> np.ndarray:
    """Angles up to pi around which the queue's answer bends sharply, from trips [s] and shares (k, 1): (k, n)."""
    trips, shares = _once(stretches, trips), _together(stretches, shares)
    most = np.minimum(_ALIASES / epoch, 2.0 * pi * _TRIPS / np.min(trips, axis=0))
    poles = [np.zeros_like(trips[0])]
    for trip in trips:
        count = int(np.ceil((most * trip).max() / (2.0 * pi)))
        poles.append(2.0 * pi * np.arange(1, count + 1) / trip)
    ends = np.sort(np.concatenate(poles, axis=1), axis=1)
    low, high = ends[:, :-1], ends[:, 1:]
    with np.errstate(all="ignore"):  # of two poles in one place
        for _ in range(_HALVED):
            middle = 0.5 * (low + high)
            falls = sum(share / np.tan(0.5 * middle * trip) for trip, share in zip(trips, shares, strict=True))
            low, high = np.where(falls > 0.0, middle, low), np.where(falls > 0.0, high, middle)
        widths = [share * trip / np.sin(0.5 * low * trip) ** 2 for trip, share in zip(trips, shares, strict=True)]
    bends = 0.5 * sum(widths)
    sharp = (bends > 0.5 * _SHARP * np.max(trips, axis=0)).any(axis=0)
    omega = low[:, sharp, None] + _AROUND / bends[:, sharp, None]
    angles = (omega * epoch).reshape(len(low), -1)
    return np.abs((angles + pi) % (2.0 * pi) - pi)  # where the aliases of the unit circle are


def _once(stretches: list[float], values: list[Any]) -> list[Any]:
    """A value of each round trip."""
    return list(dict(zip(stretches, values, strict=True)).values())


def _together(stretches: list[float], values: list[Any]) -> list[Any]:
    """Sums over the classes of each round trip."""
    found: dict[float, Any] = {}
    for stretch, value in zip(stretches, values, strict=True):
        found[stretch] = found.get(stretch, 0.0) + value
    return list(found.values())
