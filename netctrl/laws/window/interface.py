"""What every law of a data centre's senders sees and sets: one call an acknowledgement, one row of state a flow.

A law is `step(parameters, paths, gains, state, history, seen, hops)`. It sets `state[WINDOW]` [byte] and `state[RATE]`
[bit/s], and keeps what it remembers in the columns from `OWN` on, which start as zeros. Times are nanoseconds.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "BASE_RTT",
    "BDP",
    "HOPS",
    "HOP_BYTES",
    "HOP_FLOWS",
    "HOP_QUEUE",
    "HOP_TIME",
    "LINE_RATE",
    "OWN",
    "PARAMETERS",
    "RATE",
    "RATES_AT",
    "STATES",
    "WINDOW",
    "Acknowledged",
]

PARAMETERS = 16
"""Length of a row of parameters."""
STATES = 16
"""Length of a row of state."""
WINDOW = 0
"""Index in a state row: bytes that may be under way."""
RATE = 1
"""Index in a state row: bit/s; inf is no limit."""
OWN = 2
"""First index in a state row of a law's own."""

HOP_QUEUE, HOP_FLOWS, HOP_BYTES, HOP_TIME = range(4)
"""Columns of telemetry: queue when the packet left [byte], flows, bytes sent so far, time [ns]."""

BASE_RTT, BDP, LINE_RATE, HOPS = range(4)
"""Columns of a kind of path: round trip without queues [ns], in bytes at line rate, the sender's rate, switch hops."""
RATES_AT = 4
"""First column of the rates of its switch hops [bit/s]."""


class Acknowledged(NamedTuple):
    """What a sender knows when an acknowledgement comes."""

    now: int
    """[ns]"""
    una: int
    """First byte that isn't acknowledged."""
    sequence: int
    """First byte of the packet that this acknowledgement is about."""
    next_byte: int
    """First byte that wasn't sent."""
    newly: int
    """Bytes that it acknowledges for the first time."""
    rtt: int
    """From this packet's departure to now [ns]."""
    marked: bool
    notified: bool
    """It carries a notification (CNP)."""
    lost: bool
    """It says that a packet is missing."""
    path: int
    """Row of `paths` and `gains`."""
