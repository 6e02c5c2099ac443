"""The design rule of `margins.gain_band` for arrays of loops of one structure, computed in blocks.

The unwrapped lag φ(w) = m π/2 + Σ atan(T w) − Σ atan(z w) + w τ is followed in closed form. Where the lag
provably meets each level once, which Descartes' rule of signs tells from the polynomial of its slope, the frequency at
a level is one root, found by Halley's iteration in a bracket: its third-order steps need the slope and curvature of
arc tangents alone, and a bracket keeps them from leaving. Where that isn't known, `gain_band` takes the loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.core.errors import InvalidValue
from netctrl.frequency.margins import gain_band
from netctrl.frequency.records import factor
from netctrl.model.loop import DelayLoop

_BLOCK = 8192  # loops at a time: the block's working arrays stay in the cache
_MAX_STEPS = 60
_LAST_STEP = 3e-6  # Halley's error after such a step is of the order of its cube: round-off


class GainBands(NamedTuple):
    """`margins.GainBand` for each loop of an array: gains k that meet the rule are low <= k <= high."""

    low: np.ndarray
    high: np.ndarray
    limit: np.ndarray
    """Gain below which the loop is stable; see `margins.GainBand.limit`."""
    gain_binds: np.ndarray
    """True where the gain margin sets `high`, False where the phase margin does."""


def gain_bands(
    gain: ArrayLike,
    delay: ArrayLike,
    *,
    leads: Sequence[ArrayLike] = (),
    lags: Sequence[ArrayLike] = (),
    integrators: int = 1,
    gain_margin_db: float = 6.0,
    phase_margin_deg: tuple[float, float] = (30.0, 60.0),
) -> GainBands:
    """`margins.gain_band` for arrays of loops of one structure.

    Parameters
    ----------
    gain, delay : array_like
        As in `DelayLoop`; all arguments broadcast.
    leads, lags : sequence of array_like
        Time constants [s], each an array. At most one integrator, and no more leads than integrators.

    Returns
    -------
    GainBands
        Arrays of the broadcast shape.

    Notes
    -----
    Where the lag provably meets each level once, its three crossings (180° and the two phase margins) are found by
    Halley's iteration inside a bracket, a block of loops at a time. The rest go through `margins.gain_band` one by one.
    """
    if not 0.0 < phase_margin_deg[0] < phase_margin_deg[1] < 180.0 - 90.0 * integrators:
        takes = f"0 < least < most < {180 - 90 * integrators}, from which the lag starts"
        raise InvalidValue("phase_margin_deg", phase_margin_deg, takes)
    arrays = _checked(gain, delay, leads, lags, integrators)
    out = GainBands(*(np.empty(arrays.shape[1:]) for _ in range(3)), np.empty(arrays.shape[1:], dtype=bool))
    flat = GainBands(*(a.reshape(-1) for a in out))
    least, most = (math.radians(x) for x in phase_margin_deg)
    for part, k, tau, zs, Ts in _blocks(arrays, len(leads)):
        at_180, at_least, at_most = (
            _gain_at_lag(level, k, tau, zs, Ts, integrators) for level in (math.pi, math.pi - least, math.pi - most)
        )
        by_gain = at_180 / factor(gain_margin_db)
        flat.low[part], flat.high[part], flat.limit[part] = at_most, np.minimum(at_least, by_gain), at_180
        flat.gain_binds[part] = by_gain < at_least
        for i in np.flatnonzero(~_crosses_once(tau, zs, Ts)):
            band = gain_band(_one(i, k, tau, zs, Ts, integrators), gain_margin_db, phase_margin_deg)
            at = part.start + i
            flat.low[at], flat.high[at], flat.limit[at] = band.low, band.high, band.limit
            flat.gain_binds[at] = band.binding == "gain margin"
    return out


def _checked(gain, delay, leads, lags, integrators: int) -> np.ndarray:
    """gain, delay, leads and lags stacked, each broadcast to one shape."""
    if len(leads) > integrators or integrators not in (0, 1):
        raise InvalidValue("leads", len(leads), "no more leads than integrators, and at most one integrator")
    if not lags:
        raise InvalidValue("lags", lags, "at least one lag")
    arrays = np.array(np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (gain, delay, *leads, *lags))))
    if not (np.isfinite(arrays).all() and (arrays > 0.0).all()):
        wrong = "an entry that is not finite or not above 0"
        raise InvalidValue("gain, delay, leads, lags", wrong, "finite positive entries")
    return arrays


def _blocks(arrays: np.ndarray, n_leads: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray, list, list]]:
    flat = arrays.reshape(len(arrays), -1)
    for start in range(0, flat.shape[1], _BLOCK):
        part = slice(start, start + _BLOCK)
        k, tau, *corners = (a[part] for a in flat)
        yield part, k, tau, corners[:n_leads], corners[n_leads:]


def _one(i: int, k, tau, zs, Ts, integrators: int) -> DelayLoop:
    return DelayLoop(
        gain=float(k[i]),
        delay=float(tau[i]),
        integrators=integrators,
        leads=tuple(float(z[i]) for z in zs),
        lags=tuple(float(T[i]) for T in Ts),
    )


def _crosses_once(delay: np.ndarray, leads: list[np.ndarray], lags: list[np.ndarray]) -> np.ndarray:
    """Whether the lag rises, or falls and then rises, so that it meets each level above its start once.

    The slope's numerator is a polynomial in w² whose last coefficient is positive; with at most one change of sign
    among its coefficients it has at most one positive root (Descartes). False means unknown.
    """
    rises = sum(leads, np.zeros_like(delay)) <= delay
    if rises.all():
        return rises
    terms = [(T, T) for T in lags] + [(z, -z) for z in leads]
    numerator = np.array(_times_corners([delay], [t for t, _ in terms]))
    for i, (_, residue) in enumerate(terms):
        others = [t for j, (t, _) in enumerate(terms) if j != i]
        numerator[:-1] += np.array(_times_corners([residue], others))
    negative = numerator < 0.0
    return rises | ~(negative[1:] & ~negative[:-1]).any(axis=0)


def _times_corners(polynomial: list, corners: list) -> list:
    """The polynomial in x times Π(1 + t² x), low power first."""
    for t in corners:
        shifted = [np.zeros_like(t), *polynomial]
        polynomial = [low + t * t * high for low, high in zip([*polynomial, 0.0], shifted, strict=True)]
    return polynomial


def _gain_at_lag(level: float, gain, delay, leads, lags, integrators: int) -> np.ndarray:
    """1/|L| where the lag reaches `level`."""
    w = _lag_crossing(level - integrators * 0.5 * math.pi, delay, leads, lags)
    inverse_square = np.ones_like(w)
    for T in lags:
        inverse_square *= 1.0 + np.square(T * w)
    for z in leads:
        inverse_square /= 1.0 + np.square(z * w)
    return np.sqrt(inverse_square) * w**integrators / gain


def _lag_crossing(level: float, delay, leads, lags) -> np.ndarray:
    """w with Σ atan(T w) − Σ atan(z w) + w·delay = level, where the left side starts at 0 and meets the level once."""
    lo = np.zeros_like(delay)
    hi = (level + 0.5 * math.pi * len(leads)) / delay  # atan(T w) >= 0 and atan(z w) <= pi/2
    # Guess: the slowest lag alone would reach the level at tan(level)/T, all the rest at level/(their slope).
    slowest = np.maximum.reduce(lags)
    rest = delay + sum(lags) - slowest - 0.9 * sum(leads, np.zeros_like(delay))
    w = level / (slowest * (level / math.tan(min(level, 1.4))) + np.maximum(rest, 0.1 * delay))
    w = np.minimum(w, hi)
    for _ in range(_MAX_STEPS):
        f = w * delay - level
        slope = delay.copy()
        curvature = np.zeros_like(w)
        for corner, sign in [(T, 1.0) for T in lags] + [(z, -1.0) for z in leads]:
            x = corner * w
            f += sign * np.arctan(x)
            d = sign * corner / (1.0 + x * x)
            slope += d
            curvature -= 2.0 * sign * x * d * d  # (sign)² = 1, so d·d needs the sign once
        below = f < 0.0
        lo, hi = np.where(below, w, lo), np.where(below, hi, w)
        new = w - f / (slope - 0.5 * f * curvature / slope)
        new = np.where((new >= lo) & (new <= hi), new, 0.5 * (lo + hi))
        settled = np.all(np.abs(new - w) <= _LAST_STEP * new)
        w = new
        if settled:
            break
    return w
