"""Boxes of networks: ranges of round-trip times, flows and capacities, the worst point, proofs, and how far 6 dB last.

The worst point is sought, not proved: on a grid in logarithms of the quantities, then by smaller and smaller steps
around the worst point of the grid. A proof covers what is between. Where the loop is stable at one point of the box,
and det(1 + k L) isn't 0 on the unit circle at any point of it for any factor k of a range, it is stable at every point
for all these factors: poles move continuously with the quantities. Branch and bound over angle, gain, phase and the
box's quantities decides, with discs that contain the determinant (`netctrl.plants.queue_networks.over_box`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import exp, inf, log, radians, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from netctrl.certificates.box import MIN_FACTOR, MIN_PHASE_DEG, MIN_WINDOW, NUMBERS, ends, kept_up_to
from netctrl.certificates.networks.margins import GAIN_CAP, Limits, covered, limits_of, scanned
from netctrl.certificates.networks.record import NetworkReach
from netctrl.certificates.networks.scenario import Changed, check_links, network_of
from netctrl.core.errors import InvalidValue, NetctrlError, did_you_mean
from netctrl.core.units import RATES, TIMES
from netctrl.frequency.matrix import Range, avoids_zero
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.cells import Coordinate, NetworkCells
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.plants.queue_networks.over_box import BoxLoop
from netctrl.scenario.scenario import Scenario

Kind = Literal["rtt", "flows", "capacity"]
_KINDS: dict[Kind, str] = {"rtt": "rtt_s", "flows": "flows", "capacity": "capacity_bit_per_s"}
"""Quantities that may have a range, and their arguments of `certify_network`."""
_LIMITS = {"rtt": TIMES, "flows": NUMBERS, "capacity": RATES}
_MOST = 6
"""Ranges with different ends."""
_GRID = (9, 5, 3, 2, 2, 2)
"""Values of each range, by the number of ranges."""
_ROUNDS = 5
"""Halvings of the steps around the worst point."""
_MOST_CELLS, _FINER = 60_000, 20_000
"""Cells of the design rule's proof, and of each attempt to prove more."""
_GAPS = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of the way from 1 to the attained factor that a proof gives up, tried one after the other."""
_STEP, _FAR, _HALVINGS = 1.2, 100.0, 8
"""Factor from one point of a reach's search to the next, its end, and the halvings of the last step."""


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


class _Looked(NamedTuple):
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


LoopAt = Callable[[Mapping[Changed, float]], tuple[str, NetworkLoop | None]]
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
                raise InvalidValue(_KINDS[kind], name, f"one of {', '.join(names)}{did_you_mean(name, names)}")
            takes = "a value above 0, or a range (low, high)"
            found.append(NetworkRange(kind, name, *ends(f"{_KINDS[kind]}.{name}", value, takes, _LIMITS[kind])))
    if sum(each.low < each.high for each in found) > _MOST:
        raise InvalidValue("ranges", len(found), f"at most {_MOST} ranges at once")
    return tuple(found)


def looked_at(at: Mapping[Changed, float], loop_at: LoopAt) -> _Looked:
    """Limits of the loop at a point, without a proof."""
    absent, loop = loop_at(at)
    return _Looked(at, absent, None if loop is None else limits_of(scanned(covered(loop)), proved=False))


def worst_of(ranges: tuple[NetworkRange, ...], loop_at: LoopAt) -> Worst:
    """Worst point of a box, on a grid of it and by smaller and smaller steps around the worst point of the grid."""
    wide = [each for each in ranges if each.low < each.high]
    fixed = {each.changed: each.low for each in ranges if each.low == each.high}
    count = _GRID[len(wide) - 1] if wide else 1
    seen: dict[tuple[float, ...], _Looked] = {}

    def look(u: tuple[float, ...]) -> _Looked:
        if u not in seen:
            moved = {
                each.changed: min(max(exp(value), each.low), each.high) for each, value in zip(wide, u, strict=True)
            }
            seen[u] = looked_at({**fixed, **moved}, loop_at)
        return seen[u]

    axes = [[float(u) for u in np.linspace(log(each.low), log(each.high), count)] for each in wide]
    if not any(look(u).absent for u in product(*axes)):
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
    found = list(seen.values())
    worst = min(found, key=lambda each: (not each.absent, each.factor))
    stable = [each.limits for each in found if each.limits is not None and each.limits.unstable == 0]
    return Worst(
        worst.at,
        worst.absent,
        worst.factor,
        min((each.phase_rad for each in stable), default=0.0),
        max((each.lower.gain for each in stable if each.lower is not None), default=0.0),
        len(found),
    )


class BoxProof(NamedTuple):
    """Statement that is proved at every point of a box."""

    rule: bool
    """6 dB and 30 degrees."""
    factor: float | None
    """Factor of the gains up to which the loop is stable; None: nothing is proved."""
    why_not: str
    """Why nothing is proved; empty: something is."""


