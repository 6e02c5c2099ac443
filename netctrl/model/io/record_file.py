"""Records of files: frozen, complete, with no unknown key; those that are JSON files of their own are written whole."""

from __future__ import annotations

import os
from typing import TypeVar

import msgspec

from netctrl.errors import FileError
from netctrl.model.io.files import write_atomically
from netctrl.model.io.json_file import read_json
from netctrl.model.io.validation_errors import explained

__all__ = ["FileRecord", "Record", "read_record"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What stands in a file or a report."""


class FileRecord(Record, frozen=True):
    """A record with a `schema`, which says what it is."""

    def to_json(self) -> str:
        """The file's text: strict JSON, ends with a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        write_atomically(path, self.to_json().encode())


_Kind = TypeVar("_Kind", bound=FileRecord)


def read_record(path: str | os.PathLike[str], kind: type[_Kind], *, schema: str, what: str, max_bytes: int) -> _Kind:
    """Read a record's file.

    Parameters
    ----------
    path : path-like
    kind : type
    schema : str
        What its `schema` says, as in "netctrl.linux/1".
    what : str
        In messages, as in "plan of queues".
    max_bytes : int
        A larger file is refused [byte].

    Raises
    ------
    FileError
        It can't be read, isn't JSON, or has an unknown, missing or unusable key, which the message names.
    """
    content = read_json(path, what=what, max_bytes=max_bytes)
    if not isinstance(content, dict) or content.get("schema") != schema:
        raise FileError(path, f'is no {what}: takes "schema": "{schema}"')
    try:
        return msgspec.convert(content, kind, strict=True)
    except msgspec.ValidationError as error:
        raise FileError(path, f"is no {what}: {explained(error, content, kind)}") from None
