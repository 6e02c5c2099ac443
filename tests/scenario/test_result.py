"""Results: figures by hand, means over runs, files that come back to the last bit, and one vocabulary for all kinds."""

from __future__ import annotations

import html
import io
import json
import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.window.records import Hpcc
from netctrl.model.datasets import data_path
from netctrl.model.io.arrays import plain
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.builders import access_link, bottleneck
from netctrl.scenario.fabric.topology import Dumbbell
from netctrl.scenario.figures import FIGURES, estimate, quantity_text
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.links import Change, Link
from netctrl.scenario.result import Result
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream, Web
from netctrl.scenario.transfers import SHORT_OBJECT_BYTES

PROVENANCE = Provenance(
    netctrl="0.1.0",
    git_revision=None,
    argv=("netctrl", "simulate"),
    seed=1,
    input_hashes={"s.toml": "00ff"},
    python="3.11.7",
    libraries={"numpy": "2"},
)
SCENARIO = Scenario(
    name="two links",
    duration=5.0,
    interval=1.0,
    warmup=1.0,
    links=(
        Link(id="up", source="a", target="b", capacity=8e3),  # 1000 byte/s
        Link(id="down", source="b", target="a", capacity=80e3),
    ),
    flows=(Flow(id="f", count=1, rtt=0.1, path=("up",)), Flow(id="w", count=1, rtt=0.1, path=("down",), offers=Web())),
    changes=(Change(at=2.5, link="up", capacity=16e3), Change(at=3.0, link="up", delay=0.01)),
)
LINKS = {
    "backlog": [[900.0, 0.0, 100.0, 300.0, 400.0], [0.0] * 5],
    "arrived": [[9e3, 1000.0, 1600.0, 2400.0, 2000.0], [0.0] * 5],
    "departed": [[1000.0, 1000.0, 1500.0, 2000.0, 1900.0], [0.0] * 5],
    "lost": [[5e3, 0.0, 0.0, 70.0, 0.0], [0.0] * 5],
    "marked": [[0.0, 35.0, 0.0, 35.0, 0.0], [0.0] * 5],
    "probability": [[1.0, 0.01, 0.02, 0.03, 0.02], [0.0] * 5],
    "delay": [[0.5, 0.1, math.nan, 0.3, 0.2], [math.nan] * 5],
}
FLOWS = {
    "payload": [[9e3, 960.0, 1600.0, 2400.0, 1440.0], [1.0, 2.0, 3.0, 4.0, 5.0]],
    "rtt": [[0.5, 0.0, 0.2, 0.4, 0.0], [0.0] * 5],
}
TRANSFERS = {
    "start": [0.5, 1.0, 2.0, 3.0, 4.9, 2.2],
    "size": [100.0, 200.0, 11999.0, 5.0, 7.0, SHORT_OBJECT_BYTES],
    "duration": [9.0, 0.1, 0.2, 0.3, 0.8, 9.0],
    "flow": [1] * 6,
}


def result(scenario: Scenario = SCENARIO, simulator: str = "fluid", **changes: Any) -> Result:
    """The result of these series; keywords replace some of them."""
    parts = {
        name: {key: np.array(changes.get(key, value)) for key, value in part.items() if changes.get(key, 0) is not None}
        for name, part in (("links", LINKS), ("flows", FLOWS))
    }
    transfers = {key: np.array(changes.get(key, value)) for key, value in TRANSFERS.items()}
    return Result.of_series(scenario, simulator, PROVENANCE, **parts, tables={"transfers": transfers})


