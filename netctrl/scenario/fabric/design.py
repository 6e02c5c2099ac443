"""A Design of MPCC in a data centre: its gains by number of flows, its plant as a dumbbell."""

from __future__ import annotations

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.laws.window.records import mpcc_scheme
from netctrl.model.law import MpccLaw
from netctrl.scenario.fabric.scenario import Dumbbell, FabricFlow, FabricScenario, Packets, Watch
from netctrl.units import BITS_PER_BYTE

__all__ = ["design_dumbbell", "design_gains"]

_LINKS = 3
_MIN_S = 1e-2
_ROUND_TRIPS = 300
_WATCHED = 16


def design_gains(law: MpccLaw) -> np.ndarray | None:
    """(N + 1,) K of 0 to N flows from the Design's table; None where it has none.

    Raises
    ------
    InvalidValue
        A table that doesn't begin with one flow: telemetry may tell of one.
    """
    if law.table is None:
        return None
    first = int(law.table.flows[0])
    if first != 1:
        raise InvalidValue("table", f"{first}:{int(law.table.flows[-1])}", "a table from 1 flow on (--table 1:1024)")
    return np.concatenate([law.table.gain[:1], law.table.gain])


def design_dumbbell(law: MpccLaw) -> FabricScenario:
    """The plant of a Design: N senders, each to a receiver of its own, through one link of R_out.

    Links have the delay that makes up the round trip; all flows last.

    Raises
    ------
    InvalidValue
        A round trip that is shorter than what its packets take on the wires; packets of no room for their headers.
    """
    packets, full = Packets(), law.packet_size_bytes
    payload = full - packets.header - packets.telemetry
    if payload < 1.0 or payload != round(payload):
        takes = f"a whole number of bytes above {packets.header + packets.telemetry:g}, which headers take"
        raise InvalidValue("packet_size_bytes", full, takes)
    wire = full + packets.ack + packets.telemetry
    sent = BITS_PER_BYTE * wire * (2.0 / law.rate_bit_per_s + 1.0 / law.bottleneck_bit_per_s)
    delay = (law.rtt_s - sent) / (2 * _LINKS)
    if delay < 1e-9:
        takes = (
            f"above {sent + 6e-9:g} s, what packets take on the wires of a dumbbell; or give a data centre's scenario"
        )
        raise InvalidValue("rtt_s", law.rtt_s, takes)
    duration = max(_MIN_S, _ROUND_TRIPS * law.rtt_s)
    size = max(1.0, round(2.0 * duration * law.rate_bit_per_s / BITS_PER_BYTE))
    return FabricScenario(
        name=f"{law.flows} flows through the bottleneck of the design",
        topology=Dumbbell(
            senders=law.flows,
            receivers=law.flows,
            host_rate=law.rate_bit_per_s,
            link_rate=law.bottleneck_bit_per_s,
            delay=delay,
        ),
        scheme=mpcc_scheme(law),
        flows=tuple(FabricFlow(source=i, target=law.flows + i, size=size) for i in range(law.flows)),
        packets=Packets(payload=payload, clock="nearest"),
        duration=duration,
        watch=Watch(flows=tuple(range(min(law.flows, _WATCHED))), ports=("s0>s1",)),
    )
