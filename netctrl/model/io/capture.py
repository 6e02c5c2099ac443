"""Packet captures (pcap, pcapng): how many bytes were sent in each interval."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import BinaryIO

import numpy as np

from netctrl.errors import FileError
from netctrl.model.io.files import opened

__all__ = ["captured_bytes"]

Packets = Iterator[tuple[int, int]]
"""Time [ns] and length on the wire [byte]."""

_MAX_BINS = 10**8
_BUFFER_BYTES = 2**20
_MAX_CAPTURED = 2**18  # as libpcap's MAXIMUM_SNAPLEN
_MAX_PACKET = 2**24  # far above what segmentation offload hands to a capture
_MAX_BLOCK = 2**24  # as Wireshark's reader


def captured_bytes(path: str | os.PathLike[str], interval_s: float) -> np.ndarray:
    """What was sent in each interval from the first packet on.

    Parameters
    ----------
    path : path
        A pcap or pcapng file; which of them, its first bytes tell.
    interval_s : float
        Length of one interval, above 0 [s].

    Returns
    -------
    ndarray, shape (T,)
        Lengths on the wire of an interval's packets together [byte].

    Raises
    ------
    FileError
        The file can't be read, is no capture, or is broken; the byte is named.

    Source: formats of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
    """
    with opened(path, _BUFFER_BYTES) as file:
        magic = file.peek(4)[:4]
        if magic in _PCAP:
            packets = _pcap(path, file)
        elif magic == b"\n\r\r\n":
            packets = _pcapng(path, file)
        else:
            raise FileError(path, f"is no capture: it begins with {magic!r}, not as pcap or pcapng do")
        return _counted(path, packets, interval_s)


def _counted(path: str | os.PathLike[str], packets: Packets, interval_s: float) -> np.ndarray:
    """Bytes in each interval. Packets may come out of order: one before the first in the file adds bins in front."""
    width = Fraction(repr(interval_s)) * 10**9  # the decimal number that was written, not its neighbour in binary
    ns, scale = width.numerator, width.denominator
    bins = np.zeros(1, dtype=np.int64)
    origin = next(packets, None)
    if origin is None:
        raise FileError(path, "holds no packet")
    start, total = origin
    current = low = high = front = 0  # front: the bin that bins[0] holds
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
                path, f"spans more than {_MAX_BINS} intervals of {interval_s:g} s: take longer ones, or mend its times"
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
        raise FileError(path, f"has version {version[0]}.{version[1]} of pcap: takes 2.4")
    packet = struct.Struct(f"{order}IIII")
    at = 24
    while head := file.read(16):
        if len(head) < 16:
            raise _cut(path, at, len(head), 16)
        seconds, part, captured, length = packet.unpack(head)
        if part * unit_ns >= 10**9:
            raise FileError(path, f"the packet at byte {at} has a time with {part} parts of a second: it is broken")
        if captured > _MAX_CAPTURED or not captured <= length <= _MAX_PACKET:
            raise _absurd(path, at, captured, length)
        if (found := len(file.read(captured))) < captured:
            raise _cut(path, at, 16 + found, 16 + captured)
        yield seconds * 10**9 + part * unit_ns, length
        at += 16 + captured


_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SECTION, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6  # the first reads the same in both byte orders
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
                raise FileError(path, f"the section at byte {at} has no byte-order magic: it is broken")
            order, clocks = _ORDERS[marker], []
            pair, packet = struct.Struct(f"{order}II"), struct.Struct(f"{order}IIIII")
            kind, size = pair.unpack(head)
        if size % 4 or not 12 <= size <= _MAX_BLOCK:
            raise FileError(path, f"the block at byte {at} says it has {size} bytes: it is broken")
        body = marker + file.read(size - 8 - len(marker))
        if len(body) < size - 8:
            raise _cut(path, at, 8 + len(body), size)
        if body[-4:] != head[4:]:
            raise FileError(path, f"the block at byte {at} has two different lengths: it is broken")
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
                raise FileError(path, f"the block at byte {at} is {_OTHER_PACKETS[kind]}: takes Enhanced Packet Blocks")
            elif kind == _SECTION and (version := struct.unpack_from(f"{order}H", body, 4)[0]) != 1:
                raise FileError(path, f"has version {version} of pcapng in the section at byte {at}: takes 1")
        except IndexError:
            raise FileError(path, f"the packet at byte {at} is of an interface that isn't described") from None
        except struct.error:
            raise FileError(path, f"the block at byte {at} is too short for what it says it holds") from None
        at += size


def _interface_clock(order: str, body: bytes) -> tuple[int, int, int]:
    """Nanoseconds in so many ticks, and the offset [ns]: an interface's options if_tsresol (9) and if_tsoffset (14)."""
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
    remedy = "`tcpdump -r FILE -w NEW` keeps what is whole"
    return FileError(path, f"is cut: of the {whole} bytes or more from byte {at} on, {found} are there; {remedy}")


def _absurd(path: str | os.PathLike[str], at: int, captured: int, length: int) -> FileError:
    return FileError(path, f"the packet at byte {at} says {captured} of {length} bytes were captured: it is broken")
