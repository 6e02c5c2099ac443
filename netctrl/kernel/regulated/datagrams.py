"""UDP packets by the hundred: each leaves at a time of its own, or is read with the kernel's stamp of its arrival.

A packet begins with its kind and its number. One system call is for up to 256 packets, as each costs 50 microseconds of
the host's time inside. The layouts are those of a 64-bit Linux.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError

_BATCH = 256
MESSAGE = np.dtype(
    [
        *(("name", "u8"), ("name_size", "u4"), ("gap", "u4"), ("parts", "u8"), ("count", "u8")),
        *(("control", "u8"), ("control_size", "u8"), ("flags", "i4"), ("gap2", "u4"), ("length", "u4"), ("gap3", "u4")),
    ]
)
"""struct mmsghdr."""
PART = np.dtype([("base", "u8"), ("size", "u8")])
"""struct iovec."""
_HEAD = np.dtype([("kind", "u4"), ("number", "u4")])
_DUE = np.dtype([("size", "u8"), ("level", "i4"), ("type", "i4"), ("at", "u8")])
_STAMP = np.dtype([("size", "u8"), ("level", "i4"), ("type", "i4"), ("seconds", "i8"), ("ns", "i8")])
HEAD_BYTES = _HEAD.itemsize
"""Least payload of a packet."""
_SO_TXTIME = 61  # also SCM_TXTIME; from asm-generic/socket.h, as the next ones
_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_BUFFER = 256 << 20
_LARGEST = 2048
_NS = 1_000_000_000


class Packets(NamedTuple):
    """Packets to send, or that came, each (n,), in the order of their times."""

    at_s: np.ndarray
    """From time 0 of the run [s]."""
    kind: np.ndarray
    number: np.ndarray


class Sender:
    """Socket whose packets the `fq` queue of its interface sends at their times; opened in its namespace.

    Parameters
    ----------
    begin_s : float
        Time 0 of the run by CLOCK_MONOTONIC [s].
    port : int
    addresses : sequence of int
        Where packets of each kind go.
    payload : ndarray, shape (K,)
        Of packets of each kind [byte].
    """

    def __init__(self, begin_s: float, port: int, addresses: tuple[int, ...], payload: np.ndarray) -> None:
        self.begin_ns, self.payload = round(begin_s * _NS), payload
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TXTIME, struct.pack("=iI", 1, 0))  # CLOCK_MONOTONIC
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
        places = (
            struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + IPv4Address(each).packed for each in addresses
        )
        self.names = np.array([name.ljust(16, b"\0") for name in places], dtype="S16")
        self.zeros = np.zeros(_LARGEST, dtype="u1")
        self.library = ctypes.CDLL(None, use_errno=True)

    def send(self, packets: Packets) -> None:
        """Hand packets over, which wait in the queue until their times."""
        for first in range(0, len(packets.kind), _BATCH):
            self._send(Packets(*(column[first : first + _BATCH] for column in packets)))

    def _send(self, packets: Packets) -> None:
        n = len(packets.kind)
        heads, parts, due, messages = _rows(n, _HEAD), _rows((n, 2), PART), _rows(n, _DUE), _rows(n, MESSAGE)
        heads["kind"], heads["number"] = packets.kind, packets.number
        parts[:, 0]["base"], parts[:, 0]["size"] = _places(heads), HEAD_BYTES
        parts[:, 1]["base"], parts[:, 1]["size"] = self.zeros.ctypes.data, self.payload[packets.kind] - HEAD_BYTES
        due["size"], due["level"], due["type"] = due.itemsize, socket.SOL_SOCKET, _SO_TXTIME
        due["at"] = self.begin_ns + np.rint(packets.at_s * _NS).astype("u8")
        messages["name"] = self.names.ctypes.data + self.names.itemsize * packets.kind.astype("u8")
        messages["name_size"] = self.names.itemsize
        messages["parts"], messages["count"] = parts.ctypes.data + 2 * PART.itemsize * np.arange(n, dtype="u8"), 2
        messages["control"], messages["control_size"] = _places(due), due.itemsize
        done = 0
        while done < n:
            at = ctypes.c_void_p(messages.ctypes.data + done * messages.itemsize)
            sent = self.library.sendmmsg(self.socket.fileno(), at, n - done, 0)
            if sent < 0:
                raise NetctrlError(f"packets can't be sent: {os.strerror(ctypes.get_errno())}")
            done += sent


class Receiver:
    """Socket that takes packets, opened in its namespace."""

    def __init__(self, begin_s: float, port: int) -> None:
        self.begin_ns = round(begin_s * _NS)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self.socket.bind(("0.0.0.0", port))
        self.library = ctypes.CDLL(None, use_errno=True)
        self.heads, self.parts = _rows(_BATCH, _HEAD), _rows(_BATCH, PART)
        self.stamps, self.messages = _rows(_BATCH, _STAMP), _rows(_BATCH, MESSAGE)
        self.parts["base"], self.parts["size"] = _places(self.heads), HEAD_BYTES
        self.messages["parts"], self.messages["count"] = _places(self.parts), 1
        self.messages["control"] = _places(self.stamps)

    def read(self) -> Packets:
        """All packets that have come since the last call."""
        heads, stamps = [self.heads[:0]], [self.stamps[:0]]
        count = _BATCH
        while count == _BATCH:
            self.messages["control_size"] = self.stamps.itemsize
            at = ctypes.c_void_p(self.messages.ctypes.data)
            count = self.library.recvmmsg(self.socket.fileno(), at, _BATCH, socket.MSG_DONTWAIT, None)
            if count > 0:
                heads.append(self.heads[:count].copy())
                stamps.append(self.stamps[:count].copy())
        found, when = np.concatenate(heads), np.concatenate(stamps)
        # the kernel stamps by the date, which goes with the clock inside
        since = when["seconds"] * _NS + when["ns"] - (_clock_ns() + self.begin_ns)
        return Packets(since / _NS, found["kind"].astype(int), found["number"].astype(int))


def _rows(shape: int | tuple[int, int], form: np.dtype) -> np.ndarray:
    """Rows of a structure, all zeros."""
    return np.zeros(shape, form)


def _clock_ns() -> int:
    """CLOCK_REALTIME less CLOCK_MONOTONIC [ns]."""
    return time.time_ns() - time.monotonic_ns()


def _places(rows: np.ndarray) -> np.ndarray:
    """Address of each row."""
    return rows.ctypes.data + rows.itemsize * np.arange(len(rows), dtype="u8")
