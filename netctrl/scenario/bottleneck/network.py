"""Conversion of a bottleneck to a scenario of links and flows, which the packet engine runs."""

from __future__ import annotations

from netctrl.errors import InvalidValue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.law import SenderRecord
from netctrl.laws.rate.paced import PacedSender
from netctrl.model.law import ArxPacer, PacingLaw
from netctrl.scenario.bottleneck.line import Bottleneck, SingleFlow
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.scenario.tcp_aqm.flows import BulkFlows, FlowGroup, UdpFlows

__all__ = ["BOTTLENECK", "CROSS", "bottleneck_network", "flow_id"]

BOTTLENECK, CROSS = "bottleneck", "cross"
"""Ids of the link, and of the cross traffic."""
_UNDERNEATH = "htcp"
"""Window law under a cap and under the paper's law, as in ns-3's program."""


def flow_id(place: int) -> str:
    """Id of the group that represents flow number `place`."""
    return f"flow{place}"


def bottleneck_network(scenario: Scenario, law: PacingLaw | None = None) -> Scenario:
    """The same flows over one link, arranged as in `netctrl.ns3.bottleneck`.

    All propagation delay is in access lines. There is no ECN. Caps and the paper's law act on top of H-TCP; a
    target-RTT law acts alone. Cross traffic is Poisson datagrams.

    Parameters
    ----------
    scenario : Scenario
    law : PacingLaw, optional
        Law of the flows of sender paced.

    Raises
    ------
    InvalidValue
        Flows of sender paced without a law, or a law without such flows.
    """
    line: Bottleneck = checked_network(scenario, Bottleneck)
    if any(flow.sender == "paced" for flow in scenario.flows) != (law is not None):
        raise InvalidValue("law", law, "a pacing law if and only if a flow has sender paced")
    flows: list[FlowGroup] = [
        BulkFlows(
            id=flow_id(place),
            path=(BOTTLENECK,),
            rtt=(rtt, rtt),
            start=(flow.start, flow.start + line.start_spread),
            stop=None if flow.stop is None else (flow.stop, flow.stop),
            ecn=False,
            sender=_sender(flow, law),
            count=1,
        )
        for place, (flow, rtt) in enumerate(zip(scenario.flows, line.rtts_s(scenario.flows), strict=True))
    ]
    if line.cross > 0.0:
        flows.append(UdpFlows(id=CROSS, path=(BOTTLENECK,), count=1, rate=line.cross, ecn=False))
    link = Link(
        id=BOTTLENECK,
        source="router",
        target="far",
        capacity=line.capacity,
        buffer=line.buffer,
        queue=line.queue,
    )
    return Scenario(
        name=scenario.name,
        duration=scenario.duration,
        warmup=scenario.warmup,
        interval=scenario.interval,
        links=(link,),
        flows=tuple(flows),
        packet_size=scenario.packet_size,
        seed=scenario.seed,
    )


def _sender(flow: SingleFlow, law: PacingLaw | None) -> str | SenderRecord:
    if flow.rate is not None:  # only sender cap has one
        return CapSender(rate=flow.rate, window=_UNDERNEATH)
    if flow.sender == "paced":
        return PacedSender(law=law, window=_UNDERNEATH if isinstance(law, ArxPacer) else None)
    return flow.sender
