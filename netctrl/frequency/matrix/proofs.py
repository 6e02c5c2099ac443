"""Proofs that a function of angle, gain and phase is not 0 over a box, and certified counts of its turns around 0.

The function is given by discs over cells that provably contain it. A cell whose disc leaves 0 out is settled, any other
is divided along the coordinate that widens its disc most.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import NamedTuple

import numpy as np

from netctrl.errors import NetctrlError

__all__ = ["Box", "Discs", "avoids_zero", "gain_without_zero", "half_turns", "whole"]

_MOST_CELLS, _ROUNDS = 40_000, 60
_FIRST, _RATIO = 1e-4, 1.3
"""Least angle over the widest, and ratio of neighbouring edges, of the cells that a proof begins with."""
_FULL, _PIECES = 128, 8
"""Cells of a round that takes hardly longer than one of a few; so few are divided into up to so many pieces."""
_GAPS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Shares of the way from one end to an attained value that a proof gives up, tried one after the other."""
_WHOLE = 0.05
"""Distance of a count of turns from a whole number up to which it is one."""

Discs = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Centres and half widths of cells, (k, n), to centres of discs, (k,), and shares of their radii, (k, n)."""


class Box(NamedTuple):
    """Ranges of angle, gain, phase, and of what else a function depends on."""

    angle: tuple[float, float] = (0.0, pi)
    gain: tuple[float, float] = (1.0, 1.0)
    phase: tuple[float, float] = (0.0, 0.0)
    others: tuple[tuple[float, float], ...] = ()

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """All but the angle's."""
        return (self.gain, self.phase, *self.others)


def avoids_zero(discs: Discs, box: Box, most_cells: int = _MOST_CELLS) -> bool:
    """Whether the function is provably not 0 in a box; False also where it is undecided after so many cells."""
    return _settled(discs, box, most_cells) is not None


def half_turns(discs: Discs, angle: tuple[float, float], gain: float = 1.0) -> float:
    """Change of the function's argument over a range of angles at a gain, in units of pi, with a proof.

    Between two edges of settled cells the function stays in a disc without 0, so its argument changes by the principal
    value of the ratio of both ends.

    Raises
    ------
    NetctrlError
        The function comes too close to 0 for a decision.
    """
    edges = _settled(discs, Box(angle=angle, gain=(gain, gain)))
    if edges is None:
        raise NetctrlError("no decision on stability: the loop is at its limit to many digits")
    points = np.stack([edges, np.full_like(edges, gain), np.zeros_like(edges)], axis=1)
    values, _ = discs(points, np.zeros_like(points))
    return float(np.angle(values[1:] / values[:-1]).sum() / pi)


def whole(turns: float) -> int:
    """A certified count as a whole number; NetctrlError where it is none."""
    if abs(turns - round(turns)) > _WHOLE:
        raise NetctrlError(f"no decision on stability: a count of turns is {turns:.3f}, not a whole number")
    return round(turns)


def gain_without_zero(discs: Discs, attained: float, of: Callable[[float], Box], floor: float) -> float:
    """Value up to which the function provably has no 0, within some gap of an attained one.

    Parameters
    ----------
    discs : callable
    attained : float
        Value at which it is 0, or up to which is asked.
    of : callable
        Box for a value.
    floor : float
        Value from which the box grows; returned where nothing is proved.
    """
    for gap in _GAPS:
        value = attained - gap * (attained - floor)
        if avoids_zero(discs, of(value)):
            return value
    return floor


def _settled(discs: Discs, box: Box, most_cells: int = _MOST_CELLS) -> np.ndarray | None:
    """Edges of cells of the angle that cover the box, in each of which 0 is left out; None: undecided."""
    low, high = box.angle
    first = max(low, _FIRST * high)
    edges = np.geomspace(first, high, 2 + int(np.log(high / first) / np.log(_RATIO)))
    edges = np.concatenate([[low], edges]) if first > low else edges
    centre = np.zeros((len(edges) - 1, 1 + len(box.ranges)))
    half = np.zeros_like(centre)
    for column, (start, end) in enumerate([(edges[:-1], edges[1:]), *box.ranges]):
        centre[:, column] = 0.5 * (np.asarray(start) + np.asarray(end))
        half[:, column] = 0.5 * (np.asarray(end) - np.asarray(start)) * (1.0 + 1e-12)
    seen, met = 0, [edges]
    for _ in range(_ROUNDS):
        values, parts = discs(centre, half)
        left = ~(np.abs(values) > parts.sum(axis=1))
        seen += len(values)
        if not left.any():
            return np.unique(np.clip(np.concatenate(met), low, high))
        if seen > most_cells:
            return None
        pieces = max(2, min(_PIECES, _FULL // int(left.sum())))
        centre, half = _divided(centre[left], half[left], parts[left], pieces, _FIRST * high)
        met += [centre[:, 0] - half[:, 0], centre[:, 0] + half[:, 0]]
    return None


def _divided(
    centre: np.ndarray, half: np.ndarray, parts: np.ndarray, pieces: int, lowest: float
) -> tuple[np.ndarray, np.ndarray]:
    # Without a bound yet: of what has none, the angle or another coordinate, which is a logarithm.
    widths = np.concatenate([half[:, :1] / (centre[:, :1] + lowest), 0.0 * half[:, 1:3], half[:, 3:]], axis=1)
    shares = np.where(np.isfinite(parts).all(axis=1, keepdims=True), parts, np.where(np.isinf(parts), widths, 0.0))
    rows, along = np.arange(len(shares)), np.argmax(np.where(half > 0.0, shares, -1.0), axis=1)
    step, narrow = np.zeros_like(half), half.copy()
    step[rows, along] = half[rows, along] / pieces
    # Neighbouring pieces share their edges, despite rounding.
    narrow[rows, along] = step[rows, along] + 2.0 * np.spacing(np.abs(centre[rows, along]))
    centres = [centre + i * step for i in range(1 - pieces, pieces, 2)]
    return np.concatenate(centres), np.tile(narrow, (pieces, 1))
