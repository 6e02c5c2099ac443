"""A TCP stream that its application limits: frames at even times, and the round trip of each of its packets.

A packet's round trip begins where TCP first hands it to the host's queue and ends with the acknowledgement that covers
its last byte. The sender's node is watched by a packet socket with the kernel's stamps. On an interface such a socket
sees packets only when they have left the queue, so what enters the queue is mirrored to an interface of its own.
"""

import ctypes
import socket
import struct
import time
from typing import NamedTuple

import numpy as np
from linux.testbed import Testbed

from netctrl.core.errors import NetctrlError
from netctrl.core.units import BITS_PER_BYTE, NANOSECOND
from netctrl.linux.pacing.tcp import TcpInfo, read_tcp_info

TAP = "tap"
"""Interface that what enters the watched queue is mirrored to."""
FRAMES = 25.0
"""Of the video [1/s]."""
LONGEST_WAIT_S = 10.0
"""For the last acknowledgement."""
_LOOK_S = 0.01
_ALL_PROTOCOLS, _TCP = 0x0003, 6
_OUTGOING = 4  # PACKET_OUTGOING of linux/if_packet.h
_TIMESTAMPNS, _ATTACH_FILTER, _RCVBUFFORCE = 35, 26, 33  # of asm/socket.h; Python has no names for them
_BUFFER = 2**25
_HEADERS = 120
"""Bytes of a packet that are looked at: IPv4 and TCP with all options."""
_STAMP = struct.Struct("=qq")
_NS = 1_000_000_000
# IPv4's protocol is byte 9: packets of TCP are cut to their headers, others are skipped.
_FILTER = ((0x30, 0, 0, 9), (0x15, 0, 1, _TCP), (0x06, 0, 0, _HEADERS), (0x06, 0, 0, 0))


class Seen(NamedTuple):
    """Packets of one TCP connection at its sender's node, in the order of their stamps."""

    times_s: np.ndarray
    """(n,) by CLOCK_MONOTONIC [s]"""
    places: np.ndarray
    """(n,) names of interfaces"""
    outgoing: np.ndarray
    """(n,) whether it left the node there"""
    begins: np.ndarray
    """(n,) first byte of its data in the stream"""
    ends: np.ndarray
    """(n,) byte after the last one"""
    acknowledged: np.ndarray
    """(n,) bytes of the other direction that it acknowledges; of incoming packets, bytes of the stream"""


class Streamed(NamedTuple):
    """A stream that has ended."""

    seen: Seen
    begin_s: float
    """Time of the first frame by CLOCK_MONOTONIC [s]."""
    late_s: float
    """Greatest delay of a frame after its time, where TCP took no more [s]."""
    info: TcpInfo
    """At the end."""


class RoundTrips(NamedTuple):
    """Packets by their first sending."""

    sent_s: np.ndarray
    """(n,) [s]"""
    round_trips_s: np.ndarray
    """(n,) until all of it was acknowledged; NaN: it never was [s]"""
    again_s: np.ndarray
    """(m,) times at which data that had been sent were sent again [s]"""


def tap(bed: Testbed, link: str) -> None:
    """Mirror what enters a link's queue."""
    node, interface = bed.wires[link].link.source, bed.interface(link)
    bed.program(node, ["ip", "link", "add", TAP, "type", "dummy"])
    bed.program(node, ["ip", "link", "set", TAP, "up", "arp", "off"])
    bed.program(node, ["tc", "qdisc", "add", "dev", interface, "clsact"])
    mirror = ["matchall", "action", "mirred", "egress", "mirror", "dev", TAP]
    bed.program(node, ["tc", "filter", "add", "dev", interface, "egress", *mirror])


