"""All zeros of a real exponential polynomial on an interval, and the change of argument of a complex one.

Bisection continues until a bound decides each interval: no zero (the value outweighs its change), at most one (the
slope does), or undecided due to rounding. Nothing is sampled, so nothing between two points can be missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.frequency.certified.exponential import HIDDEN, ExponentialPolynomial, clear_of_zero, evaluate, values

_CHUNK = 4096
_MAX_PIECES = 400_000
_WIDE = 0.01  # relative width over which rounding may hide whether a function is 0
_CLOSE = 1e-11  # two zeros closer than this, relative, are one zero found from both sides
_CUTS = np.array([0.0, 0.2467, 0.5123, 0.7611, 1.0])  # unequal quarters, so that round numbers are not ends


@dataclass(frozen=True, slots=True)
class Zero:
    """Zero of a real function: between low and high, at `at` to rounding."""

    at: float
    low: float
    high: float
    direction: int
    """1 rising, −1 falling, 0 touching: the sign is the same on both sides, to rounding."""
    simple: bool
    """False where rounding hides the number of zeros between low and high (a touching one, or several)."""


def octaves(low: float, high: float) -> np.ndarray:
    """Ends of pieces that double in length, from low to high; the last thirty octaves where low is 0."""
    start = max(low, high * 2.0**-30)
    inner = start * 1.987 ** np.arange(1, 32)
    return np.concatenate([[low], inner[inner < 0.9 * high], [high]])


def _pieces(a: np.ndarray, b: np.ndarray, decide) -> None:
    """Cut intervals until `decide(a, b)`, the mask of the undecided ones, is empty."""
    done = 0
    while a.size:
        done += a.size
        if done > _MAX_PIECES:
            raise InvalidValue(
                "loop",
                f"more than {_MAX_PIECES} intervals of the frequency axis",
                "a loop with fewer crossings: less delay for its bandwidth, or fewer and better separated corners",
            )
        still = np.concatenate([decide(a[i : i + _CHUNK], b[i : i + _CHUNK]) for i in range(0, a.size, _CHUNK)])
        a, b = a[still], b[still]
        ends = a[:, None] + _CUTS * (b - a)[:, None]
        ends[:, -1] = b
        a, b = ends[:, :-1].ravel(), ends[:, 1:].ravel()


def argument_change(f: ExponentialPolynomial, high: float) -> float | None:
    """arg f(high) − arg f(0) along [0, high] [rad]; None where f has a zero there, to rounding."""
    ends: list[np.ndarray] = []
    hidden_somewhere = False

    def decide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal hidden_somewhere
        clear, hidden = clear_of_zero(f, a, b)
        hidden_somewhere |= bool(hidden.any())
        ends.extend([a[clear], b[clear]])
        return ~clear & ~hidden & (not hidden_somewhere)

    (start,), (error,) = evaluate(f, np.zeros(1))
    if abs(start) <= error:  # intervals next to a zero at 0 would shrink without end, as the error shrinks with them
        return None
    edges = octaves(0.0, high)
    _pieces(edges[:-1], edges[1:], decide)
    if hidden_somewhere:
        return None
    along = values(f, np.unique(np.concatenate(ends)))
    return float(np.angle(along[1:] / along[:-1]).sum())


def zeros(f: ExponentialPolynomial, low: float, high: float) -> list[Zero]:
    """All zeros of a real f on [low, high], ascending.

    Parameters
    ----------
    f : ExponentialPolynomial
    low, high : float
    """
    if not low < high:
        return []
    slope = f.derivative()
    brackets: list[tuple[np.ndarray, np.ndarray]] = []
    clusters: list[tuple[np.ndarray, np.ndarray]] = []

    def decide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        clear, hidden = clear_of_zero(f, a, b)
        clusters.append((a[hidden], b[hidden]))
        left = np.flatnonzero(~clear & ~hidden)
        monotone, _ = clear_of_zero(slope, a[left], b[left])
        one = left[monotone]
        (fa, ea), (fb, eb) = evaluate(f, a[one]), evaluate(f, b[one])
        crossed = (np.sign(fa) * np.sign(fb) < 0.0) | (np.abs(fa) <= ea) | (np.abs(fb) <= eb)
        brackets.append((a[one[crossed]], b[one[crossed]]))
        still = np.zeros(a.size, bool)
        still[left[~monotone]] = True
        return still

    edges = octaves(low, high)
    _pieces(edges[:-1], edges[1:], decide)
    a, b = (np.concatenate(part) for part in zip(*brackets, strict=True))
    simple = _simple(f, slope, a, b)
    a, b = (np.concatenate(part) for part in zip(*clusters, strict=True))
    return _without_twins(sorted([*simple, *_clusters(f, a, b)], key=lambda z: z.at))


def _simple(f: ExponentialPolynomial, slope: ExponentialPolynomial, a: np.ndarray, b: np.ndarray) -> list[Zero]:
    """The only zero in each bracket, by Newton steps that stay in it, with a bound of its error."""
    if not a.size:
        return []
    rising = np.sign(values(slope, 0.5 * (a + b)))
    low, high = a.copy(), b.copy()
    x = 0.5 * (a + b)
    for _ in range(80):
        value = values(f, x)
        above = value * rising > 0.0
        low, high = np.where(above, low, x), np.where(above, x, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = x - value / values(slope, x)
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        step, x = np.abs(new - x), new
        if (step <= 4e-16 * np.abs(x)).all():
            break
    error = evaluate(f, x)[1] / np.abs(values(slope, x)) + 4e-16 * np.abs(x)
    return [Zero(float(w), float(w - e), float(w + e), int(d), True) for w, e, d in zip(x, error, rising, strict=True)]


def _clusters(f: ExponentialPolynomial, a: np.ndarray, b: np.ndarray) -> list[Zero]:
    """Neighbouring undecided intervals joined, with the direction from the signs beside them."""
    order = np.argsort(a)
    a, b = a[order], b[order]
    found = []
    for group in np.split(np.arange(a.size), np.flatnonzero(a[1:] > b[:-1] * (1.0 + _CLOSE)) + 1):
        if group.size:
            low, high = float(a[group[0]]), float(b[group[-1]])
            width = high - low
            if width > _WIDE * high:
                raise HIDDEN
            (before, after), (e0, e1) = evaluate(f, np.array([max(low - width, 0.0), high + width]))
            sure = abs(before) > e0 and abs(after) > e1 and before * after < 0.0
            found.append(Zero(0.5 * (low + high), low, high, int(np.sign(after)) if sure else 0, False))
    return found


def _without_twins(found: list[Zero]) -> list[Zero]:
    kept: list[Zero] = []
    for zero in found:
        near = kept and zero.low <= kept[-1].high + _CLOSE * zero.at
        if near and (zero.direction == kept[-1].direction or not (zero.simple and kept[-1].simple)):
            if not kept[-1].simple and zero.simple:
                kept[-1] = zero
            continue
        kept.append(zero)
    return kept
