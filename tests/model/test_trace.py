"""Measured rates: closed forms, files that come back, every byte of a capture counted once, and what is refused."""

from __future__ import annotations

import io
import math
import re
import struct
import sys
import tracemalloc
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import FileError, InvalidValue, MissingLibrary
from netctrl.model import trace as module
from netctrl.model.io import table as tables
from netctrl.model.trace import RateTrace, rate_trace, read_trace

TOLERANCE = {"closed form": 1e-12, "table": 1e-14, "CSV": 1e-11}  # pandas 2 reads small numbers to 1e-12


def trace(**changes: Any) -> RateTrace:
    values = {"interval_s": 0.5, "names": ("a", "b"), "rate_bit_per_s": [[1.0, 0.0], [3.0, 8.0], [5.0, 1.0]]}
    return RateTrace(**(values | changes))


def csv(tmp_path: Path, text: str, name: str = "x.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# The record


def test_mean_and_deviation_by_hand() -> None:
    found = trace()
    assert found.mean_bit_per_s == pytest.approx([3.0, 3.0], rel=TOLERANCE["closed form"])
    assert found.std_bit_per_s == pytest.approx([math.sqrt(8 / 3), math.sqrt(38 / 3)], rel=TOLERANCE["closed form"])


def test_resampling_takes_means_of_blocks_and_drops_what_is_left() -> None:
    longer = trace().resampled(1.0)
    assert (longer.interval_s, longer.names) == (1.0, ("a", "b"))
    assert longer.rate_bit_per_s.tolist() == [[2.0, 4.0]]
    assert trace().resampled(1.5).rate_bit_per_s.tolist() == [[3.0, 3.0]]
    assert trace().resampled(0.5).rate_bit_per_s.tolist() == trace().rate_bit_per_s.tolist()


def test_three_tenths_is_three_times_a_tenth() -> None:
    assert 3 * 0.1 != 0.3
    assert trace(interval_s=0.1).resampled(0.3).interval_s == 0.3


@pytest.mark.parametrize("interval_s", [0.25, 0.75, 1.4999, 1.50001, 2.0, 1e9, 1e-9])
def test_only_whole_multiples_that_the_trace_holds(interval_s) -> None:
    with pytest.raises(InvalidValue, match=re.escape("a whole multiple of the trace's interval, 0.5 s")) as refusal:
        trace().resampled(interval_s)
    assert (refusal.value.argument, refusal.value.got) == ("interval_s", interval_s)
    assert "at most its length, 1.5 s" in str(refusal.value)


def test_a_trace_is_a_copy_that_cannot_be_written() -> None:
    given_rates = np.ones((2, 1))
    found = RateTrace(1.0, ["a"], given_rates)
    given_rates[0, 0] = 7.0
    assert found.rate_bit_per_s[0, 0] == 1.0
    assert found.names == ("a",)
    with pytest.raises(ValueError, match="read-only"):
        found.rate_bit_per_s[0, 0] = 7.0
    frame = found.to_pandas()
    frame.loc[0, "a"] = 7.0
    assert found.rate_bit_per_s[0, 0] == 1.0


@pytest.mark.parametrize(
    ("changes", "argument", "takes"),
    [
        ({"interval_s": 0.0}, "interval_s", "a time from 1e-9"),
        ({"interval_s": 1e10}, "interval_s", "a time from 1e-9"),
        ({"interval_s": "1s"}, "interval_s", "a time from 1e-9"),
        ({"interval_s": True}, "interval_s", "a time from 1e-9"),
        ({"names": "ab"}, "names", "a name for each column"),
        ({"names": ()}, "names", "a name for each column"),
        ({"names": ("a", "a")}, "names", "only once"),
        ({"names": ("a", "time_s")}, "names", "another name"),
        ({"names": ("a", "")}, "names", "1 to 64 printable"),
        ({"names": ("a", None)}, "names", "1 to 64 printable"),
        ({"names": ("a",)}, "rate_bit_per_s", "shape (T, 1)"),
        ({"rate_bit_per_s": np.zeros((0, 2))}, "rate_bit_per_s", "T at least 1"),
        ({"rate_bit_per_s": [[1.0, 2.0], [3.0]]}, "rate_bit_per_s", "shape (T, 2)"),
        ({"rate_bit_per_s": [[1.0, "x"]]}, "rate_bit_per_s", "shape (T, 2)"),
        ({"rate_bit_per_s": np.ones((1, 2)) * 1j}, "rate_bit_per_s", "shape (T, 2)"),
        ({"rate_bit_per_s": [[1.0, 2.0], [-1e-9, 2.0]]}, "rate_bit_per_s, row 2, column 'a'", "from 0 to 1e18"),
        ({"rate_bit_per_s": [[1.0, 2.0], [1.0, math.inf]]}, "rate_bit_per_s, row 2, column 'b'", "from 0 to 1e18"),
    ],
)
def test_what_is_no_trace_is_refused_by_name(changes, argument, takes) -> None:
    with pytest.raises(InvalidValue, match=re.escape(takes)) as refusal:
        trace(**changes)
    assert refusal.value.argument == argument


# Tables

NAME = st.text("abcXYZ019 .->:,\"'é()[]_", min_size=1, max_size=20).map(str.strip).filter(bool)
NAMES = st.lists(NAME, min_size=1, max_size=4, unique=True)


@st.composite
def traces(draw: st.DrawFn) -> RateTrace:
    names = draw(NAMES.filter(lambda names: all(module._bare(name) == name != "time_s" for name in names)))
    rows = st.lists(st.floats(0.0, 1e18), min_size=len(names), max_size=len(names))
    return RateTrace(draw(st.floats(1e-6, 1e6)), names, draw(st.lists(rows, min_size=2, max_size=8)))


def assert_same(ours: RateTrace, theirs: RateTrace, kind: str = "table") -> None:
    assert ours.names == theirs.names
    assert ours.interval_s == pytest.approx(theirs.interval_s, rel=TOLERANCE[kind])
    np.testing.assert_allclose(ours.rate_bit_per_s, theirs.rate_bit_per_s, rtol=TOLERANCE[kind], atol=1e-300)


@given(traces())
@settings(max_examples=40)
def test_a_trace_comes_back_from_its_table(found) -> None:
    assert_same(RateTrace.from_pandas(found.to_pandas()), found)
    assert_same(RateTrace.from_pandas(found.to_pandas().set_index("time_s")), found)


@given(traces())
@settings(max_examples=40)
def test_a_trace_comes_back_from_csv(tmp_path_factory, found) -> None:
    path = tmp_path_factory.getbasetemp() / "back.csv"
    found.to_pandas().to_csv(path, index=False)
    assert_same(read_trace(path), found, "CSV")


@given(traces(), st.integers(1, 8))
@settings(max_examples=40)
def test_resampling_keeps_the_mean_of_whole_blocks(found, factor) -> None:
    T = len(found.rate_bit_per_s)
    if factor <= T:
        longer = found.resampled(factor * found.interval_s)
        whole = found.rate_bit_per_s[: T - T % factor].mean(axis=0)
        assert longer.mean_bit_per_s == pytest.approx(whole, rel=TOLERANCE["closed form"], abs=1e-300)


def test_a_table_by_hand(tmp_path) -> None:
    text = "\ufeffa_bit_per_s, time_s ,b [bit/s],c (bit/s),link (1)\n1e6,10.1,2,0,3\n\n5,10.2,3,0,3\n0,10.3,4,1,3\n\n"
    found = read_trace(csv(tmp_path, text))
    assert (found.interval_s, found.names) == (0.1, ("a", "b", "c", "link (1)"))
    assert found.rate_bit_per_s.tolist() == [[1e6, 2.0, 0.0, 3.0], [5.0, 3.0, 0.0, 3.0], [0.0, 4.0, 1.0, 3.0]]


def test_times_since_1970_give_the_interval_that_was_meant() -> None:
    times = 1_700_000_000.25 + np.arange(50) * 0.001
    found = RateTrace.from_pandas(pd.DataFrame({"time_s": times, "a": 1.0}))
    assert found.interval_s == 0.001
    assert found.resampled(0.01).rate_bit_per_s.shape == (5, 1)


def test_rounded_times_are_even() -> None:
    times = [round(k / 3, 3) for k in range(10)]
    assert RateTrace.from_pandas(pd.DataFrame({"time_s": times, "a": 1})).interval_s == pytest.approx(1 / 3)


def test_a_file_is_resampled_to_the_interval_that_is_asked_for(tmp_path) -> None:
    path = csv(tmp_path, "time_s,a\n0,1\n0.1,3\n0.2,5\n0.3,7\n0.4,9\n")
    assert read_trace(path, interval_s=0.2).rate_bit_per_s.tolist() == [[2.0], [6.0]]
    assert read_trace(path, interval_s=0.1).interval_s == 0.1
    with pytest.raises(InvalidValue, match="whole multiple of the trace's interval") as refusal:
        read_trace(path, interval_s=0.15)
    assert refusal.value.argument == "interval_s"


ROWS = "0,1,2\n0.1,3,4\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,a\n0,1\n0.1,2\n0.3,3\n", "time_s, row 3: got 0.3, takes 0.2, one interval of 0.1 s"),
        ("time_s,a\n0,1\n1,2\n2,2\n4,3\n5,1\n", "time_s, row 4: got 4.0, takes 3, one interval of 1 s after the row"),
        ("time_s,a\n0,1\n1,2\n2.02,2\n3,1\n4,1\n", "time_s, row 3: got 2.02, takes 2, one interval of 1 s"),
        ("time_s,a\n0,1\n1,2\n1,2\n2,1\n", "time_s, row 3: got 1.0, takes a time after 1, that of the row before"),
        ("time_s,a\n0,1\n,2\n2,2\n", "time_s, row 2: got nan, takes a time in seconds"),
        ("time_s,a\n1.7e12,1\n1.7001e12,2\n", "time_s, row 1: got 1700000000000.0, takes a time in seconds"),
        ("time_s,a\n0:00,1\n0:01,2\n", "row 1, column 'time_s': got '0:00', takes a number"),
        ("time_s,a\n0,1\n1,\n2,3\n", "rate_bit_per_s, row 2, column 'a': got nan, takes a number from 0 to 1e18"),
        ("time_s,a,b\n0,1,2\n1,2\n", "rate_bit_per_s, row 2, column 'b': got nan"),
        ("time_s,a,b\n0,1,1\n1,2,-3\n", "rate_bit_per_s, row 2, column 'b': got -3.0, takes a number from 0"),
        ("time_s,a\n0,1\n1,10Mbit\n2,3\n", "row 2, column 'a': got '10Mbit', takes a number"),
        ("time_s,a\n0,true\n1,false\n", "row 1, column 'a': got true, takes a number"),
        ("time_s,a\n0,1\n1,1" + "0" * 400 + "\n", "row 2, column 'a': got "),
        ("time_s,a,a\n" + ROWS, "names: got 'a', takes each column's name only once"),
        ("time_s,a,a_bit_per_s\n" + ROWS, "names: got 'a', takes each column's name only once"),
        ("time_s,time_s,a\n" + ROWS, "columns: got 'time_s', takes rates in bit/s beside one time column, 'time_s'"),
        ("time_s\n0\n1\n", "columns: got 'time_s', takes at least one other column, with rates in bit/s"),
        ("time_s,a\n0,1\n", "rows: got 1, takes at least 2"),
        (",time_s,a\n" + ROWS, "the name of column 1: got '', takes text; pandas leaves its index out with index="),
        ("time_s,a," + "b" * 65 + "\n" + "0,1,2\n1,2,3\n", "the name of column 3: got 'bbbb"),
        ("a,b\n0,1\n1,2\n", "columns: got 'a, b', takes a column 'time_s' with the starts of the intervals in seconds"),
        ("time_s,a\n0,1,5\n1,2,5\n", "not valid CSV: 2 names in line 1, 3 values in line 2"),
        ("time_s,a\n0,1\n1,2,5\n", "not valid CSV: Error tokenizing data. C error: Expected 2 fields in line 3, saw 3"),
        ('time_s,a\n"0,1\n1,2\n', "not valid CSV"),
        ("", "not valid CSV: No columns"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path, text, said) -> None:
    path = csv(tmp_path, text)
    with pytest.raises(FileError, match=re.escape(said)) as refusal:
        read_trace(path)
    assert refusal.value.path == str(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["time_ms", "time", "Timestamp", "t", "time [s]", "time(ms)", "date", "ts", "Epoch"])
