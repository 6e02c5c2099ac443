"""Mean window of many Cubic flows whose packets are marked by chance, and its linear response (RFC 9438).

After a cut from the window W, a flow's window is

    w(s) = max(C (s − K)³ + M, beta W + (a/R) s),   K = ((M − beta W)/C)^(1/3),   a = 3 (1 − beta)/(1 + beta),

with s the time since the cut, M = W, or W (1 + beta)/2 where W is below the M before (fast convergence), C = .4 and
beta = .7. The window of a regular sequence of cuts rests at its plateau, where it doesn't respond to anything. Marks
that come by chance do not wait for the plateau: a flow is cut with the intensity p w/R, and the distribution of (W, s)
over many flows, a Markov renewal process, has a mean window and a linear response to changes of p and of R.

Scaling leaves one parameter, eta = a √(p/(C R³)): far below .6 flows follow the cubic curve, far above it the
Reno-friendly line. With z = s/(rate of cuts) = s R/(p w),

    w = p^(−1/2) Phi(eta),   Q = Σ_j residue_j(y)/(z + pole_j),   V = Q (share(y) − e^(−sR)),
    y = 1/(1 + (eta/.6)^2.5),

Phi ≈ 1.274 for a large eta, and w ≈ 1.504 C^(1/4) (R/p)^(3/4) for a small one, where the deterministic sawtooth has
1.325 (RFC 9438, eq. 5, in real numbers). Q falls from −d ln w/d ln p at z = 0, 1/2 to 3/4, to (1 − beta) E[w²]/E[w]²/z.
The functions below approximate a numerical solution of the renewal equations: Phi within .2 %, Q within 1 % for eta
below .25 or above 2 and within 3 % between; share(y) is exact at z = 0 only. Left out: that marks count at most once a
round trip, and the round trip from the mark to the cut in Q; at the same window they make Q smaller by some p w, the
number of cuts in a round trip, and by twice that near z = 2i.

Source: derived in the documentation, "Certificates of queues"; solved and simulated again by the tests.
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval

from netctrl.plants.queues.mean_value import through

_GRID = np.linspace(0.0, 1.0, 257)


class _Curve(NamedTuple):
    """Polynomial of y in [0, 1], with bounds of its slope."""

    rows: tuple[np.ndarray, np.ndarray]
    """Coefficients of the polynomial and of its slope, by powers of y."""
    bend: float
    """Bound of the slope's slope."""

    @classmethod
    def of(cls, coefficients: list[float]) -> _Curve:
        rows = [np.array(coefficients)]
        while len(rows[-1]) > 1:
            rows.append(polyder(rows[-1]))
        bound, half_step = 0.0, 0.5 * float(_GRID[1])
        for row in rows[:1:-1]:  # between the points of a grid by the bound of the next slope
            bound = float(np.abs(polyval(_GRID, row)).max()) + half_step * bound
        return cls((rows[0], rows[1]), bound)

    def value(self, y: Any) -> Any:
        return polyval(y, self.rows[0])

    def rise(self, y: Any) -> Any:
        return polyval(y, self.rows[1])

    def slope(self, low: Any, high: Any) -> Any:
        return np.abs(self.rise(0.5 * (low + high))) + 0.5 * (high - low) * self.bend


_POLE = 0.697
_PAIRS = ((1.004, 1.781), (4.672, 0.383), (2.449, 1.179), (3.132, 0.672))
"""(w, q) of the denominators z² + q w z + w²."""
_RESIDUES = tuple(
    _Curve.of(row)
    for row in [  # of _POLE; then for each pair of w² and of z
        [0.3326, 2.7386, -25.2889, 79.1313, -125.0692, 95.918, -28.1777],
        [0.0216, -3.0805, 28.0469, -72.903, 100.4366, -69.4359, 18.4806],
        [-0.0067, -1.4175, 5.0647, 8.6956, -35.2938, 37.8197, -13.8973],
        [0.0002, -0.0223, 0.1845, -0.3014, -0.2731, 0.8535, -0.4421],
        [-0.0002, 0.0742, -1.9376, 10.8725, -23.3981, 21.7309, -7.3348],
        [0.001, -0.6597, 10.7637, -53.9188, 105.8332, -91.9092, 29.6206],
        [0.0028, -1.7727, 28.5935, -116.5183, 199.3765, -156.8032, 46.8787],
        [-0.0003, 0.1627, -3.7549, 19.0267, -37.0151, 31.5906, -9.9609],
        [-0.0021, 0.3629, -6.3455, 18.4124, -17.222, 2.8663, 1.9967],
    ]
)
_SHARE = _Curve.of([1.0022, -1.8609, 5.0613, -22.7984, 44.666, -38.1285, 12.0583])
_MIDDLE, _SLOPE = log(0.6), 2.5
_FRIENDLY, _KNEE = log(1.273795), log(0.7381894)
"""ln Phi for a large eta; ln eta at which both limits of Phi meet."""
_BEND = _Curve.of([0.0, 0.0635, -0.6862, 1.8209, -2.3795, 1.674, -0.4927])
"""Of ln Phi."""
EXPONENTS = (0.49, 0.76)
"""Bounds of −∂ ln w/∂ ln p."""
EXPONENT_SLOPE = 0.22
"""Bound of its slope by ln eta."""
TRIP_EXPONENTS = (0.22, 1.03)
"""Bounds of 1 − ∂ ln w/∂ ln R."""
STEEPEST = 0.53
"""Bound of |z Q| on the imaginary axis."""


