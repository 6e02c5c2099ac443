"""The fluid simulator's kernel: steps of a scenario, all classes of flows and all links in each.

Explicit midpoint in the windows, on a staggered grid: backlogs and windows stand at the steps' ends, rates and marking
probabilities at their middles, so that a probability that a law holds over a step is met exactly and smooth laws are
integrated to second order. Units: packets, seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from netctrl.fluid.aqm import FAST_PROBABILITY, PRICE, PROBABILITY, Sample, probability
from netctrl.fluid.link import backlog_step
from netctrl.fluid.tcp import LEAST_WINDOW, fast_rate, window_slope

__all__ = ["FLOWS", "LINK_CAPACITY", "LINK_DELAY", "Plant", "Record", "State", "advance"]

FLOWS, LINK_CAPACITY, LINK_DELAY = 0, 1, 2
"""What an event sets: flows of a class, capacity of a link, round trip that a link adds."""


class Plant(NamedTuple):
    """What does not change. n classes sorted by group, G groups, L links, E events, P entries of paths.

    A class is a set of like TCP or FAST flows; a group's classes share its path. A web group has no classes: what it
    sends is a row of `injected`.
    """

    step: float
    rtt: np.ndarray
    """(n,) propagation round trip [s]."""
    fast: np.ndarray
    """(G, 3) of FAST senders: 1, greatest rate [packet/s], gain; of others zeros."""
    first_class: np.ndarray
    """(G + 1,) where each group's classes start."""
    first_hop: np.ndarray
    """(G + 1,) where each group's path starts in `hops`."""
    hops: np.ndarray
    """(P,) links."""
    first_ack_hop: np.ndarray
    ack_hops: np.ndarray
    ack_size: float
    """Of an acknowledgement [packet]."""
    back: np.ndarray
    """(G,) 1 where acknowledgements come back over the lines of the path, which are never busy that way; else 0."""
    ecn: np.ndarray
    """(G,) whether a law marks or drops."""
    injection: np.ndarray
    """(G,) row of `injected` of a web group, −1 of others."""
    law: np.ndarray
    """(L,)"""
    parameters: np.ndarray
    """(L, PARAMETERS)"""
    buffer: np.ndarray
    """(L,) [packet]"""
    event_step: np.ndarray
    """(E,) not falling: the step before which it happens."""
    event_kind: np.ndarray
    event_target: np.ndarray
    event_value: np.ndarray


class State(NamedTuple):
    """What changes. `ring` slots of history, a power of 2, hold what stood at the middles of past steps."""

    window: np.ndarray
    """(n,) of one flow [packet]."""
    flows: np.ndarray
    """(n,) how many are active."""
    rate: np.ndarray
    """(ring, n) history of one flow's rate [packet/s]."""
    signal: np.ndarray
    """(G, ring) history of the probability that a packet was marked or lost."""
    price: np.ndarray
    """(G, ring) history of the path's price [s]."""
    backlog: np.ndarray
    """(L,) [packet]"""
    rise: np.ndarray
    """(L,) growth of the backlog in the last step [packet]."""
    capacity: np.ndarray
    """(L,) [packet/s]"""
    delay: np.ndarray
    """(L,) what the line has become longer by since the beginning, one way [s]."""
    law: np.ndarray
    """(L, STATES)"""
    enqueued: np.ndarray
    """(L,) in the last step [packet]."""
    event: np.ndarray
    """(1,) next event."""


class Record(NamedTuple):
    """Sums over the sampling interval and what is kept of them; T samples of `every` steps."""

    every: int
    sums: np.ndarray
    """(4, L) arrived, departed, lost, marked in the interval so far [packet]."""
    sent: np.ndarray
    """(G,)"""
    links: np.ndarray
    """(6, L, T) backlog, arrived, departed, lost, marked [packet], probability."""
    groups: np.ndarray
    """(3, G, T) sent [packet], what queues and longer lines add to the round trip and to the way out [s]."""


