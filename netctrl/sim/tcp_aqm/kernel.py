"""The fluid simulator's kernel: steps of a scenario, all classes of flows and all links in each.

Explicit midpoint in the windows, on a staggered grid: backlogs and windows are at the steps' ends, rates and marking
probabilities at their middles, so that a probability that a law holds over a step is met exactly and smooth laws are
integrated to second order. Units: packets, seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.jit import njit
from netctrl.laws.aqm.fluid import FAST_PROBABILITY, PRICE, PROBABILITY, Sample, probability
from netctrl.laws.link import backlog_step
from netctrl.plants.tcp import MIN_WINDOW, fast_rate, window_slope

__all__ = ["FLOWS", "LINK_CAPACITY", "LINK_DELAY", "Plant", "Record", "State", "advance"]

FLOWS, LINK_CAPACITY, LINK_DELAY = 0, 1, 2
"""What an event sets: flows of a class, capacity of a link, round trip that a link adds."""


class Plant(NamedTuple):
    """Constants. n classes sorted by group, G groups, L links, E events, P entries of paths.

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
    """Variables. `ring` slots of history, a power of 2, hold the values at the middles of past steps."""

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


class _Queues(NamedTuple):
    """What a step of a link needs. Small tuples, since numba copies a whole one for each function that it inlines."""

    kind: np.ndarray
    parameters: np.ndarray
    buffer: np.ndarray
    capacity: np.ndarray
    backlog: np.ndarray
    rise: np.ndarray
    law: np.ndarray
    enqueued: np.ndarray
    sums: np.ndarray


class _Paths(NamedTuple):
    """What a step of a group needs, its senders aside."""

    first_hop: np.ndarray
    hops: np.ndarray
    first_ack_hop: np.ndarray
    ack_hops: np.ndarray
    back: np.ndarray
    delay: np.ndarray
    signal: np.ndarray
    price: np.ndarray


class _Senders(NamedTuple):
    """What a step of a group's classes needs."""

    first_class: np.ndarray
    rtt: np.ndarray
    fast: np.ndarray
    flows: np.ndarray
    window: np.ndarray
    rate: np.ndarray
    heard: np.ndarray
    """(2, n) rate and signal of one round trip ago."""


@njit(inline="always")
def _happen(plant: Plant, state: State, step: int) -> bool:
    """Make the events that are due; returns whether there was one."""
    before = state.event[0]
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
    return state.event[0] > before


@njit(inline="always")
def _look(senders: _Senders, active: np.ndarray) -> None:
    """Find the groups with an active flow, as the others needn't be computed."""
    for g in range(len(active)):
        active[g] = np.any(senders.flows[senders.first_class[g] : senders.first_class[g + 1]] > 0.0)


@njit(inline="always")
def _queueing(queues: _Queues, link: int) -> float:
    """Delay of a link's queue at the middle of the step [s]."""
    return max(queues.backlog[link] + 0.5 * queues.rise[link], 0.0) / queues.capacity[link]


@njit(inline="always")
def _forward_delay(paths: _Paths, queues: _Queues, group: int) -> float:
    """What queues and longer lines add on a group's way out, at the middle of the step [s]."""
    delay = 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        link = paths.hops[h]
        delay += _queueing(queues, link) + paths.delay[link]
    return delay


@njit(inline="always")
def _backward_delay(paths: _Paths, queues: _Queues, group: int) -> float:
    """The same for the acknowledgements' way back [s]."""
    delay = 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        delay += paths.back[group] * paths.delay[paths.hops[h]]
    for h in range(paths.first_ack_hop[group], paths.first_ack_hop[group + 1]):
        link = paths.ack_hops[h]
        delay += _queueing(queues, link) + paths.delay[link]
    return delay