class CubicMode(NamedTuple):
    """What Cubic's response depends on: numbers, arrays (..., 1) or functions over cells."""

    losses: Any
    """Cuts of a flow in a round trip, p w."""
    residues: list | tuple
    share: Any
    """V's part that comes without delay, over Q."""


def cubic_window(ln_p: Any, ln_trip: Any, curve: float, increase: float) -> Any:
    """ln w [packet].

    Parameters
    ----------
    ln_p, ln_trip : float, ndarray or MeanValue
        ln p and ln R.
    curve, increase : float
        C [packet/s³] and a [packet per round trip].
    """
    return ln_p * -0.5 + through(_ln_eta(ln_p, ln_trip, curve, increase), _ln_phi, _ln_phi_slope)


def cubic_share(ln_p: Any, ln_trip: Any, curve: float, increase: float) -> Any:
    """y, from 0 where flows follow the Reno-friendly line to 1 where they follow the cubic curve; arguments as of
    `cubic_window`."""
    return _on_curve(_ln_eta(ln_p, ln_trip, curve, increase))


def cubic_exponent(ln_p: Any, ln_trip: Any, curve: float, increase: float) -> Any:
    """−∂ ln w/∂ ln p; ∂ ln w/∂ ln R is three times of it less 3/2. Arguments as of `cubic_window`, no MeanValue."""
    ln_eta = _ln_eta(ln_p, ln_trip, curve, increase)
    y = _on_curve(ln_eta)
    # d ln Phi/d ln eta, 0 to −1/2
    rise = -0.25 * (1.0 + np.tanh(1.5 * (_KNEE - ln_eta))) - _SLOPE * y * (1.0 - y) * _BEND.rise(y)
    return 0.5 - 0.5 * rise


def cubic_least_exponent(ln_p: Any, ln_trip: Any, curve: float, increase: float, width: Any) -> Any:
    """Bound of `cubic_exponent` from below where ln eta = ln p/2 − 3 ln R/2 + (constant) moves by at most a width."""
    high = _ln_eta(ln_p, ln_trip, curve, increase) + width
    low = high - 2.0 * width
    bent = _BEND.slope(_on_curve(high), _on_curve(low)) * _on_curve_slope(low, high)
    return np.maximum(0.5 + 0.125 * (1.0 + np.tanh(1.5 * (_KNEE - high))) - 0.5 * bent, EXPONENTS[0])


def cubic_mode(ln_p: Any, ln_trip: Any, curve: float, increase: float) -> CubicMode:
    """What the response depends on; arguments as of `cubic_window`."""
    ln_eta = _ln_eta(ln_p, ln_trip, curve, increase)
    y = through(ln_eta, _on_curve, _on_curve_slope)
    ln_losses = ln_p * 0.5 + through(ln_eta, _ln_phi, _ln_phi_slope)
    return CubicMode(
        through(ln_losses, np.exp, lambda low, high: np.exp(high)),
        [through(y, each.value, each.slope) for each in _RESIDUES],
        through(y, _SHARE.value, _SHARE.slope),
    )


def cubic_response(sigma: Any, echo: Any, mode: CubicMode) -> tuple[Any, Any]:
    """Q and V at sigma = s R and e^(−s R)."""
    z, residues = sigma / mode.losses, mode.residues
    Q = residues[0] / (z + _POLE)
    for i in range(len(_PAIRS)):  # as Numba reads it
        (w, q), still, moving = _PAIRS[i], residues[2 * i + 1], residues[2 * i + 2]
        Q = Q + (still * (w * w) + moving * z) / ((z + q * w) * z + w * w)
    return Q, Q * (mode.share - echo)


def cubic_leading(mode: CubicMode) -> tuple[Any, Any]:
    """Q's factors of 1/sigma and of 1/sigma² at high frequencies."""
    first, *others = mode.residues
    leading, second = first, first * -_POLE
    for (w, q), still, moving in zip(_PAIRS, others[::2], others[1::2], strict=True):
        leading = leading + moving
        second = second + (still * (w * w) - moving * (q * w))
    return leading * mode.losses, second * mode.losses * mode.losses


def _ln_eta(ln_p: Any, ln_trip: Any, curve: float, increase: float) -> Any:
    return ln_p * 0.5 + ln_trip * -1.5 + (log(increase) - 0.5 * log(curve))


def _on_curve(ln_eta: Any) -> Any:
    """y; 1 where all flows follow the cubic curve."""
    return 0.5 - 0.5 * np.tanh(0.5 * _SLOPE * (ln_eta - _MIDDLE))


def _on_curve_slope(low: Any, high: Any) -> Any:
    steepest = _on_curve(np.minimum(np.maximum(low, _MIDDLE), high))
    return _SLOPE * steepest * (1.0 - steepest)


def _ln_phi(ln_eta: Any) -> Any:
    return _FRIENDLY + np.logaddexp(0.0, 3.0 * (_KNEE - ln_eta)) / 6.0 + _BEND.value(_on_curve(ln_eta))


def _ln_phi_slope(low: Any, high: Any) -> Any:
    bent = _BEND.slope(_on_curve(high), _on_curve(low)) * _on_curve_slope(low, high)
    return 0.25 * (1.0 + np.tanh(1.5 * (_KNEE - low))) + bent
