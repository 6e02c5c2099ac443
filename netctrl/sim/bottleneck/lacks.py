"""Which drop-tail buffers the fluid of window senders has."""

from __future__ import annotations

__all__ = ["FEWEST_PACKETS", "small_buffer"]

FEWEST_PACKETS = 16
"""Smallest buffer of a drop-tail link at which the fluid of windows agrees with packets [packet]."""


def small_buffer(packets: float) -> str | None:
    """What the fluid lacks for windows over a drop-tail buffer of so many packets; None: nothing."""
    if packets < FEWEST_PACKETS:
        return f"windows over a drop-tail buffer below {FEWEST_PACKETS} packets, where the packet engine is as fast"
    return None
