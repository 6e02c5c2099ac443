"""CoDel at a fluid's queue: when packets are dropped."""

from __future__ import annotations

from math import sqrt

import numpy as np

from netctrl.jit import njit
from netctrl.laws.record import compiled_view

__all__ = ["CodelDrops", "codel_drops", "codel_packets"]


class CodelDrops:
    """State of CoDel's drops; zeros at first."""

    first_above: float
    """When the sojourn time will have been above the target for an interval; 0: it isn't above [s]"""
    next_drop: float
    """[s]"""
    count: float
    """Drops since it began to drop"""
    last_count: float
    """The same, when it began"""
    dropping: float
    """1: yes"""


_RECENT = 16.0  # intervals: whoever drops again so soon goes on where it was


@njit(cache=True, error_model="numpy")
def codel_packets(
    state: CodelDrops, time: float, sojourn: float, packet_time: float, target: float, interval: float
) -> int:
    """Number of packets that are dropped now; changes the state in place.

    The first is dropped once the sojourn time was above `target` for an `interval`, the next ones interval/√count after
    the one before, until it is below. A packet that is all that waits stays.

    Parameters
    ----------
    time, sojourn : float
        [s]; of a byte that would depart now.
    packet_time : float
        What a packet takes on the link: by so much a drop shortens the sojourn [s].
    target, interval : float
        [s]; 5 and 100 ms in the source.

    Source: RFC 8289, sections 5.3 to 5.6.
    """
    drops = 0
    while True:
        above = sojourn >= target and sojourn > packet_time
        if not above:
            state.first_above = 0.0
            state.dropping = 0.0
            return drops
        if state.first_above == 0.0:
            state.first_above = time + interval
            return drops
        if state.dropping == 0.0:
            if time < state.first_above:
                return drops
            state.dropping = 1.0
            since = state.count - state.last_count
            again = since > 1.0 and time - state.next_drop < _RECENT * interval
            state.count = since if again else 1.0
            state.last_count = state.count
            state.next_drop = time + interval / sqrt(state.count)
        elif time >= state.next_drop:
            state.count += 1.0
            state.next_drop += interval / sqrt(state.count)
        else:
            return drops
        drops += 1
        sojourn -= packet_time


_state = compiled_view(CodelDrops)


@njit(cache=True, error_model="numpy")
def codel_drops(
    state: np.ndarray, time: float, sojourn: float, packet_time: float, target: float, interval: float
) -> int:
    """`codel_packets` on a row of state."""
    return codel_packets(_state(state), time, sojourn, packet_time, target, interval)
