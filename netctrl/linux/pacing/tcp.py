"""TCP_INFO by field, at any length of the kernel's, and a transfer of test data that reads it."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError, checked_number
from netctrl.core.units import MICROSECOND

ESTABLISHED = 1

_LARGEST = 512
"""Size of the buffer, larger than any kernel's structure."""
_MIN = 104
"""Size that every kernel since 2.6.28 fills: up to `total_retrans`."""


_FIELDS = {
    "state ca_state retransmits probes backoff options wscale flags": "B",
    "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent last_data_recv": "I",
    "last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space": "I",
    "total_retrans": "I",
    "pacing_rate max_pacing_rate bytes_acked bytes_received": "Q",
    "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out": "I",
    "delivery_rate busy_time rwnd_limited sndbuf_limited": "Q",
    "delivered delivered_ce": "I",
    "bytes_sent bytes_retrans": "Q",
    "dsack_dups reord_seen rcv_ooopack snd_wnd rcv_wnd rehash": "I",
    "total_rto total_rto_recoveries": "H",
    "total_rto_time": "I",
}
"""Fields of struct tcp_info in their order, and the format of each; a kernel's structure may end after any."""
_NAMES = tuple(name for names in _FIELDS for name in names.split())
_FORMAT = "".join(form for names, form in _FIELDS.items() for _ in names.split())
_WHOLE = struct.Struct("=" + _FORMAT)  # there is no padding
_ENDS = tuple(accumulate(struct.calcsize("=" + field) for field in _FORMAT))
_OPTIONAL = len(_NAMES) - 1 - _NAMES.index("total_retrans")
_Fields: Any = namedtuple("_Fields", _NAMES, defaults=(None,) * _OPTIONAL)
_CHUNK = bytes(1 << 17)
_CONNECT_S = 20.0
_AT_ONCE = struct.pack("ii", 1, 0)
_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""Of the reading thread's namespace."""


class TcpInfo(_Fields):
    """struct tcp_info of linux/tcp.h, names without "tcpi_", in the kernel's units: microseconds, bytes/s, segments.

    A field after `total_retrans` that this kernel lacks is None. `rtt` is smoothed, with a weight of 7/8 on the old
    value; `wscale` has 4 bits of the sender and 4 of the receiver; the lowest bit of `flags` is
    delivery_rate_app_limited.
    """

    __slots__ = ()

    @property
    def rtt_s(self) -> float:
        """Smoothed RTT [s]; 0 before the first sample."""
        return MICROSECOND * self.rtt

    @property
    def in_flight_bytes(self) -> float:
        """Data sent, neither acknowledged nor marked lost [byte]."""
        return float(self.snd_mss * max(self.unacked - self.sacked - self.lost + self.retrans, 0))

    @property
    def arrived_bytes(self) -> float | None:
        """Data that reached the receiver, out-of-order data included [byte]."""
        return None if self.bytes_acked is None else float(self.bytes_acked + self.snd_mss * self.sacked)


def decode_tcp_info(content: bytes) -> TcpInfo:
    """Decode the bytes from getsockopt: fields beyond the end are None, unknown ones are skipped.

    Raises
    ------
    InvalidValue
        Shorter than any kernel's structure.
    """
    if len(content) < _MIN:
        raise InvalidValue("content", f"{len(content)} bytes", f"a struct tcp_info of at least {_MIN} bytes")
    if len(content) >= _WHOLE.size:
        return TcpInfo._make(_WHOLE.unpack_from(content))
    known = sum(end <= len(content) for end in _ENDS)
    values = _WHOLE.unpack(content.ljust(_WHOLE.size, b"\0"))
    return TcpInfo(*values[:known])


def read_tcp_info(connection: socket.socket) -> TcpInfo:
    """TCP_INFO of a TCP socket. Raises OSError for another socket."""
    return decode_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LARGEST))


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
