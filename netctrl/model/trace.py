"""Measured rates, evenly sampled: read from a table (CSV, Parquet) or a packet capture (pcap, pcapng)."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.errors import FileError, InvalidValue, checked_number
from netctrl.model.capture import captured_bytes
from netctrl.model.explain import shorten, shown
from netctrl.model.files import read_bounded
from netctrl.model.quantity import label
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RateTrace", "read_trace"]

_TABLES, _CAPTURES = (".csv", ".parquet"), (".pcap", ".cap", ".pcapng")
_TIME = "time_s"
_INTERVAL_TAKES = "a time from 1e-9 to 1e9 in s"
_MOST_RATE = 1e18
_LATEST_S = 1e11  # the year 5138: what is later was counted in ms or ns
_EVEN = 1e-2  # of the interval: what clocks and rounded times may be off
_SAME = 1e-6  # of an interval: 3 * 0.1 is a multiple of 0.1

_MAX_BYTES = 2**31
_MAX_VALUES = 2**28

_UNIT = r"(?:[kmgt]i?)?(?:(?:bit|byte|octet|packet|pkt)s?(?:_per_s(?:ec(?:ond)?)?|/s(?:ec)?|ps)?|b(?:ps|/s))|pps"
_BIT_PER_S = re.compile(r"(.+?)(?:[\s_]bit(?:_per_s|/s)|\s*[\[(]bit/s[\])])|bit(?:_per_s|/s)")
_OTHER_UNIT = re.compile(rf"(?:.*[\s_])?(?:{_UNIT})|.*[\[(]\s*(?:{_UNIT}|[kmgt]?i?b)\s*[\])]", re.IGNORECASE)
_LIKE_TIME = re.compile(r"(?:time|timestamp|datetime|date|epoch)(?:[\s_]*[\[(]?[mun]?s(?:ec)?[\])]?)?", re.IGNORECASE)
_SHORT_TIMES = {"t", "ts", "s", "sec", "seconds"}


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
        object.__setattr__(self, "interval_s", _interval("interval_s", self.interval_s))
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
        wanted = _interval("interval_s", interval_s)
        T, K = self.rate_bit_per_s.shape
        factor = round(wanted / self.interval_s)
        if abs(wanted - factor * self.interval_s) > _SAME * wanted or not 1 <= factor <= T:
            length = f"and at most its length, {T * self.interval_s:.9g} s"
            takes = f"a whole multiple of the trace's interval, {self.interval_s:.9g} s, {length}"
            raise InvalidValue("interval_s", interval_s, takes)
        blocks = self.rate_bit_per_s[: T - T % factor].reshape(-1, factor, K)
        return RateTrace(wanted, self.names, blocks.mean(axis=1))

    def to_pandas(self) -> pd.DataFrame:
        """One row an interval: its start `time_s`, from 0 [s], and a column a name [bit/s]."""
        import pandas as pd

        frame = pd.DataFrame(np.array(self.rate_bit_per_s), columns=list(self.names))
        frame.insert(0, _TIME, np.arange(len(frame)) * self.interval_s)
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
        if frame.index.name == _TIME and _TIME not in frame.columns:
            frame = frame.reset_index()
        columns = [_label(place, name) for place, name in enumerate(frame.columns)]
        clock = _clock(columns)
        names = [name if place == clock else _bare(name) for place, name in enumerate(columns)]
        _check_once(names)
        if len(frame) < 2:
            raise InvalidValue("rows", len(frame), "at least 2 below the header, which tell the interval")
        values = [_numbers(name, frame.iloc[:, place]) for place, name in enumerate(names)]
        del names[clock]
        return cls(_spacing(values.pop(clock)), tuple(names), np.column_stack(values))


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
    wanted = None if interval_s is None else _interval("interval_s", interval_s)
    suffix = Path(path).suffix.lower()
    if suffix not in (*_TABLES, *_CAPTURES):
        raise FileError(path, f"is no trace by its name: takes {', '.join((*_TABLES, *_CAPTURES))}, unpacked")
    if wanted is None and suffix in _CAPTURES:
        raise InvalidValue("interval_s", None, f"{_INTERVAL_TAKES} over which packets are counted, as in 0.1")
    try:
        if wanted is not None and suffix in _CAPTURES:
            sent_bytes = captured_bytes(path, wanted)
            return RateTrace(wanted, ("all",), sent_bytes[:, np.newaxis] * (BITS_PER_BYTE / wanted))
        content = read_bounded(path, _MAX_BYTES, f"is larger than a table may be ({_MAX_BYTES // 2**20} MiB)")
        trace = RateTrace.from_pandas((_csv if suffix == ".csv" else _parquet)(path, content))
    except InvalidValue as error:
        raise FileError(path, f"is no trace: {error.argument}: got {shown(error.got)}, takes {error.takes}") from None
    return trace if wanted is None else trace.resampled(wanted)


def _interval(argument: str, value: Any) -> float:
    return checked_number(argument, value, _INTERVAL_TAKES, at_least=1e-9, at_most=1e9)


def _names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list | tuple) or not names:
        raise InvalidValue("names", names, "a name for each column, at least one")
    _check_once(found := [label("names", name) for name in names])
    if _TIME in found:
        raise InvalidValue("names", _TIME, "another name: in tables this is the time")
    return tuple(found)


def _check_once(names: list[str]) -> None:
    if len(set(names)) < len(names):
        double = next(name for name, times in Counter(names).items() if times > 1)
        raise InvalidValue("names", double, "each column's name only once")


def _rates(values: Any, names: tuple[str, ...]) -> np.ndarray:
    """A copy that can't be written."""
    shape = f"(T, {len(names)}), T at least 1: a row an interval, a column a name"
    try:
        if np.iscomplexobj(values):
            raise TypeError
        rates = np.array(values, dtype=float)
    except (ValueError, TypeError):
        raise InvalidValue("rate_bit_per_s", "no table of numbers", f"an array of shape {shape}") from None
    if rates.ndim != 2 or rates.shape[1] != len(names) or len(rates) == 0:
        raise InvalidValue("rate_bit_per_s", rates.shape, f"an array of shape {shape}")
    wrong = ~((rates >= 0.0) & (rates <= _MOST_RATE))  # true for NaN too
    if wrong.any():
        row, column = np.unravel_index(wrong.argmax(), wrong.shape)
        where = f"rate_bit_per_s, row {row + 1}, column {names[column]!r}"
        raise InvalidValue(where, float(rates[row, column]), "a number from 0 to 1e18; what is missing is not filled")
    rates.setflags(write=False)
    return rates


