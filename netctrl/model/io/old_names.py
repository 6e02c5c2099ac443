"""Renamed keys of scenario and sweep files; files with the old ones are still read, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.model.io.written_units import at_key, kinds

__all__ = ["OLD_NAMES", "renewed", "renewed_at"]

_POLICY = {"reference": "rate_scale", "standing_backlog": "backlog_setpoint"}
OLD_NAMES: dict[str, dict[str, str]] = {
    "DesignPolicy": _POLICY,
    "HftracPolicy": _POLICY,
    "Hpcc": {"round_trip": "rtt"},
    "Mpcc": {"round_trip": "rtt"},
    "TcpSenders": {"round_trip": "rtt"},
}
"""Name of a record -> its old keys and their new names."""


def renewed(content: Any, kind: type) -> Any:
    """A file's content with today's keys, for a record of this kind.

    Raises
    ------
    InvalidValue
        An old key occurs together with the new one.
    """
    return _renewed([msgspec.inspect.type_info(kind)], content)


def renewed_at(place: str, value: Any, kind: type) -> tuple[str, Any]:
    """A path in a record, as in "policy.rate_scale", and its value, both with today's keys."""
    found: list[Any] = [msgspec.inspect.type_info(kind)]
    parts = []
    for name in place.split("."):
        lists = [each.item_type for each in kinds(found) if hasattr(each, "item_type")]
        today = name if lists else _today(found, {}).get(name, name)
        if today != name:
            _warn(name, today)
        parts.append(today)
        found = lists or at_key(found, {}, today)
    return ".".join(parts), _renewed(found, value)


def _renewed(found: list[Any], content: Any) -> Any:
    if isinstance(content, dict):
        today = _today(found, content)
        for old, name in today.items():
            if old in content and name in content:
                raise InvalidValue(old, content[old], f"no value beside `{name}`, its new name")
            if old in content:
                _warn(old, name)
        named = {today.get(name, name): value for name, value in content.items()}
        return {name: _renewed(at_key(found, named, name), value) for name, value in named.items()}
    if isinstance(content, list):
        items = [each.item_type for each in kinds(found) if hasattr(each, "item_type")]
        return [_renewed(items, value) for value in content]
    return content


def _warn(old: str, name: str) -> None:
    said = f"key `{old}` is now `{name}`; the next version of netctrl won't read the old name"
    warnings.warn(said, FutureWarning, stacklevel=4)


def _today(found: list[Any], content: dict[str, Any]) -> dict[str, str]:
    """Old keys of the record at this place; none where a key is current in one of its possible kinds."""
    records = [each for each in kinds(found) if isinstance(each, msgspec.inspect.StructType)]
    meant = [each for each in records if each.tag_field and content.get(each.tag_field) == each.tag]
    names: dict[str, str] = {}
    for each in meant or records:
        names |= OLD_NAMES.get(each.cls.__name__, {})
    return {old: name for old, name in names.items() if not any(_has(each, old) for each in meant or records)}


def _has(record: msgspec.inspect.StructType, key: str) -> bool:
    return any(field.encode_name == key for field in record.fields)
