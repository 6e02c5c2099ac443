"""Results of simulations: checked when built, summaries by hand, and files that come back to the last bit."""

from __future__ import annotations

import copy
import json
import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netctrl.scenario.tcp_aqm.summary import summary_table

from netctrl.errors import FileError, InvalidValue
from netctrl.model.design.design import Provenance
from netctrl.scenario.links import Change, Link
from netctrl.scenario.result import SHORT_OBJECT_BYTES, Result
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, WebFlows

PROVENANCE = Provenance(
    netctrl="0.1.0",
    git_revision=None,
    argv=("netctrl", "simulate"),
    seed=1,
    input_hashes={"s.toml": "00ff"},
    python="3.11.7",
    libraries={"numpy": "2"},
)
SCENARIO = Scenario.of(
    name="two links",
    duration=5.0,
    interval=1.0,
    warmup=1.0,
    links=(
        Link(id="up", source="a", target="b", capacity=8e3),  # 1000 byte/s
        Link(id="down", source="b", target="a", capacity=80e3),
    ),
    flows=(BulkFlows(id="f", count=1, rtt=0.1, path=("up",)), WebFlows(id="w", sessions=1, rtt=0.1, path=("down",))),
    changes=(Change(at=2.5, link="up", capacity=16e3), Change(at=3.0, link="up", delay=0.01)),
)
SERIES = ["backlog_bytes", "arrived_bytes", "departed_bytes", "lost_bytes", "marked_bytes", "probability"]
ARRAYS = ["time_s", *SERIES, "carried_bytes", "response_start_s", "response_bytes", "response_s"]
VALUES: dict[str, Any] = {
    "scenario": SCENARIO,
    "simulator": "fluid",
    "time_s": [1.0, 2.0, 3.0, 4.0, 5.0],
    "backlog_bytes": [[900.0, 0.0, 100.0, 300.0, 400.0], [0.0] * 5],
    "arrived_bytes": [[9e3, 1000.0, 1600.0, 2400.0, 2000.0], [0.0] * 5],
    "departed_bytes": [[1000.0, 1000.0, 1500.0, 2000.0, 1900.0], [0.0] * 5],
    "lost_bytes": [[5e3, 0.0, 0.0, 70.0, 0.0], [0.0] * 5],
    "marked_bytes": [[0.0, 35.0, 0.0, 35.0, 0.0], [0.0] * 5],
    "probability": [[1.0, 0.01, 0.02, 0.03, 0.02], [0.0] * 5],
    "carried_bytes": [[9e3, 1000.0, 1600.0, 2400.0, 2000.0], [1.0, 2.0, 3.0, 4.0, 5.0]],
    "response_start_s": [0.5, 1.0, 2.0, 3.0, 4.9, 2.2],
    "response_bytes": [100.0, 200.0, 11999.0, 5.0, 7.0, SHORT_OBJECT_BYTES],
    "response_s": [9.0, 0.1, 0.2, 0.3, 0.8, 9.0],
    "provenance": PROVENANCE,
}


def result(**changes: Any) -> Result:
    return Result(**(copy.deepcopy(VALUES) | changes))


def equal(ours: Result, theirs: Result) -> bool:
    same = all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ARRAYS)
    return same and all(
        getattr(ours, name) == getattr(theirs, name) for name in ("scenario", "simulator", "provenance")
    )


