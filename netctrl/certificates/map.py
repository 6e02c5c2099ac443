"""Maps of a queue law's gain margin around the box of its certificate."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import box_of
from netctrl.certificates.loops import classes_of, loops_of, read_mixture
from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.subject import Subject
from netctrl.frequency.margin_grid import gain_grid
from netctrl.plants.queues.queue_response import SampledPi

__all__ = ["MarginMap", "margin_map"]

_AROUND = 5.0
"""Factor by which the map reaches beyond the box on each side."""
_MIN_WINDOW = 2.0


class MarginMap(NamedTuple):
    """Gain margins over round-trip times and rates per flow, without proof."""

    rtt_s: np.ndarray
    """Round-trip times without the queue, (m,) [s]."""
    rate_per_flow: np.ndarray
    """C/N, (n,) [packet/s]."""
    gain_margin_db: np.ndarray
    """Worst of the senders, (m, n) [dB]; nan without an equilibrium that the loop describes."""


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
    box = box_of(
        subject,
        inputs.rtt_s,
        inputs.flows,
        inputs.capacity_bit_per_s,
        inputs.window_packets,
        inputs.packet_size_bytes,
        inputs.senders,
        inputs.stretches,
    )
    rtt = np.geomspace(box.rtt[0] / _AROUND, box.rtt[1] * _AROUND, points)
    flows = np.geomspace(box.flows[0] / _AROUND, box.flows[1] * _AROUND, points)
    factor = np.full((points, points), inf)
    for text in inputs.senders:
        classes = classes_of(subject, read_mixture(text), inputs.stretches)
        loops = loops_of(subject, classes, box, [(n, tau) for n in flows[[0, -1]] for tau in rtt[[0, -1]]])
        for loop in loops:
            x = loop.output(flows, rtt[:, None])
            inside = (x >= loop.within[0]) & (x <= loop.within[1])
            small = np.min([k.window(x) for k in loop.classes], axis=0) < _MIN_WINDOW
            # A law that acts at intervals has the same formulas beyond its range: margins are followed across its end.
            whole = replace(loop, within=(0.0, inf)) if isinstance(loop.law, SampledPi) else loop
            np.minimum(factor, gain_grid(whole, flows, rtt, inside & ~small), out=factor)
            factor[inside & small] = np.nan
        factor[x > subject.greatest] = np.nan  # of the last range
    with np.errstate(divide="ignore"):
        return MarginMap(rtt, box.rate / flows[::-1], 20.0 * np.log10(factor[:, ::-1]))
