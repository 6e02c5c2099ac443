"""How far from a box the design rule is kept: the longest round-trip time and the largest window, without proof."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from math import inf, log, radians
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import MIN_FACTOR, MIN_PHASE_DEG, MIN_WINDOW, Box
from netctrl.certificates.loops import box_loops
from netctrl.certificates.record import QueueReach
from netctrl.certificates.subject import Subject
from netctrl.frequency.batch import point_margins
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop

__all__ = ["reach"]

_POINTS, _AT_ONCE = 44, 15
"""Points of a search outwards before it is refined, and how many are looked at at a time."""
_FLOWS = 5
"""Numbers of flows of a range that are looked at, besides those at which a law's gains change."""
_FAR = 1e2
"""Factor of the box's end up to which a reach is searched."""
_SHORTER, _SHORT = 10.0, 50.0
"""Where the time between updates is that many shortest round trips, the search begins at a larger part of the box's
end: the response then takes thousands of aliases, and only its gain still depends on the round trip."""
_NARROW = 1e-4
"""Relative width to which a reach is found."""
_NEAR = np.array([-3e-2, -3e-3, -3e-4, 0.0, 3e-4, 3e-3, 3e-2])
"""Points around an estimate, in widths of what it is in."""
_EVEN = np.arange(1, 9) / 9.0
_DIGITS = 4
"""To which the ratio of a family's gains is the same: Linux's integers differ by 3e-6 of it."""

Search = Generator[np.ndarray, np.ndarray, float | None]
"""Takes, for logarithms that it gives, how far the margin is above the least; returns what it has found."""


