"""Checks of a scenario that several kinds of network share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from netctrl.errors import InvalidValue

__all__ = ["OF_DATA_CENTRES", "check_ids", "check_unused"]

OF_DATA_CENTRES = ("traffic.sender", "traffic.retransmission_timeout", "time.watch")
"""Fields that only apply to a data centre."""


def check_ids(place: str, parts: Iterable[Any]) -> None:
    """InvalidValue if the list is empty or two of its parts have the same id."""
    what, seen = place.rpartition(".")[2], set()
    for i, part in enumerate(parts):
        if part.id in seen:
            raise InvalidValue(f"{place}[{i}].id", part.id, f"a name different from those of the other {what}")
        seen.add(part.id)
    if not seen:
        raise InvalidValue(what, parts, "at least one")


def check_unused(scenario: Any, *places: str) -> None:
    """InvalidValue if a field that has no effect, such as "time.step", differs from its default."""
    for place in places:
        part, _, name = place.partition(".")
        record = getattr(scenario, part)
        default = next(each.default for each in msgspec.structs.fields(record) if each.name == name)
        if getattr(record, name) != default:
            kind = scenario.network.__struct_config__.tag
            raise InvalidValue(place, getattr(record, name), f"no value with a network of kind {kind}")
