"""A bottleneck as a scenario of links and flows, which the packet engine runs."""

from __future__ import annotations

from netctrl.errors import InvalidValue, checked_kind
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.law import SenderRecord
from netctrl.laws.rate.paced import PacedSender
from netctrl.model.law import ArxPacer, PacingLaw
from netctrl.scenario.bottleneck.scenario import BottleneckFlow, BottleneckScenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, FlowGroup, UdpFlows
from netctrl.scenario.tcp_aqm.scenario import Link, Scenario

__all__ = ["BOTTLENECK", "CROSS", "bottleneck_network", "flow_id"]

BOTTLENECK, CROSS = "bottleneck", "cross"
"""Ids of the link, and of the cross traffic."""
_UNDERNEATH = "htcp"
"""Window under a cap and under the paper's law, as in ns-3's program."""


def flow_id(place: int) -> str:
    """Id of the group that flow number `place` becomes."""
    return f"flow{place}"


def bottleneck_network(scenario: BottleneckScenario, law: PacingLaw | None = None) -> Scenario:
    """The same flows over one link, as `netctrl.ns3.bottleneck` has them.

    All propagation is in access lines. There is no ECN. H-TCP is under caps and under the paper's law; a law to a
    target RTT works by itself. Cross traffic is Poisson datagrams.

    Parameters
    ----------
    scenario : BottleneckScenario
    law : PacingLaw, optional
        Of the flows of kind paced.

    Raises
    ------
    InvalidValue
        Flows of kind paced without a law, or a law without such flows.
    """
    checked_kind("scenario", scenario, BottleneckScenario)
    if any(flow.kind == "paced" for flow in scenario.flows) != (law is not None):
        raise InvalidValue("law", law, "a pacing law where flows are of kind paced, and nowhere else")
    flows: list[FlowGroup] = [
        BulkFlows(
            id=flow_id(place),
            path=(BOTTLENECK,),
            rtt=(rtt, rtt),
            start=(flow.start, flow.start + scenario.start_spread),
            stop=None if flow.stop is None else (flow.stop, flow.stop),
            ecn=False,
            sender=_sender(flow, law),
            count=1,
        )
        for place, (flow, rtt) in enumerate(zip(scenario.flows, scenario.rtts_s, strict=True))
    ]
    if scenario.cross > 0.0:
        flows.append(UdpFlows(id=CROSS, path=(BOTTLENECK,), count=1, rate=scenario.cross, ecn=False))
    link = Link(
        id=BOTTLENECK,
        source="router",
        target="far",
        capacity=scenario.bottleneck,
        buffer=scenario.buffer,
        queue=scenario.queue,
    )
    return Scenario(
        name=scenario.name,
        duration=scenario.duration,
        warmup=scenario.warmup,
        sample=scenario.bin,
        links=(link,),
        flows=tuple(flows),
        packet_size=scenario.packet_size,
        seed=scenario.seed,
    )


def _sender(flow: BottleneckFlow, law: PacingLaw | None) -> str | SenderRecord:
    if flow.rate is not None:  # of kind cap, and of no other
        return CapSender(rate=flow.rate, window=_UNDERNEATH)
    if flow.kind == "paced":
        return PacedSender(law=law, window=_UNDERNEATH if isinstance(law, ArxPacer) else None)
    return flow.kind
