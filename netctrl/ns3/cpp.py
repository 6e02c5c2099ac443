"""Values as C++ text, safe against names or command lines that would end a literal or a comment."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from math import inf, isinf, isnan
from typing import Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.laws.codegen import field_texts
from netctrl.laws.record import Matrix, field_types, is_record
from netctrl.model.design.design import AnyDesign
from netctrl.model.io.provenance import Provenance

MARKER = "// Made by netctrl export ns3: do not edit."
"""First line of the generated files, which marks a folder that may be overwritten."""

_LONG = 1000  # characters
_MAX_S = 4e9  # ns-3 counts ns in signed 64 bits
# A quote ends a literal, a backslash starts an escape, ? a trigraph, and * is part of a comment's start or end.
_UNSAFE = frozenset("\\?*")


def string(text: str) -> str:
    """C++ string literal of UTF-8 that may also be in a comment: printable ASCII and octal escapes, one line."""
    return '"' + "".join(_safe(byte) for byte in text.encode("utf-8", "surrogateescape")) + '"'


def _safe(byte: int) -> str:
    character = chr(byte)
    if character == '"':
        return '\\"'
    # An octal escape has at most three digits, so it never includes the next character.
    return character if 0x20 <= byte < 0x7F and character not in _UNSAFE else f"\\{byte:03o}"


def real(value: float) -> str:
    """C++ double that reads back to the last bit."""
    if isnan(value):
        raise InvalidValue("number", value, "a number")
    if isinf(value):
        return "-HUGE_VAL" if value < 0 else "HUGE_VAL"
    return repr(float(value))


def row(values: Iterable[Any]) -> str:
    """Values in braces; text is unchanged."""
    return "{" + ", ".join(value if isinstance(value, str) else _number_or_array(value, None) for value in values) + "}"


def header(name: str, include: str, lines: Iterable[str], about: str = "") -> str:
    """Generated header: `lines` in the namespace, with an include guard of this name, after one include."""
    guard = f"NETCTRL_{name}_H"
    start = [MARKER, *([f"// {about}"] if about else []), "", f"#ifndef {guard}", f"#define {guard}", ""]
    start += [f'#include "{include}"', "", "namespace netctrl", "{", ""]
    return "\n".join([*start, *lines, "", "} // namespace netctrl", "", f"#endif // {guard}", ""])


def gains_header(include: str, about: str, made: Provenance, lines: Iterable[str]) -> str:
    """File gains.h, which starts with the export's provenance."""
    return header("GAINS", include, ["/// How this export was made, as JSON.", origin(made), "", *lines], about)


def scenario_header(
    include: str,
    name: str,
    constants: Mapping[str, tuple[Any, str]],
    tables: Mapping[str, tuple[str, Iterable[str]]],
    types: Iterable[str] = (),
    last: Iterable[str] = (),
) -> str:
    """File scenario.h: the scenario's name, constants and tables.

    Parameters
    ----------
    include : str
        Header with the types of the tables' rows.
    constants : dict
        Type and name of each constant -> its value, and its comment.
    tables : dict
        Type of the rows and name of each table -> its columns, and its rows.
    types, last : iterable of str
        Lines between constants and tables, and after the tables.
    """
    lines = [f"inline constexpr const char* kScenario = {string(name)};", *_constants(constants), *types]
    for kind, (columns, rows) in tables.items():
        of, called = kind.split()
        lines += ["", f"/// {columns}", f"inline const std::vector<{of}> {called} = {{"]
        lines += [*(f"    {each}," for each in rows), "};"]
    return header("SCENARIO", include, [*lines, *last])


def _constants(values: Mapping[str, tuple[Any, str]]) -> Iterator[str]:
    for name, (value, text) in values.items():
        shown = string(value) if isinstance(value, str) else _number_or_array(value, None)
        unsigned = "U" if name.startswith("uint") else ""
        yield f"inline constexpr {name} = {shown}{unsigned};" + (f" ///< {text}" if text else "")


def certificate(
    design: AnyDesign, values: Mapping[str, tuple[float | str | None, str]], about: str = "", notes: Iterable[str] = ()
) -> list[str]:
    """Lines with a Design's certificate; HUGE_VAL replaces missing numbers."""
    constants = {"const char* kStatus": (str(design.certificate.status), "")}
    for name, (value, text) in values.items():
        kind = "const char*" if isinstance(value, str) else "double"
        shown = inf if value is None else value
        constants[f"{kind} {name}"] = float(shown) if kind == "double" else shown, text
    return [
        f"/// Why the gains can be trusted{about}: the certificate of the Design.",
        "namespace design",
        "{",
        *_constants(constants),
        *(f"// {note}" for note in notes),
        *(f"// warning: {string(warning)}" for warning in design.certificate.warnings),
        origin(design.provenance),
        "} // namespace design",
        "",
    ]


def constant(name: str, kind: Any, values: Any) -> list[str]:
    """Definition of a constant of a law's record, each field with its text; empty without values."""
    if values is None:
        return [f"inline const {kind.__name__} {name} = {{}};"]
    return [f"inline const {kind.__name__} {name} = {{", *_fields(kind, values, "    "), "};"]


def _fields(kind: Any, values: Any, indent: str) -> Iterator[str]:
    texts = field_texts(kind)
    for (field, one), value in zip(field_types(kind).items(), values, strict=True):
        about = f"// {field}: {texts[field]}"
        if is_record(one):
            yield f"{indent}{{ {about}"
            yield from _fields(one, value, indent + "    ")
            yield f"{indent}}},"
            continue
        short = f"{indent}{_number_or_array(value, one)}, {about}"
        if len(short) < _LONG:
            yield short
            continue
        yield f"{indent}{about}"
        yield from textwrap.wrap(
            f"{_number_or_array(value, one)},", 116, initial_indent=indent, subsequent_indent=indent
        )


def _number_or_array(value: Any, kind: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return real(value)
    texts = map(real if value.dtype.kind == "f" else str, value.ravel().tolist())
    shape = value.shape if kind == Matrix else value.shape[1:]
    return row([*map(str, shape), row(texts)]) if shape else row(texts)


def origin(record: Provenance) -> str:
    """Line with the provenance as JSON, in ASCII whatever bytes a command line had."""
    return f"inline constexpr const char* kProvenance = {string(json.dumps(msgspec.to_builtins(record)))};"


def nanoseconds(name: str, seconds: float) -> int:
    """Time in ns, as ns-3 counts; raises InvalidValue where it rounds to 0 or overflows."""
    if not seconds <= _MAX_S or 0.0 < seconds < 1e-9:
        raise InvalidValue(name, seconds, f"a time from 1 ns to {_MAX_S:g} s: ns-3 counts in ns")
    return round(seconds * 1e9)
