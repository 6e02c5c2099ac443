"""Maps of a queue law's gain margin around the box of its certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import box_of
from netctrl.certificates.loops import classes_of, loops_of, read_mixture
from netctrl.certificates.record import CertifyInputs
from netctrl.certificates.subject import Subject
from netctrl.frequency.sampled_stability import gain_factors

__all__ = ["MarginMap", "margin_map"]

_AROUND = 5.0
"""Factor by which the map reaches beyond the box on each side."""
_POINTS = 61
_MIN_WINDOW = 2.0


class MarginMap(NamedTuple):
    """Gain margins over round-trip times and rates per flow, without proof."""

    rtt_s: np.ndarray
    """Round-trip times without the queue, (m,) [s]."""
    rate_per_flow: np.ndarray
    """C/N, (n,) [packet/s]."""
    gain_margin_db: np.ndarray
    """Worst of the senders, (m, n) [dB]; nan without an equilibrium that the loop describes."""


def margin_map(subject: Subject, inputs: CertifyInputs) -> MarginMap:
    """Gain margins of a law around a box, on logarithmic axes."""
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
    rtt = np.geomspace(box.rtt[0] / _AROUND, box.rtt[1] * _AROUND, _POINTS)
    flows = np.geomspace(box.flows[0] / _AROUND, box.flows[1] * _AROUND, _POINTS)[::-1]
    trips, numbers = np.meshgrid(rtt, flows, indexing="ij")
    factor = np.full(trips.shape, np.inf)
    for text in inputs.senders:
        classes = classes_of(subject, read_mixture(text), inputs.stretches)
        for loop in loops_of(subject, classes, box, [(n, tau) for n in flows[[0, -1]] for tau in rtt[[0, -1]]]):
            x = loop.output(numbers, trips)
            inside = (x >= loop.within[0]) & (x <= loop.within[1])
            factor[inside] = np.minimum(factor[inside], gain_factors(loop, numbers[inside], trips[inside]))
            windows = loop.windows_at(numbers.ravel(), trips.ravel()).min(axis=0).reshape(x.shape)
            factor[inside & (windows < _MIN_WINDOW)] = np.nan
            beyond = x > subject.greatest
        factor[beyond] = np.nan  # of the last range
    with np.errstate(divide="ignore"):
        return MarginMap(rtt, box.rate / flows, 20.0 * np.log10(factor))
