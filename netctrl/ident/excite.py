"""Test signals that excite a plant's dynamics, between two limits and from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number, checked_whole

_MAX_SAMPLES = 10**8
_TRIES = 20


def gbn(samples: int, limits: Any, random: np.random.Generator, *, hold: float = 10.0, min_hold: int = 1) -> np.ndarray:
    """Generalised binary noise: input signals that jump between two levels at random, to excite a system.

    After `min_hold` samples at a level, each further sample jumps with the probability that makes the mean time between
    jumps `hold` samples. Most of its power is below the frequency 1/(2 hold) per sample, and some at every frequency:
    it excites any order.

    Parameters
    ----------
    samples : int
        T, length of the signal.
    limits : array_like, shape (2,) or (m, 2)
        Lower and upper level of each of m inputs, such as [0, 95e6] bit/s.
    random : numpy.random.Generator
        Source of the random numbers.
    hold : float
        Mean time at a level [samples]: about a third of the plant's settling time.
    min_hold : int
        Shortest time at a level [samples].

    Returns
    -------
    ndarray, shape (T, m)
        In the unit of `limits`.

    Raises
    ------
    InvalidValue
        An argument outside these bounds, or a `random` that isn't a Generator.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> rates = netctrl.gbn(200, (20e6, 80e6), np.random.default_rng(1))
    >>> rates.shape, sorted(set(rates[:, 0].tolist()))
    ((200, 1), [20000000.0, 80000000.0])

    References
    ----------
    Tulleken, Automatica 26 (1990) 37-49.
    """
    T, low, high = _checked(samples, limits, random)
    least = checked_whole("min_hold", min_hold, "a number of samples of at least 1", at_least=1)
    mean = checked_number("hold", hold, f"a number of samples of at least min_hold, {least}", at_least=least)
    m = len(low)
    levels = np.empty((T, m))
    for j in range(m):
        stays = least - 1 + random.geometric(1.0 / (mean - least + 1.0), size=T // least + 1)
        jumps = np.cumsum(stays)
        switched = np.searchsorted(jumps, np.arange(T), side="right") + random.integers(2)
        levels[:, j] = np.where(switched % 2, high[j], low[j])
    return levels


def random_levels(samples: int, limits: Any, random: np.random.Generator, *, hold: float = 3.0) -> np.ndarray:
    """Random levels between two limits, each held for a random time, to show the curve of a plant.

    All levels are equally likely. Times at a level are geometric: equal ones would leave frequencies without power, at
    which a model may then have any pole.

    Parameters
    ----------
    samples : int
        T, length of the signal: some 600 for a curve with one or two bends.
    limits : array_like, shape (2,) or (m, 2)
        Lowest and highest value of each of m inputs, such as [0, 95e6] bit/s.
    random : numpy.random.Generator
        Source of the random numbers.
    hold : float
        Mean time at a level [samples]: about the plant's settling time.

    Returns
    -------
    ndarray, shape (T, m)
        In the unit of `limits`.

    Raises
    ------
    InvalidValue
        An argument outside these bounds, or a `random` that isn't a Generator.

    Examples
    --------
    >>> import numpy as np
    >>> from netctrl.ident.excite import random_levels
    >>> rates = random_levels(600, (10e6, 90e6), np.random.default_rng(1))
    >>> rates.shape, len(set(rates[:, 0].tolist())) > 150
    ((600, 1), True)
    """
    T, low, high = _checked(samples, limits, random)
    mean = checked_number("hold", hold, "a number of samples of at least 1", at_least=1.0)
    levels = np.empty((T, len(low)))
    for j in range(len(low)):
        times = random.geometric(1.0 / mean, size=T)
        levels[:, j] = np.repeat(random.uniform(low[j], high[j], T), times)[:T]
    return levels


def multisine(
    samples: int, limits: Any, random: np.random.Generator, *, band: float = 0.5, tries: int = _TRIES
) -> np.ndarray:
    """Multisine: sums of sines with random phases between two limits, to excite a system.

    Input j of m has the harmonics j + 1, j + 1 + m, ... of the period `samples`, up to `band` of the Nyquist frequency,
    all of one amplitude, so the inputs are orthogonal. Among several draws of the phases the one with the largest power
    between the limits is used. The order of excitation is twice the number of harmonics.

    Parameters
    ----------
    samples : int
        T, length of the signal and its period; at least 4 m.
    limits : array_like, shape (2,) or (m, 2)
        Lowest and highest value of each of m inputs, such as [0, 95e6] bit/s.
    random : numpy.random.Generator
        Source of the random numbers.
    band : float
        Highest frequency as a share of the Nyquist frequency, above 0 and at most 1.
    tries : int
        Draws of the phases.

    Returns
    -------
    ndarray, shape (T, m)
        In the unit of `limits`.

    Raises
    ------
    InvalidValue
        An argument outside these bounds, a `random` that isn't a Generator, or too few samples for the inputs.

    Examples
    --------
    >>> import netctrl, numpy as np
    >>> rates = netctrl.multisine(200, [(20e6, 80e6), (0.0, 10e6)], np.random.default_rng(1))
    >>> rates.shape, (rates.max(axis=0) / 1e6).round(3).tolist()
    ((200, 2), [80.0, 10.0])

    References
    ----------
    Pintelon and Schoukens, System Identification: A Frequency Domain Approach, 2nd ed. 2012, section 5.2.
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
    """One draw, scaled from 0 to 1."""
    spectrum = np.zeros(T // 2 + 1, dtype=complex)
    spectrum[harmonics] = np.exp(2j * np.pi * random.random(len(harmonics)))
    signal = np.fft.irfft(spectrum, T)
    return (signal - signal.min()) / np.ptp(signal)


def _checked(samples: object, limits: Any, random: object) -> tuple[int, np.ndarray, np.ndarray]:
    if not isinstance(random, np.random.Generator):
        raise InvalidValue("random", random, "a numpy.random.Generator, as numpy.random.default_rng(1) is")
    T = checked_whole("samples", samples, "a number of samples from 4 to 1e8", at_least=4, at_most=_MAX_SAMPLES)
    takes = "lowest and highest value of each input, the first below the second, as in [0, 95e6]"
    try:
        found = np.array(limits, dtype=float, ndmin=2)
    except (OverflowError, TypeError, ValueError):
        raise InvalidValue("limits", limits, takes) from None
    if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all() or (found[:, 0] >= found[:, 1]).any():
        raise InvalidValue("limits", limits, takes)
    return T, found[:, 0], found[:, 1]