@njit(inline="always")
def _happen(plant: Plant, state: State, step: int) -> None:
    """Make the events that are due."""
    while state.event[0] < len(plant.event_step) and plant.event_step[state.event[0]] <= step:
        k = state.event[0]
        target, value = plant.event_target[k], plant.event_value[k]
        if plant.event_kind[k] == FLOWS:
            state.flows[target] = value
        elif plant.event_kind[k] == LINK_CAPACITY:
            state.capacity[target] = value
        else:
            state.delay[target] = value
        state.event[0] = k + 1


@njit(inline="always")
def _forward_delay(plant: Plant, state: State, group: int) -> float:
    """What queues and longer lines add on a group's way out, at the middle of the step [s]."""
    delay = 0.0
    for h in range(plant.first_hop[group], plant.first_hop[group + 1]):
        link = plant.hops[h]
        middle = max(state.backlog[link] + 0.5 * state.rise[link], 0.0)
        delay += middle / state.capacity[link] + state.delay[link]
    return delay


@njit(inline="always")
def _backward_delay(plant: Plant, state: State, group: int) -> float:
    """The same for the acknowledgements' way back [s]."""
    delay = 0.0
    for h in range(plant.first_hop[group], plant.first_hop[group + 1]):
        delay += plant.back[group] * state.delay[plant.hops[h]]
    for h in range(plant.first_ack_hop[group], plant.first_ack_hop[group + 1]):
        link = plant.ack_hops[h]
        middle = max(state.backlog[link] + 0.5 * state.rise[link], 0.0)
        delay += middle / state.capacity[link] + state.delay[link]
    return delay


@njit(inline="always")
def _send_tcp(plant: Plant, state: State, group: int, step: int, delay: float) -> float:
    """Advance the windows of a group's classes; returns what they send in this step [packet/s]."""
    h, per_step = plant.step, 1.0 / plant.step
    signal, history = state.signal[group], state.rate
    mask = np.uint64(len(signal) - 1)  # unsigned, so that numba needn't look for negative indices
    now = history[np.uint64(step) & mask]
    total = 0.0
    for i in range(plant.first_class[group], plant.first_class[group + 1]):
        flows = state.flows[i]
        if flows <= 0.0:
            continue
        R = plant.rtt[i] + delay
        lag = R * per_step
        whole = int(lag)
        part = 1.0 - (lag - whole)  # of the way from the older slot to the newer
        older, newer = np.uint64(step - whole - 1) & mask, np.uint64(step - whole) & mask
        x = history[older, i] + part * (history[newer, i] - history[older, i])
        p = signal[older] + part * (signal[newer] - signal[older])
        W = state.window[i]
        middle = W + 0.5 * h * window_slope(W, R, x, p)
        state.window[i] = max(W + h * window_slope(middle, R, x, p), LEAST_WINDOW)
        now[i] = middle / R
        total += flows * now[i]
    return total


@njit(inline="always")
def _send_fast(plant: Plant, state: State, group: int, step: int, delay: float) -> float:
    """What a group of FAST senders sends in this step [packet/s]."""
    prices = state.price[group]
    mask = len(prices) - 1
    total = 0.0
    for i in range(plant.first_class[group], plant.first_class[group + 1]):
        R = plant.rtt[i] + delay
        lag = R / plant.step
        whole = int(lag)
        older, newer = (step - whole - 1) & mask, (step - whole) & mask
        price = prices[older] + (1.0 - (lag - whole)) * (prices[newer] - prices[older])
        if state.flows[i] > 0.0:
            total += state.flows[i] * fast_rate(plant.fast[group, 1], plant.fast[group, 2], price, plant.rtt[i])
    return total


