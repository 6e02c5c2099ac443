"""Reading of TOML files written by people, in bounded time and depth.

Every rate, time and size carries its unit, as on the command line: a bare number would be read as bit/s, seconds or
bytes, `capacity = 20` as 20 bit/s. The annotations Rate, Duration, Size and Span (`netctrl.model.io.fields`) mark
fields that are quantities, so one traversal of content and type serves all records. Values from Python, or from JSON
whose format fixes the units, are not checked.
"""

from __future__ import annotations

import os
import re
import tomllib
from numbers import Real
from typing import Any, TypeVar

import msgspec

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import read_bounded
from netctrl.model.io.validation_errors import at_key, explained, items, kinds, shorten, shown

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
        found = items(found) or at_key(found, {}, name)
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
        inside = items(found)
        for index, value in enumerate(content) if inside else ():
            _check(inside, value, f"{place}[{index}]")


def _refuse_bare(quantity: str, value: Any, place: str) -> None:
    if isinstance(value, list | tuple):  # both ends of a range
        for index, end in enumerate(value):
            _refuse_bare(quantity, end, f"{place}[{index}]")
    elif isinstance(value, Real) and not isinstance(value, bool):
        what, (usual, base) = _TAKES[quantity]
        name = "" if place.endswith("]") else f"{place.rpartition('.')[2]} = "
        number = f"{value:g}" if 0.0 <= value < 1e6 else "20"
        raise InvalidValue(place, value, f'{what}, as in {name}"{number}{usual}" or "{number}{base}"')


_MAX_BYTES = 2**20
_MAX_KEYS = 200
_MAX_DIGITS = 1000


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Content of a TOML file of at most 1 MiB.

    Raises
    ------
    FileError
        The file can't be read, is too large or nested too deeply, or isn't TOML; the message names the line.
    """
    content = read_bounded(path, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**20} MiB allowed")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(path, f"not valid TOML: not UTF-8 text (at line {line})") from None
    # tomllib's time grows with the square of the keys in `a.b.c`; Python refuses to print very long integers.
    if max(part.count(".") for part in re.split(r"[=,{\[\n]", text)) > _MAX_KEYS:
        raise FileError(path, "nested too deeply")
    if re.search(rf"[0-9a-fA-F_]{{{_MAX_DIGITS}}}", text):
        raise FileError(path, f"contains a number of {_MAX_DIGITS} digits or more")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"not valid TOML: {shorten(' '.join(str(error).split()), 200)}") from None
    except RecursionError:
        raise FileError(path, "nested too deeply") from None


_Record = TypeVar("_Record", bound=msgspec.Struct)


def read_toml_record(path: str | os.PathLike[str], kind: type[_Record]) -> _Record:
    """A record from a TOML file whose keys are the record's fields.

    Raises
    ------
    FileError
        As for `read_toml` and `toml_record`.
    """
    return toml_record(path, read_toml(path), kind)


def toml_record(path: str | os.PathLike[str], content: dict[str, Any], kind: type[_Record]) -> _Record:
    """A record from the content of a TOML file.

    Raises
    ------
    FileError
        A key that is unknown, missing or unusable, or a rate, time or size without unit; the message names it.
    """
    try:
        check_units(content, kind)
        return msgspec.convert(content, kind)
    except InvalidValue as error:
        raise FileError(path, f"{error.argument}: got {shown(error.got)}, takes {error.takes}") from None
    except msgspec.ValidationError as error:
        raise FileError(path, explained(error, content, kind)) from None
