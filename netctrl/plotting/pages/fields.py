"""Fields of a record as (name, text) rows, named as in its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from netctrl.core.units import format_quantity
from netctrl.model.io.arrays import plain

# Ending of a name -> unit; the first match counts. k, M, m, ... are prefixes.
_PREFIXED = {"_bit_per_s": "bit/s", "_bytes": "B", "_hz": "Hz"}
_PLAIN = {
    "_packet_per_s": "packet/s",
    "_rad_s": "rad/s",
    "_per_packet": "per packet",
    "_packets": "packets",
    "_db": "dB",
    "_deg": "°",
    "_rtts": "round trips",
    "_steps": "samples",
}
_SECONDS = {"_s": "s"}
_SHOWN = 12


def field_rows(record: msgspec.Struct, *, without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Nested names joined by dots, values with the units that their names imply; long lists as length and range."""
    content = msgspec.to_builtins(record, enc_hook=plain)
    return list(_rows({key: value for key, value in content.items() if key not in without}, ""))


def _rows(tree: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        name = f"{before}{key}"
        if isinstance(value, list | tuple) and any(isinstance(each, dict) for each in value):
            value = {str(place): each for place, each in enumerate(value)}
        if not isinstance(value, dict):
            yield name, _text(name, value)
        elif len(value) > _SHOWN and all(isinstance(each, int | float) for each in value.values()):
            yield name, _text(name, list(value.values()))
        else:
            yield from _rows(value, f"{name}.")


def _text(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return _listed(name, value)
    return str(value) if isinstance(value, str) else _number(name, value)


def _listed(name: str, values: Sequence[Any]) -> str:
    numbers = all(isinstance(each, int | float) for each in values)
    if len(values) > _SHOWN and numbers:
        return f"{len(values)} values from {_number(name, min(values))} to {_number(name, max(values))}"
    texts = (f"({_text('', each)})" if isinstance(each, list | tuple) else _text(name, each) for each in values)
    return ", ".join(texts) or "none"


def _number(name: str, value: float) -> str:
    for ends, unit in (_PREFIXED | _PLAIN | _SECONDS).items():
        if name.endswith(ends):
            short = float(f"{value:.6g}")
            return f"{short:g} {unit}" if ends in _PLAIN else format_quantity(short, unit)
    return f"{value:.6g}"