def equal(ours: Result, theirs: Result) -> bool:
    for part in ("totals", "series"):
        one, other = getattr(ours, part), getattr(theirs, part)
        if set(one.values) != set(other.values):
            return False
        for name, (dims, array) in one.values.items():
            if dims != tuple(other.values[name][0]) or not np.array_equal(array, other[name], equal_nan=True):
                return False
    same = all(np.array_equal(ours.transfers[name], theirs.transfers[name]) for name in TRANSFERS)
    scenarios = [msgspec.json.encode(each.scenario, enc_hook=plain) for each in (ours, theirs)]  # with arrays of traces
    same = same and scenarios[0] == scenarios[1]
    return same and all(getattr(ours, name) == getattr(theirs, name) for name in ("simulator", "provenance", "span"))


# --- figures ----------------------------------------------------------------------------------------------------------


def test_figures_by_hand() -> None:
    """From 1 s: samples 2 to 5. Capacity 1000, then 1500 on average (it doubles at 2.5 s), 2000, 2000 byte/s."""
    found = result()
    assert (found.span, found.seconds, found.runs) == ((1.0, 5.0), 4.0, 1)
    assert (found.links, found.flows) == (("up", "down"), ("f", "w"))
    up = found.of("up")
    assert up["backlog"] == 200.0
    assert up["backlog std"] == pytest.approx(math.sqrt(25e3), rel=1e-15)  # deviations −200, −100, 100, 200
    # Linear between order statistics 0, 100, 300, 400: at ranks 1.5, 2.85 and 3.
    assert [up[f"backlog {name}"] for name in ("median", "95 %", "most")] == pytest.approx([200.0, 385.0, 400.0])
    assert up["throughput"] == 8.0 * 6400.0 / 4.0
    assert up["utilization"] == pytest.approx(6400.0 / 6500.0, rel=1e-15)
    assert up["loss"] == up["marks"] == 70.0 / 7000.0
    assert up["probability"] == pytest.approx(0.02, rel=1e-15)
    assert up["delay"] == pytest.approx(0.2)  # of the three samples in which packets left
    down = found.of("down")
    assert "delay" not in down
    assert [down[name] for name in ("utilization", "loss", "marks", "backlog most")] == [0.0] * 4
    f, w = found.of("f"), found.of("w")
    assert f["goodput"] == 8.0 * 6400.0 / 4.0
    assert f["throughput"] == pytest.approx(f["goodput"] / 0.96)  # packets of 1000 bytes, 40 of them headers
    assert f["rtt"] == pytest.approx(0.3)
    # Its packets have many sizes. Begun from 1 s on: .1, .2, .3, .8 and 9 s, whose 95 % is at rank 3.8.
    assert w == pytest.approx({"goodput": 8.0 * 14.0 / 4.0, "response": 2.08, "response 95 %": 0.8 + 0.8 * 8.2})
    # Asked for from 1 s on and below 12 kB: 0.1, 0.2, 0.3 and 0.8 s.
    assert found["response", "short objects"] == pytest.approx(0.35, rel=1e-15)
    assert found.rtts("f").tolist() == [0.2, 0.4]
    assert found.rtts("f", start=0.0).tolist() == [0.5, 0.2, 0.4]


def test_a_link_is_never_used_more_than_wholly() -> None:
    """A packet counts when its last bit has left: here one of 100 bytes that began before the warm-up ended."""
    full = np.array([[1000.0, 1100.0, 1500.0, 2000.0, 2000.0], [0.0] * 5])
    found = result(departed=full)
    assert found["throughput", "up"] == 8.0 * 6600.0 / 4.0
    assert found["utilization", "up"] == 1.0


def test_capacity_is_the_mean_of_each_interval() -> None:
    assert result().series["capacity"].tolist() == [[8e3, 8e3, 12e3, 16e3, 16e3], [80e3] * 5]


def test_two_changes_in_one_interval_count_for_their_time() -> None:
    """8 kbit/s for 0.2 s, 16 for 0.5 s, 40 for 0.3 s; in whatever order they are listed."""
    changes = (
        Change(at=2.7, link="up", capacity=40e3),
        Change(at=2.2, link="up", capacity=16e3),
        Change(at=4.0, link="up", capacity=8e3),
    )
    found = result(scenario=SCENARIO.replace(changes=changes)).series["capacity"]
    assert found[0] == pytest.approx([8e3, 8e3, 0.2 * 8e3 + 0.5 * 16e3 + 0.3 * 40e3, 40e3, 8e3], rel=1e-14)
    assert found[1].tolist() == [80e3] * 5


