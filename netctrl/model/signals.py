"""Measured inputs and outputs of a plant, evenly sampled, in one or several segments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.core.errors import FileError, InvalidValue, checked_number, checked_whole, did_you_mean, optional_import
from netctrl.core.files import checked_path
from netctrl.model.io.display import Shown
from netctrl.model.io.fields import label
from netctrl.model.io.samples import binned, common_spacing, held, seconds, time_column
from netctrl.model.io.table import SAME, TABLES, TIME, check_once, column_names, interval, numbers, read_table, timed
from netctrl.model.io.validation_errors import shorten, shown

if TYPE_CHECKING:
    import pandas as pd

_MAX = 1e250  # sums of as many as memory holds are still floats
_SUFFIXES = (*TABLES, ".tsv", ".txt", ".dat", ".log")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class SignalTrace(Shown):
    """Sampled inputs and outputs of a system: T samples of m inputs and p outputs.

    Parameters
    ----------
    interval_s : float
        Sampling interval [s].
    input_values, output_values : array_like, shapes (T, m), (T, p)
        Values in any unit; one-dimensional for a single signal; copied and made read-only. NaN is a missing value. In
        gaps of at most 3 samples an input has the value before; longer gaps are left out, and a segment begins after.
    inputs, outputs : tuple of str
        Names of the m inputs and p outputs; by default u1, u2, ... and y1, y2, ...
    starts : tuple of int
        Row, from 0, of the first sample of each segment; no data exists between segments. By default one segment.
    notes : tuple of str
        What was done to the samples, in words.

    Raises
    ------
    InvalidValue
        Shapes that don't fit, a repeated name, or a value that isn't a number; the message names the row (from 1) and
        the column.

    Examples
    --------
    >>> import netctrl
    >>> trace = netctrl.SignalTrace(interval_s=1.0, input_values=[0, 1, 1, 1], output_values=[0, 0, 0.5, 0.75])
    >>> trace.inputs, trace.outputs, len(trace)
    (('u1',), ('y1',), 4)
    >>> [len(part) for part in trace.split(0.25)]
    [3, 1]
    """

    interval_s: float
    input_values: np.ndarray
    output_values: np.ndarray
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    starts: tuple[int, ...] = field(default=(0,))
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "interval_s", interval("interval_s", self.interval_s))
        for kind, letter in (("input", "u"), ("output", "y")):
            values = _table(f"{kind}_values", getattr(self, f"{kind}_values"))
            names = _names(f"{kind}s", getattr(self, f"{kind}s"), letter, values.shape[1])
            _check_range(f"{kind}_values", names, values)
            put(self, f"{kind}s", names)
            put(self, f"{kind}_values", values)
        check_once([*self.inputs, *self.outputs])
        T = len(self.input_values)
        if len(self.output_values) != T:
            takes = f"as many rows as input_values, {T}: cut both to the same samples"
            raise InvalidValue("output_values", f"{len(self.output_values)} rows", takes)
        put(self, "starts", _starts(self.starts, T))
        if not isinstance(self.notes, list | tuple) or not all(isinstance(note, str) for note in self.notes):
            raise InvalidValue("notes", self.notes, "sentences, as a tuple of text")
        u, kept, starts, told = held(self.inputs, self.input_values, self.starts)
        for name, values in (("input_values", u), ("output_values", self.output_values[kept])):
            values.setflags(write=False)
            put(self, name, values)
        put(self, "starts", starts)
        put(self, "notes", (*self.notes, *told))

    def __len__(self) -> int:
        return len(self.input_values)

    def segments(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Inputs and outputs of each segment, as views."""
        edges = [*self.starts, len(self)]
        spans = [slice(first, last) for first, last in pairwise(edges)]
        return [(self.input_values[span], self.output_values[span]) for span in spans]

    def split(self, share: float) -> tuple[SignalTrace, SignalTrace]:
        """Split the trace into its first and its last samples.

        Parameters
        ----------
        share : float
            Share of the samples in the second part, above 0 and below 1.

        Returns
        -------
        first, last : SignalTrace

        Raises
        ------
        InvalidValue
            A share that leaves one part empty.
        """
        takes = "a share of the trace above 0 and below 1, as in 0.3, that leaves samples on both sides"
        desired = checked_number("share", share, takes, above=0.0)
        at = round(len(self) * (1.0 - desired))
        if not 0 < at < len(self):
            raise InvalidValue("share", share, takes)
        return self._cut(0, at), self._cut(at, len(self))

    def _cut(self, first: int, last: int) -> SignalTrace:
        cut = copy(self)  # not rebuilt: a single sample of two signals would look like a transposed table
        for name in ("input_values", "output_values"):
            object.__setattr__(cut, name, getattr(self, name)[first:last])
        inside = [start - first for start in self.starts if first < start < last]
        object.__setattr__(cut, "starts", (0, *inside))
        return cut

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per sample: `time_s` [s], inputs, outputs, and `segment` where there are several."""
        with optional_import():
            import pandas as pd

        values = np.hstack([self.input_values, self.output_values])
        frame = pd.DataFrame(values, columns=[*self.inputs, *self.outputs])
        frame.insert(0, TIME, np.arange(len(self)) * self.interval_s)
        if len(self.starts) > 1:
            frame["segment"] = np.searchsorted(self.starts, np.arange(len(self)), side="right")
        return frame

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        segments: str | None = None,
        time: str | None = None,
        interval_s: float | None = None,
        bin_s: float | None = None,
    ) -> SignalTrace:
        """A trace from a DataFrame.

        Parameters
        ----------
        frame : DataFrame
            A column of times and a column for each signal. The times may also be the index, as `time_s`, dates or
            durations.
        inputs, outputs : sequence of str
            Names of the input and the output columns.
        segments : str, optional
            Name of a column; a segment begins where its value changes, and the time may jump there.
        time : str, optional
            Column of the times, as numbers or dates; by default `time_s`, or the first with a usual name such as t,
            timestamp or time_ms. Numbers are in the unit at the end of the name, else in seconds; those too large for
            seconds since 1970 are in ms, us or ns.
        interval_s : float, optional
            Sampling interval of a table without times [s].
        bin_s : float, optional
            Width of bins [s] over whose rows the signals are averaged, for times that aren't evenly spaced. A bin
            without rows is missing.

        Returns
        -------
        SignalTrace

        Raises
        ------
        InvalidValue
            A missing or repeated column, uneven times without `bin_s`, a time that doesn't increase, a value that isn't
            a number; the message names the row (from 1, below the header) and the column.

        Examples
        --------
        >>> import netctrl, pandas as pd
        >>> log = pd.DataFrame({"t_ms": [0, 90, 210, 300, 420], "rate": [1, 1, 2, 2, 1], "delay": [5, 5, 6, None, 6]})
        >>> trace = netctrl.SignalTrace.from_pandas(log, ["rate"], ["delay"], bin_s=0.1)
        >>> trace.output_values[:, 0].tolist()
        [5.0, 5.0, 6.0, nan, 6.0]
        """
        with optional_import():
            import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InvalidValue("frame", type(frame).__name__, "a pandas DataFrame")
        frame = frame if interval_s is not None or time is not None else timed(frame)
        frame = frame.loc[:, [not isinstance(name, str) or bool(name.strip()) for name in frame.columns]]
        columns = column_names(frame)
        check_once(columns)
        frame = frame.set_axis(columns, axis=1)
        segments = None if segments is None else label("segments", segments)
        desired = {"inputs": _requested("inputs", inputs), "outputs": _requested("outputs", outputs)}
        signals = {name for names in desired.values() for name in names}
        if interval_s is None:
            time = time_column(columns, signals - {TIME}, time)
        elif time is not None or TIME in columns:
            raise InvalidValue("interval_s", interval_s, f"no value with a table that has times: {time or TIME}")
        for argument, names in {**desired, "segments": () if segments is None else (segments,)}.items():
            for name in names:
                if name == time or name not in columns:
                    known = [column for column in columns if column != time]
                    takes = f"one of the table's columns: {shorten(', '.join(known), 200)}{did_you_mean(name, known)}"
                    raise InvalidValue(argument, name, takes)
        if double := set(desired["inputs"]) & set(desired["outputs"]):
            raise InvalidValue("outputs", min(double), "a column that isn't also an input")
        if len(frame) < 2:
            raise InvalidValue("rows", len(frame), "at least 2 below the header, to determine the interval")
        starts, m = (0,) if segments is None else _changes(frame[segments]), len(desired["inputs"])
        if interval_s is None:
            times, note = seconds(str(time), frame[time])
        else:
            times, note = interval("interval_s", interval_s) * np.arange(len(frame)), ""
        values = np.column_stack([numbers(name, frame[name]) for names in desired.values() for name in names])
        notes = [note] if note else []
        if bin_s is not None:
            step = interval("bin_s", bin_s)
            values, starts, note = binned(times, starts, values, step)
            notes.append(note)
        else:
            step = common_spacing(str(time), times, starts) if interval_s is None else float(interval_s)
        return cls(
            interval_s=step,
            input_values=values[:, :m],
            output_values=values[:, m:],
            inputs=desired["inputs"],
            outputs=desired["outputs"],
            starts=starts,
            notes=tuple(notes),
        )

    @classmethod
    def joined(cls, traces: Sequence[SignalTrace]) -> SignalTrace:
        """One trace of several experiments with the same signals and interval; each is a segment, or several.

        Parameters
        ----------
        traces : sequence of SignalTrace

        Returns
        -------
        SignalTrace

        Raises
        ------
        InvalidValue
            No traces, or traces of other signals or intervals.
        """
        if not traces:
            raise InvalidValue("traces", "none", "at least one trace")
        first = traces[0]
        for k, each in enumerate(traces[1:], 2):
            if (each.inputs, each.outputs) != (first.inputs, first.outputs):
                takes = f"the signals of the first: {', '.join((*first.inputs, *first.outputs))}"
                raise InvalidValue(f"trace {k}", ", ".join((*each.inputs, *each.outputs)), takes)
            if abs(each.interval_s - first.interval_s) > SAME * first.interval_s:
                takes = f"that of the first: {first.interval_s:g} s"
                raise InvalidValue(f"trace {k}", f"an interval of {each.interval_s:g} s", takes)
        rows = np.cumsum([0, *map(len, traces[:-1])])
        return cls(
            interval_s=first.interval_s,
            input_values=np.concatenate([each.input_values for each in traces]),
            output_values=np.concatenate([each.output_values for each in traces]),
            inputs=first.inputs,
            outputs=first.outputs,
            starts=tuple(int(row) + start for row, each in zip(rows, traces, strict=True) for start in each.starts),
            notes=tuple(dict.fromkeys(note for each in traces for note in each.notes)),
        )


def read_signals(
    path: str | os.PathLike[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    segments: str | None = None,
    time: str | None = None,
    interval_s: float | None = None,
    bin_s: float | None = None,
) -> SignalTrace:
    """Read measured inputs and outputs from a file with `SignalTrace.from_pandas`.

    The file is Parquet, or text with commas, semicolons, tabs or spaces between the fields, with a decimal point or
    comma, comments and a header; columns without names are c1, c2, ... The cells -, --, ?, NA, nan and empty ones are
    missing values.

    Raises
    ------
    InvalidValue
        A requested column is missing, or times need `time`, `interval_s` or `bin_s`.
    FileError
        The file can't be read, is of another type or is invalid; the message names row and column.
    """
    if checked_path(path).suffix.lower() not in _SUFFIXES:
        raise FileError(path, f"unknown suffix; takes {', '.join(_SUFFIXES)}, not compressed")
    frame = read_table(path)
    try:
        return SignalTrace.from_pandas(
            frame, inputs, outputs, segments=segments, time=time, interval_s=interval_s, bin_s=bin_s
        )
    except InvalidValue as error:
        if error.argument in ("inputs", "outputs", "segments", "time", "interval_s", "bin_s"):
            raise
        raise FileError(
            path, f"not a valid trace: {error.argument}: got {shown(error.got)}, takes {error.takes}"
        ) from None


def _table(argument: str, values: Any) -> np.ndarray:
    """A two-dimensional copy."""
    takes = "an array of numbers with a row per sample and a column per signal"
    try:
        if np.iscomplexobj(values) or np.asarray(values).dtype.kind not in "fiu":
            raise TypeError
        found = np.array(values, dtype=float, order="C")
    except (ValueError, TypeError):
        raise InvalidValue(argument, "values that are not a table of numbers", takes) from None
    found = found[:, np.newaxis] if found.ndim == 1 else found
    if found.ndim != 2 or 0 in found.shape:
        raise InvalidValue(argument, f"shape {found.shape}", takes)
    if found.shape[1] > found.shape[0]:
        raise InvalidValue(argument, f"shape {found.shape}", f"{takes}: transpose it")
    return found


def _names(argument: str, names: Any, letter: str, count: int) -> tuple[str, ...]:
    if not isinstance(names, list | tuple):
        raise InvalidValue(argument, names, "a list of names")
    found = tuple(label(argument, name) for name in names) or tuple(f"{letter}{i + 1}" for i in range(count))
    if len(found) != count:
        raise InvalidValue(argument, list(found), f"{count} names, one for each column")
    if TIME in found:
        raise InvalidValue(argument, TIME, "another name: tables use this one for the time")
    return found


def _check_range(argument: str, names: Sequence[str], values: np.ndarray) -> None:
    wrong = np.abs(values) > _MAX
    if wrong.any():
        row, column = np.unravel_index(wrong.argmax(), wrong.shape)
        where = f"{argument}, row {row + 1}, column {names[int(column)]!r}"
        raise InvalidValue(
            where, float(values[row, column]), f"a number from -{_MAX:g} to {_MAX:g}, or NaN where missing"
        )
    for k, name in enumerate(names):
        if np.isnan(values[:, k]).all():
            raise InvalidValue(f"{argument}, column {name!r}", "no value", "a signal that was measured")


def _starts(starts: Any, T: int) -> tuple[int, ...]:
    takes = f"increasing rows from 0 to below the number of samples, {T}: the first row of each segment"
    if not isinstance(starts, list | tuple | np.ndarray) or (isinstance(starts, np.ndarray) and starts.ndim != 1):
        raise InvalidValue("starts", starts, takes)
    if len(starts) == 0:
        raise InvalidValue("starts", starts, takes)
    found = tuple(checked_whole("starts", start, takes, at_most=T - 1) for start in starts)
    if found[0] != 0 or any(b <= a for a, b in pairwise(found)):
        raise InvalidValue("starts", found, takes)
    return found


def _requested(argument: str, names: Any) -> tuple[str, ...]:
    takes = "names of columns, without repetition"
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InvalidValue(argument, names, takes)
    found = tuple(label(argument, name) for name in names)
    if len(set(found)) < len(found):
        raise InvalidValue(argument, list(found), takes)
    return found


def _changes(column: pd.Series) -> tuple[int, ...]:
    """The first row, and the rows where a column's value differs from that of the row before."""
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise InvalidValue(f"row {row + 1}, column {column.name!r}", None, "a segment's name or number")
    values = column.to_numpy()
    return (0, *(int(row) + 1 for row in np.flatnonzero(values[1:] != values[:-1])))