def test_a_time_that_is_not_time_s_is_named(tmp_path, name) -> None:
    with pytest.raises(FileError) as refusal:
        read_trace(csv(tmp_path, f"{name},a\n0,1\n1,2\n"))
    assert f"columns: got '{name}', takes a column 'time_s' with the starts of the intervals" in str(refusal.value)
    assert "in seconds: convert this one and rename it" in str(refusal.value)


OTHER_UNITS = ["a [Mbit/s]", "a[kB/s]", "a (MB)", "a Gbit/s", "mbps", "bytes", "a_packets", "a_pps", "a_KiB/s"]
OTHER_UNITS += ["a_mbit_per_s", "a_kbps", "a_bytes", "a_byte_per_s", "a_Bps", "a_bps"]


@pytest.mark.parametrize("name", OTHER_UNITS)
def test_another_unit_is_named_with_what_to_do(tmp_path, name) -> None:
    with pytest.raises(FileError) as refusal:
        read_trace(csv(tmp_path, f"time_s,a0,{name}\n{ROWS}"))
    said = f"columns: got '{name}', takes rates in bit/s: convert them and end the name in _bit_per_s"
    assert said in str(refusal.value)


@pytest.mark.parametrize("name", ["time_ms", "timestamp"])
def test_a_second_time_is_no_rate(tmp_path, name) -> None:
    with pytest.raises(FileError, match="remove this column"):
        read_trace(csv(tmp_path, f"time_s,a,{name}\n{ROWS}"))


