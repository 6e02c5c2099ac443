"""Check that every rate, time and size in a file written by people carries its unit, as on the command line.

A bare number would be read as bit/s, seconds or bytes: `capacity = 20` as 20 bit/s. The annotations Rate, Duration,
Size and Span (`netctrl.model.io.fields`) mark fields that are quantities, so one traversal of content and type serves
all records. Values from Python, or from JSON whose format fixes the units, are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import msgspec

from netctrl.errors import InvalidValue

__all__ = ["at_key", "check_place", "check_units", "kinds"]

_TAKES = {
    "rate": ("a rate with its unit", ("Mbit", "bit")),
    "time": ("a time with its unit", ("ms", "s")),
    "size": ("a size with its unit", ("kB", "B")),
}


def check_units(content: Any, kind: type, place: str = "") -> None:
    """Refuse the first bare number where a record of this kind has a rate, a time or a size.

    Parameters
    ----------
    content : dict
        A file's content as plain data. Missing keys and wrong types are left to the record itself.
    kind : type
        Type of the record.
    place : str
        Prefix of keys in the message.

    Raises
    ------
    InvalidValue
        The message names the key and the correct notation.
    """
    _check([msgspec.inspect.type_info(kind)], content, place)


def check_place(place: str, value: Any, kind: type) -> None:
    """Check a value at one place in a record, as in "links.e1.buffer" (see `SweepSpec`)."""
    found: list[Any] = [msgspec.inspect.type_info(kind)]
    for name in place.split("."):
        lists = [each.item_type for each in kinds(found) if hasattr(each, "item_type")]
        found = lists or at_key(found, {}, name)
    _check(found, value, place)


def _check(found: list[Any], content: Any, place: str) -> None:
    """Traverse the content together with its possible types."""
    for each in kinds(found):
        quantity = (getattr(each, "extra", None) or {}).get("quantity")
        if quantity is not None:
            _refuse_bare(quantity, content, place)
    if isinstance(content, dict):
        for name, value in content.items():
            _check(at_key(found, content, name), value, f"{place}.{name}" if place else str(name))
    elif isinstance(content, list | tuple):
        items = [each.item_type for each in kinds(found) if hasattr(each, "item_type")]
        for index, value in enumerate(content) if items else ():
            _check(items, value, f"{place}[{index}]")


def kinds(found: list[Any]) -> Iterator[Any]:
    """The members of msgspec's union types."""
    for each in found:
        if isinstance(each, msgspec.inspect.UnionType):
            yield from each.types
        else:
            yield each


def at_key(found: list[Any], content: dict[str, Any], name: Any) -> list[Any]:
    """Possible types at a key: those of the record that `kind` selects, else of all records."""
    records = [each for each in kinds(found) if isinstance(each, msgspec.inspect.StructType)]
    meant = [each for each in records if each.tag_field and content.get(each.tag_field) == each.tag]
    return [field.type for each in meant or records for field in each.fields if field.encode_name == name]


def _refuse_bare(quantity: str, value: Any, place: str) -> None:
    if isinstance(value, list | tuple):  # both ends of a range
        for index, end in enumerate(value):
            _refuse_bare(quantity, end, f"{place}[{index}]")
    elif isinstance(value, Real) and not isinstance(value, bool):
        what, (usual, base) = _TAKES[quantity]
        name = "" if place.endswith("]") else f"{place.rpartition('.')[2]} = "
        number = f"{value:g}" if 0.0 <= value < 1e6 else "20"
        raise InvalidValue(place, value, f'{what}, as in {name}"{number}{usual}" or "{number}{base}"')
