"""Searches in a box and beyond it, without proof: the points that decide, how far the design rule is kept, and maps.

The verdict rests on branch and bound over cells (`netctrl.certificates.verdict`). What stands here looks at points: to
give a proof a good value to begin with, to judge loops of which no bound over cells is known, to name the point with
the least phase margin, and to say how far beyond the box the rule lasts. All searches go in logarithms of flows and of
round-trip times, in which margins are nearly linear (a gain margin falls about as a power of either), and many points
are looked at at once, since the response at a hundred points costs little more than at one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import product
from math import exp, inf, log, radians
from typing import NamedTuple

import msgspec
import numpy as np

from netctrl.certificates.box import MIN_FACTOR, MIN_PHASE_DEG, MIN_WINDOW, Box, between, box_of
from netctrl.certificates.loops import Mixture, box_loops
from netctrl.certificates.record import CertifyInputs, QueueReach
from netctrl.certificates.subject import Subject
from netctrl.frequency.margin_grid import PointMargins, gain_grid, point_margins
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop

_SIDE, _ROUNDS = 5, 4
"""Numbers of flows, and of round-trip times, where no bound is known; halvings of steps around the worst point."""
_LOOK_SIDE = 9
"""Numbers of flows, and of round-trip times, of a first look for a criterion."""
_NEAR, _LOOK_ROUNDS = 5, 6
"""The same around the worst point, in rounds that are a third as wide each."""


def box_points(loop: QueueLoop, box: Box) -> list[tuple[float, float]]:
    """Points (N, tau [s]) of a box in a loop's range: a grid, and where the range ends on the box's edges."""
    found = dict.fromkeys(loop.starts(box.flows, box.rtt))
    for flows, rtt in product(between(box.flows, _SIDE), between(box.rtt, _SIDE)):
        if loop.holds(loop.output(flows, rtt)):
            found[flows, rtt] = None
    return list(found)


def least_near(loop: QueueLoop, box: Box, flows: float, rtt: float) -> tuple[float, float, float]:
    """Point of a box with the least gain margin near a given one, by smaller and smaller steps.

    Parameters
    ----------
    loop : QueueLoop
    box : Box
    flows, rtt : float
        N and tau [s] where the search begins.

    Returns
    -------
    (float, float, float)
        N, tau [s], and the gain margin as a factor.
    """
    best, least = (flows, rtt), stable_gains(loop, flows, rtt).factor
    steps = [log(high / low) / (2.0 * (_SIDE - 1)) for low, high in (box.flows, box.rtt)]
    for _ in range(_ROUNDS):
        for axis, sign in product((0, 1), (-1.0, 1.0)):
            if not steps[axis]:
                continue
            moved, ends = list(best), (box.flows, box.rtt)[axis]
            moved[axis] = min(max(best[axis] * exp(sign * steps[axis]), ends[0]), ends[1])
            if loop.holds(loop.output(*moved)) and (factor := stable_gains(loop, *moved).factor) < least:
                best, least = (moved[0], moved[1]), factor
        steps = [0.5 * step for step in steps]
    return *best, least


def least_point(
    loops: Sequence[tuple[Mixture, QueueLoop]], box: Box, criterion: Callable[[PointMargins], np.ndarray]
) -> tuple[Mixture, QueueLoop, float, float]:
    """Point of a box with the least value of a criterion, among all loops.

    Parameters
    ----------
    loops : sequence of (Mixture, QueueLoop)
    box : Box
    criterion : callable
        Margins at points (k,) to values (k,).

    Returns
    -------
    (Mixture, QueueLoop, float, float)
        Senders, loop, flows of the loop and round-trip time [s].
    """

    def least(
        loop: QueueLoop, sides: Sequence[np.ndarray], others: list[tuple[float, float]]
    ) -> tuple[float, np.ndarray] | None:
        """Least value on a grid and at other points (N, tau), and its place in logarithms; None: no point in range."""
        places = np.stack([each.ravel() for each in np.meshgrid(*sides)], axis=1)
        places = places[loop.holds(loop.output(*np.exp(places).T))]
        if others:
            places = np.concatenate([places, np.log(others)])
        if not len(places):
            return None
        values = criterion(point_margins(loop, *np.exp(places).T))
        at = int(np.argmin(values))
        return float(values[at]), places[at]

    ends = np.log([box.flows, box.rtt])
    grid = [np.linspace(low, high, _LOOK_SIDE if high > low else 1) for low, high in ends]
    looked = []
    for mixture, loop in loops:
        if found := least(loop, grid, loop.starts(box.flows, box.rtt)):
            looked.append((*found, mixture, loop))
    value, where, mixture, loop = min(looked, key=lambda each: each[0])
    width = (ends[:, 1] - ends[:, 0]) / (_LOOK_SIDE - 1)
    for _ in range(_LOOK_ROUNDS if width.any() else 0):
        steps = [w * np.linspace(-1.0, 1.0, _NEAR if w else 1) for w in width]
        sides = [np.clip(u + moved, *end) for u, moved, end in zip(where, steps, ends, strict=True)]
        if near := least(loop, sides, []):
            value, where = min((value, where), near, key=lambda each: each[0])
        width = width / 3.0
    return mixture, loop, float(np.exp(where[0])), float(np.exp(where[1]))


# ---------------------------------------------------------------------- reach

_POINTS, _AT_ONCE = 44, 15
"""Points of a search outwards before it is refined, and how many are looked at at a time."""
_FLOWS = 5
"""Numbers of flows of a range that are looked at, besides those at which a law's gains change."""
_FAR = 1e2
"""Factor of the box's end up to which a reach is searched."""
_SHORTER, _SHORT = 10.0, 50.0
"""Parts of the box's end, and of the time between updates, at which a search begins: below the second the response
takes thousands of aliases, and only its gain still depends on the round trip."""
_NARROW = 1e-4
"""Relative width to which a reach is found."""
_AROUND_GUESS = np.array([-3e-2, -3e-3, -3e-4, 0.0, 3e-4, 3e-3, 3e-2])
"""Points around an estimate, in widths of what it is in."""
_EVEN = np.arange(1, 9) / 9.0
_DIGITS = 4
"""To which the ratio of a family's gains is the same: Linux's integers differ by 3e-6 of it."""

