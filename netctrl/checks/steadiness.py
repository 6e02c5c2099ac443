"""Whether a noisy queue rests or oscillates, from the envelope of its delay around the predicted frequency.

Marks come by chance, so that a stable loop swings, too, the more the nearer it is to its limit: the size of a swing
decides nothing. Its envelope does. With the amplitude A of the delay in a band around the frequency at which the loop
leaves stability, and near that limit (the normal form of a Hopf bifurcation driven by noise, averaged over a turn),

    A' = nu A − kappa A³ + D/(2 A) + noise,   density of A ∝ A exp((nu A² − kappa A⁴/2)/D),

so that u = A² has the density ∝ exp((nu u − kappa u²/2)/D) on u > 0. The ratio rho = E[u²]/E[u]² is

- 2 where the loop is well damped, nu << 0: the amplitude of Gaussian noise in a band;
- pi/2 at the limit, nu = 0, where u is a half-normal variable: E[u²]/E[u]² = 1/(2/pi);
- 1 for a limit cycle, nu >> 0, whose amplitude stays.

rho falls monotonically with nu, so rho < pi/2 says that the loop is above its limit, whatever the strength of noise.
Source of the averaged equation: Noiray and Schuermans, "Deterministic quantities characterizing noise driven Hopf
bifurcations in gas turbine combustors", International Journal of Non-Linear Mechanics 50, 2013.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np

AT_LIMIT = pi / 2.0
"""E[A⁴]/E[A²]² at the limit of stability."""
_SOUGHT = (0.4, 2.0)
"""Range of the spectrum's peak over the predicted frequency."""
_BAND = (0.5, 1.5)
"""Band around that peak, over its frequency."""
_MARGIN = 3.0
"""Periods that are left out at both ends, where the filter rings."""
_LEAST = 12.0
"""Periods that a series has to have beyond these."""


class Envelope(NamedTuple):
    """Amplitude of a series in a band."""

    ratio: float
    """E[A⁴]/E[A²]²: 2 of noise in a band, 1 of a steady oscillation."""
    period_s: float
    """Of the spectrum's peak [s]."""
    amplitude: float
    """√(E[A²]), in the series' unit."""


def envelope(series: np.ndarray, interval_s: float, period_s: float) -> Envelope | None:
    """Amplitude of a series in a band around the greatest peak near a predicted period.

    Parameters
    ----------
    series : ndarray, shape (n,)
    interval_s : float
        Between two samples [s].
    period_s : float
        Predicted [s].

    Returns
    -------
    Envelope or None
        None where the series has fewer than 18 periods.

    Examples
    --------
    >>> import numpy as np
    >>> found = envelope(np.sin(2.0 * np.pi * 0.01 * np.arange(5000)), 0.01, 1.1)
    >>> round(found.ratio, 2), round(found.period_s, 2), round(found.amplitude, 2)
    (1.0, 1.0, 1.0)
    """
    n = len(series)
    if n * interval_s < (2.0 * _MARGIN + _LEAST) * period_s:
        return None
    moved = series - series.mean()
    frequency = np.fft.rfftfreq(n, interval_s)
    power = np.abs(np.fft.rfft(moved * np.hanning(n))) ** 2
    width = max(int(0.1 / period_s / frequency[1]), 1)  # a tenth of the frequency
    smooth = np.convolve(power, np.ones(width) / width, mode="same")
    near = (frequency >= _SOUGHT[0] / period_s) & (frequency <= _SOUGHT[1] / period_s)
    peak = float(frequency[near][np.argmax(smooth[near])])
    transform = np.fft.rfft(moved)
    kept = np.where((frequency >= _BAND[0] * peak) & (frequency <= _BAND[1] * peak), 2.0 * transform, 0.0)
    analytic = np.fft.ifft(np.concatenate([kept, np.zeros(n - len(kept))]))
    left_out = int(_MARGIN / peak / interval_s)
    squared = np.abs(analytic[left_out : n - left_out]) ** 2
    mean = float(squared.mean())
    if mean == 0.0:
        return Envelope(2.0, 1.0 / peak, 0.0)
    return Envelope(float((squared**2).mean()) / mean**2, 1.0 / peak, mean**0.5)
