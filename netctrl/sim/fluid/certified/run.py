"""Runs of senders through a queue with a law in the nonlinear fluid, from a start until the queue rests or swings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil
from typing import NamedTuple

import numpy as np

from netctrl.laws.targets.reading import DelayReading
from netctrl.sim.fluid.certified.kernel import Plant, State, advance
from netctrl.sim.fluid.certified.laws import FluidLaw, Sight

_STEPS = 64
"""Steps in the shortest round trip, and at least `_INSIDE` from one update to the next."""
_INSIDE = 8
_BUFFER_S, _BUFFER_TARGETS = 1.0, 20.0
_PERIODS, _MOST_PARTS, _LEAST_PARTS = 20.0, 60, 6
_SAME = 0.005
"""Relative change of the swing from part to part below which it is steady."""
_REST, _FALLING = 0.05, 0.98
"""Share of the target below which a swing is rest, and the ratio of two parts' swings that falls. Integers and PIE's
spread drops keep swings of a few percent."""

_ROUNDING_S = 1e-12


class FluidClass(NamedTuple):
    """Flows with one sender and one round trip."""

    flows: float
    """How many; any number above 0."""
    window: float
    """In equilibrium [packet]."""
    base_s: float
    """Round trip without a queue [s]."""
    other_s: float | None
    """Delay of another queue in which these flows wait [s]; None: they wait in the law's."""
    increase: float
    """a [packet per round trip]."""
    decrease: float
    """b."""
    averaging: float
    """g of a scalable sender's average of marks; 0 of others."""
    scalable: bool


class FluidQueue(NamedTuple):
    """A queue, its law and its senders in an equilibrium."""

    classes: tuple[FluidClass, ...]
    rate: float
    """C [packet/s]."""
    packet_bytes: float
    law: FluidLaw
    output: float
    """The law's output in equilibrium."""
    period_s: float
    """Of the oscillation that the linear loop predicts at its limit [s]."""
    buffer_s: float | None = None
    """Longest delay of the queue [s]; None: `longest_delay`."""


class Start(NamedTuple):
    """Where a run begins, in factors of the equilibrium."""

    name: str
    windows: float
    queue: float
    """Delay of the queue over the target."""
    new: bool
    """Whether the law begins with its first state; else with that of the equilibrium."""


STARTS = (Start("near", 1.0, 1.05, False), Start("empty", 0.5, 0.0, True), Start("full", 2.0, 3.0, True))
"""Near the equilibrium; with half the windows and an empty queue; with twice the windows and three targets."""


class FluidSwing(NamedTuple):
    """How a run ends."""

    settles: bool
    """Whether the swing has fallen to 5 % of the target, or falls to the end."""
    swing_s: float
    """Greatest less least delay of the queue in the last part [s]."""
    mean_delay_s: float
    """Mean delay of the queue in the last part [s]."""
    utilization: float
    """Of the link in the last part."""


def longest_delay(target_s: float) -> float:
    """Delay of a full buffer where a law has none of its own: a second, or 20 targets if that is longer [s]."""
    return max(_BUFFER_S, _BUFFER_TARGETS * target_s)


def swing_of(queue: FluidQueue, start: Start) -> FluidSwing:
    """Delay of the queue from a start on, in parts of twenty periods until its swing is steady, at most sixty parts.

    Parameters
    ----------
    queue : FluidQueue
    start : Start

    Returns
    -------
    FluidSwing

    """
    law, steps = queue.law, _updates(queue, start)
    updates = max(ceil(_PERIODS * queue.period_s / law.update_s), 20)
    rest = _REST * law.target_s
    swings: list[float] = []
    mean = served = 0.0
    while len(swings) < _MOST_PARTS:
        least, most, mean, served = np.inf, 0.0, 0.0, 0.0
        for low, high, out in islice(steps, updates):
            least, most, served = min(least, low), max(most, high), served + out
            mean += 0.5 * (low + high) / updates
        swings.append(most - least)
        if len(swings) >= _LEAST_PARTS and (swings[-1] < rest or _is_steady(swings)):
            break
    settles = swings[-1] < rest or all(
        after < _FALLING * before for before, after in zip(swings[-4:-1], swings[-3:], strict=True)
    )
    time = updates * law.update_s
    swing = swings[-1] if swings[-1] > _ROUNDING_S else 0.0
    return FluidSwing(settles, swing, mean, min(served / (queue.rate * time), 1.0))


