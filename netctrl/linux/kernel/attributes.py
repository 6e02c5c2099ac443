"""Netlink attributes (type-length-value): encoding and decoding of bytes."""

from __future__ import annotations

import struct

__all__ = ["attribute", "attributes", "nested"]

_HEAD = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF  # the two upper bits are flags: nested, and network byte order
_NESTED = 0x8000


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    length = _HEAD.size + len(payload)
    return _HEAD.pack(length, kind) + payload + bytes(-length % 4)


def nested(kind: int, *inside: bytes) -> bytes:
    """An attribute that contains attributes."""
    return attribute(kind | _NESTED, b"".join(inside))


def attributes(content: bytes | memoryview, start: int = 0) -> dict[int, bytes]:
    """Payloads by type; the last one of a repeated type.

    Raises
    ------
    ValueError
        Inconsistent lengths.
    """
    found, stop = {}, len(content)
    while start + _HEAD.size <= stop:
        length, kind = _HEAD.unpack_from(content, start)
        if length < _HEAD.size or start + length > stop:
            raise ValueError(f"attribute {kind & _TYPE_MASK} of {length} bytes at {start} ends after {stop}")
        found[kind & _TYPE_MASK] = bytes(content[start + _HEAD.size : start + length])
        start += (length + 3) & ~3
    return found
