"""What a link with a varying rate can deliver: packets at opportunities, as mahimahi writes them, or measured rates."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import FileError, InvalidValue, checked_number
from netctrl.model.io.files import checked_path, read_bounded
from netctrl.model.trace import RateTrace, read_trace
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "LinkTrace",
    "TraceOfLink",
    "checked_link_trace",
    "link_trace_of",
    "mean_rate",
    "read_link_trace",
    "read_trace_of_link",
    "trace_bits",
]

_MAX_BYTES = 2**26
_MAX_MS = 10**9
_PACKET_BYTES = 1504  # what mahimahi delivers at an opportunity: an MTU, and the header of its tunnel device
_HEADER_BYTES = 4
_MIN_SHARE = 0.05


class LinkTrace(NamedTuple):
    """Opportunities to deliver a packet; after the last one the trace begins again."""

    times_ms: np.ndarray
    """(N,) of opportunities, none before the one before it; read-only."""
    packet_size_bytes: float = _PACKET_BYTES
    """At an opportunity."""
    header_bytes: float = _HEADER_BYTES
    """Of these, what each packet has besides what a scenario counts."""

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


TraceOfLink = LinkTrace | RateTrace
"""What a link can deliver: packets at opportunities, or one column of mean rates; both repeat."""


def read_trace_of_link(path: str | os.PathLike[str]) -> TraceOfLink:
    """A link's trace: of `.csv` and `.parquet` the rates, as `read_trace` takes them; else a delivery trace.

    Raises
    ------
    FileError
        As `read_trace` and `read_link_trace`; a table without a rate, or with more than one.
    """
    if checked_path(path).suffix.lower() not in (".csv", ".parquet"):
        return read_link_trace(path)
    trace = read_trace(path)
    try:
        checked_link_trace("trace", trace)
    except InvalidValue as error:
        raise FileError(path, f"got {error.got}, takes {error.takes}") from None
    return trace


def checked_link_trace(name: str, value: Any) -> TraceOfLink:
    """A link's trace, or the lists that a result's file has of it; InvalidValue names it."""
    try:
        trace = _from_lists(value)
    except (TypeError, ValueError, KeyError):
        trace = None
    if isinstance(trace, LinkTrace):
        return _checked_opportunities(name, trace)
    if not isinstance(trace, RateTrace):
        takes = "a LinkTrace or a RateTrace (read_link_trace, read_trace); in a scenario's file, the name of one"
        raise InvalidValue(name, value, takes)
    if len(trace.names) != 1:
        raise InvalidValue(name, f"{len(trace.names)} columns of rates", "one")
    if not mean_rate(trace) > 0.0:
        raise InvalidValue(name, "rates of 0", "a rate above 0 somewhere")
    return trace


def _from_lists(value: Any) -> Any:
    if isinstance(value, list):
        times, size, header = value
        return LinkTrace(np.asarray(times), size, header)
    if isinstance(value, dict):
        return RateTrace(value["interval_s"], tuple(value["names"]), np.asarray(value["rate_bit_per_s"]))
    return value


def _checked_opportunities(name: str, trace: LinkTrace) -> LinkTrace:
    times = np.array(trace.times_ms)
    rising = times.ndim == 1 and len(times) and times.dtype.kind in "iuf" and np.isfinite(times).all()
    if not rising or times[0] < 0 or times[-1] <= 0 or times[-1] > _MAX_MS or (np.diff(times) < 0).any():
        raise InvalidValue(
            name, "its times", "times in ms from 0 to 1e9, none before the one before it, the last above 0"
        )
    takes = "a whole number of bytes from 1 to 65535"
    size = checked_number(name, trace.packet_size_bytes, takes, at_least=1.0, at_most=65535.0)
    header = checked_number(
        name, trace.header_bytes, "fewer bytes of header than of packet", at_least=0.0, at_most=size
    )
    times.setflags(write=False)
    return LinkTrace(times, size, header)


def mean_rate(trace: TraceOfLink) -> float:
    """Of all of a trace [bit/s]."""
    return float(np.asarray(trace.mean_bit_per_s).item())


def trace_bits(trace: TraceOfLink, times_s: np.ndarray) -> np.ndarray:
    """What a link could have sent by some times (T,) [s] since its trace began, shape (T,) [bit]."""
    if isinstance(trace, LinkTrace):
        turns, rest = np.divmod(np.asarray(times_s) * 1e3, float(trace.times_ms[-1]))
        count = turns * len(trace.times_ms) + np.searchsorted(trace.times_ms, rest + 1e-6, side="right")
        return BITS_PER_BYTE * trace.packet_size_bytes * count
    bits = np.concatenate([[0.0], np.cumsum(trace.rate_bit_per_s[:, 0]) * trace.interval_s])
    ends = trace.interval_s * np.arange(len(bits))
    turns, rest = np.divmod(np.asarray(times_s), ends[-1])
    return turns * bits[-1] + np.interp(rest, ends, bits)