def test_summary_by_hand() -> None:
    """From 1 s: samples 2 to 5. Capacity 1000, then 1500 on average (it doubles at 2.5 s), 2000, 2000 byte/s."""
    summary = result().summary()
    assert (summary.scenario, summary.simulator, summary.start_s, summary.stop_s) == ("two links", "fluid", 1.0, 5.0)
    up, down = summary.links
    assert (up.id, down.id) == ("up", "down")
    assert up.backlog_mean_bytes == 200.0
    assert up.backlog_std_bytes == pytest.approx(math.sqrt(25e3), rel=1e-15)  # deviations −200, −100, 100, 200
    # Linear between order statistics 0, 100, 300, 400: at ranks 0.15, 1.5, 2.85 and 3.
    assert up.backlog_quantiles_bytes == pytest.approx((15.0, 200.0, 385.0, 400.0), rel=1e-14)
    assert up.throughput_bit_per_s == 8.0 * 6400.0 / 4.0
    assert up.utilization == pytest.approx(6400.0 / 6500.0, rel=1e-15)
    assert up.loss_ratio == 70.0 / 7000.0
    assert up.marking_ratio == 70.0 / 7000.0
    assert up.probability_mean == pytest.approx(0.02, rel=1e-15)
    assert up.probability_cv == pytest.approx(math.sqrt(0.5e-4) / 0.02, rel=1e-14)
    assert (down.utilization, down.loss_ratio, down.marking_ratio, down.probability_cv) == (0.0, 0.0, 0.0, 0.0)
    # Asked for from 1 s on and below 12 kB: 0.1, 0.2, 0.3 and 0.8 s.
    assert summary.responses is not None
    assert summary.responses.objects == 4
    assert summary.responses.mean_s == pytest.approx(0.35, rel=1e-15)
    assert summary.responses.median_s == pytest.approx(0.25, rel=1e-15)
    assert summary.responses.p95_s == pytest.approx(0.3 + 0.85 * 0.5, rel=1e-14)


def test_capacity_is_the_mean_of_each_interval() -> None:
    assert result().capacity_bit_per_s().tolist() == [[8e3, 8e3, 12e3, 16e3, 16e3], [80e3] * 5]


def test_two_changes_in_one_interval_count_for_their_time() -> None:
    """8 kbit/s for 0.2 s, 16 for 0.5 s, 40 for 0.3 s; in whatever order they are listed."""
    changes = (
        Change(at=2.7, link="up", capacity=40e3),
        Change(at=2.2, link="up", capacity=16e3),
        Change(at=4.0, link="up", capacity=8e3),
    )
    found = result(scenario=SCENARIO.replace(changes=changes)).capacity_bit_per_s()
    assert found[0] == pytest.approx([8e3, 8e3, 0.2 * 8e3 + 0.5 * 16e3 + 0.3 * 40e3, 40e3, 8e3], rel=1e-14)
    assert found[1].tolist() == [80e3] * 5


@given(st.lists(st.tuples(st.floats(0.0, 4.9), st.floats(1e3, 1e6)), max_size=6, unique_by=lambda change: change[0]))
def test_capacity_over_all_intervals_is_its_integral(changes) -> None:
    scenario = SCENARIO.replace(changes=tuple(Change(at=at, link="up", capacity=capacity) for at, capacity in changes))
    found = result(scenario=scenario).capacity_bit_per_s()[0]
    steps = [(0.0, 8e3), *sorted(changes), (5.0, 0.0)]
    integral = sum(capacity * (later - at) for (at, capacity), (later, _) in pairwise(steps))
    assert found.sum() == pytest.approx(integral, rel=1e-12)
    assert np.all(found <= max(capacity for _, capacity in steps) * (1.0 + 1e-12))


@pytest.mark.parametrize(
    ("window", "mean", "throughput", "objects"),
    [
        ((None, None), 200.0, 1600.0, 4),
        ((0.0, None), 340.0, 1480.0, 5),
        ((None, 3.0), 50.0, 1250.0, 2),
        ((2.0, 4.0), 200.0, 1750.0, 2),
        ((3.5, 4.5), 300.0, 2000.0, None),
        ((4.0, 5.0), 400.0, 1900.0, 1),
        ((4.0, 1e9), 400.0, 1900.0, 1),
    ],
)
def test_windows_hold_the_samples_that_end_in_them(window, mean, throughput, objects) -> None:
    summary = result().summary(*window)
    assert summary.links[0].backlog_mean_bytes == pytest.approx(mean)
    assert summary.links[0].throughput_bit_per_s == pytest.approx(8.0 * throughput)
    assert (summary.responses.objects if summary.responses else None) == objects
    assert summary.start_s == (1.0 if window[0] is None else window[0])
    assert summary.stop_s == min(5.0, 5.0 if window[1] is None else window[1])


@pytest.mark.parametrize(
    ("window", "named"),
    [
        ((5.0, None), "start"),
        ((1e9, None), "start"),
        ((2.1, 2.9), "start"),
        ((-1.0, None), "start"),
        ((math.nan, None), "start"),
        (("1s", None), "start"),
        ((3.0, 3.0), "stop"),
        ((3.0, 2.0), "stop"),
        ((3.0, math.inf), "stop"),
    ],
)
def test_windows_without_a_sample_are_refused(window, named) -> None:
    with pytest.raises(InvalidValue) as refusal:
        result().summary(*window)
    assert refusal.value.argument == named


