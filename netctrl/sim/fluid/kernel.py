"""The fluid simulator's kernel: steps of a scenario, all classes of flows and all links in each.

Explicit midpoint in the windows, on a staggered grid: backlogs and windows are at the steps' ends, rates and marking
probabilities at their middles, so that a probability that a law holds over a step is met exactly and smooth laws are
integrated to second order. Units: packets, seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.aqm.fluid import PRICE, PROBABILITY, SCALABLE_PROBABILITY
from netctrl.sim.fluid.queues import CLASSIC, DROPPED, FAST, SCALABLE, Pairs, Queues, queueing, serve, serve_pair
from netctrl.sim.fluid.windows import Senders, send_fast, send_tcp

FLOWS, LINK_CAPACITY, LINK_DELAY = 0, 1, 2
"""What an event sets: flows of a class, capacity of a link, round trip that a link adds."""


class Plant(NamedTuple):
    """Constants. n classes sorted by group, G groups, L rows of links, E events, P entries of paths.

    A link has a row, and one with two queues a second one behind all links (`netctrl.sim.fluid.queues`). A class
    is a set of like TCP or FAST flows; a group's classes share its path. A web group has no classes: what it sends is a
    row of `injected`.
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
    sender: np.ndarray
    """(G,) position in `FLUID_SENDERS`."""
    scalable: np.ndarray
    """(G,) whether packets are of L4S, ECT(1)."""
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
    memory: np.ndarray
    """(2, n) what senders but Reno remember."""
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
    service: np.ndarray
    """(L,) what a row's queue may have of it [packet/s]."""
    delay: np.ndarray
    """(L,) what the line has become longer by since the beginning, one way [s]."""
    law: np.ndarray
    """(L, STATES)"""
    enqueued: np.ndarray
    """(L,) in the last step [packet]."""
    event: np.ndarray
    """(1,) next event."""
    pairs: Pairs
    """Links with two queues."""


class Record(NamedTuple):
    """Sums over the sampling interval and what is kept of them; T samples of `every` steps."""

    every: int
    sums: np.ndarray
    """(4, L) arrived, departed, lost, marked in the interval so far [packet]."""
    delivered: np.ndarray
    """(G,)"""
    links: np.ndarray
    """(6, L, T) backlog, arrived, departed, lost, marked [packet], probability."""
    groups: np.ndarray
    """(3, G, T) delivered [packet], what queues and longer lines add to the round trip and to the way out [s]."""


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
            state.capacity[target] = state.service[target] = value
        else:
            state.delay[target] = value
        state.event[0] = k + 1
    return state.event[0] > before


@njit(inline="always")
def _look(senders: Senders, active: np.ndarray) -> None:
    """Find the groups with an active flow, as the others needn't be computed."""
    for g in range(len(active)):
        active[g] = np.any(senders.flows[senders.first_class[g] : senders.first_class[g + 1]] > 0.0)


@njit(inline="always")
def _forward_delay(paths: _Paths, queues: Queues, group: int) -> float:
    """What queues and longer lines add on a group's way out, at the middle of the step [s]."""
    delay = 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        link = paths.hops[h]
        delay += queueing(queues, link) + paths.delay[link]
    return delay


@njit(inline="always")
def _leaving_delay(paths: _Paths, queues: Queues, pair: np.ndarray, group: int) -> float:
    """Wait in queues that mark what leaves, on a group's way out [s]."""
    delay = 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        if pair[paths.hops[h]] != -1:
            delay += queueing(queues, paths.hops[h])
    return delay


@njit(inline="always")
def _backward_delay(paths: _Paths, queues: Queues, group: int) -> float:
    """The same for the acknowledgements' way back [s]."""
    delay = 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        delay += paths.back[group] * paths.delay[paths.hops[h]]
    for h in range(paths.first_ack_hop[group], paths.first_ack_hop[group + 1]):
        link = paths.ack_hops[h]
        delay += queueing(queues, link) + paths.delay[link]
    return delay