@pytest.mark.parametrize("name", ["node_b", "rabbit", "bit_per_s", "de_gb", "a->b", "s", "t", "a[0]", "timeline", "mb"])
def test_names_that_only_look_like_units_are_names(tmp_path, name) -> None:
    assert read_trace(csv(tmp_path, f"time_s,{name}\n0,1\n1,2\n")).names == (name,)


@pytest.mark.parametrize(
    ("frame", "argument"),
    [
        (None, "frame"),
        ({"time_s": [0, 1]}, "frame"),
        (pd.DataFrame({"time_s": pd.to_datetime(["2020-01-01", "2020-01-02"]), "a": 1.0}), "row 1, column 'time_s'"),
        (pd.DataFrame({"time_s": [0, 1], "a": pd.array([1, None], "Int64")}), "rate_bit_per_s, row 2, column 'a'"),
        (pd.DataFrame({"time_s": [0, 1], "a": ["1", "2"]}), "row 1, column 'a'"),
        (pd.DataFrame({"time_s": [0, 1], "a": [1, 2j]}), "row 1, column 'a'"),
        (pd.DataFrame({"time_s": [0, 1], None: [1, 2]}), "the name of column 2"),
        (pd.DataFrame({("time_s", ""): [0, 1], ("a", "b"): [1, 2]}), "the name of column 1"),
    ],
)
def test_tables_of_pandas_that_are_refused(frame, argument) -> None:
    with pytest.raises(InvalidValue) as refusal:
        RateTrace.from_pandas(frame)
    assert refusal.value.argument == argument


