"""Readers of fields: text with a unit ("10Mbit", "500ms", "60ms:1s") or SI numbers, names, whole numbers, records.

A record's `__post_init__` calls `read_fields` with one reader per field; the record then holds checked values: floats
in bit/s, seconds or bytes, a name or a tuple, whether they come from a file, Python or another record. The
annotations Rate, Duration, Size and Span say which fields need a unit in files that people write
(`netctrl.model.io.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial, reduce
from numbers import Integral, Real
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from netctrl.core.errors import InvalidValue, any_of, checked_number, checked_whole, checked_word
from netctrl.core.register import refuse_unusable
from netctrl.core.units import (
    DURATION_TAKES,
    RATE_TAKES,
    RATES,
    SIZES,
    TIMES,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
)
from netctrl.model.io.validation_errors import explained

if TYPE_CHECKING:
    Label = str
    Rate = Duration = Size = float | Any  # floats when read; a caller may also give text with a unit, as "10Mbit"
    Span = tuple[float, float] | Any
else:  # files may hold any type; the readers check values with units, which msgspec can't
    Label = Any
    Rate = Annotated[Any, msgspec.Meta(extra={"quantity": "rate"})]
    Duration = Span = Annotated[Any, msgspec.Meta(extra={"quantity": "time"})]
    Size = Annotated[Any, msgspec.Meta(extra={"quantity": "size"})]

Reader = Callable[[str, Any], Any]

INSTANT_TAKES = "a time from 0s to 1e9s with its unit (ns, us, ms, s, min), as in 500ms"
SIZE_TAKES = "a size from 1B to 1e6GB with its unit (B, kB, MB, GB, KiB, MiB, GiB), as in 200kB"
BACKLOG_TAKES = "a size from 0B to 1e6GB with its unit (B, kB, MB, GB, KiB, MiB, GiB), as in 200kB"
SPAN_TAKES = "a time from 0s to 1e9s with its unit, as in 500ms, or a range low:high, as in 60ms:1s"
LABEL_TAKES = "a name of 1 to 64 printable characters"
NAME_TAKES = "a name of 1 to 64 letters, digits, '_', '.' and '-' that starts with a letter"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def read_fields(record: msgspec.Struct, **readers: Reader) -> None:
    """Read each named field of a record that is being built, and replace it by the reader's result."""
    for field, reader in readers.items():
        msgspec.structs.force_setattr(record, field, reader(field, getattr(record, field)))


def optional(reader: Reader) -> Reader:
    """A reader that accepts None besides the values of `reader`."""
    return lambda field, value: None if value is None else reader(field, value)


def rate(field: str, value: Any) -> float:
    """A rate from 1 bit/s to 1 Pbit/s [bit/s]; InvalidValue names the field."""
    return _quantity(field, value, parse_rate, RATE_TAKES, *RATES)


def rate_or_0(field: str, value: Any) -> float:
    """A rate from 1 bit/s to 1 Pbit/s, or 0 [bit/s]; InvalidValue names the field."""
    try:
        return 0.0 if _is_0(value) else rate(field, value)
    except ValueError:  # InvalidValue, or not a rate
        raise InvalidValue(field, value, f"0, or {RATE_TAKES}") from None


def duration(field: str, value: Any) -> float:
    """A time from 1 ns to 1e9 s [s]; InvalidValue names the field."""
    return _quantity(field, value, parse_duration, DURATION_TAKES, *TIMES)


def instant(field: str, value: Any) -> float:
    """A time from 0 to 1e9 s [s]; InvalidValue names the field."""
    return _quantity(field, value, partial(parse_duration, zero=True), INSTANT_TAKES, 0.0, TIMES[1])


def size(field: str, value: Any) -> float:
    """A size from 1 byte to 1 PB [byte]; InvalidValue names the field."""
    return _quantity(field, value, partial(parse_size, bare=False), SIZE_TAKES, *SIZES)


def backlog(field: str, value: Any) -> float:
    """A size from 0 to 1 PB [byte]; InvalidValue names the field."""
    return _quantity(field, value, partial(parse_size, zero=True, bare=False), BACKLOG_TAKES, 0.0, SIZES[1])


def packet_bytes(field: str, value: Any) -> float:
    """Whole bytes of a packet, from 1 to 1 MB; InvalidValue names the field."""
    count = size(field, value)
    if count != round(count) or count > 1e6:
        raise InvalidValue(field, value, "a whole number of bytes from 1 to 1000000")
    return count


def packet_bytes_or_none(field: str, value: Any) -> float:
    """Whole bytes of a packet, from 0 to 1 MB; InvalidValue names the field."""
    count = backlog(field, value)
    return packet_bytes(field, value) if count else count


def payload(field: str, value: Any) -> float:
    """Data of a flow from 1 byte to 10 TB, rounded to whole bytes; InvalidValue names the field."""
    count = size(field, value)
    if count > 1e13:
        raise InvalidValue(field, value, "a size of at most 10 TB")
    return float(round(count))