@given(st.lists(st.tuples(st.floats(0.0, 4.9), st.floats(1e3, 1e6)), max_size=6, unique_by=lambda change: change[0]))
def test_capacity_over_all_intervals_is_its_integral(changes) -> None:
    scenario = SCENARIO.replace(changes=tuple(Change(at=at, link="up", capacity=capacity) for at, capacity in changes))
    found = result(scenario=scenario).series["capacity"][0]
    steps = [(0.0, 8e3), *sorted(changes), (5.0, 0.0)]
    integral = sum(capacity * (later - at) for (at, capacity), (later, _) in pairwise(steps))
    assert found.sum() == pytest.approx(integral, rel=1e-12)
    assert np.all(found <= max(capacity for _, capacity in steps) * (1.0 + 1e-12))


@pytest.mark.parametrize(
    ("window", "mean", "throughput", "response"),
    [
        ((1.0,), 200.0, 1600.0, 0.35),
        ((), 340.0, 1480.0, 2.08),
        ((1.0, 3.0), 50.0, 1250.0, 0.15),
        ((2.0, 4.0), 200.0, 1750.0, 0.25),
        ((3.5, 4.5), 300.0, 2000.0, 0.3),
        ((4.0, 5.0), 400.0, 1900.0, 0.8),
        ((4.0, 1e9), 400.0, 1900.0, 0.8),
    ],
)
def test_windows_hold_the_samples_that_end_in_them(window, mean, throughput, response) -> None:
    found = result().between(*window)
    assert found["backlog", "up"] == pytest.approx(mean)
    assert found["throughput", "up"] == pytest.approx(8.0 * throughput)
    assert found.measures().get(("response", "short objects")) == (
        None if response is None else pytest.approx(response)
    )


@pytest.mark.parametrize(
    ("window", "named"),
    [
        ((5.0,), "start"),
        ((1e9,), "start"),
        ((2.1, 2.9), "start"),
        ((-1.0,), "start"),
        ((math.nan,), "start"),
        (("1s",), "start"),
        ((3.0, 3.0), "stop"),
        ((3.0, 2.0), "stop"),
        ((3.0, math.inf), "stop"),
    ],
)
def test_windows_without_a_sample_are_refused(window, named) -> None:
    with pytest.raises(InvalidValue) as refusal:
        result().between(*window)
    assert refusal.value.argument == named


def test_nothing_is_divided_by_nothing() -> None:
    idle = result(**{name: np.zeros((2, 5)) for name in LINKS} | dict.fromkeys(TRANSFERS, ()))
    for link in idle.links:
        assert set(idle.of(link).values()) == {0.0}
    assert ("response", "short objects") not in idle.figures()
    assert "short objects" not in dict(idle.table()[1])


def of_totals(ids: tuple[str, ...], lost: np.ndarray, arrived: np.ndarray, **more: Any) -> Result:
    """A result without series, of losses and arrivals (R, L)."""
    totals = {"lost": (("run", "link"), lost), "arrived": (("run", "link"), arrived)} | more
    data, none = Labelled({"run": tuple(range(len(lost))), "link": ids, "flow": ()}, totals), Labelled({}, {})
    return Result(scenario=SCENARIO, simulator="x", provenance=PROVENANCE, span=(0.0, 1.0), totals=data, series=none)


