"""CoDel at a fluid's queue: number of packets dropped at a time, by the packet law."""

from __future__ import annotations

import numpy as np

from netctrl.jit import njit
from netctrl.laws.aqm.codel import CodelDrops, CodelParameters, codel_head
from netctrl.laws.record import compiled_view

_head = njit(codel_head, error_model="numpy")


@njit(cache=True, error_model="numpy")
def codel_packets(
    state: CodelDrops, time: float, sojourn: float, packet_time: float, target: float, interval: float
) -> int:
    """Number of packets dropped now at a fluid's queue; changes the state in place.

    Parameters
    ----------
    time, sojourn : float
        [s]; of a byte that would depart now.
    packet_time : float
        What a packet takes on the link: by so much a drop shortens the sojourn [s].
    target, interval : float
        [s]; 5 and 100 ms in the source.
    """
    drops = 0
    while _head(state, time, sojourn, sojourn <= packet_time, CodelParameters(target, interval)):
        drops += 1
        sojourn -= packet_time
    return drops


_state = compiled_view(CodelDrops)


@njit(cache=True, error_model="numpy")
def codel_drops(
    state: np.ndarray, time: float, sojourn: float, packet_time: float, target: float, interval: float
) -> int:
    """`codel_packets` on a row of state."""
    return codel_packets(_state(state), time, sojourn, packet_time, target, interval)
