"""Fields that a person may give as text with a unit ("10Mbit", "500ms", "60ms:1s") and that hold SI numbers after.

A record's `__post_init__` calls `settle` with one reader a field; what stands in the record is then a float in bit/s,
seconds or bytes, checked, whether it came from a file, from Python or from another record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from netctrl.errors import InvalidValue, checked_number
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
)

__all__ = [
    "Duration",
    "Rate",
    "Size",
    "Span",
    "backlog",
    "duration",
    "instant",
    "number",
    "rate",
    "settle",
    "size",
    "span",
]

if TYPE_CHECKING:
    Rate = float
    Duration = float
    Size = float
    Span = tuple[float, float]
else:  # what a file may hold
    Rate = float | str
    Duration = float | str
    Size = float | str
    Span = float | str | tuple[float | str, float | str]

Reader = Callable[[str, Any], Any]

INSTANT_TAKES = "a time of at least 0 with its unit (ns, us, ms, s, min), as in 0s or 500ms"
BACKLOG_TAKES = "a size of at least 0 in bytes or with its unit (B, kB, MB, GB, KiB, MiB, GiB), as in 0 or 200kB"
SPAN_TAKES = "a time with its unit, as in 500ms, or a range low:high, as in 60ms:1s"


def settle(record: msgspec.Struct, **readers: Reader) -> None:
    """Read each named field of a record that is being built, and put the number in its place; None stays None."""
    for name, reader in readers.items():
        value = getattr(record, name)
        if value is not None:
            msgspec.structs.force_setattr(record, name, reader(name, value))


def rate(name: str, value: Any) -> float:
    """A rate above 0 [bit/s]; InvalidValue names the field."""
    return _quantity(name, value, parse_rate, RATE_TAKES, above=0.0)


def duration(name: str, value: Any) -> float:
    """A time above 0 [s]; InvalidValue names the field."""
    return _quantity(name, value, parse_duration, DURATION_TAKES, above=0.0)


def instant(name: str, value: Any) -> float:
    """A time of at least 0 [s]; InvalidValue names the field."""
    return _quantity(name, value, lambda text: parse_duration(text, zero=True), INSTANT_TAKES, at_least=0.0)


def size(name: str, value: Any) -> float:
    """A size above 0 [byte]; InvalidValue names the field."""
    return _quantity(name, value, parse_size, SIZE_TAKES, above=0.0)


def backlog(name: str, value: Any) -> float:
    """A size of at least 0 [byte]; InvalidValue names the field."""
    return _quantity(name, value, lambda text: parse_size(text, zero=True), BACKLOG_TAKES, at_least=0.0)


def span(name: str, value: Any) -> tuple[float, float]:
    """Both ends of a range of times of at least 0 [s], from "60ms:1s", "500ms", a number or a pair."""
    if isinstance(value, str):
        try:
            low, high = parse_range(value, lambda text: parse_duration(text, zero=True))
        except ValueError:
            raise InvalidValue(name, value, SPAN_TAKES) from None
    else:
        pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
        if len(pair) != 2:
            raise InvalidValue(name, value, SPAN_TAKES)
        low, high = (instant(name, end) for end in pair)
    if low > high:
        raise InvalidValue(name, value, f"{SPAN_TAKES}; this range is empty")
    return low, high


def number(takes: str, **bounds: float) -> Reader:
    """A reader of plain numbers within bounds, as `checked_number` has them."""
    return lambda name, value: checked_number(name, value, takes, **bounds)


def _quantity(name: str, value: Any, parse: Callable[[str], float], takes: str, **bounds: float) -> float:
    if not isinstance(value, str):
        return checked_number(name, value, takes, **bounds)
    try:
        return parse(value)
    except ValueError:
        raise InvalidValue(name, value, takes) from None
