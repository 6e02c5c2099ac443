"""Window senders over one drop-tail link, whose losses are single packets: arrays for the kernel, and its runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.sim.bottleneck.lacks import FEWEST_PACKETS
from netctrl.sim.bottleneck.loss_kernel import LossPlant, LossRecord, LossState, advance_losses

_DRAWS = 65_537
_CHUNK = 4_000_000  # flow-steps between calls of progress


class WindowFlows(NamedTuple):
    """n flows."""

    law: np.ndarray
    """(n,) place in WINDOWS."""
    row: np.ndarray
    """(n, ·) of the laws at first; a run changes them."""
    base_s: np.ndarray
    """(n,) round trip without queueing [s]."""
    start_s: np.ndarray
    stop_s: np.ndarray
    group: np.ndarray
    """(n,) row of the record, from 0."""


def run_windows(
    flows: WindowFlows,
    capacity: np.ndarray,
    longer_s: np.ndarray,
    buffer: float,
    step_s: float,
    every: int,
    random: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> LossRecord:
    """Record of a run.

    Parameters
    ----------
    flows : WindowFlows
    capacity : ndarray, shape (S,)
        Of the link in each step [packet/s].
    longer_s : ndarray, shape (S,)
        What the line has become longer by since the beginning, there and back [s].
    buffer : float
        What may wait [packet].
    step_s : float
        At most a tenth of the shortest round trip [s].
    every : int
        Steps of a bin; S is a multiple of it.
    random : numpy.random.Generator
    progress : callable, optional
        Called with the completed share.

    Raises
    ------
    InvalidValue
        A buffer of less than 16 packets.
    """
    if buffer < FEWEST_PACKETS:
        takes = f"at least {FEWEST_PACKETS} packets with windows over drop-tail; below, the packet engine is as fast"
        raise InvalidValue("buffer", f"{buffer:g} packets", takes)
    n, S = len(flows.law), len(capacity)
    G, K = int(flows.group.max()) + 1, S // every
    base = flows.base_s + 1.0 / capacity[0]  # a packet's own time on the link
    plant = LossPlant(
        step=step_s,
        buffer=buffer,
        spread=_mean_difference(base),
        law=flows.law,
        base=base,
        start=flows.start_s,
        stop=flows.stop_s,
        group=flows.group,
        capacity=capacity,
        taken=np.concatenate([[0.0], np.cumsum(capacity * step_s)]),
        longer=longer_s,
        uniform=random.random(_DRAWS),
        normal=random.standard_normal(_DRAWS),
    )
    state = LossState(
        row=flows.row,
        held=np.zeros(n),
        flight=np.zeros(n),
        lost=np.zeros(n),
        heard=np.full(n, np.inf),
        told=np.zeros(n),
        fall=np.zeros(n),
        wake=np.zeros(n),
        line=np.zeros(5),
    )
    record = LossRecord(every, *(np.zeros((G, K)) for _ in range(3)), np.zeros(K), np.zeros((2, K)), np.zeros(K))
    chunk = max(_CHUNK // n, 1000)
    for first in range(0, S, chunk):
        last = min(first + chunk, S)
        advance_losses(plant, state, record, first, last)
        if progress is not None:
            progress(last / S)
    return record


def _mean_difference(values: np.ndarray) -> float:
    """E|x − y| of two values drawn at random, from the gaps between neighbours."""
    below = np.arange(1, len(values)) / len(values)
    return float(2.0 * np.diff(np.sort(values)) @ (below * (1.0 - below)))
