"""Files of an export to C: tables, header, test vectors, a program that checks them, a Makefile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue

MARKER = "Written by netctrl"
"""Start of each file's first comment."""
VECTORS = 500
_COLUMNS = 110
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
_WORDS = re.compile(r"\w+")
_TYPES = {"f": "double", "i": "int32_t", "l": "int64_t"}
_MAKEFILE = """# {marker}.
CFLAGS ?= -std=c99 -O2 -Wall -Wextra -Werror
check: check.c {sources} {headers}
\t$(CC) $(CFLAGS) -o $@ check.c {sources} -lm
.PHONY: test
test: check
\t./check vectors.txt
"""


def checked_name(name: str) -> str:
    """A name for C files and functions, refused where C can't use it."""
    takes = "a name for C with a _ inside, as in my_law: lower-case letters and digits, none of the file's own names"
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > 40 or name.endswith("_t"):
        raise InvalidValue("name", name, takes)
    if any(name in _WORDS.findall(each.read_text(encoding="utf-8")) for each in Path(__file__).parent.rglob("*.c")):
        raise InvalidValue("name", name, takes)
    return name


def table(name: str, values: Any, kind: str = "f") -> str:
    """A constant array; `kind` f: double, i: int32_t, l: int64_t."""
    array = np.atleast_1d(np.asarray(values))
    if array.size == 0:  # C has no empty arrays
        array = np.zeros([max(size, 1) for size in array.shape], dtype=array.dtype)
    size = "".join(f"[{size}]" for size in array.shape)
    return f"static const {_TYPES[kind]} {name}{size} = {_braced(array, kind)};\n"


def tables(*each: tuple) -> str:
    """Several tables, each (name, values) or (name, values, kind)."""
    return "".join(table(*one) for one in each)


def _braced(array: np.ndarray, kind: str) -> str:
    if array.ndim > 1:
        return "{" + ",\n".join(_braced(each, kind) for each in array) + "}"
    lines, line = [], ""
    for value in array:
        text = f"{number(value, kind)}, "
        if len(line) + len(text) > _COLUMNS:
            lines, line = [*lines, line.rstrip()], ""
        line += text
    return "{" + "\n".join([*lines, line.rstrip(", ")]) + "}"


def number(value: Any, kind: str = "f") -> str:
    """A constant that C reads as the same number."""
    if kind == "i":
        return str(int(value))
    if kind == "l":
        return f"INT64_C({int(value)})"
    return ("HUGE_VAL" if value > 0 else "-HUGE_VAL") if np.isinf(value) else repr(float(value))


def template(file: str, **parts: Any) -> str:
    """One of the C files beside this one, with @PART@ replaced."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    for part, value in parts.items():
        text = text.replace(f"@{part.upper()}@", str(value))
    return text


def vectors(thetas: np.ndarray, status: Sequence[int] | np.ndarray, inputs: np.ndarray) -> str:
    """A line for each point: θ, status, inputs, as hexadecimal floating-point numbers, which are exact."""
    lines = [
        " ".join([*(float(x).hex() for x in theta), str(int(code)), *(float(x).hex() for x in u)])
        for theta, code, u in zip(thetas, status, inputs, strict=True)
    ]
    return "\n".join(lines) + "\n"


def files(name: str, sources: Mapping[str, str], check: str, lines: str, others: Sequence[str] = ()) -> dict[str, str]:
    """All files of an export, by name: sources, check.c, vectors.txt and a Makefile that takes others' sources too."""
    made, names = {f"{name}.{ending}": text for ending, text in sources.items()}, (name, *others)
    parts = {"sources": " ".join(f"{each}.c" for each in names), "headers": " ".join(f"{each}.h" for each in names)}
    return made | {"check.c": check, "vectors.txt": lines, "Makefile": _MAKEFILE.format(marker=MARKER, **parts)}
