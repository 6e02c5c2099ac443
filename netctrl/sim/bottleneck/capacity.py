"""Capacities that change, as `simulate_bottleneck` takes them: functions from times [s] to rates [bit/s]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.errors import checked_number

_RATE = "a rate above 0 in bit/s"


def square_wave(first: float, second: float, period_s: float, *, start_s: float = 0.0) -> Callable:
    """A capacity that alternates between two rates.

    c(t) is `first` in the first half of each period and `second` in the other half, and `first` before `start_s`.

    Parameters
    ----------
    first, second : float
        Rates, above 0 [bit/s].
    period_s : float
        Length of a period, above 0 [s].
    start_s : float
        Start of the first period, at least 0 [s].

    Returns
    -------
    callable
        A function of times (T,) [s] that gives capacities (T,) [bit/s], as `simulate_bottleneck` takes it.

    Raises
    ------
    InvalidValue
        A rate or period that is not above 0, or a negative start.

    Examples
    --------
    >>> import netctrl
    >>> capacity = netctrl.square_wave(10e6, 5e6, period_s=2.0)
    >>> [rate / 1e6 for rate in capacity([0.0, 1.0, 2.0, 3.5]).tolist()]
    [10.0, 5.0, 10.0, 5.0]
    """
    rates = checked_number("first", first, _RATE, above=0.0), checked_number("second", second, _RATE, above=0.0)
    period = checked_number("period_s", period_s, "a time above 0, in seconds", above=0.0)
    start = checked_number("start_s", start_s, "a time of at least 0, in seconds", at_least=0.0)

    def capacity(times: np.ndarray) -> np.ndarray:
        times = np.asarray(times, dtype=float)
        place = np.mod(times - start, period)
        return np.where((times >= start) & (place >= 0.5 * period), rates[1], rates[0])

    return capacity


def capacity_step(before: float, after: float, at_s: float) -> Callable:
    """A capacity that changes once.

    c(t) is `before` for t < `at_s` and `after` from then on.

    Parameters
    ----------
    before, after : float
        Rates, above 0 [bit/s].
    at_s : float
        Time of the change [s].

    Returns
    -------
    callable
        A function of times (T,) [s] that gives capacities (T,) [bit/s], as `simulate_bottleneck` takes it.

    Raises
    ------
    InvalidValue
        A rate that is not above 0, or a time that is not a number.

    Examples
    --------
    >>> import netctrl
    >>> capacity = netctrl.capacity_step(10e6, 5e6, at_s=5.0)
    >>> [rate / 1e6 for rate in capacity([0.0, 5.0, 6.0]).tolist()]
    [10.0, 5.0, 5.0]
    """
    rates = checked_number("before", before, _RATE, above=0.0), checked_number("after", after, _RATE, above=0.0)
    at = checked_number("at_s", at_s, "a time in seconds")
    return lambda times: np.where(np.asarray(times) < at, *rates)
