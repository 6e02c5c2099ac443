"""What of an access link the kernel in virtual time doesn't have."""

from __future__ import annotations

from netctrl.scenario.access.scenario import access_parts
from netctrl.scenario.scenario import Scenario

_MIN_FRAME, _MAX_FRAME = 50, 1514
"""Headers, kind and number; Ethernet's largest."""


def access_lacks(scenario: Scenario) -> str | None:
    """Part of an access link that isn't supported; None: it can be run."""
    parts = access_parts(scenario)
    if parts.line.discipline != "fifo":
        return f"self-clocked fair queueing (network.discipline: {parts.line.discipline})"
    if parts.line.limit < 2:
        return "a node for one packet alone (network.limit: 1); its queue holds what waits beside the one being sent"
    for group in parts.regulated:
        if group.sender is not None:
            return f"TCP senders with regulators that pause at random (flows.{group.id}.sender)"
    sizes = {f"flows.{parts.premium.id}.size": parts.premium.size, "packet_size": parts.packet_size}
    for name, size in sizes.items():
        if not _MIN_FRAME <= size <= _MAX_FRAME or size != int(size):
            return f"packets of {size:g} bytes: a whole number from {_MIN_FRAME} to {_MAX_FRAME} ({name})"
    return None
