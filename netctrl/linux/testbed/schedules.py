"""Sending times of a source, computed in advance."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_number
from netctrl.units import BITS_PER_BYTE

__all__ = ["constant_times", "poisson_times", "series_times"]

_MAX_PACKETS = 50_000_000
_RATE, _SIZE, _TIME = "a rate above 0 in bit/s", "a size above 0 in bytes", "a time above 0 in seconds"


def constant_times(rate_bit_per_s: float, packet_bytes: float, duration_s: float, *, phase: float = 0.0) -> np.ndarray:
    """Times (n,) of packets at constant intervals, below `duration_s`; the first after a share `phase` of an interval
    [s]."""
    interval = _interval(rate_bit_per_s, packet_bytes, duration_s)
    phase = checked_number("phase", phase, "a share of an interval from 0 to 1", at_least=0.0, at_most=1.0)
    times = (np.arange(int(np.ceil(duration_s / interval))) + phase) * interval
    return times[times < duration_s]


def poisson_times(
    rate_bit_per_s: float, packet_bytes: float, duration_s: float, generator: np.random.Generator
) -> np.ndarray:
    """Times (n,) of a Poisson process with a mean rate, below `duration_s` [s]."""
    interval = _interval(rate_bit_per_s, packet_bytes, duration_s)
    return np.sort(generator.uniform(0.0, duration_s, generator.poisson(duration_s / interval)))


def series_times(times_s: Any, rates_bit_per_s: Any, packet_bytes: float, duration_s: float) -> np.ndarray:
    """Times (n,) of packets at the rate `rates_bit_per_s[k]` from `times_s[k]` on; the last rate holds until
    `duration_s` [s].

    A packet leaves when its bytes have accumulated, so no bytes are lost between two rates, and a rate may be 0.
    """
    size = checked_number("packet_bytes", packet_bytes, _SIZE, above=0.0)
    duration = checked_number("duration_s", duration_s, _TIME, above=0.0)
    begin, rates = np.array(times_s, dtype=float), np.array(rates_bit_per_s, dtype=float)
    if begin.ndim != 1 or begin.shape != rates.shape or len(begin) == 0:
        raise InvalidValue("rates_bit_per_s", f"shape {rates.shape}", "as many rates as times_s, at least one")
    if not (np.all(np.isfinite(begin)) and np.all(np.diff(begin) > 0.0) and begin[0] >= 0.0):
        raise InvalidValue("times_s", times_s, "increasing times of at least 0 in seconds")
    if not (np.all(np.isfinite(rates)) and np.all(rates >= 0.0)):
        raise InvalidValue("rates_bit_per_s", rates_bit_per_s, "rates of at least 0 in bit/s")
    kept = begin < duration
    knots = np.append(begin[kept], duration)
    sent = np.append(0.0, np.cumsum(np.diff(knots) * rates[kept])) / (BITS_PER_BYTE * size)
    count = int(np.floor(sent[-1] + 1e-9)) if len(sent) else 0
    if count > _MAX_PACKETS:
        raise InvalidValue("duration_s", duration_s, f"at most {_MAX_PACKETS} packets")
    desired = np.arange(1, count + 1, dtype=float)
    piece = np.minimum(np.searchsorted(sent, desired), len(sent) - 1)
    share = (desired - sent[piece - 1]) / (sent[piece] - sent[piece - 1])
    return np.minimum(knots[piece - 1] + share * (knots[piece] - knots[piece - 1]), np.nextafter(duration, 0.0))


def _interval(rate: float, size: float, duration: float) -> float:
    rate = checked_number("rate_bit_per_s", rate, _RATE, above=0.0)
    size = checked_number("packet_bytes", size, _SIZE, above=0.0)
    duration = checked_number("duration_s", duration, _TIME, above=0.0)
    interval = BITS_PER_BYTE * size / rate
    if duration / interval > _MAX_PACKETS:
        raise InvalidValue("duration_s", duration, f"at most {_MAX_PACKETS} packets")
    return interval
