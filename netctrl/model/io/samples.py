"""From a table's rows to even samples: the column of the times and its unit, means over bins, missing inputs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from netctrl.core.errors import InvalidValue, did_you_mean, optional_import
from netctrl.model.io.table import LIKE_TIME, SAME, TIME, numbers, spacing, usual_step
from netctrl.model.io.validation_errors import shorten

if TYPE_CHECKING:
    import pandas as pd

_HELD = 3  # longest gap of an input that is bridged by its last value [samples]
_MAX_BINS = 2**24
_MICRO = ("us", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s", "usec")
_UNITS = {"ns": 1e-9, **dict.fromkeys(_MICRO, 1e-6), "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0}
_UNIT = re.compile(rf"(?:^|.*[\s_\[(])({'|'.join(_UNITS)})[\])]?", re.IGNORECASE)
_SHORT = re.compile(rf"ts?[\s_]*[\[(]?({'|'.join(_UNITS)})?[\])]?|s(ec(onds)?)?", re.IGNORECASE)
_EPOCH = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))  # greater times since 1970 are in ns, us, ms until the year 5138


def time_column(columns: list[str], others: Collection[str], time: str | None) -> str:
    """Name of the column of times: `time`, else time_s, else the first with a usual name that isn't among `others`."""
    if time is not None:
        if time not in columns or time in others:
            takes = f"a column that has the times: {shorten(', '.join(columns), 200)}{did_you_mean(time, columns)}"
            raise InvalidValue("time", time, takes)
        return time
    likely = [name for name in columns if LIKE_TIME.fullmatch(name) or _SHORT.fullmatch(name)]
    found = [name for name in (TIME, *likely) if name in columns and name not in others]
    if not found:
        takes = f"a column {TIME!r}, time (--time) with another name, or interval_s (--interval) without times"
        raise InvalidValue("columns", shorten(", ".join(columns)), takes)
    return found[0]


def seconds(name: str, column: pd.Series) -> tuple[np.ndarray, str]:
    """Times in seconds, and what was assumed: dates, the unit in the name, or that of such large numbers since 1970."""
    with optional_import():
        import pandas as pd

    kind = getattr(column.dtype, "kind", "O")
    if kind not in "iufmM":
        text = column.astype(str).str.strip().str.replace("/", "-").str.replace(r"[,.](?=\d+$)", ".", regex=True)
        told = pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
        if told.isna().any():
            row = int(told.isna().to_numpy().argmax())
            takes = "a number or a date as in 2024-03-01 12:00:00.5"
            raise InvalidValue(f"row {row + 1}, column {name!r}", column.iloc[[row]].tolist()[0], takes)
        column, kind = told, "M"
    if kind in "mM":
        return (column - column.iloc[0]).dt.total_seconds().to_numpy(dtype=float), f"{name}: read as dates"
    unit = _UNIT.fullmatch(name)
    largest = float(np.abs(numbers(name, column)).max(initial=0.0))
    guess = next((scale for least, scale in _EPOCH if largest >= least), 1.0)
    scale = _UNITS[unit[1].lower()] if unit else guess
    if kind in "iu" and largest > 2.0**53:  # ns since 1970 aren't exact as floats
        column = column - column.iloc[0]
    told = next(word for word, value in _UNITS.items() if value == scale)
    return numbers(name, column) * scale, "" if name == TIME else f"{name}: read as times in {told}"


def common_spacing(name: str, times: np.ndarray, starts: Sequence[int]) -> float:
    """The common interval of all segments [s]; segments of one row have none."""
    found: float | None = None
    for first, last in pairwise([*starts, len(times)]):
        if last - first < 2:
            continue
        step = spacing(times[first:last], first, name=name, bins=True)
        if found is not None and abs(step - found) > SAME * found:
            takes = f"the interval of the segments before, {found:.9g} s: resample, or identify the segments separately"
            raise InvalidValue(f"{name}, interval of the segment at row {first + 1}", step, takes)
        found = step if found is None else found
    if found is None:
        raise InvalidValue("segments", "segments of one row each", "a column that keeps its value within a segment")
    return found


def binned(
    times: np.ndarray, starts: Sequence[int], values: np.ndarray, bin_s: float
) -> tuple[np.ndarray, tuple[int, ...], str]:
    """Means of the values over bins, NaN in empty ones; the segments' new starts; a note.

    Bins begin at multiples of `bin_s`. Where samples are as far apart as the bins are wide, the first one is the middle
    of a bin instead: times that wander a little stay in their bins.
    """
    usual, wide = usual_step(times, starts)
    means, edges, counts = [], [0], []
    for first, last in pairwise([*starts, len(times)]):
        place = times[first:last] / bin_s
        if not np.isfinite(place).all():
            row = int((~np.isfinite(place)).argmax())
            raise InvalidValue(f"the time in row {first + row + 1}", float(times[first + row]), "a time in seconds")
        low = place.min() - 0.5 if usual > 0.5 * bin_s else np.floor(place.min() + SAME)
        if edges[-1] + place.max() - low > _MAX_BINS:
            raise InvalidValue("bin_s", bin_s, f"bins of which at most {_MAX_BINS} cover these times")
        k = np.floor(place - low + SAME).astype(int)
        counts.append(np.bincount(k))
        there = np.isfinite(values[first:last])
        for_mean = np.where(there, values[first:last], 0.0)
        with np.errstate(invalid="ignore"):
            means.append(
                np.column_stack(
                    [np.bincount(k, for_mean[:, j]) / np.bincount(k, there[:, j]) for j in range(values.shape[1])]
                )
            )
        edges.append(edges[-1] + len(counts[-1]))
    count = np.concatenate(counts)
    empty = int((count == 0).sum())
    if 2 * empty > len(count):
        raise InvalidValue("bin_s", bin_s, f"bins most of which have samples, as {wide:.2g} s would: {empty} are empty")
    least = count[count > 0].min()
    note = f"means over {len(count)} bins of {bin_s:g} s, {least} to {count.max()} rows each; {empty} bins are empty"
    return np.concatenate(means), tuple(edges[:-1]), note


def held(
    names: Sequence[str], u: np.ndarray, starts: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...], tuple[str, ...]]:
    """Inputs whose gaps of at most 3 samples have the value before; the rows kept, without longer gaps; the starts of
    the segments between these; notes."""
    if not np.isnan(u).any():
        return u, np.ones(len(u), bool), tuple(starts), ()
    rows = np.arange(len(u))
    part = np.searchsorted(starts, rows, side="right")
    begin, end = np.array(starts)[part - 1], np.array([*starts[1:], len(u)])[part - 1]
    u, keep, notes = u.copy(), np.ones(len(u), bool), []
    for j, name in enumerate(names):
        missing = np.isnan(u[:, j])
        before = np.maximum.accumulate(np.where(missing, -1, rows))
        after = np.minimum.accumulate(np.where(missing, len(u), rows)[::-1])[::-1]
        short = missing & (before >= begin) & (np.minimum(after, end) - before - 1 <= _HELD)
        u[short, j] = u[before[short], j]
        keep &= ~(missing & ~short)
        if short.any():
            notes.append(f"{name}: {short.sum()} missing samples have the value before them")
    if not keep.any():
        raise InvalidValue("inputs", "a column without a value", "inputs that have values at the same times")
    first = keep & ((rows == begin) | ~np.r_[False, keep[:-1]])
    if not keep.all():
        notes.append(f"{(~keep).sum()} samples in longer gaps of the inputs are left out: segments begin after them")
    return u[keep], keep, tuple(map(int, np.flatnonzero(first[keep]))), tuple(notes)
