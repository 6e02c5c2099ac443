"""JSON files read with care: of bounded size and depth, UTF-8, each key once in its object."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import msgspec

from netctrl.errors import FileError
from netctrl.model.explain import shorten
from netctrl.model.files import read_bounded

__all__ = ["decoded", "read_json"]

_MAX_DEPTH = 200
_TOKEN = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")([ \t\r\n]*:)?|[][{}]', re.DOTALL)


def read_json(
    path: str | os.PathLike[str],
    kind: Any = Any,
    *,
    what: str,
    most_bytes: int,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Any:
    """What a JSON file holds, as plain data or as a record of this kind.

    Parameters
    ----------
    path : path
    kind : type
        As `msgspec.json.decode` takes it.
    what : str
        In messages, as in "plan of queues".
    most_bytes : int
        A larger file is refused.
    dec_hook : callable, optional
        As `msgspec.json.decode` takes it.

    Raises
    ------
    FileError
        It can't be read, is too large, nested too deeply, no JSON, or has a key twice in one object.
    msgspec.ValidationError
        It is no such record: for the caller to say.
    """
    size = f"{most_bytes // 2**30} GiB" if most_bytes >= 2**30 else f"{most_bytes // 2**20} MiB"
    return decoded(path, read_bounded(path, most_bytes, f"is larger than a {what} may be ({size})"), kind, dec_hook)


def decoded(path: object, text: bytes, kind: Any = Any, dec_hook: Callable[[type, Any], Any] | None = None) -> Any:
    """The same of text that has been read already; `path` is for messages."""
    _check_tokens(path, text)
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        if kind is not Any:
            raise
        raise FileError(path, f"can't be read: {error}") from None  # an integer beyond 64 bits
    except UnicodeDecodeError as error:
        raise FileError(path, f"is no JSON: not UTF-8 text (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise FileError(path, f"is no JSON: {error}") from None
    except RecursionError:
        raise FileError(path, "is nested too deeply") from None


def _check_tokens(path: object, text: bytes) -> None:
    """Refuse depth and repeated keys, of which the decoder takes the last without a word."""
    objects: list[set[bytes] | None] = []  # keys so far of each open object; None: an open array
    for token in _TOKEN.finditer(text):
        key, colon = token.groups()
        if key is not None:
            if colon and objects and (keys := objects[-1]) is not None:
                name = _unescaped(key)
                if name in keys:
                    line = text.count(b"\n", 0, token.start()) + 1
                    written = shorten(name.decode(errors="replace"))
                    raise FileError(path, f"has the key {written} twice in one object (at line {line})")
                keys.add(name)
        elif token[0] in b"{[":
            objects.append(set() if token[0] == b"{" else None)
            if len(objects) > _MAX_DEPTH:
                raise FileError(path, "is nested too deeply")
        elif objects:
            objects.pop()


def _unescaped(key: bytes) -> bytes:
    if b"\\" not in key:
        return key
    try:
        return msgspec.json.encode(msgspec.json.decode(key, type=str))
    except (msgspec.DecodeError, UnicodeDecodeError):  # the decoder says so
        return key
