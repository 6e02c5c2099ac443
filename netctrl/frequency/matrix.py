"""Loops of several signals: loci of eigenvalues, proofs over boxes by discs, and the multi-loop disk margin.

**Loci.** Eigenvalues of the matrix response on the boundary of stability, with the gains and phases at which they meet
−1. det(1 + k L) = Π (1 + k lambda_j): the generalised Nyquist criterion follows the eigenvalues of L as one follows the
response of a single loop (MacFarlane, Postlethwaite, Int. J. Control 25(1), 1977).

**Proofs.** A function of angle, gain and phase is not 0 over a box, and its turns around 0 are counted. It is given by
discs over cells that provably contain it. A cell whose disc leaves 0 out is settled, any other is divided along the
coordinate that widens its disc most.

**Disk margin.** The factors of all loops vary at once, each in a disk of its own: each loop has a factor
f = (1 + delta/2)/(1 − delta/2) with |delta| < alpha, of any phase, independent of the others'. The loops stay stable up
to alpha = 2/max mu(S − T), with mu over diagonal matrices of complex numbers (Seiler, Packard, Gahinet, "An
introduction to disk margins", IEEE Control Systems 40(5), 2020). mu is at most the least norm of D (S − T) D⁻¹ over
diagonal D, and equals it for up to three loops (Packard, Doyle, Automatica 29(1), 1993).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError

Response = Callable[[np.ndarray], np.ndarray]
"""Angles (n,) to matrices (n, S, S)."""

_GEOMETRIC, _PER_TURN, _MOST_EVEN, _LOWEST = 200, 24, 4000, 1e-4
_HALVINGS = 60
_CLOSE = 1e-13
_REAL = 1e-9
"""Imaginary part over modulus up to which an eigenvalue of a real matrix is real."""


class Crossing(NamedTuple):
    """Angle at which an eigenvalue is on the negative axis, or of modulus 1."""

    angle: float
    """[rad]"""
    value: complex
    """The eigenvalue."""

    @property
    def gain(self) -> float:
        """Factor k with k lambda = −1, of an eigenvalue on the negative axis."""
        return -1.0 / self.value.real

    @property
    def off(self) -> float:
        """Angle from the negative axis [rad]."""
        return abs(float(np.angle(-self.value)))


class Locus(NamedTuple):
    """Eigenvalues of a response at neighbouring angles."""

    response: Response
    angles: np.ndarray
    """(n,) [rad]."""
    curves: np.ndarray
    """(n, S), each column one eigenvalue that is followed."""
    real_end: bool
    """Whether the last angle is that of z = −1, where the response is real."""


def locus(response: Response, angles: np.ndarray, matrices: np.ndarray, *, real_end: bool) -> Locus:
    """Eigenvalues of a response whose values at the angles are given, (n, S, S).

    Parameters
    ----------
    response : callable
        Angles (n,) to matrices (n, S, S).
    angles, matrices : ndarray
        (n,) and (n, S, S).
    real_end : bool
        Whether the last angle is that of z = −1.
    """
    return Locus(response, angles, tracked(matrices), real_end)


def scan_angles(longest: float) -> np.ndarray:
    """Angles up to pi: in geometric steps, and even ones of a small part of a turn of the longest delay [epoch].

    Parameters
    ----------
    longest : float
        Longest delay [epoch].
    """
    widest = max(2.0 * pi / _PER_TURN / max(longest, 1.0), pi / _MOST_EVEN)
    start = _LOWEST / max(longest, 1.0)
    even = np.linspace(start, pi, 2 + int(pi / widest))
    return np.unique(np.concatenate([np.geomspace(start, pi, _GEOMETRIC), even]))


def tracked(matrices: np.ndarray) -> np.ndarray:
    """Eigenvalues of matrices (n, S, S) at neighbouring angles as S curves, (n, S), each next to the last."""
    values = np.linalg.eigvals(matrices)
    size = values.shape[1]
    for n in range(1, len(values)):
        distance = np.abs(values[n][None, :] - values[n - 1][:, None])
        order = np.empty(size, dtype=int)
        for _ in range(size):
            row, column = np.unravel_index(np.argmin(distance), distance.shape)
            order[row] = column
            distance[row, :] = inf
            distance[:, column] = inf
        values[n] = values[n][order]
    return values


def negative_real(found: Locus, steps: int = _HALVINGS) -> list[Crossing]:
    """Crossings of the negative axis by eigenvalues, each refined to rounding or by so many steps."""
    curves, crossings = found.curves, []
    for n, j in _sign_changes(curves.imag):
        if found.real_end and n + 2 == len(curves):
            continue
        if curves[n, j].real < 0.0 or curves[n + 1, j].real < 0.0:
            crossing = _refined(found, n, j, lambda v: float(np.angle(-v)), steps)
            if crossing.value.real < 0.0:
                crossings.append(crossing)
    if found.real_end:
        last = curves[-1]
        real = (np.abs(last.imag) <= _REAL * np.abs(last)) & (last.real < 0.0)
        crossings += [Crossing(float(found.angles[-1]), complex(value)) for value in last[real]]
    return crossings


def gain_crossovers(found: Locus, steps: int = _HALVINGS) -> list[Crossing]:
    """Angles at which eigenvalues have modulus 1, each refined to rounding or by so many steps."""
    changes = _sign_changes(np.log(np.abs(found.curves)))
    return [_refined(found, n, j, lambda v: float(np.log(np.abs(v))), steps) for n, j in changes]


def _sign_changes(values: np.ndarray) -> list[tuple[int, int]]:
    sign = np.signbit(values)
    return [(int(n), int(j)) for n, j in zip(*np.nonzero(sign[1:] != sign[:-1]), strict=True)]


def _refined(found: Locus, n: int, j: int, off: Callable[[complex], float], steps: int) -> Crossing:
    """Root of a function of an eigenvalue that is followed from one angle to the next, by the Illinois method."""
    a, b = (float(angle) for angle in found.angles[n : n + 2])
    va, vb = (complex(value) for value in found.curves[n : n + 2, j])
    fa, fb = off(va), off(vb)
    for _ in range(steps):
        with np.errstate(divide="ignore", invalid="ignore"):
            c = b - fb * (b - a) / (fb - fa) if fb != fa else 0.5 * (a + b)
        if not min(a, b) < c < max(a, b):
            c = 0.5 * (a + b)
        share = (c - a) / (b - a) if b != a else 0.5
        near = va + share * (vb - va)
        all_values = np.linalg.eigvals(found.response(np.array([c]))[0])
        value = complex(all_values[np.argmin(np.abs(all_values - near))])
        fc = off(value)
        if (fc < 0.0) != (fb < 0.0):
            a, fa, va = b, fb, vb
        else:
            fa *= 0.5
        b, fb, vb = c, fc, value
        if abs(fc) <= _CLOSE or abs(b - a) <= 1e-15 * abs(b):
            break
    return Crossing(b, vb)


# ---------------------------------------------------------------------- proofs

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


Range = tuple[float, float]


def avoids_zero(
    discs: Discs,
    *,
    angle: Range = (0.0, pi),
    gain: Range = (1.0, 1.0),
    phase: Range = (0.0, 0.0),
    others: tuple[Range, ...] = (),
    most_cells: int = _MOST_CELLS,
) -> bool:
    """Whether a function is provably not 0 over ranges; False also where it is undecided.

    Parameters
    ----------
    discs : callable
        Discs that contain the function, over cells of all these quantities in this order.
    angle, gain, phase : (float, float)
        Ranges of the angle [rad], of a factor and of an additional phase [rad].
    others : tuple of (float, float)
        Ranges of what else the function depends on, in logarithms.
    most_cells : int
        Number of cells after which a proof is given up.
    """
    return _settled(discs, (angle, gain, phase, *others), most_cells) is not None


def half_turns(discs: Discs, angle: tuple[float, float], gain: float = 1.0) -> float:
    """Change of the function's argument over a range of angles at a gain, in units of pi, with a proof.

    Between two edges of settled cells the function stays in a disc without 0, so its argument changes by the principal
    value of the ratio of both ends.

    Parameters
    ----------
    discs : callable
    angle : (float, float)
        Range [rad].
    gain : float

    Raises
    ------
    NetctrlError
        The function comes too close to 0 for a decision.
    """
    edges = _settled(discs, (angle, (gain, gain), (0.0, 0.0)), _MOST_CELLS)
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


def greatest_held(holds: Callable[[float], bool], attained: float, floor: float) -> float:
    """Value up to which a proof holds, within some gap of an attained one; `floor` where none does.

    Parameters
    ----------
    holds : callable
        Whether there is a proof up to a value.
    attained : float
        Value at which there is none, or up to which is asked.
    floor : float
        Value from which the range of the proof grows.
    """
    values = (attained - gap * (attained - floor) for gap in _GAPS)
    return next((value for value in values if holds(value)), floor)


def _settled(discs: Discs, ranges: tuple[Range, ...], most_cells: int) -> np.ndarray | None:
    """Edges of cells of the angle, the first of the ranges, that cover them all and leave 0 out; None: undecided."""
    (low, high), *rest = ranges
    first = max(low, _FIRST * high)
    edges = np.geomspace(first, high, 2 + int(np.log(high / first) / np.log(_RATIO)))
    edges = np.concatenate([[low], edges]) if first > low else edges
    centre = np.zeros((len(edges) - 1, len(ranges)))
    half = np.zeros_like(centre)
    for column, (start, end) in enumerate([(edges[:-1], edges[1:]), *rest]):
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


# ---------------------------------------------------------------------- disk margin

_SWEEPS = 200
_STEPS = 60
_REFINE = 3
_POINTS = 17


def multiloop_disk_margin(
    response: Callable[[np.ndarray], np.ndarray], angles: np.ndarray, matrices: np.ndarray
) -> float:
    """Disk margin of a stable loop of several signals: every margin up to it holds.

    Parameters
    ----------
    response : callable
        Angles (n,) to L, (n, S, S).
    angles : ndarray
        Grid, which is refined around the worst angle; between its points nothing is proved.
    matrices : ndarray, shape (n, S, S)
        L there.
    """
    for _ in range(_REFINE):
        worst = int(np.argmax(_bounds(matrices)))
        low, high = angles[max(worst - 1, 0)], angles[min(worst + 1, len(angles) - 1)]
        angles = np.linspace(low, high, _POINTS)
        matrices = response(angles)
    return 2.0 / float(_bounds(matrices).max())


def _bounds(L: np.ndarray) -> np.ndarray:
    one = np.eye(L.shape[1])
    return mu_bound(np.linalg.solve(one + L, one - L))


def mu_bound(M: np.ndarray) -> np.ndarray:
    """Upper bound of mu for diagonal complex uncertainty, of matrices (n, S, S): (n,).

    D = diag(d) is moved along the gradient of the greatest singular value until that stays; any D gives a bound.
    """
    scale = np.ones(M.shape[:2])
    for _ in range(_SWEEPS):
        scaled = np.abs(M * scale[:, :, None] / scale[:, None, :]) ** 2
        np.einsum("nii->ni", scaled)[:] = 0.0
        rows, columns = scaled.sum(axis=2), scaled.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.where((rows > 0.0) & (columns > 0.0), (columns / rows) ** 0.25, 1.0)
        scale *= moved
        if np.abs(moved - 1.0).max() < 1e-6:
            break
    return _descended(M, scale)


def _descended(M: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Least norm along the gradient of its logarithm over those of d, from a first scale on."""
    best = np.full(len(M), np.inf)
    step = np.full(len(M), 0.5)
    u = np.log(scale)
    direction = np.zeros_like(u)
    for _ in range(_STEPS):
        trial = u + step[:, None] * direction
        scaled = M * np.exp(trial)[:, :, None] / np.exp(trial)[:, None, :]
        left, sizes, right = np.linalg.svd(scaled)
        better = sizes[:, 0] < best
        best = np.where(better, sizes[:, 0], best)
        step = np.where(better, 1.5 * step, 0.4 * step)
        u = np.where(better[:, None], trial, u)
        slope = np.abs(left[:, :, 0]) ** 2 - np.abs(right[:, 0, :]) ** 2  # of ln sigma over ln d
        direction = np.where(better[:, None], -slope, direction)
    return best
