"""Proofs of margins over boxes of networks, by branch and bound over angle, gain, phase and the box's quantities.

Where the loop is stable at one point of the box, and det(1 + k L) isn't 0 on the unit circle at any point of it for any
factor k of a range, it is stable at every point for all these factors: poles move continuously with the quantities.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, radians, sqrt
from typing import NamedTuple

from netctrl.certificates.box import MIN_FACTOR, MIN_PHASE_DEG, MIN_WINDOW
from netctrl.certificates.networks.box import NetworkRange, Worst
from netctrl.certificates.networks.margins import GAIN_CAP, limits_of, scanned
from netctrl.certificates.networks.scenario import network_of
from netctrl.errors import NetctrlError
from netctrl.frequency.matrix.proofs import Box, avoids_zero
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.cells import Coordinate, NetworkCells
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.plants.queue_networks.network import QueueNetwork
from netctrl.plants.queue_networks.over_box import BoxLoop
from netctrl.scenario.scenario import Scenario

__all__ = ["BoxProof", "box_proof"]

_MOST_CELLS, _FINER = 60_000, 20_000
"""Cells of the design rule's proof, and of each attempt to prove more."""
_GAPS = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of the way from 1 to the attained factor that a proof gives up, tried one after the other."""


class BoxProof(NamedTuple):
    """Statement that is proved at every point of a box."""

    rule: bool
    """6 dB and 30 degrees."""
    factor: float | None
    """Factor of the gains up to which the loop is stable; None: nothing is proved."""
    why_not: str
    """Why nothing is proved; empty: something is."""


@dataclass(frozen=True, slots=True)
class _Proof:
    """Box of a network's loop, in logarithms of its quantities."""

    loop: BoxLoop
    others: tuple[tuple[float, float], ...]

    def held(self, most_cells: int, **ranges: tuple[float, float]) -> bool:
        return avoids_zero(self.loop.disc, Box(others=self.others, **ranges), most_cells)


def box_proof(scenario: Scenario, ranges: tuple[NetworkRange, ...], worst: Worst) -> BoxProof:
    """Proof over a box whose worst point is known, as far as it goes."""
    if worst.factor <= 1.0:
        return BoxProof(False, None, "it has unstable points")
    found = _box_loop(scenario, ranges)
    if isinstance(found, str):
        return BoxProof(False, None, found)
    rule = False
    if worst.factor > MIN_FACTOR and worst.lower < 1.0 / MIN_FACTOR and worst.phase_rad > radians(MIN_PHASE_DEG):
        phase = radians(MIN_PHASE_DEG)
        rule = found.held(_MOST_CELLS, gain=(1.0 / MIN_FACTOR, MIN_FACTOR)) and found.held(
            _MOST_CELLS, gain=(1.0, 1.0), phase=(-phase, phase)
        )
        if not rule:
            return BoxProof(False, None, f"no decision in {_MOST_CELLS} cells: narrower ranges would be decided")
    attained = min(worst.factor, GAIN_CAP)
    for gap in _GAPS:
        factor = attained - gap * (attained - 1.0)
        if rule and factor <= MIN_FACTOR:
            break
        if found.held(_FINER, gain=(1.0, factor)):
            return BoxProof(rule, factor, "")
    if rule:
        return BoxProof(True, MIN_FACTOR, "")
    return BoxProof(False, None, f"no decision in {_FINER} cells: narrower ranges would be decided")


def _box_loop(scenario: Scenario, ranges: tuple[NetworkRange, ...]) -> _Proof | str:
    """The loop over the box, or why there is none."""
    wide = [each for each in ranges if each.low < each.high]
    at = {each.changed: sqrt(each.low * each.high) if each.low < each.high else each.low for each in ranges}
    network = network_of(scenario, at).network
    ends = [network_of(scenario, {**at, **{each.changed: each[2 + e] for each in wide}}).network for e in (0, 1)]
    if any(_laws(each) != _laws(network) for each in ends):
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
    coordinates = tuple(
        Coordinate("rate", links.index(each.name))
        if each.kind == "capacity"
        else Coordinate(each.kind, groups.index(each.name))
        for each in wide
    )
    others = []
    for each, (kind, place) in zip(wide, coordinates, strict=True):
        scale = network.links[place].rate / at[each.changed] if kind == "rate" else 1.0
        others.append((log(each.low * scale), log(each.high * scale)))
    shortest = min(
        float(trip) - group.rtt_s + min((r.low for r in wide if r.changed == ("rtt", group.name)), default=group.rtt_s)
        for group, trip in zip(network.groups, equilibrium.trips, strict=True)
    )
    return _Proof(BoxLoop(loop, NetworkCells(equilibrium, coordinates, MIN_WINDOW), shortest), tuple(others))


def _laws(network: QueueNetwork) -> list:
    return [(link.ranges, link.greatest, link.age_s, link.age_queues) for link in network.links]
