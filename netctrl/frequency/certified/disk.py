"""Disk margin of a scalar loop with delays: 2/‖S − T‖∞, its peak certified."""

from __future__ import annotations

from math import atan, degrees, inf, pi
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.frequency.certified.closed_loop import ClosedLoop
from netctrl.frequency.certified.exponential import ExponentialPolynomial, combined, values
from netctrl.frequency.certified.interchange import any_loop, checked_delay, closed_loop
from netctrl.frequency.certified.isolation import zeros

if TYPE_CHECKING:
    from netctrl.frequency.certified.interchange import ControlSystem
    from netctrl.model.loop import DelayLoop
    from netctrl.model.open_loop import OpenLoop
    from netctrl.model.statespace import StateSpace

_CLOSE = 1e-6  # relative: |S − T| is certainly below the peak found times 1 + this
_MAX = 40


class LoopDiskMargin(msgspec.Struct, frozen=True, kw_only=True):
    """Disk margin of a loop: how far gain and phase may change together.

    Any factor f = (1 + δ/2)/(1 − δ/2) with δ complex and |δ| < alpha, at the loop's input, leaves the loop stable.
    """

    alpha: float
    """α = 2/‖S − T‖∞ = inf 2 |1 + L|/|1 − L|; 0 for a loop that isn't stable."""
    lowest_gain: float
    """(2 − α)/(2 + α): factor to which the gain may fall; 0 or less: it may vanish."""
    highest_gain: float
    """(2 + α)/(2 − α): factor to which the gain may rise; inf: without limit."""
    phase_deg: float
    """2 atan(α/2): phase that may be lost or gained [degree]."""
    frequency_rad_s: float
    """Frequency at which the loop is nearest to its limit [rad/s]; inf where that is the limit of high frequency."""


def disk_margin(loop: DelayLoop | OpenLoop | ControlSystem | StateSpace, delay_s: float = 0.0) -> LoopDiskMargin:
    """Disk margin of a feedback loop, exact for every delay.

        alpha = 2/‖S − T‖∞ = inf 2 |1 + L|/|1 − L|

    The estimate of the peak of |S − T| = |1 − L|/|1 + L| is raised until no frequency exceeds it: the zeros of
    γ² |N + D|² − |D − N|² are isolated like the crossovers of `netctrl.margins`, not sampled.

    Parameters
    ----------
    loop : DelayLoop, OpenLoop, python-control TransferFunction or StateSpace, netctrl StateSpace
        As in `netctrl.margins`.
    delay_s : float
        Delay [s] at the loop's output, on top of its own; in discrete time a whole number of samples.

    Returns
    -------
    LoopDiskMargin
        The relative error of alpha is at most 1e-6, upwards. alpha is a lower bound where both the numerator and a
        delayed term of the denominator have the highest power (biproper and neutral): there L circles without end.

    Raises
    ------
    InvalidValue
        As in `netctrl.margins`; also several delayed terms of the highest power, which give infinitely many peaks.

    Examples
    --------
    >>> import control, netctrl
    >>> found = netctrl.disk_margin(control.tf([25], [1, 10, 10, 10]))
    >>> round(found.alpha, 4), round(found.phase_deg, 2)
    (0.4581, 25.8)

    References
    ----------
    Seiler, Packard, Gahinet, IEEE Control Systems Magazine 40 (2020) 78-95, with skew 0.
    """
    closed = closed_loop(any_loop(loop, checked_delay(delay_s)))
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
    raise InvalidValue("loop", "peaks of |S − T| that don't converge", "a loop further from its stability boundary")


def _at_the_end(closed: ClosedLoop, P: ExponentialPolynomial, Q: ExponentialPolynomial) -> float:
    """Largest |Q/P| in the limit of high frequency; on the circle the grid contains the end."""
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
