"""Measured inputs and outputs: what comes back from tables, segments, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netctrl import InvalidValue, SignalTrace
from netctrl.core.errors import FileError
from netctrl.model.signals import read_signals


def signals(**changes) -> SignalTrace:
    values = {"interval_s": 0.5, "input_values": [1.0, 2.0, 3.0], "output_values": [[4.0, 7.0], [5.0, 8.0], [6.0, 9.0]]}
    return SignalTrace(**(values | changes))


def csv(tmp_path: Path, text: str, name: str = "x.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_names_shapes_and_segments() -> None:
    trace = signals(starts=[0, 2])
    assert (trace.inputs, trace.outputs, trace.starts, len(trace)) == (("u1",), ("y1", "y2"), (0, 2), 3)
    assert trace.input_values.shape == (3, 1)
    (u, y), (v, _) = trace.segments()
    assert (u.tolist(), y.tolist(), v.tolist()) == ([[1.0], [2.0]], [[4.0, 7.0], [5.0, 8.0]], [[3.0]])


def test_arrays_are_copies_that_cant_be_written() -> None:
    u = np.array([1.0, 2.0, 3.0])
    trace = signals(input_values=u)
    u[0] = 9.0
    assert trace.input_values[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        trace.output_values[0] = 0.0


def test_a_split_keeps_segments_and_samples() -> None:
    trace = signals(starts=(0, 2))
    learned, tried = trace.split(1 / 3)
    assert (len(learned), learned.starts, len(tried), tried.starts) == (2, (0,), 1, (0,))
    learned, tried = trace.split(2 / 3)
    assert (len(learned), tried.starts, tried.input_values.tolist()) == (1, (0, 1), [[2.0], [3.0]])
    for share in (0.0, 1.0, 0.01, "half"):
        with pytest.raises(InvalidValue, match=r"share: got .*a share of the trace above 0 and below 1"):
            trace.split(share)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_trace_comes_back_from_its_table(tmp_path, suffix) -> None:
    trace = signals(inputs=("R",), outputs=("delay [ms]", "jitter"), starts=(0, 1), interval_s=0.1)
    frame = trace.to_pandas()
    path = tmp_path / f"x{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    found = read_signals(path, ["R"], ["delay [ms]", "jitter"], segments="segment")
    assert (found.inputs, found.outputs, found.starts) == (trace.inputs, trace.outputs, trace.starts)
    assert found.interval_s == pytest.approx(0.1)
    assert np.array_equal(found.input_values, trace.input_values)
    assert np.array_equal(found.output_values, trace.output_values)


def test_time_may_jump_between_segments_alone(tmp_path) -> None:
    text = "time_s,u,y,run\n0,1,2,a\n1,2,3,a\n9,3,4,b\n10,4,5,b\n0,5,6,a\n1,6,7,a\n"
    path = csv(tmp_path, text)
    found = read_signals(path, ["u"], ["y"], segments="run")
    assert (found.starts, found.interval_s) == ((0, 2, 4), 1.0)
    with pytest.raises(FileError, match=r"time_s, row 3: got 9\.0, takes 2, one interval of 1 s after the row before"):
        read_signals(path, ["u"], ["y"])


def test_the_time_may_be_the_index() -> None:
    frame = pd.DataFrame({"u": [1, 2], "y": [3, 4]}, index=pd.Index([5.0, 5.25], name="time_s"))
    assert SignalTrace.from_pandas(frame, ["u"], ["y"]).interval_s == 0.25


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,u,y\n0,,2\n1,,3\n", "input_values, column 'u': got 'no value', takes a signal that was measured"),
        ("time_s,u,y\n0,1,2\n1,2,inf\n", "output_values, row 2, column 'y': got inf"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path, text, said) -> None:
    with pytest.raises(FileError, match=re.escape(said)):
        read_signals(csv(tmp_path, text), ["u"], ["y"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,u,y,run\n0,1,2,1\n1,1,2,\n", "row 2, column 'run': got nothing"),
        ("time_s,u,y,run\n0,1,2,1\n1,1,2,1\n5,1,2,2\n7,1,2,2\n", "time_s, interval of the segment at row 3: got 2.0"),
        ("time_s,u,y,run\n0,1,2,1\n1,1,2,1\n5,1,2,2\n5,1,2,2\n", "time_s, row 4: got 5.0, takes a time after 5"),
    ],
)
def test_what_is_wrong_with_segments_is_named(tmp_path, text, said) -> None:
    with pytest.raises(FileError, match=re.escape(said)):
        read_signals(csv(tmp_path, text), ["u"], ["y"], segments="run")
    with pytest.raises(InvalidValue, match="segments of one row each"):
        read_signals(csv(tmp_path, "time_s,u,y,run\n0,1,2,1\n1,1,2,2\n"), ["u"], ["y"], segments="run")


@pytest.mark.parametrize(
    ("requested", "argument", "said"),
    [
        ((["v"], ["y"]), "inputs", "one of the table's columns: u, y"),
        ((["u"], ["time_s"]), "outputs", "the table's columns"),
        ((["u"], ["u"]), "outputs", "a column that isn't also an input"),
        (("u", ["y"]), "inputs", "names of columns, without repetition"),
        ((["u", "u"], ["y"]), "inputs", "without repetition"),
        (([], ["y"]), "inputs", "names of columns"),
        (([["u"]], ["y"]), "inputs", "a name of 1 to 64 printable"),
    ],
)
def test_columns_that_are_asked_for_must_be_there(tmp_path, requested, argument, said) -> None:
    path = csv(tmp_path, "time_s,u,y\n0,1,2\n1,2,3\n")
    with pytest.raises(InvalidValue, match=re.escape(said)) as refusal:
        read_signals(path, *requested)
    assert refusal.value.argument == argument
    with pytest.raises(InvalidValue, match="segments: got 'day'"):
        read_signals(path, ["u"], ["y"], segments="day")


@pytest.mark.parametrize(
    ("changes", "argument", "said"),
    [
        ({"input_values": [1.0, 2.0]}, "output_values", "as many rows as input_values, 2: cut both"),
        ({"input_values": [[1.0, 2.0, 3.0]] * 2}, "input_values", "transpose it"),
        ({"input_values": [1.0, None, 3.0]}, "input_values", "an array of numbers"),
        ({"input_values": [1.0, 1j, 3.0]}, "input_values", "an array of numbers"),
        ({"input_values": [1.0, 1e251, 3.0]}, "input_values, row 2, column 'u1'", "a number from -1e+250 to 1e+250"),
        ({"inputs": ("a", "b")}, "inputs", "1 names, one for each column"),
        ({"inputs": ("y1",)}, "names", "each column's name only once"),
        ({"inputs": "u"}, "inputs", "a list of names"),
        ({"inputs": ("time_s",)}, "inputs", "tables use this one for the time"),
        ({"starts": (1,)}, "starts", "increasing rows from 0"),
        ({"starts": (0, 3)}, "starts", "below the number of samples, 3"),
        ({"starts": ()}, "starts", "the first row of each segment"),
        ({"notes": "held"}, "notes", "sentences, as a tuple of text"),
        ({"input_values": [np.nan] * 3}, "input_values, column 'u1'", "a signal that was measured"),
        ({"interval_s": 0.0}, "interval_s", "a time from 1e-9"),
    ],
)
def test_what_a_trace_refuses(changes, argument, said) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)) as refusal:
        signals(**changes)
    assert refusal.value.argument == argument


def test_other_files_are_refused(tmp_path) -> None:
    with pytest.raises(FileError, match=r"unknown suffix; takes \.csv, \.parquet"):
        read_signals(tmp_path / "x.pcap", ["u"], ["y"])
    with pytest.raises(FileError, match="can't be read"):
        read_signals(tmp_path / "x.csv", ["u"], ["y"])
    for path in (3, b"x.csv", "a\0.csv", None):
        with pytest.raises(InvalidValue, match=r"path: got .*the name of a file"):
            read_signals(path, ["u"], ["y"])
    with pytest.raises(InvalidValue, match="frame: got 'dict', takes a pandas DataFrame"):
        SignalTrace.from_pandas({}, ["u"], ["y"])
