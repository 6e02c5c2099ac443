"""Maps of a queue law's gain margin around the box of its certificate."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np

from netctrl.certificates.box import MIN_WINDOW, box_of
from netctrl.certificates.loops import box_loops
from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.subject import Subject
from netctrl.frequency.margin_grid import gain_grid
from netctrl.plants.queues.queue_laws import SampledPi

__all__ = ["MarginMap", "margin_map"]

_AROUND = 5.0
"""Factor by which the map reaches beyond the box on each side."""


class MarginMap(NamedTuple):
    """Gain margins over round-trip times and rates per flow, without proof."""

    rtt_s: np.ndarray
    """Round-trip times without the queue, (m,) [s]."""
    rate_per_flow: np.ndarray
    """C/N, (n,) [packet/s]."""
    gain_margin_db: np.ndarray
    """Worst of the senders, (m, n) [dB]; nan without an equilibrium that the loop describes."""
    box_rate_per_flow: tuple[float, float]
    """Least and greatest C/N of the box [packet/s]."""


def margin_map(subject: Subject, inputs: CertifyInputs, points: int = 161) -> MarginMap:
    """Gain margins of a law around a box, on logarithmic axes.

    Parameters
    ----------
    subject : Subject
    inputs : CertifyInputs
        Box, and senders.
    points : int
        Along each axis.
    """
    box = box_of(subject, **msgspec.structs.asdict(inputs))
    rtt = np.geomspace(box.rtt[0] / _AROUND, box.rtt[1] * _AROUND, points)
    flows = np.geomspace(box.flows[0] / _AROUND, box.flows[1] * _AROUND, points)
    factor = np.full((points, points), inf)
    loops = box_loops(subject, box, [((flows[0], flows[-1]), (rtt[0], rtt[-1]))])
    for _, loop in loops:
        x = loop.output(flows, rtt[:, None])
        inside = loop.holds(x)
        small = loop.windows_of(x, rtt[:, None]).min(axis=0) < MIN_WINDOW
        # A law that acts at intervals has the same formulas beyond its range: margins are followed across its end.
        whole = replace(loop, within=(0.0, inf)) if isinstance(loop.law, SampledPi) else loop
        np.minimum(factor, gain_grid(whole, flows, rtt, inside & ~small), out=factor)
        factor[inside & small] = np.nan
    for loop in dict(loops).values():  # of the last range with each sender
        factor[loop.computed(loop.output(flows, rtt[:, None])) > subject.greatest] = np.nan
    with np.errstate(divide="ignore"):
        margin = 20.0 * np.log10(factor[:, ::-1])
    return MarginMap(rtt, box.rate / flows[::-1], margin, (box.rate / box.flows[1], box.rate / box.flows[0]))
