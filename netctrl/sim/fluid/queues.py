"""A step of a link's queue in the fluid, and of the two queues of DualPI2.

DualPI2's row of arrays is the C queue, and a row behind those of all links the L queue. The scheduler is the limit of
weighted round robin for packets without size: each queue has its share of the link while both wait, and what one
doesn't need is the other's, so that the L queue waits only where it needs more than 1 - `protection` of the link. Laws
see what they see in Linux: the waiting time of the older of both heads at updates, that of the L queue's head for the
step; and their probabilities are those of what leaves. Units: packets, seconds. Source: `netctrl.laws.l4s.dualpi2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.jit import njit
from netctrl.laws.aqm.fluid import FAST_PROBABILITY, PROBABILITY, SCALABLE_PROBABILITY, Sample, probability
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import pi2_base
from netctrl.laws.link import backlog_step, head_age

CLASSIC, DROPPED, FAST, SCALABLE = range(4)
"""Kinds of arrivals: can be marked, can't be, FAST's, of scalable senders."""
_PARAMETERS = 8
_LEAST = 2.0
"""Backlog below which the PI law doesn't act [packet]."""
_STARVED = 1e-3
"""Share of the link that the C queue's wait is reckoned with where the L queue takes all."""

_base = njit(pi2_base)


class Queues(NamedTuple):
    """What a step of a link needs. Small tuples, since numba copies a whole one for each function that it inlines."""

    kind: np.ndarray
    parameters: np.ndarray
    buffer: np.ndarray
    capacity: np.ndarray
    service: np.ndarray
    backlog: np.ndarray
    rise: np.ndarray
    law: np.ndarray
    enqueued: np.ndarray
    sums: np.ndarray


class Pairs(NamedTuple):
    """J links with two queues; the row of the L queue of pair j is L + j."""

    pair: np.ndarray
    """(rows,) pair of a C queue's row; -1 of a single queue, -2 of an L queue."""
    parameters: np.ndarray
    """(J, 8) target, update [s], alpha, beta [1/s], k, step [s], packets from which it acts, protection."""
    base: np.ndarray
    """(J,) p'"""
    old_delay: np.ndarray
    """(J,) at the last update [s]."""
    updates: np.ndarray
    """(J,) how many there were."""
    arrived: np.ndarray
    """(2 J, ring) history of what has been enqueued by the end of a step, C queue of pair j in row 2 j [packet]."""
    departed: np.ndarray
    """(2 J,) what has left [packet]."""
    head: np.ndarray
    """(2 J,) step in which the head was enqueued."""


def pairs(queues: Sequence[object], ring: int) -> Pairs:
    """The pairs among links with these queues, empty."""
    dual = [queue for queue in queues if isinstance(queue, DualPi2Queue)]
    J = len(dual)
    numbers = iter(range(J))
    pair = [next(numbers) if isinstance(queue, DualPi2Queue) else -1 for queue in queues]
    return Pairs(
        pair=np.array([*pair, *[-2] * J], dtype=np.int64),
        parameters=np.array([_parameters(queue) for queue in dual]).reshape(J, _PARAMETERS),
        base=np.zeros(J),
        old_delay=np.zeros(J),
        updates=np.zeros(J),
        arrived=np.zeros((2 * J, ring)),
        departed=np.zeros(2 * J),
        head=np.zeros(2 * J, dtype=np.int64),
    )


def _parameters(queue: DualPi2Queue) -> tuple[float, ...]:
    gains = queue.target, queue.update, queue.alpha, queue.beta, queue.coupling
    return *gains, queue.step, float(queue.step_packets), queue.protection


def longer_arrivals(found: Pairs, old: np.ndarray, new: np.ndarray) -> Pairs:
    """The same with twice as long a history, whose slots `old` come to `new`."""
    arrived = np.zeros((found.arrived.shape[0], 2 * found.arrived.shape[1]))
    arrived[:, new] = found.arrived[:, old]
    return found._replace(arrived=arrived)


@njit(inline="always")
def queueing(queues: Queues, link: int) -> float:
    """Delay of a link's queue at the middle of the step [s]."""
    return max(queues.backlog[link] + 0.5 * queues.rise[link], 0.0) / queues.service[link]