def test_numbers_are_names_of_columns_too() -> None:
    assert RateTrace.from_pandas(pd.DataFrame({"time_s": [0, 1], 7: [1, 2]})).names == ("7",)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tables, "_MAX_BYTES", 2**20)
    path = tmp_path / "x.csv"
    with path.open("wb") as file:
        file.truncate(2**20 + 1)
    with pytest.raises(FileError, match=r"larger than the 1 MiB allowed for a table"):
        read_trace(path)


@pytest.mark.parametrize("name", ["x.txt", "x", "x.pcap.gz", "x.csv.zip", "x.json"])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path, name) -> None:
    with pytest.raises(FileError, match=re.escape("takes .csv, .parquet, .pcap, .cap, .pcapng, not compressed")):
        read_trace(csv(tmp_path, "time_s,a\n0,1\n1,2\n", name))


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.pcap", "x.pcapng"])
def test_a_file_that_cannot_be_read_says_why(tmp_path, name) -> None:
    with pytest.raises(FileError, match="No such file"):
        read_trace(tmp_path / name, interval_s=1.0)
    (tmp_path / name).mkdir()
    with pytest.raises(FileError, match="directory"):
        read_trace(tmp_path / name, interval_s=1.0)


# Parquet


@pytest.fixture
def pyarrow() -> Any:
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed; remedy: pip install pyarrow")


