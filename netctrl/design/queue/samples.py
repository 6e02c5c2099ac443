"""Disk margins of a queue's law: at sample points of a box, for many gains at a time, and proved over the box.

A PI law's loop is L = (integral + proportional (1 − 1/z)) U, where U is the loop of the integral gain 1: U is computed
once, and each pair of gains costs a product. Points are on a grid over the box, where ranges of the law's output meet,
and where a proof has found a worse one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, pi
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import Box, Ends
from netctrl.certificates.loops import box_loops, check_bounded
from netctrl.certificates.subject import PiSubject, Subject
from netctrl.frequency.sampled_margins import box_disk_margin
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_laws import SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop

Point = tuple[float, float]
"""Flows of the loop, and round-trip time without the queue [s]."""
_GRID = 5
_ANGLES = 320


class PiSamples(NamedTuple):
    """Loops of a PI law with the integral gain 1 at m samples: each point, with each sender, in its range."""

    unit: np.ndarray
    """U, (m, angles)."""
    turn: np.ndarray
    """1 − 1/z, (m, angles)."""
    scale: np.ndarray
    """Gains in the range over those where nothing scales them, (m,)."""
    rung: np.ndarray
    """Number of the range, (m,)."""

    def disk_margins(self, integral: np.ndarray, proportional: np.ndarray) -> np.ndarray:
        """Least disk margin over the samples for k pairs of gains [1/s], (k,): 0 where a loop is unstable."""
        return np.array(
            [self._least(self.scale * a, self.scale * b) for a, b in zip(integral, proportional, strict=True)]
        )

    def disk_margin(self, law: PiSubject) -> float:
        """The same for a law, with each range's gains as its implementation computes them."""
        gains = np.array([(each.integral, each.proportional) for _, _, each in law.rungs])[self.rung]
        return self._least(gains[:, 0], gains[:, 1])

    def _least(self, integral: np.ndarray, proportional: np.ndarray) -> float:
        return _least((integral[:, None] + proportional[:, None] * self.turn) * self.unit)


def pi_samples(law: PiSubject, box: Box, more: Sequence[Point] = ()) -> PiSamples:
    """Samples of a PI law's loops over a box, and at `more` points of it."""
    unit = replace(
        law, rungs=tuple((low, high, replace(g, integral=1.0, proportional=0.0)) for low, high, g in law.rungs)
    )
    found = []
    for number, (_, loop) in enumerate(box_loops(unit, box)):
        check_bounded(loop, "in a design, which is proved over its box")
        rung = number % len(law.rungs)
        n, tau = _points(loop, box, more)
        if n.size:
            theta = _angles(loop, n, tau)
            scale = law.rungs[rung][2].integral / law.sampled.integral
            response = loop.at(theta, n[:, None], tau[:, None], coarse=True)
            found.append((response, 1.0 - np.exp(-1j * theta), np.full(n.size, scale), np.full(n.size, rung)))
    return PiSamples(*(np.concatenate(each) for each in zip(*found, strict=True)))


def sampled_disk_margin(law: Subject, box: Box, more: Sequence[Point] = ()) -> float:
    """Least disk margin of any law's loops at samples of a box, and at `more` points: 0 where a loop is unstable."""
    least = 2.0
    for _, loop in box_loops(law, box):
        n, tau = _points(loop, box, more)
        if n.size:
            least = min(least, _least(loop.at(_angles(loop, n, tau), n[:, None], tau[:, None], coarse=True)))
    return least


