"""Packet captures (pcap, pcapng): number of bytes sent in each interval."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import BinaryIO

import numpy as np

from netctrl.core.errors import FileError
from netctrl.core.files import opened

Packets = Iterator[tuple[int, int]]
"""Time [ns] and length on the wire [byte]."""

_MAX_BINS = 10**8
_BUFFER_BYTES = 2**20
_MAX_CAPTURED = 2**18  # libpcap's MAXIMUM_SNAPLEN
_MAX_PACKET = 2**24  # far above what segmentation offload hands to a capture
_MAX_BLOCK = 2**24  # the limit of Wireshark's reader


def captured_bytes(path: str | os.PathLike[str], interval_s: float) -> np.ndarray:
    """Bytes sent in each interval from the first packet on.

    Parameters
    ----------
    path : path
        A pcap or pcapng file, recognised by its first bytes.
    interval_s : float
        Length of one interval, above 0 [s].

    Returns
    -------
    ndarray, shape (T,)
        Total length on the wire of an interval's packets [byte].

    Raises
    ------
    FileError
        The file can't be read, isn't a capture or is corrupt; the message names the byte.

    Source: formats of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
    """
    with opened(path, _BUFFER_BYTES) as file:
        magic = file.peek(4)[:4]
        if magic in _PCAP:
            packets = _pcap(path, file)
        elif magic == b"\n\r\r\n":
            packets = _pcapng(path, file)
        else:
            raise FileError(path, f"not a capture: it begins with {magic!r}, unlike pcap and pcapng")
        return _counted(path, packets, interval_s)


def _counted(path: str | os.PathLike[str], packets: Packets, interval_s: float) -> np.ndarray:
    """Bytes in each interval; packets may be out of order, and one earlier than the first adds bins in front."""
    width = Fraction(repr(interval_s)) * 10**9  # exact decimal value, not its binary approximation
    ns, scale = width.numerator, width.denominator
    bins = np.zeros(1, dtype=np.int64)
    origin = next(packets, None)
    if origin is None:
        raise FileError(path, "contains no packet")
    start, total = origin
    current = low = high = front = 0  # front: the bin of bins[0]
    for time, length in packets:
        index = (time - start) * scale // ns
        if index == current:
            total += length
            continue
        bins[current - front] += total
        current, total = index, length
        if low <= index <= high:
            continue
        low, high = min(low, index), max(high, index)
        if high - low >= _MAX_BINS:
            raise FileError(
                path,
                f"spans more than {_MAX_BINS} intervals of {interval_s:g} s: use longer ones, or correct its times",
            )
        if index < front:
            more = max(front - index, min(len(bins), _MAX_BINS))
            bins, front = np.concatenate([np.zeros(more, dtype=np.int64), bins]), front - more
        elif index - front >= len(bins):
            more = max(index - front + 1 - len(bins), min(len(bins), _MAX_BINS))
            bins = np.concatenate([bins, np.zeros(more, dtype=np.int64)])
    bins[current - front] += total
    return bins[low - front : high - front + 1]


_PCAP = {
    struct.pack(order + "I", magic): (order, unit_ns)
    for order in "<>"
    for magic, unit_ns in ((0xA1B2C3D4, 1000), (0xA1B23C4D, 1))
}


def _pcap(path: str | os.PathLike[str], file: BinaryIO) -> Packets:
    head = file.read(24)
    order, unit_ns = _PCAP[head[:4]]
    if len(head) < 24:
        raise _cut(path, 0, len(head), 24)
    version = struct.unpack(f"{order}HH", head[4:8])
    if version != (2, 4):
        raise FileError(path, f"pcap version {version[0]}.{version[1]}; only 2.4 is read")
    packet = struct.Struct(f"{order}IIII")
    at = 24
    while head := file.read(16):
        if len(head) < 16:
            raise _cut(path, at, len(head), 16)
        seconds, part, captured, length = packet.unpack(head)
        if part * unit_ns >= 10**9:
            raise FileError(
                path, f"the packet at byte {at} has a time with {part} parts of a second: the file is corrupt"
            )
        if captured > _MAX_CAPTURED or not captured <= length <= _MAX_PACKET:
            raise _absurd(path, at, captured, length)
        if (found := len(file.read(captured))) < captured:
            raise _cut(path, at, 16 + found, 16 + captured)
        yield seconds * 10**9 + part * unit_ns, length
        at += 16 + captured


_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SECTION, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6  # _SECTION is the same in both byte orders
_OTHER_PACKETS = {2: "an obsolete Packet Block", 3: "a Simple Packet Block, which has no time"}


def _pcapng(path: str | os.PathLike[str], file: BinaryIO) -> Packets:
    at, order = 0, "<"
    pair, packet = struct.Struct("<II"), struct.Struct("<IIIII")
    clocks: list[tuple[int, int, int]] = []
    while head := file.read(8):
        if len(head) < 8:
            raise _cut(path, at, len(head), 12)
        kind, size = pair.unpack(head)
        marker = b""
        if kind == _SECTION:
            marker = file.read(4)
            if len(marker) < 4:
                raise _cut(path, at, 8 + len(marker), 12)
            if marker not in _ORDERS:
                raise FileError(path, f"the section at byte {at} has no byte-order magic: the file is corrupt")
            order, clocks = _ORDERS[marker], []
            pair, packet = struct.Struct(f"{order}II"), struct.Struct(f"{order}IIIII")
            kind, size = pair.unpack(head)
        if size % 4 or not 12 <= size <= _MAX_BLOCK:
            raise FileError(path, f"the block at byte {at} claims {size} bytes: the file is corrupt")
        body = marker + file.read(size - 8 - len(marker))
        if len(body) < size - 8:
            raise _cut(path, at, 8 + len(body), size)
        if body[-4:] != head[4:]:
            raise FileError(path, f"the block at byte {at} has two different lengths: the file is corrupt")
        try:
            if kind == _ENHANCED:
                interface, upper, lower, captured, length = packet.unpack_from(body)
                if captured > len(body) - 24 or not captured <= length <= _MAX_PACKET:
                    raise _absurd(path, at, captured, length)
                ns, ticks, offset_ns = clocks[interface]
                yield (upper << 32 | lower) * ns // ticks + offset_ns, length
            elif kind == _INTERFACE:
                clocks.append(_interface_clock(order, body[:-4]))
            elif kind in _OTHER_PACKETS:
                raise FileError(
                    path, f"the block at byte {at} is {_OTHER_PACKETS[kind]}; only Enhanced Packet Blocks are read"
                )
            elif kind == _SECTION and (version := struct.unpack_from(f"{order}H", body, 4)[0]) != 1:
                raise FileError(path, f"pcapng version {version} in the section at byte {at}; only 1 is read")
        except IndexError:
            raise FileError(path, f"the packet at byte {at} belongs to an interface that isn't described") from None
        except struct.error:
            raise FileError(path, f"the block at byte {at} is too short for its declared content") from None
        at += size


def _interface_clock(order: str, body: bytes) -> tuple[int, int, int]:
    """Nanoseconds per tick, as a ratio, and offset [ns]: an interface's options 9 (if_tsresol) and 14 (if_tsoffset)."""
    per_s, offset_s, at = 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        if code == 9:
            (power,) = struct.unpack_from("B", body, at + 4)
            per_s = 2 ** (power & 0x7F) if power & 0x80 else 10**power
        elif code == 14:
            (offset_s,) = struct.unpack_from(f"{order}q", body, at + 4)
        elif code == 0:
            break
        at += 4 + size + -size % 4
    return *Fraction(10**9, per_s).as_integer_ratio(), offset_s * 10**9


def _cut(path: str | os.PathLike[str], at: int, found: int, whole: int) -> FileError:
    remedy = "`tcpdump -r FILE -w NEW` keeps the complete packets"
    return FileError(path, f"truncated: from byte {at} on, {found} of at least {whole} bytes are present; {remedy}")


def _absurd(path: str | os.PathLike[str], at: int, captured: int, length: int) -> FileError:
    return FileError(path, f"the packet at byte {at} claims {captured} of {length} bytes captured: the file is corrupt")