@pytest.mark.parametrize("index", [False, True])
def test_a_trace_comes_back_from_parquet(tmp_path, pyarrow, index) -> None:
    found = trace(rate_bit_per_s=np.random.default_rng(1).uniform(0.0, 1e9, (20, 2)))
    frame = found.to_pandas()
    (frame.set_index("time_s") if index else frame).to_parquet(tmp_path / "x.parquet")
    back = read_trace(tmp_path / "x.parquet")
    assert (back.names, back.interval_s) == (found.names, 0.5)
    assert np.array_equal(back.rate_bit_per_s, found.rate_bit_per_s)


def test_what_is_wrong_with_parquet_is_named(tmp_path, pyarrow, monkeypatch) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(FileError, match="not valid Parquet"):
        read_trace(path)
    table = pyarrow.table([[0.0, 1.0], [1.0, 2.0], [1.0, 2.0]], names=["time_s", "a", "a"])
    pq.write_table(table, path)
    with pytest.raises(FileError, match="names: got 'a', takes each column's name only once"):
        read_trace(path)
    pq.write_table(pyarrow.table({"time_s": [0.0, 1.0], "a": [1.0, None]}), path)
    with pytest.raises(FileError, match="row 2, column 'a': got nan"):
        read_trace(path)
    monkeypatch.setattr(tables, "_MAX_VALUES", 3)
    with pytest.raises(FileError, match=r"more than the .* values allowed for a trace"):
        read_trace(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingLibrary, match="pip install pyarrow"):
        read_trace(tmp_path / "x.parquet")


# Captures


class Packet(NamedTuple):
    time_us: int
    length: int
    captured: int


MAGICS = [(order, magic) for order in "<>" for magic in (0xA1B2C3D4, 0xA1B23C4D)]
START_US = 1_700_000_000_000_000


def pcap(packets: list[Packet], order: str = "<", magic: int = 0xA1B2C3D4, version: tuple[int, int] = (2, 4)) -> bytes:
    """A classic capture, as draft-ietf-opsawg-pcap has it."""
    scale = 1 if magic == 0xA1B2C3D4 else 1000
    parts = [struct.pack(f"{order}IHHiIII", magic, *version, 0, 0, 65535, 1)]
    for each in packets:
        seconds, us = divmod(each.time_us, 10**6)
        parts.append(
            struct.pack(f"{order}IIII", seconds, us * scale, each.captured, each.length) + b"\xa1" * each.captured
        )
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order: str, major: int = 1) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, major, 0, -1))


def interface(order: str, options: bytes = b"") -> bytes:
    return block(order, 1, struct.pack(f"{order}HHI", 1, 0, 65535) + options)


def enhanced(order: str, each: Packet, ticks: int, number: int = 0) -> bytes:
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, each.captured, each.length)
    return block(order, 6, head + b"\xa1" * each.captured + b"\0" * (-each.captured % 4) + option(order, 1, b"note"))


def pcapng(packets: list[Packet], order: str = "<", ticks_per_us: int | None = None, offset_s: int = 0) -> bytes:
    """A capture of one section and one interface, as draft-ietf-opsawg-pcapng has it, with a block to be skipped."""
    options = option(order, 2, b"eth0")
    if ticks_per_us is not None:
        options += option(order, 9, bytes([6 + round(math.log10(ticks_per_us))]))
    if offset_s:
        options += option(order, 14, struct.pack(f"{order}q", offset_s))
    parts = [section(order), interface(order, options + option(order, 0, b"")), block(order, 5, b"statistics")]
    for each in packets:
        parts.append(enhanced(order, each, (each.time_us - offset_s * 10**6) * (ticks_per_us or 1)))
    return b"".join(parts)


