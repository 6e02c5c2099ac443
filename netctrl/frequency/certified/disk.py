"""Disk margin of a scalar loop with delays: 2/‖S − T‖∞, its peak certified."""

from __future__ import annotations

from math import atan, degrees, inf, pi
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from netctrl.errors import InvalidValue
from netctrl.frequency.certified.boundary import closed_loop
from netctrl.frequency.certified.closed_loop import ClosedLoop
from netctrl.frequency.certified.exponential import ExponentialPolynomial, combined, values
from netctrl.frequency.certified.interchange import any_loop
from netctrl.frequency.certified.isolation import zeros

if TYPE_CHECKING:
    import control

    from netctrl.model.loop import DelayLoop
    from netctrl.model.open_loop import OpenLoop
    from netctrl.model.statespace import StateSpace

__all__ = ["LoopDiskMargin", "disk_margin"]

_CLOSE = 1e-6  # relative: how far above the peak found |S − T| surely doesn't go
_MAX = 40


class LoopDiskMargin(msgspec.Struct, frozen=True, kw_only=True):
    """Any factor f = (1 + δ/2)/(1 − δ/2), δ complex and |δ| < alpha, at the loop's input leaves it stable."""

    alpha: float
    """α = 2/‖S − T‖∞ = inf 2 |1 + L|/|1 − L|; 0 for a loop that isn't stable."""
    lowest_gain: float
    """(2 − α)/(2 + α): the gain may fall to this; 0 or less: to nothing."""
    highest_gain: float
    """(2 + α)/(2 − α): it may rise to this; inf: without limit."""
    phase_deg: float
    """2 atan(α/2): so much phase may be lost or won."""
    frequency_rad_s: float
    """Where the loop is nearest to its limit; inf where that is in the limit of high frequency."""


def disk_margin(loop: DelayLoop | OpenLoop | control.lti.LTI | StateSpace, delay: float = 0.0) -> LoopDiskMargin:
    """Disk margin of 1 + L = 0, exact for every delay.

    The peak of |S − T| = |1 − L|/|1 + L| is raised until no frequency is left at which it is greater: the zeros of
    γ² |N + D|² − |D − N|² are isolated as the crossovers of `netctrl.margins` are, not sampled.

    Parameters
    ----------
    loop, delay
        As in `netctrl.margins`.

    Returns
    -------
    LoopDiskMargin
        alpha is too large by at most 1e-6 of itself. It is a lower bound where both numerator and a delayed term of the
        denominator have the highest power (biproper and neutral), and L runs round a circle for ever.

    Raises
    ------
    InvalidValue
        As in `netctrl.margins`; also delays at the highest power in several places (no end to the peaks).

    Examples
    --------
    >>> import control, netctrl
    >>> found = netctrl.disk_margin(control.tf([25], [1, 10, 10, 10]))
    >>> round(found.alpha, 4), round(found.phase_deg, 2)
    (0.4581, 25.8)

    Source: Seiler, Packard, Gahinet, IEEE Control Systems Magazine 40 (2020) 78-95, with skew 0.
    """
    closed = closed_loop(any_loop(loop, delay))
    if closed.unstable_poles() != 0:
        return _of(0.0, float("nan"))
    N, D = closed.N.shifted(closed.delay), closed.D
    P, Q = combined(D, N), combined(D, N.scaled(-1.0))
    PP, QQ = (f.times_conjugate(f).real_part() for f in (P, Q))
    peak, at = _at_the_end(closed, P, Q), inf
    first = max(closed.corner(), 30.0)  # x is scaled: the loop's own frequency is about 1
    grid = np.linspace(0.0, pi, 201) if closed.circle else np.geomspace(1e-4 * first, first, 200)
    for _ in range(_MAX):
        sizes = np.abs(values(Q, grid)) / np.abs(values(P, grid))
        if (best := float(sizes.max())) > peak:
            peak, at = best, float(grid[np.argmax(sizes)])
        above = combined(PP.scaled((peak * (1.0 + _CLOSE)) ** 2), QQ.scaled(-1.0))
        found = zeros(above, 0.0, closed.level_end(above))
        if not found:
            return _of(2.0 / peak, closed.frequency(at))
        ends = np.array([0.0, *(z.at for z in found)])
        grid = np.concatenate([0.5 * (ends[1:] + ends[:-1]), ends[1:] + 0.5 * np.diff(ends)])
    raise InvalidValue("loop", "peaks of |S − T| that don't settle", "a loop further from its stability boundary")


def _at_the_end(closed: ClosedLoop, P: ExponentialPolynomial, Q: ExponentialPolynomial) -> float:
    """|Q/P| in the limit of high frequency, at its largest; on the circle the grid has the end."""
    if closed.circle:
        return 0.0
    if not any(closed.highest(closed.N)):
        return 1.0  # L goes to 0
    (own, late), (other, more) = (closed.highest(f) for f in (P, Q))
    return (abs(other) + more) / (abs(own) - late)


def _of(alpha: float, w: float) -> LoopDiskMargin:
    return LoopDiskMargin(
        alpha=alpha,
        lowest_gain=(2.0 - alpha) / (2.0 + alpha),
        highest_gain=(2.0 + alpha) / (2.0 - alpha) if alpha < 2.0 else inf,
        phase_deg=degrees(2.0 * atan(0.5 * alpha)),
        frequency_rad_s=w,
    )
