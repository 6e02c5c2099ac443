"""What a mobile link can deliver, a packet at a time, in mahimahi's format: one line for each opportunity, in ms."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np

from netctrl.errors import FileError, InvalidValue, checked_number
from netctrl.model.io.files import read_bounded
from netctrl.units import BITS_PER_BYTE

__all__ = ["LinkTrace", "link_trace_of", "read_link_trace"]

_MAX_BYTES = 2**26
_MAX_MS = 10**9
_PACKET_BYTES = 1504  # what mahimahi delivers at an opportunity: an MTU, and the header of its tunnel device
_MIN_SHARE = 0.05


class LinkTrace(NamedTuple):
    """Opportunities to deliver a packet; after the last one the trace begins again."""

    times_ms: np.ndarray
    """(N,) of opportunities, none before the one before it; read-only."""
    packet_size_bytes: float = _PACKET_BYTES

    @property
    def duration_s(self) -> float:
        """After which it repeats: the time of the last opportunity."""
        return float(self.times_ms[-1]) / 1e3

    @property
    def mean_bit_per_s(self) -> float:
        return BITS_PER_BYTE * self.packet_size_bytes * len(self.times_ms) / self.duration_s

    def capacity(self, window_s: float = 0.1, *, min_share: float = _MIN_SHARE) -> Callable[[np.ndarray], np.ndarray]:
        """The trace as `simulate_bottleneck` takes it: the mean over windows one after the other.

        Parameters
        ----------
        window_s : float
            The last one ends with the trace, and may be shorter [s].
        min_share : float
            Of the mean rate: where a window has less (a fluid needs a rate above 0), that is its rate.

        Returns
        -------
        callable
            From times (T,) [s], of at least 0, to capacities (T,) [bit/s].

        Raises
        ------
        InvalidValue
            A window that isn't above 0, a share that isn't above 0 and at most 1.
        """
        window = checked_number("window_s", window_s, "a time above 0, in seconds", above=0.0)
        share = checked_number("min_share", min_share, "a share above 0, at most 1", above=0.0, at_most=1.0)
        edges = np.minimum(window * np.arange(ceil(self.duration_s / window - 1e-9) + 1), self.duration_s)
        # An opportunity at n ms ends the millisecond before it, so that the last one is in the trace.
        counts = np.histogram(np.maximum(self.times_ms - 0.5, 0.0) / 1e3, bins=edges)[0]
        rates = BITS_PER_BYTE * self.packet_size_bytes * counts / np.diff(edges)
        rates = np.maximum(rates, share * self.mean_bit_per_s)
        length, last = self.duration_s, len(rates) - 1
        return lambda times: rates[np.minimum((np.mod(times, length) / window).astype(np.int64), last)]


def read_link_trace(path: str | os.PathLike[str]) -> LinkTrace:
    """A link's trace in mahimahi's format: a line for each opportunity to deliver a packet of 1504 bytes, its time in
    whole milliseconds; several may have one time.

    Raises
    ------
    FileError
        The file can't be read or has no lines; a line isn't a whole number from 0 to 1e9, or is less than the one
        before; all are 0. It names the line.
    """
    content = read_bounded(path, _MAX_BYTES, f"is larger than a link's trace may be ({_MAX_BYTES // 2**20} MiB)")
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise FileError(path, "is no text of whole numbers") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise FileError(path, "is empty: it takes a line for each packet that can be delivered, its time in ms")
    times = np.empty(len(lines), dtype=np.int64)
    before = 0
    for number, line in enumerate(lines, start=1):
        times[number - 1] = before = _time(path, number, line, before)
    if before == 0:
        raise FileError(
            path, f"line {len(lines)}: got 0, takes a time above 0 in the last line, where the trace repeats"
        )
    times.setflags(write=False)
    return LinkTrace(times)


def _time(path: str | os.PathLike[str], number: int, line: str, before: int) -> int:
    """[ms]"""
    text = line.strip()
    takes = "takes a time in ms, a whole number from 0 to 1e9"
    if not text.isdigit() or len(text) > 10 or int(text) > _MAX_MS:
        raise FileError(path, f"line {number}: got {text[:40]!r}, {takes}")
    if int(text) < before:
        raise FileError(path, f"line {number}: got {text}, {takes}, of at least that of the line before, {before}")
    return int(text)


def link_trace_of(rate: Callable[[np.ndarray], np.ndarray], duration_s: float) -> LinkTrace:
    """The trace of a link with a rate that is known: an opportunity whenever another packet's bytes have come together.

    Parameters
    ----------
    rate : callable
        From times (T,) [s] to rates (T,) [bit/s], at least 0.
    duration_s : float
        In whole ms [s].

    Raises
    ------
    InvalidValue
        A duration below 1 ms; no packet in all of it.
    """
    ms = round(1e3 * checked_number("duration_s", duration_s, "a time of at least 1 ms, in seconds", at_least=1e-3))
    packets = np.cumsum(np.asarray(rate(1e-3 * (np.arange(ms) + 0.5)), dtype=float)) * 1e-3
    whole = np.floor(packets / (BITS_PER_BYTE * _PACKET_BYTES) + 1e-9).astype(np.int64)
    if whole[-1] == 0:
        raise InvalidValue("rate", "less than a packet in all of it", "a greater rate, or a longer duration")
    times = np.repeat(np.arange(1, ms + 1), np.diff(whole, prepend=0))
    times.setflags(write=False)
    return LinkTrace(times)
