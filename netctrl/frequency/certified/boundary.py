"""A loop on its stability boundary: polynomials on the imaginary axis in scaled frequency, or on the unit circle."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

import numpy as np

from netctrl.frequency.certified.closed_loop import ClosedLoop
from netctrl.frequency.certified.exponential import quasi_polynomial
from netctrl.model.open_loop import GivenTerm, OpenLoop

__all__ = ["MAX_TANGENT", "closed_loop"]

MAX_TANGENT = 24
"""Order up to which a discrete loop is mapped to the imaginary axis."""

_EPS = float(np.finfo(float).eps)


def closed_loop(loop: OpenLoop) -> ClosedLoop:
    """Closed loop of a record, with frequencies scaled to the loop's own corner."""
    return _discrete(loop) if loop.dt else _continuous(loop)


def _continuous(loop: OpenLoop) -> ClosedLoop:
    least = loop.denominator[0][0]
    late = min((delay for delay, _ in loop.numerator), default=least)
    numerator = [(t - late, np.array(p[::-1])) for t, p in loop.numerator]
    denominator = [(t - least, np.array(p[::-1])) for t, p in loop.denominator]
    return _on_axis(numerator, denominator, late - least, 0.0)


Rising = list[tuple[float, np.ndarray]]
"""(delay, coefficients of 1, s, s², ...)."""


def _on_axis(numerator: Rising, denominator: Rising, delay: float, dt: float) -> ClosedLoop:
    unit = _unit(numerator, denominator, delay)
    order = len(denominator[0][1]) - 1
    size = max(float(np.abs(p * unit ** np.arange(len(p))).max()) for _, p in denominator)
    N, D = (
        quasi_polynomial((t * unit, p * unit ** np.arange(len(p)) / size) for t, p in part)
        for part in (numerator, denominator)
    )
    return ClosedLoop(N, D, delay * unit, order, unit, dt)


def _unit(numerator: Rising, denominator: Rising, delay: float) -> float:
    """Characteristic frequency [rad/s]: geometric mean of the loop's poles, else that of numerator over denominator."""
    den = denominator[0][1]
    low, high = (int(i) for i in np.flatnonzero(den)[[0, -1]])
    if low < high:
        return _mean(den[low], den[high], high - low)
    if numerator and high:
        num = numerator[0][1]
        first = int(np.flatnonzero(num)[0])
        if first < high:
            return _mean(num[first], den[high], high - first)
    delays = [delay, *(t for t, _ in (*numerator, *denominator))]
    return 1.0 / max(delays) if max(delays) > 0.0 else 1.0


def _mean(lowest: float, highest: float, power: int) -> float:
    return float(np.exp((np.log(abs(lowest)) - np.log(abs(highest))) / power))


def _discrete(loop: OpenLoop) -> ClosedLoop:
    num, den = _powers(loop.numerator, loop.dt), _powers(loop.denominator, loop.dt)
    least = min([*num, *den])
    order = max(den) - least
    if order <= MAX_TANGENT:
        return _in_tangent(num, den, least, order, loop.dt)
    size = max(abs(c) for c in den.values())
    N, D = (
        quasi_polynomial((float(least - at), np.array([c / size])) for at, c in part.items()) for part in (num, den)
    )
    undelayed, lag = _undelayed(num, den, loop.dt)
    return ClosedLoop(N, D, 0.0, order, 1.0, loop.dt, circle=True, undelayed=undelayed, lag=lag)


def _undelayed(num: dict[int, float], den: dict[int, float], dt: float) -> tuple[ClosedLoop | None, int]:
    """The loop with the lowest powers of numerator and denominator removed, and the samples between those powers."""
    if not num:
        return None, 0
    lag = min(den) - min(num)
    num, den = ({at - min(part): c for at, c in part.items()} for part in (num, den))
    order = max([*num, *den])
    return (_in_tangent(num, den, 0, order, dt), lag) if order <= MAX_TANGENT else (None, 0)


def _in_tangent(num: dict[int, float], den: dict[int, float], least: int, order: int, dt: float) -> ClosedLoop:
    above, below = (_tangent({at - least: c for at, c in part.items()}, order) for part in (num, den))
    return _on_axis([(0.0, above)] if above.any() else [], [(0.0, below)], 0.0, dt)


def _powers(terms: Iterable[GivenTerm], dt: float) -> dict[int, float]:
    """Coefficient of each power of z; a delay is a negative power."""
    total: dict[int, float] = {}
    for delay, p in terms:
        for i, c in enumerate(p[::-1]):
            at = i - round(delay / dt)
            total[at] = total.get(at, 0.0) + c
    return {at: c for at, c in total.items() if c}


def _tangent(coefficients: dict[int, float], order: int) -> np.ndarray:
    """Σ c_j (1 + v)^j (1 − v)^(order − j) in powers of v: in integers, as each c_j is one times a power of 2.

    Roots within rounding of z = 1 and z = −1 are set exactly there, so an integrator stays an integrator.
    """
    ratios = {j: c.as_integer_ratio() for j, c in coefficients.items()}
    common = max((below for _, below in ratios.values()), default=1)
    total = [0] * (order + 1)
    for j, (above, below) in ratios.items():
        whole = above * (common // below)
        for a in range(j + 1):
            for b in range(order - j + 1):
                total[a + b] += whole * comb(j, a) * comb(order - j, b) * (-1) ** b
    found = np.array([value / common for value in total])
    nought = 4.0 * _EPS * sum(map(abs, coefficients.values()))
    for ends in (found, found[::-1]):
        power = 0
        while power < order and abs(ends[power]) <= nought * comb(order, power):
            ends[power] = 0.0
            power += 1
    return found