def capture(folder: Path, content: bytes, name: str = "x.pcap") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def by_hand(packets: list[Packet], interval_s: float) -> list[int]:
    """Bytes in each bin, from fractions."""
    width = Fraction(repr(interval_s))
    bins: Counter[int] = Counter()
    for each in packets:
        bins[math.floor(Fraction(each.time_us - packets[0].time_us, 10**6) / width)] += each.length
    return [bins[k] for k in range(min(bins), max(bins) + 1)]


@st.composite
def packet_lists(draw: st.DrawFn) -> list[Packet]:
    lengths = draw(st.lists(st.integers(0, 65535), min_size=1, max_size=30))
    times = [START_US + draw(st.integers(-200_000, 3_000_000)) for _ in lengths]
    return [Packet(time, n, min(n, draw(st.integers(0, 70)))) for time, n in zip(times, lengths, strict=True)]


INTERVALS = st.sampled_from([0.1, 0.3, 1 / 3, 1.0, 0.000123, 1e3])
CLOCKS = st.sampled_from([0, -7, 1000])
"""Where the second 0 stands [s]."""


FORMS = st.tuples(st.just(pcap), st.sampled_from(MAGICS))
FORMS |= st.tuples(st.just(pcapng), st.tuples(st.sampled_from("<>"), st.sampled_from([None, 1, 1000]), CLOCKS))


@given(packet_lists(), INTERVALS, FORMS)
@settings(max_examples=100)
def test_each_byte_of_a_capture_is_in_its_interval(tmp_path_factory, packets, interval_s, form) -> None:
    make, options = form
    found = read_trace(capture(tmp_path_factory.getbasetemp(), make(packets, *options)), interval_s=interval_s)
    assert (found.names, found.interval_s) == (("all",), interval_s)
    sent = found.rate_bit_per_s[:, 0] * interval_s / 8
    assert sent == pytest.approx(by_hand(packets, interval_s), rel=TOLERANCE["closed form"], abs=0.0)
    assert sent.sum() == pytest.approx(sum(each.length for each in packets), rel=TOLERANCE["closed form"], abs=0.0)


def test_a_capture_by_hand(tmp_path) -> None:
    """100 ms: 1500 byte are 120 kbit/s. The second packet was captured in part; the fourth came late."""
    offsets = [(0, 1500, 60), (99_999, 1500, 0), (100_000, 1000, 60), (50_000, 500, 60)]
    offsets += [(400_000, 125, 60), (-1, 250, 60)]
    packets = [Packet(START_US + time, length, captured) for time, length, captured in offsets]
    contents = {"x.pcap": pcap(packets), "x.CAP": pcap(packets, *MAGICS[3]), "x.cap": pcapng(packets, ">")}
    for name, content in contents.items():
        found = read_trace(capture(tmp_path, content, name), interval_s=0.1)
        assert found.rate_bit_per_s[:, 0] == pytest.approx([20e3, 280e3, 80e3, 0.0, 0.0, 10e3])


def test_sections_and_interfaces_have_clocks_of_their_own(tmp_path) -> None:
    """Two interfaces, the second in 2^-10 s, and a second section in the other byte order."""
    whole = Packet(0, 100, 4)
    content = section("<") + interface("<") + interface("<", option("<", 9, b"\x8a"))
    content += enhanced("<", whole, 1_000_000) + enhanced("<", whole, 3 * 1024, number=1)
    content += section(">") + interface(">", option(">", 9, b"\x00")) + enhanced(">", whole, 4)
    found = read_trace(capture(tmp_path, content), interval_s=1.0)
    assert found.rate_bit_per_s[:, 0].tolist() == [800.0, 0.0, 800.0, 800.0]


def test_one_packet_is_one_interval(tmp_path) -> None:
    found = read_trace(capture(tmp_path, pcap([Packet(5, 125, 0)])), interval_s=1e-6)
    assert found.rate_bit_per_s == pytest.approx(np.array([[1e9]]))


