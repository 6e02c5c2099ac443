"""Margins of the loop that all laws of a network close: limits of gain and phase, their proofs, and their picture.

A common factor k of all gains takes the loop to its limit where an eigenvalue of L is −1/k, a common phase where one of
modulus 1 is turned to −1. Both are crossings of eigenvalues that are followed over the angle, found on a grid and
refined. The number of unstable poles is counted apart from them, by the turns of two determinants around 0: that of
the queues alone, without any law, whose turns give the open loop's unstable poles, and det(1 + k L), whose turns are
the difference (`netctrl.plants.queue_networks.bounded` and `bounded`). With a proof, turns are counted through discs
between whose centres the determinant can't be 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import degrees, inf, pi
from typing import NamedTuple

import numpy as np

from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.certificates.networks.scenario import Changed, network_of
from netctrl.core.errors import InvalidValue
from netctrl.frequency.matrix import (
    Crossing,
    Locus,
    avoids_zero,
    gain_crossovers,
    greatest_held,
    half_turns,
    locus,
    negative_real,
    scan_angles,
    whole,
)
from netctrl.frequency.records import decibel
from netctrl.plants.queue_networks.bounded import NetworkLoop, queues_alone
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.scenario.scenario import Scenario

GAIN_CAP = 1e3
"""Factor of the gains up to which crossings are looked for: 60 dB."""
_TAIL = 0.25
"""Bound of the response beyond the angles that are looked at, where laws act in continuous time."""
_EVEN = 400
"""Angles at which turns are counted without a proof."""
_REFINED, _FEW = 60, 4
"""Steps by which crossings are refined, to rounding or to some 1e-5."""


class Limits(NamedTuple):
    """Gains and phases at which the closed loop has a pole on the boundary of stability."""

    unstable: int
    """Poles at the gain 1."""
    upper: Crossing | None
    """Least gain above 1 at which a stable loop becomes unstable."""
    lower: Crossing | None
    """Greatest gain below 1, of an unstable loop the greatest below which it is stable."""
    phase_rad: float


def covered(loop: NetworkLoop) -> NetworkLoop:
    """The loop with angles up to pi for all frequencies that can matter, where laws don't share one interval.

    Beyond them the response is provably too small for any of the gains that are looked at to reach −1.
    """
    if loop.sampled:
        return loop
    loop = replace(loop, continuous_s=2.0 * max(group.trip for group in loop.groups))
    while True:
        tail = loop.beyond()
        if tail <= _TAIL:
            gains = (each.gain for each in _crossings(scanned(loop).locus()) if each.gain > 1.0)
            if 2.0 * tail * min(min(gains, default=GAIN_CAP), GAIN_CAP) <= 1.0:
                return loop
        loop = replace(loop, continuous_s=0.5 * loop.continuous_s)


class Scan(NamedTuple):
    """Response on a grid of angles."""

    loop: NetworkLoop
    angles: np.ndarray
    matrices: np.ndarray
    """L, (n, S, S)."""

    def locus(self) -> Locus:
        """Its eigenvalues."""
        return locus(self.loop.at, self.angles, self.matrices, real_end=self.loop.sampled)

    def half_turns(self, gain: float) -> float:
        """Change of the argument of det(r + r gain L) over the grid, in units of pi, without a proof."""
        weights = np.prod(self.loop.weights(self.angles), axis=0)
        values = weights * np.linalg.det(np.eye(self.matrices.shape[1]) + gain * self.matrices)
        first = np.array([np.copysign(1.0, values[0].real)])  # it is real at the angle 0
        return _half_turns(np.concatenate([first, values]))


def scanned(loop: NetworkLoop) -> Scan:
    """A loop's response on a grid that has several points a turn of the longest round trip."""
    angles = scan_angles(max(group.trip for group in loop.groups) / loop.epoch)
    return Scan(loop, angles, loop.at(angles))


def _half_turns(values: np.ndarray) -> float:
    """Change of the argument along values, in units of pi."""
    return float(np.angle(values[1:] / values[:-1]).sum() / pi)


def _crossings(found: Locus, steps: int = _REFINED) -> list[Crossing]:
    return [each for each in negative_real(found, steps) if each.gain < GAIN_CAP]