def test_runs_have_means_with_intervals_over_independent_samples() -> None:
    """Student's t of three values 1, 2, 6: mean 3, half width 4.30265 s/√3; runs of one sample count as one."""
    totals = {
        "lost": (("run", "link"), np.array([[1.0], [2.0], [6.0]])),
        "arrived": (("run", "link"), np.full((3, 1), 100.0)),
    }

    def of(**more: Any) -> Result:
        data = Labelled({"run": (0, 1, 2), "link": ("up",), "flow": ()}, totals | more)
        return Result(
            scenario=SCENARIO,
            simulator="x",
            provenance=PROVENANCE,
            span=(0.0, 1.0),
            totals=data,
            series=Labelled({}, {}),
        )

    found = of().interval("loss", "up")
    assert (found.mean, found.half_width) == (
        pytest.approx(0.03),
        pytest.approx(4.30265 * math.sqrt(7e-4) / math.sqrt(3.0), rel=1e-5),
    )
    (figure,) = [each for each in of().summary() if each.quantity == "loss"]
    assert (figure.of, figure.unit, figure.mean, figure.half_width) == ("up", "%", found.mean, found.half_width)
    same = of(sample=(("run",), np.array([0, 0, 1])))
    assert same["loss", "up"] == pytest.approx((0.015 + 0.06) / 2.0)
    assert "2 disjoint windows" in same.table()[0]
    alone = of(sample=(("run",), np.array([4, 4, 4])))
    assert alone.interval("loss", "up").half_width is None
    assert estimate(np.array([1.0, 2.0, 6.0])).half_width == pytest.approx(100.0 * found.half_width)


def test_of_many_links_those_that_lose_the_most_are_listed() -> None:
    ids = tuple(f"l{k}" for k in range(30))
    totals = {"lost": (("run", "link"), np.arange(30.0)[None]), "arrived": (("run", "link"), np.full((1, 30), 100.0))}
    data = Labelled({"run": (0,), "link": ids, "flow": ()}, totals)
    found = Result(
        scenario=SCENARIO, simulator="x", provenance=PROVENANCE, span=(0.0, 1.0), totals=data, series=Labelled({}, {})
    )
    rows = found.table()[1]
    assert [name for name, _ in rows] == [*ids[10:], "links"]
    assert rows[-1][1].startswith("30, of which")


def test_the_table_has_the_figures() -> None:
    title, rows = result().table()
    assert title == "two links (fluid), 1 to 5 s"
    text = "\n".join(f"{name}: {text}" for name, text in rows)
    for piece in (
        "up: throughput 12.8 kbit/s, utilization 98.46 %, backlog 200 B, delay 200 ms, loss 1 %, marks 1 %",
        "of backlog: std 158.1 B, median 200 B, 95 % 385 B, most 400 B",
        "f: throughput 13.33 kbit/s, goodput 12.8 kbit/s, rtt 300 ms",
        "short objects: response 350 ms",
    ):
        assert piece in text
    assert "<td" in result()._repr_html_()
    assert "&lt;x&gt;" in result(simulator="<x>")._repr_html_()
    assert result().verdict.startswith("98.46 % used (up), 1 % lost (up), 200 B waiting on average (up)")


def test_what_was_not_measured_is_named() -> None:
    found = result()
    with pytest.raises(InvalidValue, match=r"up: got 'throughputs'.*did you mean 'throughput'"):
        found["throughputs", "up"]
    with pytest.raises(InvalidValue, match=r"of: got 'upp', takes one of up.*did you mean 'up'"):
        found["loss", "upp"]
    with pytest.raises(InvalidValue, match="a quantity and an object"):
        found["loss"]  # ty: ignore[invalid-argument-type]
    with pytest.raises(InvalidValue, match=r"quantity: got 'backlogs'.*did you mean 'backlog'"):
        found.series["backlogs"]
    with pytest.raises(InvalidValue, match="backlog: got 'f', takes one of up, down"):
        found.series["backlog", "f"]
    with pytest.raises(InvalidValue, match="part: got 'packets', takes one of link, flow, transfers, runs"):
        found.to_pandas("packets")


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_tables_have_a_row_for_each_link_or_flow_and_sample() -> None:
    frame, flows = result().to_pandas("link"), result().to_pandas("flow")
    assert list(frame.columns) == ["link", "time", *LINKS, "capacity"]
    assert frame["link"].tolist() == ["up"] * 5 + ["down"] * 5
    assert frame["time"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0] * 2
    assert frame.query("link == 'up'")["lost"].tolist() == LINKS["lost"][0]
    assert flows.query("flow == 'w'")["payload"].tolist() == FLOWS["payload"][1]
    assert len(result().to_pandas()) == len(frame) + len(flows)
    assert result().to_pandas("transfers")["size"].tolist() == TRANSFERS["size"]
    assert result().to_pandas("runs")["lost"].tolist() == [70.0, 0.0]


