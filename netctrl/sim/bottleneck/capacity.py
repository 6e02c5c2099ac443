"""Capacities that change, as `simulate_bottleneck` takes them: functions from times [s] to rates [bit/s]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.errors import checked_number

__all__ = ["capacity_step", "square_wave"]

_RATE = "a rate above 0 in bit/s"


def square_wave(first: float, second: float, period_s: float, *, start_s: float = 0.0) -> Callable:
    """`first` for half a period, then `second` for the other, and so on; `first` until `start_s` too.

    Parameters
    ----------
    first, second : float
        [bit/s]
    period_s, start_s : float
        [s]

    Returns
    -------
    callable
        From times (T,) [s] to capacities (T,) [bit/s].

    Raises
    ------
    InvalidValue
        A rate or the period that isn't above 0, a start below 0.
    """
    rates = checked_number("first", first, _RATE, above=0.0), checked_number("second", second, _RATE, above=0.0)
    period = checked_number("period_s", period_s, "a time above 0, in seconds", above=0.0)
    start = checked_number("start_s", start_s, "a time of at least 0, in seconds", at_least=0.0)

    def capacity(times: np.ndarray) -> np.ndarray:
        place = np.mod(np.asarray(times, dtype=float) - start, period)
        return np.where((times >= start) & (place >= 0.5 * period), rates[1], rates[0])

    return capacity


def capacity_step(before: float, after: float, at_s: float) -> Callable:
    """`before` until `at_s`, `after` from then on [bit/s, s].

    Raises
    ------
    InvalidValue
        A rate that isn't above 0, a time that isn't a number.
    """
    rates = checked_number("before", before, _RATE, above=0.0), checked_number("after", after, _RATE, above=0.0)
    at = checked_number("at_s", at_s, "a time in seconds")
    return lambda times: np.where(np.asarray(times) < at, *rates)
