"""Fluid kernel of window senders over one drop-tail link: windows flow, losses are single packets; compiled.

Windows grow by what is acknowledged, in whole packets, as the senders' laws say. The backlog q is what the windows hold
beyond the line, Σ wᵢ/(dᵢ + q/C) = C. A packet that finds no room is taken from a flow drawn by what arrives; the flow
hears of it a round trip and three of its packets later, cuts its window once for all losses until then, and gives up
what its window has beyond the cut during the next round trip (RFC 6675). A flow with less than three packets left waits
for its timer (RFC 6298) and starts slowly.

Packets of flows with several round trips meet by chance: what the busy line holds is a sum over the packets that left
the link, each there for its flow's base round trip d. Its variance is ½ c C E|d − d'| for packets of two flows drawn at
random, which come in clusters of c. The backlog deviates from q by this, and longer lines make it shorter. Units:
packets, seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import INSIDE, njit
from netctrl.laws.record import row_names
from netctrl.laws.tcp.rows import window_acts
from netctrl.laws.tcp.sender import Acked, TcpWindow

_WINDOW, _THRESHOLD, _RTT, _MIN_RTT, _MAX_RTT, _CUT = (
    row_names(TcpWindow).index(name) for name in ("window", "threshold", "rtt", "min_rtt", "max_rtt", "cut_s")
)
_grow, _cut = window_acts(**INSIDE)

_DUPLICATES = 3.0
"""Packets that arrive before a loss is known (RFC 5681), and the fewest that make it known."""
_MIN_TIMEOUT = 1.0
"""[s] RFC 6298."""
_CLUSTER = 1.5
"""Packets of a flow that come together, in the mean. Fitted, as is `_FORGETS`, to packets on 127 links."""
_FORGETS = 0.3
"""Time in which the deviation of the backlog is forgotten [round trip]."""
_PAIR = 1.0
"""Room that the second packet of a window's growth takes, which comes with the first [packet]."""
_ITERATIONS, _EXACT = 20, 1e-3
"""Of Newton's method for the backlog; its last step [packet]."""


class LossPlant(NamedTuple):
    """Constants of n flows, and of the link in S steps."""

    step: float
    """[s]"""
    buffer: float
    """[packet]"""
    spread: float
    """E|d − d'| of two flows' base round trips [s]."""
    law: np.ndarray
    """(n,) place in WINDOWS."""
    base: np.ndarray
    """(n,) round trip without queueing [s]."""
    start: np.ndarray
    stop: np.ndarray
    group: np.ndarray
    """(n,) row of the record."""
    capacity: np.ndarray
    """(S,) [packet/s]"""
    taken: np.ndarray
    """(S + 1,) what a busy link has taken when each step begins [packet]."""
    longer: np.ndarray
    """(S,) what the line has become longer by since the beginning, there and back [s]."""
    uniform: np.ndarray
    """Draws from 0 to 1, taken in turn."""
    normal: np.ndarray
    """Standard normal draws, taken in turn."""


class LossState(NamedTuple):
    """Variables of n flows."""

    row: np.ndarray
    """(n, ·) of the windows' laws."""
    held: np.ndarray
    """(n,) the window, or more while it comes down to a cut [packet]."""
    flight: np.ndarray
    """(n,) what is on its way [packet]."""
    lost: np.ndarray
    """(n,) of the window, which the flow doesn't know of [packet]."""
    heard: np.ndarray
    """(n,) when the flow hears of its last loss [s]; inf before the first."""
    told: np.ndarray
    """(n,) until when the window comes down to a cut [s]; inf after the flow's end."""
    fall: np.ndarray
    """(n,) of `held` [packet/s]."""
    wake: np.ndarray
    """(n,) when a silent flow begins again [s]."""
    line: np.ndarray
    """Backlog q, its deviation, the backlog that is seen, which falls as fast as the link empties it [packet], how many
    draws were taken, and the step in which what leaves now has come."""


class LossRecord(NamedTuple):
    """K bins of `every` steps, for G groups of flows and for the link [packet]."""

    every: int
    delivered: np.ndarray
    """(G, K)"""
    lost: np.ndarray
    """(G, K)"""
    trip: np.ndarray
    """(G, K) sum of round trips of what was delivered [packet s]."""
    arrived: np.ndarray
    """(K,)"""
    backlog: np.ndarray
    """(2, K) greatest, last."""
    waited: np.ndarray
    """(K,) mean age of what leaves [s]."""


_Q, _DEVIATION, _SEEN, _DRAWS, _PLACE = range(5)


@njit(**INSIDE)
def _age(plant: LossPlant, state: LossState, t: int, q: float) -> float:
    """How long before step t a busy link began to take the last q packets [s]: q over a constant capacity."""
    taken, p = plant.taken, int(state.line[_PLACE])
    begin = taken[t] - q
    if q <= 0.0 or begin <= 0.0:
        return (t - begin / taken[1]) * plant.step if q > 0.0 else 0.0
    while taken[p] > begin:
        p -= 1
    while taken[p + 1] <= begin:
        p += 1
    state.line[_PLACE] = p
    return (t - p - (begin - taken[p]) / (taken[p + 1] - taken[p])) * plant.step


@njit(**INSIDE)
def _hears(plant: LossPlant, state: LossState, i: int, now: float, trip: float) -> None:
    """A flow hears of its losses: it cuts its window, or waits for its timer."""
    row = state.row[i]
    left = state.held[i] - state.lost[i]
    state.lost[i], state.heard[i] = 0.0, np.inf
    _cut(plant.law[i], row)
    row[_CUT], row[_THRESHOLD] = now, row[_WINDOW]
    state.told[i] = now + trip
    if left < _DUPLICATES:
        row[_WINDOW] = 1.0
        state.held[i], state.wake[i], state.fall[i] = 0.0, now + max(_MIN_TIMEOUT, trip), 0.0
        return
    state.held[i] = max(left, row[_WINDOW])
    state.fall[i] = (state.held[i] - row[_WINDOW]) / trip