def test_xarray_has_the_same_arrays_with_units() -> None:
    pytest.importorskip("xarray")
    data = result().series.to_xarray()
    np.testing.assert_array_equal(data["backlog"].sel(link="up"), LINKS["backlog"][0])
    assert data["backlog"].dims == ("link", "time")
    assert (data["backlog"].attrs, data["rtt"].attrs) == ({"units": "B"}, {"units": "s"})


def test_arrays_are_copies_and_read_only() -> None:
    backlog = np.array(LINKS["backlog"])
    found = result(backlog=backlog)
    backlog[0, 0] = -1.0
    assert found.series["backlog"][0, 0] == 900.0
    with pytest.raises(ValueError, match="read-only"):
        found.series["backlog"][0, 0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        found.transfers["size"][0] = 0.0
    with pytest.raises(AttributeError):
        found.simulator = "ns-3"  # ty: ignore[invalid-assignment]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arrived", [[0.0] * 5]),
        ("arrived", [[0.0] * 4] * 2),
        ("arrived", [0.0] * 5),
        ("probability", [[math.inf] * 5] * 2),
        ("lost", np.zeros((5, 2))),
        ("payload", [[0.0] * 5] * 3),
        ("start", [0.0] * 7),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(name, value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        result(**{name: value})
    assert refusal.value.argument == ("tables.transfers" if name == "start" else name)
    assert len(str(refusal.value)) < 300


def test_an_unknown_quantity_is_refused() -> None:
    with pytest.raises(InvalidValue, match="got 'colour'"):
        Labelled({"run": (0,)}, {"colour": (("run",), np.zeros(1))})


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_result_that_was_saved_and_read_back_is_equal(tmp_path) -> None:
    saved = result()
    saved.save(tmp_path / "r.npz")
    again = netctrl.read(tmp_path / "r.npz")
    assert equal(again, saved)
    assert again.measures() == saved.measures()
    with np.load(tmp_path / "r.npz") as file:  # without pickled objects
        head = json.loads(bytes(file["head"]))
    assert head["schema"] == "netctrl.result/1"
    assert head["scenario"]["links"][0]["capacity"] == 8000.0


def test_results_of_all_kinds_and_traces_come_back(tmp_path) -> None:
    trace = netctrl.read(data_path("traces/mobile.trace"))
    line = Link(id="line", source="a", target="b", capacity=5e6, buffer=5e4, trace=trace)
    flows = (Flow(id="f", path=("line",), rtt=0.05, count=1, sender="cubic"),)
    varying = Scenario(name="trace", links=(line,), flows=flows, duration=2.0)
    for number, found in enumerate(
        (
            netctrl.simulate(varying, "packet"),
            netctrl.simulate(bottleneck(duration=3.0, warmup=1.0, flows=(Flow(sender="cubic"),)), "packet"),
            netctrl.simulate(netctrl.read("hftrac-testbed").replace(duration="20s"), "fluid", runs=3),
        )
    ):
        found.save(tmp_path / f"{number}.npz")
        assert equal(netctrl.read(tmp_path / f"{number}.npz"), found)


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=30, deadline=None)
@given(st.lists(FINITE, min_size=10, max_size=10), st.lists(FINITE, max_size=3))
def test_files_keep_every_bit(tmp_path_factory, series, rows) -> None:
    path = tmp_path_factory.getbasetemp() / "bits.npz"
    table = np.array(series).reshape(2, 5)
    saved = result(**dict.fromkeys(LINKS, table) | dict.fromkeys(TRANSFERS, rows))
    saved.save(path)
    assert equal(read_result(path), saved)


def packed(**arrays: Any) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def altered(tmp_path, change: Any = lambda head: head, **arrays: Any) -> bytes:
    """The file with another head and other arrays; None: without it."""
    result().save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as file:
        held = {name: file[name] for name in file.files}
    head = change(json.loads(bytes(held["head"])))
    held["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    return packed(**{name: array for name, array in (held | arrays).items() if array is not None})


def _wrong_capacity(head: dict) -> dict:
    head["scenario"]["links"][0]["capacity"] = -10
    return head


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda _: b"", ["not a simulation result"]),
        (lambda _: b"PK" + b"x" * 100, ["not a simulation result"]),
        (lambda _: packed(head=np.zeros(3, np.uint8)), ["JSON"]),
        (lambda _: packed(x=np.zeros(3)), ["head is missing"]),
        (lambda path: altered(path, lambda head: head | {"schema": "netctrl.result/9"}), ["schema"]),
        (lambda path: altered(path, lambda head: head | {"colour": 1}), ["unknown key `colour`"]),
        (lambda path: altered(path, _wrong_capacity), ["scenario.links[0].capacity: got -10, takes a rate"]),
        (lambda path: altered(path, **{"series/backlog": None}), ["series/backlog is missing"]),
        (lambda path: altered(path, **{"series/backlog": np.zeros((2, 4))}), ["backlog", "(2, 5)"]),
        (lambda path: altered(path, **{"series/backlog": np.full((2, 5), "x")}), ["not a simulation result"]),
        (lambda path: altered(path, **{"tables/transfers/size": np.zeros(2)}), ["tables.transfers", "equal length"]),
        (lambda path: altered(path, **{"odd": np.zeros(2)}), ["not a simulation result"]),
        (lambda path: altered(path, **{"series/lost": np.array([{}, []], dtype=object)}), ["not a simulation result"]),
    ],
)
def test_what_is_no_result_is_one_line(make, pieces, tmp_path) -> None:
    path = tmp_path / "r.npz"
    path.write_bytes(make(tmp_path))
    with pytest.raises(FileError) as refusal:
        read_result(path)
    assert [piece for piece in pieces if piece not in str(refusal.value)] == [], refusal.value.why
    assert len(str(refusal.value).splitlines()) == 1
    assert len(refusal.value.why) < 400