def box_proof(scenario: Scenario, ranges: tuple[NetworkRange, ...], worst: Worst) -> BoxProof:
    """Proof over a box whose worst point is known, as far as it goes.

    Parameters
    ----------
    scenario : Scenario
    ranges : tuple of NetworkRange
    worst : Worst
        Of the same ranges.
    """
    if worst.factor <= 1.0:
        return BoxProof(False, None, "it has unstable points")
    found = _box_loop(scenario, ranges)
    if isinstance(found, str):
        return BoxProof(False, None, found)
    loop, others = found
    phase, rule = radians(MIN_PHASE_DEG), False
    if worst.factor > MIN_FACTOR and worst.lower < 1.0 / MIN_FACTOR and worst.phase_rad > phase:
        asked: tuple[dict[str, Range], ...] = ({"gain": (1.0 / MIN_FACTOR, MIN_FACTOR)}, {"phase": (-phase, phase)})
        rule = all(avoids_zero(loop.disc, others=others, most_cells=_MOST_CELLS, **each) for each in asked)
        if not rule:
            return BoxProof(False, None, f"no decision in {_MOST_CELLS} cells: narrower ranges would be decided")
    attained = min(worst.factor, GAIN_CAP)
    for gap in _GAPS:
        factor = attained - gap * (attained - 1.0)
        if rule and factor <= MIN_FACTOR:
            break
        if avoids_zero(loop.disc, gain=(1.0, factor), others=others, most_cells=_FINER):
            return BoxProof(rule, factor, "")
    if rule:
        return BoxProof(True, MIN_FACTOR, "")
    return BoxProof(False, None, f"no decision in {_FINER} cells: narrower ranges would be decided")


def _box_loop(scenario: Scenario, ranges: tuple[NetworkRange, ...]) -> tuple[BoxLoop, tuple[Range, ...]] | str:
    """The loop over the box and its ranges in logarithms, or why there is none."""
    wide = [each for each in ranges if each.low < each.high]
    at = {each.changed: sqrt(each.low * each.high) if each.low < each.high else each.low for each in ranges}
    low, high = ({**at, **{each.changed: each[2 + end] for each in wide}} for end in (0, 1))
    network, *corners = (network_of(scenario, each).network for each in (at, low, high))
    laws = [
        [(link.ranges, link.greatest, link.age_s, link.age_queues) for link in each.links]
        for each in (network, *corners)
    ]
    if laws[1:] != [laws[0], laws[0]]:
        return "a law's gains depend on its link's rate"
    equilibrium = network_equilibrium(network)
    loop = NetworkLoop(equilibrium)
    if equilibrium.marking != equilibrium.order or not loop.sampled:
        return "only laws that hold a target and share one interval have bounds over ranges"
    try:
        if limits_of(scanned(loop)).unstable:
            return "it has unstable points"
    except NetctrlError as error:
        return str(error)
    groups, links = [group.name for group in network.groups], [link.name for link in network.links]
    coordinates, others = [], []
    for each in wide:
        scale = 1.0
        if each.kind == "capacity":  # in bit/s, the loop's rate is in packets a second
            place = links.index(each.name)
            scale = network.links[place].rate / at[each.changed]
            coordinates.append(Coordinate("rate", place))
        else:
            coordinates.append(Coordinate(each.kind, groups.index(each.name)))
        others.append((log(each.low * scale), log(each.high * scale)))
    shortest = min(
        float(trip) - group.rtt_s + min((r.low for r in wide if r.changed == ("rtt", group.name)), default=group.rtt_s)
        for group, trip in zip(network.groups, equilibrium.trips, strict=True)
    )
    return BoxLoop(loop, NetworkCells(equilibrium, tuple(coordinates), MIN_WINDOW), shortest), tuple(others)


def network_reach(scenario: Scenario, changed: Mapping[Changed, float], loop_at: LoopAt, factor: float) -> NetworkReach:
    """From an operating point outwards, how far all points that are looked at keep a gain margin.

    Parameters
    ----------
    scenario : Scenario
    changed : mapping
        What differs from the scenario at the point.
    loop_at : callable
        The loop at values of quantities.
    factor : float
        Gain margin to keep.
    """
    rtt = {group.id: changed.get(("rtt", group.id), group.rtt[0]) for group in scenario.flows}
    flows = {group.id: changed.get(("flows", group.id), float(group.count)) for group in scenario.flows}

    def kept(moved: Mapping[Changed, float]) -> bool:
        try:
            found = looked_at({**changed, **moved}, loop_at)
        except NetctrlError:  # so far out that no equilibrium is found
            return False
        return not found.absent and found.factor >= factor

    def longer(by: float) -> bool:
        return kept({("rtt", name): value * by for name, value in rtt.items()})

    def fewer(by: float) -> bool:
        return kept({("flows", name): value / by for name, value in flows.items()})

    return NetworkReach(
        rtt_factor=kept_up_to(longer, 1.0, _STEP, _FAR, _HALVINGS),
        flows_divisor=kept_up_to(fewer, 1.0, _STEP, _FAR, _HALVINGS),
    )