def span(field: str, value: Any) -> tuple[float, float]:
    """Both ends of a range of times from 0 to 1e9 s [s], from "60ms:1s", "500ms", a number or a pair."""
    try:
        ends = parse_range(value, partial(parse_duration, zero=True)) if isinstance(value, str) else value
        pair = tuple(ends) if isinstance(ends, list | tuple) else (ends, ends)
        low, high = (instant(field, end) for end in pair)
    except ValueError:  # InvalidValue, an invalid range, or not two ends
        raise InvalidValue(field, value, SPAN_TAKES) from None
    if low > high:
        raise InvalidValue(field, value, f"{SPAN_TAKES}; this range is empty")
    return low, high


def number(takes: str, **bounds: float) -> Reader:
    """A reader of plain numbers within the bounds of `checked_number`."""
    return lambda field, value: checked_number(field, value, takes, **bounds)


def whole(low: int, high: int, what: str = "a whole number") -> Reader:
    """A reader of whole numbers from low to high, as checked by `checked_whole`."""
    takes = f"{what} from {low} to {high}"
    return lambda field, value: checked_whole(field, value, takes, at_least=low, at_most=high)


def one_of(*known: str) -> Reader:
    """A reader of one of the given words."""

    def read(field: str, value: Any) -> Any:
        return checked_word(field, value, known)

    return read


def flag(field: str, value: Any) -> bool:
    """True or false; InvalidValue names the field."""
    if not isinstance(value, bool):
        raise InvalidValue(field, value, "true or false")
    return value


def identifier(field: str, value: Any) -> str:
    """A name valid in a C++ table and as a file's column; InvalidValue names the field."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidValue(field, value, NAME_TAKES)
    return value


def label(field: str, value: Any) -> str:
    """A display name, or a whole number, which becomes text; InvalidValue names the field."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value) <= 64:
        raise InvalidValue(field, value, LABEL_TAKES)
    return value


def shares(field: str, value: Any) -> dict[str, float]:
    """A table from ids of links to ratios from 0 to 1; InvalidValue names the field."""
    if not isinstance(value, Mapping):
        raise InvalidValue(field, value, "a table from link id to ratio")
    ratio = number("a ratio from 0 to 1", at_least=0.0, at_most=1.0)
    return {label(field, name): ratio(f"{field}.{name}", each) for name, each in value.items()}


def texts(field: str, value: Any) -> tuple[str, ...]:
    """A list or tuple of strings, as a tuple; InvalidValue names the field."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InvalidValue(field, value, "a list of text")
    return tuple(value)


def record(*kinds: type) -> Reader:
    """A reader of one record of the given kinds: it may be a dict, as in a file, or a kind's name, if that is all."""

    def read(field: str, value: Any) -> Any:
        value = _of_word(field, value, kinds) if isinstance(value, str) else _of_dict(field, value, kinds)
        if not isinstance(value, kinds):
            refuse_unusable(value.__struct_config__.tag if isinstance(value, msgspec.Struct) else None)
            raise InvalidValue(field, value, _or(kinds))
        return value

    return read


def records(*kinds: type) -> Reader:
    """A reader of a list or tuple of records of the given kinds, or of dicts as in a file, as a tuple."""

    def read(field: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise InvalidValue(field, value, f"a list of {_or(kinds)}")
        found = tuple(_of_dict(f"{field}[{place}]", each, kinds) for place, each in enumerate(value))
        if not all(isinstance(each, kinds) for each in found):
            raise InvalidValue(field, value, f"a list of {_or(kinds)}")
        return found

    return read


def _of_word(field: str, word: str, kinds: tuple[type, ...]) -> Any:
    """The record of a kind without required parts."""
    tags = {each: each.__struct_config__.tag for each in kinds if issubclass(each, msgspec.Struct)}
    named = {str(tag): each for each, tag in tags.items() if tag}
    kind = named.get(word)
    if kind is not None and not any(each.required for each in msgspec.structs.fields(kind)):
        return kind()
    refuse_unusable(word)
    if kind is not None:
        raise InvalidValue(field, word, f'a table, {{ kind = "{word}", ... }}: it has parameters without a default')
    takes = f"one of {', '.join(named)}, or a table whose `kind` is one of these" if named else _or(kinds)
    raise InvalidValue(field, word, takes)


def _of_dict(field: str, value: Any, kinds: tuple[type, ...]) -> Any:
    """A dict as the record that its `kind` names, or the only one; anything else as it is."""
    if not isinstance(value, dict):
        return value
    kind = reduce(or_, kinds)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        said, cause = explained(error, value, kind), error.__cause__
        if isinstance(cause, InvalidValue):
            raise InvalidValue(f"{field}.{said.partition(': got ')[0]}", cause.got, cause.takes) from None
        raise InvalidValue(field, value, f"a dict as in a file ({said})") from None


def _or(kinds: tuple[type, ...]) -> str:
    return any_of(kind.__name__ for kind in kinds)


def _is_0(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() == "0" or parse_rate(value, zero=True) == 0.0
    return isinstance(value, Real) and value == 0 and value is not False


def _quantity(field: str, value: Any, parse: Callable[[str], float], takes: str, least: float, most: float) -> float:
    try:
        read = parse(value) if isinstance(value, str) else value
        return checked_number(field, read, takes, at_least=least, at_most=most) + 0.0  # no −0
    except ValueError:
        raise InvalidValue(field, value, takes) from None
