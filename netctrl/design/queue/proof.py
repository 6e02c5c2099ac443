"""Proof of a queue's disk margin over a box."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import Box
from netctrl.certificates.loops import box_loops
from netctrl.certificates.subject import Subject
from netctrl.frequency.sampled_margins import box_disk_margin
from netctrl.frequency.sampled_stability import stable_gains

__all__ = ["TOLERANCE", "DiskProof", "prove_disk_margin"]

TOLERANCE = 0.015
"""Relative gap between the proved disk margin and the worst one that was found."""


class DiskProof(NamedTuple):
    """Least disk margin of a box, and its proved bound."""

    proved: float
    """No point of the box has less."""
    found: float
    """Attained at the worst point; 0 where a loop is unstable."""
    sender: str
    flows: float
    """Flows of the loop at the worst point."""
    rtt: float
    """Round-trip time without the queue there [s]."""


def prove_disk_margin(law: Subject, box: Box) -> DiskProof:
    """Disk margin of a law's loops over a box.

    Each loop is stable at the points from which the search starts, and nowhere in the box does it meet −1 where the
    bound is above 0: so it has the same number of unstable poles at every point, which is none.

    Raises
    ------
    NetctrlError
        A loop passes so near −1 that nothing above 0 is proved.
    """
    least = DiskProof(inf, inf, "", 0.0, 0.0)
    proved = inf
    for mixture, loop in box_loops(law, box):
        starts = loop.starts(box.flows, box.rtt)
        if not starts:
            continue
        for point in starts:
            if stable_gains(loop, *point).unstable_poles > 0:
                return DiskProof(0.0, 0.0, mixture.text, *point)
        found = box_disk_margin(loop, box.flows, box.rtt, starts, TOLERANCE, below=least.found)
        proved = min(proved, found.proved)
        if found.found < least.found:
            flows, rtt = (float(np.exp(u)) for u in found.where[1:3])
            least = DiskProof(found.proved, found.found, mixture.text, flows, rtt)
    return least._replace(proved=proved)
