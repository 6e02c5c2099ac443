"""Integers of C: values modulo 2^32 and 2^64, and signed ones in two's complement, from Python's unlimited integers."""

from __future__ import annotations

from netctrl.core.errors import checked_whole

U32, U64 = 2**32 - 1, 2**64 - 1
"""Largest unsigned values."""


def u32(value: int) -> int:
    """Value of a uint32_t to which an integer is assigned."""
    return value & U32


def u64(value: int) -> int:
    """Value of a uint64_t to which an integer is assigned."""
    return value & U64


def s64(value: int) -> int:
    """Value of an int64_t to which an integer is assigned, in two's complement."""
    return ((value + 2**63) & U64) - 2**63


def checked_u32(argument: str, value: object, what: str, *, at_least: int = 0, at_most: int = U32) -> int:
    """`value` as an int within the bounds, else InvalidValue that names the argument, `what` it is and the range."""
    takes = f"{what}: a whole number from {at_least} to {at_most}"
    return checked_whole(argument, value, takes, at_least=at_least, at_most=at_most)
