"""A TCP transfer of test data, with repeated readings of TCP_INFO."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, NetctrlError, checked_number
from netctrl.linux.pacing.tcp_info import TcpInfo, read_tcp_info

__all__ = ["TcpRun", "send_tcp"]

_CHUNK = bytes(1 << 17)
_CONNECT_S = 20.0
_AT_ONCE = struct.pack("ii", 1, 0)
_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""Of the reading thread's namespace."""


class TcpRun(NamedTuple):
    """Readings of a TCP transfer."""

    times_s: np.ndarray
    """(n,) times of the readings by CLOCK_MONOTONIC [s]."""
    infos: tuple[TcpInfo, ...]
    """(n,)"""
    sent_bytes: int
    """Bytes accepted by the socket."""

    def column(self, field: str) -> np.ndarray:
        """Values of one field of TcpInfo, or of one of its properties, (n,); NaN where this kernel lacks it."""
        values = [getattr(each, field) for each in self.infos]
        return np.array([np.nan if value is None else value for value in values], dtype=float)


def send_tcp(
    address: str,
    port: int,
    seconds: float,
    *,
    congestion: str | None = None,
    every_s: float = 0.01,
    watch: Callable[[socket.socket, float, TcpInfo], object] | None = None,
    prepare: Callable[[socket.socket], object] | None = None,
) -> TcpRun:
    """Send as much as TCP accepts, with repeated readings of TCP_INFO.

    Parameters
    ----------
    address, port : str, int
    seconds : float
        Duration from the connection on [s].
    congestion : str, optional
        Congestion control such as "cubic"; by default the namespace's.
    every_s : float
        Time between two readings [s]; late ones are skipped.
    watch : callable, optional
        Called at each reading with the socket, the time [s] and the TcpInfo.
    prepare : callable, optional
        Called with the socket before it connects.

    Raises
    ------
    NetctrlError
        Congestion control that this kernel lacks, or a connection that can't be made or is lost.
    """
    times: list[float] = []
    infos: list[TcpInfo] = []
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if congestion is not None:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
            except OSError:
                known = ", ".join(_CONGESTION_CONTROLS.read_text().split())
                raise InvalidValue("congestion", congestion, f"one of this kernel's: {known}") from None
        if prepare is not None:
            prepare(connection)
        connection.settimeout(_CONNECT_S)
        connection.connect((address, port))
        connection.setblocking(False)
        sent = 0
        due = now = time.monotonic()
        end = now + checked_number("seconds", seconds, "a time above 0, in seconds", above=0.0)
        while now < end:
            _, ready, _ = select.select((), (connection,), (), max(due - now, 0.0))
            if ready:
                with suppress(BlockingIOError):
                    sent += connection.send(_CHUNK)
            now = time.monotonic()
            if now >= due:
                info = read_tcp_info(connection)
                times.append(now)
                infos.append(info)
                if watch is not None:
                    watch(connection, now, info)
                due += every_s * (1 + int((now - due) / every_s))
    except OSError as error:
        raise NetctrlError(f"TCP to {address}:{port}: {error.strerror or error}") from None
    finally:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)  # unsent data are discarded
        connection.close()
    return TcpRun(np.array(times), tuple(infos), sent)
