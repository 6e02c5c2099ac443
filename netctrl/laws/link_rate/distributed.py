"""Link-rate laws with partial information: eq. (14), in which each link uses its own prediction.

In `netctrl.laws.link_rate.fir` a link's innovation is its unpredicted arrivals. That assumes that all links have
responded to all earlier innovations, so a missed message is never corrected. Here each link predicts its own backlog
from the innovations that it received, and missed ones appear in its own innovation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.laws.link_rate.fir import Entry, FirLaw, fir_law, packed, response
from netctrl.model.law import AgedGain, FirColumns, FirGain, LinkRateLaw, StaticGain

BACKLOG_INNOVATION, RATE_INNOVATION = 2, 3
"""Kinds of series beside RATE and BACKLOG: δ = x − x̂ of a link's backlog and of its newest rate [bit/s]."""


class DistributedLaw(NamedTuple):
    """Law for N links from received innovations."""

    control: FirLaw
    """Sums for the commands, from series known at the time."""
    predicted: FirLaw
    """Sums for each link's predicted backlog, b̂_l(n), from innovations of earlier samples; empty without innovations.
    """
    central: bool
    """Whether one controller receives all measurements and commands all links."""


def distributed_law(
    law: LinkRateLaw, coupling: sp.csr_array, nominal: np.ndarray, paced: np.ndarray, backlog_setpoint: float = 0.0
) -> DistributedLaw:
    """Distributed form of the law of `netctrl.laws.link_rate.fir.fir_law`, with the same arguments.

    Source: HFTraC paper, eq. (14): u(n) = Σ M(t + 1) δ(n − t), x̂(n) = Σ_{t ≥ 1} R(t + 1) δ(n − t).
    """
    N = len(nominal)
    central = isinstance(law, StaticGain) and law.information_delay > 0
    control: list[Entry] = []
    predicted: list[Entry] = []
    if not isinstance(law, FirGain | AgedGain):
        taps = fir_law(law, coupling, nominal, np.zeros(N), paced, backlog_setpoint)
        return DistributedLaw(taps, packed([], np.full(N, backlog_setpoint), paced), central)
    for e, column in enumerate(law.columns):
        for kind, starts in ((BACKLOG_INNOVATION, (1.0, 0.0)), (RATE_INNOVATION, (0.0, 1.0))):
            if isinstance(column, FirColumns):
                if kind == RATE_INNOVATION and len(column.u) == 1:
                    continue  # a truncated column: what wasn't sent is an innovation where it would arrive
                u, b = column.u[kind - BACKLOG_INNOVATION], column.b[kind - BACKLOG_INNOVATION]
            else:
                found = list(response(column, e, law.delay, coupling, starts))
                m = len(column.links)
                u, b = np.array([u for u, _ in found]).T, np.array([x[-m:] for _, x in found]).T
            control += _entries(column.links, kind * N + e, u, 0)
            predicted += _entries(column.links, kind * N + e, b, 1)
    return DistributedLaw(
        packed(control, nominal, paced), packed(predicted, np.full(N, backlog_setpoint), paced), central
    )


def _entries(links: np.ndarray, series: int, response: np.ndarray, youngest: int) -> list[Entry]:
    rows, ages = np.nonzero(response)
    return [
        (int(links[row]), series, int(age), float(response[row, age]))
        for row, age in zip(rows, ages, strict=True)
        if age >= youngest
    ]
