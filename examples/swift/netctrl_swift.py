"""Swift: additive increase below a target of the round trip, multiplicative decrease above it, once a round trip.

Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020,
Algorithm 1 and section 3.5. Here the round trip is the fabric's; below one packet a window is a rate.
"""

from math import sqrt
from typing import NamedTuple

from netctrl.laws.window.law import SHARE, Acknowledged, Packet, Path, SchemeRecord, WindowLaw
from netctrl.model.io.fields import Duration, Size, duration, read_fields, size


class Swift(SchemeRecord, frozen=True, kw_only=True, tag="swift"):
    """Swift; its target above the round trip without queues is `queueing`, and more for windows of few packets."""

    queueing: Duration = 5e-6
    flow_range: Duration = 20e-6
    """What is added for the smallest windows."""
    min_packets: float = 0.1
    max_packets: float = 100.0
    """Between these two windows the addition falls as 1/sqrt(W)."""
    increase: Size = 1000.0
    decrease: float = 0.8
    max_decrease: float = 0.5

    def __post_init__(self) -> None:
        read_fields(self, queueing=duration, flow_range=duration, increase=size, decrease=SHARE, max_decrease=SHARE)


class SwiftParameters(NamedTuple):
    queueing: float
    """Target of the delay in queues [ns]"""
    scale: float
    """alpha of the target's flow scaling [ns]"""
    offset: float
    """Of the same: alpha/sqrt(fs_max) [ns]"""
    flow_range: float
    """fs_range [ns]"""
    increase: float
    """ai, a round trip [byte]"""
    decrease: float
    """beta"""
    max_decrease: float
    """max_mdf"""
    packet: float
    """Payload of a full one [byte]"""


class SwiftState(NamedTuple):
    window: float
    """[byte]"""
    rate: float
    """[bit/s]"""
    decreased: float
    """When it was last decreased [ns]"""


def swift_step(state: SwiftState, seen: Acknowledged, path: Path, p: SwiftParameters) -> SwiftState:
    """Swift (Kumar et al. 2020, Algorithm 1)."""
    packets = state.window / p.packet
    scaling = min(max(p.scale / sqrt(packets) - p.offset, 0.0), p.flow_range)
    target = path.base_rtt + p.queueing + scaling
    window = state.window
    decreased = state.decreased
    if seen.rtt < target:
        window += p.increase * seen.newly / max(window, p.packet)
    elif seen.now - decreased >= seen.rtt:
        window *= max(1.0 - p.decrease * (seen.rtt - target) / seen.rtt, 1.0 - p.max_decrease)
        decreased = seen.now
    window = min(max(window, 1e-3 * p.packet), path.bdp)
    rate = window * 8e9 / seen.rtt if window < p.packet else path.line_rate
    return SwiftState(window, rate, decreased)


def _read(scheme: Swift, packet: Packet) -> SwiftParameters:
    alpha = scheme.flow_range * 1e9 / (1.0 / sqrt(scheme.min_packets) - 1.0 / sqrt(scheme.max_packets))
    offset, ns = alpha / sqrt(scheme.max_packets), (scheme.queueing * 1e9, scheme.flow_range * 1e9)
    rest = scheme.increase, scheme.decrease, scheme.max_decrease, packet.payload
    return SwiftParameters(ns[0], alpha, offset, ns[1], *rest)


SWIFT = WindowLaw(Swift, SwiftParameters, SwiftState, _read, swift_step)
