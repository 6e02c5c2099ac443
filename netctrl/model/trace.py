"""Measured rates, evenly sampled: read from a table (CSV, Parquet) or a packet capture (pcap, pcapng)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.core.errors import FileError, InvalidValue, optional_import
from netctrl.core.files import checked_path
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.io.capture import captured_bytes
from netctrl.model.io.display import Shown
from netctrl.model.io.fields import label
from netctrl.model.io.table import (
    INTERVAL_TAKES,
    LIKE_TIME,
    SAME,
    TABLES,
    TIME,
    check_once,
    clock,
    column_names,
    interval,
    numbers,
    read_table,
    spacing,
    timed,
)
from netctrl.model.io.validation_errors import shown

if TYPE_CHECKING:
    import pandas as pd

_CAPTURES = (".pcap", ".cap", ".pcapng")
_MAX_RATE = 1e18

_UNIT = r"(?:[kmgt]i?)?(?:(?:bit|byte|octet|packet|pkt)s?(?:_per_s(?:ec(?:ond)?)?|/s(?:ec)?|ps)?|b(?:ps|/s))|pps"
_BIT_PER_S = re.compile(r"(.+?)(?:[\s_]bit(?:_per_s|/s)|\s*[\[(]bit/s[\])])|bit(?:_per_s|/s)")
_OTHER_UNIT = re.compile(rf"(?:.*[\s_])?(?:{_UNIT})|.*[\[(]\s*(?:{_UNIT}|[kmgt]?i?b)\s*[\])]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RateTrace(Shown):
    """Mean rates of K signals, such as demands or links, in T consecutive intervals of equal length.

    Parameters
    ----------
    interval_s : float
        Length of one interval [s].
    names : tuple of str
        Names of the K columns.
    rate_bit_per_s : ndarray, shape (T, K)
        Mean rate in each interval [bit/s].

    Raises
    ------
    InvalidValue
        No interval, no column, a missing or repeated name, or a rate that isn't a number of at least 0; the message
        names the row (from 1) and the column.

    Examples
    --------
    >>> import netctrl
    >>> trace = netctrl.RateTrace(0.1, ("web", "video"), [[1e6, 4e6], [3e6, 4e6]])
    >>> trace.mean_bit_per_s.tolist()
    [2000000.0, 4000000.0]
    >>> trace.resampled(0.2).rate_bit_per_s.shape
    (1, 2)
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
        """Standard deviation of each column (divided by T, not T − 1), shape (K,) [bit/s]."""
        return self.rate_bit_per_s.std(axis=0)

    def resampled(self, interval_s: float) -> RateTrace:
        """Average the rates over longer intervals; a remainder that fills no interval is dropped.

        Parameters
        ----------
        interval_s : float
            A whole multiple of the trace's interval [s].

        Returns
        -------
        RateTrace

        Raises
        ------
        InvalidValue
            Not a whole multiple of the trace's interval, or longer than the trace.
        """
        desired = interval("interval_s", interval_s)
        T, K = self.rate_bit_per_s.shape
        factor = round(desired / self.interval_s)
        if abs(desired - factor * self.interval_s) > SAME * desired or not 1 <= factor <= T:
            length = f"and at most its length, {T * self.interval_s:.9g} s"
            takes = f"a whole multiple of the trace's interval, {self.interval_s:.9g} s, {length}"
            raise InvalidValue("interval_s", interval_s, takes)
        blocks = self.rate_bit_per_s[: T - T % factor].reshape(-1, factor, K)
        return RateTrace(desired, self.names, blocks.mean(axis=1))

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per interval: its start `time_s`, from 0 [s], and each rate [bit/s]."""
        with optional_import():
            import pandas as pd

        frame = pd.DataFrame(np.array(self.rate_bit_per_s), columns=list(self.names))
        frame.insert(0, TIME, np.arange(len(frame)) * self.interval_s)
        return frame

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> RateTrace:
        """A trace from a DataFrame.

        Parameters
        ----------
        frame : DataFrame
            A column or index `time_s` with the evenly spaced starts of the intervals [s], and a column for each rate
            [bit/s]. A suffix `_bit_per_s` or `[bit/s]` is removed from a rate's name.
            The times may also be the index, as dates or durations.

        Returns
        -------
        RateTrace

        Raises
        ------
        InvalidValue
            Not a DataFrame, another unit, a missing or repeated column, fewer than two rows, a gap, or a value that
            isn't a number of at least 0; the message names the row (from 1, below the header) and the column.
        """
        with optional_import():
            import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InvalidValue("frame", type(frame).__name__, "a pandas DataFrame")
        frame = timed(frame)
        columns = column_names(frame)
        place_of_time = clock(columns)
        names = [name if place == place_of_time else _bare(name) for place, name in enumerate(columns)]
        check_once(names)
        if len(frame) < 2:
            raise InvalidValue("rows", len(frame), "at least 2 below the header, to determine the interval")
        values = [numbers(name, frame.iloc[:, place]) for place, name in enumerate(names)]
        del names[place_of_time]
        return cls(spacing(values.pop(place_of_time)), tuple(names), np.column_stack(values))


def read_trace(path: str | os.PathLike[str], *, interval_s: float | None = None) -> RateTrace:
    """Read measured rates from a table or from the packets of a capture.

    `.csv`, `.parquet`: a header; `time_s`, the evenly spaced starts of the intervals [s]; all other columns are rates
    [bit/s]. `.pcap`, `.cap`, `.pcapng`: one column "all" of all packets, each with its length on the wire, in intervals
    from the first packet on; the capture may end within the last one. A packet that was captured on two interfaces
    counts twice.

    Parameters
    ----------
    path : path
    interval_s : float, optional
        Interval of the returned trace [s]: required for a capture; for a table a whole multiple of its own interval.

    Raises
    ------
    InvalidValue
        `interval_s` is missing for a capture, or isn't a whole multiple of the table's interval.
    FileError
        The file can't be read, is of another type or is invalid; the message names the row and column, or the byte.

    Source: formats of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
    """
    desired = None if interval_s is None else interval("interval_s", interval_s)
    suffix = checked_path(path).suffix.lower()
    if suffix not in (*TABLES, *_CAPTURES):
        raise FileError(path, f"unknown suffix; takes {', '.join((*TABLES, *_CAPTURES))}, not compressed")
    if desired is None and suffix in _CAPTURES:
        raise InvalidValue("interval_s", None, f"{INTERVAL_TAKES} , over which packets are counted, as in 0.1")
    try:
        if desired is not None and suffix in _CAPTURES:
            sent_bytes = captured_bytes(path, desired)
            return RateTrace(desired, ("all",), sent_bytes[:, np.newaxis] * (BITS_PER_BYTE / desired))
        trace = RateTrace.from_pandas(read_table(path))
    except InvalidValue as error:
        raise FileError(
            path, f"not a valid trace: {error.argument}: got {shown(error.got)}, takes {error.takes}"
        ) from None
    return trace if desired is None else trace.resampled(desired)


def rate_trace(name: str, values: Any, interval_s: float | None = None, columns: int | None = 1) -> RateTrace:
    """A trace from rates in any form that users have.

    Parameters
    ----------
    name : str
        Name of the argument in messages.
    values : RateTrace, DataFrame, Series or array_like
        Rates [bit/s]: (T,), a row per interval, or (T, K) with K = 1 or `columns`. A DataFrame with a column `time_s`
        is read by `RateTrace.from_pandas`; the index of a table by date or time gives the interval.
    interval_s : float, optional
        Interval of the trace [s]: required for rates without times; others are averaged (`RateTrace.resampled`).
    columns : int or None
        None: any number.

    Raises
    ------
    InvalidValue
        Another shape, a rate that isn't a number of at least 0, or no interval; the message names the row and column.
    """
    try:
        trace = _as_trace(values, interval_s)
        trace = trace if interval_s is None else trace.resampled(interval_s)
    except InvalidValue as error:
        argument = error.argument.replace("rate_bit_per_s", name).replace("interval_s", "interval")
        named = argument if argument.startswith((name, "interval")) else f"{name}, {argument}"
        raise InvalidValue(named, error.got, error.takes) from None
    if columns is not None:
        check_columns(name, trace, columns)
    return trace


def check_columns(name: str, trace: RateTrace, columns: int) -> None:
    """InvalidValue for a trace with other than one column or `columns`; `name` is the argument in the message."""
    T, K = trace.rate_bit_per_s.shape
    if K not in (1, columns):
        shape = "(T,)" if columns == 1 else f"(T,), or (T, {columns}) for {columns} flows"
        turned = ": a row per interval; transpose it" if T in (1, columns) else ": a row per interval; select columns"
        raise InvalidValue(name, (T, K), f"rates of shape {shape}{turned}")


def _as_trace(values: Any, interval_s: float | None) -> RateTrace:
    if isinstance(values, RateTrace):
        return values
    if isinstance(values, dict):  # as in a result's file
        return RateTrace(values["interval_s"], tuple(values["names"]), values["rate_bit_per_s"])
    if hasattr(values, "iloc"):
        return _from_table(values, interval_s)
    try:
        rates = np.asarray(values, dtype=float)
    except (ValueError, TypeError, OverflowError):
        raise InvalidValue(
            "rate_bit_per_s", values, "an array of rates [bit/s], a Series, a DataFrame, a RateTrace"
        ) from None
    if rates.ndim == 1:
        rates = rates[:, np.newaxis]
    if rates.ndim != 2:
        raise InvalidValue("rate_bit_per_s", rates.shape, "an array of shape (T,), a row per interval")
    return _evenly(rates, tuple(map(str, range(rates.shape[1]))), interval_s)


def _from_table(values: Any, interval_s: float | None) -> RateTrace:
    """The trace of a DataFrame or a Series."""
    with optional_import():
        import pandas as pd

    frame = values.to_frame("rate") if isinstance(values, pd.Series) else values
    if len(frame) > 1 and TIME in timed(frame).columns:
        return RateTrace.from_pandas(frame)
    names = column_names(frame)
    rates = np.column_stack([numbers(each, frame.iloc[:, place]) for place, each in enumerate(names)])
    return _evenly(rates, tuple(names), interval_s)


def _evenly(rates: np.ndarray, names: tuple[str, ...], interval_s: float | None) -> RateTrace:
    if interval_s is None:
        raise InvalidValue("interval", None, "the duration of each rate, as in 100ms: these rates have no times")
    return RateTrace(interval_s, names, rates)


def _names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list | tuple) or not names:
        raise InvalidValue("names", names, "a name for each column, at least one")
    check_once(found := [label("names", name) for name in names])
    if TIME in found:
        raise InvalidValue("names", TIME, "another name: tables use this one for the time")
    return tuple(found)


def _rates(values: Any, names: tuple[str, ...]) -> np.ndarray:
    """A read-only copy."""
    shape = f"(T, {len(names)}), T at least 1: a row per interval, a column per name"
    try:
        if np.iscomplexobj(values):
            raise TypeError
        rates = np.array(values, dtype=float)
    except (ValueError, TypeError, OverflowError):
        raise InvalidValue(
            "rate_bit_per_s", "values that are not a table of numbers", f"an array of shape {shape}"
        ) from None
    if rates.ndim != 2 or rates.shape[1] != len(names) or len(rates) == 0:
        raise InvalidValue("rate_bit_per_s", rates.shape, f"an array of shape {shape}")
    wrong = ~((rates >= 0.0) & (rates <= _MAX_RATE))  # also true for NaN
    if wrong.any():
        row, column = np.unravel_index(wrong.argmax(), wrong.shape)
        where = f"rate_bit_per_s, row {row + 1}, column {names[column]!r}"
        raise InvalidValue(where, float(rates[row, column]), "a number from 0 to 1e18; gaps are not filled")
    rates.setflags(write=False)
    return rates


def _bare(name: str) -> str:
    """Name of a column of rates without its unit, which must be bit/s."""
    if right := _BIT_PER_S.fullmatch(name):
        return right[1] or name
    if _OTHER_UNIT.fullmatch(name):
        raise InvalidValue("columns", name, "rates in bit/s: convert them and end the name in _bit_per_s")
    if LIKE_TIME.fullmatch(name):
        raise InvalidValue("columns", name, f"rates in bit/s beside one time column, {TIME!r}: remove this column")
    return name
