"""Measured rates, evenly sampled: read from a table (CSV, Parquet) or a packet capture (pcap, pcapng)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.capture import captured_bytes
from netctrl.model.io.fields import label
from netctrl.model.io.files import checked_path
from netctrl.model.io.table import (
    INTERVAL_TAKES,
    LIKE_TIME,
    TABLES,
    TIME,
    check_once,
    clock,
    column_names,
    interval,
    numbers,
    read_table,
    spacing,
)
from netctrl.model.io.validation_errors import shown
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RateTrace", "read_trace"]

_CAPTURES = (".pcap", ".cap", ".pcapng")
_MAX_RATE = 1e18
_SAME = 1e-6  # of an interval: 3 * 0.1 is a multiple of 0.1

_UNIT = r"(?:[kmgt]i?)?(?:(?:bit|byte|octet|packet|pkt)s?(?:_per_s(?:ec(?:ond)?)?|/s(?:ec)?|ps)?|b(?:ps|/s))|pps"
_BIT_PER_S = re.compile(r"(.+?)(?:[\s_]bit(?:_per_s|/s)|\s*[\[(]bit/s[\])])|bit(?:_per_s|/s)")
_OTHER_UNIT = re.compile(rf"(?:.*[\s_])?(?:{_UNIT})|.*[\[(]\s*(?:{_UNIT}|[kmgt]?i?b)\s*[\])]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class RateTrace:
    """Mean rates of K things (demands, links) in T intervals that follow each other.

    Parameters
    ----------
    interval_s : float
        Length of one interval [s].
    names : tuple of str
        One a column, K of them.
    rate_bit_per_s : ndarray, shape (T, K)
        Mean rate in each interval [bit/s].

    Raises
    ------
    InvalidValue
        No interval or no column, names that are double or none, a rate that isn't a number from 0; it names the row
        (from 1) and the column.
    """

    interval_s: float
    names: tuple[str, ...]
    rate_bit_per_s: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval_s", interval("interval_s", self.interval_s))
        object.__setattr__(self, "names", _names(self.names))
        object.__setattr__(self, "rate_bit_per_s", _rates(self.rate_bit_per_s, self.names))

    @property
    def mean_bit_per_s(self) -> np.ndarray:
        """Mean of each column, shape (K,) [bit/s]."""
        return self.rate_bit_per_s.mean(axis=0)

    @property
    def std_bit_per_s(self) -> np.ndarray:
        """Standard deviation of each column, over T and not T - 1, shape (K,) [bit/s]."""
        return self.rate_bit_per_s.std(axis=0)

    def resampled(self, interval_s: float) -> RateTrace:
        """The same rates over longer intervals; what is left at the end and fills none is dropped.

        Raises
        ------
        InvalidValue
            No whole multiple of the trace's interval, or longer than the trace.
        """
        desired = interval("interval_s", interval_s)
        T, K = self.rate_bit_per_s.shape
        factor = round(desired / self.interval_s)
        if abs(desired - factor * self.interval_s) > _SAME * desired or not 1 <= factor <= T:
            length = f"and at most its length, {T * self.interval_s:.9g} s"
            takes = f"a whole multiple of the trace's interval, {self.interval_s:.9g} s, {length}"
            raise InvalidValue("interval_s", interval_s, takes)
        blocks = self.rate_bit_per_s[: T - T % factor].reshape(-1, factor, K)
        return RateTrace(desired, self.names, blocks.mean(axis=1))

    def to_pandas(self) -> pd.DataFrame:
        """One row an interval: its start `time_s`, from 0 [s], and a column a name [bit/s]."""
        import pandas as pd

        frame = pd.DataFrame(np.array(self.rate_bit_per_s), columns=list(self.names))
        frame.insert(0, TIME, np.arange(len(frame)) * self.interval_s)
        return frame

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> RateTrace:
        """From a table with evenly spaced starts of intervals `time_s` [s], also as its index, and rates [bit/s].

        A column's name may end in `_bit_per_s` or `[bit/s]`, which is left out of the trace's.

        Raises
        ------
        InvalidValue
            No table, another unit, a missing or doubled column, fewer than two rows, a gap, or a value that isn't a
            number from 0; it names the row (from 1, below the header) and the column.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InvalidValue("frame", type(frame).__name__, "a pandas DataFrame")
        if frame.index.name == TIME and TIME not in frame.columns:
            frame = frame.reset_index()
        columns = column_names(frame)
        place_of_time = clock(columns)
        names = [name if place == place_of_time else _bare(name) for place, name in enumerate(columns)]
        check_once(names)
        if len(frame) < 2:
            raise InvalidValue("rows", len(frame), "at least 2 below the header, which tell the interval")
        values = [numbers(name, frame.iloc[:, place]) for place, name in enumerate(names)]
        del names[place_of_time]
        return cls(spacing(values.pop(place_of_time)), tuple(names), np.column_stack(values))


