"""ARC on a router: from one epoch's counters to the marking probability."""

from __future__ import annotations

from netctrl.errors import checked_number
from netctrl.laws.aqm.arc import ArcParameters, ArcState, arc_step
from netctrl.laws.aqm.law import Seen
from netctrl.model.law import ArcLaw
from netctrl.units import packets_per_second

__all__ = ["arc_probability"]


def arc_probability(
    law: ArcLaw,
    probability: float,
    arrived_bytes: float,
    backlog_bytes: float,
    elapsed_s: float | None = None,
    header_bytes: float = 0.0,
) -> float:
    """Marking probability of the next epoch, from the present one and the epoch's counters.

    Packets are what the law was designed for, so bytes are divided by a packet's; the link's rate is the Design's,
    counted without `header_bytes`.

    Parameters
    ----------
    law : ArcLaw
    probability : float
        In force until now, from 0 to 1.
    arrived_bytes : float
        b: came to the queue in the epoch, whether it was taken or dropped [byte].
    backlog_bytes : float
        q: waits at the epoch's end [byte].
    elapsed_s : float, optional
        How long the epoch really was [s]; the law's own length where a clock keeps it.
    header_bytes : float
        Of the link layer, which both counters hold for each packet beside the law's packet size [byte].

    Raises
    ------
    InvalidValue
        A probability outside 0 to 1, a count below 0, or an epoch that isn't above 0.
    """
    checked_number("probability", probability, "a probability from 0 to 1", at_least=0.0, at_most=1.0)
    checked_number("arrived_bytes", arrived_bytes, "a number of bytes of at least 0", at_least=0.0)
    checked_number("backlog_bytes", backlog_bytes, "a number of bytes of at least 0", at_least=0.0)
    checked_number("header_bytes", header_bytes, "a number of bytes of at least 0", at_least=0.0)
    elapsed = law.epoch_s if elapsed_s is None else elapsed_s
    checked_number("elapsed_s", elapsed, "a time above 0 in seconds", above=0.0)
    packet = law.packet_size_bytes + header_bytes
    capacity = packets_per_second(law.capacity_bit_per_s, law.packet_size_bytes)
    seen = Seen(elapsed, arrived_bytes / packet, 0.0, backlog_bytes / packet, capacity)
    parameters = ArcParameters(law.alpha_per_packet, law.target_utilization, law.target_queue_packets)
    return float(arc_step(ArcState(probability), seen, parameters).probability)
