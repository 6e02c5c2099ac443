"""Strict reading of evenly spaced samples from CSV and Parquet; errors name row and column."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.core.errors import FileError, InvalidValue, checked_number, optional_import
from netctrl.core.files import read_bounded
from netctrl.model.io.delimited import read_delimited
from netctrl.model.io.fields import label
from netctrl.model.io.validation_errors import shorten

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")
TIME = "time_s"
SAME = 1e-6
"""Share of an interval within which two are the same: 3 * 0.1 counts as a multiple of 0.1."""
INTERVAL_TAKES = "a time from 1e-9 to 1e9 in s"
LIKE_TIME = re.compile(r"(?:time|timestamp|datetime|date|epoch)(?:[\s_]*[\[(]?[mun]?s(?:ec)?[\])]?)?", re.IGNORECASE)

_MAX_VALUE = 1e18
_LATEST_S = 1e11  # the year 5138; later times are in ms or ns
_EVEN = 1e-2  # share of the interval: tolerance for clocks and rounded times
_MAX_BYTES = 2**31
_MAX_VALUES = 2**28
_SHORT_TIMES = {"t", "ts", "s", "sec", "seconds"}


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The table of a `.parquet` file or of text (`read_delimited`), with columns as written.

    Raises
    ------
    FileError
        The file can't be read, is too large, or isn't such a table.
    """
    content = read_bounded(path, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**20} MiB allowed for a table")
    return (_parquet if Path(path).suffix.lower() == ".parquet" else read_delimited)(path, content)


def column_names(frame: pd.DataFrame) -> list[str]:
    """Names of the columns; InvalidValue for an unusable one."""
    return [_label(place, name) for place, name in enumerate(frame.columns)]


def interval(argument: str, value: Any) -> float:
    """An interval in seconds; InvalidValue names the argument."""
    return checked_number(argument, value, INTERVAL_TAKES, at_least=1e-9, at_most=1e9)


def check_once(names: list[str]) -> None:
    """InvalidValue for a repeated name."""
    if len(set(names)) < len(names):
        double = next(name for name, times in Counter(names).items() if times > 1)
        raise InvalidValue("names", double, "each column's name only once")


def clock(columns: list[str]) -> int:
    """Index of the time column, which must have columns of rates beside it."""
    takes = f"a column {TIME!r} with the starts of the intervals in seconds"
    if TIME not in columns:
        likely = [name for name in columns if LIKE_TIME.fullmatch(name) or name.lower() in _SHORT_TIMES]
        if likely:
            raise InvalidValue("columns", likely[0], f"{takes}: convert this one and rename it")
        raise InvalidValue("columns", shorten(", ".join(columns)), takes)
    if len(columns) == 1:
        raise InvalidValue("columns", TIME, "at least one other column, with rates in bit/s")
    return columns.index(TIME)


def numbers(name: str, column: pd.Series) -> np.ndarray:
    """A column as floats, NaN where empty."""
    with optional_import():
        import pandas as pd

    if getattr(column.dtype, "kind", "O") in "iuf":
        return column.to_numpy(dtype=float, na_value=np.nan)
    found = pd.to_numeric(column.astype(str), errors="coerce").to_numpy(dtype=float)
    row = int((~(np.abs(found) <= _MAX_VALUE)).argmax())  # also whole numbers that are too long for pandas
    raise InvalidValue(f"row {row + 1}, column {name!r}", column.iloc[[row]].tolist()[0], "a number")


