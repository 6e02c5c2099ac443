"""Use of an MPCC Design in a data centre: gains by number of flows, and its plant as a dumbbell."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.window.records import mpcc_scheme
from netctrl.model.law import MpccLaw
from netctrl.scenario.fabric.topology import Dumbbell, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

_LINKS = 3
_MIN_S = 1e-2
_ROUND_TRIPS = 300
_WATCHED = 16


def design_gains(law: MpccLaw) -> np.ndarray | None:
    """(N + 1,) K of 0 to N flows from the Design's table; None without a table.

    Raises
    ------
    InvalidValue
        A table that doesn't begin with one flow, since telemetry may report a single one.
    """
    if law.table is None:
        return None
    first = int(law.table.flows[0])
    if first != 1:
        raise InvalidValue("table", f"{first}:{int(law.table.flows[-1])}", "a table from 1 flow on (--table 1:1024)")
    return np.concatenate([law.table.gain[:1], law.table.gain])


def design_dumbbell(law: MpccLaw) -> Scenario:
    """The plant of a Design: N senders, each with its own receiver, through one link of R_out.

    The links' delays add up to the round trip; all flows are endless.

    Raises
    ------
    InvalidValue
        A round trip shorter than the transmission times of its packets, or packets smaller than their headers.
    """
    packets, full = Packets(), law.packet_size_bytes
    payload = full - packets.header - packets.telemetry
    if payload < 1.0 or payload != round(payload):
        takes = f"a whole number of bytes above {packets.header + packets.telemetry:g}, which the size of the headers"
        raise InvalidValue("packet_size_bytes", full, takes)
    wire = full + packets.ack + packets.telemetry
    sent = BITS_PER_BYTE * wire * (2.0 / law.rate_bit_per_s + 1.0 / law.bottleneck_bit_per_s)
    delay = (law.rtt_s - sent) / (2 * _LINKS)
    if delay < 1e-9:
        takes = f"above {sent + 6e-9:g} s, the transmission times in a dumbbell; or give a data centre's scenario"
        raise InvalidValue("rtt_s", law.rtt_s, takes)
    duration = max(_MIN_S, _ROUND_TRIPS * law.rtt_s)
    size = max(1.0, round(2.0 * duration * law.rate_bit_per_s / BITS_PER_BYTE))
    N, sender = law.flows, mpcc_scheme(law)
    return Scenario(
        name=f"{law.flows} flows through the bottleneck of the design",
        network=Dumbbell(
            senders=law.flows,
            receivers=law.flows,
            host_rate=law.rate_bit_per_s,
            link_rate=law.bottleneck_bit_per_s,
            delay=delay,
            packets=Packets(payload=payload, clock="nearest"),
            watch=Watch(flows=tuple(range(min(law.flows, _WATCHED))), ports=("s0>s1",)),
        ),
        flows=(Flow(id="senders", source=range(N), target=range(N, 2 * N), offers=size, sender=sender),),
        duration=duration,
    )
