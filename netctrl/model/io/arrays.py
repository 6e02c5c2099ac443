"""JSON of records with arrays: nested lists, one line for each row."""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec
import numpy as np

_HERE = "\0"  # placeholder of an array; names can't contain it


def array_json(record: msgspec.Struct) -> str:
    """A record's strict JSON, indented, with one line for each row of an array; ends with a newline."""
    arrays: list[bytes] = []

    def apart(value: Any) -> Any:
        """Take arrays out of the indented text, where each number would get its own line."""
        if not isinstance(value, np.ndarray):
            return plain(value)
        arrays.append(msgspec.json.encode(value.tolist()).replace(b"],[", b"],\n["))
        return _HERE

    text = msgspec.json.format(msgspec.json.encode(record, enc_hook=apart), indent=2)
    first, *others = text.split(msgspec.json.encode(_HERE))
    return b"".join([first, *chain.from_iterable(zip(arrays, others, strict=True)), b"\n"]).decode()


def plain(value: Any) -> Any:
    """Convert a type that msgspec doesn't know to one that it knows."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def array(kind: type, value: Any) -> Any:
    """An array from nested lists of numbers; ValueError for anything else."""
    if kind is not np.ndarray:
        raise NotImplementedError(f"no JSON for {kind.__name__}")
    try:
        found = np.array(value)
    except ValueError:  # ragged
        found = np.array(None)
    if found.dtype.kind not in "if" or not np.isfinite(found).all():
        raise ValueError("Expected nested lists of finite numbers, all of one shape")
    return found


def json_schema(kind: Any, name: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of files of this kind; arrays are nested lists.

    Descriptions are the docstrings of records up to their first section.
    """
    import inspect
    import re

    made = msgspec.json.schema(kind, schema_hook=lambda kind: {"type": "array"})
    schema = msgspec.json.decode(msgspec.json.encode(made))  # as read back, without tuples
    for record in schema["$defs"].values():  # Python 3.13 removes the indentation of docstrings, 3.11 keeps it
        record["description"] = re.split(r"\n\n\w+\n-{3}", inspect.cleandoc(record["description"]))[0]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, **schema}