def send_frames(
    address: str,
    port: int,
    seconds: float,
    *,
    bit_per_s: float,
    frames_per_s: float = FRAMES,
    congestion: str = "cubic",
) -> Streamed:
    """Send frames of equal size at even times, and wait until all are acknowledged.

    A frame whose time comes while TCP still takes an earlier one follows at once.
    """
    content = bytes(round(bit_per_s / BITS_PER_BYTE / frames_per_s))
    rows: list[tuple[int, str, bool, bytes]] = []
    late = 0.0
    with _capture() as capture, socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect((address, port))
        begin = time.monotonic()
        for number in range(round(seconds * frames_per_s)):
            left = begin + number / frames_per_s - time.monotonic()
            if left > 0.0:
                time.sleep(left)
            late = max(late, -left)
            connection.sendall(content)
            _take(capture, rows)
        end = time.monotonic() + LONGEST_WAIT_S
        while (info := read_tcp_info(connection)).unacked or info.notsent_bytes:
            if time.monotonic() > end:
                raise NetctrlError(f"{info.unacked} packets of a stream had no acknowledgement in {LONGEST_WAIT_S:g} s")
            time.sleep(_LOOK_S)
            _take(capture, rows)
        _take(capture, rows)
        offset = time.time_ns() - time.monotonic_ns()
        return Streamed(_seen(rows, connection.getsockname()[1], offset), begin, late, info)


def round_trips(seen: Seen, place: str) -> RoundTrips:
    """Of all data as they leave at an interface: `TAP` for what enters the queue."""
    sent = seen.outgoing & (seen.places == place) & (seen.ends > seen.begins)
    times, begins, ends = seen.times_s[sent], seen.begins[sent], seen.ends[sent]
    highest = np.maximum.accumulate(np.concatenate([[0], ends[:-1]])) if len(ends) else ends
    first = begins >= highest
    incoming = ~seen.outgoing
    acknowledged = np.maximum.accumulate(seen.acknowledged[incoming])
    arrivals = np.append(seen.times_s[incoming], np.nan)
    back = arrivals[np.searchsorted(acknowledged, ends[first])]
    return RoundTrips(times[first], back - times[first], times[~first])


def _capture() -> socket.socket:
    """All of a node's packets of TCP, incoming and outgoing, by their headers."""
    capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL_PROTOCOLS))
    capture.setblocking(False)
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in _FILTER))
    capture.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HP", len(_FILTER), ctypes.addressof(program)))
    capture.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
    capture.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)
    return capture


def _take(capture: socket.socket, rows: list[tuple[int, str, bool, bytes]]) -> None:
    """What has been captured: time [ns], interface, whether it left, headers."""
    space = socket.CMSG_SPACE(_STAMP.size)
    while True:
        try:
            content, ancillary, _, (interface, _, kind, *_) = capture.recvmsg(_HEADERS, space)
        except BlockingIOError:
            return
        seconds, ns = _STAMP.unpack(ancillary[0][2][: _STAMP.size])
        rows.append((seconds * _NS + ns, interface, kind == _OUTGOING, content))


def _seen(rows: list[tuple[int, str, bool, bytes]], port: int, offset_ns: int) -> Seen:
    """Packets of the connection from a port; bytes count from the first one of data."""
    start: int | None = None
    found: list[tuple[float, str, bool, int, int, int]] = []
    for at, place, outgoing, content in sorted(rows, key=lambda row: row[0]):
        head = 4 * (content[0] & 15)
        whole = struct.unpack_from("!H", content, 2)[0]
        source, target, number, reply, offset = struct.unpack_from("!HHIIB", content, head)
        if port != (source if outgoing else target):
            continue
        if outgoing and start is None:
            start = number + 1  # of the packet that opens the connection
        if start is None:
            continue
        length = whole - head - 4 * (offset >> 4)
        begin = (number - start) & 0xFFFFFFFF if outgoing and length else 0
        there = 0 if outgoing else (reply - start) & 0xFFFFFFFF
        found.append(((at - offset_ns) * NANOSECOND, place, outgoing, begin, begin + length, there))
    columns = list(zip(*found, strict=True)) or [()] * len(Seen._fields)
    kinds = (float, str, bool, np.int64, np.int64, np.int64)
    return Seen(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))
