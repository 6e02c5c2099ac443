"""Limits of links and TCP in ns-3: countable values, sizes of buffers, names of senders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE

MAX_RECORDS = 2**16
"""Largest number of links and of groups, which is part of an address."""
SENDERS = {
    "reno": "ns3::TcpNewReno",
    "newreno": "ns3::TcpNewReno",
    "cubic": "netctrl::Cubic",
    "htcp": "htcp",
    "bbr": "ns3::TcpBbr",
    "vegas": "ns3::TcpVegas",
    "dctcp": "ns3::TcpDctcp",
}
"""Congestion controls by their names in files: types of ns-3's own, Cubic corrected, and H-TCP by its draft."""
SEEDS = 4294967086
"""ns-3's generator takes seeds from 1 to this number."""
LINUX_TCP = [
    ("ns3::TcpL4Protocol::RecoveryType", "ns3::TcpClassicRecovery", "that of 3.37 loses more of what it sends again"),
    ("ns3::TcpSocketBase::MinRto", "200ms", "least timeout, a second in ns-3"),
    ("ns3::TcpSocketBase::ClockGranularity", "200ms", "least part of a timeout beyond the round trip"),
]
"""Attributes of ns-3's TCP with timeouts of Linux."""
MAX_BUFFER = 2**32 - 1
"""Largest buffer in ns-3 [byte]."""
_MIN_TRANSMISSION_S = 100e-9
_BUFFER_BYTES = (4 * 2**20, 2**29)
"""Limits of TCP's buffers; window scaling ends at 2^30."""


def packet_bytes(scenario: Any) -> int:
    """Size of full packets [byte]; InvalidValue for one that the program can't send."""
    size = scenario.packet_size
    if size != int(size) or not 100 <= size <= 65000:
        raise InvalidValue("packet_size", size, "a whole number of bytes from 100 to 65000")
    return int(size)


def check_links(where: str, links: Iterable[Any], packet_size: float) -> None:
    """Check that ns-3 can represent links' capacities and buffers; InvalidValue names the first other one."""
    for link in links:
        if getattr(link, "trace", None) is None:  # a network's links have no such field
            check_capacity(f"{where}.{link.id}.capacity", link.capacity, packet_size)
        if link.buffer is not None:
            check_buffer(f"{where}.{link.id}.buffer", link.buffer, packet_size, ", or null")


def check_buffer(name: str, buffer: float, packet_size: float, other: str = "") -> None:
    """Check that a buffer [byte] holds a packet and ns-3 can represent it; InvalidValue names it."""
    if not packet_size <= buffer < MAX_BUFFER:
        raise InvalidValue(name, buffer, f"{packet_size:g} (a packet) to {MAX_BUFFER - 1} bytes{other}")


def check_capacity(name: str, capacity: float, packet_size: float) -> None:
    """Check that ns-3 can represent a capacity [bit/s] and the time of a packet; InvalidValue names it."""
    if abs(round(capacity) - capacity) > 1e-6 * capacity:
        raise InvalidValue(name, capacity, "a whole number of bit/s, as in ns-3")
    if packet_size * BITS_PER_BYTE / capacity < _MIN_TRANSMISSION_S:
        takes = f"a capacity at which a packet of {packet_size:g} bytes takes 100 ns or more: ns-3 counts in ns"
        raise InvalidValue(name, capacity, takes)


def socket_buffer(fastest: float, longest: float, waiting: float) -> int:
    """Size of TCP's buffers [byte] that limits no window: capacity [bit/s], round trip [s] and all buffers [byte]."""
    low, high = _BUFFER_BYTES
    return int(min(max(4.0 * (fastest * longest / BITS_PER_BYTE + waiting), low), high))


def access_rate(*capacities: float) -> tuple[int, str]:
    """Rate of hosts' lines and of idle directions, without queueing [bit/s], and its comment."""
    return max(10 * round(max(capacities)), 1_000_000_000), "of hosts' lines, where nothing waits [bit/s]"
