"""Records of a scenario as lines of text, which a program for ns-3 reads (`common/cpp/netctrl-records.h`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from netctrl.laws.codegen import field_texts
from netctrl.laws.record import Matrix, field_types, is_record
from netctrl.model.design.design import AnyDesign
from netctrl.model.io.provenance import Provenance


def record_line(
    kind: str, name: str = "", /, *attributes: tuple[str, str, str], **values: str | float | Iterable[str] | None
) -> str:
    """One record: what it is, its name, and its values.

    Parameters
    ----------
    attributes : tuple of str
        Name, value and comment of values with a line each, below the others.
    values
        Numbers, ids, or several ids; None, and no ids at all, are left out.
    """
    words = [kind, *([name] if name else [])]
    for key, value in values.items():
        if isinstance(value, str | bool | int | float):
            words.append(f"{key}={int(value) if isinstance(value, bool) else value}")
        elif value is not None and (several := ",".join(value)):
            words.append(f"{key}={several}")
    lines = [f"  {key}={value}  # {' '.join(about.split())}".removesuffix("  # ") for key, value, about in attributes]
    return "\n".join([" ".join(words), *lines])


def record_values(kind: Any, row: Any, prefix: str = "") -> list[tuple[str, str, str]]:
    """Attributes for `record_line`: each field of a record with its text, arrays with commas, records after a dot.

    A matrix begins with its shape, ROWSxCOLUMNS.
    """
    texts, found = field_texts(kind), []
    for (field, one), value in zip(field_types(kind).items(), row, strict=True):
        if is_record(one):
            found += record_values(one, value, f"{prefix}{field}.")
            continue
        numbers = np.ravel(value).tolist()
        shown = ",".join(repr(int(number) if isinstance(number, bool) else number) for number in numbers)
        if one == Matrix:
            shown = f"{'x'.join(map(str, value.shape))}:{shown}"
        found.append((f"{prefix}{field}", shown, texts[field]))
    return found


def word(name: str) -> str:
    """A name as one word of a record: what would end it, or part it, in percent and two digits (RFC 3986)."""
    return quote(name, safe=":;.-_/()+~@!*'")


def scenario_text(name: str, made: Provenance, *parts: Iterable[str]) -> str:
    """File of a scenario: its name and how it was made, then groups of lines with an empty one between them."""
    head = [
        f"# {json.dumps(name)}, a scenario for the program beside it. README.txt has the meaning of its records.",
        f"# How it was made: {_json(made)}",
    ]
    return "\n\n".join("\n".join(lines) for lines in (head, *map(list, parts)) if lines) + "\n"


def certificate_comments(design: AnyDesign, values: Mapping[str, tuple[float | str | None, str]]) -> list[str]:
    """Comments with a Design's certificate: name -> value and its unit; None: there is no limit."""
    lines = [
        "# Why the gains can be trusted: the certificate of the Design.",
        f"#   status: {design.certificate.status}",
    ]
    for name, (value, unit) in values.items():
        # Nine digits, as the last ones of a margin are rounding errors that depend on the processor.
        shown = "unlimited" if value is None else f"{value:.9g}" if isinstance(value, float) else value
        lines.append(f"#   {name}: {shown} {unit}".rstrip())
    warnings = [f"#   warning: {json.dumps(warning)}" for warning in design.certificate.warnings]
    return [*lines, *warnings, f"#   how it was made: {_json(design.provenance)}"]


def _json(record: Provenance) -> str:
    """In ASCII whatever bytes a command line had, and so in one line."""
    return json.dumps(msgspec.to_builtins(record))