def test_nothing_is_divided_by_nothing() -> None:
    idle = result(**{name: np.zeros((2, 5)) for name in SERIES}, response_start_s=[], response_bytes=[], response_s=[])
    summary = idle.summary()
    assert summary.responses is None
    for link in summary.links:
        numbers = msgspec.structs.asdict(link)
        assert numbers.pop("delay_s") is None  # the fluid doesn't tell it
        assert set(numbers.values()) - {link.id} == {0.0, (0.0, 0.0, 0.0, 0.0)}
    assert "short objects" not in dict(idle.table()[1])


def test_the_table_has_what_the_summary_has() -> None:
    title, rows = summary_table(result().summary())
    assert title == "two links (fluid), 1 to 5 s"
    assert (title, rows) == result().table()
    text = "\n".join(f"{name}: {text}" for name, text in rows)
    for piece in (
        "up: 12.8 kbit/s, utilization 0.9846",
        "mean 200 B, std 158.114 B; 5 % 15 B, median 200 B, 95 % 385 B, greatest 400 B",
        "1.000% of what arrives; marked 1.000%",
        "mean 0.02, coefficient of variation 0.354",
        "short objects: 4: response mean 0.350 s, median 0.250, 95 % 0.725",
    ):
        assert piece in text
    assert "<td" in result()._repr_html_()
    assert "&lt;x&gt;" in result(simulator="<x>")._repr_html_()


def test_pandas_has_a_row_for_each_link_and_sample() -> None:
    frame = result().to_pandas()
    assert list(frame.columns) == ["time_s", "link", *SERIES]
    assert frame["link"].tolist() == ["up"] * 5 + ["down"] * 5
    assert frame["time_s"].tolist() == VALUES["time_s"] * 2
    for name in SERIES:
        assert frame[frame["link"] == "up"][name].tolist() == VALUES[name][0]


def test_arrays_are_copies_and_read_only() -> None:
    backlog = np.array(VALUES["backlog_bytes"])
    found = result(backlog_bytes=backlog)
    backlog[0, 0] = -1.0
    assert found.backlog_bytes[0, 0] == 900.0
    for name in ARRAYS:
        array = getattr(found, name)
        assert array.dtype == float
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        found.backlog_bytes[0, 0] = 0.0
    with pytest.raises(AttributeError):
        found.simulator = "ns-3"  # ty: ignore[invalid-assignment]