Search = Generator[np.ndarray, np.ndarray, float | None]
"""Takes, for logarithms that it gives, how far the margin is above the least; returns what it has found."""


class _Family(NamedTuple):
    """Loops that are multiples of one in ranges of their own."""

    whole: QueueLoop
    """It holds everywhere."""
    loops: list[QueueLoop]
    gains: list[float]


def reach(subject: Subject, box: Box, *, likely: bool = True, lacking_s: float = inf) -> QueueReach:
    """From a box outwards, how far the design rule is kept at every point that is looked at.

    Where the box's end doesn't keep it, it is how far it is kept from small round-trip times and windows on. Round-trip
    times grow with all of the box's flows, or with its largest window where windows are given; windows grow at its
    longest round-trip time.

    Parameters
    ----------
    subject : Subject
    box : Box
    likely : bool
        Whether the box's end seems to keep the rule: there the search then begins.
    lacking_s : float
        Round-trip time at which a point of the box doesn't keep it [s]; inf: none is known.
    """
    given = box.inputs.window_packets is None
    target, stretch = subject.target_s, box.inputs.stretches[0]
    longest = box.rtt[1] * stretch + target
    largest = box.rate * longest / box.flows[0]
    around = [
        (box.flows, (box.rtt[1] / _FAR, box.rtt[1])),
        ((box.flows[0], max(box.flows[0] * largest / MIN_WINDOW, box.flows[0])), (box.rtt[1], box.rtt[1])),
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
    """Greatest value up to which the margin is kept at every point looked at; None: not even at the least one.

    It begins at `start` if the margin is kept there, as is `likely` or not, else at `low`. The first point without the
    margin, and one or two before it, are then narrowed: the polynomial in the margin through all of them (Lagrange) has
    its value at margin 0 near the end of the reach, and points close around that guess leave a bracket hundreds of
    times narrower each round, beside even points for where the guess is wrong.
    """
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
    if above[0] < 0.0:
        return None
    points = grid
    while True:
        last = int(np.argmax(above < 0.0))
        around = slice(max(last - 2, 0), last + 1)
        points, above = points[around], above[around]
        if (width := points[-1] - points[-2]) <= _NARROW:
            return float(np.exp(points[-2]))
        inner = points[-2] + width * _EVEN
        if np.isfinite(above).all() and len(np.unique(above)) == len(above):
            guess = 0.0
            for i, point in enumerate(points):
                others = np.delete(above, i)
                guess += point * float(np.prod(others / (others - above[i])))
            near = guess + width * _AROUND_GUESS
            inner = np.sort(np.concatenate([inner, near[(near > points[-2]) & (near < points[-1])]]))
        found = yield inner
        points = np.concatenate([points[:-1], inner, points[-1:]])
        above = np.concatenate([above[:-1], found, above[-1:]])


# ---------------------------------------------------------------------- maps

_LARGEST_DB = 200.0
"""Margin in place of larger ones between which none is straight [dB]."""
_AROUND = 5.0
"""Factor by which the map reaches beyond the box on each side."""


class MarginMap(NamedTuple):
    """Gain margins over round-trip times and rates per flow, without proof."""

    rtt_s: np.ndarray
    """Round-trip times without the queue, (m,) [s]."""
    rate_per_flow: np.ndarray
    """C/N, (n,) [packet/s]."""
    gain_margin_db: np.ndarray
    """Worst of the senders, (m, n) [dB]; nan without an equilibrium that the loop describes."""
    box_rate_per_flow: tuple[float, float]
    """Least and greatest C/N of the box [packet/s]."""

    def finer(self, points: int) -> MarginMap:
        """The same with so many points along each axis, margins straight between those that are known."""
        from scipy.ndimage import zoom  # which loads slowly

        rtt, rate = (np.geomspace(axis[0], axis[-1], points) for axis in (self.rtt_s, self.rate_per_flow))
        margin = zoom(np.minimum(self.gain_margin_db, _LARGEST_DB), points / len(self.rtt_s), order=1)
        return self._replace(rtt_s=rtt, rate_per_flow=rate, gain_margin_db=margin)


def margin_map(subject: Subject, inputs: CertifyInputs, points: int = 161, around: float = _AROUND) -> MarginMap:
    """Gain margins of a law around a box, on logarithmic axes.

    Parameters
    ----------
    subject : Subject
    inputs : CertifyInputs
        Box, and senders.
    points : int
        Along each axis.
    around : float
        Factor by which the map reaches beyond the box on each side.
    """
    box = box_of(subject, **msgspec.structs.asdict(inputs))
    rtt = np.geomspace(box.rtt[0] / around, box.rtt[1] * around, points)
    flows = np.geomspace(box.flows[0] / around, box.flows[1] * around, points)
    factor = np.full((points, points), inf)
    loops = box_loops(subject, box, [((flows[0], flows[-1]), (rtt[0], rtt[-1]))])
    for _, loop in loops:
        x = loop.output(flows, rtt[:, None])
        inside = loop.holds(x)
        small = loop.windows_of(x, rtt[:, None]).min(axis=0) < MIN_WINDOW
        # A law that acts at intervals has the same formulas beyond its range: margins are followed across its end.
        whole = replace(loop, within=(0.0, inf)) if isinstance(loop.law, SampledPi) else loop
        np.minimum(factor, gain_grid(whole, flows, rtt, inside & ~small), out=factor)
        factor[inside & small] = np.nan
    for loop in dict(loops).values():  # of the last range with each sender
        factor[loop.law.computed(loop.output(flows, rtt[:, None])) > subject.greatest] = np.nan
    with np.errstate(divide="ignore"):
        margin = 20.0 * np.log10(factor[:, ::-1])
    return MarginMap(rtt, box.rate / flows[::-1], margin, (box.rate / box.flows[1], box.rate / box.flows[0]))