@njit(inline="always")
def _signal(paths: _Paths, law: np.ndarray, scalable: bool, group: int, step: int, overflow: np.ndarray) -> None:
    """Store a group's path's marks and losses of this step."""
    kept, price = 1.0, 0.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        link = paths.hops[h]
        p = law[link, PROBABILITY]
        if scalable:
            p = max(p, law[link, SCALABLE_PROBABILITY])
        kept *= (1.0 - p) * (1.0 - overflow[link])
        price += law[link, PRICE]
    slot = step & (paths.signal.shape[1] - 1)
    paths.signal[group, slot] = 1.0 - kept
    paths.price[group, slot] = price


@njit(inline="always")
def _kept(paths: _Paths, kept: np.ndarray, group: int, kind: int) -> float:
    """Share of what a group sends that no link of its path loses."""
    share = 1.0
    for h in range(paths.first_hop[group], paths.first_hop[group + 1]):
        share *= kept[paths.hops[h], kind]
    return share


@njit(inline="always")
def _keep(state: State, record: Record, delays: np.ndarray, sample: int) -> None:
    """Close a sampling interval. Number by number: assigning slices takes a third of the kernel's compiling."""
    for link in range(len(state.backlog)):
        record.links[0, link, sample] = state.backlog[link]
        for k in range(4):
            record.links[1 + k, link, sample] = record.sums[k, link]
        record.links[5, link, sample] = state.law[link, PROBABILITY]
    for group in range(len(record.delivered)):
        record.groups[0, group, sample] = record.delivered[group]
        record.groups[1, group, sample] = delays[0, group]
        record.groups[2, group, sample] = delays[1, group]
    record.sums[:] = 0.0
    record.delivered[:] = 0.0


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
    offered, kept = np.zeros((links, 4)), np.ones((links, 4))
    kinds, amounts = np.zeros(groups, dtype=np.int64), np.zeros(groups)
    pair = state.pairs.pair
    singles = links - len(state.pairs.base)
    overflow = np.zeros(links)
    delays = np.zeros((2, groups))
    active = np.zeros(groups, dtype=np.bool_)
    queues = Queues(
        plant.law,
        plant.parameters,
        plant.buffer,
        state.capacity,
        state.service,
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
    senders = Senders(
        plant.first_class,
        plant.rtt,
        plant.fast,
        plant.sender,
        state.flows,
        state.window,
        state.memory,
        state.rate,
        heard,
    )
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
                amount = plant.step * send_fast(senders, state.price, plant.step, g, step, delays[0, g])
            elif active[g]:
                leaving = _leaving_delay(paths, queues, pair, g) if singles < links else 0.0
                amount = plant.step * send_tcp(senders, state.signal, plant.step, g, step, delays[0, g], leaving)
            kind = FAST if plant.fast[g, 0] > 0.0 else CLASSIC if plant.ecn[g] else DROPPED
            if plant.scalable[g]:
                kind = SCALABLE
            kinds[g], amounts[g] = kind, amount
            for h in range(plant.first_hop[g], plant.first_hop[g + 1]):
                offered[plant.hops[h], kind] += amount
            for h in range(plant.first_ack_hop[g], plant.first_ack_hop[g + 1]):
                offered[plant.ack_hops[h], DROPPED] += plant.ack_size * amount
        for link in range(singles):
            if pair[link] < 0:
                overflow[link] = serve(queues, plant.step, link, step * plant.step, offered, kept)
            else:
                low = singles + pair[link]
                rows = link, low
                overflow[link] = overflow[low] = serve_pair(queues, state.pairs, plant.step, rows, step, offered, kept)
        for g in range(groups):
            _signal(paths, state.law, plant.scalable[g], g, step, overflow)
            record.delivered[g] += amounts[g] * _kept(paths, kept, g, kinds[g])
        if (step + 1) % record.every == 0:
            _keep(state, record, delays, (step + 1) // record.every - 1)
    return last