WRONG: dict[str, list[Any]] = {
    "time_s": [[], [1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 8.0, 16.0], [5.0, 4.0, 3.0, 2.0, 1.0]],
    "backlog_bytes": [
        [[0.0] * 5],
        [[0.0] * 4] * 2,
        [0.0] * 5,
        [[0.0] * 5, [0.0] * 4],
        [["x"] * 5] * 2,
        [[None] * 5] * 2,
    ],
    "probability": [[[math.nan] * 5] * 2, [[math.inf] * 5] * 2, np.zeros((5, 2)), np.zeros((2, 5, 1))],
    "carried_bytes": [[[0.0] * 5], [[0.0] * 5] * 3],
    "response_start_s": [[], [0.0] * 7, [math.nan] * 6],
    "response_bytes": [[0.0] * 5],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_arrays_that_do_not_fit_are_refused_by_name(name, value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        result(**{name: value})
    # Where the number of samples is wrong, any of the arrays may be the odd one out.
    assert refusal.value.argument == name or (name == "time_s" and len(value) != 5)
    assert len(str(refusal.value)) < 300


def test_a_result_that_was_saved_and_read_back_is_equal(tmp_path) -> None:
    saved = result()
    saved.save(tmp_path / "r.json")
    again = read_result(tmp_path / "r.json")
    assert equal(again, saved)
    assert again.to_json() == saved.to_json() == (tmp_path / "r.json").read_text(encoding="utf-8")
    assert again.summary() == saved.summary()
    content = json.loads(saved.to_json())
    assert content["schema"] == "netctrl.simulation/2"
    assert content["scenario"]["network"]["links"][0]["capacity"] == 8000.0
    assert saved.to_json().endswith("}\n")


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50)
@given(st.lists(FINITE, min_size=10, max_size=10), st.lists(FINITE, max_size=3), st.floats(1e-6, 1e6))
def test_files_keep_every_bit(tmp_path_factory, series, responses, sample) -> None:
    path = tmp_path_factory.getbasetemp() / "bits.json"
    table = np.array(series).reshape(2, 5)
    arrays = dict.fromkeys(SERIES, table) | dict.fromkeys(ARRAYS[-3:], responses)
    saved = result(**arrays, time_s=sample * np.arange(1, 6))
    saved.save(path)
    assert equal(read_result(path), saved)


def junk(**changes: Any) -> bytes:
    return json.dumps(json.loads(result().to_json()) | changes).encode()


def without(name: str) -> bytes:
    content = json.loads(result().to_json())
    del content[name]
    return json.dumps(content).encode()


def inside(name: str, value: Any) -> bytes:
    content = json.loads(result().to_json())
    content["scenario"]["network"]["links"][0][name] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "pieces"),
    [
        (b"", ["JSON"]),
        (b"{", ["JSON"]),
        (b"\x89PNG\r\n", ["JSON"]),
        (b'"\xff"', []),
        (b"[]", ["got an empty list, takes a table"]),
        (b"5", ["got 5, takes a table"]),
        (b"{}", ["key `schema` is missing"]),
        (b"[" * 100_000, []),
        (b'{"schema": "netctrl.simulation/1", "scenario": ' + b"[" * 100_000, []),
        (junk(schema="netctrl.simulation/3"), ["schema", "netctrl.simulation/3"]),
        (junk(colour="red"), ["unknown key `colour`"]),
        (junk(probabilities=1), ["unknown key `probabilities`, did you mean `probability`?"]),
        (without("probability"), ["key `probability` is missing"]),
        (without("provenance"), ["key `provenance` is missing"]),
        (junk(time_s=[1, 2]), ["backlog_bytes: got (2, 5), takes an array of shape (2, 2)"]),
        (junk(time_s=5), ["time_s: got 5, takes a list"]),
        (junk(time_s=[1, 2, 3, 4, "5"]), ["time_s[4]: got '5', takes a number"]),
        (junk(lost_bytes=[[0] * 5, [0] * 4]), ["lost_bytes", "shape (2, 5)"]),
        (junk(lost_bytes=[[0] * 5, [None] * 5]), ["lost_bytes[1][0]: got nothing, takes a number"]),
        (junk().replace(b"0.03", b"NaN"), ["JSON"]),
        (junk().replace(b"0.03", b"1e999"), []),
        (inside("capacity", -10), ["scenario.network.links[0].capacity: got -10, takes a rate"]),
        (inside("capasity", 1), ["scenario.network.links[0]: unknown key `capasity`, did you mean `capacity`?"]),
        (inside("queue", {"kind": "blue"}), ["scenario.network.links[0].queue.kind: got 'blue', takes one of arc"]),
        (junk(provenance=msgspec.to_builtins(PROVENANCE) | {"input_hashes": {"a": 5}}), ["input_hashes"]),
    ],
    ids=lambda part: ascii(part)[-60:-40] if isinstance(part, bytes) else "",
)
def test_what_is_no_result_is_one_line(content, pieces, tmp_path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(FileError) as refusal:
        read_result(path)
    assert str(refusal.value).startswith(tuple(f"{path}: {why}" for why in ("not a ", "not JSON", "nested too deeply")))
    assert [piece for piece in pieces if piece not in str(refusal.value)] == [], refusal.value.why
    assert len(str(refusal.value).splitlines()) == 1
    assert len(refusal.value.why) < 400


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_result_that_cannot_be_read_is_named(name, tmp_path) -> None:
    with pytest.raises(FileError, match="can't be read"):
        read_result(tmp_path / name)


@settings(max_examples=60)
@given(st.data())
def test_any_damage_to_a_file_gives_a_result_or_one_line(tmp_path_factory, data) -> None:
    text = result().to_json().encode()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 20, len(text))))
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(text[:start] + data.draw(st.binary(max_size=5)) + text[stop:])
    try:
        read_result(path)
    except FileError as error:
        assert len(str(error).splitlines()) == 1
