"""Boxes of networks: ranges of round-trip times, numbers of flows and capacities, and the worst point that is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import exp, inf, log
from typing import Any, Literal, NamedTuple

import numpy as np

from netctrl.certificates.box import NUMBERS, ends
from netctrl.certificates.networks.margins import Limits, covered, limits_of, scanned
from netctrl.certificates.networks.scenario import Changed, check_links
from netctrl.errors import InvalidValue, did_you_mean
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.scenario.scenario import Scenario
from netctrl.units import RATES, TIMES

__all__ = ["KINDS", "Kind", "Looked", "NetworkRange", "Searched", "Worst", "looked_at", "ranges_of", "worst_of"]

Kind = Literal["rtt", "flows", "capacity"]
KINDS: dict[Kind, str] = {"rtt": "rtt_s", "flows": "flows", "capacity": "capacity_bit_per_s"}
"""Quantities that may have a range, and their arguments of `certify_network`."""
_LIMITS = {"rtt": TIMES, "flows": NUMBERS, "capacity": RATES}
_MOST = 6
"""Ranges with different ends."""
_GRID = (9, 5, 3, 2, 2, 2)
"""Values of each range, by the number of ranges."""
_ROUNDS = 5
"""Halvings of the steps around the worst point."""


class NetworkRange(NamedTuple):
    """Range of a quantity of the scenario."""

    kind: Kind
    name: str
    """Group of flows, or link."""
    low: float
    high: float

    @property
    def changed(self) -> Changed:
        """The quantity in `netctrl.certificates.networks.scenario.network_of`."""
        return self.kind, self.name


class Looked(NamedTuple):
    """A point that was looked at."""

    at: Mapping[Changed, float]
    absent: str
    """Why it has no equilibrium that the loop describes; empty: it has one."""
    limits: Limits | None

    @property
    def factor(self) -> float:
        """Gain margin: above 1 where the loop is stable, else the factor by which gains must fall; 0: none."""
        if self.limits is None:
            return 0.0
        if self.limits.unstable:
            return 0.0 if self.limits.lower is None else self.limits.lower.gain
        return inf if self.limits.upper is None else self.limits.upper.gain


class Worst(NamedTuple):
    """Least of what points of a box have."""

    at: Mapping[Changed, float]
    """Point with the least gain margin, or without an equilibrium."""
    absent: str
    factor: float
    phase_rad: float
    """Least phase margin of all points."""
    lower: float
    """Greatest factor below 1 at which a stable loop becomes unstable, of all points; 0: none."""
    points: int


Searched = Callable[[Mapping[Changed, float]], tuple[str, NetworkLoop | None]]
"""Values of ranges to why there is no loop, or the loop."""


def ranges_of(scenario: Scenario, given: Mapping[Kind, Mapping[str, Any] | None]) -> tuple[NetworkRange, ...]:
    """Ranges by their kinds, each a mapping from names to a value or (low, high).

    Raises
    ------
    InvalidValue
        A name that the scenario doesn't have, a range that is empty, or more than six ranges.
    """
    check_links(scenario)
    found = []
    for kind, ranges in given.items():
        names = [link.id for link in scenario.links] if kind == "capacity" else [group.id for group in scenario.flows]
        for name, value in (ranges or {}).items():
            if name not in names:
                raise InvalidValue(KINDS[kind], name, f"one of {', '.join(names)}{did_you_mean(name, names)}")
            takes = "a value above 0, or a range (low, high)"
            found.append(NetworkRange(kind, name, *ends(f"{KINDS[kind]}.{name}", value, takes, _LIMITS[kind])))
    if sum(each.low < each.high for each in found) > _MOST:
        raise InvalidValue("ranges", len(found), f"at most {_MOST} ranges at once")
    return tuple(found)


def looked_at(at: Mapping[Changed, float], loop_at: Searched) -> Looked:
    """Limits of the loop at a point, without a proof."""
    absent, loop = loop_at(at)
    return Looked(at, absent, None if loop is None else limits_of(scanned(covered(loop)), proved=False))


def worst_of(ranges: tuple[NetworkRange, ...], loop_at: Searched) -> Worst:
    """Worst point of a box, on a grid of it and by smaller and smaller steps around the worst point of the grid."""
    wide = [each for each in ranges if each.low < each.high]
    fixed = {each.changed: each.low for each in ranges if each.low == each.high}
    count = _GRID[len(wide) - 1] if wide else 1
    seen: dict[tuple[float, ...], Looked] = {}

    def look(u: tuple[float, ...]) -> Looked:
        if u not in seen:
            moved = {
                each.changed: min(max(exp(value), each.low), each.high) for each, value in zip(wide, u, strict=True)
            }
            seen[u] = looked_at({**fixed, **moved}, loop_at)
        return seen[u]

    axes = [[float(u) for u in np.linspace(log(each.low), log(each.high), count)] for each in wide]
    for u in product(*axes):
        if look(u).absent:
            return _least(seen)
    best = min(seen, key=lambda u: seen[u].factor)
    step = 0.5 / max(count - 1, 1)
    for _ in range(_ROUNDS if wide else 0):
        for column, axis in enumerate(axes):
            for sign in (-1.0, 1.0):
                moved = list(best)
                moved[column] = min(max(best[column] + sign * step * (axis[-1] - axis[0]), axis[0]), axis[-1])
                if look(tuple(moved)).factor < seen[best].factor:
                    best = tuple(moved)
        step *= 0.5
    return _least(seen)


def _least(seen: Mapping[tuple[float, ...], Looked]) -> Worst:
    found = list(seen.values())
    worst = min(found, key=lambda each: (not each.absent, each.factor))
    limits = [each.limits for each in found if each.limits is not None and each.limits.unstable == 0]
    return Worst(
        worst.at,
        worst.absent,
        worst.factor,
        min((each.phase_rad for each in limits), default=0.0),
        max((each.lower.gain for each in limits if each.lower is not None), default=0.0),
        len(found),
    )