def spacing(times: np.ndarray, before: int = 0, *, name: str = TIME, bins: bool = False) -> float:
    """The interval [s]: the shortest decimal number that agrees with the rounded times.

    `before` is the number of rows of the table above, for the row numbers in messages; with `bins` these name the
    means over bins as the remedy.
    """
    wrong = ~(np.abs(times) <= _LATEST_S)
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidValue(
            f"{name}, row {before + row + 1}", float(times[row]), "a time in seconds, at most 1e11; not in ms or ns"
        )
    steps = np.diff(times)
    usual = float(np.quantile(steps, 0.5, method="lower"))  # an actual step, even of two
    rounding = 2.0 * float(np.spacing(np.abs(times).max()))
    back = steps <= 0.0
    uneven = back | (np.abs(steps - usual) > max(_EVEN * usual, rounding))
    if uneven.any():
        row = int((back if usual <= 0.0 else uneven).argmax())
        earlier, got = float(times[row]), float(times[row + 1])
        remedy = f"frame.resample('{usual:.6g}s').mean().interpolate() makes an index by date even"
        if bins:
            _, wide = usual_step(times, (0,))
            remedy = (
                f"steps are {steps.min():.4g} to {steps.max():.4g} s, {usual:.4g} s in the median, and bin_s={wide:.4g}"
                f" (--bin {wide:.4g}s) takes means over even bins"
            )
        takes = f"a time after {earlier:.12g}, that of the row before"
        if got > earlier:
            takes = f"{earlier + usual:.12g}, one interval of {usual:.6g} s after the row before; gaps are not filled"
        if got > earlier or bins:
            takes = f"{takes}: {remedy}"
        raise InvalidValue(f"{name}, row {before + row + 2}", got, takes)
    mean = float(times[-1] - times[0]) / len(steps)
    written = (float(f"{mean:.{digits}g}") for digits in range(1, 18))
    return next(number for number in written if abs(number - mean) <= rounding / len(steps))


def usual_step(times: np.ndarray, starts: Sequence[int]) -> tuple[float, float]:
    """Median step between the times of a segment [s], and a width of bins that nearly all have samples."""
    steps = np.concatenate([np.diff(np.sort(part)) for part in np.split(times, list(starts)[1:])])
    steps = steps[steps > 0.0]
    if not len(steps):
        return 0.0, 0.0
    usual = float(np.quantile(steps, 0.5, method="lower"))
    rare = np.mean(np.abs(steps - usual) > 0.5 * usual) < 0.4  # as with a lost row here and there
    return usual, float(f"{usual:.6g}" if rare else f"{np.quantile(steps, 0.99):.2g}")


def timed(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with a column `time_s`, made from its index if needed: by name [s], date or duration, from 0."""
    with optional_import():
        import pandas as pd

    if TIME in frame.columns:
        return frame
    if frame.index.name == TIME:
        return frame.reset_index()
    if isinstance(frame.index, pd.DatetimeIndex | pd.TimedeltaIndex) and len(frame) > 0:
        seconds = (frame.index - frame.index[0]).total_seconds()
        return frame.reset_index(drop=True).assign(**{TIME: seconds})
    return frame


def index_interval(values: pd.DataFrame | pd.Series | Any) -> float | None:
    """Interval [s] of a table's index by date, duration or `time_s`; None for another index.

    Raises
    ------
    InvalidValue
        The index isn't evenly spaced.
    """
    if not hasattr(values, "iloc") or len(values) < 2:
        return None
    clocked = timed(values.iloc[:, :0] if values.ndim == 2 else values.to_frame("value").iloc[:, :0])
    return spacing(numbers(TIME, clocked[TIME])) if TIME in clocked.columns else None


def _label(place: int, name: Any) -> str:
    if str(name).strip() == "":
        raise InvalidValue(
            f"the name of column {place + 1}", name, "text; pandas leaves its index out with index=False"
        )
    return label(f"the name of column {place + 1}", name.strip() if isinstance(name, str) else name)


def _parquet(path: str | os.PathLike[str], content: bytes) -> pd.DataFrame:
    with optional_import():
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if file.metadata.num_rows * file.metadata.num_columns > _MAX_VALUES:  # a small file may expand to a large table
            raise FileError(path, f"more than the {_MAX_VALUES} values allowed for a trace")
        return file.read().to_pandas()
    except FileError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError(path, f"not valid Parquet: {shorten(' '.join(str(error).split()), 200)}") from None
