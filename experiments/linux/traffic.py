"""Traffic of a testbed: UDP sent at given times, stamped and counted, and sinks of UDP and TCP.

Stamps and times are CLOCK_MONOTONIC, which all namespaces of a machine share: delays are one-way and don't depend on
steps of the wall clock.
"""

import select
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError
from netctrl.core.units import NANOSECOND

FRAME = 1514
"""Frame of 1500 bytes with its Ethernet header [byte]."""
FRAME_OVERHEAD = 14 + 20 + 8
"""Headers of Ethernet, IPv4 and UDP in a frame, as tbf counts it [byte]."""
_HEAD = struct.Struct("=IIQQ")  # stream, bytes of the frame, sequence number, sending time [ns]
MIN_FRAME = FRAME_OVERHEAD + _HEAD.size
"""[byte]"""

_SO_TIMESTAMPNS = 35  # from linux/socket.h; Python has no name for it
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_BUFFER = 32 * 2**20  # large enough never to drop
_STAMP = struct.Struct("=qq")
_NS = 1_000_000_000


class UdpSource(NamedTuple):
    """Source of packets to one port."""

    address: str
    port: int
    times_s: np.ndarray
    """(n,) sending time of each packet from the start (`netctrl.kernel.scenarios.traffic`)."""
    frame_bytes: int = FRAME
    """Size of a packet with its Ethernet header, as tbf counts it, of at least `MIN_FRAME`."""
    stream: int = 0
    """Number that distinguishes sources with the same sink."""


class Sent(NamedTuple):
    """Result of one source."""

    offered: int
    """Number of packets due within the time."""
    dropped: int
    """Number of packets rejected by the non-blocking socket; their sequence numbers are skipped."""
    frame_bytes: int
    latest_s: float
    """Largest delay of a packet after its time."""


class Received(NamedTuple):
    """Packets of one stream at a sink, in the order of arrival."""

    numbers: np.ndarray
    """(n,) sequence numbers, from 0."""
    sent_s: np.ndarray
    """(n,) sending times by CLOCK_MONOTONIC [s]."""
    received_s: np.ndarray
    """(n,) arrival times by the same clock, from the kernel [s]."""
    frame_bytes: np.ndarray
    """(n,)"""

    @property
    def delay_s(self) -> np.ndarray:
        """One-way delays, (n,) [s]."""
        return self.received_s - self.sent_s

    def lost(self, offered: int) -> int:
        """Number of packets lost out of those sent; duplicates count once."""
        return offered - len(np.unique(self.numbers))


def open_udp_sink(port: int, address: str = "0.0.0.0") -> socket.socket:
    """Socket that reserves its port at once, with the kernel's stamps on arrivals; `receive_udp` reads it.

    Open it (within `Testbed.inside`) before a source starts, so that no packet is lost or refused.
    """
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        _enlarge(sink, _SO_RCVBUFFORCE, socket.SO_RCVBUF)
        sink.bind((address, port))
        sink.setblocking(False)
    except OSError as error:
        sink.close()
        raise NetctrlError(f"can't listen on port {port} of {address}: {error.strerror}") from None
    return sink


def receive_udp(sinks: Sequence[socket.socket], until_s: float) -> dict[int, Received]:
    """All arrivals at some sinks until a time of CLOCK_MONOTONIC, by stream. Other programs' packets are skipped."""
    rows: list[tuple[int, int, int, int, int]] = []
    space = socket.CMSG_SPACE(_STAMP.size)
    while (left := until_s - time.monotonic()) > 0.0:
        ready, _, _ = select.select(sinks, (), (), left)
        # Computed each time, so that a step of the wall clock affects one batch only.
        offset = time.time_ns() - time.monotonic_ns()
        for sink in ready:
            while True:
                try:
                    content, ancillary, _, _ = sink.recvmsg(_HEAD.size, space)
                except BlockingIOError:
                    break
                if len(content) == _HEAD.size and ancillary:
                    seconds, ns = _STAMP.unpack(ancillary[0][2][: _STAMP.size])
                    rows.append((*_HEAD.unpack(content), seconds * _NS + ns - offset))
                if time.monotonic() >= until_s:
                    break
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    found = {}
    for stream in np.unique(table[:, 0]):
        of = table[table[:, 0] == stream]
        found[int(stream)] = Received(of[:, 2], of[:, 3] * NANOSECOND, of[:, 4] * NANOSECOND, of[:, 1])
    return found


