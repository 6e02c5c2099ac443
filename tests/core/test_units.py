"""The parser of "10Mbit", "500ms", "200kB": what it takes, what it refuses, and how it says so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    format_quantity,
    packets_per_second,
    parse_count,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
)

RATES = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}
DURATIONS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}
UNITS = [
    *((parse_rate, unit + tail, scale) for unit, scale in RATES.items() for tail in ("", "/s")),
    *((parse_duration, unit, scale) for unit, scale in DURATIONS.items()),
    *((parse_size, unit, scale) for unit, scale in SIZES.items()),
]
# Values that floats hold exactly in text and back, as people type them.
NUMBERS = st.decimals(min_value="0.001", max_value="9999", places=3).map(str)
WRITTEN = ["2.5{}", "2.5 {}", "  2.5{} ", "25e-1{}", "0.25E+1{}", "02.50{}"]


@pytest.mark.parametrize(("parse", "unit", "scale"), UNITS, ids=[unit for _, unit, _ in UNITS])
def test_every_unit_in_any_case_and_spacing(parse, unit, scale) -> None:
    # Upper case of the micro sign is a Greek letter: not asked for.
    spellings = {unit} if "µ" in unit else {unit, unit.upper(), unit.lower(), unit.swapcase()}
    for spelling in spellings:
        for written in WRITTEN:
            assert parse(written.format(spelling)) == pytest.approx(2.5 * scale, rel=1e-15)


def test_both_micro_signs_are_micro() -> None:
    """U+03BC is what Unicode prefers and what many keyboards and documents hold; on screen it is U+00B5."""
    assert parse_duration("60\N{GREEK SMALL LETTER MU}s") == parse_duration("60\N{MICRO SIGN}s")


@pytest.mark.parametrize(("text", "seconds"), [("1.s", 1.0), (".5ms", 5e-4), ("5ms", 5e-3), ("1e3us", 1e-3)])
def test_numbers_as_python_writes_them(text, seconds) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-15)


def test_a_bare_number_is_a_size_in_bytes_or_a_count_only() -> None:
    assert parse_size("1500") == 1500.0
    assert parse_count("1.42e-5") == 1.42e-5
    for parse in (parse_rate, parse_duration):
        with pytest.raises(ValueError, match="got "):
            parse("10")


NO_NUMBER = ["", " ", "bit", "s", "B", "nan", "inf", "-inf", "nanbit", "infms", "one", "None", "1_0", "0x10", "١٠"]
NOT_POSITIVE = ["0", "0.0", "-5", "-0", "+5", "−5"]
NOT_ONE_NUMBER = ["5.5.5", "5,5", "1e", "e5", "1e5e5", "1 0", "5;", "--5"]
RATES_REFUSED = ["10", "10Mbps", "10bps", "10MB", "10M", "10ms", "10Mbitt", "10 Mbitt", "10 M bit"]
RATES_REFUSED += ["10Mbit/", "10Mbit/ms"]
TIMES_REFUSED = ["5", "5m", "5h", "5sec", "5 m s", "5ms5", "5ms 3", "5bit", "5 5ms"]
SIZES_REFUSED = ["5kbit", "5packets", "5kkB", "5k", "5 0", "-5"]
REFUSED = {
    "rate": (parse_rate, RATE_TAKES, "Mbit", RATES_REFUSED),
    "time": (parse_duration, DURATION_TAKES, "ms", TIMES_REFUSED),
    "size": (parse_size, SIZE_TAKES, "kB", SIZES_REFUSED),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_refused_by_name(kind) -> None:
    parse, takes, unit, texts = REFUSED[kind]
    numbers = [*NOT_POSITIVE, *NOT_ONE_NUMBER, "1e400", "1e-400"]
    for text in [*texts, *NO_NUMBER, *(number + unit for number in numbers)]:
        with pytest.raises(ValueError, match=re.escape(takes)):
            parse(text)
            pytest.fail(f"took {text!r}")


@pytest.mark.parametrize(
    ("parse", "text"), [(parse_duration, "0ms"), (parse_rate, "1e400Mbit"), (parse_size, "0"), (parse_count, "0.0")]
)
def test_a_refusal_shows_what_was_typed(parse, text) -> None:
    """Not what became of it: whoever typed 1e400Mbit knows of no inf."""
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        parse(text)


@pytest.mark.parametrize("text", ["0", "0.0", ".0", "0e5", "1e-400"])
def test_nothing_is_taken_where_it_is_asked_for(text) -> None:
    assert parse_duration(f"{text}ms", zero=True) == 0.0
    assert parse_size(f"{text}kB", zero=True) == parse_size(text, zero=True) == 0.0
    for parse in (parse_duration, parse_size):
        with pytest.raises(ValueError, match="got "):
            parse(f"{text}{'s' if parse is parse_duration else 'B'}")


@pytest.mark.parametrize("text", ["-0s", "-1s", "0", "nans", "infs", "s", "", "0 flows", "1e400s"])
def test_where_nothing_is_taken_less_is_not(text) -> None:
    with pytest.raises(ValueError, match="got "):
        parse_duration(text, zero=True)
    with pytest.raises(ValueError, match="got "):
        parse_size(text.replace("s", "B").replace("0", "-0"), zero=True)


@pytest.mark.parametrize("text", ["5 flows", "0", "-1", "nan", "", "5s", "1e400"])
def test_a_count_has_no_unit(text) -> None:
    with pytest.raises(ValueError, match="a number above 0"):
        parse_count(text)


@given(NUMBERS.filter(lambda text: float(text) > 0), st.integers(0, 3))
def test_prefixes_only_shift_the_point(text, shift) -> None:
    """10Mbit is 10000kbit: the same value in a smaller unit, whichever unit that is."""
    for parse, units in ((parse_rate, ["bit", "kbit", "Mbit", "Gbit"]), (parse_duration, ["ns", "us", "ms", "s"])):
        value = parse(text + units[3])
        assert parse(f"{text}e{3 * shift}{units[3 - shift]}") == pytest.approx(value, rel=1e-14)
    assert parse_size(f"{text}KiB") == 1024.0 * float(text)
    assert parse_duration(f"{text}min") == pytest.approx(60.0 * parse_duration(f"{text}s"), rel=1e-14)


@pytest.mark.parametrize(
    ("parse", "unit", "least", "most"),
    [(parse_rate, "bit/s", 1.0, 1e14), (parse_duration, "s", 1e-9, 999.0), (parse_size, "B", 1.0, 1e12)],
)
def test_what_is_shown_can_be_typed_in_again(parse, unit, least, most) -> None:
    @given(st.floats(least, most))
    def law(value) -> None:
        shown = format_quantity(value, unit)
        assert parse(shown) == pytest.approx(value, rel=1e-5)
        assert format_quantity(parse(shown), unit) == shown

    law()


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1e7, "bit/s", "10 Mbit/s"),
        (0.06, "s", "60 ms"),
        (0.5, "s", "500 ms"),
        (1.0, "s", "1 s"),
        (2e5, "B", "200 kB"),
        (0.0, "s", "0 s"),
        (-0.002, "s", "-2 ms"),
    ],
)
def test_people_see_a_prefix(value, unit, shown) -> None:
    assert format_quantity(value, unit) == shown


@pytest.mark.parametrize("seconds", [1200.0, 5000.0])
def test_a_long_time_is_shown_in_a_unit_that_is_taken(seconds) -> None:
    """Nobody writes kiloseconds, and the parser doesn't take them."""
    assert parse_duration(format_quantity(seconds, "s")) == pytest.approx(seconds, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("60ms:500ms", (0.06, 0.5)),
        ("0.06s:500ms", (0.06, 0.5)),
        ("500ms", (0.5, 0.5)),
        ("500ms:500ms", (0.5, 0.5)),
        ("500ms:0.5s", (0.5, 0.5)),
        (" 60 ms : 500 ms ", (0.06, 0.5)),
    ],
)
def test_a_range_is_one_value_or_two(text, ends) -> None:
    assert parse_range(text, parse_duration) == pytest.approx(ends, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["", ":", "60ms:", ":500ms", "1ms:2ms:3ms", "1ms:2ms:", "60:500ms", "60ms-500ms", "0s:1s"]
)
def test_a_broken_range_is_refused_whole(text) -> None:
    with pytest.raises(ValueError, match="got "):
        parse_range(text, parse_duration)


def test_packets_per_second_is_eight_bits_a_byte_and_broadcasts() -> None:
    assert packets_per_second(10e6, 1000.0) == 1250.0
    found = packets_per_second(np.array([1e6, 8e6]), np.array([[1000.0], [500.0]]))
    assert found.tolist() == [[125.0, 1000.0], [250.0, 2000.0]]


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_size, "1e-320", "from 1B to 1e6GB"),
        (parse_size, "0.5B", "from 1B to 1e6GB"),
        (parse_size, "1e16", "from 1B to 1e6GB"),
        (parse_rate, "1e-320bit", "from 1bit to 1000Tbit"),
        (parse_rate, "1e4Tbit", "from 1bit to 1000Tbit"),
        (parse_duration, "1e-320s", "from 1ns to 1e9s"),
        (parse_duration, "0.1ns", "from 1ns to 1e9s"),
        (parse_duration, "1e10s", "from 1ns to 1e9s"),
    ],
)
def test_a_quantity_that_no_network_has_is_refused(parse, text, said) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)