def _points(loop: QueueLoop, box: Box, more: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """Samples at which a loop holds, with those at the ends of its range, where gains jump."""
    n, tau = (each.ravel() for each in np.meshgrid(_spread(box.flows), _spread(box.rtt)))
    others = np.array(more).reshape(-1, 2)
    n, tau = np.concatenate([n, others[:, 0]]), np.concatenate([tau, others[:, 1]])
    x = loop.output(n, tau)
    inside = loop.holds(x)
    edges = np.array(loop.starts(box.flows, box.rtt)).reshape(-1, 2)
    return np.concatenate([n[inside], edges[:, 0]]), np.concatenate([tau[inside], edges[:, 1]])


def _spread(ends: Ends) -> np.ndarray:
    return np.geomspace(*ends, _GRID) if ends[0] < ends[1] else np.array([ends[0]])


def _angles(loop: QueueLoop, n: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Angles at each point, (m, angles), from well below the windows' slowest corner on."""
    law = loop.law
    trip = tau + (law.target_s if isinstance(law, SampledPi) else 0.0)
    lowest = np.minimum(0.02 * loop.epoch / (trip * (1.0 + loop.rate * trip / n)), 0.02)[:, None]
    share = np.linspace(0.0, 1.0, _ANGLES)
    return lowest ** (1.0 - share) * pi**share


def _least(L: np.ndarray) -> float:
    """Least 2|1 + L|/|1 − L| of loops (m, angles), 0 where one is unstable by Nyquist's count on the grid."""
    if _unstable(L).any():
        return 0.0
    with np.errstate(divide="ignore"):
        ratio = 2.0 * np.abs(1.0 + L) / np.abs(1.0 - L)
    rows = np.arange(len(L))
    best = np.clip(ratio.argmin(axis=1), 1, L.shape[1] - 2)
    left, middle, right = (ratio[rows, best + i] for i in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = middle - np.where(bend > 0.0, (left - right) ** 2 / (8.0 * bend), 0.0)
    return float(np.minimum(np.where(middle <= np.minimum(left, right), vertex, middle), ratio.min(axis=1)).min())


def _unstable(L: np.ndarray) -> np.ndarray:
    """Whether poles are outside the unit circle: crossings of the negative axis beyond −1, (m,)."""
    a, b = L[:, :-1], L[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        at = a.real - a.imag * (b.real - a.real) / (b.imag - a.imag)
    beyond = (np.signbit(a.imag) != np.signbit(b.imag)) & (at < -1.0)
    beyond[:, -1] = False  # at z = −1 the imaginary part is 0 up to rounding
    leaves = np.where(beyond, np.where(b.imag > a.imag, 2, -2), 0).sum(axis=1)
    last = np.where(L[:, -1].real < -1.0, np.where(L[:, -2].imag < 0.0, 1, -1), 0)
    return leaves + last > 0


TOLERANCE = 0.015
"""Relative gap between the proved disk margin and the worst one that was found."""


class DiskProof(NamedTuple):
    """Least disk margin of a box, and its proved bound."""

    proved: float
    """No point of the box has less."""
    found: float
    """Attained at the worst point; 0 where a loop is unstable."""
    sender: str
    flows: float
    """Flows of the loop at the worst point."""
    rtt: float
    """Round-trip time without the queue there [s]."""


def prove_disk_margin(law: Subject, box: Box) -> DiskProof:
    """Disk margin of a law's loops over a box.

    Each loop is stable at the points from which the search starts, and nowhere in the box does it meet −1 where the
    bound is above 0: so it has the same number of unstable poles at every point, which is none.

    Raises
    ------
    NetctrlError
        A loop passes so near −1 that nothing above 0 is proved.
    """
    least = DiskProof(inf, inf, "", 0.0, 0.0)
    proved = inf
    for mixture, loop in box_loops(law, box):
        starts = loop.starts(box.flows, box.rtt)
        if not starts:
            continue
        for point in starts:
            if stable_gains(loop, *point).unstable_poles > 0:
                return DiskProof(0.0, 0.0, mixture.text, *point)
        found = box_disk_margin(loop, box.flows, box.rtt, starts, TOLERANCE, below=least.found)
        proved = min(proved, found.proved)
        if found.found < least.found:
            flows, rtt = (float(np.exp(u)) for u in found.where[1:3])
            least = DiskProof(found.proved, found.found, mixture.text, flows, rtt)
    return least._replace(proved=proved)