def send_udp(sources: Sequence[UdpSource], begin_s: float) -> list[Sent]:
    """Send all packets of some sources, each at its time after `begin_s` of CLOCK_MONOTONIC; returns after the last.

    One process serves several sources: late packets are sent at once, and later times don't shift.
    """
    due = np.concatenate([np.asarray(each.times_s, dtype=float) for each in sources])
    whose = np.concatenate([np.full(len(each.times_s), k) for k, each in enumerate(sources)])
    order = np.argsort(due, kind="stable")
    ticks = ((begin_s + due[order]) / NANOSECOND).astype(np.int64)
    schedule = list(zip(ticks.tolist(), whose[order].tolist(), strict=True))
    sockets = [_udp_to(each) for each in sources]
    numbers, dropped, latest = [0] * len(sources), [0] * len(sources), [0] * len(sources)
    packets = [bytearray(each.frame_bytes - FRAME_OVERHEAD) for each in sources]
    streams, frames = [each.stream for each in sources], [each.frame_bytes for each in sources]
    now, sleep, pack = time.monotonic_ns, time.sleep, _HEAD.pack_into
    try:
        for when, k in schedule:
            left = when - now()
            if left > 0:
                sleep(left * NANOSECOND)
            at = now()
            pack(packets[k], 0, streams[k], frames[k], numbers[k], at)
            numbers[k] += 1
            try:
                sockets[k].send(packets[k])
            except OSError:  # no room, or no listener
                dropped[k] += 1
            latest[k] = max(latest[k], at - when)
    finally:
        for each in sockets:
            each.close()
    return [Sent(numbers[k], dropped[k], frames[k], latest[k] * NANOSECOND) for k in range(len(sources))]


def _udp_to(source: UdpSource) -> socket.socket:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        _enlarge(out, _SO_SNDBUFFORCE, socket.SO_SNDBUF)
        out.connect((source.address, source.port))
        out.setblocking(False)
    except OSError as error:
        out.close()
        raise NetctrlError(f"{source.address}:{source.port} can't be reached: {error.strerror}") from None
    return out


def _enlarge(of: socket.socket, force: int, option: int) -> None:
    try:
        of.setsockopt(socket.SOL_SOCKET, force, _BUFFER)
    except PermissionError:  # as large as the kernel allows without privileges
        of.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def open_tcp_sink(port: int, address: str = "0.0.0.0") -> socket.socket:
    """Listening socket that reserves its port at once; `absorb_tcp` reads from it."""
    try:
        return socket.create_server((address, port), backlog=128)
    except OSError as error:
        raise NetctrlError(f"can't listen on port {port} of {address}: {error.strerror}") from None


def absorb_tcp(listener: socket.socket, until_s: float, connections: int | None = None) -> dict[str, int]:
    """Accept all connections until a time of CLOCK_MONOTONIC, and discard their data: bytes by peer.

    With `connections`, it returns when this number has ended.
    """
    peers: dict[socket.socket, str] = {}
    total: dict[str, int] = {}
    buffer = bytearray(1 << 20)
    listener.setblocking(False)
    try:
        while (left := until_s - time.monotonic()) > 0.0 and len(total) - len(peers) != connections:
            ready, _, _ = select.select([listener, *peers], (), (), left)
            for each in ready:
                if each is listener:
                    connection, (host, port, *_) = listener.accept()
                    connection.setblocking(False)
                    peers[connection] = f"{host}:{port}"
                    total[peers[connection]] = 0
                    continue
                count = 0
                with suppress(OSError):  # with MSG_TRUNC the kernel discards the data without a copy
                    count = each.recv_into(buffer, len(buffer), socket.MSG_TRUNC)
                total[peers[each]] += count
                if count == 0:  # the end of the connection
                    peers.pop(each)
                    each.close()
    finally:
        for each in peers:
            each.close()
    return total
