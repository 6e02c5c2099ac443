"""Regulators of an access link: bursts with pauses between them, whose mean a commanded rate sets."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from netctrl.plants.access import pause_mean
from netctrl.units import BITS_PER_BYTE


class Gates(NamedTuple):
    """Regulators of F flows, changed in place. M draws ahead."""

    next: np.ndarray
    """(F,) time of each flow's next packet, for TCP its earliest time; inf while its rate is 0."""
    left: np.ndarray
    """(F,) packets left of its burst."""
    burst: np.ndarray
    """(F,)"""
    pause: np.ndarray
    """(F,) mean."""
    pausing: np.ndarray
    """(F,) whether the next packet is the first of a burst."""
    held: np.ndarray
    """(F,) last pause over its mean, for flows of rate 0."""
    draws: np.ndarray
    """(F, M) exponential draws of mean 1."""
    used: np.ndarray
    """(F,) number of draws used."""


def silent_gates(count: int, draws: int) -> Gates:
    """Regulators of flows that don't send yet, with room for draws ahead."""
    return Gates(
        next=np.full(count, inf),
        left=np.ones(count, dtype=np.int64),
        burst=np.ones(count, dtype=np.int64),
        pause=np.full(count, inf),
        pausing=np.ones(count, dtype=np.bool_),
        held=np.zeros(count),
        draws=np.zeros((count, draws)),
        used=np.full(count, draws),
    )


def command(gates: Gates, time: float, rates: np.ndarray, bursts: np.ndarray, size: float, spacing: float) -> None:
    """Set regulated flows to new rates and bursts from `time` on.

    A current pause is stretched by the ratio of the means, which keeps exponential pauses exponential and constant ones
    in proportion. A current burst is finished. Unchanged commands change no bit.
    """
    for flow, (rate, burst) in enumerate(zip(rates.tolist(), bursts.tolist(), strict=True)):
        mean = pause_mean(rate, burst, size * BITS_PER_BYTE, spacing)
        before = gates.pause[flow]
        if mean == before and burst == gates.burst[flow]:
            continue
        if gates.pausing[flow] and gates.next[flow] > time:
            rest = gates.held[flow] if gates.next[flow] == inf else (gates.next[flow] - time) / before
            gates.held[flow] = rest
            gates.next[flow] = time + rest * mean if mean < inf else inf
            gates.left[flow] = burst
        gates.pause[flow], gates.burst[flow] = mean, burst