@pytest.mark.parametrize("name", ["x.pcap", "x.cap", "x.pcapng"])
def test_a_capture_needs_an_interval(tmp_path, name) -> None:
    with pytest.raises(InvalidValue, match="over which packets are counted") as refusal:
        read_trace(capture(tmp_path, pcap([Packet(0, 1, 1)]), name))
    assert refusal.value.argument == "interval_s"
    with pytest.raises(InvalidValue, match="interval_s: got 0"):
        read_trace(tmp_path / name, interval_s=0)


TWO = [Packet(START_US, 1500, 60), Packet(START_US + 1, 1500, 60)]


@pytest.mark.parametrize("make", [pcap, pcapng], ids=["pcap", "pcapng"])
@given(data=st.data())
@settings(max_examples=40)
def test_a_capture_that_was_cut_is_refused_unless_between_packets(tmp_path_factory, make, data) -> None:
    whole = make(TWO)
    before = {len(make(TWO[:1])), len(whole)}
    most = data.draw(st.integers(0, len(whole)))
    path = capture(tmp_path_factory.getbasetemp(), whole[:most])
    if most in before:
        assert read_trace(path, interval_s=1.0).rate_bit_per_s.shape == (1, 1)
    else:
        with pytest.raises(FileError, match=r"truncated: from byte|contains no packet|not a capture"):
            read_trace(path, interval_s=1.0)


def test_where_a_capture_is_cut(tmp_path) -> None:
    remedy = "`tcpdump -r FILE -w NEW` keeps the complete packets"
    said = f"truncated: from byte 100 on, 75 of at least 76 bytes are present; {remedy}"
    with pytest.raises(FileError, match=re.escape(said)):
        read_trace(capture(tmp_path, pcap(TWO)[:-1]), interval_s=1.0)


def patched(content: bytes, at: int, value: bytes) -> bytes:
    return content[:at] + value + content[at + len(value) :]


def ng(*blocks: bytes) -> bytes:
    return b"".join([section("<"), interface("<"), *blocks])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a capture: it begins with b''"),
        (b"\x1f\x8b\x08\x00" * 8, "not a capture: it begins with b'\\x1f\\x8b\\x08\\x00'"),
        (struct.pack("<I", 0xA1B2CD34) + bytes(20), "not a capture"),
        (pcap([], version=(2, 3)), "pcap version 2.3; only 2.4 is read"),
        (pcap([]), "contains no packet"),
        (pcap(TWO)[:20], "truncated: from byte 0 on, 20 of at least 24 bytes are present"),
        (patched(pcap(TWO), 100 + 8, b"\xff" * 4), "the packet at byte 100 claims 4294967295 of 1500 bytes captured"),
        (patched(pcap(TWO), 24 + 12, b"\xff" * 4), "the packet at byte 24 claims 60 of 4294967295 bytes captured"),
        (patched(pcap(TWO), 24 + 12, struct.pack("<I", 59)), "the packet at byte 24 claims 60 of 59 bytes captured"),
        (patched(pcap(TWO), 24 + 4, struct.pack("<I", 10**6)), "the packet at byte 24 has a time with 1000000 parts"),
        (pcapng([]), "contains no packet"),
        (section("<", major=2), "pcapng version 2 in the section at byte 0; only 1 is read"),
        (patched(section("<"), 8, b"oops"), "the section at byte 0 has no byte-order magic"),
        (ng(patched(interface("<"), 4, struct.pack("<I", 21))), "the block at byte 48 claims 21 bytes"),
        (ng(patched(interface("<"), 4, struct.pack("<I", 2**30))), "the block at byte 48 claims 1073741824 bytes"),
        (ng(patched(interface("<"), 4, struct.pack("<I", 8))), "the block at byte 48 claims 8 bytes"),
        (ng(patched(interface("<"), 16, struct.pack("<I", 24))), "the block at byte 48 has two different lengths"),
        (ng(enhanced("<", TWO[0], 5, number=1)), "the packet at byte 48 belongs to an interface that isn't described"),
        (ng(enhanced("<", Packet(0, 40, 60), 5)), "the packet at byte 48 claims 60 of 40 bytes captured"),
        (ng(block("<", 6, bytes(12))), "the block at byte 48 is too short for its declared content"),
        (
            ng(block("<", 6, struct.pack("<5I", 0, 0, 0, 60, 60))),
            "the packet at byte 48 claims 60 of 60 bytes captured",
        ),
        (ng(block("<", 3, bytes(8))), "the block at byte 48 is a Simple Packet Block, which has no time"),
        (ng(block("<", 2, bytes(20))), "the block at byte 48 is an obsolete Packet Block; only Enhanced Packet Blocks"),
        (ng(interface("<", struct.pack("<HH", 14, 8))), "the block at byte 48 is too short"),
    ],
)
def test_what_is_wrong_with_a_capture_is_named(tmp_path, content, said) -> None:
    path = capture(tmp_path, content)
    with pytest.raises(FileError, match=re.escape(said)) as refusal:
        read_trace(path, interval_s=1.0)
    assert refusal.value.path == str(path)


