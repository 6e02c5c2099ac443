"""Records in files: frozen, complete, without unknown keys; JSON files are written atomically."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import msgspec

from netctrl.core.errors import FileError
from netctrl.core.files import write_atomically
from netctrl.model.io.json_file import read_json
from netctrl.model.io.validation_errors import explained


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a file or a report."""


class FileRecord(Record, frozen=True):
    """A record with a `schema` that names its format."""

    def to_json(self) -> str:
        """Text of the file: strict JSON that ends with a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically."""
        write_atomically(path, self.to_json().encode())


def taken(record: Any, *names: str) -> dict[str, Any]:
    """Fields of a record by name, for another record or function that has them under the same names."""
    return {name: getattr(record, name) for name in names}


_Kind = TypeVar("_Kind", bound=FileRecord)


def read_record(path: str | os.PathLike[str], kind: type[_Kind], *, schema: str, what: str, max_bytes: int) -> _Kind:
    """Read a record's file.

    Parameters
    ----------
    path : path-like
    kind : type
    schema : str
        Value of its `schema`, as in "netctrl.linux/1".
    what : str
        Name of the file's kind in messages, as in "plan of queues".
    max_bytes : int
        Maximum size of the file [byte].

    Raises
    ------
    FileError
        The file can't be read, isn't JSON, or has an unknown, missing or unusable key, which the message names.
    """
    content = read_json(path, what=what, max_bytes=max_bytes)
    if not isinstance(content, dict) or content.get("schema") != schema:
        raise FileError(path, f'not a {what}: expected "schema": "{schema}"')
    try:
        return msgspec.convert(content, kind, strict=True)
    except msgspec.ValidationError as error:
        raise FileError(path, f"not a valid {what}: {explained(error, content, kind)}") from None
