"""Readers of fields: text with units and SI numbers give the same, and what is no quantity is refused by its name."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.model.io.fields import (
    backlog,
    duration,
    flag,
    identifier,
    instant,
    number,
    optional,
    rate,
    read_fields,
    record,
    records,
    size,
    span,
    texts,
    whole,
)

READERS = {"rate": rate, "duration": duration, "instant": instant, "size": size, "backlog": backlog, "span": span}


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        (rate, "10Mbit", 10e6),
        (duration, "500ms", 0.5),
        (duration, "1ns", 1e-9),
        (instant, "0s", 0.0),
        (instant, "20ms", 0.02),
        (size, "200kB", 200e3),
        (size, "1500B", 1500.0),
        (backlog, "0kB", 0.0),
    ],
)
def test_text_with_a_unit_is_the_number_in_si(reader, text, value) -> None:
    assert reader("x", text) == pytest.approx(value, rel=1e-15)
    for same in (value, np.float64(value)):
        assert type(reader("x", same)) is float
        assert reader("x", same) == value


def test_whole_numbers_are_quantities_too() -> None:
    assert (rate("x", 1000), instant("x", 0), size("x", np.int64(7))) == (1000.0, 0.0, 7.0)
    assert math.copysign(1.0, instant("x", -0.0)) == 1.0


NO_QUANTITY = [None, True, False, math.nan, math.inf, -math.inf, -1, -1e-300, 1e16, 1e308, 10**400, 1j]
NO_QUANTITY += ["", "many", "nan", "-5ms", "10Mbps", "1e300s", "1e300bit", "1e300GB", b"10Mbit", {}, {"s": 1}, [], [[]]]


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("value", NO_QUANTITY, ids=lambda value: repr(value)[:15])
def test_what_is_no_quantity_is_refused_by_name(kind, value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        READERS[kind]("links.queue", value)
    assert refusal.value.argument == "links.queue"
    assert refusal.value.got is value
    assert "as in" in refusal.value.takes


@pytest.mark.parametrize(
    ("reader", "value"),
    [(rate, 0), (rate, "0bit"), (rate, 5e-324), (duration, 0.0), (duration, "0s"), (duration, 1e-10), (size, 0.5)],
)
def test_zero_and_next_to_it_are_refused_where_nothing_could_be_made_of_them(reader, value) -> None:
    with pytest.raises(InvalidValue, match="takes"):
        reader("x", value)


@pytest.mark.parametrize("unitless", ["10", "0", "1e3"])
@pytest.mark.parametrize("reader", [rate, duration, instant, size, span])
def test_text_needs_its_unit(reader, unitless) -> None:
    with pytest.raises(InvalidValue, match="unit"):
        reader("x", unitless)


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        ("60ms:1s", (0.06, 1.0)),
        ("500ms", (0.5, 0.5)),
        ("0s:50s", (0.0, 50.0)),
        (0.5, (0.5, 0.5)),
        (0, (0.0, 0.0)),
        ((0.06, 1), (0.06, 1.0)),
        (["60ms", "1s"], (0.06, 1.0)),
        (["60ms", 1.0], (0.06, 1.0)),
    ],
)
def test_a_span_is_one_time_or_two(value, ends) -> None:
    assert span("rtt", value) == ends


BROKEN = ["1s:60ms", "60:1s", "1s:", ":", "1s:2s:3s"]
BROKEN += [(1.0, 0.5), (1,), (1, 2, 3), (0, math.nan), (0, True), [["1s", "2s"], 1]]


@pytest.mark.parametrize("value", BROKEN, ids=str)
def test_a_broken_span_is_refused_whole(value) -> None:
    with pytest.raises(InvalidValue, match="60ms:1s") as refusal:
        span("rtt", value)
    assert refusal.value.got is value


def test_an_empty_span_says_so() -> None:
    with pytest.raises(InvalidValue, match="this range is empty"):
        span("rtt", "2s:1s")


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_a_span_that_was_read_is_read_again(first, second) -> None:
    pair = (min(first, second), max(first, second))
    assert span("x", list(span("x", pair))) == pair


JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@given(st.sampled_from(sorted(READERS)), JUNK | st.lists(JUNK, max_size=3) | st.dictionaries(st.text(max_size=2), JUNK))
def test_anything_gives_a_finite_number_or_a_refusal(kind, value) -> None:
    try:
        read = READERS[kind]("x", value)
    except InvalidValue:
        return
    ends = read if kind == "span" else (read,)
    assert all(type(end) is float and 0.0 <= end <= 1e15 for end in ends)


@pytest.mark.parametrize(
    "value", [2.5, 5.0, True, "5", None, math.nan, math.inf, 0, 11, 10**400, [5]], ids=lambda v: f"{v}"[:8]
)
def test_whole_numbers_are_whole_and_within_bounds(value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        whole(1, 10)("count", value)
    assert refusal.value.argument == "count"
    assert refusal.value.takes == "a whole number from 1 to 10"


@pytest.mark.parametrize("value", [1, 10, np.int64(5), np.uint8(5)], ids=repr)
def test_whole_numbers_of_any_kind_become_ints(value) -> None:
    assert type(whole(1, 10)("count", value)) is int
    assert whole(1, 10)("count", value) == value


@pytest.mark.parametrize("value", ["a", "Z9", "hop.1-b_c", "a" * 64])
def test_names_that_a_table_of_c_can_hold(value) -> None:
    assert identifier("id", value) == value


NO_NAMES = ["", "1a", "_a", "a b", "a\n", "a\n\n", 'a"b', "a\\", "a/b", "é", "a" * 65, 5, None, ["a"]]
NO_NAMES += ["a\N{ZERO WIDTH SPACE}", "a;"]


@pytest.mark.parametrize("value", NO_NAMES, ids=lambda value: ascii(value)[:12])
def test_names_with_anything_else_are_refused(value) -> None:
    with pytest.raises(InvalidValue, match="starts with a letter"):
        identifier("id", value)


def test_lists_of_text_and_flags() -> None:
    assert texts("path", ["a", "b"]) == ("a", "b")
    assert texts("path", ()) == ()
    assert flag("ecn", True) is True
    for wrong in ("ab", None, ["a", 5], {"a": 1}, 5):
        with pytest.raises(InvalidValue, match="a list of text"):
            texts("path", wrong)
    for wrong in (1, 0, "yes", None):
        with pytest.raises(InvalidValue, match="true or false"):
            flag("ecn", wrong)


class Pair(msgspec.Struct, frozen=True):
    low: float
    high: float | None = None


def test_settle_puts_what_the_readers_give_in_place() -> None:
    pair = Pair("1s")  # ty: ignore[invalid-argument-type]
    read_fields(pair, low=duration, high=optional(duration))
    assert pair == Pair(1.0, None)
    with pytest.raises(InvalidValue, match="high: got None"):
        read_fields(pair, high=duration)
    with pytest.raises(InvalidValue, match="low: got 1"):
        read_fields(pair, low=number("less", at_most=0.5))


def test_records_are_of_their_kind() -> None:
    pair = Pair(1.0)
    assert record(Pair, int)("x", pair) is pair
    assert records(Pair)("x", [pair]) == (pair,)
    for wrong in (pair, [5], "ab", None):
        with pytest.raises(InvalidValue, match="a list of Pair"):
            records(Pair)("x", wrong)
    with pytest.raises(InvalidValue, match="Pair or int"):
        record(Pair, int)("x", "5")
