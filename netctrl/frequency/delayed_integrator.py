"""Integrator behind a whole number of samples of delay under proportional feedback: exact stability and margins.

x⁺ = x + v(k − τ), v = −k x, or v = −k x̄ with the predictor x̄ = x + Σ_{i ≤ τ} v(k − i). A queue driven by
senders' windows one round trip away is such a loop.
"""

from __future__ import annotations

from cmath import exp
from math import asin, atan, degrees, floor, pi, sin

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_number, checked_whole

_DENSE = 200  # samples of delay up to which all poles are computed
_MAX_DELAY = 10**6
_GRID = 2000


class IntegratorMargins(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Margins of a loop at the plant's input."""

    spectral_radius: float
    """Spectral radius of the closed loop; below 1 it is stable."""
    gain_margin: float
    """Factor below which the plant's gain may rise, with all else unchanged."""
    disc_alpha: float
    """2/‖S − T‖∞ (`netctrl.frequency.hinf_norm.DiskMargin`); 0 where the loop isn't stable."""
    phase_deg: float
    """2 atan(α/2)"""
    delay_margin: int
    """Samples by which the delay may be longer; with the predictor longer or shorter than the predictor assumes, for
    any delay (by small gain, so the true margin may be larger)."""


def gain_limit(delay: int) -> float:
    """Gain k below which v = −k x is stable: 2 sin(π/(2(2τ + 1))); 2 without delay, π/(2τ) for long delays.

    Source: Levin, May, Theoretical Population Biology 9 (1976) 178-187, eq. (A4): x(n+1) = x(n) − k x(n − τ).
    """
    delay = checked_whole("delay", delay, "a whole number of samples of at least 0")
    return 2.0 * sin(pi / (2.0 * (2 * delay + 1)))


def integrator_margins(gain: float, delay: int, *, predicts: bool) -> IntegratorMargins:
    """Margins of a delayed integrator under proportional feedback.

    Without the predictor the poles are the roots of z^{τ+1} − z^τ + k. With the predictor they are 1 − k, and zeros. If
    the plant's gain is f times the predictor's, they are the roots of z − 1 + k + k (f − 1) z^{−τ}, so any f below 2 is
    stable for every delay if k ≤ 1: |z − 1 + k| is at least k on the unit circle. There S − T = 1 − 2k z^{−τ}/(z − 1 +
    k), of modulus 3 at most: the disk margin is never below 2/3.

    Parameters
    ----------
    gain : float
        k, above 0; at most 1 with the predictor.
    delay : int
        τ [samples].
    predicts : bool
        Whether v uses the predicted x̄.

    Raises
    ------
    InvalidValue
        A gain or a delay out of range.
    """
    tau = checked_whole("delay", delay, "a number of samples from 0 to 1e6", at_most=_MAX_DELAY)
    if not isinstance(predicts, (bool, np.bool_)):
        raise InvalidValue("predicts", predicts, "True or False")
    if predicts:
        k = checked_number("gain", gain, "a number above 0, at most 1", above=0.0, at_most=1.0)
    else:
        k = checked_number("gain", gain, "a number above 0", above=0.0, at_most=1e12)
    radius = abs(1.0 - k) if predicts else _radius(k, tau)
    stable = predicts or k < gain_limit(tau)
    alpha = 2.0 / (_predictor_peak(k, tau) if predicts else _peak(k, tau)) if stable else 0.0
    gain_margin = gain_limit(tau) / k
    if predicts:  # f at which z^τ (z − 1 + k) = −k (f − 1) has its first solution on the circle
        gain_margin = 1.0 + abs(exp(1j * _negative(k, tau)) - 1.0 + k) / k
    return IntegratorMargins(
        spectral_radius=radius,
        gain_margin=gain_margin,
        disc_alpha=alpha,
        phase_deg=degrees(2.0 * atan(0.5 * alpha)),
        delay_margin=_predictor_delay(k) if predicts else _longer(k, tau),
    )


def _radius(k: float, tau: int) -> float:
    """Largest modulus of the roots of z^{τ+1} − z^τ + k."""
    if tau == 0:
        return abs(1.0 - k)
    if tau <= _DENSE:
        return float(np.abs(np.roots([1.0, -1.0, *[0.0] * (tau - 1), k])).max())
    from scipy.special import lambertw

    # z = e^s: e^s − 1 + k e^{−τs}; the rightmost root of its limit s + k e^{−τs} is W₀(−τk)/τ.
    s = complex(lambertw(-k * (tau + 0.5)) / (tau + 0.5))
    for _ in range(60):
        slope = exp(s) - k * tau * exp(-tau * s)
        if abs(slope) < 1e-12:
            break
        s -= (exp(s) - 1.0 + k * exp(-tau * s)) / slope
    return float(np.exp(s.real))


def _peak(k: float, tau: int) -> float:
    """Peak of |S − T|² = (a² + k² + 2ak sin φ)/(a² + k² − 2ak sin φ), a = 2 sin(θ/2), φ = (τ + ½) θ.

    2ak/(a² + k²) rises until a = k and falls after; sin φ rises until φ = π/2, where a > k in a stable loop. So the
    peak lies between these two angles.
    """
    turn = pi / (2 * tau + 1)
    theta = np.linspace(2.0 * asin(min(0.5 * k, 1.0)), turn, _GRID)

    def squared(at: np.ndarray) -> np.ndarray:
        a = 2.0 * np.sin(0.5 * at)
        both = 2.0 * a * k * np.sin((tau + 0.5) * at)
        with np.errstate(divide="ignore"):  # at the limit of stability
            return (a**2 + k**2 + both) / (a**2 + k**2 - both)

    return float(np.sqrt(_highest(squared, theta)))


def _predictor_peak(k: float, tau: int) -> float:
    """Peak of |1 − 2T|, T = k z^{−τ}/(z − 1 + k): |T| falls with θ, so the peak lies before T is first negative."""

    def size(at: np.ndarray) -> np.ndarray:
        z = np.exp(1j * at)
        return np.abs(1.0 - 2.0 * k * z ** (-tau) / (z - 1.0 + k))

    return _highest(size, np.linspace(0.0, _negative(k, tau), _GRID))


def _highest(function, theta: np.ndarray) -> float:
    """Largest value, by successively finer grids around the best point."""
    best = -np.inf
    for _ in range(8):
        values = function(theta)
        top = int(np.argmax(values))
        best = max(best, float(values[top]))
        theta = np.linspace(theta[max(top - 1, 0)], theta[min(top + 1, len(theta) - 1)], 50)
    return best


def _negative(k: float, tau: int) -> float:
    """First θ in (0, π] at which z^τ (z − 1 + k) is negative; its phase rises with θ."""
    low, high = 0.0, pi
    for _ in range(200):
        middle = 0.5 * (low + high)
        phase = float(np.angle(np.exp(1j * middle) - 1.0 + k)) + tau * middle
        low, high = (middle, high) if phase < pi else (low, middle)
    return high


def _predictor_delay(k: float) -> int:
    """Largest δ with 2k |sin(δθ/2)| < |z − 1 + k| at all θ; the sine counts as 1 beyond its first maximum."""
    theta = np.geomspace(1e-4 * k, pi, 20 * _GRID)
    least = np.abs(np.exp(1j * theta) - 1.0 + k)

    def holds(delta: int) -> bool:
        return bool((2.0 * k * np.sin(np.minimum(0.5 * delta * theta, 0.5 * pi)) < least).all())

    low, high = 0, 1
    while holds(high) and high < 64 * _MAX_DELAY:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _longer(k: float, tau: int) -> int:
    """Largest δ with k < 2 sin(π/(2(2(τ + δ) + 1)))."""
    if k >= gain_limit(tau):
        return 0
    longest = floor(0.5 * (pi / (2.0 * asin(min(0.5 * k, 1.0))) - 1.0))
    while longest > tau and gain_limit(longest) <= k:
        longest -= 1
    return longest - tau