@njit(inline="always")
def serve(queues: Queues, h: float, link: int, now: float, offered: np.ndarray, kept: np.ndarray) -> float:
    """One step of a link: law, losses, backlog; returns the share that overflows.

    `offered` holds, by link and kind, what arrives [packet]; `kept` takes the share of it that isn't lost.
    """
    capacity, before = queues.capacity[link], queues.backlog[link]
    marked, dropped, fast = offered[link, CLASSIC], offered[link, DROPPED], offered[link, FAST]
    arrivals = marked + dropped + fast + offered[link, SCALABLE]
    own = queues.law[link]
    seen = Sample(now, h, before, queues.enqueued[link], arrivals, capacity)
    p = probability(queues.kind[link], queues.parameters[link], own, seen)
    refused = p * dropped
    after, departed, overflow = backlog_step(before, arrivals - refused, h * capacity, queues.buffer[link])
    queues.backlog[link], queues.rise[link] = after, after - before
    queues.enqueued[link] = arrivals - refused - overflow
    share = overflow / (arrivals - refused) if overflow > 0.0 else 0.0
    kept[link, :] = 1.0 - share
    kept[link, DROPPED] *= 1.0 - p
    queues.sums[0, link] += arrivals
    queues.sums[1, link] += departed
    queues.sums[2, link] += refused + overflow
    coupled = max(p, own[SCALABLE_PROBABILITY]) * offered[link, SCALABLE]
    queues.sums[3, link] += (p * marked + own[FAST_PROBABILITY] * fast + coupled) * (1.0 - share)
    return share


@njit(inline="always")
def _age(found: Pairs, queue: int, step: int) -> float:
    """Waiting time of a queue's head at the beginning of a step, in steps; 0 of an empty queue."""
    age, found.head[queue] = head_age(found.arrived[queue], found.head[queue], step, found.departed[queue])
    return age


@njit(cache=True, error_model="numpy")
def serve_pair(
    queues: Queues, pairs: Pairs, h: float, rows: tuple[int, int], step: int, offered: np.ndarray, kept: np.ndarray
) -> float:
    """One step of the two queues in `rows`, C and L: the law, service, overflow; returns the share that overflows.

    `offered` holds, by row and kind, what arrives [packet]; of the C queue, what can't be marked is dropped as it
    comes, though with the probability of what leaves. `kept` takes the share that isn't lost.
    """
    c, low = rows
    j = pairs.pair[c]
    target, update, alpha, beta, coupling, wait, packets, share = pairs.parameters[j]
    ages = h * _age(pairs, 2 * j, step), h * _age(pairs, 2 * j + 1, step)
    if step * h >= (pairs.updates[j] + 1.0) * update * (1.0 - 1e-12) - 1e-12:
        pairs.updates[j] += 1.0
        delay = max(ages[0], ages[1])
        pairs.base[j] = _base(pairs.base[j], delay, pairs.old_delay[j], target, alpha, beta)
        pairs.old_delay[j] = delay
    acts = queues.backlog[c] + queues.backlog[low] >= _LEAST
    coupled, squared = min(coupling * pairs.base[j], 1.0) if acts else 0.0, pairs.base[j] ** 2 if acts else 0.0
    late = ages[1] > wait and queues.backlog[low] >= packets
    queues.law[c, PROBABILITY], queues.law[low, PROBABILITY] = squared, 1.0 if late else coupled

    overload = coupled >= 1.0
    classic, scalable = offered[c, CLASSIC] + offered[c, DROPPED], offered[low, SCALABLE]
    refused = squared * (classic if overload else offered[c, DROPPED]), squared * scalable if overload else 0.0
    into = classic - refused[0], scalable - refused[1]
    can = h * queues.capacity[c]
    left = max(queues.backlog[c] + queues.backlog[low] + into[0] + into[1] - can, 0.0)
    over = (left - queues.buffer[c]) / (into[0] + into[1]) if left > queues.buffer[c] else 0.0
    over = min(over, 1.0)
    kept[c, :] = kept[low, :] = (1.0 - squared if overload else 1.0) * (1.0 - over)
    kept[c, DROPPED] = (1.0 - squared) * (1.0 - over)
    queued = into[0] * (1.0 - over), into[1] * (1.0 - over)
    fill = queues.backlog[c] + queued[0], queues.backlog[low] + queued[1]
    most = max((1.0 - share) * can, can - fill[0])
    few = min(fill[1], most)
    many = min(fill[0], can - few)
    queues.service[c], queues.service[low] = max(can - few, max(share, _STARVED) * can) / h, most / h
    for k, row, sent in ((0, c, many), (1, low, few)):
        after = fill[k] - sent
        queues.rise[row], queues.backlog[row] = after - queues.backlog[row], after
        queue, ring = 2 * j + k, pairs.arrived.shape[1]
        pairs.arrived[queue, step & (ring - 1)] = pairs.arrived[queue, (step - 1) & (ring - 1)] + queued[k]
        pairs.departed[queue] = pairs.arrived[queue, step & (ring - 1)] - after
        queues.sums[0, row] += into[k] + refused[k]
        queues.sums[1, row] += sent
        queues.sums[2, row] += refused[k] + into[k] * over
    marked = 0.0 if overload else squared * offered[c, CLASSIC]
    queues.sums[3, c] += marked * (1.0 - over)
    queues.sums[3, low] += queues.law[low, PROBABILITY] * into[1] * (1.0 - over)
    return over