@pytest.mark.parametrize("name", ["missing.npz", "."])
def test_a_result_that_cannot_be_read_is_named(name, tmp_path) -> None:
    with pytest.raises(FileError, match="can't be read"):
        read_result(tmp_path / name)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_to_a_file_gives_a_result_or_one_line(tmp_path_factory, data) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    result().save(path)
    text = path.read_bytes()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 20, len(text))))
    path.write_bytes(text[:start] + data.draw(st.binary(max_size=5)) + text[stop:])
    try:
        read_result(path)
    except FileError as error:
        assert len(str(error).splitlines()) == 1


# --- all kinds --------------------------------------------------------------------------------------------------------


def links() -> Scenario:
    path = ("a", "b")
    first = Link(id="a", source="x", target="y", capacity=1e7, buffer=5e4)
    ends = (first, Link(id="b", source="y", target="z", capacity=8e6))
    flows = (
        Flow(id="tcp", path=path, rtt=0.02, count=2),
        Flow(id="udp", path=path[:1], count=1, offers=Stream(rate=1e6)),
    )
    return Scenario(name="two", links=ends, flows=flows, duration=3.0, warmup=1.0)


def centre() -> Scenario:
    flows = Flow(id="x", source=[0, 1], target=4, offers=1e5, sender=Hpcc())
    return Scenario(name="four", network=Dumbbell(), flows=(flows,), duration=5e-3)


