"""Control laws as data, with units: what is simulated, exported and run."""

from __future__ import annotations

import msgspec

__all__ = ["ArcLaw"]


class ArcLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="arc"):
    """Aggregate Rate Control: every epoch, p ← p + alpha (b − gamma (d C − (q − q0))), b ← 0.

    b counts what arrived in the epoch and q is what waits at its end, in packets with `alpha_per_packet` or in bytes
    with `alpha_per_byte` (then d C and q0 in bytes too). Each arrival is marked with probability p, clipped to [0, 1].

    Source: ARC paper, Algorithm 2 (which prints alpha for packets beside variables in bytes).
    """

    alpha_per_packet: float
    alpha_per_byte: float
    epoch_s: float
    target_utilization: float
    """gamma."""
    target_queue_packets: float
    """q0."""
    capacity_bit_per_s: float
    """C."""
    packet_size_bytes: float
