"""Strict reading of JSON files: bounded size and depth, UTF-8, no repeated keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec

from netctrl.core.errors import FileError
from netctrl.core.files import read_bounded
from netctrl.model.io.validation_errors import shorten


def read_json(
    path: str | os.PathLike[str],
    kind: Any = Any,
    *,
    what: str,
    max_bytes: int,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Any:
    """Content of a JSON file, as plain data or as a record of this kind.

    Parameters
    ----------
    path : path
    kind : type
        Type passed to `msgspec.json.decode`.
    what : str
        Name of the file's kind in messages, as in "plan of queues".
    max_bytes : int
        A larger file is refused.
    dec_hook : callable, optional
        Passed to `msgspec.json.decode`.

    Raises
    ------
    FileError
        The file can't be read, is too large or nested too deeply, isn't JSON, or has a repeated key in one object.
    msgspec.ValidationError
        The content doesn't fit the record; the caller reports it.
    """
    size = f"{max_bytes // 2**30} GiB" if max_bytes >= 2**30 else f"{max_bytes // 2**20} MiB"
    return decoded(path, read_bounded(path, max_bytes, f"larger than the {size} allowed for a {what}"), kind, dec_hook)


def decoded(path: object, text: bytes, kind: Any = Any, dec_hook: Callable[[type, Any], Any] | None = None) -> Any:
    """Decode text that has been read already, like `read_json`; `path` is for messages."""
    _check_keys(path, text)
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        if kind is not Any:
            raise
        raise FileError(path, f"not JSON: {error}") from None  # a number out of range
    except UnicodeDecodeError as error:
        raise FileError(path, f"not JSON: not UTF-8 text (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise FileError(path, f"not JSON: {error}") from None
    except RecursionError:
        raise FileError(path, "nested too deeply") from None


class _Twice(Exception):
    """An object has a repeated key."""


def _check_keys(path: object, text: bytes) -> None:
    """Refuse too deep nesting and repeated keys, of which the decoder silently takes the last."""
    import json

    try:
        # `len` of a number's text takes a fifth of the time of parsing a value that isn't needed.
        json.loads(text, object_pairs_hook=_check_once, parse_float=len, parse_int=len, parse_constant=len)
    except _Twice as found:
        raise FileError(path, f"the key {shorten(json.dumps(found.args[0]))} occurs twice in one object") from None
    except RecursionError:
        raise FileError(path, "nested too deeply") from None
    except ValueError:  # not JSON or not UTF-8: the decoder says where
        return


def _check_once(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Twice(name)
            seen.add(name)