def limits_of(scan: Scan, *, proved: bool = True) -> Limits:
    """Unstable poles, and the gains and the phase next to those that run.

    Poles are counted with a proof and crossings refined to rounding, or counted on the grid and found to some 1e-5.
    """
    loop = scan.loop
    alone = queues_alone(loop)
    if proved:
        turns = half_turns(alone.disc, (0.0, pi))
    else:
        points = np.zeros((_EVEN, 3))
        points[:, 0], points[:, 1] = np.linspace(0.0, pi, _EVEN), 1.0
        turns = _half_turns(alone.disc(points, np.zeros_like(points))[0])
    poles = whole(-(turns + alone.rest))

    def unstable(gain: float) -> int:
        turns = half_turns(loop.disc, (0.0, pi), gain) if proved else scan.half_turns(gain)
        return poles + whole(-(turns + loop.rest(gain)))

    curves, steps = scan.locus(), _REFINED if proved else _FEW
    crossings = _crossings(curves, steps)
    upper = min((each for each in crossings if each.gain >= 1.0), key=lambda each: each.gain, default=None)
    below = sorted((each for each in crossings if each.gain < 1.0), key=lambda each: -each.gain)
    found = unstable(1.0)
    if found == 0:
        offs = [each.off for each in gain_crossovers(curves, steps)]
        return Limits(0, upper, below[0] if below else None, min(offs, default=pi))
    # Between two crossings the number of unstable poles stays.
    ends = [*(each.gain for each in below[1:]), 0.25 * below[-1].gain] if below else []
    held = (each for each, end in zip(below, ends, strict=True) if unstable((each.gain * end) ** 0.5) == 0)
    return Limits(found, None, next(held, None), 0.0)


def proved_margins(loop: NetworkLoop, limits: Limits) -> tuple[float, float | None, float]:
    """Gain margin, that for any instants of the laws [dB], and phase margin [degree], as far as they are proved."""

    def gain(some: NetworkLoop) -> float:
        attained = GAIN_CAP if limits.upper is None else limits.upper.gain
        return greatest_held(lambda value: avoids_zero(some.disc, gain=(1.0, value)), attained, 1.0)

    anyhow = None
    if loop.sampled and len(loop.laws) > 1:
        anyhow = gain(replace(loop, any_phase=True))
    # What holds for any instants holds for those that are the same.
    close = anyhow is not None and limits.upper is not None and anyhow > 1.0 + 0.995 * (limits.upper.gain - 1.0)
    same = anyhow if anyhow is not None and close else gain(loop)
    phase = greatest_held(lambda value: avoids_zero(loop.disc, phase=(-value, value)), limits.phase_rad, 0.0)
    return decibel(same), None if anyhow is None else decibel(anyhow), degrees(phase)


def alone_margins(scan: Scan) -> dict[int, float]:
    """Gain margins of single laws of a stable loop, the others as they are, by the link's place; without proof."""
    found, loop = {}, scan.loop
    for row, place in enumerate(loop.equilibrium.marking):

        def opened(L: np.ndarray, row: int = row) -> np.ndarray:
            T = np.linalg.solve(np.eye(L.shape[1]) + L, L)[:, row, row]
            return (T / (1.0 - T))[:, None, None]

        def single(theta: np.ndarray, opened: Callable[[np.ndarray], np.ndarray] = opened) -> np.ndarray:
            return opened(loop.at(theta))

        curves = locus(single, scan.angles, opened(scan.matrices), real_end=loop.sampled)
        found[place] = min((each.gain for each in negative_real(curves) if each.gain > 1.0), default=inf)
    return found


class Eigenloci(NamedTuple):
    """Eigenvalues of the matrix response L of a network's laws."""

    rad_per_s: np.ndarray
    """Frequencies, (n,)."""
    curves: np.ndarray
    """Complex eigenvalues, (n, S); each column follows one of them."""
    crossings: tuple[complex, ...]
    """Eigenvalues on the negative real axis."""


def eigenloci(scenario: Scenario, found: NetworkCertificate) -> Eigenloci:
    """Eigenvalues of a certificate's loop, of a box at its worst point.

    Parameters
    ----------
    scenario : Scenario
        Of the certificate.
    found : NetworkCertificate

    Raises
    ------
    InvalidValue
        A certificate without an equilibrium.
    """
    if found.certificate.margins is None:
        raise InvalidValue("plot", found.certificate.status.value, "a certificate with an equilibrium")
    changed: dict[Changed, float] = {}
    for group in found.flows:
        changed["rtt", group.name], changed["flows", group.name] = group.rtt_s, group.flows
    for link in found.links:
        changed["capacity", link.name] = link.capacity_bit_per_s
    scan = scanned(covered(NetworkLoop(network_equilibrium(network_of(scenario, changed).network))))
    locus = scan.locus()
    return Eigenloci(scan.angles / scan.loop.epoch, locus.curves, tuple(each.value for each in negative_real(locus)))
