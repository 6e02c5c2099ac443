"""Laws for link rates where each controller knows only what it has heard: eq. (14), each link with its own prediction.

In `netctrl.laws.link_rate.fir` a link's innovation is what came unforeseen. That takes for granted that all have
answered all that came before; a controller that missed a message would never make up for it. Here each link predicts
its own backlog from the innovations that it heard of, so that what it missed becomes an innovation of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.laws.link_rate.fir import Entry, Taps, law_taps, packed, response
from netctrl.model.law import AgedGain, FirColumns, FirGain, LinkRateLaw, StaticGain

__all__ = ["BACKLOG_NEWS", "RATE_NEWS", "HeardLaw", "heard_law"]

BACKLOG_NEWS, RATE_NEWS = 2, 3
"""Kinds of series beside RATE and BACKLOG: δ = x − x̂ of a link's backlog and of its newest rate [bit/s]."""


class HeardLaw(NamedTuple):
    """A law for N links by what was heard."""

    control: Taps
    """Commands, from series known at the time."""
    predicted: Taps
    """Each link's own backlog, b̂_l(n), from news of the samples before; no taps where the law takes no news."""
    central: bool
    """Whether one controller hears of all and tells all links what to send."""


def heard_law(
    law: LinkRateLaw, coupling: sp.csr_array, nominal: np.ndarray, paced: np.ndarray, standing: float = 0.0
) -> HeardLaw:
    """The same law as `netctrl.laws.link_rate.fir.law_taps`, whose arguments these are.

    Source: HFTraC paper, eq. (14): u(n) = Σ M(t + 1) δ(n − t), x̂(n) = Σ_{t ≥ 1} R(t + 1) δ(n − t).
    """
    N = len(nominal)
    central = isinstance(law, StaticGain) and law.information_delay > 0
    control: list[Entry] = []
    predicted: list[Entry] = []
    if not isinstance(law, FirGain | AgedGain):
        taps = law_taps(law, coupling, nominal, np.zeros(N), paced, standing)
        return HeardLaw(taps, packed([], np.full(N, standing), paced), central)
    for e, column in enumerate(law.columns):
        for kind, starts in ((BACKLOG_NEWS, (1.0, 0.0)), (RATE_NEWS, (0.0, 1.0))):
            if isinstance(column, FirColumns):
                u, b = column.u[kind - BACKLOG_NEWS], column.b[kind - BACKLOG_NEWS]
            else:
                found = list(response(column, e, law.delay, coupling, starts))
                m = len(column.links)
                u, b = np.array([u for u, _ in found]).T, np.array([x[-m:] for _, x in found]).T
            control += _entries(column.links, kind * N + e, u, 0)
            predicted += _entries(column.links, kind * N + e, b, 1)
    return HeardLaw(packed(control, nominal, paced), packed(predicted, np.full(N, standing), paced), central)


def _entries(links: np.ndarray, series: int, response: np.ndarray, youngest: int) -> list[Entry]:
    rows, ages = np.nonzero(response)
    return [
        (int(links[row]), series, int(age), float(response[row, age]))
        for row, age in zip(rows, ages, strict=True)
        if age >= youngest
    ]