@njit(inline="always")
def _hear(senders: _Senders, signal: np.ndarray, h: float, group: int, step: int, delay: float) -> None:
    """Signals of one round trip ago for a group's classes: their own rate [packet/s] and the path's signal.

    Loads from all over the history, so apart from the arithmetic, which the compiler can vectorise. All indices are
    unsigned, so that numba needn't look for negative ones.
    """
    rate, heard, per_step = senders.rate, senders.heard, 1.0 / h
    g, mask = np.uint64(group), np.uint64(signal.shape[1] - 1)
    for i in range(np.uint64(senders.first_class[group]), np.uint64(senders.first_class[group + 1])):
        lag = (senders.rtt[i] + delay) * per_step
        whole = int(lag)
        part = 1.0 - (lag - whole)  # of the way from the older slot to the newer
        older, newer = np.uint64(step - whole - 1) & mask, np.uint64(step - whole) & mask
        heard[0, i] = rate[older, i] + part * (rate[newer, i] - rate[older, i])
        heard[1, i] = signal[g, older] + part * (signal[g, newer] - signal[g, older])


@njit(cache=True, error_model="numpy", fastmath={"reassoc"})
def _advance_windows(senders: _Senders, now: np.uint64, h: float, group: int, delay: float) -> float:
    """Advance the windows of a group's classes by a step; returns what they send in it [packet/s].

    A loop of vector instructions: no branch, division without a check, a sum in any order.
    """
    rtt, flows, window, rate, heard = senders.rtt, senders.flows, senders.window, senders.rate, senders.heard
    total = 0.0
    for i in range(np.uint64(senders.first_class[group]), np.uint64(senders.first_class[group + 1])):
        R, W, x, p = rtt[i] + delay, window[i], heard[0, i], heard[1, i]
        middle = W + 0.5 * h * window_slope(W, R, x, p)
        after = max(W + h * window_slope(middle, R, x, p), MIN_WINDOW)
        active = flows[i] > 0.0
        window[i] = after if active else W
        sent = middle / R if active else 0.0
        rate[now, i] = sent
        total += flows[i] * sent
    return total


@njit(inline="always")
def _send_tcp(senders: _Senders, signal: np.ndarray, h: float, group: int, step: int, delay: float) -> float:
    """What a group of TCP senders sends in this step [packet/s]."""
    _hear(senders, signal, h, group, step, delay)
    return _advance_windows(senders, np.uint64(step) & np.uint64(signal.shape[1] - 1), h, group, delay)


@njit(inline="always")
def _send_fast(senders: _Senders, price: np.ndarray, h: float, group: int, step: int, delay: float) -> float:
    """What a group of FAST senders sends in this step [packet/s]."""
    mask = price.shape[1] - 1
    total = 0.0
    for i in range(senders.first_class[group], senders.first_class[group + 1]):
        lag = (senders.rtt[i] + delay) / h
        whole = int(lag)
        older, newer = (step - whole - 1) & mask, (step - whole) & mask
        told = price[group, older] + (1.0 - (lag - whole)) * (price[group, newer] - price[group, older])
        if senders.flows[i] > 0.0:
            rate = fast_rate(senders.fast[group, 1], senders.fast[group, 2], told, senders.rtt[i])
            total += senders.flows[i] * rate
    return total


@njit(inline="always")
def _serve(queues: _Queues, h: float, link: int, now: float, offered: np.ndarray) -> float:
    """One step of a link: law, losses, backlog; returns the share that overflows.

    `offered` holds, by link, what arrives and can be marked, what can't, and what is FAST's [packet].
    """
    capacity, before = queues.capacity[link], queues.backlog[link]
    marked, dropped, fast = offered[link, 0], offered[link, 1], offered[link, 2]
    arrivals = marked + dropped + fast
    own = queues.law[link]
    seen = Sample(now, h, before, queues.enqueued[link], arrivals, capacity)
    p = probability(queues.kind[link], queues.parameters[link], own, seen)
    refused = p * dropped
    after, departed, overflow = backlog_step(before, arrivals - refused, h * capacity, queues.buffer[link])
    queues.backlog[link], queues.rise[link] = after, after - before
    queues.enqueued[link] = arrivals - refused - overflow
    share = overflow / (arrivals - refused) if overflow > 0.0 else 0.0
    queues.sums[0, link] += arrivals
    queues.sums[1, link] += departed
    queues.sums[2, link] += refused + overflow
    queues.sums[3, link] += (p * marked + own[FAST_PROBABILITY] * fast) * (1.0 - share)
    return share


