"""CoDel at a fluid's queue: when packets are dropped."""

from __future__ import annotations

from math import sqrt

import numpy as np

from netctrl.jit import njit

__all__ = ["CODEL_PLACES", "codel_drops"]

CODEL_PLACES = 5
_FIRST_ABOVE, _NEXT, _COUNT, _LAST_COUNT, _DROPPING = range(CODEL_PLACES)
_RECENT = 16.0  # intervals: whoever drops again so soon goes on where it was


@njit(cache=True, error_model="numpy")
def codel_drops(
    state: np.ndarray, time: float, sojourn: float, packet_time: float, target: float, interval: float
) -> int:
    """How many packets are dropped now; changes the state (5,), zeros at first, in place.

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
            state[_FIRST_ABOVE] = 0.0
            state[_DROPPING] = 0.0
            return drops
        if state[_FIRST_ABOVE] == 0.0:
            state[_FIRST_ABOVE] = time + interval
            return drops
        if state[_DROPPING] == 0.0:
            if time < state[_FIRST_ABOVE]:
                return drops
            state[_DROPPING] = 1.0
            since = state[_COUNT] - state[_LAST_COUNT]
            again = since > 1.0 and time - state[_NEXT] < _RECENT * interval
            state[_COUNT] = since if again else 1.0
            state[_LAST_COUNT] = state[_COUNT]
            state[_NEXT] = time + interval / sqrt(state[_COUNT])
        elif time >= state[_NEXT]:
            state[_COUNT] += 1.0
            state[_NEXT] += interval / sqrt(state[_COUNT])
        else:
            return drops
        drops += 1
        sojourn -= packet_time
