"""What `netctrl.identify` takes for signals: arrays, pandas' tables, files and names all give the same trace."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.ident.data.signals import signals_of
from netctrl.model.datasets import data_path
from netctrl.model.signals import SignalTrace
from netctrl.model.trace import RateTrace

U = np.arange(12.0).reshape(6, 2) ** 2
Y = np.cos(np.arange(6.0))
DAY = pd.date_range("2024-03-01", periods=6, freq="250ms", tz="Europe/Berlin")
FRAME = pd.DataFrame({"a": U[:, 0], "b": U[:, 1], "y": Y})


def same(found: SignalTrace, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
    np.testing.assert_array_equal(found.input_values, U)
    np.testing.assert_array_equal(found.output_values, Y[:, None])
    assert (found.inputs, found.outputs, found.interval_s) == (inputs, outputs, 0.25)


@pytest.mark.parametrize(
    ("call", "inputs", "outputs"),
    [
        (lambda: signals_of(U, Y, interval_s=0.25), ("u1", "u2"), ("y1",)),
        (lambda: signals_of(U.tolist(), Y[:, None], interval_s=0.25), ("u1", "u2"), ("y1",)),
        (lambda: signals_of(U, Y, interval_s=0.25, inputs=["p", "q"], outputs=["r"]), ("p", "q"), ("r",)),
        (lambda: signals_of(FRAME[["a", "b"]], FRAME["y"], interval_s=0.25), ("a", "b"), ("y",)),
        (lambda: signals_of(FRAME.set_index(DAY)[["a", "b"]], FRAME.set_index(DAY)["y"]), ("a", "b"), ("y",)),
        (lambda: signals_of(FRAME.set_index(DAY)[["a", "b"]], Y), ("a", "b"), ("y1",)),
        (lambda: signals_of(U, FRAME.set_index(DAY - DAY[0])["y"]), ("u1", "u2"), ("y",)),
        (lambda: signals_of(FRAME.set_index(DAY), inputs=["a", "b"], outputs=["y"]), ("a", "b"), ("y",)),
        (lambda: signals_of(FRAME.set_index(DAY - DAY[0]), inputs=["a", "b"], outputs=["y"]), ("a", "b"), ("y",)),
        (
            lambda: signals_of(FRAME.assign(time_s=0.25 * np.arange(6)), inputs=["a", "b"], outputs=["y"]),
            ("a", "b"),
            ("y",),
        ),
    ],
)
def test_each_way_to_say_it_is_the_same_trace(call, inputs, outputs) -> None:
    same(call(), inputs, outputs)


def test_a_file_and_a_bundled_name_are_traces() -> None:
    path = data_path("traces/connet-link.csv")
    one, other = (signals_of(name, inputs=["R"], outputs=["delay", "jitter"]) for name in (path, "connet-link"))
    np.testing.assert_array_equal(one.output_values, other.output_values)
    assert one.outputs == ("delay", "jitter")
    trace = netctrl.read("connet-link", inputs=["R"], outputs=["delay"])
    assert signals_of(trace) is trace


def test_identify_takes_arrays_as_it_takes_a_trace() -> None:
    random = np.random.default_rng(3)
    u = random.choice([-1.0, 1.0], 400)
    y = np.convolve(u, 0.5 ** np.arange(1, 30))[:400] + 0.01 * random.standard_normal(400)
    trace = SignalTrace(interval_s=0.1, input_values=u, output_values=y)
    one, other = netctrl.identify(u, y, interval_s=0.1, order=1), netctrl.identify(trace, order=1)
    np.testing.assert_array_equal(one.model.A, other.model.A)
    assert one.model.A[0, 0] == pytest.approx(0.5, abs=0.01)


GAP = FRAME.set_index(DAY).drop(DAY[3])


@pytest.mark.parametrize(
    ("call", "argument", "said"),
    [
        (lambda: signals_of(U), "y", "netctrl.identify(u, y, interval_s=0.1)"),
        (lambda: signals_of(7.0), "trace", "a DataFrame or a file with `inputs` and `outputs`"),
        (lambda: signals_of(U, Y), "interval_s", "these arrays don't have"),
        (lambda: signals_of(U.T, Y, interval_s=1.0), "input_values", "transpose it"),
        (lambda: signals_of(Y[None, :], Y[None, :], interval_s=1.0), "input_values", "transpose it"),
        (lambda: signals_of(Y, Y[None, :], interval_s=1.0), "output_values", "transpose it"),
        (lambda: signals_of(U, Y[1:], interval_s=1.0), "output_values", "as many rows"),
        (lambda: signals_of(U, Y, interval_s=1.0, segments="s"), "segments", "no value beside arrays"),
        (lambda: signals_of(FRAME, inputs=["a"]), "outputs", "names of the table's columns"),
        (lambda: signals_of(FRAME, inputs=["a"], outputs=["y"]), "columns", "a column 'time_s'"),
        (lambda: signals_of(FRAME, interval_s=1.0), "inputs", "names of the table's columns"),
        (lambda: signals_of(GAP, inputs=["a"], outputs=["y"]), "time_s, row 4", "0.25 to 0.5 s, 0.25 s in the median"),
        (lambda: signals_of(GAP, inputs=["a"], outputs=["y"]), "time_s, row 4", "bin_s=0.25 (--bin 0.25s)"),
        (lambda: signals_of(U, Y, interval_s=1.0, bin_s=1.0), "bin_s", "no value beside arrays"),
        (lambda: signals_of([(U, Y), (U, Y[:, None])]), "interval_s", "these arrays don't have"),
        (
            lambda: signals_of([(U, Y), (U[:, 0], Y)], interval_s=1.0),
            "trace 2",
            "takes the signals of the first: u1, u2, y1",
        ),
        (lambda: signals_of([FRAME, FRAME], interval_s=1.0, inputs=["a"]), "outputs", "names of the table's columns"),
        (lambda: signals_of(GAP[["a"]], GAP["y"]), "time_s, row 4", "frame.resample('0.25s').mean()"),
        (lambda: signals_of(GAP["a"], FRAME["y"]), "y", "samples taken at the same times"),
        (lambda: signals_of(FRAME.set_index(DAY)["a"], Y, interval_s=1.0), "interval_s", "the index gives 0.25 s"),
        (lambda: signals_of("conet-link", inputs=["R"], outputs=["delay"]), "trace", "did you mean 'connet-link'?"),
        (lambda: signals_of("connet-link", Y), "y", "no value with a trace"),
    ],
)
def test_what_is_no_trace_is_named_with_its_remedy(call, argument, said) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)) as refusal:
        call()
    assert refusal.value.argument == argument


def test_the_remedy_of_an_uneven_index_works() -> None:
    even = GAP.resample("0.25s").mean().interpolate()
    found = signals_of(even, inputs=["a"], outputs=["y"])
    assert (len(found), found.interval_s) == (6, 0.25)
    np.testing.assert_array_equal(np.delete(found.output_values[:, 0], 3), np.delete(Y, 3))


def test_bins_keep_the_gap_of_an_uneven_table() -> None:
    """The first sample is the middle of a bin; the missing input has the value before it, the output is missing."""
    found = signals_of(GAP, inputs=["a"], outputs=["y"], bin_s=0.25)
    np.testing.assert_array_equal(found.input_values[:, 0], U[[0, 1, 2, 2, 4, 5], 0])
    np.testing.assert_array_equal(found.output_values[:, 0], np.where(np.arange(6) == 3, np.nan, Y))
    assert [note.split(":")[0] for note in found.notes] == [
        "means over 6 bins of 0.25 s, 1 to 1 rows each; 1 bins are empty",
        "a",
    ]


def test_several_experiments_are_one_trace(tmp_path) -> None:
    path = tmp_path / "x.csv"
    FRAME.to_csv(path, index=False)
    names = {"inputs": ["a", "b"], "outputs": ["y"], "interval_s": 0.25}
    trace = signals_of(FRAME, **names)
    for found in (
        signals_of([FRAME, path, str(path)], **names),
        signals_of([(U, Y)] * 3, **names),
        SignalTrace.joined([SignalTrace.joined([trace, trace]), trace]),
    ):
        assert (found.starts, found.interval_s, found.inputs) == ((0, 6, 12), 0.25, ("a", "b"))
        np.testing.assert_array_equal(found.input_values, np.vstack([U, U, U]))
        np.testing.assert_array_equal(found.output_values[:, 0], np.tile(Y, 3))


def test_a_split_may_leave_a_single_sample_of_several_signals() -> None:
    _, last = SignalTrace(interval_s=1.0, input_values=U, output_values=Y, starts=(0, 5)).split(0.1)
    assert (len(last), last.starts, last.inputs) == (1, (0,), ("u1", "u2"))
    np.testing.assert_array_equal(last.input_values, U[5:])


def test_a_trace_of_rates_has_the_index_too() -> None:
    found = RateTrace.from_pandas(FRAME.assign(y=1.0).set_index(DAY))
    assert (found.interval_s, found.names) == (0.25, ("a", "b", "y"))
    with pytest.raises(FileError, match="can't be read"):
        signals_of("nowhere.csv", inputs=["a"], outputs=["y"])
