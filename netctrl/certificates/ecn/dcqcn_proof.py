"""Proof of DCQCN's gain margin over a box of flows, rates and round-trip times, by branch and bound.

The loop is stable at one point, where its margins are certified. Where 1 + k L isn't 0 on the imaginary axis at any
point of the box and any factor k up to a value, it is stable at every point for all these factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log

from netctrl.certificates.ecn.points import Point
from netctrl.frequency.matrix.proofs import Box, avoids_zero
from netctrl.plants.ecn.dcqcn_box import DcqcnBox

__all__ = ["proved_gain"]

_MOST_CELLS = 80_000
_GAPS = (0.03, 0.3, 0.6)
"""Shares of the way from 1 to the attained factor that a proof gives up; the second is tried first."""


def proved_gain(loop: DcqcnBox, points: Sequence[Point], attained: float) -> float | None:
    """Factor of the gain up to which the loop is stable at every point of a box; None: nothing is proved.

    Parameters
    ----------
    loop : DcqcnBox
    points : sequence of Point
        Points of the box, its corners among them; the loop is known to be stable at one of them.
    attained : float
        Least factor at these points, above 1.
    """
    ends = [(min(each), max(each)) for each in zip(*points, strict=True)]
    flows, rtt, rate = ends
    others = tuple((log(low), log(high)) for low, high in (flows, rate, rtt))

    def held(factor: float) -> bool:
        omega = loop.beyond(flows, rate, factor)
        if not isfinite(omega):
            return False
        box = Box(angle=(0.0, omega * loop.unit_s), gain=(1.0, factor), others=others)
        return avoids_zero(loop.disc, box, _MOST_CELLS)

    best, middle, least = (attained - gap * (attained - 1.0) for gap in _GAPS)
    if held(middle):
        return best if held(best) else middle
    return least if held(least) else None
