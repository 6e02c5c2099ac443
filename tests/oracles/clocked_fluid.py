"""Nonlinear fluid of senders that acknowledgements clock, in classes with round-trip times of their own, behind one
queue: a judge of frequency responses.

It counts packets and knows no response of a window. A packet of class i that comes to the queue at t is acknowledged
at t + D(t) + d_i; A_i have come, and what acknowledgements clock, add, and cuts take comes next. An open flow adds a/S
packets with each acknowledgement, S in flight or at its receiver. A mark makes it deaf until what it had is
acknowledged, and over the first share of these acknowledgements its cut takes the same from each. Hits are in
proportion to p, to acknowledgements and to open flows; how many there are in equilibrium is given. The law steps at
its updates and holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from histories import grown

from netctrl.plants.queues.queue_loop import QueueLoop

_STEPS = 300
"""In the shortest round trip, at least."""
_START = 1e-6
"""Relative deviation of the law's output in the first interval."""


class ClockedClass(NamedTuple):
    """Flows of one sender and one round-trip time, and their equilibrium."""

    flows: float
    base_s: float
    """d [s]"""
    window: float
    """Packets of a flow on its path and in the queue."""
    held: float
    """Packets of a flow that wait at its receiver."""
    increase: float
    """a [packet]"""
    spread: float
    """Share of a round trip's acknowledgements over which a cut takes its packets."""
    hits: float
    """Marks of an open flow in a round trip."""
    power: float
    """p is in proportion to this power of the law's output."""


class SteppedLaw(NamedTuple):
    """A PI law on the delay as it was some time ago."""

    integral: float
    proportional: float
    update_s: float
    target_s: float
    output: float
    """In equilibrium."""
    age_s: float
    leaving: bool
    """Whether packets are marked as they leave."""


def clocked_growth(
    classes: list[ClockedClass], rate: float, law: SteppedLaw, gain: float, periods: float, period_s: float
) -> float:
    """Rate at which a small deviation of the delay grows under a gain, in natural logarithms a period."""
    shortest = min(k.base_s for k in classes) + law.target_s
    inside = int(np.ceil(law.update_s * _STEPS / shortest))
    updates = int(periods * period_s / law.update_s)
    gained = law._replace(integral=gain * law.integral, proportional=gain * law.proportional)
    deviation = np.abs(_run(np.array(classes, dtype=float), rate, gained, inside, updates) - law.target_s)
    size = max(int(np.ceil(2.0 * period_s / law.update_s)), 4)
    return grown(deviation, size) * period_s / law.update_s


def loop_growth(loop: QueueLoop, flows: float, rtt: float, gain: float, periods: float, period_s: float) -> float:
    """The same for the classes, the law and the equilibrium of a loop."""
    law, x = loop.law, float(loop.output(flows, rtt))
    classes = []
    for k in loop.classes:
        window = float(k.window(x, rtt * k.stretch + law.target_s))
        mode = k.sender.mode(np.log(k.factor * x**k.power), 0.0)[1]
        held = window * (float(mode.waits) - 1.0)
        does = (k.sender.increase, k.sender.spread, float(mode.hits), k.power)
        classes.append(ClockedClass(k.share * flows, rtt * k.stretch, window, held, *does))
    age = loop.age_s + loop.age_queues * law.target_s
    stepped = SteppedLaw(law.integral, law.proportional, law.update_s, law.target_s, x, age, loop.marked_leaving)
    return clocked_growth(classes, loop.rate, stepped, gain, periods, period_s)


@numba.njit(cache=True)
def _at(history: np.ndarray, step: float) -> float:
    whole = int(np.floor(step))
    part, n = step - whole, len(history)
    return history[whole % n] * (1.0 - part) + history[(whole + 1) % n] * part


@numba.njit(cache=True)
def _reach(history: np.ndarray, start: float, level: float) -> float:
    """Step at which a rising history reaches a level, from `start` on."""
    n, i = len(history), int(np.floor(start))
    while history[(i + 1) % n] < level:
        i += 1
    low, high = history[i % n], history[(i + 1) % n]
    return i + (level - low) / (high - low)


@numba.njit(cache=True)
def _run(classes, rate, law, inside, updates):
    integral, proportional, update, target, output, age, leaving = law
    K, h = len(classes), update / inside
    flows, base, window, held = classes[:, 0], classes[:, 1] / h, classes[:, 2], classes[:, 3]
    increase, spread, marks, power = classes[:, 4], classes[:, 5], classes[:, 6], classes[:, 7]
    sender = window + held
    trips = base + target / h
    began = int(np.ceil(2.5 * trips.max() * (sender / window).max())) + 8  # of which equilibrium is the past
    n = began + int(np.ceil(age / h)) + 8
    steps = np.arange(n).astype(np.float64)
    leaves = steps + target / h
    queue = np.full(n, target)
    came, acked, hit, ends, seen = np.empty((5, K, n))
    clock, mark, deaf, cut, per = np.empty((5, K))
    for i in range(K):
        per[i] = flows[i] * window[i] / trips[i]  # packets a step
        came[i] = per[i] * steps
        acked[i] = came[i] - per[i] * trips[i]
        hit[i] = steps * (flows[i] * marks[i] / (1.0 + marks[i]) / (trips[i] * sender[i] / window[i]))
        ends[i] = acked[i] + spread[i] * sender[i] * flows[i]
        seen[i] = steps
        clock[i], mark[i] = began - trips[i], began - (base[i] if leaving else trips[i])
        deaf[i] = cut[i] = 0.0
    x, old, now = output * (1.0 + _START), target, began
    found = np.empty(updates)
    for number in range(updates):
        delay = _at(queue, now - age / h)
        x += integral * (delay - target) + proportional * (delay - old)
        old = delay
        found[number] = queue[now % n]
        for _ in range(inside):
            here, after = now % n, (now + 1) % n
            sent = 0.0
            for i in range(K):
                N = flows[i]
                seen[i, after] = seen[i, here] + (x / output) ** power[i]
                clock[i] = _reach(leaves, clock[i], now + 1.0 - base[i])
                acked[i, after] = _at(came[i], clock[i])
                passed = acked[i, after] - acked[i, here]
                marked = now + 1.0 - base[i] if leaving else clock[i]
                probability = (_at(seen[i], marked) - _at(seen[i], mark[i])) / (marked - mark[i])
                mark[i] = marked
                deaf[i] = _reach(came[i], deaf[i], acked[i, here] - held[i] * N)
                cut[i] = _reach(ends[i], cut[i], acked[i, here])
                open_ = 1.0 - (hit[i, here] - _at(hit[i], deaf[i])) / N
                cutting = (hit[i, here] - _at(hit[i], cut[i])) / N
                flight = (came[i, here] - acked[i, here]) / N + held[i]
                grown = increase[i] * open_ / flight - increase[i] * cutting / (sender[i] * spread[i] * marks[i])
                hit[i, after] = hit[i, here] + passed * probability * open_ * marks[i] / sender[i]
                came[i, after] = came[i, here] + passed * (1.0 + grown)
                ends[i, after] = acked[i, after] + spread[i] * (came[i, after] - acked[i, after] + held[i] * N)
                sent += came[i, after] - came[i, here]
            queue[after] = queue[here] + sent / rate - h
            leaves[after] = now + 1.0 + queue[after] / h
            now += 1
    return found
