"""Checks of a scenario that several kinds of network share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue


def check_ids(place: str, parts: Iterable[Any]) -> None:
    """InvalidValue if the list is empty or two of its parts have the same id."""
    what, seen = place.rpartition(".")[2], set()
    for i, part in enumerate(parts):
        if part.id in seen:
            raise InvalidValue(f"{place}[{i}].id", part.id, f"a name different from those of the other {what}")
        seen.add(part.id)
    if not seen:
        raise InvalidValue(what, parts, "at least one")


def check_unused(scenario: Any, *names: str) -> None:
    """InvalidValue if a field that has no effect, such as "step", differs from its default."""
    for field in msgspec.structs.fields(scenario):
        if field.name in names and getattr(scenario, field.name) != field.default:
            takes = f"no value with a network of kind {tag_of(scenario.kind)}"
            raise InvalidValue(field.name, getattr(scenario, field.name), takes)


def tag_of(kind: Any) -> str:
    """Name of a kind of network in files."""
    return str(kind.__struct_config__.tag) if hasattr(kind, "__struct_config__") else kind.__name__.lower()
