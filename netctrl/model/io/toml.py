"""Reading of TOML files written by people, in bounded time and depth."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any, TypeVar

import msgspec

from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.files import read_bounded
from netctrl.model.io.validation_errors import explained, shorten, shown
from netctrl.model.io.written_units import check_units

__all__ = ["read_toml", "read_toml_record", "toml_record"]

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