def test_a_span_of_too_many_intervals_is_refused_before_it_is_counted(tmp_path) -> None:
    late = [TWO[0], Packet(START_US + 100_000_000, 1, 0)]
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="spans more than 100000000 intervals of 1e-06 s: use longer ones"):
            read_trace(capture(tmp_path, pcap(late)), interval_s=1e-6)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_a_long_capture_is_read_in_bounded_memory(tmp_path) -> None:
    """40 MB of packets, through a buffer of 1 MB."""
    one = pcap([Packet(START_US, 2**17, 2**17)])
    path = capture(tmp_path, one[:24] + one[24:] * 320)
    tracemalloc.start()
    try:
        found = read_trace(path, interval_s=1.0)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    assert found.rate_bit_per_s.tolist() == [[320 * 2**17 * 8.0]]


@pytest.mark.parametrize("make", [pcap, pcapng], ids=["pcap", "pcapng"])
@given(data=st.data())
def test_broken_bytes_give_a_trace_or_a_sentence(tmp_path_factory, make, data) -> None:
    content = make(TWO)
    at = data.draw(st.integers(0, len(content) - 4))
    content = patched(content, at, data.draw(st.binary(min_size=1, max_size=4)))
    try:
        found = read_trace(capture(tmp_path_factory.getbasetemp(), content), interval_s=1e6)
    except FileError as refusal:
        assert "\n" not in str(refusal)
    else:
        assert found.names == ("all",)


@given(st.binary(max_size=200))
@settings(max_examples=50)
def test_any_bytes_give_a_trace_or_a_sentence(tmp_path_factory, content) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    for start in (b"", b"time_s,a\n0,1\n"):
        path.write_bytes(start + content)
        try:
            found = read_trace(path)
        except FileError:
            continue
        assert io.StringIO(found.to_pandas().to_csv()).readline().startswith(",time_s")


# --- rates as users have them --------------------------------------------------------------------------------------


def test_rates_as_users_have_them_are_a_trace():
    """The same trace from an array, a table, a trace and what a file has of it; errors name what they are about."""
    known = trace()
    rates = known.rate_bit_per_s
    for values, interval in ((rates, 0.5), (known.to_pandas(), None), (known, None), (known, 0.5)):
        found = rate_trace("x", values, interval, 2)
        assert (found.interval_s, found.rate_bit_per_s.tolist()) == (0.5, rates.tolist())
    kept = {"interval_s": 0.5, "names": ["a", "b"], "rate_bit_per_s": rates.tolist()}
    assert rate_trace("x", kept, None, 2).names == known.names
    assert rate_trace("x", known, 1.5, 2).rate_bit_per_s.tolist() == [[3.0, 3.0]]
    for values, said in (
        (rates.T, "x: got (2, 3)"),
        ([[1.0, -2.0]], "x, row 1, column '1': got -2.0"),
        ({1}, "x: got {1}"),
    ):
        with pytest.raises(InvalidValue, match=re.escape(said)):
            rate_trace("x", values, 0.5, 2)
    with pytest.raises(InvalidValue, match=re.escape("interval: got 0.7, takes a whole multiple")):
        rate_trace("x", known, 0.7, 2)