@njit(inline="always")
def _signal(paths: _Paths, law: np.ndarray, group: int, step: int, overflow: np.ndarray) -> None:
    """Store a group's path's marks and losses of this step."""
    kept, price = 1.0, 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        link = paths.hops[h]
        kept *= (1.0 - law[link, PROBABILITY]) * (1.0 - overflow[link])
        price += law[link, PRICE]
    slot = step & (paths.signal.shape[1] - 1)
    paths.signal[group, slot] = 1.0 - kept
    paths.price[group, slot] = price


@njit(inline="always")
def _keep(state: State, record: Record, delays: np.ndarray, sample: int) -> None:
    """Close a sampling interval. Number by number: assigning slices takes a third of the kernel's compiling."""
    for link in range(len(state.backlog)):
        record.links[0, link, sample] = state.backlog[link]
        for k in range(4):
            record.links[1 + k, link, sample] = record.sums[k, link]
        record.links[5, link, sample] = state.law[link, PROBABILITY]
    for group in range(len(record.sent)):
        record.groups[0, group, sample] = record.sent[group]
        record.groups[1, group, sample] = delays[0, group]
        record.groups[2, group, sample] = delays[1, group]
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
    active = np.zeros(groups, dtype=np.bool_)
    queues = _Queues(
        plant.law,
        plant.parameters,
        plant.buffer,
        state.capacity,
        state.backlog,
        state.rise,
        state.law,
        state.enqueued,
        record.sums,
    )
    paths = _Paths(
        plant.first_hop,
        plant.hops,
        plant.first_ack_hop,
        plant.ack_hops,
        plant.back,
        state.delay,
        state.signal,
        state.price,
    )
    heard = np.zeros((2, len(plant.rtt)))
    senders = _Senders(plant.first_class, plant.rtt, plant.fast, state.flows, state.window, state.rate, heard)
    for step in range(first, last):
        if _happen(plant, state, step) or step == first:
            _look(senders, active)
        for g in range(groups):
            delays[1, g] = _forward_delay(paths, queues, g)
            delays[0, g] = delays[1, g] + _backward_delay(paths, queues, g)
            longest = plant.first_class[g + 1] - 1
            if longest >= plant.first_class[g] and plant.rtt[longest] + delays[0, g] > (ring - 2) * plant.step:
                return step
        offered[:] = 0.0
        for g in range(groups):
            row, amount = plant.injection[g], 0.0
            if row >= 0:
                amount = injected[row, step - first]
            elif plant.fast[g, 0] > 0.0:
                amount = plant.step * _send_fast(senders, state.price, plant.step, g, step, delays[0, g])
            elif active[g]:
                amount = plant.step * _send_tcp(senders, state.signal, plant.step, g, step, delays[0, g])
            record.sent[g] += amount
            kind = 2 if plant.fast[g, 0] > 0.0 else 0 if plant.ecn[g] else 1
            for h in range(plant.first_hop[g], plant.first_hop[g + 1]):
                offered[plant.hops[h], kind] += amount
            for h in range(plant.first_ack_hop[g], plant.first_ack_hop[g + 1]):
                offered[plant.ack_hops[h], 1] += plant.ack_size * amount
        for link in range(links):
            overflow[link] = _serve(queues, plant.step, link, step * plant.step, offered)
        for g in range(groups):
            _signal(paths, state.law, g, step, overflow)
        if (step + 1) % record.every == 0:
            _keep(state, record, delays, (step + 1) // record.every - 1)
    return last
