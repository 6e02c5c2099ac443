"""Which senders the fluid has."""

from __future__ import annotations

from netctrl.scenario.tcp_aqm.flows import BulkFlows, FastFlows, FlowGroup

__all__ = ["FLUID_SENDERS", "sender_lack"]

FLUID_SENDERS = ("reno", "cubic", "dctcp", "prague")
"""Senders of the fluid's bulk flows, by their numbers in its arrays."""


def sender_lack(group: FlowGroup) -> str | None:
    """What the fluid has instead of a group's sender; None: it has it."""
    if isinstance(group, FastFlows) or not group.answered:
        return None
    known = FLUID_SENDERS if isinstance(group, BulkFlows) else FLUID_SENDERS[:1]
    if group.sender not in known:
        return ", ".join(known)
    if group.sender in ("dctcp", "prague") and not group.ecn:
        return "reno and cubic without ecn"
    return None