@njit(**INSIDE)
def _moves(plant: LossPlant, state: LossState, i: int, now: float, trip: float) -> None:
    """A step of a flow's window."""
    row, h = state.row[i], plant.step
    if now >= plant.stop[i]:
        if state.told[i] < np.inf:
            state.told[i], state.fall[i] = np.inf, state.held[i] / trip
        state.held[i] = max(state.held[i] - state.fall[i] * h, 0.0)
        return
    if now < state.wake[i]:
        return
    row[_RTT], row[_MIN_RTT], row[_MAX_RTT] = trip, min(row[_MIN_RTT], trip), max(row[_MAX_RTT], trip)
    if now >= state.heard[i]:
        _hears(plant, state, i, now, trip)
    elif now < state.told[i] and state.held[i] > 0.0:
        state.held[i] = max(state.held[i] - state.fall[i] * h, row[_WINDOW])
    else:
        state.fall[i] = 0.0
        if state.held[i] > 0.0:
            _grow(plant.law[i], row, Acked(state.flight[i] / trip * h, now - row[_CUT], trip, True))
        state.held[i] = row[_WINDOW]


@njit(**INSIDE)
def _balance(flight: np.ndarray, base: np.ndarray, longer: float, capacity: float, q: float) -> float:
    """Backlog at which the flows send what the link takes, negative where they hold less than the line.

    Newton's method, from the last backlog: the rate is convex in it, so all its steps but the first go up.
    """
    q = max(q, 0.0)
    for _ in range(_ITERATIONS):
        rate, slope = 0.0, 0.0
        for i in range(len(flight)):
            turns = 1.0 / (base[i] + longer + q / capacity)
            rate += flight[i] * turns
            slope += flight[i] * turns * turns
        if slope <= 0.0:
            return 0.0
        step = (rate - capacity) * capacity / slope
        if q == 0.0 and step < 0.0:
            return flight.sum() * (1.0 - capacity / rate)
        q = max(q + step, 0.0)
        if abs(step) < _EXACT:
            break
    return q


@njit(**INSIDE)
def drawn(weights: np.ndarray, rest: float) -> int:
    """The flow at which these weights have summed up to `rest`, a number drawn from 0 to their sum."""
    for i in range(len(weights)):
        rest -= weights[i]
        if rest < 0.0:
            return i
    return int(np.argmax(weights))


@njit(cache=True, error_model="numpy")
def advance_losses(plant: LossPlant, state: LossState, record: LossRecord, first: int, last: int) -> None:
    """Simulate the steps `first` to `last` − 1; `state` and `record` are changed."""
    n, h, line, flight = len(plant.law), plant.step, state.line, state.flight
    mean, rates = plant.base.mean(), np.zeros(n)
    for t in range(first, last):
        now, k = t * h, t // record.every
        capacity, longer = plant.capacity[t], plant.longer[t]
        wait = _age(plant, state, t, line[_Q])
        for i in range(n):
            if now >= plant.start[i]:
                _moves(plant, state, i, now, plant.base[i] + longer + wait)
                flight[i] = max(np.floor(state.held[i]) - state.lost[i], 0.0)
        q = _balance(flight, plant.base, longer, capacity, line[_Q])
        kept = np.exp(-h / (_FORGETS * (mean + longer + wait)))
        noise = plant.normal[t % len(plant.normal)] * np.sqrt(0.5 * _CLUSTER * capacity * plant.spread)
        line[_DEVIATION] = kept * line[_DEVIATION] + np.sqrt(1.0 - kept * kept) * noise
        fell = 0.0
        while q + line[_DEVIATION] >= plant.buffer - _PAIR:
            wait = _age(plant, state, t, q)
            arriving = 0.0
            for i in range(n):
                rates[i] = flight[i] / (plant.base[i] + longer + wait)
                arriving += rates[i]
            i = drawn(rates, arriving * plant.uniform[int(line[_DRAWS]) % len(plant.uniform)])
            line[_DRAWS] += 1.0
            if flight[i] < 1.0:
                break
            flight[i] -= 1.0
            state.lost[i] += 1.0
            record.lost[plant.group[i], k] += 1.0
            fell += 1.0
            q -= 1.0
            if state.heard[i] == np.inf:
                trip = plant.base[i] + longer + wait
                state.heard[i] = now + trip * (1.0 + _DUPLICATES / max(flight[i], 1.0))
        line[_Q], wait = q, _age(plant, state, t, q)
        rate = 0.0
        for i in range(n):
            rate += flight[i] / (plant.base[i] + longer + wait)
        share = h * (capacity / rate if q > 0.0 else min(capacity / rate, 1.0)) if rate > 0.0 else 0.0
        for i in range(n):
            trip = plant.base[i] + longer + wait
            record.delivered[plant.group[i], k] += flight[i] / trip * share
            record.trip[plant.group[i], k] += flight[i] * share
        seen = min(max(q + line[_DEVIATION], line[_SEEN] - rate * share, 0.0), plant.buffer)
        # Where nothing arrives what leaves is what the queue shrinks by, but for rounding.
        record.arrived[k] += max(rate * share + seen - line[_SEEN], 0.0) + fell
        line[_SEEN] = seen
        record.waited[k] += _age(plant, state, t, seen) / record.every
        record.backlog[0, k] = max(record.backlog[0, k], seen)
        record.backlog[1, k] = seen
