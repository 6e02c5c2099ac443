"""Test signals that show a plant's dynamics: rates between two limits, with a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_number, checked_whole

__all__ = ["gbn", "multisine"]

_MAX_SAMPLES = 10**8
_TRIES = 20


def gbn(samples: int, limits: Any, random: np.random.Generator, *, hold: float = 10.0, min_hold: int = 1) -> np.ndarray:
    """Generalised binary noise: rates that jump between their limits at random, shape (samples, m) [as `limits`].

    After `min_hold` samples at a level each further one jumps with the probability that makes the mean stay `hold`
    samples. Its power is below the frequency 1 / (2 hold) of a sample, and reaches to all: an excitation of any order.

    Parameters
    ----------
    samples : int
    limits : array_like, shape (2,) or (m, 2)
        Least and greatest rate of each of m inputs, as in [0, 95e6] bit/s.
    random : numpy.random.Generator
    hold : float
        Mean stay at a level [samples]: about a third of the plant's settling time.
    min_hold : int
        Least stay [samples].

    Source: Tulleken 1990.
    """
    T, low, high = _checked(samples, limits, random)
    least = checked_whole("min_hold", min_hold, "a number of samples from 1 on", at_least=1)
    mean = checked_number("hold", hold, f"a number of samples of at least min_hold, {least}", at_least=least)
    m = len(low)
    levels = np.empty((T, m))
    for j in range(m):
        stays = least - 1 + random.geometric(1.0 / (mean - least + 1.0), size=T // least + 1)
        jumps = np.cumsum(stays)
        switched = np.searchsorted(jumps, np.arange(T), side="right") + random.integers(2)
        levels[:, j] = np.where(switched % 2, high[j], low[j])
    return levels


def multisine(
    samples: int, limits: Any, random: np.random.Generator, *, band: float = 0.5, tries: int = _TRIES
) -> np.ndarray:
    """Sum of sines of one period `samples` between the limits, shape (samples, m) [as `limits`].

    Input j of m has the harmonics j + 1, j + 1 + m, ... up to `band` of the Nyquist frequency, all of one amplitude, so
    that inputs are orthogonal; phases are random, those kept that leave the greatest power between the limits. Repeat
    the period and average, or take the whole: the order of excitation is twice the number of harmonics.

    Parameters
    ----------
    samples : int
        At least 4 m.
    limits : array_like, shape (2,) or (m, 2)
        Least and greatest rate of each of m inputs, as in [0, 95e6] bit/s.
    random : numpy.random.Generator
    band : float
        Share of the Nyquist frequency, above 0, at most 1.
    tries : int
        Draws of the phases.

    Source: Pintelon and Schoukens 2012, section 5.2.
    """
    T, low, high = _checked(samples, limits, random)
    share = checked_number("band", band, "a share of the Nyquist frequency above 0, at most 1", above=0.0, at_most=1.0)
    times = checked_whole("tries", tries, "a number of draws from 1 to 10000", at_least=1, at_most=10_000)
    m = len(low)
    last = int(share * ((T - 1) // 2))
    if last < m:
        takes = f"enough samples for a harmonic of each of {m} inputs: a longer signal or a wider band"
        raise InvalidValue("samples", samples, takes)
    rates = np.empty((T, m))
    for j in range(m):
        harmonics = np.arange(j + 1, last + 1, m)
        shapes = (_unit(T, harmonics, random) for _ in range(times))
        rates[:, j] = low[j] + (high[j] - low[j]) * max(shapes, key=np.var)
    return rates


def _unit(T: int, harmonics: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One draw, from 0 to 1."""
    spectrum = np.zeros(T // 2 + 1, dtype=complex)
    spectrum[harmonics] = np.exp(2j * np.pi * random.random(len(harmonics)))
    signal = np.fft.irfft(spectrum, T)
    return (signal - signal.min()) / np.ptp(signal)


def _checked(samples: object, limits: Any, random: object) -> tuple[int, np.ndarray, np.ndarray]:
    if not isinstance(random, np.random.Generator):
        raise InvalidValue("random", random, "a numpy.random.Generator, as numpy.random.default_rng(1) is")
    T = checked_whole("samples", samples, "a number of samples from 4 to 1e8", at_least=4, at_most=_MAX_SAMPLES)
    takes = "least and greatest of each input, the first below the second, as in [0, 95e6]"
    try:
        found = np.array(limits, dtype=float, ndmin=2)
    except (OverflowError, TypeError, ValueError):
        raise InvalidValue("limits", limits, takes) from None
    if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all() or (found[:, 0] >= found[:, 1]).any():
        raise InvalidValue("limits", limits, takes)
    return T, found[:, 0], found[:, 1]
