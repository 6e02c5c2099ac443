"""Senders of a scenario as the kernel's: a congestion control, and what paces it."""

from __future__ import annotations

from typing import Any, NamedTuple

from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.records import KernelTcp, pacer_of, rate_record, scheme_of, sender_name, window_of
from netctrl.model.law import PacingLaw

CONGESTION_CONTROLS = ("reno", "cubic", "htcp", "vegas", "dctcp", "bbr")
"""Senders of scenarios that the kernel has under the same names."""
_UNDER_A_LAW = "cubic"
"""Where a law is to act alone: the kernel has no connection without a window. This is what `netctrl pace` finds."""


class KernelSender(NamedTuple):
    """A sender in the kernel."""

    congestion: str
    rate: float = 0.0
    """Greatest rate of payload, of a law the first one [byte/s]; 0: any."""
    law: PacingLaw | None = None
    """What paces it."""


def kernel_sender(sender: Any, payload_share: float) -> KernelSender | None:
    """A group's sender; None for one that the kernel doesn't have.

    A cap's rate is of whole packets, of which Linux paces the payload. A law's rates are of payload, as `netctrl pace`
    has them.

    Parameters
    ----------
    sender : str or record
    payload_share : float
        Payload of a packet over its size.
    """
    if isinstance(sender, KernelTcp):
        return KernelSender(sender.name)
    if scheme_of(sender) is not None:  # its table's settings would be lost
        return None
    record, law = rate_record(sender), pacer_of(sender)
    if law is not None:
        found = KernelSender(window_of(sender) or _UNDER_A_LAW, law.start_rate_bit_per_s / BITS_PER_BYTE, law)
    elif isinstance(record, CapSender):
        found = KernelSender(record.window or "", record.rate * payload_share / BITS_PER_BYTE)
    else:
        found = KernelSender(sender_name(sender))
    return found if found.congestion in CONGESTION_CONTROLS else None
