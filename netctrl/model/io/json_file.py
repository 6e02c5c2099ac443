"""JSON files read with care: of bounded size and depth, UTF-8, each key once in its object."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec

from netctrl.errors import FileError
from netctrl.model.io.files import read_bounded
from netctrl.model.io.validation_errors import shorten

__all__ = ["decoded", "read_json"]


def read_json(
    path: str | os.PathLike[str],
    kind: Any = Any,
    *,
    what: str,
    max_bytes: int,
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
    max_bytes : int
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
    size = f"{max_bytes // 2**30} GiB" if max_bytes >= 2**30 else f"{max_bytes // 2**20} MiB"
    return decoded(path, read_bounded(path, max_bytes, f"is larger than a {what} may be ({size})"), kind, dec_hook)


def decoded(path: object, text: bytes, kind: Any = Any, dec_hook: Callable[[type, Any], Any] | None = None) -> Any:
    """The same of text that has been read already; `path` is for messages."""
    _check_keys(path, text)
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        if kind is not Any:
            raise
        raise FileError(path, f"is not JSON: {error}") from None  # a number out of range
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not JSON: not UTF-8 text (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise FileError(path, f"is not JSON: {error}") from None
    except RecursionError:
        raise FileError(path, "is nested too deeply") from None


class _Twice(Exception):
    """A key that an object has twice."""


def _check_keys(path: object, text: bytes) -> None:
    """Refuse depth and repeated keys, of which the decoder takes the last without a word."""
    import json

    try:
        # `len` of a number's text, which nobody needs here, is a fifth of the time of its value.
        json.loads(text, object_pairs_hook=_check_once, parse_float=len, parse_int=len, parse_constant=len)
    except _Twice as found:
        raise FileError(path, f"has the key {shorten(json.dumps(found.args[0]))} twice in one object") from None
    except RecursionError:
        raise FileError(path, "is nested too deeply") from None
    except ValueError:  # no JSON, or no UTF-8: the decoder says where
        return


def _check_once(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Twice(name)
            seen.add(name)