def _label(place: int, name: Any) -> str:
    if str(name).strip() == "":
        raise InvalidValue(
            f"the name of column {place + 1}", name, "text; pandas leaves its index out with index=False"
        )
    return label(f"the name of column {place + 1}", name.strip() if isinstance(name, str) else name)


def _clock(columns: list[str]) -> int:
    """The place of the time column."""
    takes = f"a column {_TIME!r} with the starts of the intervals in seconds"
    if _TIME not in columns:
        likely = [name for name in columns if _LIKE_TIME.fullmatch(name) or name.lower() in _SHORT_TIMES]
        if likely:
            raise InvalidValue("columns", likely[0], f"{takes}: convert this one and rename it")
        raise InvalidValue("columns", shorten(", ".join(columns)), takes)
    if len(columns) == 1:
        raise InvalidValue("columns", _TIME, "beside it at least one column with rates in bit/s")
    return columns.index(_TIME)


def _bare(name: str) -> str:
    """The name of a column of rates without its unit, which has to be bit/s."""
    if right := _BIT_PER_S.fullmatch(name):
        return right[1] or name
    if _OTHER_UNIT.fullmatch(name):
        raise InvalidValue("columns", name, "rates in bit/s: convert them and end the name in _bit_per_s")
    if _LIKE_TIME.fullmatch(name):
        raise InvalidValue("columns", name, f"rates in bit/s beside {_TIME!r}, the only time: leave this column out")
    return name


def _numbers(name: str, column: pd.Series) -> np.ndarray:
    """A column as floats, NaN where it is empty."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "iuf":
        return column.to_numpy(dtype=float, na_value=np.nan)
    numbers = pd.to_numeric(column.astype(str), errors="coerce").to_numpy(dtype=float)
    row = int((~(np.abs(numbers) <= _MOST_RATE)).argmax())  # whole numbers that are too long for pandas come here too
    raise InvalidValue(f"row {row + 1}, column {name!r}", column.iloc[[row]].tolist()[0], "a number")


def _spacing(times: np.ndarray) -> float:
    """The interval [s]: of all numbers that the rounded times allow, the shortest to write."""
    wrong = ~(np.abs(times) <= _LATEST_S)
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidValue(
            f"{_TIME}, row {row + 1}", float(times[row]), "a time in seconds, at most 1e11; ms and ns are not"
        )
    steps = np.diff(times)
    usual = float(np.quantile(steps, 0.5, method="lower"))  # one of the steps, though there be two
    rounding = 2.0 * float(np.spacing(np.abs(times).max()))
    uneven = (steps <= 0.0) | (np.abs(steps - usual) > max(_EVEN * usual, rounding))
    if uneven.any():
        row = int(uneven.argmax())
        before, got = float(times[row]), float(times[row + 1])
        if got <= before or usual <= 0.0:
            raise InvalidValue(f"{_TIME}, row {row + 2}", got, f"a time after {before:.12g}, that of the row before")
        takes = f"{before + usual:.12g}, one interval of {usual:.6g} s after the row before; gaps are not filled"
        raise InvalidValue(f"{_TIME}, row {row + 2}", got, takes)
    mean = float(times[-1] - times[0]) / len(steps)
    written = (float(f"{mean:.{digits}g}") for digits in range(1, 18))
    return next(number for number in written if abs(number - mean) <= rounding / len(steps))


def _csv(path: str | os.PathLike[str], content: bytes) -> pd.DataFrame:
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a first row that is longer than the header
            header = pd.read_csv(
                io.BytesIO(content), header=None, nrows=1, dtype=str, keep_default_na=False, skipinitialspace=True
            )
            frame = pd.read_csv(io.BytesIO(content), header=0, index_col=False, low_memory=False, skipinitialspace=True)
    except (ValueError, pd.errors.ParserWarning) as error:
        raise FileError(path, f"is no CSV: {shorten(' '.join(str(error).split()), 200)}") from None
    frame.columns = header.iloc[0].tolist()  # as written: pandas renames double ones
    return frame


def _parquet(path: str | os.PathLike[str], content: bytes) -> pd.DataFrame:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise FileError(path, "is Parquet, which needs pyarrow: `pip install pyarrow`") from None
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows * file.metadata.num_columns > _MAX_VALUES:  # a small file may unpack to a large table
            raise FileError(path, f"holds more values than a trace may ({_MAX_VALUES})")
        return file.read().to_pandas()
    except FileError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError(path, f"is no Parquet: {shorten(' '.join(str(error).split()), 200)}") from None