def reach(subject: Subject, box: Box, *, likely: bool = True, lacking_s: float = inf) -> QueueReach:
    """From a box outwards, how far the design rule is kept at every point that is looked at.

    Where the box's end doesn't keep it, it is how far it is kept from small round-trip times and windows on. Round-trip
    times grow with all of the box's flows, or with its largest window where windows are given; windows grow at its
    longest round-trip time. `likely` tells whether its end seems to keep it: there the search then begins. At
    `lacking_s` a point of the box doesn't keep it.
    """
    given = box.inputs.window_packets is None
    target, stretch = subject.target_s, box.inputs.stretches[0]
    longest = box.rtt[1] * stretch + target
    largest = box.rate * longest / box.flows[0]
    long = (box.rtt[1], box.rtt[1])
    around = [
        (box.flows, (box.rtt[1] / _FAR, box.rtt[1])),
        ((box.flows[0], max(box.flows[0] * largest / MIN_WINDOW, box.flows[0])), long),
    ]
    loops = [loop for _, loop in box_loops(subject, box, around)]
    families = _families(loops)

    def margin(flows: np.ndarray, rtt: np.ndarray) -> np.ndarray:
        """Logarithm of the margin over the rule's; windows that are too small for the loop count as kept."""
        least = np.full(flows.shape, inf)
        for family in families:
            x = family.whole.output(flows, rtt)
            large = family.whole.windows_of(x, rtt).min(axis=0) >= MIN_WINDOW * (1.0 - 1e-9)  # despite rounding
            at = [np.flatnonzero(loop.holds(x) & large) for loop in family.loops]
            i, gain = np.concatenate(at), np.repeat(family.gains, [len(each) for each in at])
            if len(i):
                found = point_margins(family.whole, flows[i], rtt[i], gain)
                np.minimum.at(least, i, found.over(MIN_FACTOR, radians(MIN_PHASE_DEG)))
        return least

    def by_rtt(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rtt = np.exp(u)
        if not given:
            return box.flows[0] * (rtt * stretch + target)[None, :] / longest, rtt
        if box.flows[0] == box.flows[1]:
            return np.full((1, len(rtt)), box.flows[0]), rtt
        ends = [loop.flows(end, rtt) for loop in loops for end in loop.within if 0.0 < end < inf]
        flows = [np.full(rtt.shape, n) for n in np.geomspace(*box.flows, _FLOWS)]
        return np.clip(np.stack(flows + ends), *box.flows), rtt

    def by_window(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flows = box.rate * longest / np.exp(u)
        return flows[None, :], np.full(flows.shape, box.rtt[1])

    points = (by_rtt, by_window)
    updates = max((loop.law.update_s for loop in loops if isinstance(loop.law, SampledPi)), default=0.0)
    shortest = max(box.rtt[1] / _FAR, min(box.rtt[1] / _SHORTER, updates / _SHORT))
    far = min(box.rtt[1] * _FAR, lacking_s)
    searches = [
        _outwards(min(shortest, far / _SHORTER), min(box.rtt[1], far), far, likely),
        _outwards(MIN_WINDOW, max(largest, MIN_WINDOW), max(largest, MIN_WINDOW) * _FAR, likely),
    ]
    found: list[float | None] = [None, None]
    asked = dict(enumerate(map(next, searches)))
    while asked:  # both at once: the response of few points takes as long as that of many
        places = [np.broadcast_arrays(*points[i](u)) for i, u in asked.items()]
        margins = margin(*(np.concatenate([each.ravel() for each in columns]) for columns in zip(*places, strict=True)))
        parts = np.split(margins, np.cumsum([flows.size for flows, _ in places])[:-1])
        for i, part, (flows, _) in zip(list(asked), parts, places, strict=True):
            try:
                asked[i] = searches[i].send(part.reshape(flows.shape).min(axis=0))
            except StopIteration as end:
                found[i] = end.value
                del asked[i]
    rtt, window = found
    return QueueReach(
        longest_rtt_s=rtt,
        fewest_flows=None if window is None or not given else largest * box.flows[0] / window,
        largest_window_packets=None if given else window,
    )


class _Family(NamedTuple):
    """Loops that are multiples of one in ranges of their own."""

    whole: QueueLoop
    """It holds everywhere."""
    loops: list[QueueLoop]
    gains: list[float]


def _families(loops: list[QueueLoop]) -> list[_Family]:
    """PI laws whose gains are scaled alike are one family: their crossings are at the same angles."""
    found: dict[object, _Family] = {}
    for loop in loops:
        key: object = loop
        if isinstance(law := loop.law, SampledPi):
            same = (loop.classes, loop.rate, loop.age_s, loop.age_queues, loop.marked_leaving)
            key = (*same, law.update_s, law.target_s, round(law.proportional / law.integral, _DIGITS))
        whole = found.setdefault(key, _Family(replace(loop, within=(0.0, inf)), [], []))
        whole.loops.append(loop)
        first = whole.loops[0].law
        alike = isinstance(law, SampledPi) and isinstance(first, SampledPi)
        whole.gains.append(law.integral / first.integral if alike else 1.0)
    return list(found.values())


def _outwards(low: float, start: float, far: float, likely: bool) -> Search:
    """Greatest value up to which the margin is kept at every point looked at: from `start` on if it is kept there, as
    is `likely` or not, else from `low` on; None: not at `low` either."""
    grid = np.linspace(log(low), log(far), _POINTS)
    beyond = np.append(log(start), grid[grid > log(start)])
    if likely:
        above = yield beyond[:_AT_ONCE]
        kept = above[0] >= 0.0
        above = above if kept else (yield grid[:_AT_ONCE])
    else:
        asked = yield np.append(grid[:_AT_ONCE], log(start))
        kept = asked[-1] >= 0.0
        above = asked[-1:] if kept else asked[:-1]
    grid = beyond if kept else grid
    while not (above < 0.0).any():
        if len(above) == len(grid):
            return far
        above = np.append(above, (yield grid[len(above) : len(above) + _AT_ONCE]))
    first = int(np.argmax(above < 0.0))
    near = slice(max(first - 2, 0), first + 1)
    return None if first == 0 else (yield from _between(grid[near], above[near]))


def _between(points: np.ndarray, above: np.ndarray) -> Search:
    """Greatest value with the margin kept before the last of two or three points, the only one without it.

    It takes logarithms and the margin above the least at them.
    """
    while (width := points[-1] - points[-2]) > _NARROW:
        inner = points[-2] + width * _EVEN
        if np.isfinite(above).all() and len(np.unique(above)) == len(above):
            guess = _crossing(points, above)
            near = guess + width * _NEAR
            inner = np.sort(np.concatenate([inner, near[(near > points[-2]) & (near < points[-1])]]))
        found = yield inner
        points = np.concatenate([points[:-1], inner, points[-1:]])
        above = np.concatenate([above[:-1], found, above[-1:]])
        last = int(np.argmax(above < 0.0))
        around = slice(max(last - 2, 0), last + 1)
        points, above = points[around], above[around]
    return float(np.exp(points[-2]))


def _crossing(points: np.ndarray, above: np.ndarray) -> float:
    """Where the polynomial in the margin through all points is at margin 0 (Lagrange)."""
    total = 0.0
    for i, point in enumerate(points):
        others = np.delete(above, i)
        total += point * float(np.prod(others / (others - above[i])))
    return total
