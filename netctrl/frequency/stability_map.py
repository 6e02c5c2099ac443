"""The design rule of `margins.gain_band` over arrays of loops, and maps of it over flows and round-trip time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.errors import InvalidValue
from netctrl.frequency.margins import factor, gain_band
from netctrl.model.display import html_table, plot
from netctrl.model.loop import DelayLoop

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["GainBands", "StabilityMap", "gain_bands"]

_BLOCK = 8192  # loops at a time: the block's working arrays stay in the cache
_MAX_STEPS = 60
_LAST_STEP = 3e-6  # Halley's error after such a step is of the order of its cube: round-off


class GainBands(NamedTuple):
    """`margins.GainBand` for each loop of an array: gains k that meet the rule are low <= k <= high."""

    low: np.ndarray
    high: np.ndarray
    limit: np.ndarray
    """Stable below; see `margins.GainBand.limit`."""
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
    if len(leads) > integrators or integrators not in (0, 1):
        raise InvalidValue("leads", len(leads), "no more leads than integrators, and at most one integrator")
    if not 0.0 < phase_margin_deg[0] < phase_margin_deg[1] < 180.0 - 90.0 * integrators:
        takes = f"0 < least < most < {180 - 90 * integrators}, from which the lag starts"
        raise InvalidValue("phase_margin_deg", phase_margin_deg, takes)
    if not lags:
        raise InvalidValue("lags", lags, "at least one lag")
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (gain, delay, *leads, *lags)))
    if not all(np.all(np.isfinite(a)) and np.all(a > 0.0) for a in arrays):
        raise InvalidValue(
            "gain, delay, leads, lags",
            "an entry that is not finite or not above 0",
            "finite positive entries",
        )
    shape = arrays[0].shape
    flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    out = GainBands(*(np.empty(flat[0].size) for _ in range(3)), np.empty(flat[0].size, dtype=bool))
    least, most = (math.radians(x) for x in phase_margin_deg)
    levels = (math.pi, math.pi - least, math.pi - most)
    for start in range(0, flat[0].size, _BLOCK):
        part = slice(start, start + _BLOCK)
        k, tau, *corners = (a[part] for a in flat)
        zs, Ts = corners[: len(leads)], corners[len(leads) :]
        at_180, at_least, at_most = (_gain_at_lag(level, k, tau, zs, Ts, integrators) for level in levels)
        by_gain = at_180 / factor(gain_margin_db)
        out.low[part] = at_most
        out.high[part] = np.minimum(at_least, by_gain)
        out.limit[part] = at_180
        out.gain_binds[part] = by_gain < at_least
        for i in np.flatnonzero(~_crosses_once(tau, zs, Ts)):
            loop = DelayLoop(
                gain=float(k[i]),
                delay=float(tau[i]),
                integrators=integrators,
                leads=tuple(float(z[i]) for z in zs),
                lags=tuple(float(T[i]) for T in Ts),
            )
            band = gain_band(loop, gain_margin_db, phase_margin_deg)
            out.low[start + i], out.high[start + i], out.limit[start + i] = band.low, band.high, band.limit
            out.gain_binds[start + i] = band.binding == "gain margin"
    return GainBands(*(a.reshape(shape) for a in out))


def _crosses_once(delay: np.ndarray, leads: list[np.ndarray], lags: list[np.ndarray]) -> np.ndarray:
    """True where the lag rises throughout, or falls first and then rises: it meets each level above its start once.

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


@dataclass(frozen=True, slots=True, eq=False)
class StabilityMap:
    """Where one gain is unstable, admissible or slow, over flows and round-trip time.

    Parameters
    ----------
    flows : ndarray, shape (n,)
        N.
    rtt_s : ndarray, shape (m,)
        tau [s].
    bands : GainBands
        Arrays of shape (m, n), in the unit of `gain`.
    gain : float
        k, the gain under test.
    title : str
        What is mapped, for plots.
    """

    flows: np.ndarray
    rtt_s: np.ndarray
    bands: GainBands
    gain: float
    title: str = ""

    @property
    def classes(self) -> np.ndarray:
        """0 unstable, 1 stable with too little margin, 2 admissible, 3 stable and slow; shape (m, n)."""
        k, bands = self.gain, self.bands
        return np.where(k >= bands.limit, 0, np.where(k > bands.high, 1, np.where(k >= bands.low, 2, 3)))

    @property
    def gain_margin_db(self) -> np.ndarray:
        """Gain margin [dB] at each point, shape (m, n)."""
        return 20.0 * np.log10(self.bands.limit / self.gain)

    def to_pandas(self) -> pd.DataFrame:
        """One row a point: flows, rtt_s, low, high, limit, gain_margin_db, class."""
        import pandas as pd

        flows, rtt = np.meshgrid(self.flows, self.rtt_s)
        columns = {
            "flows": flows,
            "rtt_s": rtt,
            "low": self.bands.low,
            "high": self.bands.high,
            "limit": self.bands.limit,
        }
        columns |= {"gain_margin_db": self.gain_margin_db, "class": self.classes}
        return pd.DataFrame({name: np.ravel(values) for name, values in columns.items()})

    def plot(self, **options: Any) -> Figure:
        """The map as a matplotlib Figure (`netctrl.plotting.draw`)."""
        return plot(self, **options)

    def _repr_html_(self) -> str:
        names = ("unstable", "too little margin", "admissible", "slow")
        counts = np.bincount(self.classes.ravel(), minlength=4) / self.classes.size
        rows = [("points", str(self.classes.size)), ("gain", f"{self.gain:.6g}")]
        return html_table(
            f"StabilityMap {self.title}", rows + [(n, f"{c:.1%}") for n, c in zip(names, counts, strict=True)]
        )