def read_trace(path: str | os.PathLike[str], *, interval_s: float | None = None) -> RateTrace:
    """Rates that were measured, from a table or from the packets of a capture.

    `.csv`, `.parquet`: a header; `time_s`, the evenly spaced starts of the intervals [s]; all other columns rates
    [bit/s]. `.pcap`, `.cap`, `.pcapng`: all packets in one column "all", each with its length on the wire, in
    intervals from the first packet on; the last one may be covered in part. A packet that was captured on two
    interfaces counts twice.

    Parameters
    ----------
    path : path
    interval_s : float, optional
        Of the trace that is returned [s]. A table gets longer intervals, whole multiples of its own; a capture
        needs it.

    Raises
    ------
    InvalidValue
        `interval_s` is missing for a capture, or is no whole multiple of the table's.
    FileError
        The file can't be read, is none of these, or is broken; the row and column, or the byte, is named.

    Source: formats of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
    """
    desired = None if interval_s is None else interval("interval_s", interval_s)
    suffix = checked_path(path).suffix.lower()
    if suffix not in (*TABLES, *_CAPTURES):
        raise FileError(path, f"is no trace by its name: takes {', '.join((*TABLES, *_CAPTURES))}, unpacked")
    if desired is None and suffix in _CAPTURES:
        raise InvalidValue("interval_s", None, f"{INTERVAL_TAKES} over which packets are counted, as in 0.1")
    try:
        if desired is not None and suffix in _CAPTURES:
            sent_bytes = captured_bytes(path, desired)
            return RateTrace(desired, ("all",), sent_bytes[:, np.newaxis] * (BITS_PER_BYTE / desired))
        trace = RateTrace.from_pandas(read_table(path))
    except InvalidValue as error:
        raise FileError(path, f"is no trace: {error.argument}: got {shown(error.got)}, takes {error.takes}") from None
    return trace if desired is None else trace.resampled(desired)


def _names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list | tuple) or not names:
        raise InvalidValue("names", names, "a name for each column, at least one")
    check_once(found := [label("names", name) for name in names])
    if TIME in found:
        raise InvalidValue("names", TIME, "another name: in tables this is the time")
    return tuple(found)


def _rates(values: Any, names: tuple[str, ...]) -> np.ndarray:
    """A copy that can't be written."""
    shape = f"(T, {len(names)}), T at least 1: a row an interval, a column a name"
    try:
        if np.iscomplexobj(values):
            raise TypeError
        rates = np.array(values, dtype=float)
    except (ValueError, TypeError, OverflowError):
        raise InvalidValue("rate_bit_per_s", "no table of numbers", f"an array of shape {shape}") from None
    if rates.ndim != 2 or rates.shape[1] != len(names) or len(rates) == 0:
        raise InvalidValue("rate_bit_per_s", rates.shape, f"an array of shape {shape}")
    wrong = ~((rates >= 0.0) & (rates <= _MAX_RATE))  # true for NaN too
    if wrong.any():
        row, column = np.unravel_index(wrong.argmax(), wrong.shape)
        where = f"rate_bit_per_s, row {row + 1}, column {names[column]!r}"
        raise InvalidValue(where, float(rates[row, column]), "a number from 0 to 1e18; what is missing is not filled")
    rates.setflags(write=False)
    return rates


def _bare(name: str) -> str:
    """The name of a column of rates without its unit, which has to be bit/s."""
    if right := _BIT_PER_S.fullmatch(name):
        return right[1] or name
    if _OTHER_UNIT.fullmatch(name):
        raise InvalidValue("columns", name, "rates in bit/s: convert them and end the name in _bit_per_s")
    if LIKE_TIME.fullmatch(name):
        raise InvalidValue("columns", name, f"rates in bit/s beside {TIME!r}, the only time: leave this column out")
    return name
