"""msgspec's validation errors restated for the file's author: one line that names the key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.core.register import lack_of

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_EXPECTED = re.compile(r"Expected `([^`]*)`(?: of length (\d+))?, got (?:`\w+`|\d+)")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}

Keys = Sequence[str | int]


def explained(error: msgspec.ValidationError, content: Any, kind: type) -> str:
    """One line such as "links[0].capacity: got -10, takes ..." for an error of `msgspec.convert(content, kind)`."""
    what, keys, value = _parted(str(error), content)
    if isinstance(error.__cause__, InvalidValue):
        cause = error.__cause__
        return f"{_dotted([*keys, cause.argument])}: got {shown(cause.got)}, takes {cause.takes}"
    if unknown := _UNKNOWN.fullmatch(what):
        return _at(keys, _unknown_key(unknown[1], _keys_of(kind, content, keys)))
    if missing := _MISSING.fullmatch(what):
        kinds = _tags(kind, content, keys) if missing[1] == "kind" else []
        takes = f"; it takes one of {', '.join(kinds)}" if kinds else ""
        return _at(keys, f"key `{missing[1]}` is missing{takes}")
    if expected := _EXPECTED.fullmatch(what):
        words = [_WORDS[name] for name in expected[1].split(" | ") if name in _WORDS]
        takes = " or ".join(words) + (f" of {expected[2]}" if expected[2] else "")
        if words == ["a table"] and (kinds := _tags(kind, content, keys)):
            takes += f" whose `kind` is one of {', '.join(kinds)}"
        return _at(keys, f"got {shown(value)}, takes {takes}")
    if what.startswith("Invalid value") and keys and (kinds := _tags(kind, content, keys[:-1])):
        return _at(keys, lack_of(value) or f"got {shown(value)}, takes one of {', '.join(kinds)}")
    if what.startswith("Invalid enum value") and (words := _words(kind, content, keys)):
        return _at(keys, f"got {shown(value)}, takes one of {', '.join(map(str, words))}")
    return _at(keys, " ".join(what.split()))


def shown(value: Any) -> str:
    """A value as its author knows it, in one short line."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "nothing"
        case dict() | msgspec.Struct():
            return "a table"
        case date() | time():
            return f"the time {value}"
        case [] | ():
            return "an empty list"
        case list() | tuple() if len(value) > 4 or any(isinstance(each, dict | list) for each in value):
            return f"a list of {len(value)}"
    return shorten(repr(value))


def shorten(text: str, most: int = 60) -> str:
    """The text, shortened to its first characters and "..." if needed."""
    return text if len(text) <= most else f"{text[:most]}..."


def _unknown_key(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    written = shorten(name if name.isprintable() else repr(name))
    if close:
        return f"unknown key `{written}`, did you mean `{close[0]}`?"
    return f"unknown key `{written}`" + (f"; there are {', '.join(known)}" if known else "")


def _at(keys: Keys, what: str) -> str:
    return f"{_dotted(keys)}: {what}" if keys else what


def _dotted(keys: Keys) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def _parted(message: str, content: Any) -> tuple[str, list[str | int], Any]:
    """msgspec's "what - at `$.links[0].capacity`" as error, keys, and the value at these keys."""
    what, found, where = message.rpartition(" - at `$")
    if found and "[...]" not in where:  # inside a table of any content: msgspec doesn't give the key
        keys: list[str | int] = [int(index) if index else name for name, index in _STEP.findall(where)]
        try:
            return what, keys, _value(content, keys)
        except (LookupError, TypeError):  # the name of an unknown key may look like a path
            pass
    return message, [], content


def _value(content: Any, keys: Keys) -> Any:
    for key in keys:
        content = content[key]
    return content


def _keys_of(kind: type, content: Any, keys: Keys) -> list[str]:
    """Keys of the record at these keys."""
    for found in _records(_types(kind, content, keys), _value(content, keys)):
        tag = [found.tag_field] if found.tag_field else []
        return [*tag, *(field.encode_name for field in found.fields)]
    return []


def _tags(kind: type, content: Any, keys: Keys) -> list[str]:
    """Possible values of `kind` where several records are possible."""
    found = _types(kind, content, keys)
    return [str(part.tag) for part in found if isinstance(part, msgspec.inspect.StructType) and part.tag]


def _words(kind: type, content: Any, keys: Keys) -> list[Any]:
    """Possible words at a place with a fixed set of words."""
    return [word for part in _types(kind, content, keys) for word in getattr(part, "values", ())]


def _types(kind: type, content: Any, keys: Keys) -> list[Any]:
    """msgspec's descriptions of the types that a place may have."""
    found: list[Any] = [msgspec.inspect.type_info(kind)]
    for key in keys:
        found = items(found) if isinstance(key, int) else at_key(found, content, key)
        content = content[key]
    return list(kinds(found))


def kinds(found: Iterable[Any]) -> Iterator[Any]:
    """The members of msgspec's union types."""
    for each in found:
        yield from each.types if isinstance(each, msgspec.inspect.UnionType) else (each,)


def items(found: Iterable[Any]) -> list[Any]:
    """Types of the items of those types that are lists."""
    return [each.item_type for each in kinds(found) if hasattr(each, "item_type")]


def at_key(found: Iterable[Any], content: dict[str, Any], name: Any) -> list[Any]:
    """Possible types at a key: those of the record that `kind` selects, else of all records."""
    return [field.type for each in _records(found, content) for field in each.fields if field.encode_name == name]


def _records(found: Iterable[Any], content: dict[str, Any]) -> list[Any]:
    records = [each for each in kinds(found) if isinstance(each, msgspec.inspect.StructType)]
    return [each for each in records if each.tag_field and content.get(each.tag_field) == each.tag] or records
