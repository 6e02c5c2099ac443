"""Bottleneck's scenario: a short call that builds a paced flow and its competitors."""

from __future__ import annotations

from typing import Any

from netctrl.scenario.bottleneck.line import Bottleneck, SingleFlow
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

__all__ = ["bottleneck", "design_bottleneck"]

_MIN_BUFFER = 30e3
_DESIGN_S, _DESIGN_RTTS, _DESIGN_PACKETS = 60.0, (50.0, 1200.0), 3e6
_DEFAULT = Scenario(
    name="bottleneck",
    network=Bottleneck(),
    flows=(SingleFlow(sender="paced"),),
    packet_size=1500.0,
    duration=60.0,
    warmup=10.0,
)


def bottleneck(**fields: Any) -> Scenario:
    """Build a bottleneck's scenario, with other values for some fields of it or of its parts.

    The default is 100 Mbit/s, 20 ms, a buffer of 250 kB and one paced flow of packets of 1500 bytes, for 60 s.

    Raises
    ------
    InvalidValue
        An unknown name, or a value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.bottleneck.line import SingleFlow
    >>> from netctrl.scenario.bottleneck.scenario import bottleneck
    >>> bottleneck(capacity="20Mbit", flows=(SingleFlow(sender="bbr"),)).network.capacity
    20000000.0
    """
    return _DEFAULT.replace(**fields)


def design_bottleneck(bottleneck_bit_per_s: float, rtt_s: float, packet_size_bytes: float) -> Scenario:
    """The bottleneck of a Design's certificate, with a buffer of one bandwidth-delay product and one paced flow.

    It runs for 60 s, 1200 round trips or 3 million packets, whichever is least, but at least 50 round trips."""
    buffer = max(bottleneck_bit_per_s * rtt_s / BITS_PER_BYTE, _MIN_BUFFER)
    packets_s = _DESIGN_PACKETS * BITS_PER_BYTE * packet_size_bytes / bottleneck_bit_per_s
    lasts = max(min(_DESIGN_S, _DESIGN_RTTS[1] * rtt_s, packets_s), _DESIGN_RTTS[0] * rtt_s)
    return bottleneck(
        name="bottleneck of the design",
        capacity=bottleneck_bit_per_s,
        buffer=buffer,
        rtt=rtt_s,
        packet_size=packet_size_bytes,
        duration=lasts,
        warmup=lasts / 4.0,
        interval=max(rtt_s, lasts / 1e4),
    )
