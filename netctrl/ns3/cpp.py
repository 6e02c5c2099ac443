"""Values as C++ text, safe against names or command lines that would end a literal or a comment."""

from __future__ import annotations

from math import isinf, isnan

from netctrl.core.errors import InvalidValue

MARKER = "// Made by netctrl export ns3: do not edit."
"""First line of the generated files, which marks a folder that may be overwritten."""

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


def nanoseconds(name: str, seconds: float) -> int:
    """Time in ns, as ns-3 counts; raises InvalidValue where it rounds to 0 or overflows."""
    if not seconds <= _MAX_S or 0.0 < seconds < 1e-9:
        raise InvalidValue(name, seconds, f"a time from 1 ns to {_MAX_S:g} s: ns-3 counts in ns")
    return round(seconds * 1e9)
