"""Capacity of a link with a varying rate: delivery opportunities as in mahimahi's traces, or measured rates."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import FileError, InvalidValue, checked_number
from netctrl.core.files import checked_path, read_bounded
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.trace import RateTrace, read_trace

_MAX_BYTES = 2**26
_MAX_MS = 10**9
_PACKET_BYTES = 1504  # of mahimahi: an MTU and the header of its tunnel device
_HEADER_BYTES = 4
_STEP_NS = 250_000


class LinkTrace(NamedTuple):
    """Delivery opportunities of a link with a varying rate, as mahimahi records them.

    The trace repeats after its last opportunity. `netctrl.read` returns one for a `.trace`, `.up` or `.down` file.

    Examples
    --------
    Two packets within the first 10 ms, and one at 20 ms:

    >>> import netctrl, numpy as np
    >>> trace = netctrl.LinkTrace(np.array([4, 10, 20]))
    >>> trace.duration_s, round(trace.mean_bit_per_s / 1e6, 3)
    (0.02, 1.805)
    """

    times_ms: np.ndarray
    """(N,) times of the opportunities, not decreasing [ms]; read-only."""
    packet_size_bytes: float = _PACKET_BYTES
    """Size of the packet that an opportunity delivers [byte]."""
    header_bytes: float = _HEADER_BYTES
    """Part of that size that a scenario's packets don't count [byte]."""

    @property
    def duration_s(self) -> float:
        """Time after which the trace repeats: the time of its last opportunity [s]."""
        return float(self.times_ms[-1]) / 1e3

    @property
    def mean_bit_per_s(self) -> float:
        """Mean rate over the trace [bit/s]."""
        return BITS_PER_BYTE * self.packet_size_bytes * len(self.times_ms) / self.duration_s


def read_link_trace(path: str | os.PathLike[str]) -> LinkTrace:
    """Read a link's trace in mahimahi's format.

    Each line is an opportunity to deliver a packet of 1504 bytes: its time in whole milliseconds, which may repeat.

    Raises
    ------
    FileError
        The file can't be read or is empty; a line isn't a whole number from 0 to 1e9, or is less than the line before;
        or all are 0. The message names the line.
    """
    content = read_bounded(path, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**20} MiB allowed for a link's trace")
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise FileError(path, "not a text file of whole numbers") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise FileError(path, "empty; each packet that can be delivered needs a line with its time in ms")
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
        raise FileError(path, f"line {number}: got {text}, {takes}, at least that of the line before, {before}")
    return int(text)


def link_trace_of(rate: Callable[[np.ndarray], np.ndarray], duration_s: float) -> LinkTrace:
    """Trace of a link with a known rate: an opportunity each time the link could have sent another packet.

    Parameters
    ----------
    rate : callable
        Function of times (T,) [s] that returns rates (T,) [bit/s], at least 0.
    duration_s : float
        Length of the trace, in whole ms [s].

    Raises
    ------
    InvalidValue
        A duration below 1 ms, or a rate that delivers no packet in that time.
    """
    ms = round(1e3 * checked_number("duration_s", duration_s, "a time of at least 1 ms, in seconds", at_least=1e-3))
    packets = np.cumsum(np.asarray(rate(1e-3 * (np.arange(ms) + 0.5)), dtype=float)) * 1e-3
    whole = np.floor(packets / (BITS_PER_BYTE * _PACKET_BYTES) + 1e-9).astype(np.int64)
    if whole[-1] == 0:
        raise InvalidValue("rate", "less than one packet in total", "a higher rate or a longer duration")
    times = np.repeat(np.arange(1, ms + 1), np.diff(whole, prepend=0))
    times.setflags(write=False)
    return LinkTrace(times)


TraceOfLink = LinkTrace | RateTrace
"""Capacity of a link: delivery opportunities, or one column of mean rates; both repeat."""


def read_trace_of_link(path: str | os.PathLike[str]) -> TraceOfLink:
    """A link's trace: rates from a `.csv` or `.parquet` file, as `read_trace` reads them; else delivery opportunities.

    Raises
    ------
    FileError
        As for `read_trace` and `read_link_trace`; or a table without a rate, or with more than one.
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
    """A link's trace, or a copy made from the lists in a result's file; InvalidValue names it."""
    try:
        trace = _from_lists(value)
    except (TypeError, ValueError, KeyError):
        trace = None
    if isinstance(trace, LinkTrace):
        return _checked_opportunities(name, trace)
    if not isinstance(trace, RateTrace):
        takes = (
            "a LinkTrace or a RateTrace (read_link_trace, read_trace); in a scenario's file, the name of a trace file"
        )
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
        raise InvalidValue(name, "its times", "non-decreasing times in ms from 0 to 1e9, the last above 0")
    takes = "a whole number of bytes from 1 to 65535"
    size = checked_number(name, trace.packet_size_bytes, takes, at_least=1.0, at_most=65535.0)
    header = checked_number(
        name, trace.header_bytes, "fewer header bytes than packet bytes", at_least=0.0, at_most=size
    )
    times.setflags(write=False)
    return LinkTrace(times, size, header)


def mean_rate(trace: TraceOfLink) -> float:
    """Mean rate over the whole trace [bit/s]."""
    return float(np.asarray(trace.mean_bit_per_s).item())


def trace_bits(trace: TraceOfLink, times_s: np.ndarray) -> np.ndarray:
    """Data that a link could have sent by given times (T,) [s] since its trace began, shape (T,) [bit]."""
    if isinstance(trace, LinkTrace):
        turns, rest = np.divmod(np.asarray(times_s) * 1e3, float(trace.times_ms[-1]))
        count = turns * len(trace.times_ms) + np.searchsorted(trace.times_ms, rest + 1e-6, side="right")
        return BITS_PER_BYTE * trace.packet_size_bytes * count
    bits = np.concatenate([[0.0], np.cumsum(trace.rate_bit_per_s[:, 0]) * trace.interval_s])
    ends = trace.interval_s * np.arange(len(bits))
    turns, rest = np.divmod(np.asarray(times_s), ends[-1])
    return turns * bits[-1] + np.interp(rest, ends, bits)


def deliveries(trace: TraceOfLink, duration_s: float) -> np.ndarray:
    """When a link can have sent more [ns], and how much [byte], (N, 2): of rates, each quarter of a millisecond."""
    if isinstance(trace, LinkTrace):
        times, count = np.unique(np.rint(1e6 * trace.times_ms).astype(np.int64), return_counts=True)
        turns = np.arange(ceil(duration_s / trace.duration_s))
        at = (turns[:, None] * times[-1] + times).ravel()
        size = np.tile(count * round(trace.packet_size_bytes), len(turns))
    else:
        at = _STEP_NS * np.arange(1, round(1e9 * duration_s) // _STEP_NS + 1)
        size = np.diff(np.floor(trace_bits(trace, 1e-9 * at) / BITS_PER_BYTE), prepend=0.0).astype(np.int64)
    used = (at > 0) & (at <= 1e9 * duration_s) & (size > 0)
    return np.column_stack([at[used], size[used]])