def time_above(queue: FluidQueue, start: Start, level_s: float, duration_s: float) -> float:
    """Time for which the delay of the queue is above a level in the first seconds after a start [s]."""
    update = queue.law.update_s
    return update * sum(low > level_s for low, _, _ in islice(_updates(queue, start), ceil(duration_s / update)))


def _updates(queue: FluidQueue, start: Start) -> Iterator[tuple[float, float, float]]:
    """Least and greatest delay [s] and what leaves [packet] from one update of the law to the next, without end."""
    law = queue.law
    plant, state, inside = _prepared(queue, start)
    if start.new:
        law.begin()
    else:
        law.rest(queue.output)
    reads_head, read = law.reading is not DelayReading.BACKLOG, state.delay[0]
    while True:
        delay = state.delay[state.now[0] % len(state.delay)]
        backlog, average = delay * queue.rate, state.average[0]
        marking = law.act(Sight(read, backlog, queue.rate, queue.packet_bytes, average))
        read, low, high, out = advance(plant, state, marking, reads_head, inside)
        yield low, high, out


def _is_steady(swings: Sequence[float]) -> bool:
    return all(abs(after - before) < _SAME * before for before, after in zip(swings[-4:-1], swings[-3:], strict=True))


def _prepared(queue: FluidQueue, start: Start) -> tuple[Plant, State, int]:
    """Constants, variables with constant histories, and steps from one update to the next."""
    law, classes = queue.law, queue.classes
    shortest = min(each.base_s + (law.target_s if each.other_s is None else each.other_s) for each in classes)
    inside = max(ceil(law.update_s * _STEPS / shortest), _INSIDE)
    step = law.update_s / inside
    buffer_s = longest_delay(law.target_s) if queue.buffer_s is None else queue.buffer_s
    longest = max(each.base_s for each in classes) + buffer_s
    n = ceil((longest + buffer_s) / step) + 4

    def of(values: Sequence[float | bool]) -> np.ndarray:
        return np.array(values)

    plant = Plant(
        step=step,
        rate=queue.rate,
        buffer=buffer_s * queue.rate,
        leaving=law.marked_leaving,
        flows=of([each.flows for each in classes]),
        base=of([each.base_s for each in classes]),
        other=of([-1.0 if each.other_s is None else each.other_s for each in classes]),
        increase=of([each.increase for each in classes]),
        decrease=of([each.decrease for each in classes]),
        averaging=of([each.averaging for each in classes]),
        scalable=of([each.scalable for each in classes]),
    )
    delay = min(start.queue * law.target_s, buffer_s)
    windows = of([each.window * start.windows for each in classes])
    trips = plant.base + np.where(plant.other < 0.0, delay, plant.other)
    at_rest = plant.increase / (plant.decrease * windows)  # what a scalable sender's average of marks has been
    marks = of([each.increase / (each.decrease * each.window ** (1 if each.scalable else 2)) for each in classes])
    kinds = [[p for p, each in zip(marks, classes, strict=True) if each.scalable == kind] for kind in (False, True)]
    known = np.array([each[0] if each else 0.0 for each in kinds])
    state = State(
        window=windows,
        marked=np.where(plant.scalable, np.minimum(at_rest, 1.0), 0.0),
        rate=np.repeat((windows / trips)[:, None], n, axis=1),
        delay=np.full(n, delay),
        marks=np.repeat(known[:, None], n, axis=1),
        average=np.array([0.0 if start.new else law.target_s * queue.rate]),
        arrived=queue.rate * step * np.arange(1.0, n + 1.0),  # as fast as it left, at a constant delay
        now=np.array([n, n - ceil(delay / step)]),
    )
    return plant, state, inside