@njit(inline="always")
def _serve(plant: Plant, state: State, record: Record, link: int, now: float, offered: np.ndarray) -> float:
    """One step of a link: law, losses, backlog; returns the share that overflows.

    `offered` holds, by link, what arrives and can be marked, what can't, and what is FAST's [packet].
    """
    h, capacity = plant.step, state.capacity[link]
    marked, dropped, fast = offered[link, 0], offered[link, 1], offered[link, 2]
    arrivals = marked + dropped + fast
    own = state.law[link]
    seen = Sample(now, h, state.backlog[link], state.enqueued[link], arrivals, capacity)
    p = probability(plant.law[link], plant.parameters[link], own, seen)
    refused = p * dropped
    before = state.backlog[link]
    after, departed, overflow = backlog_step(before, arrivals - refused, h * capacity, plant.buffer[link])
    state.backlog[link], state.rise[link] = after, after - before
    state.enqueued[link] = arrivals - refused - overflow
    share = overflow / (arrivals - refused) if overflow > 0.0 else 0.0
    sums = record.sums
    sums[0, link] += arrivals
    sums[1, link] += departed
    sums[2, link] += refused + overflow
    sums[3, link] += (p * marked + own[FAST_PROBABILITY] * fast) * (1.0 - share)
    return share


@njit(inline="always")
def _signal(plant: Plant, state: State, group: int, step: int, overflow: np.ndarray) -> None:
    """Remember how a group's path marked and lost in this step."""
    kept, price = 1.0, 0.0
    for h in range(plant.first_hop[group], plant.first_hop[group + 1]):
        link = plant.hops[h]
        kept *= (1.0 - state.law[link, PROBABILITY]) * (1.0 - overflow[link])
        price += state.law[link, PRICE]
    slot = step & (state.signal.shape[1] - 1)
    state.signal[group, slot] = 1.0 - kept
    state.price[group, slot] = price


@njit(inline="always")
def _keep(state: State, record: Record, delays: np.ndarray, sample: int) -> None:
    """Close a sampling interval."""
    record.links[0, :, sample] = state.backlog
    record.links[1:5, :, sample] = record.sums
    record.links[5, :, sample] = state.law[:, PROBABILITY]
    record.groups[0, :, sample] = record.sent
    record.groups[1, :, sample] = delays[0]
    record.groups[2, :, sample] = delays[1]
    record.sums[:] = 0.0
    record.sent[:] = 0.0


@njit(cache=True)
def advance(plant: Plant, state: State, record: Record, injected: np.ndarray, first: int, last: int) -> int:
    """Simulate the steps `first` to `last` − 1; `state` and `record` are changed.

    Parameters
    ----------
    plant : Plant
    state : State
    record : Record
    injected : ndarray, shape (web groups, last − first)
        What web sessions send in each of these steps [packet].
    first, last : int
        Numbers of steps.

    Returns
    -------
    int
        The step to go on from: `last`, or one that needs a longer history than `state` has.
    """
    groups, links = len(plant.first_class) - 1, len(plant.law)
    ring = state.signal.shape[1]
    offered = np.zeros((links, 3))
    overflow = np.zeros(links)
    delays = np.zeros((2, groups))
    for step in range(first, last):
        _happen(plant, state, step)
        for g in range(groups):
            delays[1, g] = _forward_delay(plant, state, g)
            delays[0, g] = delays[1, g] + _backward_delay(plant, state, g)
            longest = plant.first_class[g + 1] - 1
            if longest >= plant.first_class[g] and plant.rtt[longest] + delays[0, g] > (ring - 2) * plant.step:
                return step
        offered[:] = 0.0
        for g in range(groups):
            row = plant.injection[g]
            if row >= 0:
                amount = injected[row, step - first]
            elif plant.fast[g, 0] > 0.0:
                amount = plant.step * _send_fast(plant, state, g, step, delays[0, g])
            else:
                amount = plant.step * _send_tcp(plant, state, g, step, delays[0, g])
            record.sent[g] += amount
            kind = 2 if plant.fast[g, 0] > 0.0 else 0 if plant.ecn[g] else 1
            for h in range(plant.first_hop[g], plant.first_hop[g + 1]):
                offered[plant.hops[h], kind] += amount
            for h in range(plant.first_ack_hop[g], plant.first_ack_hop[g + 1]):
                offered[plant.ack_hops[h], 1] += plant.ack_size * amount
        for link in range(links):
            overflow[link] = _serve(plant, state, record, link, step * plant.step, offered)
        for g in range(groups):
            _signal(plant, state, g, step, overflow)
        if (step + 1) % record.every == 0:
            _keep(state, record, delays, (step + 1) // record.every - 1)
    return last
