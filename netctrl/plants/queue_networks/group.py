"""A group of flows around the equilibrium of a network: shares of links' rates, and delays of its marks.

At high frequencies the response is a series in 1/s with delays, whose leading powers have aliases that sum in closed
form (`leading_powers`). With E the shares that pass from queue to queue and K the rates at which round trips answer,
A/s = 1 + E + K/s + O(1/s²) and B = B₁/s + B₂/s² + O(1/s³), all of them sums of delays. E has entries only from earlier
to later links, so X = (1 + E)⁻¹ is a finite sum, and

    A⁻¹ B/s = X B₁/s³ + X (B₂ − K X B₁)/s⁴ + O(1/s⁵).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import log
from typing import Any

from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium
from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.cubic_response import CubicMode
from netctrl.plants.queues.window_response import Sender, leading


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResponse:
    """A group of flows around the equilibrium; tables have a row for each queueing link of its path.

    Numbers are floats, or functions over cells (`netctrl.plants.queues.mean_value`).

    Parameters
    ----------
    sender : Sender
    trip : float
        R [s].
    damping : float
        a/w.
    mode : CubicMode or ClockedMode, optional
        Of a sender with a curve.
    at : tuple of int
        Places of the links in the network's order.
    shares : tuple of float
        y.
    queued : tuple of bool
        Whether the group waits in the queue that the law reads.
    ahead : tuple of float
        g [s].
    back : tuple of float
        m [s].
    marks : tuple of float
        r · n; 0 where the link doesn't mark.
    """

    sender: Sender
    trip: Any
    damping: Any
    at: tuple[int, ...]
    shares: tuple[Any, ...]
    queued: tuple[bool, ...]
    ahead: tuple[float, ...]
    back: tuple[Any, ...]
    marks: tuple[Any, ...]
    mode: CubicMode | ClockedMode | None = None


def group_response(found: NetworkEquilibrium, number: int) -> GroupResponse:
    """A group's response at the queueing links of its path."""
    group, order = found.network.groups[number], found.order
    trip, marked = float(found.trips[number]), float(found.marked[number])
    rate = group.flows * float(found.windows[number]) / trip
    at, shares, queued, ahead, back, marks = [], [], [], [], [], []
    first, passed = None, 0.0
    for k, seen in zip(group.path, group.seen, strict=True):
        link = found.network.links[k]
        if k in order:
            first = passed if first is None else first
            p = found.probability(group, k)
            leaving = float(seen.wait(found.delays[k])) if link.marked_leaving else 0.0
            at.append(order.index(k))
            shares.append(rate / link.rate)
            queued.append(seen.queued)
            ahead.append(passed - first)
            back.append(trip - (passed - first) - leaving)
            marks.append(p / marked * (1.0 - marked) / (1.0 - p) * seen.power)
        passed += link.delay_s + (float(found.delays[k]) if seen.queued else seen.other_delay_s)
    return GroupResponse(
        sender=group.sender,
        trip=trip,
        damping=group.sender.increase / float(found.windows[number]),
        at=tuple(at),
        shares=tuple(shares),
        queued=tuple(queued),
        ahead=tuple(ahead),
        back=tuple(back),
        marks=tuple(marks),
        mode=group.sender.mode(log(marked), log(trip))[1] if marked > 0.0 else None,
    )


Delayed = dict[float, float]
"""Delay [s] -> factor."""
_Table = list[list[Delayed]]
_NEGLIGIBLE = 1e-14
_DIGITS = 12
"""Of delays in seconds, by which equal ones are found."""


def leading_powers(groups: Sequence[GroupResponse], size: int) -> tuple[_Table, _Table]:
    """Factors of 1/s³ and of 1/s⁴ in A⁻¹ B/s, a table of links by links each."""
    E, K, first, second = (_empty(size) for _ in range(4))
    for group in groups:
        for i, j in product(range(len(group.at)), repeat=2):
            link, other, share, trip = group.at[i], group.at[j], group.shares[i], group.trip
            if group.queued[j]:
                _add(K[link][other], group.ahead[i], share / trip)
                if j < i:
                    _add(E[link][other], group.ahead[i] - group.ahead[j], share)
            if group.marks[j]:
                moved, delay = share * group.marks[j], group.ahead[i] + group.back[j]
                for (turns, *_), fall, square in leading(group.sender, group.damping, group.mode):  # of Q
                    _add(first[link][other], delay + turns * trip, moved * fall / trip)
                    _add(second[link][other], delay + turns * trip, moved * square / (trip * trip))
    third = _passed(E, first)
    fourth = _passed(E, _sum(second, _product(K, third), -1.0))
    return _pruned(third), _pruned(fourth)


def _empty(size: int) -> _Table:
    return [[{} for _ in range(size)] for _ in range(size)]


def _add(entry: Delayed, delay: float, factor: float) -> None:
    key = round(delay, _DIGITS)
    entry[key] = entry.get(key, 0.0) + factor


def _product(left: _Table, right: _Table) -> _Table:
    found = _empty(len(left))
    for row, column, k in product(range(len(left)), repeat=3):
        for (lag, factor), (delay, other) in product(left[row][k].items(), right[k][column].items()):
            _add(found[row][column], lag + delay, factor * other)
    return found


def _sum(left: _Table, right: _Table, factor: float) -> _Table:
    found = [[dict(entry) for entry in row] for row in left]
    for into, row in zip(found, right, strict=True):
        for entry, more in zip(into, row, strict=True):
            for delay, value in more.items():
                _add(entry, delay, factor * value)
    return found


def _passed(E: _Table, table: _Table) -> _Table:
    """(1 + E)⁻¹ times a table, row by row in the links' order: X_l = T_l − Σ_k E_lk X_k."""
    size = len(E)
    found: _Table = []
    for link in range(size):
        row = [dict(entry) for entry in table[link]]
        for k in range(link):
            for lag, factor in E[link][k].items():
                for column in range(size):
                    for delay, value in found[k][column].items():
                        _add(row[column], lag + delay, -factor * value)
        found.append(row)
    return found


def _pruned(table: _Table) -> _Table:
    largest = max((abs(value) for row in table for entry in row for value in entry.values()), default=0.0)
    return [[{d: v for d, v in entry.items() if abs(v) > _NEGLIGIBLE * largest} for entry in row] for row in table]