@pytest.fixture(scope="module")
def results() -> list[Any]:
    return [
        netctrl.simulate(links(), "packet"),
        netctrl.simulate(netctrl.read("hftrac-testbed").replace(duration="20s"), "fluid"),
        netctrl.simulate(access_link(duration=3.0), "packet"),
        netctrl.simulate(centre(), "packet"),
    ]


def test_tables_are_the_measures(results) -> None:
    for result in results:
        measures = result.measures()
        seen = 0
        for name, table in (("link", result.links_table()), ("flow", result.flows_table())):
            for row in table.to_dict("records"):
                of = row.pop(name)
                told = {quantity: value for quantity, value in row.items() if not np.isnan(value)}
                assert told == {quantity: value for (quantity, each), value in measures.items() if each == of}
                seen += len(told)
        named = {*result.links_table()["link"], *result.flows_table()["flow"]}
        assert seen == sum(of in named for _, of in measures)


def test_links_and_flows_are_told_apart(results) -> None:
    found = [(list(each.links_table()["link"]), list(each.flows_table()["flow"])) for each in results]
    assert found[0] == (["a", "b"], ["tcp", "udp"])
    assert found[2] == (["hop0"], ["premium", "source0", "source1", "source2"])
    assert len(found[1][0]) == len(results[1].links)
    assert found[3] == (list(results[3].links), ["x"])


def test_quantities_have_one_unit_each_and_shares_none(results) -> None:
    names = {quantity for each in results for quantity, _ in each.measures()}
    assert {"throughput", "backlog", "loss", "delay"} <= names
    counted = {"drops", "pauses", "begun", "completed", "packets sent again"}
    ratios = {name for name in names if name.startswith("slow-down")}
    assert names - set(FIGURES) - ratios - counted <= {"probability"}
    assert quantity_text("throughput", 1.2345e6, 3) == "1.23 Mbit/s"
    assert quantity_text("loss", 0.0123, 2) == "1.2 %"
    assert quantity_text("slow-down", 1.234, 3) == "1.23"


def test_ports_and_flows_of_a_data_centre_add_up(results) -> None:
    flows, ports = results[3].flows_table(), results[3].links_table()
    assert flows["goodput"].item() == 8 * 2e5 / 5e-3
    assert ports.loc[ports["link"] == "s0>s1", "utilization"].item() == ports.loc[:, "utilization"].max()


def test_every_result_shows_itself(results) -> None:
    for each in results:
        title, rows = each.table()
        page = each._repr_html_()
        assert page.startswith(f"<table><caption>{title}".replace(">=", "&gt;="))
        assert all(html.escape(name) in page for name, _ in rows)
        assert each.simulator
        assert each.provenance.seed == each.scenario.seed
        msgspec.json.encode(each.summary())


def test_of_datagrams_nothing_is_sent_or_resent_rather_than_0():
    scenario = SCENARIO.replace(flows=(SCENARIO.flows[0], Flow(id="d", path=("down",), offers=Stream(rate=1e3))))
    totals = {"sent": np.array([500.0, 7.0]), "resent": np.array([5.0, 0.0])}
    series = {name: np.zeros((2, 5)) for name in ("payload", "delivered")}
    found = Result.of_series(scenario, "packet", PROVENANCE, links={}, flows=series, totals=totals)
    assert found.totals["sent"].tolist() == [[500.0, pytest.approx(math.nan, nan_ok=True)]]
    assert found.totals["resent"].tolist() == [[5.0, pytest.approx(math.nan, nan_ok=True)]]
    assert found["resent", "f"] == 0.01
    assert "resent" not in found.of("d")
